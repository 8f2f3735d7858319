#include "StepEmitter.h"

#include "Kernels.h"

#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Target/Cpp/StepSignature.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <set>

using namespace mlir;
using namespace windlass;
using cpp::Label;
using cpp::RuntimeCalls;
using cpp::View;

static std::string blockName(size_t i) { return "block_" + std::to_string(i); }
static std::string rowsName(size_t i) { return blockName(i) + "_rows"; }

/// The name, in every function, of the object that makes views.
static constexpr char kViewsName[] = "at";
static cpp::Views views() { return cpp::Views(kViewsName); }

/// The body of a C++ function that is being written, and the parameters and values that it needs.
struct StepEmitter::Scope {
  /// `adds`: whether what accumulates after the first micro-batch adds; none: it is a parameter.
  explicit Scope(std::optional<bool> adds, const RepeatedBlock *block = nullptr) : knownAdds(adds), block(block) {}

  /// A parameter or a value made of one, which the function then has.
  template <class T> cpp::Expr<T> use(llvm::StringRef name) {
    used.insert(name);
    return cpp::Expr<T>(name.str());
  }
  cpp::Context context() { return use<rt::context>(cpp::kContextName); }
  cpp::Row row() { return use<const std::int64_t *>(cpp::kRowName); }
  cpp::Expr<rt::slot_places> ownSlots() { return use<rt::slot_places>(cpp::kOwnSlotsName); }
  cpp::Expr<bool> adds() { return knownAdds ? cpp::boolean(*knownAdds) : use<bool>(cpp::kAddsName); }

  std::vector<std::string> body;
  RuntimeCalls calls{body};
  llvm::StringSet<> used;
  bool usesBuffers = false;
  std::set<int64_t> streams;
  std::optional<bool> knownAdds;
  const RepeatedBlock *block;
  size_t place = 0; // in the block's columns
};

StepEmitter::StepEmitter(sched::ProgramOp program, llvm::ArrayRef<func::FuncOp> functions,
                         const llvm::StringMap<std::string> &functors, const Constants &constants)
    : program(program), functions(functions), functors(functors), constants(constants), contents(program, functions),
      streams(program), arenas(program) {
  for (auto [i, communicator] : llvm::enumerate(program.getOps<sched::CommunicatorOp>()))
    communicators[communicator.getName()] = static_cast<int64_t>(i);
}

LogicalResult StepEmitter::emitStep() {
  Repeats repeats(functions, arenas);
  for (auto [i, block] : llvm::enumerate(repeats.getBlocks())) {
    emitRows(block, i);
    if (failed(emitBlock(block, i)))
      return failure();
  }
  for (func::FuncOp function : functions)
    if (failed(emitFunction(function, repeats)))
      return failure();
  return success();
}

LogicalResult StepEmitter::emitCommands() {
  for (auto [i, source] : llvm::enumerate(functions)) {
    func::FuncOp function = source; // its accessors are not const
    RepeatedBlock block;
    std::map<int64_t, int> columns;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<sched::BufferOp>(op))
        continue;
      block.commands.push_back(&op);
      for (int64_t number : numbersOf(&op))
        block.columns.push_back(columns.try_emplace(number, columns.size()).first->second);
    }
    if (failed(emitBlock(block, i)))
      return failure();
  }
  return success();
}

void StepEmitter::emitRows(const RepeatedBlock &block, size_t index) {
  size_t columns = std::max<size_t>(block.rows.front().size(), 1);
  rows.push_back("constexpr std::int64_t " + rowsName(index) + "[][" + std::to_string(columns) + "] = {");
  for (auto [row, label] : llvm::zip_equal(block.rows, block.labels))
    rows.push_back("    " + (row.empty() ? "{0}" : cpp::listText(row)) + ", // " + label.getText());
  rows.push_back("};");
}

/// Returns the column of the block's next number; -1 for a number that is written where it is used.
int StepEmitter::nextColumn(Scope &scope) { return scope.block ? scope.block->columns[scope.place++] : -1; }

