#include "windlass/Profile/CostModel.h"

#include "Fits.h"
#include "NetworkModel.h"
#include "WorkKind.h"

#include "windlass/Profile/Profile.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

using namespace windlass;

namespace {

/// The most seconds of one execution; longer ones need not be told apart.
constexpr double kMostSeconds = 1e3;
constexpr double kCpuLaunchSeconds = 2e-6;

/// The figures of a rank with one core of a server of 2023 (`benchmarks/results/gemm.txt`), used where the cluster
/// states none.
constexpr double kCpuFlops = 120e9, kCpuMemoryRate = 10e9;
constexpr double kDeviceFlops = 50e12, kDeviceMemoryRate = 500e9;
/// The rate of a disk of which nothing is known, in bytes per second, and the time of its shortest command: one drive
/// for NVMe of a server reads and writes at 2 to 7 GB/s, and answers in about 0.1 ms.
constexpr double kDiskRate = 2e9, kDiskLatencySeconds = 1e-4;
/// The bytes that AdamW in f32 reads and writes for an element: weight, gradient and two moments, of which it writes
/// all but the gradient.
constexpr double kAdamBytes = 28;
/// The share of the rate of the host's memory that updates reach. By Elixir's fit (arXiv 2212.05339) one device's host
/// updates 5.15 G elements/s, which is 144 of the 205 GB/s of a socket; those of 2 to 8 devices reach 43 to 59 % of
/// two.
constexpr double kHostMemoryShare = 0.7;

} // namespace

int64_t windlass::toPicoseconds(double seconds) { return std::llround(std::clamp(seconds, 0.0, kMostSeconds) * 1e12); }

const char *windlass::getName(CostSource source) {
  switch (source) {
  case CostSource::Measured:
    return "measured";
  case CostSource::Fitted:
    return "fitted";
  case CostSource::Analytic:
    break;
  }
  return "analytic";
}

std::string windlass::makeFamily(std::string kernel, bool isNarrow) { return isNarrow ? kernel + ".narrow" : kernel; }

/// Returns the line that says which value stands for one that the cluster does not state.
static std::string describeAssumption(const std::string &what, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", value);
  return what + " is not in the cluster: taken as " + text;
}

