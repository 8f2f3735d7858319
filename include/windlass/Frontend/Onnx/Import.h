//===- Import.h - from an ONNX file to the onnx dialect ---------*- C++ -*-===//

#ifndef WINDLASS_FRONTEND_ONNX_IMPORT_H
#define WINDLASS_FRONTEND_ONNX_IMPORT_H

#include "windlass/Frontend/Onnx/WeightStore.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace windlass {

/// The limits of what a model file may cost before it is refused. Every limit names itself in its diagnostic.
struct ImportBudgets {
  /// The bytes of the unpacked message when the file is gzipped (a plain file is mapped, not copied).
  int64_t unpackedBytes = int64_t(1) << 30;
  /// The bytes of the message without the values of large tensors.
  int64_t structureBytes = int64_t(256) << 20;
  /// The bytes that the parsed message takes in memory: two bytes of a file may become hundreds.
  int64_t parsedBytes = int64_t(768) << 20;
  /// The steps of reading: a field of the message, an operand, result, attribute or 32 bytes of a node, those of
  /// functions as often as they are inlined.
  int64_t steps = 16'000'000;
  /// The nodes, counted after functions are inlined; a call counts what it declares, too.
  int64_t nodes = 400'000;
  /// The functions that the model defines.
  int64_t functions = 10'000;
  /// The depth of nested function calls.
  int64_t depth = 64;
  /// The bytes of one name.
  int64_t nameBytes = 4096;
  /// The bytes of the names of all nodes, those of inlined functions with the names of their calls.
  int64_t inlinedNameBytes = int64_t(256) << 20;
  /// The elements of an integer or boolean tensor that is kept as a value instead of a reference.
  int64_t inlineElements = 4096;
};

struct ImportOptions {
  /// The values of symbolic dimensions (`--dim batch=8`).
  std::map<std::string, int64_t> dims;
  /// The globs over the names of initializers of floats that are parameters, whatever the file says (`--train`).
  std::vector<std::string> train;
  /// The names of further such initializers; a name that the file lacks is ignored.
  std::set<std::string> parameters;
  ImportBudgets budgets;
};

struct ImportedModel {
  /// Holds one `onnx.graph`.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::shared_ptr<WeightStore> weights;
};

/// Reads an ONNX file, gzipped or not. On failure one error has been emitted to the context's diagnostic engine.
/// External data need not exist.
mlir::FailureOr<ImportedModel> importOnnx(llvm::StringRef path, mlir::MLIRContext &context,
                                          const ImportOptions &options = {});

} // namespace windlass

#endif // WINDLASS_FRONTEND_ONNX_IMPORT_H