BufferPlace StepEmitter::placeOf(Scope &scope, Value buffer) {
  // Commands that are measured by themselves share an arena.
  sched::Place place = sched::getPlace(buffer);
  sched::ArenaTable::Area area = arenas.find(place.arena).value_or(sched::ArenaTable::Area());
  int column = nextColumn(scope);
  scope.context();
  scope.usesBuffers = true;
  if (area.slots)
    scope.ownSlots();
  if (column >= 0)
    scope.row();
  return {area.arena, column < 0 ? place.offset : column, column >= 0, area.slots != nullptr,
          area.slots && area.slots.getHanded()};
}

cpp::Event StepEmitter::eventOf(Scope &scope, int64_t event) {
  int column = nextColumn(scope);
  return column >= 0 ? RuntimeCalls::rowEvent(scope.context(), scope.row(), column)
                     : RuntimeCalls::eventOf(scope.context(), event);
}

/// Returns `compute` or, for a kind that may have several streams, the kind with the stream's number.
static std::string streamName(const sched::StreamTable &streams, int64_t number) {
  std::string kind = stringifyStreamKind(streams.getKind(number)).str();
  return streams.getKind(number) == sched::StreamKind::compute ? kind : kind + "_" + std::to_string(number);
}

cpp::Stream StepEmitter::streamOf(Scope &scope, Operation *command) {
  int64_t number = streams.getNumber(command);
  scope.context();
  scope.streams.insert(number);
  return cpp::Stream(streamName(streams, number));
}

/// Calls `use` with the name of an operand's buffer, whose type says in what its place is.
template <class Function> auto StepEmitter::withBuffer(Scope &scope, OpOperand &operand, Function use) {
  auto type = cast<MemRefType>(operand.get().getType());
  BufferPlace place = placeOf(scope, operand.get());
  Label holds = contents.getLabel(operand);
  if (place.isInSlot)
    return place.isColumn ? use(buffers.get<rt::slot_row_place>(place, type, holds))
                          : use(buffers.get<rt::slot_place>(place, type, holds));
  return place.isColumn ? use(buffers.get<rt::row_place>(place, type, holds))
                        : use(buffers.get<rt::place>(place, type, holds));
}

View StepEmitter::viewOf(Scope &scope, OpOperand &operand) {
  return withBuffer(scope, operand, [](const auto &buffer) { return RuntimeCalls::at(views(), buffer); });
}

cpp::Pairs StepEmitter::pairsOf(Scope &scope, sched::LaunchCollectiveOp op) {
  std::vector<std::string> names; // of the buffers that are read, then of those that are filled
  for (OpOperand &operand : op->getOpOperands())
    names.push_back(withBuffer(scope, operand, [](const auto &buffer) { return buffer.text; }));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0, count = op.getIns().size(); i < count; ++i)
    pairs.push_back({names[count + i], names[i]});
  return RuntimeCalls::pairsAt(views(), buffers.getPairs(pairs));
}

llvm::SmallVector<View> StepEmitter::viewsOf(Scope &scope, MutableOperandRange operands) {
  llvm::SmallVector<View> views;
  for (OpOperand &operand : operands)
    views.push_back(viewOf(scope, operand));
  return views;
}

/// Emits commands; those that belong to the last run of a function only are put behind a condition.
LogicalResult StepEmitter::emitCommands(Scope &scope, llvm::ArrayRef<Operation *> commands) {
  auto isInLast = [](Operation *command) { return command->hasAttr(sched::kInLastAttr); };
  for (size_t i = 0; i < commands.size();) {
    if (!isInLast(commands[i])) {
      if (failed(emitCommand(scope, commands[i++])))
        return failure();
      continue;
    }
    scope.calls.beginIf(scope.use<bool>(cpp::kIsLastName));
    for (; i < commands.size() && isInLast(commands[i]); ++i)
      if (failed(emitCommand(scope, commands[i])))
        return failure();
    scope.calls.endIf();
  }
  return success();
}

