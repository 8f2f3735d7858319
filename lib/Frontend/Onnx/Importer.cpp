//===- Importer.cpp - inputs, initializers and the graph ------------------===//

#include "Importer.h"

#include "GraphSignature.h"
#include "SinceVersions.h"
#include "Tensors.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Glob.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace windlass;

/// Returns what L0 calls a tensor of a kind of the exporter's: constants of the module never train, as buffers.
static llvm::StringRef translateKind(llvm::StringRef kind) {
  return kind == "PARAMETER" ? "parameter" : kind == "BUFFER" || kind == "CONSTANT_TENSOR" ? "buffer" : "";
}

/// Returns the exporter's statement about an initializer.
static llvm::StringRef
readKind(const ::google::protobuf::RepeatedPtrField<::onnx::StringStringEntryProto> &properties) {
  for (const auto &entry : properties)
    if (entry.key() == "pkg.torch.export.graph_signature.InputSpec.kind")
      return translateKind(entry.value());
  return {};
}

FailureOr<ArrayAttr> OnnxImporter::readSignature() {
  const std::string *text = nullptr;
  for (const auto &entry : model.graph().metadata_props()) {
    if (entry.key() != kGraphSignatureKey)
      continue;
    if (text)
      return emitError(location, Code::signature) << "the model holds two graph signatures";
    text = &entry.value();
  }
  if (!text)
    return ArrayAttr();
  llvm::Expected<std::vector<SignatureEntry>> entries = readGraphSignature(*text);
  if (!entries)
    return emitError(location, Code::signature) << "the graph signature " << llvm::toString(entries.takeError());
  llvm::SmallVector<Attribute> specs;
  for (const SignatureEntry &entry : *entries) {
    if (failed(checkName(entry.target)) || failed(checkName(entry.placeholder)))
      return failure();
    specs.push_back(onnx::SpecAttr::get(builder.getContext(), builder.getStringAttr(entry.kind),
                                        builder.getStringAttr(entry.placeholder), builder.getStringAttr(entry.target)));
    llvm::StringRef kind = translateKind(entry.kind);
    if (kind.empty())
      continue;
    auto [stated, isNew] = kinds.try_emplace(entry.target, kind);
    if (!isNew && stated->second != kind)
      return emitError(location, Code::signature)
             << "the graph signature calls " << printable(entry.target) << " a " << kind << ", but its own metadata a "
             << stated->second << "; export the model again";
  }
  return builder.getArrayAttr(specs);
}

LogicalResult OnnxImporter::applyTrainPatterns() {
  if (options.train.empty() && options.parameters.empty())
    return success();
  std::vector<std::string> names;
  for (const auto &tensor : model.graph().initializer())
    if (isa_and_nonnull<FloatType>(getElementType(tensor.data_type(), builder.getContext())))
      names.push_back(tensor.name());
  for (const std::string &name : names)
    if (options.parameters.count(name))
      kinds[name] = "parameter";
  for (const std::string &pattern : options.train) {
    llvm::Expected<std::vector<std::string>> matches = matchNames(pattern, names, "initializer of floats");
    if (!matches)
      return emitError(location, Code::pattern) << "--train: " << llvm::toString(matches.takeError());
    for (const std::string &name : *matches)
      kinds[name] = "parameter";
  }
  return success();
}

LogicalResult OnnxImporter::checkName(llvm::StringRef name) {
  if (static_cast<int64_t>(name.size()) > options.budgets.nameBytes)
    return emitError(location, Code::model_budget) << "a name of " << name.size() << " bytes (" << printable(name, 40)
                                                   << ") exceeds the budget of " << options.budgets.nameBytes;
  // Names become keys of checkpoints and plans.
  if (name.contains('\0') || !llvm::json::isUTF8(name))
    return emitError(location) << "the name " << printable(name, 40)
                               << " holds a NUL or bytes that are no UTF-8; give it another one";
  return success();
}

LogicalResult OnnxImporter::checkBudgets() {
  if (model.functions_size() > options.budgets.functions)
    return emitError(location, Code::model_budget) << "the model defines " << model.functions_size()
                                                   << " functions; the budget is " << options.budgets.functions;
  if (model.graph().node_size() > options.budgets.nodes)
    return emitError(location, Code::model_budget)
           << "the model has " << model.graph().node_size() << " nodes; the budget is " << options.budgets.nodes;
  if (model.graph().node_size() == 0)
    return emitError(location) << "the model's graph has no nodes";
  return success();
}

