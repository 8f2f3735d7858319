// The output of subcommands: results go to standard output; errors, warnings and progress to standard error, a line
// each.
#ifndef WINDLASS_COMMANDS_CONSOLE_H
#define WINDLASS_COMMANDS_CONSOLE_H

#include "windlass/Support/Diagnostics.h"

#include "mlir/IR/MLIRContext.h"

#include <optional>
#include <string>

namespace windlass {

/// The exit codes of the command line; those of errors are in the table of diagnostics. `kDifferent` is the code of
/// `windlass diff` for plans that differ.
enum ExitCode { kDone = 0, kDifferent = 1, kInternal = 70 };

/// Prints the output of one run of the command line besides its result, and remembers its first error.
class Console {
public:
  /// Prints `windlass: error: <text> [<code>]` on one line and returns the code's exit code.
  int fail(Code code, llvm::StringRef text);
  int fail(const rt::status &status);

  /// Prints `windlass: <line>`.
  void say(const llvm::Twine &line);

  /// Prints the diagnostics of `context` from now on, a line each: errors always, warnings and remarks where `showsAll`
  /// holds. The console outlives the use of the context.
  void listenTo(mlir::MLIRContext &context, bool showsAll);

  /// Returns the exit code of a call whose errors went to a context that this console listens to: that of the first
  /// error.
  int codeOf(mlir::LogicalResult result) const;

  /// Prints `{"error": {"code", "message", "at"}, "exit": N}` of the first error on standard output, for a subcommand
  /// under --json that fails without a result of its own. Prints nothing where no error was reported here: a training
  /// program that failed has printed its own.
  void printErrorAsJson(int exitCode) const;

private:
  /// Prints an error and remembers the first; all errors pass here. `where` may be empty.
  void report(Code code, llvm::StringRef where, llvm::StringRef text);

  struct ReportedError {
    Code code;
    std::string where, text;
  };
  std::optional<ReportedError> firstError;
};

} // namespace windlass

#endif
