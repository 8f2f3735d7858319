#include "FunctionLowering.h"

#include "windlass/Dialect/Sched/Analysis/Accumulation.h"
#include "windlass/Dialect/Sched/Analysis/Owner.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static bool isViewOp(Operation *op) {
  return isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp, train::SliceOp, train::SplitOp>(op);
}

static SmallVector<int64_t> invert(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, dim] : llvm::enumerate(permutation))
    inverse[dim] = i;
  return inverse;
}

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

LogicalResult FunctionLowering::run(ArrayRef<View> arguments, SmallVectorImpl<View> &results,
                                    const DenseSet<Operation *> &skipped) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("must have one block");
  Block &body = function.getBody().front();
  if (arguments.size() != body.getNumArguments())
    return function.emitOpError("takes ")
           << body.getNumArguments() << " values but the forward pass returns " << arguments.size();
  for (auto [argument, view] : llvm::zip_equal(body.getArguments(), arguments)) {
    auto type = tensorType(argument);
    if (type.getShape() != ArrayRef<int64_t>(view.sizes) || type.getElementType() != view.element)
      return function.emitOpError("takes ") << type << " where the forward pass returns a value of another type";
    views[argument] = view;
  }
  for (Operation &op : body)
    if (auto name = op.getAttrOfType<FlatSymbolRefAttr>("resource"); name && isa<LoadOp, StoreOp, AddToOp>(op))
      resourceUsers[name].push_back(&op);
  measureMoves(body);

  for (Operation &op : body.without_terminator()) {
    if (skipped.contains(&op))
      continue;
    for (Value value : llvm::concat<Value>(op.getOperands(), op.getResults()))
      if (auto type = dyn_cast<RankedTensorType>(value.getType()); !type || type.getRank() > kMaxViewRank)
        return op.emitOpError("has a value of type ")
               << value.getType() << " but the runtime's views have at most " << kMaxViewRank << " dims";
    if (failed(lower(&op)))
      return failure();
  }
  Operation *terminator = body.getTerminator();
  for (Value value : terminator->getOperands()) {
    View view = views.lookup(value);
    // What a later command may overwrite is kept as a copy.
    if (program.storages[view.storage].isMutableInStep) {
      memory = program.storages[view.storage].memory;
      View copy = allocate(tensorType(value));
      pushCopy(terminator, copy, view);
      view = copy;
    }
    results.push_back(view);
  }
  waitForAll();
  return success();
}

LogicalResult FunctionLowering::lower(Operation *op) {
  memory = plan::MemoryKind::device;
  if (op->getNumOperands() > 0)
    memory = program.storages[views.lookup(op->getOperand(0)).storage].memory;
  // What computes something that nobody reads is left out.
  if (isMemoryEffectFree(op) && op->use_empty())
    return success();
  if (isViewOp(op))
    return lowerView(op);
  if (auto load = dyn_cast<LoadOp>(op))
    return lowerLoad(load);
  if (auto store = dyn_cast<StoreOp>(op))
    return lowerStore(store);
  if (auto addTo = dyn_cast<AddToOp>(op))
    return lowerAddTo(addTo);
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    return lowerConstant(constant);
  if (auto concat = dyn_cast<train::ConcatOp>(op))
    return lowerConcat(concat);
  if (auto pad = dyn_cast<train::PadOp>(op))
    return lowerPad(pad);
  if (auto sum = dyn_cast<train::AccumulateOp>(op); sum && isSummedByKernels(sum))
    return lowerAccumulate(sum);
  if (auto map = dyn_cast<MapOp>(op))
    return lowerMap(map);
  if (auto matmul = dyn_cast<train::MatmulOp>(op))
    return lowerMatmul(matmul);
  if (auto reduce = dyn_cast<train::ReduceOp>(op))
    return lowerReduce(reduce);
  if (auto allReduce = dyn_cast<AllReduceOp>(op))
    return lowerAllReduce(allReduce);
  if (isa<AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp, OwnPartOp>(op))
    return lowerExchange(op);
  if (isa<GatherRowsOp, ScatterRowsOp>(op))
    return lowerRows(op);
  if (auto move = dyn_cast<MoveOp>(op))
    return lowerMove(move);
  if (const KernelRow *row = findRow(op); row && row->origin == KernelOrigin::op)
    return lowerKernel(op, *row);
  if (isa<train::ScalarOpInterface, train::LossOp, train::ClipFactorOp, train::AverageOp>(op))
    return op->emitOpError("is element-wise and in no sched.map: run sched-fuse-elementwise first");
  return op->emitOpError("has no command: it must be lowered before sched-lower-to-commands");
}