LogicalResult OnnxImporter::readOpsets(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports,
                                       llvm::StringRef where, Opsets &opsets) {
  for (const auto &import : imports) {
    llvm::StringRef domain = import.domain() == "ai.onnx" ? "" : llvm::StringRef(import.domain());
    if (failed(checkName(domain)))
      return failure();
    if (domain.empty() && (import.version() < kOldestOpset || import.version() > kNewestOpset))
      return emitError(location) << where << " needs opset " << import.version() << " but this importer knows opsets "
                                 << kOldestOpset << " to " << kNewestOpset
                                 << "; export the model again with one of these";
    int64_t version = std::max<int64_t>(1, import.version());
    auto [known, isNew] = opsets.try_emplace(domain, version);
    if (!isNew && known->second != version)
      return emitError(location) << where << " imports opset " << known->second << " and opset " << version
                                 << " of domain " << printable(domain) << "; it must be one of them";
  }
  return success();
}

FailureOr<RankedTensorType> OnnxImporter::readInputType(const ::onnx::ValueInfoProto &input,
                                                        llvm::SmallVectorImpl<Attribute> &dimNames) {
  std::string name = printable(input.name());
  if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) {
    emitError(location) << "input " << name << " is not a tensor of known rank";
    return failure();
  }
  const auto &tensor = input.type().tensor_type();
  Type element = getElementType(tensor.elem_type(), builder.getContext());
  if (!element) {
    emitError(location) << "input " << name << " has ONNX element type " << tensor.elem_type()
                        << ", which is not supported";
    return failure();
  }
  llvm::SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim()) {
    llvm::StringRef symbol = dim.has_dim_param() ? llvm::StringRef(dim.dim_param()) : "";
    int64_t value = dim.has_dim_value() ? dim.dim_value() : ShapedType::kDynamic;
    if (dim.has_dim_value() && value < 0) {
      emitError(location) << "input " << name << " has a dimension of " << value;
      return failure();
    }
    if (failed(checkName(symbol)))
      return failure();
    if (auto bound = options.dims.find(symbol.str()); !symbol.empty() && bound != options.dims.end())
      value = bound->second;
    shape.push_back(value);
    dimNames.push_back(builder.getStringAttr(symbol));
  }
  llvm::SmallVector<int64_t> known(shape);
  llvm::erase(known, ShapedType::kDynamic);
  if (countElements(known) < 0) {
    emitError(location) << "input " << name << " has more than 2^48 elements";
    return failure();
  }
  return RankedTensorType::get(shape, element);
}

Type OnnxImporter::readStatedType(const ::onnx::ValueInfoProto &info) {
  auto unknown = onnx::ValueType::get(builder.getContext());
  if (!info.type().has_tensor_type())
    return unknown;
  const auto &tensor = info.type().tensor_type();
  Type element = getElementType(tensor.elem_type(), builder.getContext());
  if (!element)
    return unknown;
  if (!tensor.has_shape())
    return UnrankedTensorType::get(element);
  llvm::SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim())
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : ShapedType::kDynamic);
  llvm::SmallVector<int64_t> known(shape);
  llvm::erase(known, ShapedType::kDynamic);
  if (countElements(known) < 0)
    return unknown;
  return RankedTensorType::get(shape, element);
}

LogicalResult OnnxImporter::define(Scope &scope, llvm::StringRef name, Value value) {
  if (failed(checkName(name)))
    return failure();
  if (name.empty() || !scope.values.try_emplace(name, value).second)
    return emitError(location) << "value " << printable(name)
                               << (name.empty() ? " has no name" : " is defined twice; each name may be defined once");
  return success();
}

