// What the operators of `sched` promise about their symbols and shapes.
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Support/TensorBytes.h"
#include "windlass/rt/detail/row_routes.h"

#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace windlass::sched;

/// Checks that the resource of that name exists and that its local type is `type`.
static LogicalResult verifyResource(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &tables) {
  auto resource = tables.lookupNearestSymbolFrom<ResourceOp>(op, name);
  if (!resource)
    return op->emitOpError("names ") << name << ", which is no sched.resource of the program";
  if (resource.getType() != type)
    return op->emitOpError("has type ") << type << " but " << name << " holds " << resource.getType();
  return success();
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyResource(*this, getResourceAttr(), getResult().getType(), tables);
}

LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyResource(*this, getResourceAttr(), getValue().getType(), tables);
}

LogicalResult AddToOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyResource(*this, getResourceAttr(), getValue().getType(), tables);
}

LogicalResult ResourceOp::verify() {
  bool isFlat = !getLayout().getFlat().empty() && getTensorType().getRank() == 1;
  if (getTensorType().getRank() != getGlobalTensorType().getRank() && !isFlat)
    return emitOpError("local type ") << getType() << " and global type " << getGlobalType() << " differ in rank";
  if (getArena().has_value() != getOffset().has_value())
    return emitOpError("needs both an arena and an offset, or neither");
  if (getChunk() && !isOfSlot())
    return emitOpError("names chunk ") << *getChunk() << ", but only inputs, and what is sent or received, are of one";
  if (getPeer().has_value() != isBorder())
    return emitOpError(isBorder() ? "names no peer, the chunk at the other end"
                                  : "names a peer, but is neither sent nor received");
  return getLayout().verifyFits(getGlobalTensorType(), [&] { return emitOpError(); });
}

/// Returns the stream of that name; reports an error where there is none.
static FailureOr<StreamOp> findStream(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &tables) {
  if (auto stream = tables.lookupNearestSymbolFrom<StreamOp>(op, name))
    return stream;
  return op->emitOpError("names ") << name << ", which is no sched.stream of the program";
}

/// Checks that a copy is one of bytes that follow each other.
static LogicalResult verifyMovedBytes(Operation *op) {
  auto from = llvm::cast<MemRefType>(op->getOperand(0).getType()),
       to = llvm::cast<MemRefType>(op->getOperand(1).getType());
  if (from == to && from.getLayout().isIdentity())
    return success();
  return op->emitOpError("copies ") << from << " to " << to
                                    << "; between memories, operand and result are dense and of one type";
}

/// Checks that a stream runs a command: a launch of `kernel`, or of a fused function where there is none.
static LogicalResult verifyKernelStream(Operation *op, FlatSymbolRefAttr name, const KernelRow *kernel,
                                        SymbolTableCollection &tables) {
  FailureOr<StreamOp> stream = findStream(op, name, tables);
  if (failed(stream))
    return failure();
  StringRef runs;
  switch (stream->getKind()) {
  case StreamKind::compute:
    return success();
  case StreamKind::host:
    if (kernel && !kernel->runsOnHost)
      return op->emitOpError("runs on ") << name << ", a stream of kind host, but kernel '" << kernel->name
                                         << "' runs on devices only";
    return success();
  case StreamKind::communicator:
    runs = "collectives";
    break;
  case StreamKind::h2d:
  case StreamKind::d2h:
  case StreamKind::disk_read:
  case StreamKind::disk_write:
    if (kernel && kernel->kind == KernelKind::copy)
      return verifyMovedBytes(op);
    runs = "copies";
    break;
  }
  return op->emitOpError("is a kernel on ") << name << ", a stream of kind " << stringifyStreamKind(stream->getKind())
                                            << ", which runs " << runs << " only";
}

LogicalResult RecordOp::verifySymbolUses(SymbolTableCollection &tables) {
  return findStream(*this, getStreamAttr(), tables);
}

LogicalResult WaitOp::verifySymbolUses(SymbolTableCollection &tables) {
  return findStream(*this, getStreamAttr(), tables);
}

