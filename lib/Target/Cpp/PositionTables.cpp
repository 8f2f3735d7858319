#include "PositionTables.h"

#include "windlass/Dialect/Sched/IR/RunningStatistics.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Target/Cpp/StepSignature.h"
#include "windlass/rt/checkpoint.h"

#include "llvm/ADT/SetVector.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

PositionTables::PositionTables(const ProgramResources &its, const JobEntries &entries, const schedule::Pipeline &step,
                               const ProjectOptions &options, Arrays &arrays)
    : its(its), entries(entries), step(step), options(options), arrays(arrays), program(its.program),
      mesh(program.getMesh()), position(program.getPosition()), arenas(program) {
  llvm::SmallSetVector<int64_t, 4> others;
  for (sched::ResourceOp resource : its.borders)
    others.insert(step.placement.positionOf[*resource.getPeer()]);
  peers = others.takeVector();
  llvm::sort(peers);
}

Expr<rt::span<std::int64_t>> cpp::makeNumbers(Arrays &arrays, llvm::StringRef prefix, llvm::ArrayRef<int64_t> values) {
  Rows<std::int64_t> items;
  for (int64_t value : values)
    items.push_back(int64(value));
  return arrays.shared<std::int64_t>(prefix, items);
}

std::string PositionTables::nameOf(llvm::StringRef table) const {
  return step.positions.size() == 1 ? table.str() : table.str() + "_" + std::to_string(position);
}

static Expr<rt::place> absentPlace() { return named<rt::place>("no_place"); }

Expr<rt::place> PositionTables::placeOf(sched::ResourceOp resource) const {
  auto area = *arenas.find(resource.getArenaAttr().getAttr());
  return placeAt(area.arena, area.offset + static_cast<int64_t>(*resource.getOffset()));
}

Expr<std::int64_t> PositionTables::slotStrideOf(sched::ResourceOp resource) const {
  auto area = *arenas.find(resource.getArenaAttr().getAttr());
  return int64(area.slots ? area.slots.getBytes() : 0);
}

StringAttr PositionTables::weightOf(sched::ResourceOp resource) const {
  StringAttr name = resource.getOfAttr().getAttr();
  auto parameter = program->getParentOfType<ModuleOp>().lookupSymbol<train::ParameterOp>(name);
  return parameter && parameter.getOf() ? parameter.getOfAttr().getAttr() : name;
}

Expr<std::int32_t> PositionTables::parameterOf(sched::ResourceOp resource) const {
  return int32(entries.numberOf(entries.parameters, weightOf(resource)));
}

static Expr<rt::split> makeSplit(int64_t dim, int64_t axis, int64_t blocks) {
  Record<rt::split> cut;
  WINDLASS_SET(cut, dim, int32(dim));
  WINDLASS_SET(cut, axis, int32(axis));
  WINDLASS_SET(cut, blocks, int64(blocks));
  return cut.build();
}

FailureOr<Expr<rt::span<rt::split>>> PositionTables::splitsOf(sched::ResourceOp resource) {
  Rows<rt::split> items;
  int64_t pieces = 1;
  for (auto [dim, layout] : llvm::enumerate(resource.getLayout().getDims())) {
    int64_t major = 1, cuts = 1; // the size of all factors before this one; pieces of the dim
    for (plan::FactorLayoutAttr factor : layout.getFactors()) {
      int64_t blocks = major;
      for (StringAttr axis : factor.getAxes()) {
        items.push_back(makeSplit(dim, mesh.indexOf(axis.getValue()), blocks));
        blocks *= mesh.sizeOf(axis.getValue());
        if (mesh.sizeOf(axis.getValue()) > 1)
          cuts = blocks;
      }
      major *= factor.getSize();
    }
    pieces *= cuts;
    if (pieces > rt::max_pieces)
      return resource.emitOpError("is cut into more than ")
             << rt::max_pieces << " pieces at an inner factor of dim " << dim << "; split an outer one";
  }
  int64_t ranges = 1;
  for (StringAttr axis : resource.getLayout().getFlat()) {
    items.push_back(makeSplit(rt::flat_dim, mesh.indexOf(axis.getValue()), ranges));
    ranges *= mesh.sizeOf(axis.getValue());
  }
  if (ranges > 1 && pieces * ranges * rt::boxes_of_range(resource.getGlobalTensorType().getRank()) > rt::max_pieces)
    return resource.emitOpError("is cut into more than ")
           << rt::max_pieces << " pieces as " << ranges << " flat ranges; split a dim instead";
  return arrays.shared<rt::split>("splits", items);
}