//===----------------------------------------------------------------------===//
// Values without commands
//===----------------------------------------------------------------------===//

LogicalResult FunctionLowering::lowerView(Operation *op) {
  const View input = views.lookup(op->getOperand(0));
  if (auto reshape = dyn_cast<train::ReshapeOp>(op)) {
    std::optional<View> view = input.reshaped(tensorType(reshape.getResult()).getShape());
    if (!view)
      view = makeDense(op, input).reshaped(tensorType(reshape.getResult()).getShape());
    views[reshape.getResult()] = *view;
  } else if (auto transpose = dyn_cast<train::TransposeOp>(op)) {
    views[transpose.getResult()] = input.permuted(transpose.getPermutation());
  } else if (auto broadcast = dyn_cast<train::BroadcastOp>(op)) {
    views[broadcast.getResult()] = input.broadcasted(broadcast.getDims(), tensorType(broadcast.getResult()).getShape());
  } else if (auto slice = dyn_cast<train::SliceOp>(op)) {
    views[slice.getResult()] = input.sliced(slice.getStarts(), slice.getSizes());
  } else if (auto split = dyn_cast<train::SplitOp>(op)) {
    SmallVector<int64_t> starts(input.sizes.size(), 0), sizes(input.sizes.begin(), input.sizes.end());
    for (auto [result, size] : llvm::zip_equal(split.getResults(), split.getSizes())) {
      sizes[split.getAxis()] = size;
      views[result] = input.sliced(starts, sizes);
      starts[split.getAxis()] += size;
    }
  }
  return success();
}

LogicalResult FunctionLowering::lowerLoad(LoadOp op) {
  View view = program.getView(program.getResource(op.getResourceAttr()));
  if (isWrittenWhileRead(op)) {
    View copy = allocate(tensorType(op.getResult()));
    pushCopy(op, copy, view);
    view = copy;
  }
  views[op.getResult()] = view;
  return success();
}

LogicalResult FunctionLowering::lowerStore(StoreOp op) {
  View resource = program.getView(program.getResource(op.getResourceAttr())), value = views.lookup(op.getValue());
  if (!(value == resource))
    pushCopy(op, resource, value);
  return success();
}

LogicalResult FunctionLowering::lowerAddTo(AddToOp op) {
  for (Operation *user : resourceUsers.lookup(op.getResourceAttr()))
    if (user != op && isa<AddToOp>(user))
      return op.emitOpError("adds to ") << op.getResourceAttr()
                                        << " twice in one function: only the first micro-batch may overwrite it";
  View resource = program.getView(program.getResource(op.getResourceAttr())), value = views.lookup(op.getValue());
  if (delivered.contains(op)) {
    waitForDelivery(op, resource.storage);
    return success();
  }
  if (program.hasOneMicroBatch)
    pushCopy(op, resource, value);
  else
    pushAdd(op, resource, value);
  return success();
}

//===----------------------------------------------------------------------===//
// Where results go
//===----------------------------------------------------------------------===//

View FunctionLowering::allocate(RankedTensorType type) {
  return View::dense(program.addTransient(getTensorBytes(type), memory), type);
}

static bool hasAliasReadAfter(Value value, Operation *from) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isViewOp(user))
      return llvm::any_of(user->getResults(), [&](Value result) { return hasAliasReadAfter(result, from); });
    return from->isBeforeInBlock(user);
  });
}

bool FunctionLowering::isTouchedBetween(FlatSymbolRefAttr resource, Operation *from, Operation *to) {
  return llvm::any_of(resourceUsers.lookup(resource), [&](Operation *user) {
    if (user == to)
      return false;
    bool isAfter = from->isBeforeInBlock(user);
    if (isAfter)
      return user->isBeforeInBlock(to);
    return isa<LoadOp>(user) && hasAliasReadAfter(user->getResult(0), from);
  });
}

bool FunctionLowering::isLoaded(unsigned storage) {
  return llvm::any_of(resourceUsers, [&](auto &entry) {
    return llvm::any_of(entry.second, [&](Operation *user) {
      auto load = dyn_cast<LoadOp>(user);
      return load && program.getView(program.getResource(load.getResourceAttr())).storage == storage;
    });
  });
}