LogicalResult OnnxImporter::addInitializer(Scope &scope, const ::onnx::TensorProto &tensor, const ValueRange &range) {
  if (failed(checkName(tensor.name())))
    return failure();
  std::string name = printable(tensor.name());
  Type element = getElementType(tensor.data_type(), builder.getContext());
  if (!element)
    return emitError(location) << "initializer " << name << " has ONNX element type " << tensor.data_type()
                               << ", which is not supported";
  llvm::SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  int64_t count = countElements(shape);
  if (count < 0)
    return emitError(location) << "initializer " << name << " has a negative dimension or more than 2^48 elements";
  auto type = RankedTensorType::get(shape, element);
  int64_t bytes = count * getElementBytes(element);

  auto stated = kinds.find(tensor.name());
  llvm::StringRef kind = stated != kinds.end() ? stated->second : readKind(tensor.metadata_props());
  onnx::SourceAttr source;
  ElementsAttr value;
  bool isValue = element.isInteger() ? count <= options.budgets.inlineElements
                                     : shape.empty() && kind != "parameter" && !ownNames.contains(tensor.name());
  if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL) {
    std::string file;
    int64_t offset = 0, length = bytes;
    for (const auto &entry : tensor.external_data()) {
      if (entry.key() == "location")
        file = entry.value();
      int64_t *number = entry.key() == "offset" ? &offset : entry.key() == "length" ? &length : nullptr;
      if (number && (llvm::StringRef(entry.value()).getAsInteger(10, *number) || *number < 0))
        return emitError(location, Code::external_data)
               << "initializer " << name << " has external " << printable(entry.key()) << " "
               << printable(entry.value()) << ", which is not a byte count";
    }
    if (failed(checkName(file)))
      return failure();
    llvm::Expected<std::optional<std::string>> resolved = resolveExternalData(weights.getFolder(), file);
    if (!resolved)
      return emitError(location, Code::external_data)
             << "initializer " << name << ": " << llvm::toString(resolved.takeError());
    if (length != bytes)
      return emitError(location, Code::external_data)
             << "initializer " << name << " refers to " << length << " bytes of " << printable(file)
             << " but its shape needs " << bytes;
    source = onnx::SourceAttr::getChecked([&] { return emitError(location); }, builder.getContext(),
                                          builder.getStringAttr(file), offset, length);
    if (!source)
      return failure();
    if (isValue && *resolved) {
      llvm::Expected<std::vector<char>> data = weights.read(file, offset, length);
      if (!data)
        return emitError(location) << "initializer " << name << ": " << llvm::toString(data.takeError());
      value = makeElements(type, llvm::StringRef(data->data(), data->size()));
      source = {};
    }
  } else if (!isValue && range.offset >= 0) {
    if (range.length != bytes)
      return emitError(location) << "initializer " << name << " holds " << range.length
                                 << " bytes of values but its shape needs " << bytes;
    source = onnx::SourceAttr::get(builder.getContext(), builder.getStringAttr(""), range.offset, range.length);
  } else {
    std::string data;
    if (range.isStripped) { // Only a wrong shape: these elements take fewer bytes.
      return emitError(location) << "initializer " << name << " holds " << range.length
                                 << " bytes of values but its shape needs " << bytes;
    }
    llvm::Expected<std::string> decoded = decodeValues(tensor, type);
    if (!decoded)
      return emitError(location) << "initializer " << name << " " << llvm::toString(decoded.takeError());
    if (isValue)
      value = makeElements(type, *decoded);
    else
      source = onnx::SourceAttr::get(builder.getContext(), builder.getStringAttr(""),
                                     weights.append(llvm::ArrayRef<char>(decoded->data(), decoded->size())), bytes);
  }
  auto loc = NameLoc::get(builder.getStringAttr(tensor.name()));
  auto op = onnx::InitializerOp::create(builder, loc, type, builder.getStringAttr(tensor.name()), source, value,
                                        kind.empty() ? StringAttr() : builder.getStringAttr(kind));
  return define(scope, tensor.name(), op.getResult());
}

LogicalResult OnnxImporter::readFunctions() {
  for (const auto &function : model.functions()) {
    std::string key = function.domain() + "\n" + function.name() + "\n" + function.overload();
    if (failed(checkName(function.name())) || failed(checkName(function.domain())))
      return failure();
    if (!functions.try_emplace(key, &function).second)
      return emitError(location) << "function " << printable(function.name()) << " is defined twice";
  }
  return success();
}

void OnnxImporter::collectOwnNames() {
  for (const auto &node : model.graph().node())
    for (const std::string &input : node.input())
      if (onnx::isNamedByModule(input, readScopePath(node)))
        ownNames.insert(input);
}