CostModel::CostModel(const Cluster &cluster, const Profile *profile, const std::string &precision)
    : deviceOrder(cluster.deviceOrder), profile(profile) {
  bool isCpu = cluster.getBackend() == "cpu";
  overlaps = !isCpu;
  isHost = isCpu;
  sharesHostMemory = isCpu && !cluster.isEmulated();
  auto assume = [&](const std::string &what, double value) {
    assumptions.push_back(describeAssumption(what, value));
    return value;
  };
  // A step waits for its slowest device.
  for (const HostGroup &group : cluster.hosts) {
    auto type = cluster.deviceTypes.find(group.deviceType);
    const DeviceType device = type == cluster.deviceTypes.end() ? DeviceType() : type->second;
    double peak = 0;
    // Tensor cores round f32 operands of products; programs do so with --precision tf32 only.
    if (auto found = device.peakFlopsPerSecond.find("f32"); found != device.peakFlopsPerSecond.end())
      peak = static_cast<double>(found->second);
    else
      peak = assume("peak_flops_per_s of f32 of '" + group.deviceType + "'", isCpu ? kCpuFlops : kDeviceFlops);
    // CPU ranks compute in f32 whatever they store; so do devices that have no units for that type.
    double narrowPeak = peak;
    if (auto found = device.peakFlopsPerSecond.find(precision == "f16" ? "f16" : "bf16");
        !isCpu && found != device.peakFlopsPerSecond.end())
      narrowPeak = static_cast<double>(found->second);
    double tf32Peak = peak;
    if (auto found = device.peakFlopsPerSecond.find("tf32"); found != device.peakFlopsPerSecond.end())
      tf32Peak = static_cast<double>(found->second);
    double rate = device.memoryBytesPerSecond ? static_cast<double>(*device.memoryBytesPerSecond)
                                              : assume("memory_bandwidth_bytes_per_s of '" + group.deviceType + "'",
                                                       isCpu ? kCpuMemoryRate : kDeviceMemoryRate);
    bool isFirst = &group == cluster.hosts.data();
    double products = device.productEfficiency.value_or(DeviceModel().productShare),
           attentions = device.attentionEfficiency.value_or(DeviceModel().productShare);
    this->device.productShare = isFirst ? products : std::min(this->device.productShare, products);
    attentionShare = isFirst ? attentions : std::min(attentionShare, attentions);
    flopsPerSecond = flopsPerSecond > 0 ? std::min(flopsPerSecond, peak) : peak;
    narrowFlopsPerSecond = narrowFlopsPerSecond > 0 ? std::min(narrowFlopsPerSecond, narrowPeak) : narrowPeak;
    tf32FlopsPerSecond = tf32FlopsPerSecond > 0 ? std::min(tf32FlopsPerSecond, tf32Peak) : tf32Peak;
    memoryBytesPerSecond = memoryBytesPerSecond > 0 ? std::min(memoryBytesPerSecond, rate) : rate;
    double linkRate = group.deviceLink.bytesPerSecond ? static_cast<double>(*group.deviceLink.bytesPerSecond) : 0;
    hostLinkBytesPerSecond = &group == cluster.hosts.data() ? linkRate : std::min(hostLinkBytesPerSecond, linkRate);
    addHostRates(group, &group == cluster.hosts.data());
    addDiskRate(group);
    hostLinkLatencySeconds = std::max(hostLinkLatencySeconds, group.deviceLink.latencySeconds.value_or(0));
  }
  if (isCpu)
    device.launchSeconds = kCpuLaunchSeconds;
  if (profile && profile->device) {
    device = *profile->device;
    attentionShare = device.productShare;
    deviceSource = CostSource::Fitted;
  }
  network = std::make_unique<NetworkModel>(cluster);
  assumptions.insert(assumptions.end(), network->getAssumptions().begin(), network->getAssumptions().end());
  if (!profile)
    return;
  if (auto adam = profile->rates.find("host_adam_elements_per_second"); adam != profile->rates.end() && !isCpu) {
    // The measured loop reaches the share of the rate that others reach.
    double rate = adam->second * kAdamBytes / kHostMemoryShare;
    hostFlopsPerSecond = std::max(hostFlopsPerSecond, rate * kCpuFlops / kCpuMemoryRate);
    hostMemoryBytesPerSecond = rate;
    hostSource = CostSource::Fitted;
  }
  operatorFits =
      std::make_unique<OperatorFits>(*profile, [this](const OperatorWork &work) { return getAnalyticSeconds(work); });
  collectiveFits = std::make_unique<CollectiveFits>(*profile);
}

CostModel::~CostModel() = default;

void CostModel::addHostRates(const HostGroup &group, bool isFirst) {
  auto devices = static_cast<double>(group.devices);
  double rate = 0;
  if (group.memoryBytesPerSecond)
    rate = static_cast<double>(*group.memoryBytesPerSecond) / devices;
  else if (group.deviceLink.bytesPerSecond)
    rate = static_cast<double>(*group.deviceLink.bytesPerSecond);
  double flops =
      group.flopsPerSecond ? static_cast<double>(*group.flopsPerSecond) / devices : rate * kCpuFlops / kCpuMemoryRate;
  hostMemoryBytesPerSecond = isFirst ? rate : std::min(hostMemoryBytesPerSecond, rate);
  hostFlopsPerSecond = isFirst ? flops : std::min(hostFlopsPerSecond, flops);
}

/// Returns the rate at which a disk reads or writes, whichever is slower; none where it was not measured.
static std::optional<double> getMeasuredDiskRate(const Profile &profile) {
  auto read = profile.rates.find("disk_read_bytes_per_second"),
       written = profile.rates.find("disk_write_bytes_per_second");
  if (read == profile.rates.end() || written == profile.rates.end())
    return std::nullopt;
  return std::min(read->second, written->second);
}

void CostModel::addDiskRate(const HostGroup &group) {
  double rate = group.diskBytesPerSecond ? static_cast<double>(*group.diskBytesPerSecond) : kDiskRate;
  std::optional<double> measured = profile ? getMeasuredDiskRate(*profile) : std::nullopt;
  if (measured)
    rate = *measured;
  else if (!group.diskBytesPerSecond)
    diskAssumption = describeAssumption("disk_bandwidth_bytes_per_s of hosts", kDiskRate);
  diskBytesPerSecond = std::min(diskBytesPerSecond, rate / static_cast<double>(group.devices));
}

