#include "windlass/Target/Cpp/ProgramTables.h"

#include "PositionTables.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringSwitch.h"

#include <limits>

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

namespace {

/// Writes the tables by which a job describes itself.
class JobTables {
public:
  JobTables(ModuleOp module, const ProjectOptions &options) : module(module), options(options) {}

  FailureOr<std::string> write();

private:
  /// Collects the resources of all positions, and gives parameters and inputs their numbers.
  LogicalResult collect();
  LogicalResult addParameters(size_t position);
  LogicalResult addInputs(size_t position);

  // Tables of the job. One that fails has emitted its error.
  FailureOr<Expr<rt::span<rt::parameter_entry>>> parameterTable();
  Expr<rt::span<rt::input_entry>> inputTable();
  FailureOr<Expr<rt::counted_labels>> labels();
  /// Writes the programs of all positions, and returns the table that names them.
  FailureOr<std::string> positionsText();

  ModuleOp module;
  const ProjectOptions &options;
  Arrays arrays;
  std::vector<ProgramResources> positions;
  JobEntries entries;
};

} // namespace

LogicalResult JobTables::addParameters(size_t position) {
  for (sched::ResourceOp resource : positions[position].parameters) {
    StringAttr name = resource.getOfAttr().getAttr();
    if (!module.lookupSymbol<train::ParameterOp>(name))
      return resource.emitOpError("names no train.parameter");
    entries.parameters.insert({name, {resource, position}});
  }
  return success();
}

LogicalResult JobTables::addInputs(size_t position) {
  for (sched::ResourceOp resource : positions[position].inputs) {
    auto [known, isNew] = entries.inputs.insert({getInputName(resource), {resource, position}});
    if (RankedTensorType first = known->second.resource.getGlobalTensorType(); first != resource.getGlobalTensorType())
      return resource.emitOpError("is of type ")
             << resource.getGlobalTensorType() << ", but position " << known->second.position
             << " has the input of that name as " << first;
  }
  return success();
}

LogicalResult JobTables::collect() {
  for (sched::ProgramOp program : sched::getPrograms(module)) {
    auto its = ProgramResources::collect(program);
    if (failed(its))
      return failure();
    positions.push_back(std::move(*its));
    if (!program.getMesh() || !positions.back().gradNorm)
      return program.emitOpError("needs, at level L5, a mesh and the resource grad_norm");
  }
  size_t losses = llvm::count_if(positions, [](const ProgramResources &its) { return its.loss; });
  if (losses != 1 || llvm::any_of(positions, [](const ProgramResources &its) { return !its.loss != !its.evaluate; }))
    return module.emitError("level L5 needs the resources loss and evaluate, in one position");
  for (size_t position = 0; position < positions.size(); ++position)
    if (failed(addParameters(position)) || failed(addInputs(position)))
      return failure();
  // What the runtime makes itself comes last.
  auto all = entries.inputs.takeVector();
  for (bool isMade : {false, true})
    for (auto &entry : all) {
      auto feed = entry.second.resource->getAttrOfType<StringAttr>(train::kFeedAttr);
      if (isMade == (feed && feed.getValue() == train::kRandomFeed))
        entries.inputs.insert(entry);
    }
  return success();
}

