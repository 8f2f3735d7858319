//===- ExportedModel.h - the module that was exported, and the file -*- C++ -*-===//
//
// An exporter that optimizes may merge parameters of equal value, fold them into constants, transpose them under
// another name or drop a training mode. The graph signature and the traced calls still say what the module had; here
// both are compared.
//
//===----------------------------------------------------------------------===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_EXPORTEDMODEL_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_EXPORTEDMODEL_H

#include "windlass/Conversion/OnnxToTrain/OnnxToTrain.h"
#include "windlass/Dialect/Onnx/IR/OnnxOps.h"

#include "llvm/ADT/StringMap.h"

namespace windlass {

struct ExportedModel {
  /// Whether the file has a graph signature; without one the fields below are not known.
  bool hasSignature = false;
  /// The number of parameters of the module.
  size_t parameters = 0;
  /// The parameters that are certainly not in the file as the module had them.
  std::vector<Alteration> alterations;
  /// The parameters that the file neither holds nor mentions, where it has folded constants: each may be part of a
  /// constant.
  std::vector<std::string> vanished;
  /// The targets of the parameters or buffers that unmarked initializers stand for.
  llvm::StringMap<std::string> parameterCopies, bufferCopies;
};

/// Compares the graph with its signature and traced calls.
ExportedModel readExportedModel(onnx::GraphOp graph);

/// Finds nodes that lack what their traced call says: label smoothing, dropout, the training mode of a batch norm. Each
/// line names the node, the fact, and how to export without it.
std::vector<std::string> findContradictions(onnx::GraphOp graph);

/// Finds facts of the traced calls that ONNX cannot express: rows of embeddings that do not train in the module.
/// Returns a line for each embedding.
std::vector<std::string> findPaddingRows(onnx::GraphOp graph);

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_EXPORTEDMODEL_H
