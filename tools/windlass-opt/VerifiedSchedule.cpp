#include "VerifiedSchedule.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "windlass/InitAllDialects.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

VerifiedSchedule::VerifiedSchedule() : context(MLIRContext::Threading::DISABLED), handler(sources, &context) {
  DialectRegistry registry;
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
}

LogicalResult VerifiedSchedule::read(StringRef file, const sched::VerifyCommandsOptions &limits) {
  module = parseSourceFile<ModuleOp>(file, sources, &context);
  if (!module)
    return failure();
  llvm::raw_string_ostream(text) << *module << "\n";
  PassManager manager(&context);
  manager.addPass(sched::createVerifyCommands(limits));
  return manager.run(*module);
}
