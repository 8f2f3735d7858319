#include "windlass/Target/Cpp/ProgramTables.h"

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Support/Printable.h"
#include "windlass/Target/Cpp/Records.h"
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/program.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

#include <limits>

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

namespace {

template <class S> using Rows = llvm::SmallVector<Expr<S>>;

/// Writes the tables by which a program describes itself, for a job of one position.
class Tables {
public:
  Tables(sched::ProgramOp program, const ProjectOptions &options)
      : program(program), module(program->getParentOfType<ModuleOp>()), mesh(program.getMesh()), options(options),
        arenas(program) {}

  FailureOr<std::string> write();

private:
  LogicalResult collect();

  // Expressions for the module's parts. One that fails has emitted its error.
  Expr<rt::span<std::int64_t>> numbers(llvm::StringRef prefix, llvm::ArrayRef<int64_t> values);
  FailureOr<Expr<rt::span<rt::split>>> splitsOf(sched::ResourceOp resource);
  Expr<rt::source> sourceOf(train::ParameterOp parameter);
  Expr<rt::place> placeOf(sched::ResourceOp resource) {
    return placeAt(arenas.find(resource.getArenaAttr().getAttr()).value_or(0), resource.getOffset().value_or(0));
  }
  Expr<std::int32_t> parameterOf(sched::ResourceOp resource);

  // Tables of the job.
  FailureOr<Expr<rt::span<rt::parameter_entry>>> parameterTable();
  Expr<rt::span<rt::input_entry>> inputTable();
  FailureOr<Expr<rt::counted_labels>> labels();
  Expr<rt::span<rt::axis>> axisTable();

  // Tables of the position's program.
  FailureOr<Expr<rt::program>> programRecord();
  FailureOr<Expr<rt::span<rt::parameter_placement>>> placementTable();
  FailureOr<Expr<rt::span<rt::gradient_entry>>> gradientTable();
  FailureOr<Expr<rt::span<rt::input_placement>>> inputPlacementTable();
  Expr<rt::span<rt::state_entry>> stateTable();
  Expr<rt::span<rt::scalar_entry>> scalarTable();
  Expr<rt::span<rt::arena_entry>> arenaTable();
  Expr<rt::span<rt::stream_entry>> streamTable();
  Expr<rt::span<rt::communicator_entry>> communicatorTable();
  Expr<rt::span<rt::chunk_entry>> chunkTable(const schedule::Schedule &step);
  Expr<rt::span<rt::action>> actionTable(const schedule::Schedule &step);
  Expr<rt::product_choices> products();
  Expr<rt::attention_choices> attentions();
  template <class F> Expr<F *> function(sched::StepRole role, int64_t chunk = 0) {
    return named<F *>(sched::getFunctionName(sched::StepAttr::get(module.getContext(), role, chunk)));
  }

