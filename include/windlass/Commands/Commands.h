// The verbs of the command line. Each takes the words after its name and returns an exit code (design: exit codes).
#ifndef WINDLASS_COMMANDS_COMMANDS_H
#define WINDLASS_COMMANDS_COMMANDS_H

#include "windlass/Support/Diagnostics.h"

#include <string>
#include <vector>

namespace windlass {

/// Prints `windlass: error: <text> [<code>]` on standard error, on one line, and returns the code's exit code.
int fail(Code code, llvm::StringRef text);
int fail(const rt::status &status);

/// Prints `{"error": {"code", "message", "at"}, "exit": N}` of the first error on standard output: what a verb under
/// --json gives that fails without a result of its own. Nothing where no error was met here: a training program that
/// failed has printed its own.
void printErrorAsJson(int exitCode);

int runCheck(const std::vector<std::string> &words);
int runPlan(const std::vector<std::string> &words);
int runEmit(const std::vector<std::string> &words);
int runTrain(const std::vector<std::string> &words);
int runProfile(const std::vector<std::string> &words);
int runSimulate(const std::vector<std::string> &words);
int runDoctor(const std::vector<std::string> &words);
int runExplain(const std::vector<std::string> &words);
int runDiff(const std::vector<std::string> &words);
int runReport(const std::vector<std::string> &words);
int runCheckpoint(const std::vector<std::string> &words);
int runCache(const std::vector<std::string> &words);
/// No verb of `windlass`, but of `windlass-opt`.
int runRandomPlan(const std::vector<std::string> &words);

} // namespace windlass

#endif
