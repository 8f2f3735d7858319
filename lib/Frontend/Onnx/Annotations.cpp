#include "windlass/Frontend/Onnx/Annotations.h"

#include "ParsedModel.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"

#include <google/protobuf/arena.h>

using namespace windlass;

/// The first IR version with these messages.
static constexpr int64_t kIrVersion = 11;
/// The most factors of one dimension: factors of 2 make a size that fits 64 bits.
static constexpr int kMostFactors = 64;

namespace {

/// A model's file with its message parsed.
struct OpenModel {
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::unique_ptr<google::protobuf::Arena> arena = std::make_unique<google::protobuf::Arena>();
  const ::onnx::ModelProto *message = nullptr;
};

llvm::Expected<OpenModel> open(llvm::StringRef path, const ImportBudgets &budgets) {
  OpenModel model;
  auto file = openModelFile(path, budgets);
  if (!file)
    return file.takeError();
  model.file = std::move(*file);
  llvm::Expected<MessageSkeleton> skeleton = extractSkeleton(model.file->getBuffer(), budgets);
  if (!skeleton)
    return skeleton.takeError();
  bool isOverBudget = false;
  auto message = parseModel(skeleton->bytes, *model.arena, budgets, isOverBudget);
  if (!message)
    return message.takeError();
  model.message = *message;
  return std::move(model);
}

/// Reads the sharding that a node states for a tensor. Fails where it is contradictory.
llvm::Expected<TensorSharding> read(const ::onnx::ShardingSpecProto &spec, int64_t devices) {
  TensorSharding sharding;
  sharding.tensor = spec.tensor_name();
  int64_t shards = 1;
  for (const auto &dim : spec.sharded_dim()) {
    if (!dim.has_axis())
      return makeError("has a sharded dimension without an axis");
    auto [factors, isNew] = sharding.dims.try_emplace(dim.axis());
    if (!isNew)
      return makeError("shards axis " + llvm::Twine(dim.axis()) + " twice");
    if (dim.simple_sharding_size() == 0)
      return makeError("does not say how axis " + llvm::Twine(dim.axis()) + " is sharded");
    if (dim.simple_sharding_size() > kMostFactors)
      return makeError("takes axis " + llvm::Twine(dim.axis()) + " apart into " +
                       llvm::Twine(dim.simple_sharding_size()) + " factors; at most " + llvm::Twine(kMostFactors) +
                       " are read");
    for (const auto &simple : dim.simple_sharding()) {
      if (simple.num_shards() < 1 || simple.num_shards() > devices)
        return makeError("splits axis " + llvm::Twine(dim.axis()) + " into " + llvm::Twine(simple.num_shards()) +
                         " shards: use 1 to the configuration's " + llvm::Twine(devices) + " devices");
      if (simple.has_dim_value() && simple.dim_value() < 1)
        return makeError("has a factor of " + llvm::Twine(simple.dim_value()) + " on axis " + llvm::Twine(dim.axis()));
      factors->second.push_back({simple.has_dim_value() ? simple.dim_value() : 0, simple.num_shards()});
      shards *= simple.num_shards();
      if (shards > devices)
        return makeError("has more shards than the configuration has devices, " + llvm::Twine(devices));
    }
  }
  std::map<int64_t, const ::onnx::IntIntListEntryProto *> groups;
  for (const auto &entry : spec.index_to_device_group_map())
    if (!groups.emplace(entry.key(), &entry).second)
      return makeError("has device group " + llvm::Twine(entry.key()) + " twice");
  if (spec.device_size() != shards)
    return makeError("has " + llvm::Twine(shards) + " shards, but names " + llvm::Twine(spec.device_size()) +
                     " devices or groups for them");
  std::set<int64_t> seen;
  auto add = [&](std::vector<int64_t> &to, int64_t device) -> llvm::Error {
    if (device < 0 || device >= devices)
      return makeError("names device " + llvm::Twine(device) + ", but the configuration has " + llvm::Twine(devices));
    if (!seen.insert(device).second)
      return makeError("puts two shards on device " + llvm::Twine(device));
    to.push_back(device);
    return llvm::Error::success();
  };
  for (int64_t device : spec.device()) {
    std::vector<int64_t> &holders = sharding.devices.emplace_back();
    auto group = groups.find(device);
    if (group == groups.end()) {
      if (llvm::Error error = add(holders, device))
        return std::move(error);
      continue;
    }
    for (int64_t member : group->second->value())
      if (llvm::Error error = add(holders, member))
        return std::move(error);
    llvm::sort(holders);
  }
  if (static_cast<int64_t>(seen.size()) != devices)
    return makeError("has its shards on " + llvm::Twine(seen.size()) + " of the configuration's " +
                     llvm::Twine(devices) + " devices; each has to hold one");
  return sharding;
}

void write(const TensorSharding &sharding, ::onnx::ShardingSpecProto &spec) {
  spec.set_tensor_name(sharding.tensor);
  for (const auto &[axis, factors] : sharding.dims) {
    auto *dim = spec.add_sharded_dim();
    dim->set_axis(axis);
    for (const ShardedFactor &factor : factors) {
      auto *simple = dim->add_simple_sharding();
      simple->set_dim_value(factor.size);
      simple->set_num_shards(factor.shards);
    }
  }
  // Groups are numbered from -1 down, because devices are numbered from 0 up.
  int64_t group = 0;
  for (const std::vector<int64_t> &holders : sharding.devices) {
    if (holders.size() == 1) {
      spec.add_device(holders.front());
      continue;
    }
    spec.add_device(--group);
    auto *entry = spec.add_index_to_device_group_map();
    entry->set_key(group);
    for (int64_t device : holders)
      entry->add_value(device);
  }
}

} // namespace