LogicalResult ArenaOp::verify() {
  if (static_cast<int64_t>(getBytes()) < 0)
    return emitOpError("has ") << static_cast<int64_t>(getBytes()) << " bytes; an allocation has at least 0";
  return success();
}

LogicalResult SlotsOp::verify() {
  // Bounds, so that no sum of what the attributes say overflows.
  constexpr int64_t most = int64_t(1) << 48;
  auto isBetween = [](int64_t value, int64_t least, int64_t most) { return least <= value && value <= most; };
  if (!isBetween(getChunk(), 0, schedule::kMaxChunks - 1))
    return emitOpError("is of chunk ") << static_cast<int64_t>(getChunk()) << ", but chunks are numbered from 0 to "
                                       << schedule::kMaxChunks - 1;
  if (!isBetween(getCount(), 1, schedule::kMaxActions))
    return emitOpError("has ") << static_cast<int64_t>(getCount()) << " slots, but a chunk has 1 to "
                               << schedule::kMaxActions;
  if (!isBetween(getOffset(), 0, most) || !isBetween(getBytes(), 0, most / getCount()))
    return emitOpError("begins at byte ")
           << static_cast<int64_t>(getOffset()) << " with " << static_cast<int64_t>(getBytes())
           << " bytes to a slot: both are at least 0, and the last slot ends before 2^49";
  if (getOffset() % kAlignment || getBytes() % kAlignment)
    return emitOpError("begins at byte ")
           << getOffset() << " with " << getBytes() << " bytes to a slot, which are no multiples of " << kAlignment;
  return success();
}

LogicalResult SlotsOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (tables.lookupNearestSymbolFrom<ArenaOp>(*this, getArenaAttr()))
    return success();
  return emitOpError("names ") << getArenaAttr() << ", which is no sched.arena of the program";
}

LogicalResult CommunicatorOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<StreamOp> stream = findStream(*this, getStreamAttr(), tables);
  if (failed(stream))
    return failure();
  if (stream->getKind() != StreamKind::communicator)
    return emitOpError("names ") << getStreamAttr() << ", a stream of kind " << stringifyStreamKind(stream->getKind())
                                 << ", but collectives run on one of kind communicator";
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (getInputs().getTypes() != getResults().getTypes())
    return emitOpError("makes ") << getResults().getTypes() << " of " << getInputs().getTypes()
                                 << "; an all_reduce keeps the types of its operands";
  return success();
}

/// Checks that each operand of a collective has a result of its own, or each of the buffers that it reads one that it
/// writes.
static LogicalResult verifyPairs(Operation *op, size_t ins, size_t outs) {
  if (ins == 0)
    return op->emitOpError("moves nothing: it needs an operand");
  if (ins != outs)
    return op->emitOpError("moves ") << ins << " values to " << outs << ": each needs a place of its own";
  if (ins > LaunchCollectiveOp::kMostPairs)
    return op->emitOpError("moves ") << ins << " values, but one command moves at most "
                                     << LaunchCollectiveOp::kMostPairs << ": use several";
  return success();
}

LogicalResult AllGatherOp::verify() { return verifyPairs(*this, getInputs().size(), getResults().size()); }

LogicalResult ReduceScatterOp::verify() { return verifyPairs(*this, getInputs().size(), getResults().size()); }

RankedTensorType GatherRowsOp::getWholeType() { return cast<RankedTensorType>(getResult().getType()); }
RankedTensorType GatherRowsOp::getPartType() { return cast<RankedTensorType>(getInput().getType()); }
RankedTensorType ScatterRowsOp::getWholeType() { return cast<RankedTensorType>(getInput().getType()); }
RankedTensorType ScatterRowsOp::getPartType() { return cast<RankedTensorType>(getResult().getType()); }