LogicalResult StepEmitter::emitCommand(Scope &scope, Operation *command) {
  scope.calls.setLabel(getOperator(command));
  return llvm::TypeSwitch<Operation *, LogicalResult>(command)
      .Case([&](sched::LaunchOp op) { return emitLaunch(scope, op); })
      .Case([&](sched::LaunchMapOp op) { return emitMap(scope, op); })
      .Case([&](sched::LaunchCollectiveOp op) { return emitCollective(scope, op); })
      .Case([&](sched::RecordOp op) {
        scope.calls.recordEvent(streamOf(scope, op), eventOf(scope, op.getEvent()));
        return success();
      })
      .Case([&](sched::WaitOp op) {
        scope.calls.waitEvent(streamOf(scope, op), eventOf(scope, op.getEvent()));
        return success();
      })
      .Default([](Operation *op) { return op->emitOpError("is no command of level L5"); });
}

LogicalResult StepEmitter::emitLaunch(Scope &scope, sched::LaunchOp op) {
  if (auto update = sched::getUpdateOperands(op); update && update->parameters > 1)
    return emitUpdates(scope, op, *update);
  if (op.getKernel() == sched::KernelKind::square_sum && op.getIns().size() > 1)
    return emitSquares(scope, op);
  auto ins = viewsOf(scope, op.getInsMutable()), outs = viewsOf(scope, op.getOutsMutable());
  if (sched::isOfDisk(streams.getKind(streams.getNumber(op)))) {
    scope.calls.copyDisk(scope.context(), streamOf(scope, op), outs[0], ins[0]);
    return success();
  }
  return emitKernel(scope.calls, {op, scope.context(), streamOf(scope, op), ins, outs, accumulateOf(scope, op),
                                  constants.getTable(op)});
}

cpp::Expr<bool> StepEmitter::accumulateOf(Scope &scope, sched::LaunchOp op) {
  return op.getAccumulateAfterFirst() ? scope.adds() : cpp::boolean(op.getAccumulate());
}

BufferPlace StepEmitter::placeInTable(Scope &scope, Value buffer, TablePlaces &seen) {
  BufferPlace place = placeOf(scope, buffer);
  (place.isColumn ? seen.hasColumns : seen.hasOffsets) = true;
  return place;
}

/// Checks that one table can have the places of a launch's buffers; `things` are what the launch takes several of.
/// Those of its operands that are gradients have elements of type `gradients`, all others of f32.
LogicalResult StepEmitter::checkTable(sched::LaunchOp op, llvm::StringRef things, const TablePlaces &places,
                                      Type gradients, llvm::function_ref<bool(size_t)> isGradient) {
  if (!gradients.isF32() && !gradients.isBF16())
    return op.emitOpError("of several ") << things << " takes gradients in f32 or bf16, not in " << gradients;
  for (auto [i, in] : llvm::enumerate(op.getIns())) {
    auto type = cast<MemRefType>(in.getType());
    Type element = isGradient(i) ? gradients : Float32Type::get(op.getContext());
    if (type.getElementType() != element)
      return op.emitOpError("of several ") << things << " needs them in " << element << ", but one is " << type;
  }
  for (Value buffer : op->getOperands()) {
    if (!cast<MemRefType>(buffer.getType()).getLayout().isIdentity())
      return op.emitOpError("of several ") << things << " needs them dense, but one is " << buffer.getType();
    if (isInSlot(buffer, arenas))
      return op.emitOpError("of several ") << things << " must not work on what is in a slot";
  }
  if (places.hasColumns && places.hasOffsets)
    return op.emitOpError("of several ") << things << " must not be part of a repeated block";
  return success();
}

/// Emits a sum of several gradients' squares: a table has their places.
LogicalResult StepEmitter::emitSquares(Scope &scope, sched::LaunchOp op) {
  TablePlaces places;
  std::vector<GradientPlace> gradients;
  for (OpOperand &operand : op.getInsMutable())
    gradients.push_back({cast<MemRefType>(operand.get().getType()).getNumElements(),
                         placeInTable(scope, operand.get(), places), contents.getLabel(operand)});
  View sum = viewOf(scope, op.getOutsMutable()[0]);
  Type element = getElementTypeOrSelf(op.getIns()[0]);
  if (failed(checkTable(op, "gradients", places, element, [](size_t) { return true; })))
    return failure();
  cpp::Gradients all = places.hasColumns
                           ? RuntimeCalls::gradientsAt(views(), element, buffers.addGradients<rt::row_place>(gradients))
                           : RuntimeCalls::gradientsAt(views(), element, buffers.addGradients<rt::place>(gradients));
  scope.calls.squareSumList(streamOf(scope, op), sum, all, accumulateOf(scope, op));
  return success();
}

