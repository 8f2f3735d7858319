// Stored loads of experts and answers, in one format. docs/experts.md describes it.
#ifndef WINDLASS_EXPERTS_CASEFILE_H
#define WINDLASS_EXPERTS_CASEFILE_H

#include "windlass/Experts/PlaceExperts.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace windlass::experts {

/// A model's layers, which have one shape.
struct Case {
  Shape shape;
  /// The load of each layer's experts.
  std::vector<std::vector<double>> loads;
};

/// The cases of a file, and the placement of each layer where the file is an answer.
struct CaseFile {
  std::vector<Case> cases;
  /// The placements of each case; none for a case that has no answer.
  std::vector<std::vector<Placement>> placements;
  /// Whether the file is a list; else it is one case.
  bool isList = false;
};

/// Parses cases that are not trusted. `phy2log` is looked at only where `readsPlacements` holds; each case then needs
/// it. The error continues a line that begins with the file's name.
llvm::Expected<CaseFile> parseCases(const llvm::json::Value &document, bool readsPlacements);
/// Reads and parses a file.
llvm::Expected<CaseFile> readCases(llvm::StringRef path, bool readsPlacements);

/// The answers of a case's layers, with what a placement before them makes of it where there was one.
struct CaseAnswer {
  std::vector<ReplanAnswer> layers;
  bool isReplanned = false;
};

/// Writes a case with its answers, in the format that `parseCases` reads.
llvm::json::Object toJson(const Case &given, const CaseAnswer &answer);

/// Returns the mean load of a GPU.
double computeMeanLoad(const Case &given, size_t layer);

} // namespace windlass::experts

#endif
