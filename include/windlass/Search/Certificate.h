// Proof, in integers alone, that no solution of a problem costs less than a bound.
#ifndef WINDLASS_SEARCH_CERTIFICATE_H
#define WINDLASS_SEARCH_CERTIFICATE_H

#include "windlass/Search/Problem.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <array>
#include <string>

namespace windlass::search {

/// A Lagrangean bound. Prices take the place of the rows: what a label takes costs that much, and what there is is
/// given back. Messages move cost between each edge and its two nodes. Whatever they are, the least of every node and
/// of every edge, taken alone, add up to no more than the cost of any solution.
struct Certificate {
  /// Prices are multiples of 2^-40 of a cost for a byte, or of 1 for streams; messages of 2^-8 of a cost.
  static constexpr int kPriceBits = 40, kMessageBits = 8;
  /// The largest message, and the largest sum of prices.
  static constexpr int64_t kMost = int64_t(1) << 62;

  /// What is proven. kForbidden where nothing is allowed.
  int64_t bound = 0;
  /// Of each row, at least 0; those of the streams of a window add up to 1.
  std::vector<int64_t> prices;
  /// Of each edge what its two nodes take over from it, by label; empty where no edge gives anything.
  std::vector<std::array<std::vector<int64_t>, 2>> messages;
};

/// The bound that prices and messages prove, in one pass over nodes and edges; `certificate.bound` is not looked at.
/// Fails, with a line that goes on after the certificate's name, where they do not belong to this problem.
llvm::Expected<int64_t> proveBound(const Problem &problem, const Certificate &certificate);

/// Looks for the best bound until it reaches `target` or `workLimit` operations are spent. Depends on nothing else.
Certificate certify(const Problem &problem, int64_t target, int64_t workLimit);

/// A certificate of one problem of several, and which one: numbers that tell it from the others.
struct NamedCertificate {
  std::vector<int64_t> name;
  Certificate certificate;
};

/// The text of a file of certificates; the same ones give the same bytes.
std::string printCertificates(const std::vector<NamedCertificate> &certificates);

/// Reads it back. It is not trusted: numbers are checked for their range, and the memory that it takes is a small
/// multiple of the text's. The error is one line that goes on after the file's name.
llvm::Expected<std::vector<NamedCertificate>> parseCertificates(llvm::StringRef text);

/// Reads a file of at most 128 MiB.
llvm::Expected<std::vector<NamedCertificate>> readCertificates(llvm::StringRef path);

} // namespace windlass::search

#endif