bool FunctionLowering::isWrittenWhileRead(LoadOp load) {
  return llvm::any_of(resourceUsers.lookup(load.getResourceAttr()), [&](Operation *user) {
    return !isa<LoadOp>(user) && load->isBeforeInBlock(user) && hasAliasReadAfter(load.getResult(), user);
  });
}

/// The bytes that devices load at once: their libraries have the fastest kernels for 16-bit matrices whose rows begin
/// at multiples of it.
static constexpr int64_t kRowAlignment = 16;
/// The fewest elements of a row that is padded: padding would be a large part of shorter rows.
static constexpr int64_t kLeastPaddedRow = 64;

/// Returns the type with rows that begin at multiples of `kRowAlignment`, for a matrix of 16 bits such as the scores of
/// a vocabulary of 50257; none where rows begin at multiples anyway, or a user needs them dense. It holds not only for
/// operands and results of products, because values take each other's memory where their views are equal.
static std::optional<RankedTensorType> getPadded(Value value) {
  auto type = tensorType(value);
  int64_t columns = type.getRank() < 2 ? 0 : type.getShape().back();
  if (!type.getElementType().isFloat() || type.getElementTypeBitWidth() != 16 || columns < kLeastPaddedRow ||
      columns * 2 % kRowAlignment == 0)
    return std::nullopt;
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = llvm::alignTo(columns, kRowAlignment / 2);
  auto padded = RankedTensorType::get(shape, type.getElementType());
  View view = View::dense(0, padded);
  view.sizes.back() = columns;
  for (Operation *user : value.getUsers()) {
    auto reshape = dyn_cast<train::ReshapeOp>(user);
    if (reshape && !view.reshaped(tensorType(reshape.getResult()).getShape()))
      return std::nullopt;
    if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, OwnPartOp, PermuteOp, GatherRowsOp, ScatterRowsOp>(
            user))
      return std::nullopt;
  }
  return padded;
}

View FunctionLowering::allocateFor(Value value) {
  // A transpose that is reshaped next wants its own order of dims to be dense, or the reshape would copy.
  auto type = tensorType(value);
  for (Operation *user : value.getUsers()) {
    auto transpose = dyn_cast<train::TransposeOp>(user);
    if (!transpose || transpose.getPermutation().empty() || transpose.getPermutation().back() != type.getRank() - 1)
      continue;
    View plain = View::dense(0, type).permuted(transpose.getPermutation());
    for (Operation *reader : transpose->getUsers())
      if (auto reshape = dyn_cast<train::ReshapeOp>(reader);
          reshape && !plain.reshaped(tensorType(reshape.getResult()).getShape()))
        return allocate(tensorType(transpose.getResult())).permuted(invert(transpose.getPermutation()));
  }
  if (auto padded = getPadded(value)) {
    View view = allocate(*padded);
    view.sizes.back() = type.getShape().back();
    return view;
  }
  return allocate(type);
}

/// Whether the terms of a sum come from several instances of a repeated block, so that the first must be like the rest.
static bool sumsRepeats(train::AccumulateOp op) {
  DenseSet<Attribute> instances;
  for (Value input : op.getInputs())
    if (Attribute repeat = input.getDefiningOp()->getAttr(plan::kRepeatAttr))
      instances.insert(repeat);
  return instances.size() > 1;
}

FunctionLowering::Destination FunctionLowering::getAssembled(Operation *op, Operation *producer) {
  auto it = assembled.find(op);
  if (it != assembled.end())
    return it->second;
  Destination result;
  if (auto allReduce = dyn_cast<AllReduceOp>(op)) {
    // Parts start where a vector load is aligned; what is between them is reduced and ignored.
    int64_t elementBytes = getElementBytes(tensorType(allReduce.getInputs().front()).getElementType());
    int64_t bytes = 0;
    for (Value input : allReduce.getInputs())
      bytes = llvm::alignTo(bytes, kAlignment) + getTensorBytes(tensorType(input));
    result.view = allocate(
        RankedTensorType::get({bytes / elementBytes}, tensorType(allReduce.getInputs().front()).getElementType()));
  } else {
    auto sum = dyn_cast<train::AccumulateOp>(op);
    auto destination = findDestination(op->getResult(0), producer);
    bool fits = destination && (destination->mode == Mode::Overwrite ||
                                (sum && destination->mode == Mode::AddAfterFirst && !sumsRepeats(sum)));
    // A term whose kernel reads the place of the sum could not be written there.
    if (sum && fits && isLoaded(destination->view.storage))
      fits = false;
    if (fits)
      result = *destination;
    else
      result.view = allocate(tensorType(op->getResult(0)));
    if (fits && destination->mode == Mode::AddAfterFirst)
      delivered.insert(destination->consumer);
    if (sum && sumsRepeats(sum)) {
      fillAtStart(op, result.view);
      begun.insert(op);
    }
  }
  assembled[op] = result;
  return result;
}

