// Names of functions and attributes by which the levels find each other's things.
#ifndef WINDLASS_DIALECT_TRAIN_IR_TRAINCONVENTIONS_H
#define WINDLASS_DIALECT_TRAIN_IR_TRAINCONVENTIONS_H

namespace windlass::train {

// Functions.
//
// L1: @loss(inputs...) -> tensor<f32>.
// L2: @init() -> values that depend on no input nor weight.
//     @microbatch(inputs..., init values...) -> (loss share, gradients...). The loss share is loss_k / G, or with
//       kCountedLabelsAttr the sum over the labels of micro-batch k over the number of those of the step, so that the
//       sum over micro-batches and replicas is the step's loss; gradients are those of the loss share. Forward ops,
//       then train.stash ops, then backward ops.
//     @update(gradients...) -> grad_norm. Reads and writes weights and state.
//     @evaluate(inputs..., init values...) -> loss_k; with kMergeSetting a tensor of K losses.
constexpr char kLossFunction[] = "loss";
constexpr char kInitFunction[] = "init";
constexpr char kMicrobatchFunction[] = "microbatch";
constexpr char kUpdateFunction[] = "update";
constexpr char kEvaluateFunction[] = "evaluate";

// Argument attributes.
/// StringAttr: the ONNX input that the argument is. Dim 0 of every input is the graph's batch.
constexpr char kInputAttr[] = "train.input";
/// StringAttr "tokens", "next" or "none": how a token file feeds the input when the user does not say. "random": the
/// input is none of the model's, but the keys of its dropouts, i64 [batch, dropouts], which the program makes itself;
/// it comes last.
constexpr char kFeedAttr[] = "train.feed";
constexpr char kRandomFeed[] = "random";
/// IntegerAttr (i64): ids of the input must be below it; absent where unknown.
constexpr char kVocabularyAttr[] = "train.vocabulary";
/// IntegerAttr (i64): index of the result of @init that the argument receives.
constexpr char kInitValueAttr[] = "train.init_value";

// Argument attribute of @update and result attribute of @microbatch.
/// FlatSymbolRefAttr: the weight whose gradient this is. For a running statistic it is (its value - the micro-batch's
/// statistic) / G.
constexpr char kGradientAttr[] = "train.gradient";

// Operation attributes.
/// StringAttr: the operator's id, unique in its function: scope path, kind, ordinal; adjoints `<id>.grad.<operand>`.
constexpr char kIdAttr[] = "train.id";
/// StringAttr on an adjoint op and on a copy in the backward pass: the id of its forward op.
constexpr char kForwardAttr[] = "train.forward";

// Attribute of a parameter.
/// UnitAttr, complete from L3b on: it scales normalised values or is their running variance, so that `--init random`
/// makes it 1.
constexpr char kNormScaleAttr[] = "train.norm_scale";
/// F64Attr: what the parameter's learning rate, or its weight decay, is times the run's; absent: 1.
constexpr char kRateScaleAttr[] = "train.rate_scale";
constexpr char kDecayScaleAttr[] = "train.decay_scale";

/// The last part of the logical name of a state that is the moving average of its weight.
constexpr char kEmaState[] = "ema";

// Module attributes.
/// StringAttr: the model's name, for people.
constexpr char kModelAttr[] = "train.model";
/// DictionaryAttr of compiled-in settings: "optimizer" (StringAttr, a name of Optimizers.h), "micro_batches" (i64, G),
/// "clip" (BoolAttr), "ema" (BoolAttr, absent: false), "precision" (StringAttr f32|tf32|bf16|f16), kMergeSetting,
/// kScalesLossSetting and kBf16GradientsSetting.
constexpr char kSettingsAttr[] = "train.settings";
/// CountedLabelsAttr: a step's loss is the mean over these labels of all its micro-batches. Without it, the loss is the
/// mean of the micro-batches' losses.
constexpr char kCountedLabelsAttr[] = "train.counted_labels";
/// IntegerAttr (i64): K, the number of micro-batches that are merged, which is to say that `@microbatch` and
/// `@evaluate` compute K of them at once. The inputs have their samples one micro-batch after another, and `@evaluate`
/// returns their K losses. Absent: 1.
constexpr char kMergeSetting[] = "merge";
/// UnitAttr: gradients are of the loss times the hyperparameter `loss_scale`, which `@update` takes out.
constexpr char kScalesLossSetting[] = "scales_loss";
/// UnitAttr: gradients are rounded to bf16 before ranks sum them up and before they are copied to the host. They are
/// made, and added up over micro-batches, in the type of their weight.
constexpr char kBf16GradientsSetting[] = "bf16_gradients";

} // namespace windlass::train

#endif