FailureOr<OnnxImporter::GraphInputs> OnnxImporter::readInputs() {
  llvm::StringSet<> initializers;
  for (const auto &tensor : model.graph().initializer())
    initializers.insert(tensor.name());
  GraphInputs inputs;
  for (const auto &input : model.graph().input()) {
    // Files of the first IR versions list initializers among the inputs.
    if (initializers.contains(input.name()))
      continue;
    llvm::SmallVector<Attribute> names;
    FailureOr<RankedTensorType> type = readInputType(input, names);
    if (failed(type))
      return failure();
    for (Attribute name : names)
      if (llvm::StringRef text = cast<StringAttr>(name).getValue(); !text.empty())
        inputs.symbols.insert(text);
    inputs.names.push_back(input.name());
    inputs.types.push_back(*type);
    inputs.dimNames.push_back(builder.getArrayAttr(names));
  }
  return inputs;
}

LogicalResult OnnxImporter::checkBoundDims(const llvm::StringSet<> &symbols) {
  for (const auto &[name, value] : options.dims) {
    if (value < 1)
      return emitError(location, Code::dimension)
             << "dimension " << printable(name) << " is bound to " << value << "; it must be 1 or more";
    if (symbols.contains(name))
      continue;
    std::string known;
    for (const auto &entry : symbols)
      known += (known.empty() ? "" : ", ") + printable(entry.first());
    return emitError(location, Code::dimension) << "no input has a symbolic dimension " << printable(name)
                                                << "; the model has " << (known.empty() ? "none" : known);
  }
  return success();
}

LogicalResult OnnxImporter::buildGraph(const GraphInputs &inputs, ArrayAttr signature, Scope &scope) {
  const ::onnx::GraphProto &graph = model.graph();
  llvm::SmallVector<llvm::StringRef> outputNames;
  for (const auto &output : graph.output()) {
    outputNames.push_back(output.name());
    scope.types[output.name()] = readStatedType(output);
  }
  auto graphOp =
      onnx::GraphOp::create(builder, location, builder.getStringAttr(graph.name()),
                            builder.getStrArrayAttr(inputs.names), builder.getStrArrayAttr(outputNames),
                            inputs.symbols.empty() ? ArrayAttr() : builder.getArrayAttr(inputs.dimNames), signature);
  Block *block = builder.createBlock(&graphOp.getBody());
  for (auto [name, type] : llvm::zip_equal(inputs.names, inputs.types))
    if (failed(define(scope, name, block->addArgument(type, NameLoc::get(builder.getStringAttr(name))))))
      return failure();
  builder.setInsertionPointToEnd(block);
  for (auto [index, tensor] : llvm::enumerate(graph.initializer()))
    if (failed(addInitializer(scope, tensor, skeleton.initializers[index])))
      return failure();
  for (auto [index, node] : llvm::enumerate(graph.node()))
    if (failed(addNode(scope, node, static_cast<int64_t>(index))))
      return failure();
  llvm::SmallVector<Value> outputs;
  for (llvm::StringRef name : outputNames) {
    auto found = scope.values.find(name);
    if (found == scope.values.end())
      return emitError(location) << "output " << printable(name) << " is defined by no node";
    outputs.push_back(found->second);
  }
  onnx::ReturnOp::create(builder, location, outputs);
  return success();
}

LogicalResult OnnxImporter::run() {
  const ::onnx::GraphProto &graph = model.graph();
  if (failed(checkBudgets()))
    return failure();
  Scope scope;
  if (failed(readOpsets(model.opset_import(), "the model", scope.opsets)))
    return failure();
  if (!scope.opsets.count(""))
    return emitError(location) << "the model imports no opset of ONNX's own domain";
  if (failed(readFunctions()))
    return failure();
  if (graph.sparse_initializer_size() > 0)
    return emitError(location) << "the model has " << graph.sparse_initializer_size()
                               << " sparse initializers, which are not supported";
  if (static_cast<size_t>(graph.initializer_size()) != skeleton.initializers.size())
    return emitError(location) << "is not a valid ONNX file: its initializers cannot be told apart";

  for (const auto &info : graph.value_info()) {
    if (llvm::StringRef kind = readKind(info.metadata_props()); !kind.empty())
      kinds[info.name()] = kind;
    scope.types[info.name()] = readStatedType(info);
  }
  FailureOr<ArrayAttr> signature = readSignature();
  if (failed(signature) || failed(applyTrainPatterns()))
    return failure();
  if (!*signature)
    collectOwnNames();

  FailureOr<GraphInputs> inputs = readInputs();
  if (failed(inputs) || failed(checkBoundDims(inputs->symbols)) || failed(checkName(graph.name())))
    return failure();
  return buildGraph(*inputs, *signature, scope);
}