View FunctionLowering::getPart(Operation *op, unsigned index, Operation *producer) {
  View whole = getAssembled(op, producer).view;
  if (auto concat = dyn_cast<train::ConcatOp>(op)) {
    SmallVector<int64_t> starts(whole.sizes.size(), 0);
    for (Value input : concat.getInputs().take_front(index))
      starts[concat.getAxis()] += tensorType(input).getDimSize(concat.getAxis());
    return whole.sliced(starts, tensorType(concat.getInputs()[index]).getShape());
  }
  if (auto pad = dyn_cast<train::PadOp>(op))
    return whole.sliced(pad.getLow(), tensorType(pad.getInput()).getShape());
  auto allReduce = cast<AllReduceOp>(op);
  int64_t offset = 0;
  for (Value input : allReduce.getInputs().take_front(index))
    offset = llvm::alignTo(offset + getTensorBytes(tensorType(input)), kAlignment);
  View part = View::dense(whole.storage, tensorType(allReduce.getInputs()[index]));
  part.offset = whole.offset + offset;
  return part;
}

std::optional<FunctionLowering::Destination> FunctionLowering::findDestination(Value value, Operation *producer) {
  if (!value.hasOneUse())
    return std::nullopt;
  OpOperand &use = *value.use_begin();
  Operation *user = use.getOwner();
  Destination destination;
  destination.consumer = user;

  if (isa<StoreOp, AddToOp>(user)) {
    auto name = user->getAttrOfType<FlatSymbolRefAttr>("resource");
    if (isTouchedBetween(name, producer, user))
      return std::nullopt;
    destination.view = program.getView(program.getResource(name));
    destination.mode = isa<AddToOp>(user) && !program.hasOneMicroBatch ? Mode::AddAfterFirst : Mode::Overwrite;
    return destination;
  }
  if (auto transpose = dyn_cast<train::TransposeOp>(user)) {
    auto beyond = findDestination(transpose.getResult(), producer);
    if (beyond)
      beyond->view = beyond->view.permuted(invert(transpose.getPermutation()));
    return beyond;
  }
  if (auto reshape = dyn_cast<train::ReshapeOp>(user)) {
    auto beyond = findDestination(reshape.getResult(), producer);
    if (!beyond)
      return std::nullopt;
    std::optional<View> view = beyond->view.reshaped(tensorType(value).getShape());
    // The way back must lead to the same place, or lowering the reshape would copy.
    std::optional<View> back = view ? view->reshaped(beyond->view.sizes) : std::nullopt;
    if (!back || !(*back == beyond->view))
      return std::nullopt;
    beyond->view = *view;
    return beyond;
  }
  if (isa<train::ConcatOp, train::PadOp>(user) && !user->use_empty()) {
    destination.view = getPart(user, use.getOperandNumber(), producer);
    return destination;
  }
  if (auto sum = dyn_cast<train::AccumulateOp>(user); sum && isSummedByKernels(sum) && !sum->use_empty()) {
    destination = getAssembled(sum, producer);
    destination.consumer = sum;
    if (!begun.insert(sum).second)
      destination.mode = Mode::Add;
    return destination;
  }
  if (auto allReduce = dyn_cast<AllReduceOp>(user)) {
    if (!llvm::all_equal(llvm::map_range(allReduce.getInputs(), [](Value v) { return getElementTypeOrSelf(v); })))
      return std::nullopt;
    destination.view = getPart(user, use.getOperandNumber(), producer);
    return destination;
  }
  return std::nullopt;
}

/// Whether the command of `op` may read operand `index` where it writes the same view.
static bool mayRunInPlace(Operation *op, unsigned index, unsigned result) {
  if (isa<MapOp>(op))
    return true;
  const KernelRow *row = findRow(op);
  return row && row->mayWriteOver(getArity(op), index, result);
}