FailureOr<Expr<rt::span<rt::parameter_placement>>> PositionTables::placementTable() {
  Rows<rt::parameter_placement> rows;
  for (sched::ResourceOp resource : its.parameters) {
    sched::ResourceOp master = its.getMaster(resource);
    auto splits = splitsOf(resource), masterSplits = splitsOf(master);
    if (failed(splits) || failed(masterSplits))
      return failure();
    Record<rt::parameter_placement> row;
    WINDLASS_SET(row, parameter, parameterOf(resource));
    WINDLASS_SET(row, type, elementType(resource.getTensorType().getElementType()));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(resource));
    WINDLASS_SET(row, master_splits, *masterSplits);
    WINDLASS_SET(row, master, placeOf(master));
    rows.push_back(row.build());
  }
  return arrays.table<rt::parameter_placement>(nameOf("placements"), rows);
}

FailureOr<Expr<rt::span<rt::input_placement>>> PositionTables::inputPlacementTable() {
  Rows<rt::input_placement> rows;
  for (sched::ResourceOp resource : its.inputs) {
    auto splits = splitsOf(resource);
    if (failed(splits))
      return failure();
    Record<rt::input_placement> row;
    WINDLASS_SET(row, input, int32(entries.numberOf(entries.inputs, getInputName(resource))));
    WINDLASS_SET(row, chunk, int32(resource.getChunkNumber()));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(resource));
    WINDLASS_SET(row, slot_stride, slotStrideOf(resource));
    rows.push_back(row.build());
  }
  return arrays.table<rt::input_placement>(nameOf("input_placements"), rows);
}

FailureOr<Expr<rt::span<rt::message_entry>>> PositionTables::messageTable() {
  Rows<rt::message_entry> rows;
  for (sched::ResourceOp resource : its.borders) {
    auto splits = splitsOf(resource);
    if (failed(splits))
      return failure();
    int64_t peerChunk = *resource.getPeer();
    const auto *peer = llvm::find(peers, step.placement.positionOf[peerChunk]);
    Record<rt::message_entry> row;
    WINDLASS_SET(row, way,
                 resource.getKind() == sched::ResourceKind::sent ? WINDLASS_ENUMERATOR(direction, send)
                                                                 : WINDLASS_ENUMERATOR(direction, receive));
    WINDLASS_SET(row, chunk, int32(resource.getChunkNumber()));
    WINDLASS_SET(row, peer_chunk, int32(peerChunk));
    WINDLASS_SET(row, peer, int32(peer - peers.begin()));
    WINDLASS_SET(row, type, elementType(resource.getTensorType().getElementType()));
    WINDLASS_SET(row, sizes, makeNumbers(arrays, "sizes", resource.getGlobalTensorType().getShape()));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(resource));
    WINDLASS_SET(row, slot_stride, slotStrideOf(resource));
    rows.push_back(row.build());
  }
  return arrays.table<rt::message_entry>(nameOf("messages"), rows);
}

Expr<rt::span<rt::axis>> PositionTables::writeAxes() {
  Rows<rt::axis> rows;
  for (plan::AxisAttr axis : mesh.getAxes()) {
    Record<rt::axis> row;
    WINDLASS_SET(row, name, literal(axis.getName().getValue()));
    WINDLASS_SET(row, size, int32(axis.getSize()));
    WINDLASS_SET(row, role, named<rt::axis_role>("axis_role::" + plan::stringifyAxisRole(axis.getRole())));
    rows.push_back(row.build());
  }
  return arrays.table<rt::axis>(nameOf("axes"), rows);
}

