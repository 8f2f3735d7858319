#include "EmitSchedule.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/InitAllDialects.h"
#include "windlass/Support/Printable.h"
#include "windlass/Target/Cpp/Project.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

static bool parseOptions(const std::vector<std::string> &words, sched::VerifyCommandsOptions &limits,
                         cpp::ProjectOptions &options) {
  for (size_t i = 0; i < words.size(); i += 2) {
    llvm::StringRef name = words[i], value = i + 1 < words.size() ? llvm::StringRef(words[i + 1]) : "";
    bool isKnown = false;
    if (name == "--backend" && (value == "cpu" || value == "cuda")) {
      options.backend = value.str();
      isKnown = true;
    } else if (name == "--memory-limit") {
      isKnown = !value.getAsInteger(10, limits.memoryLimit);
    } else if (name == "--host-memory-limit") {
      isKnown = !value.getAsInteger(10, limits.hostMemoryLimit);
    }
    if (!isKnown) {
      llvm::errs() << "expected --backend cpu or cuda, --memory-limit BYTES or --host-memory-limit BYTES, got "
                   << printable(words[i] + " " + value.str()) << "\n";
      return false;
    }
  }
  return true;
}

int windlass::emitSchedule(llvm::StringRef file, llvm::StringRef folder, const std::vector<std::string> &words) {
  sched::VerifyCommandsOptions limits;
  cpp::ProjectOptions options;
  if (!parseOptions(words, limits, options))
    return 2;
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = parseSourceFile<ModuleOp>(file, sources, &context);
  if (!module)
    return 1;
  std::string text;
  llvm::raw_string_ostream(text) << *module << "\n";
  PassManager manager(&context);
  manager.addPass(sched::createVerifyCommands(limits));
  if (failed(manager.run(*module)))
    return 1;
  options.ranks = 0;
  for (sched::ProgramOp program : sched::getPrograms(*module)) {
    options.ranks += program.getMesh().getRanks();
    options.scratchBytes = std::max(options.scratchBytes, sched::getScratchBytesPerThread(program));
  }
  options.planJson = "{}\n";
  options.planHash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), true);
  if (failed(convertSchedToEmitC(*module)))
    return 1;
  FailureOr<cpp::ProjectFiles> files = cpp::makeProject(*module, options);
  if (failed(files))
    return 1;
  (*files)["schedule.mlir"] = text;
  if (std::string error = cpp::writeProject(*files, folder); !error.empty()) {
    llvm::errs() << error << "\n";
    return 1;
  }
  return 0;
}
