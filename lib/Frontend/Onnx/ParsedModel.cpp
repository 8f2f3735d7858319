#include "ParsedModel.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

using namespace windlass;

namespace {

/// Feeds a message to the parser in pieces, and stops once what the parser made of them takes too much memory.
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

llvm::Expected<const ::onnx::ModelProto *> windlass::parseModel(llvm::StringRef bytes, google::protobuf::Arena &arena,
                                                                const ImportBudgets &budgets, bool &isOverBudget) {
  auto *model = google::protobuf::Arena::CreateMessage<::onnx::ModelProto>(&arena);
  BoundedStream stream(bytes, arena, budgets.parsedBytes);
  bool isParsed = model->ParseFromZeroCopyStream(&stream);
  isOverBudget = stream.isExceeded();
  if (isOverBudget)
    return llvm::createStringError("takes more than the budget of " + llvm::Twine(budgets.parsedBytes) +
                                   " bytes of memory without the values of its weights");
  if (!isParsed)
    return llvm::createStringError("is not a valid ONNX file: its message is damaged or nested too deeply");
  return model;
}