Expr<rt::span<rt::state_entry>> PositionTables::stateTable() {
  Rows<rt::state_entry> rows;
  for (sched::ResourceOp state : its.states) {
    Record<rt::state_entry> row;
    WINDLASS_SET(row, parameter, parameterOf(state));
    WINDLASS_SET(row, suffix, literal(state.getLogicalName().value_or("").rsplit('/').second));
    WINDLASS_SET(row, at, placeOf(state));
    ArrayRef<int64_t> shape = state.getGlobalTensorType().getShape();
    bool isLikeWeight = shape == entries.parameters.lookup(weightOf(state)).resource.getGlobalTensorType().getShape();
    WINDLASS_SET(row, sizes, makeNumbers(arrays, "sizes", isLikeWeight ? ArrayRef<int64_t>() : shape));
    rows.push_back(row.build());
  }
  return arrays.table<rt::state_entry>(nameOf("states"), rows);
}

FailureOr<Expr<rt::span<rt::gradient_entry>>> PositionTables::gradientTable() {
  Rows<rt::gradient_entry> rows;
  for (sched::ResourceOp accumulated : its.gradients) {
    // The table holds gradients; a running statistic accumulates differences from the batch's statistics.
    if (sched::isOfRunningStatistic(accumulated))
      continue;
    sched::ResourceOp gradient = its.getReduced(accumulated);
    auto splits = splitsOf(gradient);
    if (failed(splits))
      return failure();
    Record<rt::gradient_entry> row;
    WINDLASS_SET(row, parameter, parameterOf(gradient));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(gradient));
    WINDLASS_SET(row, type, elementType(gradient.getTensorType().getElementType()));
    rows.push_back(row.build());
  }
  return arrays.table<rt::gradient_entry>(nameOf("gradients"), rows);
}

Expr<rt::span<rt::scalar_entry>> PositionTables::scalarTable() {
  Rows<rt::scalar_entry> rows;
  for (sched::ResourceOp scalar : its.scalars) {
    Record<rt::scalar_entry> row;
    WINDLASS_SET(row, kind, named<rt::scalar>("scalar::" + train::stringifyHyperparameter(*scalar.getScalar())));
    WINDLASS_SET(row, at, placeOf(scalar));
    rows.push_back(row.build());
  }
  return arrays.table<rt::scalar_entry>(nameOf("scalars"), rows);
}

/// Returns the kind of memory in which the runtime has an arena.
static Expr<rt::memory_kind> memoryKindOf(sched::ArenaOp arena) {
  switch (arena.getKind()) {
  case plan::MemoryKind::device:
    return WINDLASS_ENUMERATOR(memory_kind, device);
  case plan::MemoryKind::host:
    return WINDLASS_ENUMERATOR(memory_kind, pinned);
  case plan::MemoryKind::disk:
    return WINDLASS_ENUMERATOR(memory_kind, disk);
  }
  llvm_unreachable("unknown kind of memory");
}

Expr<rt::span<rt::arena_entry>> PositionTables::arenaTable() {
  Rows<rt::arena_entry> rows;
  for (sched::ArenaOp arena : arenas.getArenas()) {
    Record<rt::arena_entry> row;
    WINDLASS_SET(row, kind, memoryKindOf(arena));
    WINDLASS_SET(row, bytes, int64(arena.getBytes()));
    WINDLASS_SET(row, name, literal(stringifyMemoryKind(arena.getKind())));
    rows.push_back(row.build());
  }
  return arrays.table<rt::arena_entry>(nameOf("arenas"), rows);
}

Expr<rt::span<rt::stream_entry>> PositionTables::streamTable() {
  sched::StreamTable streams(program);
  Rows<rt::stream_entry> rows;
  for (int64_t number = 0; number < streams.size(); ++number) {
    Record<rt::stream_entry> row;
    WINDLASS_SET(row, kind,
                 named<rt::stream_kind>("stream_kind::" + sched::stringifyStreamKind(streams.getKind(number))));
    WINDLASS_SET(row, name, literal(streams.getShownName(number)));
    rows.push_back(row.build());
  }
  for (int64_t peer : peers) {
    Record<rt::stream_entry> row;
    WINDLASS_SET(row, kind, WINDLASS_ENUMERATOR(stream_kind, peer));
    WINDLASS_SET(row, name, literal(sched::getMessagesName(peer)));
    rows.push_back(row.build());
  }
  return arrays.table<rt::stream_entry>(nameOf("streams"), rows);
}

