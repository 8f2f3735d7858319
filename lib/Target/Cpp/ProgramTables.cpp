#include "windlass/Target/Cpp/ProgramTables.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Support/Printable.h"
#include "windlass/Target/Cpp/CppBuilder.h"
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/program.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

#include <limits>
#include <map>

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

std::string cpp::quoted(llvm::StringRef text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c >= 0x20 && c < 0x7f && c != '?') {
      out += static_cast<char>(c);
    } else {
      // Three octal digits end by themselves, unlike hexadecimal escapes; '?' could start a trigraph.
      out += '\\';
      out += static_cast<char>('0' + (c >> 6));
      out += static_cast<char>('0' + ((c >> 3) & 7));
      out += static_cast<char>('0' + (c & 7));
    }
  }
  return out + "\"";
}

namespace {

/// Initializers of the runtime's structures. Each function binds all members of its structure, so that a change of the
/// structure fails to compile here.
class Tables {
public:
  Tables(sched::ProgramOp program, const ProjectOptions &options)
      : program(program), module(program->getParentOfType<ModuleOp>()), mesh(program.getMesh()), options(options) {}

  FailureOr<std::string> write();

private:
  static std::string braces(llvm::ArrayRef<std::string> members) { return "{" + llvm::join(members, ", ") + "}"; }

  std::string spanOf(llvm::StringRef type, llvm::StringRef prefix, llvm::ArrayRef<std::string> items) {
    if (items.empty())
      return "{nullptr, 0}";
    std::string text = braces(items);
    auto [position, isNew] = arrays.insert({{type.str(), text}, ""});
    if (isNew) {
      position->second = prefix.str() + "_" + std::to_string(arrays.size() - 1);
      arrayText += "constexpr " + type.str() + " " + position->second + "[] = " + text + ";\n";
    }
    return braces({position->second, std::to_string(items.size())});
  }

  std::string sizesOf(RankedTensorType type) {
    llvm::SmallVector<std::string> items;
    for (int64_t size : type.getShape())
      items.push_back(std::to_string(size));
    return spanOf("std::int64_t", "sizes", items);
  }