/// Checks that the rows of all members' tokens, those of one member's and the choices fit together. The types are of
/// tensors or of buffers.
static LogicalResult verifyRows(Operation *op, ShapedType whole, ShapedType part, ShapedType choices, int64_t experts) {
  auto fail = [&] {
    return op->emitOpError("exchanges rows of ") << whole << " and " << part << " for choices of " << choices
                                                 << " among " << experts << " experts, which do not fit together";
  };
  if (whole.getRank() != 2 || part.getRank() != 2 || choices.getRank() != 2 ||
      !choices.getElementType().isInteger(64) || whole.getElementType() != part.getElementType() ||
      !llvm::isa<FloatType>(whole.getElementType()) || whole.getDimSize(1) != part.getDimSize(1) ||
      choices.getDimSize(0) != whole.getDimSize(0) || part.getDimSize(0) < 1 ||
      whole.getDimSize(0) % part.getDimSize(0) != 0)
    return fail();
  int64_t members = whole.getDimSize(0) / part.getDimSize(0);
  return experts < 1 || experts % members != 0 ? fail() : success();
}

LogicalResult GatherRowsOp::verify() {
  return verifyRows(*this, getWholeType(), getPartType(), cast<RankedTensorType>(getChoices().getType()), getExperts());
}

LogicalResult ScatterRowsOp::verify() {
  return verifyRows(*this, getWholeType(), getPartType(), cast<RankedTensorType>(getChoices().getType()), getExperts());
}

/// Whether every member sends to another one.
static bool isPermutation(ArrayRef<int64_t> destinations) {
  llvm::SmallBitVector reached(destinations.size());
  for (int64_t destination : destinations) {
    if (destination < 0 || destination >= static_cast<int64_t>(destinations.size()) || reached.test(destination))
      return false;
    reached.set(destination);
  }
  return true;
}

LogicalResult PermuteOp::verify() {
  if (getInput().getType() != getResult().getType())
    return emitOpError("receives ") << getResult().getType() << " where members send " << getInput().getType();
  if (!isPermutation(getDestinations()))
    return emitOpError("sends to ") << getDestinationsAttr() << ": every member must receive from one member";
  return success();
}

LogicalResult MapOp::verify() {
  if (getOperandDims().size() != getInputs().size())
    return emitOpError("has ") << getInputs().size() << " operands but dims for " << getOperandDims().size();
  if (getResults().empty())
    return emitOpError("needs a result");
  Type first = getResults().front().getType();
  auto space = llvm::cast<RankedTensorType>(first).getShape();
  for (Value result : getResults())
    if (llvm::cast<RankedTensorType>(result.getType()).getShape() != space)
      return emitOpError("has results of types ") << first << " and " << result.getType() << ", which differ in shape";
  for (auto [index, attribute, input] : llvm::enumerate(getOperandDims(), getInputs())) {
    auto dims = llvm::dyn_cast<DenseI64ArrayAttr>(attribute);
    auto shape = llvm::cast<RankedTensorType>(input.getType()).getShape();
    if (!dims || dims.size() != static_cast<int64_t>(shape.size()))
      return emitOpError("needs one dim of the iteration space for each dim of operand ")
             << index << ", " << input.getType() << ", but has " << attribute;
    int64_t last = -1;
    for (auto [dim, size] : llvm::zip_equal(dims.asArrayRef(), shape)) {
      if (dim <= last || dim >= static_cast<int64_t>(space.size()))
        return emitOpError("has dims ") << attribute << " of operand " << index
                                        << ", which must increase and be dims of the iteration space of " << first;
      if (space[dim] != size)
        return emitOpError("has operand ") << index << " with " << size << " elements along dim " << dim
                                           << " of the iteration space, which has " << space[dim];
      last = dim;
    }
  }
  return success();
}

/// Checks that the scalar function of that name exists and has the element types of the operands and results.
static LogicalResult verifyScalarFunction(Operation *op, FlatSymbolRefAttr name, TypeRange inputs, TypeRange results,
                                          SymbolTableCollection &tables) {
  auto function = tables.lookupNearestSymbolFrom<func::FuncOp>(op, name);
  if (!function || !function->hasAttr(kScalarFunctionAttr))
    return op->emitOpError("names ") << name << ", which is no scalar function of the program";
  auto agree = [](TypeRange scalars, TypeRange shaped) {
    return scalars.size() == shaped.size() && llvm::all_of(llvm::zip_equal(scalars, shaped), [](auto pair) {
             return std::get<0>(pair) == llvm::cast<ShapedType>(std::get<1>(pair)).getElementType();
           });
  };
  if (!agree(function.getArgumentTypes(), inputs) || !agree(function.getResultTypes(), results))
    return op->emitOpError("operands or results do not fit ") << name << " of type " << function.getFunctionType();
  return success();
}