Expr<rt::span<rt::communicator_entry>> PositionTables::communicatorTable() {
  sched::StreamTable streams(program);
  Rows<rt::communicator_entry> rows;
  for (auto communicator : program.getOps<sched::CommunicatorOp>()) {
    Rows<std::int32_t> axes;
    for (Attribute axis : communicator.getAxes())
      axes.push_back(int32(mesh.indexOf(cast<StringAttr>(axis).getValue())));
    Record<rt::communicator_entry> row;
    WINDLASS_SET(row, axes, arrays.shared<std::int32_t>("communicator_axes", axes));
    WINDLASS_SET(row, stream, int32(streams.getNumber(communicator)));
    WINDLASS_SET(row, exchanges, boolean(communicator.getExchanges()));
    Rows<std::int32_t> positions;
    for (int64_t member : communicator.getPositions().value_or(ArrayRef<int64_t>()))
      positions.push_back(int32(member));
    WINDLASS_SET(row, positions, arrays.shared<std::int32_t>("communicator_positions", positions));
    rows.push_back(row.build());
  }
  return arrays.table<rt::communicator_entry>(nameOf("communicators"), rows);
}

Expr<rt::span<rt::peer_entry>> PositionTables::peerTable() {
  // The streams of messages follow those of commands.
  int64_t stream = sched::StreamTable(program).size();
  Rows<rt::peer_entry> rows;
  for (int64_t peer : peers) {
    Record<rt::peer_entry> row;
    WINDLASS_SET(row, position, int32(peer));
    WINDLASS_SET(row, stream, int32(stream++));
    rows.push_back(row.build());
  }
  return arrays.table<rt::peer_entry>(nameOf("peers"), rows);
}

std::string PositionTables::functionName(sched::StepRole role, int64_t chunk) const {
  if (!sched::getStepFunction(program, role, chunk))
    return "nullptr";
  auto attribute = sched::StepAttr::get(its.program->getContext(), role, chunk);
  std::string scope = getPositionName(program);
  return (scope.empty() ? scope : scope + "::") + sched::getFunctionName(attribute);
}

Expr<rt::span<rt::chunk_entry>> PositionTables::chunkTable() {
  using Structure = rt::chunk_entry;
  Rows<Structure> rows;
  for (int64_t chunk : sched::getChunks(program)) {
    sched::SlotsOp slots = sched::getSlots(program, chunk);
    Record<Structure> row;
    WINDLASS_SET(row, chunk, int32(chunk));
    WINDLASS_SET(row, slots, int32(slots ? slots.getCount() : 1));
    WINDLASS_SET(row, forward,
                 function<std::remove_pointer_t<decltype(Structure::forward)>>(sched::StepRole::forward, chunk));
    WINDLASS_SET(row, backward,
                 function<std::remove_pointer_t<decltype(Structure::backward)>>(sched::StepRole::backward, chunk));
    WINDLASS_SET(
        row, weight_gradient,
        function<std::remove_pointer_t<decltype(Structure::weight_gradient)>>(sched::StepRole::weight_gradient, chunk));
    WINDLASS_SET(row, reduce,
                 function<std::remove_pointer_t<decltype(Structure::reduce)>>(sched::StepRole::reduce, chunk));
    WINDLASS_SET(row, update,
                 function<std::remove_pointer_t<decltype(Structure::update)>>(sched::StepRole::update, chunk));
    WINDLASS_SET(row, init, function<std::remove_pointer_t<decltype(Structure::init)>>(sched::StepRole::init, chunk));
    WINDLASS_SET(row, evaluate,
                 function<std::remove_pointer_t<decltype(Structure::evaluate)>>(sched::StepRole::evaluate, chunk));
    sched::SlotsOp handed = sched::getHandedSlots(program, chunk);
    WINDLASS_SET(row, handed_slots, int32(handed ? handed.getCount() : 1));
    rows.push_back(row.build());
  }
  return arrays.table<Structure>(nameOf("chunks"), rows);
}

