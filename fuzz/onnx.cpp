// The ONNX reader: from a file to the onnx dialect, and its sharding annotations.
#include "memory_file.h"

#include "windlass/Frontend/Onnx/Annotations.h"

#include "mlir/IR/MLIRContext.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  windlass::fuzz::memory_file file(data, size);
  (void)windlass::importOnnx(file.path(), context);
  auto annotations = windlass::readAnnotations(file.path(), "c");
  if (!annotations) {
    llvm::consumeError(annotations.takeError());
    return 0;
  }
  annotations->configuration = "again";
  auto copy = windlass::addAnnotations(file.path(), *annotations);
  if (!copy)
    llvm::consumeError(copy.takeError());
  return 0;
}
