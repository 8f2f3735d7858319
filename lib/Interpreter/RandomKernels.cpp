// Dropout. The bits are those of the runtime, so that a mask is the same at every level and in the emitted program.
#include "KernelCall.h"

#include "windlass/rt/philox.h"

using namespace windlass;
using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;

static void dropout(KernelCall &call) {
  double ratio = call.number("ratio");
  if (call.isBad() || !call.requireCounts(2, 1))
    return;
  ElementKind kind = call.floats();
  const Tensor &input = call.inputs[0];
  if (!call.require(input.getRank() >= 1 && call.inputs[1].getKind() == ElementKind::i64,
                    "needs an i64 key per sample") ||
      !call.requireShape(call.inputs[1], input.getShape().take_front(), "keys") ||
      !call.requireShape(call.results[0], input.getShape(), "the result"))
    return;
  ArrayRef<int64_t> keys = call.inputs[1].values<int64_t>();
  int64_t size = elementsOf(input.getShape().drop_front());
  uint64_t threshold = rt::dropout_threshold(ratio);
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> in = input.values<T>();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    for (int64_t i = 0; i < int64_t(in.size()); ++i) {
      int64_t element = i % size;
      uint32_t word = rt::dropout_words(keys[i / size], element / 4)[element % 4];
      out[i] = word < threshold ? T(0) : static_cast<T>(in[i] / (1 - ratio));
    }
  });
}

void windlass::interpreter::addRandomKernels(KernelTable &table) { table["train.dropout"] = dropout; }