static Expr<rt::action_kind> actionKind(const schedule::StepRow &row) {
  if (row.isRepeat())
    return WINDLASS_ENUMERATOR(action_kind, repeat);
  switch (row.action.kind) {
  case schedule::ActionKind::Forward:
    return WINDLASS_ENUMERATOR(action_kind, forward);
  case schedule::ActionKind::Backward:
  case schedule::ActionKind::InputGradient:
    return WINDLASS_ENUMERATOR(action_kind, backward);
  case schedule::ActionKind::WeightGradient:
    return WINDLASS_ENUMERATOR(action_kind, weight_gradient);
  case schedule::ActionKind::Send:
    return WINDLASS_ENUMERATOR(action_kind, send);
  case schedule::ActionKind::Receive:
    return WINDLASS_ENUMERATOR(action_kind, receive);
  case schedule::ActionKind::Reduce:
    return WINDLASS_ENUMERATOR(action_kind, reduce);
  case schedule::ActionKind::Update:
    return WINDLASS_ENUMERATOR(action_kind, update);
  }
  llvm_unreachable("the switch covers all kinds");
}

static Expr<rt::action> makeAction(const Expr<rt::action_kind> &kind, const schedule::StepRow &each) {
  const schedule::Action &action = each.action;
  Record<rt::action> row;
  WINDLASS_SET(row, kind, kind);
  WINDLASS_SET(row, chunk, int32(action.chunk));
  WINDLASS_SET(row, peer_chunk, int32(action.peerChunk));
  WINDLASS_SET(row, micro_batch, int32(action.microBatch));
  WINDLASS_SET(row, per_turn, int32(each.perTurn));
  WINDLASS_SET(row, slot, int32(action.slot));
  WINDLASS_SET(row, handed_slot, int32(action.handedSlot));
  WINDLASS_SET(row, is_first, boolean(action.isFirst));
  WINDLASS_SET(row, is_last, boolean(action.isLast));
  WINDLASS_SET(row, count, int32(each.count));
  WINDLASS_SET(row, length, int32(each.length));
  return row.build();
}

Expr<rt::span<rt::action>> PositionTables::actionTable() {
  Rows<rt::action> rows;
  // Where what is handed on is in a chunk's other slots, no function reads the number of its own.
  std::set<int64_t> handsOn;
  for (int64_t chunk : sched::getChunks(program))
    if (sched::getHandedSlots(program, chunk))
      handsOn.insert(chunk);
  schedule::Schedule actions = step.positions[position];
  for (schedule::Action &action : actions.actions)
    if (handsOn.count(action.chunk) == 0)
      action.handedSlot = 0;
  for (const schedule::StepRow &each : schedule::makeRows(actions))
    rows.push_back(makeAction(actionKind(each), each));
  return arrays.table<rt::action>(nameOf("actions"), rows);
}

/// The chunks of the first chain in turn, each in slot 0.
Expr<rt::span<rt::action>> PositionTables::evaluationTable() {
  Rows<rt::action> rows;
  const schedule::Placement &placement = step.placement;
  auto add = [&](const Expr<rt::action_kind> &kind, int64_t chunk, int64_t peerChunk) {
    schedule::StepRow row;
    row.action.chunk = chunk;
    row.action.peerChunk = peerChunk;
    rows.push_back(makeAction(kind, row));
  };
  for (std::optional<int64_t> chunk = 0; chunk; chunk = placement.getNext(*chunk)) {
    if (placement.positionOf[*chunk] != position || !sched::getStepFunction(program, sched::StepRole::evaluate, *chunk))
      continue;
    std::optional<int64_t> previous = placement.getPrevious(*chunk), next = placement.getNext(*chunk);
    if (previous && placement.crossesPositions(*previous, *chunk))
      add(WINDLASS_ENUMERATOR(action_kind, receive), *chunk, *previous);
    add(WINDLASS_ENUMERATOR(action_kind, evaluate), *chunk, -1);
    if (next && placement.crossesPositions(*chunk, *next))
      add(WINDLASS_ENUMERATOR(action_kind, send), *chunk, *next);
  }
  return arrays.table<rt::action>(nameOf("evaluation"), rows);
}

