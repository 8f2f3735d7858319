#include "VerbSupport.h"

#include "windlass/Dialect/Onnx/IR/OnnxOps.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int windlass::fail(int code, const std::string &text) {
  llvm::errs() << "windlass: error: " << text << "\n";
  return code;
}

/// The name that a location carries, for people; empty when it has none.
static std::string nameOf(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty())
        return name;
  return "";
}

/// Text of files may hold anything: a line stays a line, and a terminal keeps its state.
static std::string oneLine(llvm::StringRef text) {
  std::string out;
  for (char c : text.take_front(4000))
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  return out;
}

std::unique_ptr<MLIRContext> windlass::makeContext(bool verbose) {
  DialectRegistry registry;
  registry.insert<func::FuncDialect, arith::ArithDialect, emitc::EmitCDialect, onnx::OnnxDialect, train::TrainDialect,
                  plan::PlanDialect, sched::SchedDialect>();
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  context->getDiagEngine().registerHandler([verbose](Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (!isError && !verbose)
      return success();
    std::string where = nameOf(diagnostic.getLocation());
    llvm::errs() << "windlass: " << (isError ? "error: " : "") << (where.empty() ? "" : "at '" + oneLine(where) + "': ")
                 << oneLine(diagnostic.str()) << "\n";
    return success();
  });
  return context;
}

void CommonFlags::declare(Flags &flags) {
  flags.addHeading("Output:");
  flags.addSwitch("json", "the result as JSON on standard output", json);
  flags.addSwitch("v", "say more on standard error", verbose);
  flags.addSwitch("q", "say only errors", quiet);
  flags.addSwitch("help", "this text", help);
}

bool windlass::parseWords(Flags &flags, CommonFlags &common, const std::vector<std::string> &words,
                          std::vector<std::string> &positional, size_t least, size_t most, int &code) {
  if (llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h")) {
    llvm::outs() << flags.getHelp();
    code = kDone;
    return false;
  }
  if (std::string error = flags.parse(words, positional, least, most); !error.empty()) {
    code = fail(kUsage, error);
    return false;
  }
  return true;
}

void CompileFlags::declareModel(Flags &flags) {
  flags.addHeading("Model:");
  flags.add("dim", "NAME=SIZE", "size of a symbolic dimension", [this](llvm::StringRef text) -> std::string {
    auto [name, value] = text.split('=');
    int64_t size;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return "--dim takes NAME=SIZE with a size of at least 1, not '" + text.str() + "'";
    settings.dims[name.str()] = size;
    return "";
  });
  flags.addText("loss", "NAME", "the output to train on (default: the scalar one)", settings.loss);
}

void CompileFlags::declareSettings(Flags &flags) {
  declareModel(flags);
  flags.addHeading("Compiled in:");
  flags.addChoice("optimizer", {"adamw", "sgd"}, "(default adamw)", settings.optimizer);
  flags.addChoice("precision", {"f32"}, "of values and arithmetic (default f32)", settings.precision);
  flags.addInteger("micro-batches", "per step, over all ranks: G (default 1)", settings.microBatches, 1, 1 << 20);
  flags.addSwitch("clip", "compile global-norm clipping in (--clip-norm of train implies it)", settings.clip);
  flags.addList("freeze", "GLOB", "parameters that do not train", settings.freeze);
  flags.addList("no-decay", "GLOB", "parameters without weight decay, besides those of rank 1 and 0", settings.noDecay);
}

void CompileFlags::declarePlan(Flags &flags) {
  flags.addHeading("Plan:");
  flags.addText("cluster", "C", "the devices; preset cpu:N for N ranks on this host", cluster);
  flags.addChoice("strategy", {"auto", "ddp"}, "auto is ddp until the search exists (default auto)", plan.strategy);
  flags.add("memory-limit", "SIZE", "per device: bytes, KiB, MiB or GiB (default: host memory / ranks)",
            [this](llvm::StringRef text) -> std::string {
              return parseBytes(text, plan.memoryLimit) ? ""
                                                        : "--memory-limit takes a size such as 512MiB, not '" + text.str() + "'";
            });
}

int CompileFlags::resolveCluster() {
  if (cluster.empty())
    return kDone;
  llvm::StringRef text = cluster;
  int64_t ranks;
  if (!text.consume_front("cpu:") || text.getAsInteger(10, ranks) || ranks < 1 || ranks > 1024)
    return fail(kBadInput, "unknown cluster '" + oneLine(cluster) + "'; give cpu:N with N from 1 to 1024");
  plan.ranks = ranks;
  return kDone;
}

int windlass::compile(Compilation &compilation, const CompileFlags &flags, const Flags &given) {
  if (int code = compilation.import(flags.settings))
    return code;
  if (int code = compilation.buildFunctions(flags.settings))
    return code;
  if (int code = compilation.applyStrategy(flags.plan))
    return code;
  return compilation.schedule(flags.plan);
}