  sched::ProgramOp program;
  ModuleOp module;
  plan::MeshAttr mesh;
  const ProjectOptions &options;
  sched::ArenaTable arenas;
  Arrays arrays;
  llvm::MapVector<StringAttr, size_t> parameterIndex;
  /// The masters and the reduced gradients by parameter, where they are resources of their own.
  llvm::DenseMap<StringAttr, sched::ResourceOp> masters, reduced;
  llvm::SmallVector<sched::ResourceOp> parameters, states, gradients, inputs, scalars;
  sched::ResourceOp loss, gradNorm, evaluate;
};

LogicalResult Tables::collect() {
  for (auto resource : program.getOps<sched::ResourceOp>()) {
    if (!resource.getOffset() || !arenas.find(resource.getArenaAttr().getAttr()))
      return resource.emitOpError("has no place in an arena");
    switch (resource.getKind()) {
    case sched::ResourceKind::parameter:
      parameterIndex[resource.getOfAttr().getAttr()] = parameters.size();
      parameters.push_back(resource);
      break;
    case sched::ResourceKind::state:
      states.push_back(resource);
      break;
    case sched::ResourceKind::gradient:
      gradients.push_back(resource);
      break;
    case sched::ResourceKind::input:
      inputs.push_back(resource);
      break;
    case sched::ResourceKind::scalar:
      scalars.push_back(resource);
      break;
    case sched::ResourceKind::loss:
      loss = resource;
      break;
    case sched::ResourceKind::grad_norm:
      gradNorm = resource;
      break;
    case sched::ResourceKind::evaluate:
      evaluate = resource;
      break;
    case sched::ResourceKind::master:
      masters[resource.getOfAttr().getAttr()] = resource;
      break;
    case sched::ResourceKind::reduced:
      reduced[resource.getOfAttr().getAttr()] = resource;
      break;
    case sched::ResourceKind::value:
      break;
    case sched::ResourceKind::sent:
    case sched::ResourceKind::received:
      return resource.emitOpError("passes between positions: emitted programs have one position only");
    }
  }
  if (!mesh || !loss || !gradNorm || !evaluate)
    return module.emitError("level L5 needs a mesh and the resources loss, grad_norm and evaluate");
  return success();
}

Expr<rt::span<std::int64_t>> Tables::numbers(llvm::StringRef prefix, llvm::ArrayRef<int64_t> values) {
  Rows<std::int64_t> items;
  for (int64_t value : values)
    items.push_back(int64(value));
  return arrays.shared<std::int64_t>(prefix, items);
}

static Expr<rt::split> makeSplit(int64_t dim, int64_t axis, int64_t blocks) {
  Record<rt::split> cut;
  WINDLASS_SET(cut, dim, int32(dim));
  WINDLASS_SET(cut, axis, int32(axis));
  WINDLASS_SET(cut, blocks, int64(blocks));
  return cut.build();
}

FailureOr<Expr<rt::span<rt::split>>> Tables::splitsOf(sched::ResourceOp resource) {
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

Expr<rt::source> Tables::sourceOf(train::ParameterOp parameter) {
  train::SourceAttr source = parameter.getSource();
  bool isExternal = source.getKind() == train::SourceKind::external;
  Record<rt::source> row;
  WINDLASS_SET(row, kind,
               isExternal                                      ? WINDLASS_ENUMERATOR(source_kind, external)
               : source.getKind() == train::SourceKind::packed ? WINDLASS_ENUMERATOR(source_kind, packed)
                                                               : WINDLASS_ENUMERATOR(source_kind, none));
  WINDLASS_SET(row, file, literal(isExternal ? source.getFile() : ""));
  WINDLASS_SET(row, offset, int64(isExternal ? source.getOffset() : 0));
  WINDLASS_SET(row, length, int64(isExternal ? source.getLength() : 0));
  WINDLASS_SET(row, type,
               elementType(source.getStored() ? source.getStored() : parameter.getTensorType().getElementType()));
  return row.build();
}

/// Returns the number of the weight of a resource. A state names its own train.parameter, which names the weight.
Expr<std::int32_t> Tables::parameterOf(sched::ResourceOp resource) {
  StringAttr name = resource.getOfAttr().getAttr();
  if (auto parameter = module.lookupSymbol<train::ParameterOp>(name))
    if (FlatSymbolRefAttr weight = parameter.getOfAttr())
      name = weight.getAttr();
  return int32(parameterIndex.lookup(name));
}

FailureOr<Expr<rt::span<rt::parameter_entry>>> Tables::parameterTable() {
  Rows<rt::parameter_entry> rows;
  for (sched::ResourceOp resource : parameters) {
    auto parameter = module.lookupSymbol<train::ParameterOp>(resource.getOf().value_or(""));
    if (!parameter)
      return resource.emitOpError("names no train.parameter");
    sched::ResourceOp own = masters.lookup(resource.getOfAttr().getAttr());
    Record<rt::parameter_entry> row;
    WINDLASS_SET(row, name, literal(resource.getLogicalName().value_or("")));
    WINDLASS_SET(row, type, elementType((own ? own : resource).getTensorType().getElementType()));
    WINDLASS_SET(row, sizes, numbers("sizes", resource.getGlobalTensorType().getShape()));
    WINDLASS_SET(row, bytes, sourceOf(parameter));
    WINDLASS_SET(row, random,
                 resource.getGlobalTensorType().getRank() > 1 ? WINDLASS_ENUMERATOR(initializer, normal)
                 : parameter->hasAttr(train::kNormScaleAttr)  ? WINDLASS_ENUMERATOR(initializer, ones)
                                                              : WINDLASS_ENUMERATOR(initializer, zeros));
    WINDLASS_SET(row, is_trainable, boolean(parameter.getTrainable()));
    WINDLASS_SET(row, decays, boolean(parameter.getDecays()));
    rows.push_back(row.build());
  }
  return arrays.table<rt::parameter_entry>("parameters", rows);
}

FailureOr<Expr<rt::span<rt::parameter_placement>>> Tables::placementTable() {
  Rows<rt::parameter_placement> rows;
  for (auto [i, resource] : llvm::enumerate(parameters)) {
    sched::ResourceOp own = masters.lookup(resource.getOfAttr().getAttr());
    sched::ResourceOp master = own ? own : resource;
    auto splits = splitsOf(resource), masterSplits = splitsOf(master);
    if (failed(splits) || failed(masterSplits))
      return failure();
    Record<rt::parameter_placement> row;
    WINDLASS_SET(row, parameter, int32(i));
    WINDLASS_SET(row, type, elementType(resource.getTensorType().getElementType()));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(resource));
    WINDLASS_SET(row, master_splits, *masterSplits);
    WINDLASS_SET(row, master, placeOf(master));
    rows.push_back(row.build());
  }
  return arrays.table<rt::parameter_placement>("placements", rows);
}

Expr<rt::span<rt::input_entry>> Tables::inputTable() {
  Rows<rt::input_entry> rows;
  for (sched::ResourceOp resource : inputs) {
    // The importer's findings about an input travel on its resource.
    auto feed = resource->getAttrOfType<StringAttr>(train::kFeedAttr);
    auto vocabulary = resource->getAttrOfType<IntegerAttr>(train::kVocabularyAttr);
    Record<rt::input_entry> row;
    WINDLASS_SET(row, name, literal(resource.getLogicalName().value_or("")));
    WINDLASS_SET(row, type, elementType(resource.getTensorType().getElementType()));
    WINDLASS_SET(row, sizes, numbers("sizes", resource.getGlobalTensorType().getShape()));
    WINDLASS_SET(row, default_feed,
                 llvm::StringSwitch<Expr<rt::feed>>(feed ? feed.getValue() : "")
                     .Case("tokens", WINDLASS_ENUMERATOR(feed, tokens))
                     .Case("next", WINDLASS_ENUMERATOR(feed, next))
                     .Case(train::kRandomFeed, WINDLASS_ENUMERATOR(feed, random))
                     .Default(WINDLASS_ENUMERATOR(feed, none)));
    WINDLASS_SET(row, vocabulary, int64(vocabulary ? vocabulary.getInt() : 0));
    rows.push_back(row.build());
  }
  return arrays.table<rt::input_entry>("inputs", rows);
}

FailureOr<Expr<rt::span<rt::input_placement>>> Tables::inputPlacementTable() {
  Rows<rt::input_placement> rows;
  for (auto [i, resource] : llvm::enumerate(inputs)) {
    auto splits = splitsOf(resource);
    if (failed(splits))
      return failure();
    Record<rt::input_placement> row;
    WINDLASS_SET(row, input, int32(i));
    WINDLASS_SET(row, chunk, int32(0));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(resource));
    WINDLASS_SET(row, slot_stride, int64(0));
    rows.push_back(row.build());
  }
  return arrays.table<rt::input_placement>("input_placements", rows);
}

