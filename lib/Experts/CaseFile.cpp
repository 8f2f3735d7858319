#include "windlass/Experts/CaseFile.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include <cmath>
#include <numeric>

using namespace windlass;
using namespace windlass::experts;
using llvm::Twine;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// The largest load, of which sums are exact enough; the most layers; the most replicas of all layers of a file
/// together; the most bytes of a file.
static constexpr double kMostLoad = 1e15;
static constexpr size_t kMostLayers = 4096;
static constexpr int64_t kMostSlotsOfFile = 1 << 20, kMostBytes = 64 << 20;

namespace {

/// Reads one case. The first failure is kept by the reader of the object.
class CaseReader {
public:
  CaseReader(const Value &value, std::string path) : reader(value, std::move(path)) {}

  llvm::Error read(Case &result, std::vector<Placement> *placements, int64_t &slotsLeft) {
    readShape(result);
    if (!reader.failed())
      readLoads(result, slotsLeft);
    if (!reader.failed())
      if (std::string error = checkShape(result.shape); !error.empty())
        reader.fail("weight", "does not fit: " + error);
    if (!reader.failed() && placements)
      readPlacements(result, *placements);
    // An answer beside the case says nothing about it.
    for (const char *key : {"phy2log", "log2phy", "logcnt", "gpu_max_mean_bal", "bound", "optimal", "before", "moved"})
      reader.find(key);
    return reader.takeError();
  }

private:
  void readShape(Case &result) {
    result.shape.replicas = static_cast<int32_t>(reader.getInteger("replicas", 1, kMostReplicas));
    result.shape.groups = static_cast<int32_t>(reader.getInteger("groups", 1, kMostExperts));
    result.shape.nodes = static_cast<int32_t>(reader.getInteger("nodes", 1, kMostReplicas));
    result.shape.gpus = static_cast<int32_t>(reader.getInteger("gpus", 1, kMostReplicas));
  }

  /// Returns a list of lists, one for each layer, or null after a failure.
  const Array *getLayers(llvm::StringRef key) {
    const Value *value = reader.get(key);
    const Array *layers = value ? value->getAsArray() : nullptr;
    if (value && (!layers || layers->empty() || layers->size() > kMostLayers))
      reader.fail(key, "must be a list of 1 to " + Twine(kMostLayers) + " layers");
    if (reader.failed())
      return nullptr;
    for (size_t layer = 0; layer < layers->size(); ++layer)
      if (!(*layers)[layer].getAsArray()) {
        reader.fail(key, "[" + Twine(layer) + "] must be a list, of one layer");
        return nullptr;
      }
    return layers;
  }

  void readLoads(Case &result, int64_t &slotsLeft) {
    const Array *layers = getLayers("weight");
    if (!layers)
      return;
    size_t experts = layers->front().getAsArray()->size();
    if (experts < 1 || experts > kMostExperts)
      return reader.fail("weight", "[0] has " + Twine(experts) + " experts: give 1 to " + Twine(kMostExperts));
    slotsLeft -= static_cast<int64_t>(layers->size()) * result.shape.replicas;
    if (slotsLeft < 0)
      return reader.fail("weight", "has " + Twine(layers->size()) + " layers of " + Twine(result.shape.replicas) +
                                       " replicas: a file may have " + Twine(kMostSlotsOfFile) +
                                       " replicas in all; split it");
    result.shape.experts = static_cast<int32_t>(experts);
    for (size_t layer = 0; layer < layers->size(); ++layer) {
      const Array &row = *(*layers)[layer].getAsArray();
      if (row.size() != experts)
        return reader.fail("weight", "[" + Twine(layer) + "] has " + Twine(row.size()) +
                                         " experts, but weight[0] has " + Twine(experts) + ": give all layers as many");
      std::vector<double> &loads = result.loads.emplace_back();
      for (const Value &value : row) {
        std::optional<double> load = value.getAsNumber();
        if (!load || !(*load >= 0 && *load <= kMostLoad))
          return reader.fail("weight", "[" + Twine(layer) + "][" + Twine(loads.size()) +
                                           "] must be a load: a number from 0 to 1e15");
        loads.push_back(*load);
      }
    }
  }

