//===- ImportNodes.cpp - nodes, their attributes and function calls -------===//

#include "Importer.h"

#include "GraphSignature.h"
#include "SinceVersions.h"
#include "Tensors.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace windlass;

std::string windlass::readScopePath(const ::onnx::NodeProto &node) {
  for (const auto &entry : node.metadata_props()) {
    if (entry.key() != "pkg.torch.onnx.name_scopes")
      continue;
    llvm::StringRef text(entry.value());
    llvm::SmallVector<llvm::StringRef> entries;
    while (true) {
      size_t begin = text.find('\'');
      if (begin == llvm::StringRef::npos)
        break;
      size_t end = text.find('\'', begin + 1);
      if (end == llvm::StringRef::npos)
        break;
      entries.push_back(text.slice(begin + 1, end));
      text = text.drop_front(end + 1);
    }
    if (entries.size() >= 2)
      return entries[entries.size() - 2].str();
  }
  return {};
}

/// Returns the traced call that the exporter made the node for; null where the file states none that can be read.
static windlass::onnx::CallAttr readCall(const ::onnx::NodeProto &node, OpBuilder &builder) {
  for (const auto &entry : node.metadata_props())
    if (entry.key() == "pkg.torch.onnx.fx_node" && llvm::json::isUTF8(entry.value()))
      if (std::optional<TracedCall> call = readTracedCall(entry.value()))
        return windlass::onnx::CallAttr::get(builder.getContext(), builder.getStringAttr(call->result),
                                             builder.getStringAttr(call->target),
                                             builder.getStringAttr(call->arguments));
  return {};
}

FailureOr<Attribute> OnnxImporter::readTensorAttribute(const ::onnx::TensorProto &tensor, Location nodeLocation) {
  Type element = getElementType(tensor.data_type(), builder.getContext());
  if (!element)
    return Attribute(onnx::OmittedAttr::get(builder.getContext(), builder.getStringAttr("type")));
  llvm::SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  int64_t count = countElements(shape);
  if (count < 0) {
    emitError(nodeLocation) << "a tensor attribute has a negative dimension or more than 2^48 elements";
    return failure();
  }
  if (tensor.data_location() == ::onnx::TensorProto::EXTERNAL) {
    emitError(nodeLocation) << "a tensor attribute refers to external data; only initializers may";
    return failure();
  }
  auto type = RankedTensorType::get(shape, element);
  llvm::Expected<std::string> bytes = decodeValues(tensor, type);
  if (!bytes) {
    emitError(nodeLocation) << "a tensor attribute " << llvm::toString(bytes.takeError());
    return failure();
  }
  if (count <= options.budgets.inlineElements)
    return Attribute(makeElements(type, *bytes));
  // Large constants are kept outside of the IR; the type has to travel with the reference.
  int64_t offset = weights.append(llvm::ArrayRef<char>(bytes->data(), bytes->size()));
  auto source = onnx::SourceAttr::get(builder.getContext(), builder.getStringAttr(""), offset,
                                      static_cast<int64_t>(bytes->size()));
  return Attribute(builder.getArrayAttr({source, TypeAttr::get(type)}));
}

FailureOr<Attribute> OnnxImporter::readAttribute(Scope &scope, const ::onnx::AttributeProto &attribute,
                                                 Location nodeLocation) {
  using Proto = ::onnx::AttributeProto;
  if (!attribute.ref_attr_name().empty()) {
    auto found = scope.parameters.find(attribute.ref_attr_name());
    return found == scope.parameters.end() ? Attribute() : found->second;
  }
  auto omitted = [&](llvm::StringRef kind) {
    return Attribute(onnx::OmittedAttr::get(builder.getContext(), builder.getStringAttr(kind)));
  };
  switch (attribute.type()) {
  case Proto::INT:
    return Attribute(builder.getI64IntegerAttr(attribute.i()));
  case Proto::FLOAT:
    return Attribute(builder.getF32FloatAttr(attribute.f()));
  case Proto::STRING:
    return Attribute(builder.getStringAttr(attribute.s()));
  case Proto::INTS:
    return Attribute(
        builder.getDenseI64ArrayAttr(llvm::SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end())));
  case Proto::FLOATS:
    return Attribute(
        builder.getDenseF32ArrayAttr(llvm::SmallVector<float>(attribute.floats().begin(), attribute.floats().end())));
  case Proto::STRINGS: {
    llvm::SmallVector<Attribute> strings;
    for (const std::string &text : attribute.strings())
      strings.push_back(builder.getStringAttr(text));
    return Attribute(builder.getArrayAttr(strings));
  }
  case Proto::TENSOR:
    return readTensorAttribute(attribute.t(), nodeLocation);
  case Proto::GRAPH:
  case Proto::GRAPHS:
    return omitted("graph");
  case Proto::SPARSE_TENSOR:
  case Proto::SPARSE_TENSORS:
    return omitted("sparse_tensor");
  default:
    return omitted("type");
  }
}