Expr<rt::product_choices> PositionTables::products() {
  const ProductChoices *products = options.products;
  if (!products || products->choices.empty())
    return named<rt::product_choices>("{}");
  Rows<rt::product_choice> rows;
  for (const auto &[product, choice] : products->choices) {
    llvm::SmallVector<int64_t> numbers(choice.algorithm.begin(), choice.algorithm.end());
    Record<rt::product_choice> row;
    WINDLASS_SET(row, product, literal(product));
    WINDLASS_SET(row, algorithm, named<rt::product_algorithm>("{" + listText(numbers) + "}"));
    rows.push_back(row.build());
  }
  Record<rt::product_choices> all;
  WINDLASS_SET(all, device, literal(products->device));
  WINDLASS_SET(all, library, literal(products->library));
  WINDLASS_SET(all, choices, arrays.table<rt::product_choice>(nameOf("products"), rows));
  return all.build();
}

Expr<rt::span<rt::attention_choice>> PositionTables::attentions() {
  Rows<rt::attention_choice> rows;
  for (const rt::attention_choice &choice : options.attentions) {
    const rt::attention_shape &its = choice.shape;
    Record<rt::attention_shape> shape;
    WINDLASS_SET(shape, type,
                 its.type == rt::element_type::bf16 ? WINDLASS_ENUMERATOR(element_type, bf16)
                                                    : WINDLASS_ENUMERATOR(element_type, f16));
    WINDLASS_SET(shape, is_gradient, boolean(its.is_gradient));
    WINDLASS_SET(shape, is_causal, boolean(its.is_causal));
    WINDLASS_SET(shape, scale, real(its.scale));
    WINDLASS_SET(shape, batch, int64(its.batch));
    WINDLASS_SET(shape, heads, int64(its.heads));
    WINDLASS_SET(shape, kv_heads, int64(its.kv_heads));
    WINDLASS_SET(shape, queries, int64(its.queries));
    WINDLASS_SET(shape, keys, int64(its.keys));
    WINDLASS_SET(shape, depth, int64(its.depth));
    WINDLASS_SET(shape, value_depth, int64(its.value_depth));
    WINDLASS_SET(shape, strides, its.strides);
    Record<rt::attention_choice> row;
    WINDLASS_SET(row, shape, shape.build());
    WINDLASS_SET(row, workspace_bytes, int64(choice.workspace_bytes));
    rows.push_back(row.build());
  }
  return arrays.table<rt::attention_choice>(nameOf("attentions"), rows);
}

FailureOr<Expr<rt::program>> PositionTables::writeProgram() {
  auto placements = placementTable();
  auto inputs = inputPlacementTable();
  auto gradients = gradientTable();
  auto messages = messageTable();
  if (failed(placements) || failed(inputs) || failed(gradients) || failed(messages))
    return failure();
  int64_t events = 0;
  program.walk([&](sched::RecordOp record) { events = std::max<int64_t>(events, record.getEvent() + 1); });

  Record<rt::program> all;
  WINDLASS_SET(all, arenas, arenaTable());
  WINDLASS_SET(all, scratch_bytes, int64(options.scratchBytes));
  WINDLASS_SET(all, streams, streamTable());
  WINDLASS_SET(all, events, int32(events));
  WINDLASS_SET(all, communicators, communicatorTable());
  WINDLASS_SET(all, peers, peerTable());
  WINDLASS_SET(all, parameters, *placements);
  WINDLASS_SET(all, states, stateTable());
  WINDLASS_SET(all, gradients, *gradients);
  WINDLASS_SET(all, inputs, *inputs);
  WINDLASS_SET(all, messages, *messages);
  WINDLASS_SET(all, scalars, scalarTable());
  WINDLASS_SET(all, loss, its.loss ? placeOf(its.loss) : absentPlace());
  WINDLASS_SET(all, grad_norm, placeOf(its.gradNorm));
  WINDLASS_SET(all, evaluated, its.evaluate ? placeOf(its.evaluate) : absentPlace());
  WINDLASS_SET(all, chunks, chunkTable());
  WINDLASS_SET(all, actions, actionTable());
  WINDLASS_SET(all, evaluation, evaluationTable());
  WINDLASS_SET(all, products, products());
  WINDLASS_SET(all, attentions, attentions());
  return all.buildLines();
}
