#include "windlass/Profile/Profile.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/rt/products.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

/// The largest figures of a profile, so that sums and products of many stay finite.
static constexpr double kMostSeconds = 3600, kMostWork = 1e18;
static constexpr int64_t kMostTurns = 1000000, kMostThreads = 65536;
static constexpr double kMostRate = 1e18;
static constexpr int64_t kMostWorkspaceBytes = int64_t(1) << 40;
static constexpr int64_t kMostAlgorithmNumber = std::numeric_limits<int32_t>::max();
static constexpr StringRef kRates[] = {"both_ways_bytes_per_second",    "device_to_host_bytes_per_second",
                                       "disk_read_bytes_per_second",    "disk_write_bytes_per_second",
                                       "host_adam_elements_per_second", "host_to_device_bytes_per_second",
                                       "memory_bytes_per_second",       "pinned_bytes_per_second"};
static constexpr StringRef kKinds[] = {"all_gather", "all_reduce", "all_to_all", "permute", "reduce_scatter"};

/// A figure of a device's model, from `least` to `most`.
struct DeviceField {
  StringRef name;
  double DeviceModel::*value;
  double least, most;
};
/// Shares and factors are above 0, because times are divided by them or vanish with them.
static constexpr double kLeastShare = 1e-3, kMostFactor = 1e3, kMostPause = 1;
static const DeviceField kDeviceFields[] = {
    {"attention_factor", &DeviceModel::attentionFactor, kLeastShare, kMostFactor},
    {"error_share", &DeviceModel::errorShare, 0, kMostFactor},
    {"issue_seconds", &DeviceModel::issueSeconds, 0, kMostPause},
    {"launch_seconds", &DeviceModel::launchSeconds, 0, kMostPause},
    {"memory_share", &DeviceModel::memoryShare, kLeastShare, 1},
    {"product_half_flops", &DeviceModel::productHalfFlops, 0, kMostWork},
    {"product_share", &DeviceModel::productShare, kLeastShare, 1},
    {"update_issue_seconds", &DeviceModel::updateIssueSeconds, 0, kMostPause},
};

static Object write(const MeasuredTime &time) {
  return Object{{"median_seconds", time.medianSeconds}, {"spread_seconds", time.spreadSeconds}, {"turns", time.turns}};
}

