#include "windlass/Cluster/Cluster.h"

#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// The largest figures of a cluster, so that products with counts stay far from overflow.
static constexpr int64_t kMostPerSecond = int64_t(1) << 60, kMostBytes = int64_t(1) << 60;
static constexpr double kMostSeconds = 3600;
/// A ring sends each byte twice, which switches that reduce save.
static constexpr double kMostInSwitchEfficiency = 2;
static constexpr StringRef kDataTypes[] = {"bf16", "f16", "f32", "tf32"};

template <class T> static Value orNull(const std::optional<T> &value) { return value ? Value(*value) : Value(nullptr); }

static Object writeLink(const Link &link) {
  return Object{{"bandwidth_bytes_per_s", orNull(link.bytesPerSecond)}, {"latency_s", orNull(link.latencySeconds)}};
}

Object windlass::toJson(const Cluster &cluster) {
  Object types;
  for (const auto &[name, type] : cluster.deviceTypes) {
    Object peaks;
    for (const auto &[dataType, flops] : type.peakFlopsPerSecond)
      peaks[dataType] = flops;
    Object entry{{"backend", type.backend},
                 {"memory_bandwidth_bytes_per_s", orNull(type.memoryBytesPerSecond)},
                 {"memory_bytes", orNull(type.memoryBytes)},
                 {"peak_flops_per_s", std::move(peaks)}};
    if (type.attentionEfficiency)
      entry["attention_efficiency"] = *type.attentionEfficiency;
    if (type.productEfficiency)
      entry["product_efficiency"] = *type.productEfficiency;
    types[name] = std::move(entry);
  }
  Array hosts, tiers;
  for (const HostGroup &group : cluster.hosts) {
    Object entry{{"count", group.count},
                 {"device_link", writeLink(group.deviceLink)},
                 {"device_type", group.deviceType},
                 {"devices", group.devices},
                 {"disk_bandwidth_bytes_per_s", orNull(group.diskBytesPerSecond)},
                 {"disk_bytes", orNull(group.diskBytes)},
                 {"memory_bytes", orNull(group.memoryBytes)}};
    // Plans that were made before there were these are plans for the same cluster.
    if (group.flopsPerSecond)
      entry["flops_per_s"] = *group.flopsPerSecond;
    if (group.memoryBytesPerSecond)
      entry["memory_bandwidth_bytes_per_s"] = *group.memoryBytesPerSecond;
    hosts.push_back(std::move(entry));
  }
  for (const LinkTier &tier : cluster.linkTiers) {
    Object entry = writeLink(tier.link);
    entry["devices"] = tier.devices;
    entry["efficiency"] = orNull(tier.efficiency);
    entry["in_switch_efficiency"] = orNull(tier.inSwitchEfficiency);
    entry["name"] = tier.name;
    entry["nics"] = orNull(tier.nics);
    entry["partial_efficiency"] = orNull(tier.partialEfficiency);
    tiers.push_back(std::move(entry));
  }
  return Object{{"device_order", cluster.deviceOrder.empty() ? Value(nullptr) : Value(Array(cluster.deviceOrder))},
                {"device_types", std::move(types)},
                {"hosts", std::move(hosts)},
                {"link_tiers", std::move(tiers)},
                {"version", Cluster::kVersion}};
}

namespace {

/// Reads the parts of a cluster; the first failure is kept.
class ClusterReader {
public:
  Cluster cluster;
  std::string message;

  void read(const Value &value, StringRef path) {
    ObjectReader reader(value, path.str());
    version = reader.getInteger("version", 1, std::numeric_limits<int64_t>::max());
    if (!reader.failed() && (version < Cluster::kFirstVersion || version > Cluster::kVersion))
      reader.fail("version", "is " + Twine(version) + ", but this windlass reads versions " +
                                 Twine(Cluster::kFirstVersion) + " to " + Twine(Cluster::kVersion) +
                                 ": begin with what 'windlass explain --cluster h200:8' prints");
    const Value *types = reader.get("device_types");
    const Array *hosts = getArray(reader, "hosts", true), *tiers = getArray(reader, "link_tiers", false);
    const Array *order = getArray(reader, "device_order", false);
    const Value *sources = getGiven(reader, "sources");
    keep(reader);
    if (!failed())
      readTypes(*types, reader.getPath("device_types"));
    if (!failed())
      readHosts(*hosts, reader.getPath("hosts"));
    if (!failed())
      checkTypes(reader.getPath("device_types"));
    if (!failed())
      readTiers(tiers, reader.getPath("link_tiers"));
    if (!failed() && order)
      readOrder(*order, reader.getPath("device_order"));
    if (!failed() && sources)
      readSources(*sources, reader.getPath("sources"));
  }

private:
  int64_t version = 0;