/// Returns a literal; the least integer has none of its own.
static Expr<std::int64_t> anyInt64(int64_t value) {
  return value == std::numeric_limits<int64_t>::min() ? Expr<std::int64_t>(std::to_string(value + 1) + " - 1")
                                                      : int64(value);
}

FailureOr<Expr<rt::counted_labels>> Tables::labels() {
  auto labels = module->getAttrOfType<train::CountedLabelsAttr>(train::kCountedLabelsAttr);
  if (!labels)
    return named<rt::counted_labels>("{}");
  auto found =
      llvm::find_if(inputs, [&](sched::ResourceOp resource) { return resource.getLogicalName() == labels.getInput(); });
  if (found == inputs.end())
    return module.emitError() << train::kCountedLabelsAttr
                              << " names no input of the step: " << printable(labels.getInput());
  Record<rt::counted_labels> row;
  WINDLASS_SET(row, input, int32(found - inputs.begin()));
  WINDLASS_SET(row, ignored, anyInt64(labels.getIgnoreIndex()));
  WINDLASS_SET(row, starts, numbers("label_starts", labels.getStarts()));
  WINDLASS_SET(row, sizes, numbers("label_sizes", labels.getSizes()));
  return row.build();
}

Expr<rt::span<rt::axis>> Tables::axisTable() {
  Rows<rt::axis> rows;
  for (plan::AxisAttr axis : mesh.getAxes()) {
    Record<rt::axis> row;
    WINDLASS_SET(row, name, literal(axis.getName().getValue()));
    WINDLASS_SET(row, size, int32(axis.getSize()));
    WINDLASS_SET(row, role, named<rt::axis_role>("axis_role::" + plan::stringifyAxisRole(axis.getRole())));
    rows.push_back(row.build());
  }
  return arrays.table<rt::axis>("axes", rows);
}