Cost CostModel::getDiskCost(double bytes) const {
  return Cost{toPicoseconds(kDiskLatencySeconds + bytes / diskBytesPerSecond)};
}

int64_t CostModel::getLeastDiskPicoseconds(double bytes) const { return toPicoseconds(bytes / diskBytesPerSecond); }

Cost CostModel::getCost(const std::string &key, const OperatorWork &work) const {
  if (profile)
    if (auto found = profile->commands.find(key); found != profile->commands.end()) {
      const MeasuredTime &time = found->second.loaded;
      return {toPicoseconds(time.medianSeconds), CostSource::Measured, time.getErrorShare()};
    }
  return getCost(work);
}

Cost CostModel::getCost(const OperatorWork &work) const {
  if (operatorFits)
    if (std::optional<Cost> cost = operatorFits->find(work))
      return *cost;
  return {toPicoseconds(getAnalyticSeconds(work)), deviceSource,
          deviceSource == CostSource::Fitted ? std::optional(device.errorShare) : std::nullopt};
}

Cost CostModel::getCost(const CollectiveWork &work) const {
  if (work.group.getMembers() <= 1)
    return {0, CostSource::Analytic, 0};
  if (collectiveFits)
    if (std::optional<Cost> cost = collectiveFits->find(work))
      return *cost;
  return {toPicoseconds(getAnalyticSeconds(work))};
}

Cost CostModel::getCost(const RowExchange &work) const {
  Cost cost = getCost(work.getMoved());
  OperatorWork copy;
  copy.bytes = 2 * work.getCopiedBytes(); // read and written
  copy.family = makeFamily("copy", /*isNarrow=*/false);
  cost.picoseconds += 2 * getPicoseconds(copy);
  return cost;
}

bool CostModel::routesRows(const RowExchange &work) const {
  return work.group.getMembers() > 1 &&
         2 * getAnalyticSeconds(work.getMoved()) <=
             getAnalyticSeconds(CollectiveWork{"all_gather", work.group, work.wholeBytes});
}

CollectiveWork CostModel::getMessageWork(int64_t from, int64_t to, double bytes) const {
  auto getDevice = [&](int64_t rank) {
    return rank < static_cast<int64_t>(deviceOrder.size()) ? deviceOrder[rank] : rank;
  };
  return {"permute", network->getPair(getDevice(from), getDevice(to)), bytes};
}

Cost CostModel::getMessageCost(int64_t from, int64_t to, double bytes) const {
  return getCost(getMessageWork(from, to, bytes));
}

std::vector<LinkUse> CostModel::getUses(const CollectiveWork &work) const { return network->getUses(work); }

std::vector<LinkUse> CostModel::getMessageUses(int64_t from, int64_t to, double bytes) const {
  return getUses(getMessageWork(from, to, bytes));
}

int64_t CostModel::countTiers() const { return network->countTiers(); }

std::optional<Cost> CostModel::getCopyCost(double bytes) const {
  if (sharesHostMemory || (isHost && hostLinkBytesPerSecond <= 0)) {
    OperatorWork work;
    work.bytes = 2 * bytes; // read and written
    return Cost{toPicoseconds(getAnalyticSeconds(work))};
  }
  if (hostLinkBytesPerSecond <= 0)
    return std::nullopt;
  return Cost{toPicoseconds(device.launchSeconds + hostLinkLatencySeconds + bytes / hostLinkBytesPerSecond)};
}

int64_t CostModel::getLeastCopyPicoseconds(double bytes) const {
  if (sharesHostMemory || hostLinkBytesPerSecond <= 0)
    return 0;
  return static_cast<int64_t>(std::clamp(bytes / hostLinkBytesPerSecond, 0.0, kMostSeconds) * 1e12);
}

