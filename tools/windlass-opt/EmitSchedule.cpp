#include "EmitSchedule.h"

#include "VerifiedSchedule.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Support/Printable.h"
#include "windlass/Target/Cpp/Project.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
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
  VerifiedSchedule schedule;
  if (failed(schedule.read(file, limits)))
    return 1;
  ModuleOp module = schedule.getModule();
  options.ranks = 0;
  for (sched::ProgramOp program : sched::getPrograms(module)) {
    options.ranks += program.getMesh().getRanks();
    options.scratchBytes = std::max(options.scratchBytes, sched::getScratchBytesPerThread(program));
  }
  options.planJson = "{}\n";
  options.planHash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(schedule.getText())), true);
  if (failed(convertSchedToEmitC(module)))
    return 1;
  FailureOr<cpp::ProjectFiles> files = cpp::makeProject(module, options);
  if (failed(files))
    return 1;
  (*files)["schedule.mlir"] = schedule.getText();
  if (std::string error = cpp::writeProject(*files, folder); !error.empty()) {
    llvm::errs() << error << "\n";
    return 1;
  }
  return 0;
}