Expr<rt::span<rt::state_entry>> Tables::stateTable() {
  Rows<rt::state_entry> rows;
  for (sched::ResourceOp state : states) {
    Record<rt::state_entry> row;
    WINDLASS_SET(row, parameter, parameterOf(state));
    WINDLASS_SET(row, suffix, literal(state.getLogicalName().value_or("").rsplit('/').second));
    WINDLASS_SET(row, at, placeOf(state));
    rows.push_back(row.build());
  }
  return arrays.table<rt::state_entry>("states", rows);
}

FailureOr<Expr<rt::span<rt::gradient_entry>>> Tables::gradientTable() {
  Rows<rt::gradient_entry> rows;
  for (sched::ResourceOp accumulated : gradients) {
    // As @update reads it.
    sched::ResourceOp own = reduced.lookup(accumulated.getOfAttr().getAttr());
    sched::ResourceOp gradient = own ? own : accumulated;
    auto splits = splitsOf(gradient);
    if (failed(splits))
      return failure();
    Record<rt::gradient_entry> row;
    WINDLASS_SET(row, parameter, parameterOf(gradient));
    WINDLASS_SET(row, splits, *splits);
    WINDLASS_SET(row, at, placeOf(gradient));
    rows.push_back(row.build());
  }
  return arrays.table<rt::gradient_entry>("gradients", rows);
}

Expr<rt::span<rt::scalar_entry>> Tables::scalarTable() {
  Rows<rt::scalar_entry> rows;
  for (sched::ResourceOp scalar : scalars) {
    Record<rt::scalar_entry> row;
    WINDLASS_SET(row, kind, named<rt::scalar>("scalar::" + train::stringifyHyperparameter(*scalar.getScalar())));
    WINDLASS_SET(row, at, placeOf(scalar));
    rows.push_back(row.build());
  }
  return arrays.table<rt::scalar_entry>("scalars", rows);
}

Expr<rt::span<rt::arena_entry>> Tables::arenaTable() {
  Rows<rt::arena_entry> rows;
  for (sched::ArenaOp arena : arenas.getArenas()) {
    Record<rt::arena_entry> row;
    bool isOnDevice = arena.getKind() == plan::MemoryKind::device;
    WINDLASS_SET(row, kind,
                 isOnDevice ? WINDLASS_ENUMERATOR(memory_kind, device) : WINDLASS_ENUMERATOR(memory_kind, pinned));
    WINDLASS_SET(row, bytes, int64(arena.getBytes()));
    WINDLASS_SET(row, name, literal(stringifyMemoryKind(arena.getKind())));
    rows.push_back(row.build());
  }
  return arrays.table<rt::arena_entry>("arenas", rows);
}

Expr<rt::span<rt::stream_entry>> Tables::streamTable() {
  sched::StreamTable streams(program);
  Rows<rt::stream_entry> rows;
  for (int64_t number = 0; number < streams.size(); ++number) {
    Record<rt::stream_entry> row;
    WINDLASS_SET(row, kind,
                 named<rt::stream_kind>("stream_kind::" + sched::stringifyStreamKind(streams.getKind(number))));
    WINDLASS_SET(row, name, literal(streams.getShownName(number)));
    rows.push_back(row.build());
  }
  return arrays.table<rt::stream_entry>("streams", rows);
}

Expr<rt::span<rt::communicator_entry>> Tables::communicatorTable() {
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
    WINDLASS_SET(row, spans_positions, boolean(false));
    rows.push_back(row.build());
  }
  return arrays.table<rt::communicator_entry>("communicators", rows);
}

