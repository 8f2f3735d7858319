// What several verbs share: flags of the compilation, the context with its one-line diagnostics.
#ifndef WINDLASS_LIB_COMMANDS_COMMANDSUPPORT_H
#define WINDLASS_LIB_COMMANDS_COMMANDSUPPORT_H

#include "windlass/Commands/Commands.h"
#include "windlass/Pipeline/Compile.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"

#include "mlir/IR/MLIRContext.h"

#include <functional>
#include <memory>

namespace windlass {

/// A context with all dialects, whose diagnostics are printed as one line each: errors always, warnings and remarks
/// with -v.
std::unique_ptr<mlir::MLIRContext> makeContext(bool verbose);

/// Talk of every verb.
struct CommonFlags {
  bool help = false, json = false, verbose = false, quiet = false;
  void declare(Flags &flags);
};

/// Flags that say what is compiled and by which plan.
struct CompileFlags {
  CompileSettings settings;
  PlanChoice choice;
  /// As the user wrote them; empty or 0 when not given.
  std::string cluster, planFile, costs;
  int64_t ranks = 0;
  /// Looks at the module of L2 before anything is planned, where a verb sets it; returns an exit code.
  std::function<int(Compilation &)> checkBeforePlan;
  /// What the model file needs to be read.
  void declareModel(Flags &flags);
  void declareSettings(Flags &flags);
  void declarePlan(Flags &flags);
  void declareCosts(Flags &flags);
};

/// Reads the words; true when the verb should go on, else `code` is its exit code (help has been printed).
bool parseWords(Flags &flags, CommonFlags &common, const std::vector<std::string> &words,
                std::vector<std::string> &positional, size_t least, size_t most, int &code);

/// Finds the cluster of --cluster, -n or their default of one rank; an exit code.
int resolveCluster(CompileFlags &flags);

/// Reads the profile of --costs, where it is given, for the cluster that is known now; an exit code.
int resolveCosts(CompileFlags &flags);

/// "1.250 s", below a second "12.500 ms".
std::string secondsText(double seconds);
/// "time 120.000 ms per step, give or take 10.000 ms: 90 % of the costs measured, 10 % fitted", a line, and lines of
/// the step's windows. An error that nobody has measured is called "uncalibrated".
std::string timeText(const StepPrediction &prediction);
/// The same as attributes of an object.
void writePrediction(llvm::json::OStream &json, const StepPrediction &prediction);

/// Reads a plan file; an exit code.
int readPlanWithClaims(llvm::StringRef path, plan::PlanFile &plan);
/// The same. What it claims is dropped, and said to be, where the plan has been edited since.
int readPlan(llvm::StringRef path, plan::PlanFile &plan);

/// Model file to level L3b by a plan that has been read; an exit code. Flags as of `planModel`.
int applyPlan(Compilation &compilation, const plan::PlanFile &plan, CompileFlags &flags, const Flags &given);

/// Model file to level L3b under the flags, by the plan file where one is given; an exit code. A flag that contradicts
/// the plan is bad input that names both.
int planModel(Compilation &compilation, CompileFlags &flags, const Flags &given);

/// `windlass plan MODEL --verify PLAN`; an exit code.
int verifyPlan(const std::string &model, const std::string &planFile, CompileFlags &flags, const Flags &given,
               const CommonFlags &common);

/// The same on to level L5, which checks memory.
int compile(Compilation &compilation, CompileFlags &flags, const Flags &given);

} // namespace windlass

#endif