/// Emits an optimizer step for several parameters: a table has the places of their buffers.
LogicalResult StepEmitter::emitUpdates(Scope &scope, sched::LaunchOp op, const sched::UpdateOperands &its) {
  TablePlaces seen;
  std::vector<ParameterPlaces> parameters(its.parameters);
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    size_t first = i * its.operands;
    parameter.elements = cast<MemRefType>(op.getIns()[first].getType()).getNumElements();
    parameter.label = contents.getLabel(op.getInsMutable()[first]);
    BufferPlace *places[] = {&parameter.weight, &parameter.average, &parameter.squares, &parameter.gradient};
    for (auto [k, place] : llvm::enumerate(places))
      *place = placeInTable(scope, op.getIns()[first + k], seen);
  }
  llvm::SmallVector<View> scalars;
  for (unsigned i = its.parameters * its.operands; i < op.getIns().size(); ++i)
    scalars.push_back(viewOf(scope, op.getInsMutable()[i]));
  for (auto [out, buffer] : llvm::enumerate(op.getOuts())) {
    BufferPlace place = placeInTable(scope, buffer, seen);
    if (!op.getReplaced(out))
      parameters[out / its.results].rounded = place;
  }
  constexpr size_t kGradient = 3; // among the operands of a parameter
  Type gradients = getElementTypeOrSelf(op.getIns()[kGradient]);
  auto isGradient = [&](size_t in) { return in < its.parameters * its.operands && in % its.operands == kGradient; };
  if (failed(checkTable(op, "parameters", seen, gradients, isGradient)))
    return failure();
  Type rounded = cast<MemRefType>(op.getOuts()[its.isRounded() ? its.updated : 0].getType()).getElementType();
  cpp::Parameters all =
      seen.hasColumns
          ? RuntimeCalls::parametersAt(views(), rounded, gradients, buffers.addParameters<rt::row_place>(parameters))
          : RuntimeCalls::parametersAt(views(), rounded, gradients, buffers.addParameters<rt::place>(parameters));
  scope.calls.adamwList(streamOf(scope, op), all, scalars, getDecayMode(op));
  return success();
}

LogicalResult StepEmitter::emitMap(Scope &scope, sched::LaunchMapOp op) {
  auto ins = viewsOf(scope, op.getInsMutable()), outs = viewsOf(scope, op.getOutsMutable());
  auto functor = functors.find(op.getFunction());
  if (functor == functors.end())
    return op.emitOpError("names no scalar function");
  bool isOnHost = streams.getKind(streams.getNumber(op)) == sched::StreamKind::host;
  std::string name = isOnHost ? "on_host<" + functor->second + ">" : functor->second;
  if (op.getAccumulateAfterFirst())
    scope.calls.mapAdding(name, streamOf(scope, op), scope.adds(), outs, ins);
  else
    scope.calls.map(name, streamOf(scope, op), outs, ins);
  return success();
}

static rt::reduction reductionOf(train::ReductionKind kind) {
  switch (kind) {
  case train::ReductionKind::max:
    return rt::reduction::max;
  case train::ReductionKind::min:
    return rt::reduction::min;
  case train::ReductionKind::sum:
    break;
  }
  return rt::reduction::sum;
}

