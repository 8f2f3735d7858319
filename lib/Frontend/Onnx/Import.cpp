//===- Import.cpp - from an ONNX file to the onnx dialect -----------------===//

#include "windlass/Frontend/Onnx/Import.h"

#include "Importer.h"
#include "ParsedModel.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "llvm/Support/Path.h"

#include <google/protobuf/arena.h>

using namespace mlir;
using namespace windlass;

FailureOr<ImportedModel> windlass::importOnnx(llvm::StringRef path, MLIRContext &context,
                                              const ImportOptions &options) {
  context.loadDialect<onnx::OnnxDialect>();
  Location location = NameLoc::get(StringAttr::get(&context, path));
  CodeScope scope(&context, Code::model_malformed);
  auto fail = [&](llvm::Error error, Code code = Code::model_malformed) {
    emitError(location, code) << printable(path) << " " << llvm::toString(std::move(error));
    return failure();
  };
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> message = openModelFile(path, options.budgets);
  if (!message)
    return fail(message.takeError(), Code::model_unreadable);
  llvm::Expected<MessageSkeleton> skeleton = extractSkeleton((*message)->getBuffer(), options.budgets);
  if (!skeleton)
    return fail(skeleton.takeError());

  google::protobuf::Arena arena;
  bool isOverBudget = false;
  llvm::Expected<const ::onnx::ModelProto *> model = parseModel(skeleton->bytes, arena, options.budgets, isOverBudget);
  if (!model && isOverBudget)
    return fail(model.takeError(), Code::model_budget);
  if (!model)
    return fail(model.takeError());
  // The parsed message holds its own copy of everything that stayed.
  skeleton->bytes = std::string();

  ImportedModel result;
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  result.weights = std::make_shared<WeightStore>(std::move(*message), folder.empty() ? "." : folder.str());
  OpBuilder builder(&context);
  result.module = ModuleOp::create(builder, location);
  builder.setInsertionPointToEnd(result.module->getBody());
  if (failed(OnnxImporter(**model, *skeleton, *result.weights, options, location, builder).run()))
    return failure();
  return result;
}
