#include "windlass/Cluster/Cluster.h"

#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <limits>
#include <set>
#include <unistd.h>

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

int64_t Cluster::getDevices() const {
  int64_t devices = 0;
  for (const HostGroup &group : hosts)
    devices += group.count * group.devices;
  return devices;
}

const std::string &Cluster::getBackend() const { return deviceTypes.begin()->second.backend; }

bool Cluster::isEmulated() const {
  return getBackend() == "cpu" && deviceTypes.begin()->second.memoryBytes.has_value();
}

std::optional<int64_t> Cluster::getGivenReserve() const {
  return reserveBytes || !isEmulated() ? reserveBytes : std::optional<int64_t>(0);
}

int64_t Cluster::getDeviceMemoryBytes() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const HostGroup &group : hosts) {
    const DeviceType &type = deviceTypes.at(group.deviceType);
    least = std::min(least, type.memoryBytes ? *type.memoryBytes : *group.memoryBytes / group.devices);
  }
  return least;
}

std::string Cluster::describe() const {
  std::string text;
  for (const HostGroup &group : hosts)
    text += (text.empty() ? "" : ", ") + std::to_string(group.count) + (group.count == 1 ? " host of " : " hosts of ") +
            std::to_string(group.devices) + " x " + group.deviceType;
  return text;
}

int64_t windlass::getHostMemoryBytes() {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<int64_t>(pages) * size : 0;
}

llvm::Expected<Cluster> windlass::findCluster(StringRef text, int64_t hostMemoryBytes) {
  constexpr int64_t kMostBytes = int64_t(16) << 20;
  std::vector<std::string> presets = getPresetNames();
  StringRef name = text.split(':').first;
  if (llvm::is_contained(presets, name))
    return makePreset(text, hostMemoryBytes);
  if (!text.contains('/') && !text.ends_with(".json")) {
    std::string nearest = nearestOf(name, presets);
    return makeError("cluster " + printable(text) + " is neither a preset nor a file" +
                     (nearest.empty() ? "" : "; did you mean " + nearest + "?") + " Presets are " +
                     llvm::join(presets, ", ") + ", with a number of devices such as cpu:2 or h200:4x8; a file has a " +
                     "name that ends in .json or holds a slash");
  }
  llvm::Expected<llvm::json::Value> document = readStrictJson(text, kMostBytes, "cluster");
  if (!document)
    return document.takeError();
  llvm::Expected<Cluster> cluster = clusterFromJson(*document, "");
  if (!cluster)
    return makeError(printable(text) + ": " + llvm::toString(cluster.takeError()));
  return cluster;
}

/// Returns the first place where two values differ.
static std::string findDifference(const llvm::json::Value &value, const llvm::json::Value &other, std::string path) {
  const llvm::json::Object *object = value.getAsObject(), *otherObject = other.getAsObject();
  if (object && otherObject) {
    std::set<std::string> keys;
    for (const llvm::json::Object *each : {object, otherObject})
      for (const auto &entry : *each)
        keys.insert(StringRef(entry.first).str());
    std::string prefix = path.empty() ? "" : path + ".";
    for (const std::string &key : keys) {
      const llvm::json::Value *one = object->get(key), *two = otherObject->get(key);
      if (!one || !two)
        return prefix + key + (one ? " is there, which it is not" : " is not there, which it is");
      if (std::string found = findDifference(*one, *two, prefix + key); !found.empty())
        return found;
    }
    return "";
  }
  const llvm::json::Array *array = value.getAsArray(), *otherArray = other.getAsArray();
  if (array && otherArray) {
    if (array->size() != otherArray->size())
      return path + " has " + std::to_string(array->size()) + " entries, not " + std::to_string(otherArray->size());
    for (size_t i = 0; i < array->size(); ++i)
      if (std::string found = findDifference((*array)[i], (*otherArray)[i], path + "[" + std::to_string(i) + "]");
          !found.empty())
        return found;
    return "";
  }
  if (value == other)
    return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << path << " is ";
  printJson(os, value);
  os << ", not ";
  printJson(os, other);
  return text;
}

std::string windlass::findDifference(const Cluster &cluster, const Cluster &other) {
  return ::findDifference(llvm::json::Value(toJson(cluster)), llvm::json::Value(toJson(other)), "");
}