llvm::Expected<GraphOutline> windlass::readOutline(llvm::StringRef path, const ImportBudgets &budgets) {
  llvm::Expected<OpenModel> model = open(path, budgets);
  if (!model)
    return model.takeError();
  GraphOutline outline;
  const ::onnx::GraphProto &graph = model->message->graph();
  for (const auto &node : graph.node())
    outline.nodes.push_back(
        {node.name(), {node.input().begin(), node.input().end()}, {node.output().begin(), node.output().end()}});
  for (const auto &tensor : graph.initializer())
    outline.initializers.insert(tensor.name());
  for (const auto &info : graph.value_info()) {
    if (!info.type().tensor_type().has_shape())
      continue;
    std::vector<int64_t> shape;
    for (const auto &dim : info.type().tensor_type().shape().dim())
      shape.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    outline.shapes[info.name()] = std::move(shape);
  }
  return outline;
}

llvm::Expected<ModelAnnotations> windlass::readAnnotations(llvm::StringRef path, llvm::StringRef configuration,
                                                           const ImportBudgets &budgets) {
  llvm::Expected<OpenModel> model = open(path, budgets);
  if (!model)
    return model.takeError();
  ModelAnnotations annotations;
  annotations.configuration = configuration.str();
  std::string known;
  bool isFound = false;
  for (const auto &each : model->message->configuration()) {
    if (known.size() < 1000)
      known += (known.empty() ? "" : ", ") + printable(each.name(), 40);
    if (each.name() != configuration)
      continue;
    if (isFound)
      return makeError("has configuration " + printable(configuration) + " twice");
    isFound = true;
    annotations.devices = each.num_devices();
    if (each.num_devices() < 1 || (each.device_size() > 0 && each.device_size() != each.num_devices()))
      return makeError("has configuration " + printable(configuration) + " of " + llvm::Twine(each.num_devices()) +
                       " devices with " + llvm::Twine(each.device_size()) + " names");
  }
  if (!isFound)
    return makeError("has no configuration " + printable(configuration) + "; it has " +
                     (known.empty() ? std::string("none") : known));
  for (auto [index, node] : llvm::enumerate(model->message->graph().node())) {
    std::set<std::string> tensors;
    for (const auto &device : node.device_configurations()) {
      if (device.configuration_id() != configuration)
        continue;
      for (const auto &spec : device.sharding_spec()) {
        std::string place = "node " + printable(node.name()) + ": the sharding of " + printable(spec.tensor_name());
        if (!llvm::is_contained(node.input(), spec.tensor_name()) &&
            !llvm::is_contained(node.output(), spec.tensor_name()))
          return makeError(place + " is of no input or output of the node");
        if (!tensors.insert(spec.tensor_name()).second)
          return makeError(place + " is there twice");
        llvm::Expected<TensorSharding> sharding = read(spec, annotations.devices);
        if (!sharding)
          return makeError(place + " " + llvm::toString(sharding.takeError()));
        annotations.nodes[static_cast<int64_t>(index)].push_back(std::move(*sharding));
      }
    }
  }
  return annotations;
}

llvm::Expected<std::string> windlass::addAnnotations(llvm::StringRef path, const ModelAnnotations &annotations,
                                                     const ImportBudgets &budgets) {
  llvm::Expected<OpenModel> model = open(path, budgets);
  if (!model)
    return model.takeError();
  for (const auto &each : model->message->configuration())
    if (each.name() == annotations.configuration)
      return makeError("has a configuration " + printable(annotations.configuration) + " already");
  ::onnx::ModelProto toModel;
  auto *configuration = toModel.add_configuration();
  configuration->set_name(annotations.configuration);
  configuration->set_num_devices(static_cast<int32_t>(annotations.devices));
  std::map<int64_t, std::string> toNodes;
  for (const auto &[index, shardings] : annotations.nodes) {
    ::onnx::NodeProto toNode;
    auto *device = toNode.add_device_configurations();
    device->set_configuration_id(annotations.configuration);
    for (const TensorSharding &sharding : shardings)
      write(sharding, *device->add_sharding_spec());
    toNodes[index] = toNode.SerializeAsString();
  }
  return appendFields(model->file->getBuffer(), toNodes, toModel.SerializeAsString(), kIrVersion);
}