/// Whether all matrices that the command of `op` computes are added to resources that it does not read.
bool FunctionLowering::addsMatrices(Operation *op, const KernelRow &row) {
  return row.accumulation == Accumulation::matrices && llvm::all_of(op->getResults(), [&](OpResult result) {
           if (!row.addsTo(result.getResultNumber()))
             return true;
           bool isAdded = result.hasOneUse() && isa<AddToOp>(*result.user_begin());
           auto to = isAdded ? findDestination(result, op) : std::nullopt;
           return to && llvm::none_of(op->getOperands(),
                                      [&](Value read) { return views.lookup(read).storage == to->view.storage; });
         });
}

void FunctionLowering::makeOutputs(Operation *op, bool canAccumulate, Command &command) {
  const KernelRow *row = findRow(op);
  for (OpResult result : op->getResults()) {
    auto destination = findDestination(result, op);
    if (destination) {
      for (OpOperand &operand : op->getOpOperands()) {
        View input = views.lookup(operand.get());
        if (input.storage != destination->view.storage)
          continue;
        if (destination->mode != Mode::Overwrite || !(input == destination->view) ||
            !mayRunInPlace(op, operand.getOperandNumber(), result.getResultNumber())) {
          destination.reset();
          break;
        }
      }
    }
    // What a collective brings is added where the addition stands: before, the stream would wait for it.
    if (destination && destination->mode == Mode::AddAfterFirst && isa<ReduceScatterOp, AllToAllOp, PermuteOp>(op))
      destination.reset();
    bool adds = canAccumulate && (!row || row->addsTo(result.getResultNumber()));
    if (destination && destination->mode != Mode::Overwrite && !adds) {
      additions.push_back({result, *destination});
      destination.reset();
    }
    if (destination) {
      command.accumulates |= destination->mode == Mode::Add;
      command.accumulatesAfterFirst |= destination->mode == Mode::AddAfterFirst;
      if (isa<AddToOp>(destination->consumer))
        delivered.insert(destination->consumer);
      command.outs.push_back(destination->view);
    } else if (Value replaced = findMovedHere(op, result.getResultNumber())) {
      command.outs.push_back(views.lookup(replaced));
    } else {
      command.outs.push_back(allocateFor(result));
    }
    views[result] = command.outs.back();
  }
}