FailureOr<Value> OnnxImporter::lookUp(Scope &scope, llvm::StringRef name, Location nodeLocation) {
  if (name.empty()) {
    if (!absent) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(builder.getBlock());
      absent = onnx::AbsentOp::create(builder, location, onnx::AbsentType::get(builder.getContext())).getResult();
    }
    return absent;
  }
  auto found = scope.values.find(name);
  if (found != scope.values.end())
    return found->second;
  emitError(nodeLocation) << "reads " << printable(name)
                          << ", which no input, initializer or earlier node defines; nodes must be in order";
  return failure();
}

LogicalResult OnnxImporter::charge(int64_t cost, llvm::StringRef name) {
  nodes += cost;
  inlinedNameBytes += static_cast<int64_t>(name.size());
  if (nodes > options.budgets.nodes)
    return emitError(location, Code::model_budget) << "the model has more than the budget of " << options.budgets.nodes
                                                   << " nodes once its functions are inlined";
  if (inlinedNameBytes > options.budgets.inlinedNameBytes)
    return emitError(location, Code::model_budget)
           << "the names of the nodes take more than the budget of " << options.budgets.inlinedNameBytes
           << " bytes once functions are inlined";
  return success();
}

LogicalResult OnnxImporter::chargeSteps(int64_t steps) {
  if (work.spend(steps))
    return success();
  return emitError(location, Code::model_budget)
         << "the operands, results and attributes of the nodes take more than the budget of " << work.getLimit()
         << " steps once functions are inlined";
}

constexpr int64_t kBytesPerStep = 32;

LogicalResult OnnxImporter::chargeSteps(const ::onnx::NodeProto &node) {
  return chargeSteps(1 + int64_t(node.input_size()) + node.output_size() + node.attribute_size() +
                     static_cast<int64_t>(node.ByteSizeLong()) / kBytesPerStep);
}

LogicalResult OnnxImporter::chargeSteps(const ::onnx::FunctionProto &function) {
  size_t bytes = 0;
  for (const auto &fallback : function.attribute_proto())
    bytes += fallback.ByteSizeLong();
  for (const auto &info : function.value_info())
    bytes += info.ByteSizeLong();
  return chargeSteps(int64_t(function.input_size()) + function.attribute_proto_size() + function.value_info_size() +
                     function.opset_import_size() + static_cast<int64_t>(bytes) / kBytesPerStep);
}