Expr<rt::span<rt::chunk_entry>> Tables::chunkTable(const schedule::Schedule &step) {
  using Structure = rt::chunk_entry;
  Record<Structure> row;
  WINDLASS_SET(row, chunk, int32(0));
  WINDLASS_SET(row, slots, int32(step.getSlots()));
  WINDLASS_SET(row, forward, function<std::remove_pointer_t<decltype(Structure::forward)>>(sched::StepRole::forward));
  WINDLASS_SET(row, backward,
               function<std::remove_pointer_t<decltype(Structure::backward)>>(sched::StepRole::backward));
  WINDLASS_SET(row, reduce, function<std::remove_pointer_t<decltype(Structure::reduce)>>(sched::StepRole::reduce));
  WINDLASS_SET(row, update, function<std::remove_pointer_t<decltype(Structure::update)>>(sched::StepRole::update));
  return arrays.table<Structure>("chunks", row.build());
}

static Expr<rt::action_kind> actionKind(const schedule::StepRow &row) {
  if (row.isRepeat())
    return WINDLASS_ENUMERATOR(action_kind, repeat);
  switch (row.action.kind) {
  case schedule::ActionKind::Forward:
    return WINDLASS_ENUMERATOR(action_kind, forward);
  case schedule::ActionKind::Backward:
    return WINDLASS_ENUMERATOR(action_kind, backward);
  case schedule::ActionKind::Send:
    return WINDLASS_ENUMERATOR(action_kind, send);
  case schedule::ActionKind::Receive:
    return WINDLASS_ENUMERATOR(action_kind, receive);
  case schedule::ActionKind::Reduce:
    return WINDLASS_ENUMERATOR(action_kind, reduce);
  case schedule::ActionKind::Update:
    return WINDLASS_ENUMERATOR(action_kind, update);
  case schedule::ActionKind::InputGradient:
  case schedule::ActionKind::WeightGradient:
    break;
  }
  llvm_unreachable("the step has been expanded, which refuses halves of a backward");
}

Expr<rt::span<rt::action>> Tables::actionTable(const schedule::Schedule &step) {
  Rows<rt::action> rows;
  for (const schedule::StepRow &each : schedule::makeRows(step)) {
    const schedule::Action &action = each.action;
    Record<rt::action> row;
    WINDLASS_SET(row, kind, actionKind(each));
    WINDLASS_SET(row, chunk, int32(action.chunk));
    WINDLASS_SET(row, peer_chunk, int32(action.peerChunk));
    WINDLASS_SET(row, micro_batch, int32(action.microBatch));
    WINDLASS_SET(row, per_turn, int32(each.perTurn));
    WINDLASS_SET(row, slot, int32(action.slot));
    WINDLASS_SET(row, is_first, boolean(action.isFirst));
    WINDLASS_SET(row, is_last, boolean(action.isLast));
    WINDLASS_SET(row, count, int32(each.count));
    WINDLASS_SET(row, length, int32(each.length));
    rows.push_back(row.build());
  }
  return arrays.table<rt::action>("actions", rows);
}

Expr<rt::product_choices> Tables::products() {
  const ProductChoices *products = options.products;
  if (!products || (products->choices.empty() && products->epilogues.empty()))
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
  WINDLASS_SET(all, choices, arrays.table<rt::product_choice>("products", rows));
  return all.build();
}

