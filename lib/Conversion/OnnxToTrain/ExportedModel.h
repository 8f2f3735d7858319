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
  /// Whether the file has a graph signature; without one nothing below is known.
  bool hasSignature = false;
  /// How many parameters the module has.
  size_t parameters = 0;
  /// Parameters that are certainly not in the file as the module had them.
  std::vector<Alteration> alterations;
  /// Parameters that the file neither holds nor mentions, though something was folded: each may be part of a constant.
  std::vector<std::string> vanished;
  /// What unmarked initializers stand for: the target of a parameter or of a buffer.
  llvm::StringMap<std::string> parameterCopies, bufferCopies;
};

/// Compares the graph with its signature and traced calls.
ExportedModel readExportedModel(onnx::GraphOp graph);

/// Finds nodes that lack what their traced call says: label smoothing, dropout, the training mode of a batch norm. Each
/// line names the node, the fact, and how to export without it.
std::vector<std::string> findContradictions(onnx::GraphOp graph);

/// Finds what the traced calls say and ONNX cannot: a row of an embedding that does not train in the module. A line for
/// each embedding.
std::vector<std::string> findPaddingRows(onnx::GraphOp graph);

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_EXPORTEDMODEL_H
