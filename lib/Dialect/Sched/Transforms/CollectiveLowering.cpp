// Collectives of L4 as commands on the stream of their communicator.
#include "FunctionLowering.h"

#include "windlass/Support/TensorBytes.h"
#include "windlass/rt/detail/row_routes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

void FunctionLowering::pushCollective(Operation *op, CollectiveKind kind, train::ReductionKind reduction,
                                      ArrayAttr axes, ArrayRef<View> outs, ArrayRef<View> ins) {
  auto allReduce = dyn_cast<AllReduceOp>(op);
  unsigned communicator = program.getCommunicator(axes, allReduce ? allReduce.getPositionsAttr() : DenseI64ArrayAttr());
  unsigned stream = program.communicators[communicator].stream;
  int64_t ready = program.events++, done = program.events++;
  // Collectives that still work on these buffers must be waited for before this one may start.
  Command command(Command::Kind::Collective, op->getLoc());
  command.stream = stream;
  command.collective = kind;
  command.reduction = reduction;
  command.communicator = communicator;
  if (auto permute = dyn_cast<PermuteOp>(op))
    command.destinations = permute.getDestinationsAttr();
  if (isa<GatherRowsOp, ScatterRowsOp>(op))
    command.experts = op->getAttrOfType<IntegerAttr>("experts");
  command.ins.append(ins.begin(), ins.end());
  command.outs.append(outs.begin(), outs.end());
  // What comes from the host holds up the communicator only, not the device.
  for (const View &view : ins)
    if (auto it = pending.find(view.storage);
        it != pending.end() && program.streams[it->second.stream].kind == StreamKind::h2d) {
      pushEvent(Command::Kind::Wait, stream, it->second.event, op);
      pending.erase(view.storage);
    }
  waitFor(command);
  pushEvent(Command::Kind::Record, kComputeStream, ready, op);
  pushEvent(Command::Kind::Wait, stream, ready, op);
  push(std::move(command), op);
  pushEvent(Command::Kind::Record, stream, done, op);
  for (const View &view : llvm::concat<const View>(ins, outs))
    pending[view.storage] = {done, stream};
}

void FunctionLowering::waitForDelivery(AddToOp op, unsigned storage) {
  auto it = pending.find(storage);
  if (it != pending.end() && program.streams[it->second.stream].kind == StreamKind::communicator)
    pushWait(it->second.event, op.getLoc(), op->getAttr(plan::kRepeatAttr));
}

LogicalResult FunctionLowering::lowerAllReduce(AllReduceOp op) {
  if (op.getInputs().empty())
    return success();
  Type element = getElementTypeOrSelf(op.getInputs().front());
  for (Value input : op.getInputs())
    if (getElementTypeOrSelf(input) != element)
      return op.emitOpError("has operands of ")
             << element << " and " << getElementTypeOrSelf(input) << ": one bucket has one element type";
  for (auto [i, input, result] : llvm::enumerate(op.getInputs(), op.getResults())) {
    View part = getPart(op, i, op);
    View value = views.lookup(input);
    if (!(value == part))
      pushCopy(op, part, value);
    views[result] = part;
  }
  View whole = getAssembled(op, op).view;
  pushCollective(op, CollectiveKind::all_reduce, op.getKind(), op.getAxes(), whole, whole);
  return success();
}

void FunctionLowering::receive(Operation *op, CollectiveKind kind, ArrayAttr axes, ArrayRef<View> ins,
                               llvm::function_ref<View(const View &)> getBlocks) {
  Command target(Command::Kind::Collective, op->getLoc());
  makeOutputs(op, /*canAccumulate=*/false, target);
  SmallVector<View> blocks = llvm::map_to_vector(target.outs, getBlocks), received;
  // A collective writes one dense block per member. Where the result is to stand like that, it is received there.
  for (const View &its : blocks)
    received.push_back(its.isDense() ? its : allocate(RankedTensorType::get(its.sizes, its.element)));
  pushCollective(op, kind, train::ReductionKind::sum, axes, received, ins);
  for (auto [whole, parts] : llvm::zip_equal(blocks, received))
    if (!(parts == whole))
      pushCopy(op, whole, parts);
  finish(op);
}

LogicalResult FunctionLowering::lowerPermute(PermuteOp op) {
  receive(op, CollectiveKind::permute, op.getAxes(), makeDense(op, views.lookup(op.getInput())),
          [](const View &out) { return out; });
  return success();
}

