#include "LaunchKernels.h"

#include "Collectives.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Interpreter/Kernels.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::interpreter;

using Results = FailureOr<SmallVector<Tensor>>;
using sched::KernelKind;

void windlass::interpreter::roundAsStored(Type element, bool rounds, Tensor &value) {
  if (rounds)
    roundDoublesTo(element, value);
  else
    roundTo(element, value);
}

/// Returns the results of a `train` operator, or emits the diagnostic where it has none.
static Results apply(const LaunchCall &call, KernelKind operation, DictionaryAttr attributes, ArrayRef<Tensor> inputs,
                     ArrayRef<RankedTensorType> types) {
  llvm::Expected<SmallVector<Tensor>> computed =
      evaluate(("train." + sched::stringifyKernelKind(operation)).str(), attributes, inputs, types, call.precision);
  if (!computed)
    return call.op.emitError("cannot be executed: ") << llvm::toString(computed.takeError());
  return std::move(*computed);
}

//===----------------------------------------------------------------------===//
// Copies and numbers
//===----------------------------------------------------------------------===//

static Results copy(const LaunchCall &call) { return SmallVector<Tensor>{call.inputs[0].cast(call.kinds[0])}; }

/// Returns the rank's block of a tensor whose first dim counts blocks.
static Results takeOwnPart(const LaunchCall &call) {
  auto axes = call.op.getSettings().getAs<DenseI64ArrayAttr>("axes");
  const Tensor &blocks = call.inputs[0];
  SmallVector<int64_t> coordinates = call.mesh.coordinatesOf(call.rank);
  int64_t block = 0, count = 1;
  for (int64_t axis : axes ? axes.asArrayRef() : ArrayRef<int64_t>()) {
    if (axis < 0 || axis >= static_cast<int64_t>(coordinates.size()))
      return call.op.emitError("cannot be executed: the mesh has no axis ") << axis;
    block = block * call.mesh.getAxes()[axis].getSize() + coordinates[axis];
    count *= call.mesh.getAxes()[axis].getSize();
  }
  if (!axes || blocks.getRank() == 0 || blocks.getShape().front() != count ||
      blocks.getElements() != count * call.types[0].getNumElements())
    return call.op.emitError("cannot be executed: needs a block for each of ") << count << " members";
  return SmallVector<Tensor>{sliceAlong(blocks, 0, block, 1).reshaped(call.types[0].getShape())};
}

static Results fill(const LaunchCall &call) {
  auto value = call.op.getSettings().getAs<FloatAttr>("value");
  if (!value)
    return call.op.emitError("cannot be executed: needs the float setting 'value'");
  return SmallVector<Tensor>{Tensor::filled(call.kinds[0], call.types[0].getShape(), value.getValueAsDouble())};
}

/// Returns the number of labels that count, in the result's type.
static Results countLabels(const LaunchCall &call) {
  auto ignored = call.op.getSettings().getAs<IntegerAttr>("ignore_index");
  if (!ignored || isFloat(call.inputs[0].getKind()))
    return call.op.emitError("cannot be executed: needs integer labels and the setting 'ignore_index'");
  const Tensor wide = call.inputs[0].cast(ElementKind::i64);
  int64_t counted = llvm::count_if(wide.values<int64_t>(), [&](int64_t label) { return label != ignored.getInt(); });
  return SmallVector<Tensor>{Tensor::filled(call.kinds[0], call.types[0].getShape(), static_cast<double>(counted))};
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Adds up as functions of maps do: each sum is rounded, unless programs' roundings are asked for.
static FailureOr<Tensor> addUp(const LaunchCall &call, ArrayRef<Tensor> terms, RankedTensorType type) {
  Tensor sum = terms.front();
  for (const Tensor &term : terms.drop_front()) {
    if (term.getKind() != sum.getKind() || term.getShape() != sum.getShape())
      return call.op.emitError("cannot be executed: adds what differs in shape or type");
    sum = combineAll({sum, term}, train::ReductionKind::sum);
    if (!call.rounds)
      roundTo(type.getElementType(), sum);
  }
  return sum;
}

/// Returns a sum, and the norm of the sum as that is stored.
static Results normOfSum(const LaunchCall &call) {
  size_t terms = call.op.getArity().terms;
  FailureOr<Tensor> sum = addUp(call, call.inputs.take_front(terms), call.types[0]);
  if (failed(sum))
    return failure();
  call.round(call.types[0].getElementType(), *sum);
  SmallVector<Tensor> inputs = {*sum};
  llvm::append_range(inputs, call.inputs.drop_front(terms));
  Results results = apply(call, call.op.getRow().family, call.op.getSettings(), inputs, call.types.drop_front());
  if (succeeded(results))
    results->insert(results->begin(), std::move(*sum));
  return results;
}

/// Computes a norm's gradient; the operand behind the operator's own is added to the first result, as that result is
/// stored.
static Results normGrad(const LaunchCall &call) {
  size_t operands = call.op.getRow().operands.least;
  Results results =
      apply(call, call.op.getKernel(), call.op.getSettings(), call.inputs.take_front(operands), call.types);
  if (failed(results) || call.inputs.size() == operands)
    return results;
  call.round(call.types[0].getElementType(), results->front());
  FailureOr<Tensor> sum = addUp(call, {results->front(), call.inputs.back()}, call.types[0]);
  if (failed(sum))
    return failure();
  results->front() = std::move(*sum);
  return results;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static FailureOr<Tensor> multiply(const LaunchCall &call, RankedTensorType type) {
  SmallVector<Tensor> operands(call.inputs.take_front(2));
  for (auto [operand, buffer] : llvm::zip_first(operands, call.op.getIns()))
    if (call.roundsToTf32 && cast<MemRefType>(buffer.getType()).getElementType().isF32())
      roundDoublesToTf32(operand);
  Builder builder(call.op.getContext());
  auto setting = [&](StringRef name) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(call.op.getIntegerSetting(name)));
  };
  Results product = apply(call, KernelKind::matmul,
                          builder.getDictionaryAttr({setting("batch_rank"), setting("contract_rank")}), operands, type);
  return failed(product) ? FailureOr<Tensor>() : product->front();
}

