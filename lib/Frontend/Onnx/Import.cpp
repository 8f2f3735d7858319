//===- Import.cpp - from an ONNX file to the onnx dialect -----------------===//

#include "windlass/Frontend/Onnx/Import.h"

#include "Importer.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "llvm/Support/Path.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

using namespace mlir;
using namespace windlass;

namespace {

/// Gives the parser a message in pieces, and no more once what it made of them takes too much memory.
class BoundedStream : public google::protobuf::io::ZeroCopyInputStream {
public:
  BoundedStream(llvm::StringRef bytes, const google::protobuf::Arena &arena, int64_t budget)
      : pieces(bytes.data(), static_cast<int>(bytes.size()), kPieceBytes), arena(arena), budget(budget) {}

  bool Next(const void **data, int *size) override {
    exceeded |= static_cast<int64_t>(arena.SpaceAllocated()) > budget;
    return !exceeded && pieces.Next(data, size);
  }
  void BackUp(int count) override { pieces.BackUp(count); }
  bool Skip(int count) override { return pieces.Skip(count); }
  int64_t ByteCount() const override { return pieces.ByteCount(); }
  bool isExceeded() const { return exceeded; }

private:
  static constexpr int kPieceBytes = 64 << 10;
  google::protobuf::io::ArrayInputStream pieces;
  const google::protobuf::Arena &arena;
  int64_t budget;
  bool exceeded = false;
};

} // namespace

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
  auto *model = google::protobuf::Arena::CreateMessage<::onnx::ModelProto>(&arena);
  BoundedStream stream(skeleton->bytes, arena, options.budgets.parsedBytes);
  bool isParsed = model->ParseFromZeroCopyStream(&stream);
  if (stream.isExceeded())
    return emitError(location, Code::model_budget)
           << "the model takes more than the budget of " << options.budgets.parsedBytes
           << " bytes of memory without the values of its weights";
  if (!isParsed) {
    emitError(location) << printable(path) << " is not a valid ONNX file: its message is damaged or nested too deeply";
    return failure();
  }
  // The parsed message holds its own copy of everything that stayed.
  skeleton->bytes = std::string();

  ImportedModel result;
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  result.weights = std::make_shared<WeightStore>(std::move(*message), folder.empty() ? "." : folder.str());
  OpBuilder builder(&context);
  result.module = ModuleOp::create(builder, location);
  builder.setInsertionPointToEnd(result.module->getBody());
  if (failed(OnnxImporter(*model, *skeleton, *result.weights, options, location, builder).run()))
    return failure();
  return result;
}

int windlass::printImportedOnnx(llvm::StringRef path, const std::vector<std::string> &words) {
  ImportOptions options;
  for (size_t i = 0; i < words.size(); i += 2) {
    auto [name, value] = (i + 1 < words.size() ? llvm::StringRef(words[i + 1]) : llvm::StringRef()).split('=');
    if (words[i] != "--dim" || value.getAsInteger(10, options.dims[name.str()])) {
      llvm::errs() << "expected --dim NAME=VALUE, got " << printable(words[i]) << "\n";
      return 2;
    }
  }
  MLIRContext context;
  FailureOr<ImportedModel> model = importOnnx(path, context, options);
  if (failed(model))
    return 1;
  model->module->print(llvm::outs());
  llvm::outs() << "\n";
  return 0;
}