static Expr<rt::source> sourceOf(train::ParameterOp parameter) {
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

FailureOr<Expr<rt::span<rt::parameter_entry>>> JobTables::parameterTable() {
  Rows<rt::parameter_entry> rows;
  for (auto &[name, entry] : entries.parameters) {
    sched::ResourceOp resource = entry.resource;
    auto parameter = module.lookupSymbol<train::ParameterOp>(name);
    Record<rt::parameter_entry> row;
    WINDLASS_SET(row, name, literal(resource.getLogicalName().value_or("")));
    WINDLASS_SET(row, type,
                 elementType(positions[entry.position].getMaster(resource).getTensorType().getElementType()));
    WINDLASS_SET(row, sizes, makeNumbers(arrays, "sizes", resource.getGlobalTensorType().getShape()));
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

Expr<rt::span<rt::input_entry>> JobTables::inputTable() {
  Rows<rt::input_entry> rows;
  for (auto &[name, entry] : entries.inputs) {
    sched::ResourceOp resource = entry.resource;
    // The importer's findings about an input travel on its resource.
    auto feed = resource->getAttrOfType<StringAttr>(train::kFeedAttr);
    auto vocabulary = resource->getAttrOfType<IntegerAttr>(train::kVocabularyAttr);
    Record<rt::input_entry> row;
    WINDLASS_SET(row, name, literal(resource.getLogicalName().value_or("")));
    WINDLASS_SET(row, type, elementType(resource.getTensorType().getElementType()));
    WINDLASS_SET(row, sizes,
                 makeNumbers(arrays, "sizes", train::getTypeOfOne(module, resource.getGlobalTensorType()).getShape()));
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

/// Returns a literal; the least integer has none of its own.
static Expr<std::int64_t> anyInt64(int64_t value) {
  return value == std::numeric_limits<int64_t>::min() ? Expr<std::int64_t>(std::to_string(value + 1) + " - 1")
                                                      : int64(value);
}

FailureOr<Expr<rt::counted_labels>> JobTables::labels() {
  auto labels = module->getAttrOfType<train::CountedLabelsAttr>(train::kCountedLabelsAttr);
  if (!labels)
    return named<rt::counted_labels>("{}");
  auto found = llvm::find_if(entries.inputs, [&](const auto &entry) { return entry.first == labels.getInput(); });
  if (found == entries.inputs.end())
    return module.emitError() << train::kCountedLabelsAttr
                              << " names no input of the step: " << printable(labels.getInput());
  Record<rt::counted_labels> row;
  WINDLASS_SET(row, input, int32(found - entries.inputs.begin()));
  WINDLASS_SET(row, ignored, anyInt64(labels.getIgnoreIndex()));
  WINDLASS_SET(row, starts, makeNumbers(arrays, "label_starts", labels.getStarts()));
  WINDLASS_SET(row, sizes, makeNumbers(arrays, "label_sizes", labels.getSizes()));
  return row.build();
}

FailureOr<std::string> JobTables::positionsText() {
  if (failed(sched::checkPrograms(module)) || failed(sched::checkSteps(module)))
    return failure();
  FailureOr<schedule::Pipeline> step = sched::expandSteps(module);
  if (failed(step))
    return failure();
  std::string programs, rows;
  int64_t firstRank = 0;
  for (auto [number, its] : llvm::enumerate(positions)) {
    PositionTables tables(its, entries, *step, options, arrays);
    auto program = tables.writeProgram();
    if (failed(program))
      return failure();
    std::string name = "program_" + std::to_string(number);
    programs += "constexpr program " + name + " = " + program->text + ";\n";
    int64_t ranks = its.program.getMesh().getRanks();
    Record<rt::position_entry> position;
    WINDLASS_SET(position, axes, tables.writeAxes());
    WINDLASS_SET(position, first_rank, int32(firstRank));
    WINDLASS_SET(position, ranks, int32(ranks));
    WINDLASS_SET(position, runs, named<const rt::program *>("&" + name));
    rows += "    " + position.build().text + ",\n";
    firstRank += ranks;
  }
  return programs + "constexpr position_entry positions[] = {\n" + rows + "};\n";
}

FailureOr<std::string> JobTables::write() {
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
  auto programs = positionsText();
  if (failed(programs))
    return failure();

  auto model = module->getAttrOfType<StringAttr>(train::kModelAttr);
  Record<rt::job> all;
  WINDLASS_SET(all, version, int32(rt::job_version));
  WINDLASS_SET(all, model, literal(model ? model.getValue() : ""));
  WINDLASS_SET(all, plan_hash, literal(options.planHash));
  WINDLASS_SET(all, precision, literal(train::getPrecision(module)));
  WINDLASS_SET(all, kind, named<rt::optimizer>("optimizer::" + optimizer.getValue()));
  WINDLASS_SET(all, clips, boolean(clip && clip.getValue()));
  WINDLASS_SET(all, micro_batches, int32(microBatches.getInt()));
  WINDLASS_SET(all, merge, int32(train::getMerge(module)));
  WINDLASS_SET(all, reserve_bytes, int64(options.reserveBytes.value_or(-1)));
  Record<rt::emulated_rates> emulated;
  WINDLASS_SET(emulated, link, int64(options.emulated.link));
  WINDLASS_SET(emulated, disk, int64(options.emulated.disk));
  WINDLASS_SET(all, emulated, emulated.build());
  WINDLASS_SET(all, parameters, *parameterSpan);
  WINDLASS_SET(all, inputs, inputSpan);
  WINDLASS_SET(all, labels, *counted);
  WINDLASS_SET(all, positions,
               named<rt::span<rt::position_entry>>("{positions, " + std::to_string(positions.size()) + "}"));

  return "// What the program tells the runtime about itself.\n#include \"step.h\"\n\n"
         "namespace windlass_program {\n\nusing namespace windlass::rt;\n\nnamespace {\n\n" +
         arrays.getText() + *programs + "constexpr job description = " + all.buildLines().text +
         ";\n\n} // namespace\n\nconst job &describe() { return description; }\n\n"
         "} // namespace windlass_program\n";
}

FailureOr<std::string> cpp::writeProgramTables(ModuleOp module, const ProjectOptions &options) {
  return JobTables(module, options).write();
}