static Results product(const LaunchCall &call) {
  FailureOr<Tensor> product = multiply(call, call.types[0]);
  return failed(product) ? Results() : SmallVector<Tensor>{*product};
}

/// Returns the product with all further operands added; a program rounds their sum, but not the product.
static FailureOr<Tensor> multiplyAndAdd(const LaunchCall &call) {
  FailureOr<Tensor> product = multiply(call, call.types[0]);
  if (failed(product))
    return failure();
  SmallVector<Tensor> terms = {*product};
  llvm::append_range(terms, call.inputs.drop_front(2));
  return addUp(call, terms, call.types[0]);
}

static Results productWithBias(const LaunchCall &call) {
  FailureOr<Tensor> sum = multiplyAndAdd(call);
  return failed(sum) ? Results() : SmallVector<Tensor>{*sum};
}

static Results productWithGelu(const LaunchCall &call) {
  FailureOr<Tensor> sum = multiplyAndAdd(call);
  if (failed(sum))
    return failure();
  llvm::Expected<SmallVector<Tensor>> activated =
      evaluate(train::GeluTanhOp::getOperationName(), {}, *sum, call.types[0], call.precision);
  if (!activated)
    return call.op.emitError("cannot be executed: ") << llvm::toString(activated.takeError());
  SmallVector<Tensor> results = {activated->front()};
  if (call.types.size() > 1)
    results.push_back(*sum);
  return results;
}

/// Returns the gradient of GELU's input, where the product is that of its result; a program does not round the product.
static Results productWithGeluGrad(const LaunchCall &call) {
  FailureOr<Tensor> product = multiply(call, call.types[0]);
  if (failed(product))
    return failure();
  llvm::Expected<SmallVector<Tensor>> gradient = evaluate(train::GeluTanhGradOp::getOperationName(), {},
                                                          {call.inputs[2], *product}, call.types[0], call.precision);
  if (!gradient)
    return call.op.emitError("cannot be executed: ") << llvm::toString(gradient.takeError());
  return std::move(*gradient);
}

/// Returns the product, and the sum of one of its operands over what it contracts.
static Results productWithSum(const LaunchCall &call) {
  FailureOr<Tensor> product = multiply(call, call.types[0]);
  if (failed(product))
    return failure();
  bool sumsB = call.op.getSettings().contains("sums_b");
  const Tensor &summed = call.inputs[sumsB ? 1 : 0];
  int64_t count = call.op.getIntegerSetting("contract_rank");
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < count; ++i)
    dims.push_back(sumsB ? i : summed.getRank() - count + i);
  Builder builder(call.op.getContext());
  auto kind = train::ReductionKindAttr::get(call.op.getContext(), train::ReductionKind::sum);
  Results sum = apply(call, KernelKind::reduce,
                      builder.getDictionaryAttr({builder.getNamedAttr("dims", builder.getDenseI64ArrayAttr(dims)),
                                                 builder.getNamedAttr("kind", kind)}),
                      summed, call.types[1]);
  return failed(sum) ? Results() : SmallVector<Tensor>{*product, sum->front()};
}

//===----------------------------------------------------------------------===//
// Losses and updates
//===----------------------------------------------------------------------===//