LogicalResult StepEmitter::emitCollective(Scope &scope, sched::LaunchCollectiveOp op) {
  cpp::Stream stream = streamOf(scope, op);
  cpp::Communicator communicator =
      RuntimeCalls::communicatorOf(scope.context(), communicators.lookup(op.getCommunicator()));
  if (op.exchangesRows()) {
    llvm::SmallVector<View> ins = viewsOf(scope, op.getInsMutable()), outs = viewsOf(scope, op.getOutsMutable());
    auto experts = static_cast<int64_t>(*op.getExperts());
    if (op.getKind() == sched::CollectiveKind::gather_rows)
      scope.calls.gatherRows(stream, communicator, outs[0], outs[1], ins[0], ins[1], experts);
    else
      scope.calls.scatterRows(stream, communicator, outs[0], outs[1], ins[0], ins[1], experts);
    return success();
  }
  if (op.getIns().size() > 1) {
    cpp::Pairs pairs = pairsOf(scope, op);
    if (op.getKind() == sched::CollectiveKind::all_gather)
      scope.calls.allGatherList(stream, communicator, pairs);
    else
      scope.calls.reduceScatterList(stream, communicator, pairs);
    return success();
  }
  View in = viewOf(scope, op.getInsMutable()[0]), out = viewOf(scope, op.getOutsMutable()[0]);
  switch (op.getKind()) {
  case sched::CollectiveKind::all_reduce:
    scope.calls.allReduce(stream, communicator, out, reductionOf(op.getReduction()));
    break;
  case sched::CollectiveKind::all_gather:
    scope.calls.allGather(stream, communicator, out, in);
    break;
  case sched::CollectiveKind::reduce_scatter:
    scope.calls.reduceScatter(stream, communicator, out, in);
    break;
  case sched::CollectiveKind::all_to_all:
    scope.calls.allToAll(stream, communicator, out, in);
    break;
  case sched::CollectiveKind::permute:
    scope.calls.permute(stream, communicator, out, in, *op.getDestinations());
    break;
  case sched::CollectiveKind::gather_rows:
  case sched::CollectiveKind::scatter_rows:
    llvm_unreachable("rows are exchanged by calls of their own");
  }
  return success();
}

/// Declares a stream, with its purpose as a comment.
void StepEmitter::declareStream(RuntimeCalls &calls, int64_t number) const {
  Label label;
  auto add = [&](const Label &part) { label = (label.empty() ? Label("collectives over ") : label + " x ") + part; };
  for (sched::CommunicatorOp communicator : const_cast<sched::ProgramOp &>(program).getOps<sched::CommunicatorOp>()) {
    if (streams.getNumber(communicator) != number)
      continue;
    for (auto axis : communicator.getAxes().getAsRange<StringAttr>())
      add(Label::ofName(axis.getValue()));
    if (std::string positions = sched::describePositions(communicator); !positions.empty())
      add(Label::ofName(positions));
  }
  calls.setLabel(label);
  calls.declareStream(streamName(streams, number), cpp::Context(cpp::kContextName), number);
}

/// Returns the place of a micro-batch's slot, by the parameter with its number; slot 0 without such a parameter.
cpp::Expr<rt::place> StepEmitter::slotPlace(Scope &scope, const cpp::Signature &signature, sched::SlotsOp slots,
                                            llvm::StringRef parameter) const {
  sched::ArenaTable::Area area = *arenas.find(slots.getSymNameAttr());
  cpp::Expr<std::int64_t> slot = signature.has(parameter) ? scope.use<std::int64_t>(parameter) : cpp::int64(0);
  return RuntimeCalls::placeOfSlot(cpp::placeAt(area.arena, area.offset), static_cast<int64_t>(slots.getBytes()), slot);
}