  void readPlacements(const Case &given, std::vector<Placement> &placements) {
    const Array *layers = getLayers("phy2log");
    if (!layers)
      return;
    if (layers->size() != given.loads.size())
      return reader.fail("phy2log", "has " + Twine(layers->size()) + " layers, but weight has " +
                                        Twine(given.loads.size()) + ": give one for each");
    for (size_t layer = 0; layer < layers->size(); ++layer) {
      Placement &placement = placements.emplace_back();
      for (const Value &value : *(*layers)[layer].getAsArray()) {
        std::optional<int64_t> expert = value.getAsInteger();
        // Any number that is no expert's is refused with the rest of the placement.
        placement.push_back(expert && *expert >= 0 && *expert < kMostExperts ? static_cast<int32_t>(*expert) : -1);
      }
      if (std::string error = checkPlacement(given.shape, placement); !error.empty())
        return reader.fail("phy2log", "[" + Twine(layer) + "] " + error);
    }
  }

  ObjectReader reader;
};

} // namespace

llvm::Expected<CaseFile> windlass::experts::parseCases(const Value &document, bool readsPlacements) {
  CaseFile file;
  const Array *list = document.getAsArray();
  if (!list && !document.getAsObject())
    return makeError(
        "is neither a case nor a list of cases: give an object with weight, replicas, groups, nodes, gpus");
  file.isList = list != nullptr;
  size_t count = list ? list->size() : 1;
  int64_t slotsLeft = kMostSlotsOfFile;
  for (size_t at = 0; at < count; ++at) {
    CaseReader reader(list ? (*list)[at] : document, list ? "[" + std::to_string(at) + "]" : "");
    std::vector<Placement> placements;
    if (llvm::Error error = reader.read(file.cases.emplace_back(), readsPlacements ? &placements : nullptr, slotsLeft))
      return std::move(error);
    file.placements.push_back(std::move(placements));
  }
  if (count == 0)
    return makeError("is an empty list: give at least one case");
  return file;
}

llvm::Expected<CaseFile> windlass::experts::readCases(llvm::StringRef path, bool readsPlacements) {
  llvm::Expected<Value> document = readStrictJson(path, kMostBytes, "loads of experts");
  if (!document)
    return document.takeError();
  llvm::Expected<CaseFile> file = parseCases(*document, readsPlacements);
  if (!file)
    return makeError(printable(path) + ": " + llvm::toString(file.takeError()));
  return file;
}

double windlass::experts::computeMeanLoad(const Case &given, size_t layer) {
  return std::accumulate(given.loads[layer].begin(), given.loads[layer].end(), 0.0) / given.shape.gpus;
}

Object windlass::experts::toJson(const Case &given, const CaseAnswer &answer) {
  Array weight, placements, counts, figures, bounds, optimal, before, moved;
  for (size_t layer = 0; layer < given.loads.size(); ++layer) {
    const ReplanAnswer &each = answer.layers[layer];
    double mean = computeMeanLoad(given, layer);
    weight.push_back(Array(given.loads[layer]));
    placements.push_back(Array(each.placement));
    counts.push_back(Array(countReplicas(each.placement, given.shape.experts)));
    figures.push_back(Array{each.load, mean, each.load > 0 ? mean / each.load : 1.0});
    bounds.push_back(each.bound);
    optimal.push_back(each.isOptimal());
    before.push_back(each.loadBefore);
    moved.push_back(each.moved);
  }
  Object object{{"weight", std::move(weight)},  {"replicas", given.shape.replicas},
                {"groups", given.shape.groups}, {"nodes", given.shape.nodes},
                {"gpus", given.shape.gpus},     {"phy2log", std::move(placements)},
                {"logcnt", std::move(counts)},  {"gpu_max_mean_bal", std::move(figures)},
                {"bound", std::move(bounds)},   {"optimal", std::move(optimal)}};
  if (answer.isReplanned) {
    object["before"] = std::move(before);
    object["moved"] = std::move(moved);
  }
  return object;
}