/// Computes the loss and its gradient as the two operators do, with the rows' logarithms as the first would have stored
/// them.
static Results lossWithGrad(const LaunchCall &call) {
  const Tensor &dsum = call.inputs[0], &logits = call.inputs[1], &labels = call.inputs[2];
  auto rows = RankedTensorType::get(labels.getShape(), call.types[0].getElementType());
  Results loss = apply(call, KernelKind::softmax_cross_entropy, call.op.getSettings(), {logits, labels},
                       {call.types[0], call.types[0], rows});
  if (failed(loss))
    return failure();
  Tensor &logSum = (*loss)[2];
  call.round(rows.getElementType(), logSum);
  Results gradient = apply(call, KernelKind::softmax_cross_entropy_grad, call.op.getSettings(),
                           {dsum, logits, labels, logSum}, call.types[1]);
  return failed(gradient) ? Results() : SmallVector<Tensor>{(*loss)[0], gradient->front()};
}

/// Adds the squares of one operand after another, each sum as it is stored.
static Results squareSums(const LaunchCall &call) {
  std::optional<Tensor> sum;
  for (const Tensor &input : call.inputs) {
    Results squares = apply(call, KernelKind::square_sum, call.op.getSettings(), input, call.types);
    if (failed(squares))
      return failure();
    sum = sum ? combineAll({*sum, squares->front()}, train::ReductionKind::sum) : squares->front();
    call.round(call.types[0].getElementType(), *sum);
  }
  return SmallVector<Tensor>{std::move(*sum)};
}

/// Updates one parameter after another; a rounded weight is the weight as it is stored.
static Results update(const LaunchCall &call) {
  sched::UpdateOperands its = *sched::getUpdateOperands(call.op);
  SmallVector<Tensor> results;
  for (size_t i = 0; i < its.parameters; ++i) {
    SmallVector<Tensor> inputs(call.inputs.slice(i * its.operands, its.operands));
    llvm::append_range(inputs, call.inputs.drop_front(its.parameters * its.operands));
    ArrayRef<RankedTensorType> types = call.types.slice(i * its.results, its.results);
    Results updated = apply(call, call.op.getKernel(), call.op.getSettings(), inputs, types.take_front(its.updated));
    if (failed(updated))
      return failure();
    llvm::append_range(results, *updated);
    if (its.isRounded()) {
      call.round(types.front().getElementType(), updated->front());
      results.push_back(updated->front().cast(call.kinds[results.size()]));
    }
  }
  return results;
}

//===----------------------------------------------------------------------===//
// By kernel
//===----------------------------------------------------------------------===//

using Rule = Results (*)(const LaunchCall &);

/// Returns the rule of a kernel that the interpreter does not run as an operator of its name.
static Rule getRule(KernelKind kind) {
  switch (kind) {
  case KernelKind::copy:
    return copy;
  case KernelKind::own_part:
    return takeOwnPart;
  case KernelKind::fill:
    return fill;
  case KernelKind::count_labels:
    return countLabels;
  case KernelKind::matmul:
    return product;
  case KernelKind::matmul_bias:
    return productWithBias;
  case KernelKind::matmul_bias_gelu:
    return productWithGelu;
  case KernelKind::matmul_gelu_grad:
    return productWithGeluGrad;
  case KernelKind::matmul_bias_grad:
    return productWithSum;
  case KernelKind::add_layer_norm:
  case KernelKind::add_rms_norm:
    return normOfSum;
  case KernelKind::layer_norm_grad:
  case KernelKind::rms_norm_grad:
    return normGrad;
  case KernelKind::softmax_cross_entropy_with_grad:
    return lossWithGrad;
  case KernelKind::square_sum:
    return squareSums;
  case KernelKind::adamw:
  case KernelKind::descend:
  case KernelKind::ema:
  case KernelKind::lamb:
  case KernelKind::lion:
  case KernelKind::momentum:
  case KernelKind::sgd:
    return update;
  default:
    return nullptr;
  }
}

bool windlass::interpreter::interpreterRuns(KernelKind kind) {
  const sched::KernelRow &row = sched::getRow(kind);
  return row.semantics == sched::KernelSemantics::own ? getRule(kind) != nullptr
                                                      : interpreterSupports(("train." + row.name).str());
}

Results windlass::interpreter::computeLaunch(const LaunchCall &call) {
  const sched::KernelRow &row = call.op.getRow();
  if (row.semantics == sched::KernelSemantics::op)
    return apply(call, row.kind, call.op.getSettings(), call.inputs, call.types);
  if (Rule rule = getRule(row.kind))
    return rule(call);
  return call.op.emitError("cannot be executed: kernel '") << row.name << "' has no rule of its own";
}
