// Stored problems: the IOPDDL contest's format and ours, which adds to it. docs/solver.md describes both.
#ifndef WINDLASS_SEARCH_PROBLEMFILE_H
#define WINDLASS_SEARCH_PROBLEMFILE_H

#include "windlass/Search/Problem.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace windlass::search {

/// Parses a problem. The text is not trusted: all numbers are checked for their range, and the memory that they take is
/// a small multiple of the text's. The error continues a line that begins with the file's name.
llvm::Expected<Problem> parseProblem(llvm::StringRef text);

/// Reads and parses a file, packed with gzip or not.
llvm::Expected<Problem> readProblem(llvm::StringRef path);

/// Prints a problem whose rows of memory have one capacity and whose constant is 0, as `parseProblem` takes it.
std::string printProblem(const Problem &problem);

/// Prints one label in each line.
std::string printSolution(const Solution &solution);

} // namespace windlass::search

#endif