LogicalResult MapOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyScalarFunction(*this, getFunctionAttr(), getInputs().getTypes(), getResults().getTypes(), tables);
}

LogicalResult LaunchMapOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyKernelStream(*this, getStreamAttr(), /*kernel=*/nullptr, tables)))
    return failure();
  return verifyScalarFunction(*this, getFunctionAttr(), getIns().getTypes(), getOuts().getTypes(), tables);
}

LogicalResult LaunchMapOp::verify() {
  if (getOuts().empty())
    return emitOpError("writes nothing");
  Type space = getOuts().front().getType();
  for (Type type : llvm::concat<Type>(getIns().getTypes(), getOuts().getTypes()))
    if (failed(verifyCompatibleShape(type, space)))
      return emitOpError("has buffers of types ") << type << " and " << space << ", which differ in shape";
  return success();
}

LogicalResult LaunchCollectiveOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!tables.lookupNearestSymbolFrom<CommunicatorOp>(*this, getCommunicatorAttr()))
    return emitOpError("names ") << getCommunicatorAttr() << ", which is no sched.communicator of the program";
  return success();
}

/// Checks the buffers of an exchange of rows.
static LogicalResult verifyRowCommand(LaunchCollectiveOp op) {
  bool gathers = op.getKind() == CollectiveKind::gather_rows;
  size_t results = gathers ? 2 : 3;
  if (op.getIns().size() != 2 || op.getOuts().size() != results)
    return op.emitOpError("moves ") << op.getIns().size() << " values to " << op.getOuts().size()
                                    << "; it reads rows and choices and fills rows and a scratch"
                                    << (gathers ? "" : ", and overwrites the rows that it reads");
  if (!gathers && op.getOuts()[2] != op.getIns()[0])
    return op.emitOpError("overwrites other rows than it reads");
  auto typeOf = [](Value value) { return cast<MemRefType>(value.getType()); };
  MemRefType whole = typeOf(gathers ? op.getOuts()[0] : op.getIns()[0]),
             part = typeOf(gathers ? op.getIns()[0] : op.getOuts()[0]), choices = typeOf(op.getIns()[1]),
             scratch = typeOf(op.getOuts()[1]);
  if (failed(verifyRows(op, whole, part, choices, *op.getExperts())))
    return failure();
  int64_t needed = windlass::rt::detail::row_scratch_elements(
      whole.getDimSize(0) / part.getDimSize(0), part.getDimSize(0), choices.getDimSize(1), part.getDimSize(1),
      windlass::getElementBytes(part.getElementType()));
  if (scratch.getNumElements() < needed || scratch.getElementType() != part.getElementType())
    return op.emitOpError("has a scratch of ") << scratch << "; it needs " << needed << " elements of the rows' type";
  return success();
}

LogicalResult LaunchCollectiveOp::verify() {
  if (exchangesRows() != getExperts().has_value())
    return emitOpError(exchangesRows() ? "does not say how many experts there are, as an exchange of rows must"
                                       : "says how many experts there are, as only an exchange of rows does");
  if (exchangesRows() && getDestinations())
    return emitOpError("says where members send to, as only a permute does");
  if (exchangesRows())
    return verifyRowCommand(*this);
  if (failed(verifyPairs(*this, getIns().size(), getOuts().size())))
    return failure();
  bool joins = getKind() == CollectiveKind::all_gather || getKind() == CollectiveKind::reduce_scatter;
  if (getIns().size() > 1 && !joins)
    return emitOpError("moves ") << getIns().size()
                                 << " values, but only an all_gather or a reduce_scatter may move several";
  if (getKind() == CollectiveKind::all_reduce && getIns() != getOuts())
    return emitOpError("an all_reduce works in place: its two buffers must be one");
  bool isPermute = getKind() == CollectiveKind::permute;
  if (isPermute != getDestinations().has_value())
    return emitOpError(isPermute ? "does not say where members send to, as a permute must"
                                 : "says where members send to, as only a permute does");
  if (getDestinations() && !isPermutation(*getDestinations()))
    return emitOpError("sends to ") << getDestinationsAttr() << ": every member must receive from one member";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyKernelStream(*this, getStreamAttr(), &getRow(), tables);
}

