// Helpers that several subcommands share: flags of the compilation, the context with its one-line diagnostics.
#ifndef WINDLASS_LIB_COMMANDS_COMMANDSUPPORT_H
#define WINDLASS_LIB_COMMANDS_COMMANDSUPPORT_H

#include "windlass/Commands/Commands.h"
#include "windlass/Pipeline/Compile.h"
#include "windlass/Programs/ProgramCache.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"

#include "mlir/IR/MLIRContext.h"

#include <functional>
#include <memory>

namespace windlass {

/// Makes a context with all dialects, whose diagnostics the console prints: errors always, warnings and remarks where
/// `verbose`.
std::unique_ptr<mlir::MLIRContext> makeContext(Console &console, bool verbose);

/// The amount of output about the model on standard error: nothing, warnings, or also the parameters that train and
/// each guess.
enum class Talk { none, warnings, all };

/// Returns events that print what a compilation reports. The console outlives the compilation.
CompilationEvents printEvents(Console &console, Talk talk = Talk::warnings);

/// The flags of every subcommand.
struct CommonFlags {
  bool help = false, json = false, verbose = false, quiet = false;
  void declare(Flags &flags);
};

/// Returns events that print what a build reports, and its progress unless that is not wanted.
BuildEvents printEvents(Console &console, const CommonFlags &common);

/// The flags that say what is compiled and by which plan.
struct CompileFlags {
  CompileSettings settings;
  PlanChoice choice;
  /// The values as the user wrote them; empty or 0 when not given.
  std::string cluster, planFile, costs, scheduleFile;
  int64_t ranks = 0;
  std::optional<int64_t> reserve;
  /// Looks at the module of L2 before anything is planned, where a subcommand sets it; returns an exit code.
  std::function<int(Compilation &)> checkBeforePlan;
  /// Declares the flags that the model file needs to be read.
  void declareModel(Flags &flags);
  void declareSettings(Flags &flags);
  void declareReserve(Flags &flags);
  /// Declares the flags that a plan is made by: devices, strategy, pins, memory and costs; and the settings.
  void declarePlan(Flags &flags);
};

/// Reads the words. Returns whether the subcommand should go on; else `code` is its exit code (help has been printed).
bool parseWords(Console &console, Flags &flags, CommonFlags &common, const std::vector<std::string> &words,
                std::vector<std::string> &positional, size_t least, size_t most, int &code);

/// Adds a flag for a number from 0 to `most`, without 0 unless `takesZero`.
void addNumber(Flags &flags, const std::string &name, const std::string &help, int64_t most,
               std::function<void(double)> set, bool takesZero = true);

/// Finds the cluster of --cluster, -n or their default of one rank; returns an exit code.
int resolveCluster(Console &console, CompileFlags &flags);

/// Reads the profile of --costs, where it is given, for the cluster that is known now; returns an exit code.
int resolveCosts(Console &console, CompileFlags &flags);

/// Reads a plan file; returns an exit code.
int readPlanWithClaims(Console &console, llvm::StringRef path, plan::PlanFile &plan);
/// Reads a plan file. Drops its claims, with a message, where the plan has been edited since; returns an exit code.
int readPlan(Console &console, llvm::StringRef path, plan::PlanFile &plan);

/// Takes a model file to L3, and to its schedule, by a plan that has been read; returns an exit code. The flags are
/// those of `planModel`.
int applyPlan(Console &console, Compilation &compilation, const plan::PlanFile &plan, CompileFlags &flags,
              const Flags &given, Purpose purpose);

/// Takes a model file to L3, and to its schedule, under the flags, by the plan file where one is given; returns an exit
/// code. A flag that contradicts the plan is bad input that names both.
int planModel(Console &console, Compilation &compilation, CompileFlags &flags, const Flags &given, Purpose purpose);

/// Runs `windlass plan MODEL --verify PLAN`; returns an exit code.
int verifyPlan(Console &console, const std::string &model, const std::string &planFile, CompileFlags &flags,
               const Flags &given, const CommonFlags &common);

} // namespace windlass

#endif
