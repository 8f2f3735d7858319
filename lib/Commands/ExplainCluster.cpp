#include "ExplainCluster.h"

#include "windlass/Cluster/Cluster.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

static constexpr int64_t kMostFileBytes = int64_t(16) << 20, kMostBytes = int64_t(1) << 60;
static constexpr size_t kMostCollectives = 65536;
static constexpr StringRef kKinds[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute"};

int windlass::explainCluster(Console &console, StringRef text) {
  llvm::Expected<Cluster> cluster = findCluster(text);
  if (!cluster)
    return console.fail(Code::cluster, llvm::toString(cluster.takeError()));
  llvm::json::Object document = toJson(*cluster), sources;
  for (const auto &[key, source] : cluster->sources)
    sources[key] = source;
  if (!sources.empty())
    document["sources"] = std::move(sources);
  printJson(llvm::outs(), llvm::json::Value(std::move(document)), /*lineDepth=*/4);
  llvm::outs() << "\n";
  return kDone;
}

/// Reads a collective: its members are `members_per_host` neighbours of each of as many hosts as they need.
static llvm::Expected<CollectiveWork> readCollective(const llvm::json::Value &value, size_t index,
                                                     const Cluster &cluster) {
  ObjectReader reader(value, "[" + std::to_string(index) + "]");
  CollectiveWork work;
  work.kind = reader.getString("kind");
  if (!reader.failed() && !llvm::is_contained(kKinds, work.kind))
    reader.fail("kind", "is " + printable(work.kind) + ", but kinds are " + llvm::join(llvm::ArrayRef(kKinds), ", "));
  work.payloadBytes = static_cast<double>(reader.getInteger("bytes", 1, kMostBytes));
  int64_t devices = cluster.getDevices(), hostDevices = cluster.hosts.front().devices;
  int64_t members = reader.getInteger("members", 2, Cluster::kMaxDevices);
  int64_t perHost = reader.getInteger("members_per_host", 1, Cluster::kMaxDevices);
  if (reader.find("concurrent_groups"))
    work.concurrentGroups = reader.getInteger("concurrent_groups", 1, Cluster::kMaxDevices);
  if (llvm::Error error = reader.takeError())
    return std::move(error);
  if (perHost > hostDevices)
    reader.fail("members_per_host", "is " + Twine(perHost) + ", but a host has " + countOf(hostDevices, "device"));
  else if (members % perHost != 0)
    reader.fail("members", "is " + Twine(members) + ", which is no multiple of the " + Twine(perHost) + " of a host");
  else if (members / perHost > devices / hostDevices)
    reader.fail("members", "is " + Twine(members) + " with " + Twine(perHost) + " on a host, but there are " +
                               countOf(devices / hostDevices, "host"));
  else if (work.concurrentGroups * perHost > hostDevices)
    reader.fail("concurrent_groups", "is " + Twine(work.concurrentGroups) + " with " + Twine(perHost) +
                                         " members on a host, but a host has " + countOf(hostDevices, "device"));
  if (llvm::Error error = reader.takeError())
    return std::move(error);
  if (perHost > 1)
    work.group.axes.push_back({1, perHost});
  if (members > perHost)
    work.group.axes.push_back({hostDevices, members / perHost});
  return work;
}

static llvm::Expected<std::vector<CollectiveWork>> readCollectives(StringRef path, const Cluster &cluster) {
  llvm::Expected<llvm::json::Value> document = readStrictJson(path, kMostFileBytes, "list of collectives");
  if (!document)
    return document.takeError();
  const llvm::json::Array *entries = document->getAsArray();
  if (!entries || entries->empty() || entries->size() > kMostCollectives)
    return makeError(printable(path) + " must be a list of 1 to " + Twine(kMostCollectives) + " collectives");
  std::vector<CollectiveWork> works;
  for (const auto &[index, entry] : llvm::enumerate(*entries)) {
    llvm::Expected<CollectiveWork> work = readCollective(entry, index, cluster);
    if (!work)
      return makeError(printable(path) + ": " + llvm::toString(work.takeError()));
    works.push_back(std::move(*work));
  }
  return works;
}

int windlass::explainCollectives(Console &console, StringRef text, StringRef path, bool asJson) {
  llvm::Expected<Cluster> cluster = findCluster(text);
  if (!cluster)
    return console.fail(Code::cluster, llvm::toString(cluster.takeError()));
  llvm::Expected<std::vector<CollectiveWork>> works = readCollectives(path, *cluster);
  if (!works)
    return console.fail(Code::usage, llvm::toString(works.takeError()));
  CostModel costs(*cluster);
  llvm::json::Array rows;
  if (!asJson)
    llvm::outs() << llvm::formatv("{0,-14} {1,7} {2,12} {3,12} {4,12}\n", "kind", "members", "size", "seconds",
                                  "bus GB/s");
  for (const CollectiveWork &work : *works) {
    double seconds = costs.getAnalyticSeconds(work);
    if (asJson) {
      rows.push_back(llvm::json::Object{{"bytes", static_cast<int64_t>(work.payloadBytes)},
                                        {"kind", work.kind},
                                        {"members", work.group.getMembers()},
                                        {"seconds", seconds}});
      continue;
    }
    llvm::outs() << llvm::formatv("{0,-14} {1,7} {2,12} {3,12:e3} {4,12:f1}\n", work.kind, work.group.getMembers(),
                                  sizeText(static_cast<int64_t>(work.payloadBytes)), seconds,
                                  seconds > 0 ? work.getRingBytes() / seconds * 1e-9 : 0);
  }
  if (asJson) {
    printJson(llvm::outs(), llvm::json::Value(std::move(rows)), /*lineDepth=*/1);
    llvm::outs() << "\n";
    return kDone;
  }
  for (const std::string &assumption : costs.getAssumptions())
    llvm::outs() << "assumed: " << assumption << "\n";
  return kDone;
}