void FunctionLowering::finish(Operation *op) {
  for (auto &[result, destination] : additions) {
    pushAdd(op, destination.view, views.lookup(result));
    delivered.insert(destination.consumer);
  }
  additions.clear();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

void FunctionLowering::push(Command command, Operation *op) {
  command.repeat = op->getAttr(plan::kRepeatAttr);
  command.id = op->getAttr(train::kIdAttr);
  if (command.kind != Command::Kind::Record && command.kind != Command::Kind::Wait)
    command.owner = getOwner(op, program.getSymbols());
  if (command.stream == kComputeStream && memory == plan::MemoryKind::host) {
    command.stream = program.getStream(StreamKind::host);
    return pushBeside(std::move(command), op);
  }
  if (command.stream == kComputeStream) {
    waitFor(command);
    for (const View &view : llvm::concat<const View>(command.ins, command.outs))
      touched[view.storage] = commands.size() + 1;
    lastComputed[plan::MemoryKind::device] = commands.size() + 1;
  }
  commands.push_back(std::move(command));
}

void FunctionLowering::pushCopy(Operation *op, const View &out, const View &in) {
  Command command(Command::Kind::Launch, op->getLoc());
  command.kernel = KernelKind::copy;
  command.ins.push_back(in);
  command.outs.push_back(out);
  push(std::move(command), op);
}

Command FunctionLowering::makeFill(Operation *op, const View &out, double value) {
  Builder builder(op->getContext());
  Command command(Command::Kind::Launch, op->getLoc());
  command.kernel = KernelKind::fill;
  command.owner = getOwner(op, program.getSymbols());
  command.outs.push_back(out);
  command.settings.push_back(builder.getNamedAttr("value", builder.getF64FloatAttr(value)));
  return command;
}

void FunctionLowering::pushFill(Operation *op, const View &out, double value) { push(makeFill(op, out, value), op); }

void FunctionLowering::pushAdd(Operation *op, const View &out, const View &in) {
  Command command(Command::Kind::Map, op->getLoc());
  command.function = program.getIdentityFunction(in.element);
  command.ins.push_back(in);
  command.outs.push_back(out);
  command.accumulatesAfterFirst = true;
  push(std::move(command), op);
}

void FunctionLowering::pushWait(int64_t event, Location loc, Attribute repeat) {
  Command wait(Command::Kind::Wait, loc);
  wait.event = event;
  wait.repeat = repeat;
  // Nothing of the collective is in use after this.
  pending.remove_if([&](auto &entry) {
    if (entry.second.event != event)
      return false;
    wait.keepsAlive.push_back(entry.first);
    return true;
  });
  commands.push_back(std::move(wait));
  lastComputed[plan::MemoryKind::device] = commands.size();
  // Other streams that use it do not wait for the event any more, but for this wait.
  for (unsigned storage : commands.back().keepsAlive)
    touched[storage] = lastComputed[program.storages[storage].memory] = commands.size();
}

void FunctionLowering::waitFor(const Command &command) {
  for (const View &view : llvm::concat<const View>(command.ins, command.outs))
    if (auto it = pending.find(view.storage); it != pending.end())
      pushWait(it->second.event, command.loc, command.repeat);
}

void FunctionLowering::waitForAll() {
  while (!pending.empty())
    pushWait(pending.front().second.event, function.getLoc(), Attribute());
}

View FunctionLowering::makeDense(Operation *op, const View &view) {
  if (view.isDense())
    return view;
  View copy = allocate(RankedTensorType::get(view.sizes, view.element));
  pushCopy(op, copy, view);
  return copy;
}

LogicalResult FunctionLowering::lowerConstant(train::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return op.emitOpError("holds a value that is not dense");
  Command command(Command::Kind::Launch, op.getLoc());
  makeOutputs(op, /*canAccumulate=*/false, command);
  View out = command.outs.front();
  if (elements.isSplat()) {
    auto splat = elements.getSplatValue<Attribute>();
    double value = 0;
    if (auto number = dyn_cast<FloatAttr>(splat))
      value = number.getValueAsDouble();
    else if (auto integer = cast<IntegerAttr>(splat); integer.getType().isInteger(1))
      value = integer.getValue().getZExtValue();
    else
      value = integer.getValue().getSExtValue();
    pushFill(op, out, value);
    finish(op);
    return success();
  }
  // The program holds the elements in a table.
  Builder builder(op.getContext());
  View dense = out.isDense() ? out : allocate(tensorType(op.getResult()));
  command.kernel = KernelKind::constant;
  command.outs.assign(1, dense);
  command.settings.push_back(builder.getNamedAttr(kConstantValue, elements));
  push(std::move(command), op);
  if (!out.isDense())
    pushCopy(op, out, dense);
  finish(op);
  return success();
}

LogicalResult FunctionLowering::lowerConcat(train::ConcatOp op) {
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    View part = getPart(op, i, op);
    View value = views.lookup(input);
    if (!(value == part))
      pushCopy(op, part, value);
  }
  views[op.getResult()] = getAssembled(op, op).view;
  return success();
}

LogicalResult FunctionLowering::lowerPad(train::PadOp op) {
  View part = getPart(op, 0, op), whole = getAssembled(op, op).view;
  View value = views.lookup(op.getInput());
  if (!(value == part))
    pushCopy(op, part, value);
  // The border as slabs: dims before `dim` within the operand, those after it whole.
  SmallVector<int64_t> starts(whole.sizes.size(), 0), sizes(whole.sizes.begin(), whole.sizes.end());
  for (size_t dim = 0; dim < whole.sizes.size(); ++dim) {
    int64_t low = op.getLow()[dim], high = op.getHigh()[dim], inner = part.sizes[dim];
    sizes[dim] = low;
    if (low)
      pushFill(op, whole.sliced(starts, sizes), op.getValue().convertToDouble());
    starts[dim] = low + inner;
    sizes[dim] = high;
    if (high)
      pushFill(op, whole.sliced(starts, sizes), op.getValue().convertToDouble());
    starts[dim] = low;
    sizes[dim] = inner;
  }
  views[op.getResult()] = whole;
  return success();
}

LogicalResult FunctionLowering::lowerAccumulate(train::AccumulateOp op) {
  // Every term has been added where it was made.
  views[op.getResult()] = getAssembled(op, op).view;
  return success();
}

