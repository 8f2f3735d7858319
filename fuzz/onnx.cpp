// The ONNX reader: from a file to the onnx dialect.
#include "memory_file.h"

#include "windlass/Frontend/Onnx/Import.h"

#include "mlir/IR/MLIRContext.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  windlass::fuzz::memory_file file(data, size);
  (void)windlass::importOnnx(file.path(), context);
  return 0;
}
