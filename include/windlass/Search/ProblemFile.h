// Stored problems: the IOPDDL contest's format and ours, which adds to it. docs/solver.md describes both.
#ifndef WINDLASS_SEARCH_PROBLEMFILE_H
#define WINDLASS_SEARCH_PROBLEMFILE_H

#include "windlass/Search/Problem.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace windlass::search {

/// Parses a problem. What it says is not trusted: all numbers are checked for their range, and the memory that it takes
/// is a small multiple of the text's. The error is one line that goes on after the file's name.
llvm::Expected<Problem> parseProblem(llvm::StringRef text);

/// Reads a file, packed with gzip or not.
llvm::Expected<Problem> readProblem(llvm::StringRef path);

/// The text of a problem whose rows of memory have one capacity and whose constant is 0, as `parseProblem` takes it.
std::string printProblem(const Problem &problem);

/// One label in each line.
std::string printSolution(const Solution &solution);

} // namespace windlass::search

#endif