LogicalResult OnnxImporter::addNode(Scope &scope, const ::onnx::NodeProto &node, int64_t index) {
  if (failed(checkName(node.name())) || failed(checkName(node.op_type())) || failed(checkName(node.domain())))
    return failure();
  if (failed(chargeSteps(node)))
    return failure();
  std::string name = node.name();
  if (name.empty())
    name = node.output_size() > 0 && !node.output(0).empty() ? node.output(0)
                                                             : node.op_type() + "_" + std::to_string(index);
  name = scope.prefix + name;
  auto nodeLocation = NameLoc::get(builder.getStringAttr(name));
  if (node.op_type().empty())
    return emitError(nodeLocation) << "a node names no operator";
  std::string key = node.domain() + "\n" + node.op_type() + "\n" + node.overload();
  if (auto found = functions.find(key); found != functions.end())
    return addCall(scope, node, *found->second, name);
  if (failed(charge(1, name)))
    return failure();

  llvm::StringRef domain = node.domain() == "ai.onnx" ? "" : llvm::StringRef(node.domain());
  auto opset = scope.opsets.find(domain);
  if (opset == scope.opsets.end())
    return emitError(nodeLocation) << "uses domain " << printable(domain) << ", for which no opset is imported";
  int64_t version = domain.empty() ? getSinceVersion(node.op_type(), opset->second) : 0;
  if (version == 0)
    version = opset->second;

  llvm::SmallVector<Value> inputs;
  for (const std::string &input : node.input()) {
    FailureOr<Value> value = lookUp(scope, input, nodeLocation);
    if (failed(value))
      return failure();
    inputs.push_back(*value);
  }
  llvm::SmallVector<NamedAttribute> attributes;
  llvm::StringMap<bool> seen;
  for (const auto &attribute : node.attribute()) {
    if (failed(checkName(attribute.name())))
      return failure();
    if (attribute.name().empty() || !seen.try_emplace(attribute.name(), true).second)
      return emitError(nodeLocation) << "has attribute " << printable(attribute.name()) << " twice or without a name";
    FailureOr<Attribute> value = readAttribute(scope, attribute, nodeLocation);
    if (failed(value))
      return failure();
    if (*value)
      attributes.push_back(builder.getNamedAttr(attribute.name(), *value));
  }
  llvm::SmallVector<Type> types;
  for (const std::string &output : node.output()) {
    auto stated = scope.types.find(output);
    if (output.empty())
      types.push_back(onnx::AbsentType::get(builder.getContext()));
    else if (stated != scope.types.end())
      types.push_back(stated->second);
    else
      types.push_back(onnx::ValueType::get(builder.getContext()));
  }
  std::string path = readScopePath(node);
  if (failed(checkName(path)))
    return failure();
  if (path.empty())
    path = scope.path;
  auto op = onnx::NodeOp::create(builder, nodeLocation, types, builder.getStringAttr(node.op_type()),
                                 domain.empty() ? StringAttr() : builder.getStringAttr(domain),
                                 builder.getI64IntegerAttr(version), inputs,
                                 attributes.empty() ? DictionaryAttr() : builder.getDictionaryAttr(attributes),
                                 path.empty() ? StringAttr() : builder.getStringAttr(path), readCall(node, builder));
  for (auto [output, value] : llvm::zip_equal(node.output(), op.getOutputs()))
    if (!output.empty() && failed(define(scope, output, value)))
      return failure();
  return success();
}

LogicalResult OnnxImporter::addCall(Scope &scope, const ::onnx::NodeProto &node, const ::onnx::FunctionProto &function,
                                    llvm::StringRef name) {
  auto nodeLocation = NameLoc::get(builder.getStringAttr(name));
  std::string callee = printable(function.name());
  Scope inner;
  inner.depth = scope.depth + 1;
  inner.prefix = name.str() + "/";
  inner.path = readScopePath(node);
  if (failed(checkName(inner.path)))
    return failure();
  if (inner.path.empty())
    inner.path = scope.path.empty() ? name.str() : scope.path;
  // A function that calls itself ends here too.
  if (inner.depth > options.budgets.depth)
    return emitError(location, Code::model_budget) << "calls of functions are nested deeper than the budget of "
                                                   << options.budgets.depth << " (at function " << callee << ")";
  // Each call walks the function's lists.
  int64_t lists = int64_t(function.input_size()) + function.attribute_proto_size() + function.value_info_size() +
                  function.opset_import_size();
  if (failed(charge(1 + lists, inner.prefix)) || failed(chargeSteps(function)))
    return failure();
  if (failed(readOpsets(function.opset_import(), "function " + callee, inner.opsets)))
    return failure();
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    return emitError(nodeLocation) << "calls " << callee << " with " << node.input_size() << " inputs and "
                                   << node.output_size() << " outputs, but it has " << function.input_size() << " and "
                                   << function.output_size();
  for (int i = 0; i < function.input_size(); ++i) {
    FailureOr<Value> value = lookUp(scope, i < node.input_size() ? node.input(i) : std::string(), nodeLocation);
    if (failed(value) || failed(define(inner, function.input(i), *value)))
      return failure();
  }
  for (const auto &fallback : function.attribute_proto()) {
    FailureOr<Attribute> value = readAttribute(inner, fallback, nodeLocation);
    if (failed(value))
      return failure();
    if (*value)
      inner.parameters[fallback.name()] = *value;
  }
  for (const auto &attribute : node.attribute()) {
    FailureOr<Attribute> value = readAttribute(scope, attribute, nodeLocation);
    if (failed(value))
      return failure();
    if (*value)
      inner.parameters[attribute.name()] = *value;
  }
  for (const auto &info : function.value_info())
    inner.types[info.name()] = readStatedType(info);
  for (auto [index, bodyNode] : llvm::enumerate(function.node()))
    if (failed(addNode(inner, bodyNode, static_cast<int64_t>(index))))
      return failure();
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    FailureOr<Value> value = lookUp(inner, function.output(i), nodeLocation);
    if (failed(value) || failed(define(scope, node.output(i), *value)))
      return failure();
  }
  return success();
}
