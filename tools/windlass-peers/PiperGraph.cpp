#include "PiperGraph.h"

#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <set>

using namespace windlass;
using namespace windlass::peers;

/// All pairs of prefixes are looked at, so more would take minutes.
static constexpr size_t kMostPrefixes = 40'000;
static constexpr size_t kMostLayers = 2'000;
static constexpr size_t kMostVariants = 2;
static constexpr double kMostNumber = 1e18;

namespace {

/// An order of prefixes of the same size.
struct IsBefore {
  bool operator()(const llvm::BitVector &a, const llvm::BitVector &b) const {
    return std::lexicographical_compare(a.getData().begin(), a.getData().end(), b.getData().begin(), b.getData().end());
  }
};

class GraphReader {
public:
  llvm::Expected<PiperGraph> read(const llvm::json::Value &value);

private:
  llvm::Error readLayer(const llvm::json::Value &value);
  llvm::Error readLink(const llvm::json::Value &value);
  llvm::Error findPrefixes();

  PiperGraph graph;
  std::map<int64_t, size_t> byId;
};

/// Returns a number of at least 0 that the object has under `key`.
llvm::Expected<double> getNumber(const llvm::json::Object &object, llvm::StringRef key) {
  std::optional<double> number = object.getNumber(key);
  if (!number || !(*number >= 0 && *number <= kMostNumber))
    return makeError("'" + key + "' is no number of at least 0");
  return *number;
}

llvm::Error readBytesByLayer(const llvm::json::Object &object, llvm::StringRef key, std::map<int64_t, double> &bytes) {
  const llvm::json::Object *entries = object.getObject(key);
  if (!entries)
    return makeError("'" + key + "' is no object");
  for (const auto &[name, value] : *entries) {
    int64_t id;
    std::optional<double> number = value.getAsNumber();
    if (name.str().empty() || llvm::StringRef(name).getAsInteger(10, id) || !number || !(*number >= 0))
      return makeError("'" + key + "' has an entry that is no number of a layer's id");
    bytes[id] = *number;
  }
  return llvm::Error::success();
}

llvm::Expected<Variant> readVariant(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<llvm::StringRef> id = object ? object->getString("id") : std::nullopt;
  if (!id)
    return makeError("a variant is no object with an 'id'");
  Variant variant = {};
  variant.recomputes = id->contains("recomp");
  for (auto [key, field] : {std::pair("timePerSample", &variant.seconds),
                            {"parameterSize", &variant.parameterBytes},
                            {"memoryUsageA", &variant.bytesInFlight},
                            {"memoryUsageB", &variant.fixedBytes}}) {
    llvm::Expected<double> number = getNumber(*object, key);
    if (!number)
      return number.takeError();
    *field = *number;
  }
  if (llvm::Error error = readBytesByLayer(*object, "syncTimeFw", variant.bytesIn))
    return error;
  if (llvm::Error error = readBytesByLayer(*object, "syncTimeBw", variant.bytesOut))
    return error;
  return variant;
}

} // namespace

llvm::Error GraphReader::readLayer(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<int64_t> id = object ? object->getInteger("id") : std::nullopt;
  const llvm::json::Object *degrees = object ? object->getObject("TMPCs") : nullptr;
  if (!id || !degrees)
    return makeError("a node is no object with 'id' and 'TMPCs'");
  if (!byId.insert({*id, graph.layers.size()}).second)
    return makeError("two nodes have the id " + llvm::Twine(*id));
  Layer layer = {*id, {}};
  for (const auto &[name, variants] : *degrees) {
    int64_t degree;
    const llvm::json::Array *list = variants.getAsArray();
    if (llvm::StringRef(name).getAsInteger(10, degree) || degree < 1 || !list || list->empty() ||
        list->size() > kMostVariants)
      return makeError("the variants of node " + llvm::Twine(*id) + " are no lists of one or two by degree");
    for (const llvm::json::Value &each : *list) {
      llvm::Expected<Variant> variant = readVariant(each);
      if (!variant)
        return makeError("node " + llvm::Twine(*id) + ": " + llvm::toString(variant.takeError()));
      layer.variants[degree].push_back(std::move(*variant));
    }
    if (!llvm::is_contained(graph.degrees, degree))
      graph.degrees.push_back(degree);
  }
  graph.layers.push_back(std::move(layer));
  return llvm::Error::success();
}

llvm::Error GraphReader::readLink(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  std::optional<int64_t> from = object ? object->getInteger("sourceId") : std::nullopt,
                         to = object ? object->getInteger("destId") : std::nullopt;
  if (!from || !to || !byId.count(*from) || !byId.count(*to) || *from == *to)
    return makeError("an edge is not between two nodes");
  llvm::Expected<double> bytes = getNumber(*object, "communicationCost");
  if (!bytes)
    return bytes.takeError();
  graph.links.push_back({byId[*from], byId[*to], *bytes});
  return llvm::Error::success();
}

llvm::Error GraphReader::findPrefixes() {
  size_t count = graph.layers.size();
  std::vector<llvm::BitVector> before(count, llvm::BitVector(count));
  for (const Link &link : graph.links)
    before[link.to].set(link.from);
  // Each prefix of the next size has one layer more.
  using Prefixes = std::set<llvm::BitVector, IsBefore>;
  for (Prefixes present = {llvm::BitVector(count)}, next; !present.empty(); std::swap(present, next)) {
    next.clear();
    for (const llvm::BitVector &prefix : present) {
      graph.prefixes.push_back(prefix);
      if (graph.prefixes.size() > kMostPrefixes)
        return makeError("the graph can be cut in more than " + llvm::Twine(kMostPrefixes) + " ways");
      for (size_t layer = 0; layer < count; ++layer) {
        if (prefix.test(layer) || before[layer].test(prefix))
          continue;
        llvm::BitVector larger = prefix;
        larger.set(layer);
        next.insert(std::move(larger));
      }
    }
  }
  if (!graph.prefixes.back().all())
    return makeError("the graph has a cycle");
  return llvm::Error::success();
}

llvm::Expected<PiperGraph> GraphReader::read(const llvm::json::Value &value) {
  const llvm::json::Object *object = value.getAsObject();
  const llvm::json::Array *nodes = object ? object->getArray("nodes") : nullptr,
                          *edges = object ? object->getArray("edges") : nullptr;
  if (!nodes || !edges || nodes->empty() || nodes->size() > kMostLayers)
    return makeError("the graph has no lists 'nodes' and 'edges' of up to " + llvm::Twine(kMostLayers) + " nodes");
  for (const llvm::json::Value &node : *nodes)
    if (llvm::Error error = readLayer(node))
      return error;
  for (const llvm::json::Value &edge : *edges)
    if (llvm::Error error = readLink(edge))
      return error;
  llvm::sort(graph.degrees);
  if (llvm::Error error = findPrefixes())
    return error;
  return std::move(graph);
}

llvm::Expected<PiperGraph> peers::readPiperGraph(const llvm::json::Value &value) { return GraphReader().read(value); }
