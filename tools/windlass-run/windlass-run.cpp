// Executes a module of any level with the interpreter, or compares what two runs left.
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Interpreter/Interpreter.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"

using namespace windlass::interpreter;
namespace cl = llvm::cl;

namespace {

struct Flags {
  cl::OptionCategory category{"windlass-run"};
  cl::list<std::string> files{cl::Positional, cl::desc("FILE.mlir, or two dumps to compare"), cl::cat(category)};
  cl::opt<std::string> level{"level", cl::init("auto"), cl::desc("auto, or the level that FILE must be at: L1 to L5"),
                             cl::cat(category)};
  cl::opt<int64_t> ranks{"ranks", cl::init(0), cl::desc("the number of ranks that the mesh must have"),
                         cl::cat(category)};
  cl::opt<Precision> precision{"precision", cl::init(Precision::f64), cl::desc("in which floats are computed"),
                               cl::values(clEnumValN(Precision::f32, "f32", "as the program is typed"),
                                          clEnumValN(Precision::f64, "f64", "all floats as doubles (default)")),
                               cl::cat(category)};
  cl::opt<bool> rounds{"rounds", cl::desc("doubles are rounded where a program rounds (L5)"), cl::cat(category)};
  cl::opt<int64_t> steps{"steps", cl::init(2), cl::desc("steps to run"), cl::cat(category)};
  cl::opt<int64_t> microBatches{"micro-batches", cl::init(0), cl::desc("G of a module that does not say (L1)"),
                                cl::cat(category)};
  cl::opt<std::string> initial{"initial", cl::desc("safetensors: parameters by logical name (default: random)"),
                               cl::cat(category)};
  cl::opt<std::string> batches{"batches", cl::desc("safetensors: <input>.<k> (default: random)"), cl::cat(category)};
  cl::opt<std::string> trajectory{"trajectory", cl::desc("take the parameters of each step from this dump (L1)"),
                                  cl::cat(category)};
  cl::opt<bool> keepsTrajectory{"keep-trajectory", cl::desc("dump the parameters before each step too"),
                                cl::cat(category)};
  cl::opt<double> learningRate{"lr", cl::init(1e-3), cl::cat(category)};
  cl::list<double> betas{"betas", cl::CommaSeparated, cl::desc("two numbers (default 0.9,0.999)"), cl::cat(category)};
  cl::opt<double> epsilon{"eps", cl::init(1e-8), cl::cat(category)};
  cl::opt<double> weightDecay{"weight-decay", cl::init(0.01), cl::cat(category)};
  cl::opt<double> momentum{"momentum", cl::init(0.9), cl::cat(category)};
  cl::opt<double> clipNorm{"clip-norm", cl::init(1.0), cl::cat(category)};
  cl::opt<double> emaDecay{"ema-decay", cl::init(0.999), cl::cat(category)};
  cl::opt<double> lossScale{"loss-scale", cl::init(65536), cl::desc("at the start, of modules that scale their loss"),
                            cl::cat(category)};
  cl::opt<int64_t> lossScaleWindow{"loss-scale-window", cl::init(1000), cl::cat(category)};
  cl::opt<int64_t> lossScaleHysteresis{"loss-scale-hysteresis", cl::init(2), cl::cat(category)};
  cl::opt<double> lossScaleFloor{"loss-scale-floor", cl::init(1), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::init(0), cl::desc("of random parameters and micro-batches"), cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("print the result as JSON"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("write all tensors to this safetensors file"), cl::cat(category)};
  cl::opt<bool> compare{"compare", cl::desc("compare two dumps; exit 1 above the bound"), cl::cat(category)};
  cl::opt<double> bound{"bound", cl::init(1e-10), cl::desc("largest deviation that passes --compare"),
                        cl::cat(category)};
};

int fail(const llvm::Twine &text) {
  llvm::errs() << "windlass-run: " << text << "\n";
  return 1;
}

int compareFiles(const Flags &flags) {
  llvm::Expected<TensorMap> first = readTensorFile(flags.files[0]);
  if (!first)
    return fail(llvm::toString(first.takeError()));
  llvm::Expected<TensorMap> second = readTensorFile(flags.files[1]);
  if (!second)
    return fail(llvm::toString(second.takeError()));
  llvm::Expected<std::vector<Deviation>> deviations = compare(*first, *second);
  if (!deviations)
    return fail(llvm::toString(deviations.takeError()));
  if (deviations->empty())
    return fail("the two files have no kind of tensor in common");
  bool passes = true;
  for (const Deviation &deviation : *deviations)
    passes &= deviation.value <= flags.bound;
  if (flags.json) {
    llvm::json::OStream writer(llvm::outs());
    writer.object([&] {
      writer.attribute("bound", flags.bound.getValue());
      writer.attribute("passes", passes);
      writer.attributeObject("deviations", [&] {
        for (const Deviation &deviation : *deviations)
          writer.attribute(deviation.kind, deviation.value);
      });
    });
    llvm::outs() << "\n";
  } else {
    for (const Deviation &deviation : *deviations)
      llvm::outs() << llvm::format("%-10s %.3e", deviation.kind.c_str(), deviation.value) << " at " << deviation.worst
                   << ", of " << deviation.tensors << " tensors\n";
  }
  llvm::outs().flush();
  if (passes)
    return 0;
  llvm::errs() << "windlass-run: a deviation is above the bound " << llvm::format("%.1e", flags.bound.getValue())
               << "\n";
  return 1;
}

void printResult(const Flags &flags, const RunResult &result) {
  if (flags.json) {
    llvm::json::OStream writer(llvm::outs());
    writer.object([&] {
      writer.attribute("level", "L" + std::to_string(static_cast<int>(result.level)));
      writer.attribute("ranks", result.ranks);
      writer.attribute("precision", flags.precision == Precision::f64 ? "f64" : "f32");
      writer.attribute("losses", llvm::json::Array(result.losses));
      writer.attribute("grad_norms", llvm::json::Array(result.gradientNorms));
    });
    llvm::outs() << "\n";
    return;
  }
  for (size_t step = 0; step < result.losses.size(); ++step) {
    llvm::outs() << "step " << step << " loss " << llvm::format("%.9g", result.losses[step]);
    if (step < result.gradientNorms.size())
      llvm::outs() << " grad_norm " << llvm::format("%.9g", result.gradientNorms[step]);
    llvm::outs() << "\n";
  }
}

int runFile(const Flags &flags) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::func::FuncDialect, mlir::arith::ArithDialect, windlass::train::TrainDialect,
                  windlass::plan::PlanDialect, windlass::sched::SchedDialect>();
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(flags.files.front(), sources, &context);
  if (!module)
    return 1;