LogicalResult FunctionLowering::lowerRows(Operation *op) {
  bool gathers = isa<GatherRowsOp>(op);
  Value input = op->getOperand(0), choices = op->getOperand(1);
  Command target(Command::Kind::Collective, op->getLoc());
  makeOutputs(op, /*canAccumulate=*/false, target);
  const View result = target.outs.front();
  View received = result.isDense() ? result : allocate(RankedTensorType::get(result.sizes, result.element));
  RankedTensorType whole = tensorType(gathers ? op->getResult(0) : input),
                   part = tensorType(gathers ? input : op->getResult(0));
  int64_t tokens = part.getDimSize(0), members = whole.getDimSize(0) / tokens;
  int64_t elements = rt::detail::row_scratch_elements(members, tokens, tensorType(choices).getDimSize(1),
                                                      part.getDimSize(1), getElementBytes(part.getElementType()));
  View rows = makeDense(op, views.lookup(input));
  SmallVector<View> outs = {received, allocate(RankedTensorType::get({elements}, part.getElementType()))};
  if (!gathers)
    outs.push_back(rows);
  pushCollective(op, gathers ? CollectiveKind::gather_rows : CollectiveKind::scatter_rows, train::ReductionKind::sum,
                 op->getAttrOfType<ArrayAttr>("axes"), outs, {rows, makeDense(op, views.lookup(choices))});
  if (!(received == result))
    pushCopy(op, result, received);
  finish(op);
  return success();
}

/// Returns the view with dim `dim` split into [members, rest] and the members in front of all other dims.
static View membersFirst(const View &view, int64_t dim, int64_t members) {
  View result = view;
  result.sizes[dim] /= members;
  int64_t stride = view.strides[dim] * result.sizes[dim];
  result.sizes.insert(result.sizes.begin(), members);
  result.strides.insert(result.strides.begin(), stride);
  return result;
}

/// Returns the number of members among which a collective exchanges parts of `inputType` for `resultType`, which is cut
/// into a block per member along dim `cut` and made of blocks along `join`; -1: along none.
static FailureOr<int64_t> countMembers(Operation *op, RankedTensorType inputType, RankedTensorType resultType,
                                       int64_t cut, int64_t join) {
  int64_t rank = inputType.getRank();
  if (cut >= rank || join >= rank || resultType.getRank() != rank || rank == kMaxViewRank)
    return op->emitOpError("has no dim ") << std::max(cut, join) << " in " << inputType << " and " << resultType;
  int64_t members = 1;
  if (cut >= 0 && resultType.getDimSize(cut) > 0)
    members = inputType.getDimSize(cut) / resultType.getDimSize(cut);
  else if (join >= 0 && inputType.getDimSize(join) > 0)
    members = resultType.getDimSize(join) / inputType.getDimSize(join);
  SmallVector<int64_t> part(inputType.getShape());
  if (cut >= 0)
    part[cut] /= members;
  SmallVector<int64_t> expected = part;
  if (join >= 0)
    expected[join] *= members;
  if (members < 1 || resultType.getShape() != ArrayRef<int64_t>(expected) ||
      (cut >= 0 && inputType.getDimSize(cut) % members))
    return op->emitOpError("makes ") << resultType << " of " << inputType << ": the parts do not fit";
  return members;
}

LogicalResult FunctionLowering::lowerExchange(Operation *op) {
  if (auto permute = dyn_cast<PermuteOp>(op))
    return lowerPermute(permute);
  ArrayAttr axes = op->getAttrOfType<ArrayAttr>("axes");
  // Which dim is cut into a block per member, and which is made of blocks; -1: none.
  int64_t cut = -1, join = -1;
  CollectiveKind kind = CollectiveKind::all_to_all;
  if (auto gather = dyn_cast<AllGatherOp>(op)) {
    kind = CollectiveKind::all_gather;
    join = gather.getDim();
  } else if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    kind = CollectiveKind::reduce_scatter;
    cut = scatter.getDim();
  } else if (auto exchange = dyn_cast<AllToAllOp>(op)) {
    cut = exchange.getSplitDim();
    join = exchange.getConcatDim();
  } else {
    cut = cast<OwnPartOp>(op).getDim();
  }
  int64_t members = 1;
  SmallVector<View> ins;
  for (auto [input, result] : llvm::zip_equal(op->getOperands(), op->getResults())) {
    FailureOr<int64_t> found = countMembers(op, tensorType(input), tensorType(result), cut, join);
    if (failed(found))
      return failure();
    if (!ins.empty() && *found != members)
      return op->emitOpError("moves values among ") << members << " members and among " << *found;
    members = *found;
    View in = views.lookup(input);
    ins.push_back(cut >= 0 ? membersFirst(in, cut, members) : in);
  }
  if (isa<OwnPartOp>(op)) {
    Builder builder(op->getContext());
    SmallVector<int64_t> indices;
    for (auto axis : axes.getAsRange<StringAttr>())
      indices.push_back(program.getMesh().indexOf(axis.getValue()));
    Command command(Command::Kind::Launch, op->getLoc());
    command.kernel = KernelKind::own_part;
    command.ins.push_back(ins.front());
    makeOutputs(op, /*canAccumulate=*/false, command);
    command.settings.push_back(builder.getNamedAttr("axes", builder.getDenseI64ArrayAttr(indices)));
    push(std::move(command), op);
    finish(op);
    return success();
  }
  for (View &in : ins)
    in = makeDense(op, in);
  receive(op, kind, axes, ins, [&](const View &out) { return join < 0 ? out : membersFirst(out, join, members); });
  return success();
}