Expr<rt::attention_choices> Tables::attentions() {
  if (options.attention.choices.empty())
    return named<rt::attention_choices>("{}");
  Rows<rt::attention_choice> rows;
  for (const rt::attention_choice &choice : options.attention.choices) {
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
  Record<rt::attention_choices> all;
  WINDLASS_SET(all, device, literal(options.attention.device));
  WINDLASS_SET(all, library, literal(options.attention.library));
  WINDLASS_SET(all, choices, arrays.table<rt::attention_choice>("attentions", rows));
  return all.build();
}

FailureOr<Expr<rt::program>> Tables::programRecord() {
  auto schedules = program.getOps<sched::ScheduleOp>();
  if (schedules.empty())
    return module.emitError("level L5 needs a sched.schedule"), failure();
  FailureOr<schedule::Schedule> step = sched::expandSchedule(*schedules.begin());
  if (failed(step) || failed(sched::checkSteps(module)))
    return failure();
  auto placements = placementTable();
  auto inputs = inputPlacementTable();
  auto gradients = gradientTable();
  if (failed(placements) || failed(inputs) || failed(gradients))
    return failure();
  int64_t events = 0;
  program.walk([&](sched::RecordOp record) { events = std::max<int64_t>(events, record.getEvent() + 1); });

  using Stage = rt::status(rt::context &);
  Record<rt::program> all;
  WINDLASS_SET(all, arenas, arenaTable());
  WINDLASS_SET(all, scratch_bytes, int64(options.scratchBytes));
  WINDLASS_SET(all, streams, streamTable());
  WINDLASS_SET(all, events, int32(events));
  WINDLASS_SET(all, communicators, communicatorTable());
  WINDLASS_SET(all, peers, arrays.table<rt::peer_entry>("peers", {}));
  WINDLASS_SET(all, parameters, *placements);
  WINDLASS_SET(all, states, stateTable());
  WINDLASS_SET(all, gradients, *gradients);
  WINDLASS_SET(all, inputs, *inputs);
  WINDLASS_SET(all, messages, arrays.table<rt::message_entry>("messages", {}));
  WINDLASS_SET(all, scalars, scalarTable());
  WINDLASS_SET(all, loss, placeOf(loss));
  WINDLASS_SET(all, grad_norm, placeOf(gradNorm));
  WINDLASS_SET(all, evaluated, placeOf(evaluate));
  WINDLASS_SET(all, chunks, chunkTable(*step));
  WINDLASS_SET(all, actions, actionTable(*step));
  WINDLASS_SET(all, products, products());
  WINDLASS_SET(all, attentions, attentions());
  WINDLASS_SET(all, init, function<Stage>(sched::StepRole::init));
  WINDLASS_SET(all, evaluate, function<Stage>(sched::StepRole::evaluate));
  return all.buildLines();
}

FailureOr<std::string> Tables::write() {
  if (failed(collect()))
    return failure();
  auto settings = module->getAttrOfType<DictionaryAttr>(train::kSettingsAttr);
  if (!settings)
    return module.emitError("level L5 needs ") << train::kSettingsAttr, failure();
  auto optimizer = settings.getAs<StringAttr>("optimizer");
  auto microBatches = settings.getAs<IntegerAttr>("micro_batches");
  auto clip = settings.getAs<BoolAttr>("clip");
  if (!optimizer || !microBatches)
    return module.emitError() << train::kSettingsAttr << " needs optimizer and micro_batches", failure();

  auto parameterSpan = parameterTable();
  auto counted = labels();
  if (failed(parameterSpan) || failed(counted))
    return failure();
  Expr<rt::span<rt::input_entry>> inputSpan = inputTable();
  auto its = programRecord();
  if (failed(its))
    return failure();

  int64_t ranks = 1;
  for (plan::AxisAttr axis : mesh.getAxes())
    ranks *= axis.getSize();
  Record<rt::position_entry> position;
  WINDLASS_SET(position, axes, axisTable());
  WINDLASS_SET(position, first_rank, int32(0));
  WINDLASS_SET(position, ranks, int32(ranks));
  WINDLASS_SET(position, runs, named<const rt::program *>("&program_0"));

  auto model = module->getAttrOfType<StringAttr>(train::kModelAttr);
  Record<rt::job> all;
  WINDLASS_SET(all, version, int32(rt::job_version));
  WINDLASS_SET(all, model, literal(model ? model.getValue() : ""));
  WINDLASS_SET(all, plan_hash, literal(options.planHash));
  WINDLASS_SET(all, precision, literal(train::getPrecision(module)));
  WINDLASS_SET(all, kind, named<rt::optimizer>("optimizer::" + optimizer.getValue()));
  WINDLASS_SET(all, clips, boolean(clip && clip.getValue()));
  WINDLASS_SET(all, micro_batches, int32(microBatches.getInt()));
  WINDLASS_SET(all, parameters, *parameterSpan);
  WINDLASS_SET(all, inputs, inputSpan);
  WINDLASS_SET(all, labels, *counted);
  WINDLASS_SET(all, positions, named<rt::span<rt::position_entry>>("{positions, 1}"));

  return "// What the program tells the runtime about itself.\n#include \"step.h\"\n\n"
         "namespace windlass_program {\n\nusing namespace windlass::rt;\n\nnamespace {\n\n" +
         arrays.getText() + "constexpr program program_0 = " + its->text +
         ";\nconstexpr position_entry positions[] = {\n    " + position.build().text +
         ",\n};\nconstexpr job description = " + all.buildLines().text +
         ";\n\n} // namespace\n\nconst job &describe() { return description; }\n\n"
         "} // namespace windlass_program\n";
}

} // namespace

FailureOr<std::string> cpp::writeProgramTables(sched::ProgramOp program, const ProjectOptions &options) {
  return Tables(program, options).write();
}
