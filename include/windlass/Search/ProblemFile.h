// Stored problems: the format of the IOPDDL contest, and an extension of it. docs/solver.md describes both.
#ifndef WINDLASS_SEARCH_PROBLEMFILE_H
#define WINDLASS_SEARCH_PROBLEMFILE_H

#include "windlass/Search/Problem.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace windlass::search {

/// Parses a problem. The text is not trusted: all numbers are checked for their range, and the memory that they take is
/// a small multiple of the text's. The error continues a line that begins with the file's name.
llvm::Expected<Problem> parseProblem(llvm::StringRef text);

/// Reads and parses a file, compressed with gzip or not.
llvm::Expected<Problem> readProblem(llvm::StringRef path);

/// Prints, in the format that `parseProblem` reads, a problem whose rows of memory have one capacity and whose constant
/// is 0.
std::string printProblem(const Problem &problem);

/// Prints one label in each line.
std::string printSolution(const Solution &solution);

} // namespace windlass::search

#endif