  std::optional<Level> level = levelOf(*module);
  if (flags.level != "auto" && (!level || flags.level != "L" + std::to_string(static_cast<int>(*level))))
    return fail(flags.files.front() + " is not at level " + flags.level);
  int64_t ranks = countRanks(*module);
  if (flags.ranks && flags.ranks != ranks)
    return fail("the mesh has " + std::to_string(ranks) + " ranks, not " + std::to_string(flags.ranks));

  RunOptions options;
  options.precision = flags.precision;
  options.rounds = flags.rounds;
  options.steps = flags.steps;
  options.microBatches = flags.microBatches;
  options.learningRate = flags.learningRate;
  if (!flags.betas.empty()) {
    if (flags.betas.size() != 2)
      return fail("--betas takes two numbers");
    options.beta1 = flags.betas[0];
    options.beta2 = flags.betas[1];
  }
  options.epsilon = flags.epsilon;
  options.weightDecay = flags.weightDecay;
  options.momentum = flags.momentum;
  options.clipNorm = flags.clipNorm;
  options.emaDecay = flags.emaDecay;
  options.lossScale = {flags.lossScale, flags.lossScaleWindow, flags.lossScaleHysteresis, flags.lossScaleFloor};
  if (!windlass::rt::is_loss_scale(flags.lossScale) || !windlass::rt::is_loss_scale(flags.lossScaleFloor))
    return fail("--loss-scale and --loss-scale-floor take powers of two");
  options.seed = flags.seed;
  options.keepsTrajectory = flags.keepsTrajectory;
  TensorMap initial, batches, trajectory;
  for (auto [path, map, target] :
       {std::tuple(&flags.initial, &initial, &options.initial), std::tuple(&flags.batches, &batches, &options.batches),
        std::tuple(&flags.trajectory, &trajectory, &options.trajectory)}) {
    if (path->empty())
      continue;
    llvm::Expected<TensorMap> tensors = readTensorFile(*path);
    if (!tensors)
      return fail(llvm::toString(tensors.takeError()));
    *map = std::move(*tensors);
    *target = map;
  }

  mlir::FailureOr<RunResult> result = run(*module, options);
  if (mlir::failed(result))
    return 1;
  printResult(flags, *result);
  if (!flags.output.empty())
    if (llvm::Error error = writeTensorFile(flags.output, result->tensors))
      return fail(llvm::toString(std::move(error)));
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::ParseCommandLineOptions(argc, argv, "executes a module of any level on simulated ranks, or compares two dumps\n");
  if (flags.files.size() != (flags.compare ? 2u : 1u)) {
    llvm::errs() << "windlass-run: needs " << (flags.compare ? "two dumps to compare" : "one file to run") << "\n";
    return 2;
  }
  return flags.compare ? compareFiles(flags) : runFile(flags);
}
