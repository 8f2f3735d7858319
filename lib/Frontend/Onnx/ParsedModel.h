// A model's message, parsed within its budgets.
#ifndef WINDLASS_LIB_FRONTEND_ONNX_PARSEDMODEL_H
#define WINDLASS_LIB_FRONTEND_ONNX_PARSEDMODEL_H

#include "ModelFile.h"
#include "onnx-ml.pb.h"

namespace windlass {

/// Parses the message of a skeleton into the arena. Fails where it is damaged, or takes more memory than it may: then
/// `isOverBudget` is set.
llvm::Expected<const ::onnx::ModelProto *> parseModel(llvm::StringRef bytes, google::protobuf::Arena &arena,
                                                      const ImportBudgets &budgets, bool &isOverBudget);

} // namespace windlass

#endif