LogicalResult FunctionLowering::lowerMap(MapOp op) {
  Command command(Command::Kind::Map, op.getLoc());
  command.function = op.getFunctionAttr();
  auto space = tensorType(op.getResults().front()).getShape();
  for (auto [input, dims] : llvm::zip_equal(op.getInputs(), op.getOperandDims()))
    command.ins.push_back(views.lookup(input).broadcasted(cast<DenseI64ArrayAttr>(dims), space));
  makeOutputs(op, /*canAccumulate=*/op.getNumResults() == 1, command);
  push(std::move(command), op);
  finish(op);
  return success();
}

/// Returns the dims of the groups, in the order of the groups.
static SmallVector<int64_t> concatenate(ArrayRef<int64_t> a, ArrayRef<int64_t> b, ArrayRef<int64_t> c) {
  SmallVector<int64_t> all(a.begin(), a.end());
  all.append(b.begin(), b.end());
  all.append(c.begin(), c.end());
  return all;
}

/// Returns the dims of the operand that are in neither list, in order.
static SmallVector<int64_t> otherDims(Value operand, ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < tensorType(operand).getRank(); ++dim)
    if (!llvm::is_contained(a, dim) && !llvm::is_contained(b, dim))
      others.push_back(dim);
  return others;
}

LogicalResult FunctionLowering::lowerMatmul(train::MatmulOp op) {
  Builder builder(op.getContext());
  Command command(Command::Kind::Launch, op.getLoc());
  command.kernel = KernelKind::matmul;
  auto lhsFree = otherDims(op.getLhs(), op.getLhsBatch(), op.getLhsContract());
  auto rhsFree = otherDims(op.getRhs(), op.getRhsBatch(), op.getRhsContract());
  command.ins.push_back(
      views.lookup(op.getLhs()).permuted(concatenate(op.getLhsBatch(), lhsFree, op.getLhsContract())));
  command.ins.push_back(
      views.lookup(op.getRhs()).permuted(concatenate(op.getRhsBatch(), op.getRhsContract(), rhsFree)));
  makeOutputs(op, /*canAccumulate=*/true, command);
  command.settings.push_back(builder.getNamedAttr("batch_rank", builder.getI64IntegerAttr(op.getLhsBatch().size())));
  command.settings.push_back(
      builder.getNamedAttr("contract_rank", builder.getI64IntegerAttr(op.getLhsContract().size())));
  push(std::move(command), op);
  return success();
}

LogicalResult FunctionLowering::lowerReduce(train::ReduceOp op) {
  Builder builder(op.getContext());
  Command command(Command::Kind::Launch, op.getLoc());
  command.kernel = KernelKind::reduce;
  auto kept = otherDims(op.getInput(), op.getDims(), {});
  command.ins.push_back(views.lookup(op.getInput()).permuted(concatenate(kept, op.getDims(), {})));
  makeOutputs(op, canAccumulate(op), command);
  command.settings.push_back(builder.getNamedAttr("kind", op.getKindAttr()));
  command.settings.push_back(builder.getNamedAttr("reduced_rank", builder.getI64IntegerAttr(op.getDims().size())));
  push(std::move(command), op);
  finish(op);
  return success();
}

LogicalResult FunctionLowering::lowerKernel(Operation *op, const KernelRow &row) {
  Command command(Command::Kind::Launch, op->getLoc());
  command.kernel = row.kind;
  for (Value operand : op->getOperands()) {
    View view = views.lookup(operand);
    if (row.rows == Rows::dense && !view.hasUnitInnerStride())
      view = makeDense(op, view);
    command.ins.push_back(std::move(view));
  }
  makeOutputs(op, canAccumulate(op) || addsMatrices(op, row), command);
  // Some kernels change their operands: where a result goes elsewhere, the operand is copied there first.
  for (auto [o, out] : llvm::enumerate(command.outs))
    if (std::optional<size_t> replaced = row.getReplaced(getArity(op), o)) {
      if (!(command.ins[*replaced] == out))
        pushCopy(op, out, command.ins[*replaced]);
      command.ins[*replaced] = out;
    }
  if (auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
    for (NamedAttribute attribute : properties)
      if (!attribute.getName().strref().contains("egmentSizes"))
        command.settings.push_back(attribute);
  push(std::move(command), op);
  finish(op);
  return success();
}