double CostModel::getCopyShare(double bytes) const {
  if (sharesHostMemory || hostLinkBytesPerSecond <= 0)
    return 0;
  double transfer = bytes / hostLinkBytesPerSecond;
  return transfer / (device.launchSeconds + hostLinkLatencySeconds + transfer);
}

double CostModel::getHostMemoryShare(double bytes, int64_t picoseconds) const {
  if (isHost || hostMemoryBytesPerSecond <= 0 || picoseconds <= 0)
    return 0;
  return std::min(1.0,
                  bytes / (hostMemoryBytesPerSecond * kHostMemoryShare) / (static_cast<double>(picoseconds) * 1e-12));
}

int64_t CostModel::getHostMemoryPicoseconds(double bytes) const {
  if (isHost || hostMemoryBytesPerSecond <= 0)
    return 0;
  double seconds = bytes / (hostMemoryBytesPerSecond * kHostMemoryShare);
  return static_cast<int64_t>(std::clamp(seconds, 0.0, kMostSeconds) * 1e12);
}

double CostModel::getHostSeconds(const OperatorWork &work) const {
  return std::max(work.flops / hostFlopsPerSecond, work.bytes / (hostMemoryBytesPerSecond * kHostMemoryShare));
}

std::optional<Cost> CostModel::getHostCost(const std::string &key, const OperatorWork &work) const {
  if (isHost)
    return getCost(key, work);
  if (hostMemoryBytesPerSecond <= 0)
    return std::nullopt;
  return Cost{toPicoseconds(getHostSeconds(work) + kCpuLaunchSeconds), hostSource};
}

int64_t CostModel::getLeastHostPicoseconds(const OperatorWork &work) const {
  if (isHost || hostMemoryBytesPerSecond <= 0)
    return 0;
  return static_cast<int64_t>(std::clamp(getHostSeconds(work), 0.0, kMostSeconds) * 1e12);
}

double CostModel::getAnalyticSeconds(const OperatorWork &work) const {
  WorkKind kind = getWorkKind(work.family);
  // The runtime's convolutions and experts run on the units for f32.
  bool isPlain = kind == WorkKind::convolution || kind == WorkKind::experts;
  double peak = isPlain                        ? flopsPerSecond
                : work.isNarrow                ? narrowFlopsPerSecond
                : work.family == kTf32Products ? tf32FlopsPerSecond
                                               : flopsPerSecond;
  double rate = peak * (kind == WorkKind::attention ? attentionShare : device.productShare);
  double arithmetic = (work.flops + (kind == WorkKind::product ? device.productHalfFlops : 0)) / rate;
  double traffic = work.bytes / (memoryBytesPerSecond * device.memoryShare);
  return std::max(arithmetic, traffic) * (kind == WorkKind::attention ? device.attentionFactor : 1) +
         device.launchSeconds;
}

int64_t CostModel::getLeastPicoseconds(const OperatorWork &work, bool hasLaunch) const {
  double share = operatorFits ? operatorFits->getLeastRatio(work.family) : 1;
  double seconds = getAnalyticSeconds(work) - (hasLaunch ? 0 : device.launchSeconds);
  return static_cast<int64_t>(std::clamp(share * seconds, 0.0, kMostSeconds) * 1e12);
}

int64_t CostModel::getLeastPicoseconds(const CollectiveWork &work, double mostBytes) const {
  auto most = std::max(work.payloadBytes, mostBytes);
  if (work.group.getMembers() <= 1 || work.payloadBytes <= 0)
    return 0;
  CollectiveWork whole = work;
  // The model's time per byte falls as payloads grow.
  if (!collectiveFits) {
    whole.payloadBytes = most;
    return static_cast<int64_t>(work.payloadBytes / most * static_cast<double>(getPicoseconds(whole)));
  }
  // Measured times grow with payloads, so between two sizes they are at least that of the smaller one.
  double least = std::numeric_limits<double>::infinity();
  for (whole.payloadBytes = work.payloadBytes; whole.payloadBytes <= most; whole.payloadBytes *= 2)
    least = std::min(least, static_cast<double>(getPicoseconds(whole)) / (2 * whole.payloadBytes));
  return static_cast<int64_t>(work.payloadBytes * least);
}

double CostModel::getAnalyticSeconds(const CollectiveWork &work) const { return network->getSeconds(work); }