KernelArity LaunchOp::getArity() {
  size_t terms = getRow().hasTerms() ? getSettings().contains("terms") ? getIntegerSetting("terms") : 2 : 0;
  return {getIns().size(), getOuts().size(), terms};
}

int64_t LaunchOp::getIntegerSetting(llvm::StringRef name) {
  auto value = getSettings().getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

/// Identifies the elements that a buffer names: buffers with one key name the same elements in the same order. None
/// where a buffer has no elements.
using BufferKey = std::tuple<const void *, int64_t, const void *>;
static std::optional<BufferKey> getKey(Value buffer) {
  auto type = llvm::cast<MemRefType>(buffer.getType());
  if (type.hasStaticShape() && type.getNumElements() == 0)
    return std::nullopt;
  if (!buffer.getDefiningOp<BufferOp>())
    return BufferKey(buffer.getAsOpaquePointer(), 0, nullptr);
  Place place = getPlace(buffer);
  return BufferKey(place.arena.getAsOpaquePointer(), place.offset, type.getAsOpaquePointer());
}

/// Checks buffers that are the same; sched-verify-commands also checks those that share some bytes only.
LogicalResult LaunchOp::verify() {
  const KernelRow &row = getRow();
  KernelArity arity = getArity();
  if (getAccumulate() && getAccumulateAfterFirst())
    return emitOpError("accumulate and accumulate_after_first exclude each other");
  if (row.hasTerms() && arity.terms != 2 && arity.terms != 3)
    return emitOpError("kernel '") << row.name << "' adds 2 or 3 terms up, not " << getIntegerSetting("terms");
  if (!row.takes(arity)) {
    InFlightDiagnostic diagnostic = emitOpError("kernel '") << row.name << "'";
    if (row.hasTerms())
      diagnostic << " of " << arity.terms << " terms";
    return diagnostic << " does not take " << arity.operands << " operands and " << arity.results << " results";
  }
  auto kind = getSettings().getAs<train::ReductionKindAttr>("kind");
  bool isSum = !kind || kind.getValue() == train::ReductionKind::sum;
  if ((getAccumulate() || getAccumulateAfterFirst()) &&
      (!row.canAccumulate() || (row.accumulation == Accumulation::sums && !isSum)))
    return emitOpError("kernel '") << row.name << "' cannot add to its result";

  auto ins = llvm::map_to_vector(getIns(), getKey), outs = llvm::map_to_vector(getOuts(), getKey);
  for (auto [o, out] : llvm::enumerate(outs)) {
    if (std::optional<size_t> replaced = row.getReplaced(arity, o); replaced && ins[*replaced] != out)
      return emitOpError("kernel '") << row.name << "' works in place: its result " << o << " must be its operand "
                                     << *replaced;
    if (!out)
      continue;
    for (auto [i, in] : llvm::enumerate(ins))
      if (in == out && !row.mayWriteOver(arity, i, o))
        return emitOpError("writes over its operand ") << i << ", which it may not do in place";
    for (auto [other, earlier] : llvm::enumerate(ArrayRef(outs).take_front(o)))
      if (earlier == out)
        return emitOpError("writes results ") << other << " and " << o << " to the same bytes";
  }
  return success();
}

LogicalResult ScheduleOp::verify() {
  for (Attribute attribute : getActions())
    if (!llvm::isa<ActionAttr>(attribute))
      return emitOpError("holds ") << attribute << " instead of a #sched.action";
  if (llvm::Error error = getActionTable(*this).takeError())
    return emitOpError(llvm::toString(std::move(error)));
  return success();
}