/// Writes the function around its body: the parameters that it does not use are marked, and what it uses is declared.
/// `chunk` is its own; none for a block, which is given its slots.
void StepEmitter::finish(Scope &scope, const cpp::Signature &signature, const Label &label,
                         std::optional<int64_t> chunk) {
  std::vector<std::string> begin;
  RuntimeCalls declarations(begin);
  bool usesSlots = scope.used.contains(cpp::kOwnSlotsName);
  if (usesSlots && chunk) {
    cpp::Expr<rt::place> own = slotPlace(scope, signature, sched::getSlots(program, *chunk), cpp::kSlotName);
    sched::SlotsOp handed = sched::getHandedSlots(program, *chunk);
    std::optional<cpp::Expr<rt::place>> handedPlace;
    if (handed && signature.has(cpp::kHandedSlotName))
      handedPlace = slotPlace(scope, signature, handed, cpp::kHandedSlotName);
    declarations.define(cpp::kOwnSlotsName, RuntimeCalls::slotsAt(own, handedPlace));
  }
  if (scope.usesBuffers)
    declarations.declareViews(kViewsName, scope.context(),
                              scope.used.contains(cpp::kRowName) ? std::optional(scope.row()) : std::nullopt,
                              usesSlots ? std::optional(scope.ownSlots()) : std::nullopt);
  for (int64_t number : scope.streams)
    declareStream(declarations, number);
  if (!label.empty())
    lines.push_back("// " + label.getText());
  lines.push_back(signature.getText([&](llvm::StringRef name) { return scope.used.contains(name); }) + " {");
  llvm::append_range(lines, begin);
  llvm::append_range(lines, scope.body);
  lines.push_back("  return ok_status();");
  lines.push_back("}");
  lines.push_back("");
}

/// Whether some of the block's commands run in the last run only.
static bool hasLast(const RepeatedBlock &block) {
  return llvm::any_of(block.commands, [](Operation *command) { return command->hasAttr(sched::kInLastAttr); });
}

LogicalResult StepEmitter::emitBlock(const RepeatedBlock &block, size_t index) {
  Scope scope(/*adds=*/std::nullopt, &block);
  if (failed(emitCommands(scope, block.commands)))
    return failure();
  Label label;
  if (!block.labels.empty())
    label = "Labels are those of " + block.labels.front() + ".";
  finish(scope, cpp::getBlockSignature(blockName(index), block.hasSlot, hasLast(block)), label, std::nullopt);
  return success();
}

/// Emits the calls of a block with the rows of successive instances, which follow each other.
void StepEmitter::callBlock(Scope &scope, llvm::ArrayRef<Instance> instances, bool hasSlot, bool hasLast) {
  const Instance &first = instances.front(), &last = instances.back();
  auto call = [&](const std::string &row) {
    llvm::SmallVector<std::string> arguments = {scope.context().text, rowsName(first.block) + "[" + row + "]"};
    if (hasSlot)
      arguments.push_back(scope.ownSlots().text);
    arguments.push_back(scope.adds().text);
    if (hasLast)
      arguments.push_back(scope.use<bool>(cpp::kIsLastName).text);
    return cpp::Expr<rt::status>(RuntimeCalls::callText(blockName(first.block), arguments));
  };
  scope.calls.setLabel(instances.size() == 1 ? first.label : first.label + " to " + last.label);
  if (instances.size() == 1)
    scope.calls.check(call(std::to_string(first.row)));
  else
    scope.calls.checkEach("i", first.row, last.row, call("i"));
}

LogicalResult StepEmitter::emitFunction(func::FuncOp source, Repeats &repeats) {
  bool isBackward = sched::isOfBackward(sched::getStep(source).getRole());
  bool accumulates = isBackward || sched::hasRole(source, sched::StepRole::forward);
  Scope scope(accumulates ? std::nullopt : std::optional(false));
  llvm::ArrayRef<Instance> instances = repeats.instancesOf(source);
  while (!instances.empty()) {
    const Instance &first = instances.front();
    auto inLast = llvm::find_if(first.commands, [](Operation *op) { return op->hasAttr(sched::kInLastAttr); });
    bool hasLast = inLast != first.commands.end();
    if (hasLast && !isBackward)
      return (*inLast)->emitOpError("is marked ") << sched::kInLastAttr << " outside of a backward";
    size_t count = 1;
    if (first.block < 0) {
      if (failed(emitCommands(scope, first.commands)))
        return failure();
    } else {
      while (count < instances.size() && instances[count].block == first.block &&
             instances[count].row == first.row + static_cast<int>(count))
        ++count;
      callBlock(scope, instances.take_front(count), repeats.getBlocks()[first.block].hasSlot, hasLast);
    }
    instances = instances.drop_front(count);
  }
  sched::StepAttr step = sched::getStep(source);
  finish(scope, cpp::getStepSignature(step), {}, step.getChunk());
  return success();
}