std::string windlass::writeProfile(const Profile &profile) {
  Object commands;
  for (const auto &[key, entry] : profile.commands)
    commands[key] = Object{{"alone", write(entry.alone)},   {"bytes", entry.work.bytes},
                           {"family", entry.work.family},   {"flops", entry.work.flops},
                           {"loaded", write(entry.loaded)}, {"narrow_products", entry.work.isNarrow}};
  Array collectives;
  for (const auto &[key, time] : profile.collectives) {
    Object entry = write(time);
    entry["kind"] = std::get<0>(key);
    entry["members"] = std::get<1>(key);
    entry["bytes"] = std::get<2>(key);
    collectives.push_back(std::move(entry));
  }
  Object whole{{"cluster", toJson(profile.cluster)}, {"collectives", std::move(collectives)},
               {"commands", std::move(commands)},    {"machine", profile.machine},
               {"threads", profile.threads},         {"version", Profile::kVersion}};
  if (profile.device) {
    Object device;
    for (const DeviceField &field : kDeviceFields)
      device[field.name] = (*profile.device).*field.value;
    whole["device"] = std::move(device);
  }
  if (!profile.rates.empty()) {
    Object rates;
    for (const auto &[name, rate] : profile.rates)
      rates[name] = rate;
    whole["rates"] = std::move(rates);
  }
  if (profile.products) {
    Object choices;
    for (const auto &[product, choice] : profile.products->choices)
      choices[product] = Object{
          {"algorithm", Array(choice.algorithm)}, {"first_seconds", choice.firstSeconds}, {"seconds", choice.seconds}};
    Object products{
        {"choices", std::move(choices)}, {"device", profile.products->device}, {"library", profile.products->library}};
    Object epilogues;
    for (const auto &[key, times] : profile.products->epilogues)
      epilogues[key] = Object{{"apart_seconds", times.apartSeconds}, {"seconds", times.seconds}};
    if (!epilogues.empty())
      products["epilogues"] = std::move(epilogues);
    whole["products"] = std::move(products);
  }
  if (profile.attention) {
    Object choices;
    for (const auto &[key, times] : profile.attention->choices)
      choices[key] = Object{
          {"own_seconds", times.ownSeconds}, {"seconds", times.seconds}, {"workspace_bytes", times.workspaceBytes}};
    whole["attention"] = Object{{"choices", std::move(choices)},
                                {"device", profile.attention->device},
                                {"library", profile.attention->library}};
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  printJson(out, std::move(whole), 2);
  out << '\n';
  return text;
}

namespace {

/// Reads the parts of a profile; the first failure is kept.
class ProfileReader {
public:
  Profile profile;
  std::string message;

  void read(const Value &value) {
    ObjectReader reader(value, "");
    int64_t version = reader.getInteger("version", 1, std::numeric_limits<int64_t>::max());
    if (!reader.failed() && version != Profile::kVersion)
      reader.fail("version", "is " + Twine(version) + ", but this windlass reads version " + Twine(Profile::kVersion) +
                                 ": measure again with 'windlass profile'");
    profile.machine = reader.getString("machine");
    profile.threads = reader.getInteger("threads", 1, kMostThreads);
    const Value *cluster = reader.get("cluster"), *commands = reader.get("commands");
    const Value *list = reader.get("collectives"), *device = reader.find("device");
    const Value *rates = reader.find("rates"), *products = reader.find("products");
    const Value *attention = reader.find("attention");
    const Array *collectives = list ? list->getAsArray() : nullptr;
    if (list && !collectives)
      reader.fail("collectives", "must be a list");
    keep(reader);
    if (failed())
      return;
    if (llvm::Expected<Cluster> read = clusterFromJson(*cluster, "cluster"))
      profile.cluster = std::move(*read);
    else
      return fail(llvm::toString(read.takeError()));
    if (device)
      readDevice(*device);
    if (rates)
      readRates(*rates);
    if (products)
      readChoices(*products, "products", profile.products.emplace(), readProduct);
    if (attention)
      readChoices(*attention, "attention", profile.attention.emplace(), readAttention);
    readCommands(*commands);
    for (size_t i = 0; !failed() && i < collectives->size(); ++i)
      readCollective((*collectives)[i], i);
  }

private:
  bool failed() const { return !message.empty(); }
  void fail(const Twine &text) {
    if (message.empty())
      message = text.str();
  }
  void keep(ObjectReader &reader) {
    if (llvm::Error error = reader.takeError())
      fail(llvm::toString(std::move(error)));
  }

  /// Reads a number from 0 to `most`.
  static double getWork(ObjectReader &reader, StringRef key, double most) {
    const Value *value = reader.get(key);
    std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
    bool isGood = number && *number >= 0 && *number <= most;
    if (value && !isGood)
      reader.fail(key, "must be a number from 0 to " + Twine(static_cast<int64_t>(most)));
    return isGood ? *number : 0;
  }

  static MeasuredTime readTime(ObjectReader &reader) {
    MeasuredTime time;
    time.medianSeconds = reader.getNumber("median_seconds", kMostSeconds);
    time.spreadSeconds = getWork(reader, "spread_seconds", kMostSeconds);
    time.turns = reader.getInteger("turns", 1, kMostTurns);
    return time;
  }

  void readDevice(const Value &value) {
    ObjectReader reader(value, "device");
    DeviceModel &device = profile.device.emplace();
    for (const DeviceField &field : kDeviceFields)
      if (const Value *found = reader.get(field.name)) {
        std::optional<double> number = found->getAsNumber();
        if (number && *number >= field.least && *number <= field.most) {
          device.*field.value = *number;
        } else {
          std::string range;
          llvm::raw_string_ostream(range) << llvm::format("must be a number from %g to %g", field.least, field.most);
          reader.fail(field.name, range);
        }
      }
    keep(reader);
  }

  void readRates(const Value &value) {
    ObjectReader reader(value, "rates");
    for (StringRef name : kRates)
      if (reader.find(name))
        profile.rates[name.str()] = getWork(reader, name, kMostRate);
    keep(reader);
  }

  /// Reads what was measured of a device's library, by name; `readEntry` reads each entry.
  template <class Choices, class ReadEntry>
  void readChoices(const Value &value, const Twine &path, Choices &out, ReadEntry readEntry) {
    ObjectReader reader(value, path.str());
    out.device = reader.getString("device");
    out.library = reader.getString("library");
    const Value *choices = reader.get("choices");
    if constexpr (std::is_same_v<Choices, ProductChoices>)
      if (const Value *epilogues = reader.find("epilogues"))
        readEntries(*epilogues, path + ".epilogues", out.epilogues, readEpilogue);
    keep(reader);
    if (!failed())
      readEntries(*choices, path + ".choices", out.choices, readEntry);
  }

  template <class Entries, class ReadEntry>
  void readEntries(const Value &value, const Twine &path, Entries &out, ReadEntry readEntry) {
    ObjectReader reader(value, path.str());
    std::vector<std::string> names = reader.getKeys();
    if (names.size() > Profile::kMostEntries)
      return fail(path + " has " + Twine(names.size()) + " entries; the most are " + Twine(Profile::kMostEntries));
    for (const std::string &name : names) {
      ObjectReader entry(*reader.find(name), reader.getPath(name));
      out[name] = readEntry(entry);
      keep(entry);
      if (failed())
        return;
    }
    keep(reader);
  }

  static ProductChoice readProduct(ObjectReader &entry) {
    ProductChoice choice;
    choice.seconds = entry.getNumber("seconds", kMostSeconds);
    choice.firstSeconds = entry.getNumber("first_seconds", kMostSeconds);
    const Value *algorithm = entry.get("algorithm");
    const Array *numbers = algorithm ? algorithm->getAsArray() : nullptr;
    for (size_t i = 0; numbers && i < numbers->size(); ++i)
      if (std::optional<int64_t> number = (*numbers)[i].getAsInteger();
          number && *number >= 0 && *number <= kMostAlgorithmNumber)
        choice.algorithm.push_back(static_cast<int32_t>(*number));
    if (algorithm &&
        (!numbers || numbers->size() != rt::product_algorithm::count || choice.algorithm.size() != numbers->size()))
      entry.fail("algorithm", "must be " + Twine(rt::product_algorithm::count) + " integers from 0 to " +
                                  Twine(kMostAlgorithmNumber));
    return choice;
  }

  static EpilogueTimes readEpilogue(ObjectReader &entry) {
    EpilogueTimes times;
    times.seconds = entry.getNumber("seconds", kMostSeconds);
    times.apartSeconds = entry.getNumber("apart_seconds", kMostSeconds);
    return times;
  }

  static AttentionTimes readAttention(ObjectReader &entry) {
    AttentionTimes times;
    times.seconds = entry.getNumber("seconds", kMostSeconds);
    times.ownSeconds = entry.getNumber("own_seconds", kMostSeconds);
    times.workspaceBytes = entry.getInteger("workspace_bytes", 0, kMostWorkspaceBytes);
    return times;
  }

  void readCommands(const Value &value) {
    ObjectReader reader(value, "commands");
    std::vector<std::string> keys = reader.getKeys();
    if (keys.size() > Profile::kMostEntries)
      return fail("commands has " + Twine(keys.size()) + " entries; the most are " + Twine(Profile::kMostEntries));
    for (const std::string &key : keys) {
      ObjectReader entryReader(*reader.find(key), reader.getPath(key));
      CommandEntry &entry = profile.commands[key];
      entry.work.family = entryReader.getString("family");
      entry.work.flops = getWork(entryReader, "flops", kMostWork);
      entry.work.bytes = getWork(entryReader, "bytes", kMostWork);
      entry.work.isNarrow = entryReader.getBoolean("narrow_products");
      for (auto [name, time] : {std::pair("loaded", &entry.loaded), std::pair("alone", &entry.alone)})
        if (const Value *found = entryReader.get(name)) {
          ObjectReader timeReader(*found, entryReader.getPath(name));
          *time = readTime(timeReader);
          keep(timeReader);
        }
      keep(entryReader);
      if (failed())
        return;
    }
    keep(reader);
  }

  void readCollective(const Value &value, size_t index) {
    std::string path = ("collectives[" + Twine(index) + "]").str();
    if (index >= Profile::kMostEntries)
      return fail(path + " is one too many; the most are " + Twine(Profile::kMostEntries));
    ObjectReader reader(value, path);
    std::string kind = reader.getString("kind");
    if (!reader.failed() && !llvm::is_contained(kKinds, kind))
      reader.fail("kind", "is " + printable(kind) + ", but kinds are " + llvm::join(llvm::ArrayRef(kKinds), ", "));
    int64_t members = reader.getInteger("members", 2, Cluster::kMaxDevices);
    int64_t bytes = reader.getInteger("bytes", 1, int64_t(1) << 50);
    MeasuredTime time = readTime(reader);
    if (!reader.failed() && !profile.collectives.try_emplace({kind, members, bytes}, time).second)
      reader.fail("bytes", "is " + Twine(bytes) + ", as that of an earlier " + kind + " of " + Twine(members) +
                               " members: leave one out");
    keep(reader);
  }
};

/// The facts of a cluster's first host that times depend on.
struct HostFacts {
  std::string backend, device;
  int64_t ranks;
  explicit HostFacts(const Cluster &cluster)
      : backend(cluster.getBackend()), device(cluster.hosts.front().deviceType), ranks(cluster.hosts.front().devices) {}
};

} // namespace

llvm::Expected<Profile> windlass::readProfile(StringRef text) {
  llvm::Expected<Value> document = parseStrictJson(text, Profile::kMostBytes);
  if (!document)
    return document.takeError();
  ProfileReader reader;
  reader.read(*document);
  if (!reader.message.empty())
    return makeError(reader.message);
  return std::move(reader.profile);
}

std::string windlass::findMismatch(const Profile &profile, const Cluster &cluster) {
  HostFacts taken(profile.cluster), asked(cluster);
  if (taken.backend != asked.backend)
    return "it was taken on back end '" + taken.backend + "', but the cluster's is '" + asked.backend + "'";
  if (taken.device != asked.device)
    return "it was taken on device type '" + taken.device + "', but the cluster's is '" + asked.device + "'";
  // They share cores and memory, and a rank's compute team is what its neighbours leave.
  if (taken.backend == "cpu" && taken.ranks != asked.ranks)
    return "it was taken with " + std::to_string(taken.ranks) + " ranks on a host, but the cluster's have " +
           std::to_string(asked.ranks);
  return "";
}