  bool failed() const { return !message.empty(); }
  void fail(const Twine &text) {
    if (message.empty())
      message = text.str();
  }
  void keep(ObjectReader &reader) {
    if (llvm::Error error = reader.takeError())
      fail(llvm::toString(std::move(error)));
  }

  /// Returns the field; null where it is missing or JSON's null, which says that nobody knows.
  static const Value *getGiven(ObjectReader &reader, StringRef key) {
    const Value *value = reader.find(key);
    return value && value->kind() != Value::Null ? value : nullptr;
  }
  static const Array *getArray(ObjectReader &reader, StringRef key, bool isNeeded) {
    const Value *value = isNeeded ? reader.get(key) : getGiven(reader, key);
    const Array *array = value ? value->getAsArray() : nullptr;
    if (value && !array)
      reader.fail(key, "must be a list");
    return array;
  }
  static std::optional<int64_t> getKnown(ObjectReader &reader, StringRef key, int64_t most) {
    if (!getGiven(reader, key))
      return std::nullopt;
    return reader.getInteger(key, 1, most);
  }
  static Link readLink(ObjectReader &reader) {
    Link link;
    link.bytesPerSecond = getKnown(reader, "bandwidth_bytes_per_s", kMostPerSecond);
    if (getGiven(reader, "latency_s"))
      link.latencySeconds = reader.getNumber("latency_s", kMostSeconds);
    return link;
  }
  /// Returns whether `name` may be a name: names appear in plans, messages and file names.
  static bool isName(StringRef name) {
    return !name.empty() && name.size() <= 64 && llvm::isAlnum(name[0]) &&
           llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || StringRef("_-.").contains(c); });
  }
  static std::string toPath(StringRef list, size_t index) { return (list + "[" + Twine(index) + "]").str(); }

  void readTypes(const Value &value, const std::string &path) {
    ObjectReader reader(value, path);
    for (const std::string &name : reader.getKeys()) {
      if (!isName(name))
        return fail(reader.getPath(name) + " is no name: use letters, digits, '_', '-' and '.'");
      ObjectReader typeReader(*reader.find(name), reader.getPath(name));
      DeviceType &type = cluster.deviceTypes[name];
      type.backend = typeReader.getString("backend");
      if (!typeReader.failed() && type.backend != "cpu" && type.backend != "cuda")
        typeReader.fail("backend", "is " + printable(type.backend) + ", but back ends are 'cpu' and 'cuda'");
      type.memoryBytesPerSecond = getKnown(typeReader, "memory_bandwidth_bytes_per_s", kMostPerSecond);
      if (type.backend != "cpu")
        type.memoryBytes = typeReader.getInteger("memory_bytes", 1, kMostBytes);
      else
        type.memoryBytes = getKnown(typeReader, "memory_bytes", kMostBytes);
      if (const Value *peaks = getGiven(typeReader, "peak_flops_per_s")) {
        ObjectReader peakReader(*peaks, typeReader.getPath("peak_flops_per_s"));
        for (StringRef dataType : kDataTypes)
          if (std::optional<int64_t> peak = getKnown(peakReader, dataType, kMostPerSecond))
            type.peakFlopsPerSecond[dataType.str()] = *peak;
        keep(peakReader);
      }
      if (version > 1) {
        type.productEfficiency = getShare(typeReader, "product_efficiency", 1);
        type.attentionEfficiency = getShare(typeReader, "attention_efficiency", 1);
      }
      keep(typeReader);
      if (failed())
        return;
    }
    keep(reader);
    if (cluster.deviceTypes.empty())
      fail(path + " is empty: a cluster has a type of device");
  }

  void readHosts(const Array &groups, const std::string &path) {
    int64_t devices = 0;
    for (const Value &value : groups) {
      ObjectReader reader(value, toPath(path, cluster.hosts.size()));
      HostGroup &group = cluster.hosts.emplace_back();
      group.count = reader.getInteger("count", 1, Cluster::kMaxDevices);
      group.devices = reader.getInteger("devices", 1, Cluster::kMaxDevices);
      group.deviceType = reader.getString("device_type");
      group.memoryBytes = getKnown(reader, "memory_bytes", kMostBytes);
      group.memoryBytesPerSecond = getKnown(reader, "memory_bandwidth_bytes_per_s", kMostPerSecond);
      group.flopsPerSecond = getKnown(reader, "flops_per_s", kMostPerSecond);
      group.diskBytes = getKnown(reader, "disk_bytes", kMostBytes);
      group.diskBytesPerSecond = getKnown(reader, "disk_bandwidth_bytes_per_s", kMostPerSecond);
      if (const Value *link = getGiven(reader, "device_link")) {
        ObjectReader linkReader(*link, reader.getPath("device_link"));
        group.deviceLink = readLink(linkReader);
        keep(linkReader);
      }
      if (!reader.failed())
        checkHost(reader, group);
      keep(reader);
      devices += group.count * group.devices;
      if (devices > Cluster::kMaxDevices)
        fail(path + " make more than " + Twine(Cluster::kMaxDevices) + " devices, the most of a cluster");
      if (failed())
        return;
    }
    if (cluster.hosts.empty())
      fail(path + " is empty: a cluster has a host");
  }

  void checkHost(ObjectReader &reader, const HostGroup &group) {
    auto type = cluster.deviceTypes.find(group.deviceType);
    if (type == cluster.deviceTypes.end()) {
      std::vector<std::string> names;
      for (const auto &entry : cluster.deviceTypes)
        names.push_back(entry.first);
      std::string nearest = nearestOf(group.deviceType, names);
      return reader.fail("device_type", "is " + printable(group.deviceType) + ", which device_types do not have" +
                                            (nearest.empty() ? "" : "; the nearest is '" + nearest + "'"));
    }
    if (const std::string &first = cluster.deviceTypes[cluster.hosts.front().deviceType].backend;
        type->second.backend != first)
      return reader.fail("device_type", "is of back end '" + type->second.backend + "', but the first host's is of '" +
                                            first + "': one program runs on one back end");
    if (type->second.memoryBytes.has_value() !=
        cluster.deviceTypes[cluster.hosts.front().deviceType].memoryBytes.has_value())
      return reader.fail("device_type", "has memory_bytes where the first host's does not, or the other way round: all "
                                        "devices share their host's memory, or none does");
    if (type->second.backend != "cpu")
      return;
    if (group.memoryBytesPerSecond || group.flopsPerSecond)
      return reader.fail(
          group.flopsPerSecond ? "flops_per_s" : "memory_bandwidth_bytes_per_s",
          "is given, but devices of back end 'cpu' are their host: say in device_types how fast they are");
    if (!group.memoryBytes && !type->second.memoryBytes)
      reader.fail("memory_bytes", "is missing: devices of back end 'cpu' share it");
    else if (group.memoryBytes && *group.memoryBytes < group.devices)
      reader.fail("memory_bytes", "is " + Twine(*group.memoryBytes) + ", which leaves nothing to each of " +
                                      Twine(group.devices) + " devices");
  }

  void checkTypes(const std::string &path) {
    llvm::StringSet<> used;
    for (const HostGroup &group : cluster.hosts)
      used.insert(group.deviceType);
    for (const auto &[name, type] : cluster.deviceTypes)
      if (!used.contains(name))
        return fail(path + "." + name + " is used by no host: leave it out, or name it in hosts");
  }

  void readTiers(const Array *tiers, const std::string &path) {
    int64_t devices = cluster.getDevices(), joined = 1;
    for (size_t i = 0; tiers && i < tiers->size(); ++i) {
      ObjectReader reader((*tiers)[i], toPath(path, i));
      LinkTier &tier = cluster.linkTiers.emplace_back();
      tier.name = reader.getString("name");
      tier.devices = reader.getInteger("devices", 1, Cluster::kMaxDevices);
      tier.link = readLink(reader);
      if (version > 1)
        readRates(reader, tier);
      if (!reader.failed() && !isName(tier.name))
        reader.fail("name", "is " + printable(tier.name) + ": use letters, digits, '_', '-' and '.'");
      if (!reader.failed())
        checkTier(reader, i, joined);
      keep(reader);
      if (failed())
        return;
      joined = tier.devices;
    }
    if (joined != devices)
      fail(path + " join " + Twine(joined) + " of " + Twine(devices) + " devices: the last must join all");
  }

  static std::optional<double> getShare(ObjectReader &reader, StringRef key, double most) {
    if (!getGiven(reader, key))
      return std::nullopt;
    return reader.getNumber(key, most);
  }

  /// Reads what version 1 does not have.
  static void readRates(ObjectReader &reader, LinkTier &tier) {
    tier.nics = getKnown(reader, "nics", Cluster::kMaxDevices);
    tier.efficiency = getShare(reader, "efficiency", 1);
    tier.partialEfficiency = getShare(reader, "partial_efficiency", 1);
    tier.inSwitchEfficiency = getShare(reader, "in_switch_efficiency", kMostInSwitchEfficiency);
    if (!reader.failed() && tier.efficiency && tier.partialEfficiency.value_or(0) > *tier.efficiency)
      reader.fail("partial_efficiency", llvm::formatv("is {0}, more than the efficiency of {1} that groups of all "
                                                      "devices reach",
                                                      *tier.partialEfficiency, *tier.efficiency));
  }

  void checkTier(ObjectReader &reader, size_t index, int64_t joined) {
    const LinkTier &tier = cluster.linkTiers[index];
    for (size_t i = 0; i < index; ++i)
      if (cluster.linkTiers[i].name == tier.name)
        return reader.fail("name", "is " + printable(tier.name) + ", as that of an earlier tier");
    if (index > 0 && tier.link.bytesPerSecond.value_or(0) >
                         cluster.linkTiers[index - 1].link.bytesPerSecond.value_or(kMostPerSecond))
      return reader.fail("bandwidth_bytes_per_s", "is " + Twine(*tier.link.bytesPerSecond) + ", more than the " +
                                                      Twine(*cluster.linkTiers[index - 1].link.bytesPerSecond) +
                                                      " of the tier before: tiers go from the fastest to the slowest");
    if (tier.devices <= joined || tier.devices % joined != 0)
      return reader.fail("devices",
                         "is " + Twine(tier.devices) + ", but must be a multiple of the " + Twine(joined) +
                             (index == 0 ? " device that a tier begins with" : " that the tier before joins"));
    if (cluster.getDevices() % tier.devices != 0)
      return reader.fail("devices", "is " + Twine(tier.devices) + ", which does not divide the " +
                                        Twine(cluster.getDevices()) + " devices");
    if (tier.nics && !joinsHosts(tier))
      return reader.fail("nics", "is " + Twine(*tier.nics) +
                                     ", but the tier joins devices of one host, which have no "
                                     "network between them: leave it out");
    // Runs of devices end where hosts end, or lie within one.
    int64_t first = 0;
    for (const HostGroup &group : cluster.hosts) {
      bool isWithin = group.devices % tier.devices == 0 && first % tier.devices == 0;
      bool isAcross = tier.devices % group.devices == 0 && first % group.devices == 0;
      if (!isWithin && !isAcross)
        return reader.fail("devices", "is " + Twine(tier.devices) + ", which cuts a host of " + Twine(group.devices) +
                                          " devices in two: neither divides the other");
      first += group.count * group.devices;
    }
  }

  bool joinsHosts(const LinkTier &tier) const {
    return llvm::any_of(cluster.hosts, [&](const HostGroup &group) { return tier.devices > group.devices; });
  }

  void readOrder(const Array &order, const std::string &path) {
    int64_t devices = cluster.getDevices();
    std::vector<bool> seen(devices);
    bool isOwn = true;
    for (const Value &value : order) {
      std::optional<int64_t> device = value.getAsInteger();
      if (!device || *device < 0 || *device >= devices || seen[*device])
        return fail(toPath(path, cluster.deviceOrder.size()) + " must be a number from 0 to " + Twine(devices - 1) +
                    " that does not come before");
      seen[*device] = true;
      isOwn &= *device == static_cast<int64_t>(cluster.deviceOrder.size());
      cluster.deviceOrder.push_back(*device);
    }
    if (static_cast<int64_t>(order.size()) != devices)
      return fail(path + " has " + Twine(order.size()) + " entries, but there are " + Twine(devices) + " devices");
    if (isOwn)
      cluster.deviceOrder.clear();
  }

  void readSources(const Value &value, const std::string &path) {
    ObjectReader reader(value, path);
    for (const std::string &key : reader.getKeys())
      cluster.sources[key] = reader.getString(key);
    keep(reader);
  }
};

} // namespace

llvm::Expected<Cluster> windlass::clusterFromJson(const Value &value, StringRef path) {
  ClusterReader reader;
  reader.read(value, path);
  if (!reader.message.empty())
    return makeError(reader.message);
  return std::move(reader.cluster);
}
