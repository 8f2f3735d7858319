#include "OperandNames.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;

namespace windlass::train {

std::string getOperandName(Operation *op, unsigned index) {
  auto pick = [&](std::initializer_list<StringRef> names) {
    return index < names.size() ? names.begin()[index].str() : "operand" + std::to_string(index);
  };
  return TypeSwitch<Operation *, std::string>(op)
      .Case<AddOp, SubOp, MulOp, DivOp, PowOp, MaxOp, MinOp, MatmulOp>([&](auto) { return pick({"lhs", "rhs"}); })
      .Case<SelectOp>([&](auto) { return pick({"condition", "lhs", "rhs"}); })
      .Case<LayerNormOp>([&](auto) { return pick({"input", "scale", "bias"}); })
      .Case<ConvolutionOp>([&](auto) { return pick({"input", "weight"}); })
      .Case<ConvolutionDataGradOp>([&](auto) { return pick({"gradient", "weight"}); })
      .Case<RmsNormOp>([&](auto) { return pick({"input", "scale"}); })
      .Case<EmbeddingOp>([&](auto) { return pick({"table", "ids"}); })
      .Case<GatherOp, GatherElementsOp>([&](auto) { return pick({"input", "indices"}); })
      .Case<ScatterAddOp, ScatterElementsAddOp>([&](auto) { return pick({"indices", "input"}); })
      .Case<AttentionOp>([&](auto) { return pick({"query", "key", "value", "mask"}); })
      .Case<ExpertsOp>([&](auto) { return pick({"input", "choices", "weights", "up", "down", "gate"}); })
      .Case<SoftmaxCrossEntropyOp>([&](auto) { return pick({"logits", "labels"}); })
      .Case<LossOp>([&](auto) { return pick({"sum", "count"}); })
      .Case<ConcatOp, AccumulateOp>([&](auto) { return "input" + std::to_string(index); })
      .Default([&](Operation *) { return pick({"input"}); });
}

} // namespace windlass::train