  FailureOr<std::string> splitsOf(sched::ResourceOp resource) {
    llvm::SmallVector<std::string> items;
    int64_t pieces = 1;
    for (auto [dim, layout] : llvm::enumerate(resource.getLayout().getDims())) {
      int64_t major = 1, cuts = 1; // the size of all factors before this one; pieces of the dim
      for (plan::FactorLayoutAttr factor : layout.getFactors()) {
        int64_t blocks = major;
        for (StringAttr axis : factor.getAxes()) {
          [[maybe_unused]] auto [d, a, b] = rt::split{};
          items.push_back(
              braces({std::to_string(dim), std::to_string(mesh.indexOf(axis.getValue())), std::to_string(blocks)}));
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
      items.push_back(braces(
          {std::to_string(rt::flat_dim), std::to_string(mesh.indexOf(axis.getValue())), std::to_string(ranges)}));
      ranges *= mesh.sizeOf(axis.getValue());
    }
    if (ranges > 1 && pieces * ranges * rt::boxes_of_range(resource.getGlobalTensorType().getRank()) > rt::max_pieces)
      return resource.emitOpError("is cut into more than ")
             << rt::max_pieces << " pieces as " << ranges << " flat ranges; split a dim instead";
    return spanOf("split", "splits", items);
  }

  FailureOr<std::string> tensorEntry(sched::ResourceOp resource) {
    auto splits = splitsOf(resource);
    if (failed(splits))
      return failure();
    [[maybe_unused]] auto [name, type, sizes, cut, offset] = rt::tensor_entry{};
    return braces({quoted(resource.getLogicalName().value_or("")),
                   elementTypeText(resource.getTensorType().getElementType()), sizesOf(resource.getGlobalTensorType()),
                   *splits, offsetOf(resource)});
  }

  /// The least integer has no literal of its own.
  static std::string integerText(int64_t value) {
    return value == std::numeric_limits<int64_t>::min() ? std::to_string(value + 1) + " - 1" : std::to_string(value);
  }

  static std::string offsetOf(sched::ResourceOp resource) { return std::to_string(resource.getOffset().value_or(0)); }

  std::string sourceOf(train::ParameterOp parameter) {
    [[maybe_unused]] auto [kind, file, offset, length, type] = rt::source{};
    train::SourceAttr source = parameter.getSource();
    std::string stored =
        elementTypeText(source.getStored() ? source.getStored() : parameter.getTensorType().getElementType());
    switch (source.getKind()) {
    case train::SourceKind::external:
      return braces({"source_kind::external", quoted(source.getFile()), std::to_string(source.getOffset()),
                     std::to_string(source.getLength()), stored});
    case train::SourceKind::packed:
      return "{source_kind::packed, \"\", 0, 0, " + stored + "}";
    case train::SourceKind::none:
      break;
    }
    return "{source_kind::none, \"\", 0, 0, " + stored + "}";
  }

  LogicalResult collect();
  FailureOr<std::string> parameterTable();
  FailureOr<std::string> inputTable();
  FailureOr<std::string> labelTable();
  FailureOr<std::string> actionTable();
  std::string productTable();
  std::string attentionTable();

  /// The definition of one table, and its span.
  std::string table(llvm::StringRef type, llvm::StringRef name, llvm::ArrayRef<std::string> rows) {
    if (rows.empty())
      return "{nullptr, 0}";
    tableText += "constexpr " + type.str() + " " + name.str() + "[] = {\n";
    for (const std::string &row : rows)
      tableText += "    " + row + ",\n";
    tableText += "};\n";
    return braces({name.str(), std::to_string(rows.size())});
  }

  sched::ProgramOp program;
  ModuleOp module;
  plan::MeshAttr mesh;
  const ProjectOptions &options;
  std::map<std::pair<std::string, std::string>, std::string> arrays;
  std::string arrayText, tableText;
  llvm::MapVector<StringAttr, size_t> parameterIndex;
  /// By parameter, where they are resources of their own.
  llvm::DenseMap<StringAttr, sched::ResourceOp> masters, reduced;
  llvm::SmallVector<sched::ResourceOp> parameters, states, gradients, inputs, scalars;
  sched::ResourceOp loss, gradNorm, evaluate;
};

LogicalResult Tables::collect() {
  for (auto resource : program.getOps<sched::ResourceOp>()) {
    if (!resource.getOffset())
      return resource.emitOpError("has no place in an arena");
    if (resource.getArena() != llvm::StringRef(sched::kDeviceArena))
      return resource.emitOpError("lies in @")
             << *resource.getArena() << ": emitted programs have the arena @" << sched::kDeviceArena << " only";
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
    }
  }
  if (!mesh || !loss || !gradNorm || !evaluate)
    return module.emitError("level L5 needs a mesh and the resources loss, grad_norm and evaluate");
  return success();
}

FailureOr<std::string> Tables::parameterTable() {
  llvm::SmallVector<std::string> rows;
  for (sched::ResourceOp resource : parameters) {
    auto parameter = module.lookupSymbol<train::ParameterOp>(resource.getOf().value_or(""));
    if (!parameter)
      return resource.emitOpError("names no train.parameter");
    auto tensor = tensorEntry(resource);
    if (failed(tensor))
      return failure();
    std::string random = resource.getGlobalTensorType().getRank() > 1 ? "initializer::normal"
                         : parameter->hasAttr(train::kNormScaleAttr)  ? "initializer::ones"
                                                                      : "initializer::zeros";
    sched::ResourceOp own = masters.lookup(resource.getOfAttr().getAttr());
    sched::ResourceOp master = own ? own : resource;
    auto masterSplits = splitsOf(master);
    if (failed(masterSplits))
      return failure();
    [[maybe_unused]] auto [t, splits, offset, bytes, init, trains, decays] = rt::parameter_entry{};
    rows.push_back(braces({*tensor, *masterSplits, offsetOf(master), sourceOf(parameter), random,
                           parameter.getTrainable() ? "true" : "false", parameter.getDecays() ? "true" : "false"}));
  }
  return table("parameter_entry", "parameters", rows);
}

FailureOr<std::string> Tables::inputTable() {
  llvm::SmallVector<std::string> rows;
  for (sched::ResourceOp resource : inputs) {
    auto tensor = tensorEntry(resource);
    if (failed(tensor))
      return failure();
    auto feed = resource->getAttrOfType<StringAttr>(train::kFeedAttr);
    auto vocabulary = resource->getAttrOfType<IntegerAttr>(train::kVocabularyAttr);
    // The importer's findings about an input travel on its resource.
    std::string kind = feed && feed.getValue() == "tokens"             ? "feed::tokens"
                       : feed && feed.getValue() == "next"             ? "feed::next"
                       : feed && feed.getValue() == train::kRandomFeed ? "feed::random"
                                                                       : "feed::none";
    [[maybe_unused]] auto [t, f, v] = rt::input_entry{};
    rows.push_back(braces({*tensor, kind, std::to_string(vocabulary ? vocabulary.getInt() : 0)}));
  }
  return table("input_entry", "inputs", rows);
}

FailureOr<std::string> Tables::labelTable() {
  auto labels = module->getAttrOfType<train::CountedLabelsAttr>(train::kCountedLabelsAttr);
  if (!labels)
    return std::string("{0, 0, {nullptr, 0}, {nullptr, 0}}");
  auto found =
      llvm::find_if(inputs, [&](sched::ResourceOp resource) { return resource.getLogicalName() == labels.getInput(); });
  if (found == inputs.end())
    return module.emitError() << train::kCountedLabelsAttr
                              << " names no input of the step: " << printable(labels.getInput());
  auto numbers = [&](llvm::ArrayRef<int64_t> values, llvm::StringRef name) {
    llvm::SmallVector<std::string> texts;
    for (int64_t value : values)
      texts.push_back(std::to_string(value));
    return spanOf("std::int64_t", name, texts);
  };
  [[maybe_unused]] auto [input, ignored, starts, sizes] = rt::counted_labels{};
  return braces({std::to_string(found - inputs.begin()), integerText(labels.getIgnoreIndex()),
                 numbers(labels.getStarts(), "label_starts"), numbers(labels.getSizes(), "label_sizes")});
}

FailureOr<std::string> Tables::actionTable() {
  auto schedules = program.getOps<sched::ScheduleOp>();
  if (schedules.empty())
    return module.emitError("level L5 needs a sched.schedule"), failure();
  sched::ScheduleOp op = *schedules.begin();
  llvm::SmallVector<std::string> rows;
  FailureOr<schedule::Schedule> actions = sched::expandStep(op);
  if (failed(actions))
    return failure();
  auto text = [](bool value) { return std::string(value ? "true" : "false"); };
  for (const schedule::StepRow &row : schedule::makeRows(*actions)) {
    const schedule::Action &action = row.action;
    llvm::StringRef kindName = row.isRepeat() ? "repeat" : schedule::getName(action.kind);
    [[maybe_unused]] auto [kind, chunk, microBatch, perTurn, slot, isFirst, isLast, count, length] = rt::action{};
    rows.push_back(
        braces({"action_kind::" + kindName.str(), std::to_string(action.chunk), std::to_string(action.microBatch),
                std::to_string(row.perTurn), std::to_string(action.slot), text(action.isFirst), text(action.isLast),
                std::to_string(row.count), std::to_string(row.length)}));
  }
  return table("action", "actions", rows);
}

std::string Tables::productTable() {
  const ProductChoices *products = options.products;
  if (!products || (products->choices.empty() && products->epilogues.empty()))
    return "{nullptr, nullptr, {nullptr, 0}}";
  llvm::SmallVector<std::string> rows;
  for (const auto &[product, choice] : products->choices) {
    llvm::SmallVector<std::string> numbers;
    for (int32_t number : choice.algorithm)
      numbers.push_back(std::to_string(number));
    [[maybe_unused]] auto [name, algorithm] = rt::product_choice{};
    rows.push_back(braces({quoted(product), braces({braces(numbers)})}));
  }
  [[maybe_unused]] auto [device, library, choices] = rt::product_choices{};
  return braces({quoted(products->device), quoted(products->library), table("product_choice", "products", rows)});
}

std::string Tables::attentionTable() {
  if (options.attention.choices.empty())
    return "{nullptr, nullptr, {nullptr, 0}}";
  llvm::SmallVector<std::string> rows;
  for (const rt::attention_choice &choice : options.attention.choices) {
    const auto &[type, isGradient, isCausal, scale, batch, heads, kvHeads, queries, keys, depth, valueDepth, strides] =
        choice.shape;
    llvm::SmallVector<std::string> members = {
        type == rt::element_type::bf16 ? "element_type::bf16" : "element_type::f16", isGradient ? "true" : "false",
        isCausal ? "true" : "false", real(scale).text};
    for (int64_t size : {batch, heads, kvHeads, queries, keys, depth, valueDepth})
      members.push_back(std::to_string(size));
    llvm::SmallVector<std::string> operands;
    for (const auto &each : strides)
      operands.push_back(braces({std::to_string(each[0]), std::to_string(each[1]), std::to_string(each[2])}));
    members.push_back(braces(operands));
    [[maybe_unused]] auto [shape, bytes] = rt::attention_choice{};
    rows.push_back(braces({braces(members), std::to_string(choice.workspace_bytes)}));
  }
  [[maybe_unused]] auto [device, library, choices] = rt::attention_choices{};
  return braces({quoted(options.attention.device), quoted(options.attention.library),
                 table("attention_choice", "attentions", rows)});
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
  auto inputSpan = inputTable();
  auto labels = labelTable();
  auto actionSpan = actionTable();
  if (failed(parameterSpan) || failed(inputSpan) || failed(labels) || failed(actionSpan))
    return failure();

  // State names its own train.parameter, which names the weight.
  auto parameterOf = [&](sched::ResourceOp resource) {
    StringAttr name = resource.getOfAttr().getAttr();
    if (auto parameter = module.lookupSymbol<train::ParameterOp>(name))
      if (FlatSymbolRefAttr weight = parameter.getOfAttr())
        name = weight.getAttr();
    return std::to_string(parameterIndex.lookup(name));
  };
  llvm::SmallVector<std::string> rows;
  for (sched::ResourceOp state : states) {
    [[maybe_unused]] auto [suffix, parameter, offset] = rt::state_entry{};
    rows.push_back(
        braces({quoted(state.getLogicalName().value_or("").rsplit('/').second), parameterOf(state), offsetOf(state)}));
  }
  std::string stateSpan = table("state_entry", "states", rows);

  rows.clear();
  for (sched::ResourceOp accumulated : gradients) {
    // As @update reads it.
    sched::ResourceOp own = reduced.lookup(accumulated.getOfAttr().getAttr());
    sched::ResourceOp gradient = own ? own : accumulated;
    auto splits = splitsOf(gradient);
    if (failed(splits))
      return failure();
    [[maybe_unused]] auto [parameter, cut, offset] = rt::gradient_entry{};
    rows.push_back(braces({parameterOf(gradient), *splits, offsetOf(gradient)}));
  }
  std::string gradientSpan = table("gradient_entry", "gradients", rows);

  rows.clear();
  for (sched::ResourceOp scalar : scalars) {
    [[maybe_unused]] auto [kind, offset] = rt::scalar_entry{};
    rows.push_back(braces({"scalar::" + train::stringifyHyperparameter(*scalar.getScalar()).str(), offsetOf(scalar)}));
  }
  std::string scalarSpan = table("scalar_entry", "scalars", rows);

  rows.clear();
  for (plan::AxisAttr axis : mesh.getAxes()) {
    [[maybe_unused]] auto [name, size, role] = rt::axis{};
    rows.push_back(braces({quoted(axis.getName().getValue()), std::to_string(axis.getSize()),
                           "axis_role::" + plan::stringifyAxisRole(axis.getRole()).str()}));
  }
  std::string axisSpan = table("axis", "axes", rows);

  sched::StreamTable streams(program);
  rows.clear();
  for (int64_t number = 0; number < streams.size(); ++number) {
    [[maybe_unused]] auto [kind, name] = rt::stream_entry{};
    rows.push_back(braces({"stream_kind::" + sched::stringifyStreamKind(streams.getKind(number)).str(),
                           quoted(streams.getShownName(number))}));
  }
  std::string streamSpan = table("stream_entry", "streams", rows);

  rows.clear();
  for (auto communicator : program.getOps<sched::CommunicatorOp>()) {
    llvm::SmallVector<std::string> axes;
    for (Attribute axis : communicator.getAxes())
      axes.push_back(std::to_string(mesh.indexOf(cast<StringAttr>(axis).getValue())));
    [[maybe_unused]] auto [members, stream, exchanges] = rt::communicator_entry{};
    rows.push_back(
        braces({spanOf("std::int32_t", "communicator_axes", axes), std::to_string(streams.getNumber(communicator)),
                communicator.getExchanges() ? "true" : "false"}));
  }
  std::string communicatorSpan = table("communicator_entry", "communicators", rows);

  int64_t events = 0;
  program.walk([&](sched::RecordOp record) { events = std::max<int64_t>(events, record.getEvent() + 1); });
  sched::ArenaOp arena = sched::getDeviceArena(program);

  auto model = module->getAttrOfType<StringAttr>(train::kModelAttr);
  [[maybe_unused]] auto [p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, p20, p21,
                         p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32] = rt::program{};
  std::string productChoices = productTable(), attentionChoices = attentionTable();

  std::string text = "// What the program tells the runtime about itself.\n#include \"step.h\"\n\n"
                     "namespace windlass_program {\n\nusing namespace windlass::rt;\n\nnamespace {\n\n";
  text += arrayText + tableText + "\nconstexpr program description = {\n";
  auto line = [&](llvm::StringRef what, const std::string &value) {
    text += "    /*" + what.str() + "=*/" + value + ",\n";
  };
  line("version", "1");
  line("model", quoted(model ? model.getValue() : ""));
  line("plan_hash", quoted(options.planHash));
  line("axes", axisSpan);
  line("micro_batches", std::to_string(microBatches.getInt()));
  line("kind", "optimizer::" + optimizer.getValue().str());
  line("clips", clip && clip.getValue() ? "true" : "false");
  line("precision", quoted(train::getPrecision(module)));
  line("device_bytes", std::to_string(arena ? arena.getBytes() : 0));
  line("pinned_bytes", "0");
  line("scratch_bytes", std::to_string(options.scratchBytes));
  line("streams", streamSpan);
  line("events", std::to_string(events));
  line("communicators", communicatorSpan);
  line("parameters", *parameterSpan);
  line("states", stateSpan);
  line("gradients", gradientSpan);
  line("inputs", *inputSpan);
  line("labels", *labels);
  line("scalars", scalarSpan);
  line("loss_offset", offsetOf(loss));
  line("grad_norm_offset", offsetOf(gradNorm));
  line("evaluate_offset", offsetOf(evaluate));
  line("actions", *actionSpan);
  line("products", productChoices);
  line("attentions", attentionChoices);
  for (sched::StepRole role : sched::getStepRoles())
    line(stringifyStepRole(role), sched::getFunctionName(sched::StepAttr::get(module.getContext(), role, 0)));
  text += "};\n\n} // namespace\n\nconst program &describe() { return description; }\n\n"
          "} // namespace windlass_program\n";
  return text;
}

} // namespace

FailureOr<std::string> cpp::writeProgramTables(sched::ProgramOp program, const ProjectOptions &options) {
  return Tables(program, options).write();
}
