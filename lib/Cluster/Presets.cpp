// Clusters by name. Every figure has its source next to it; one that no public source gives stays unknown.
#include "windlass/Cluster/Cluster.h"

#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace windlass;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// A value in the unit of its place, and its source. Without a value, the source says why it is not known; without a
/// source, the device has no such thing.
struct Figure {
  double value = 0;
  const char *source = nullptr;

  std::optional<int64_t> asInteger() const {
    return value > 0 ? std::optional<int64_t>(static_cast<int64_t>(value)) : std::nullopt;
  }
};

/// A kind of link as `LinkTier` has it. Without a source, `partialEfficiency` is `efficiency`, switches do not reduce,
/// and each device has a port.
struct PresetLink {
  const char *name;
  Figure rate, latency;
  Figure efficiency, partialEfficiency = {}, inSwitchEfficiency = {}, nics = {};
};

/// GPUs of one type in hosts of up to eight. A data sheet's GB is read as 10^9 bytes, which no device has less than;
/// peaks are of dense products; a link's bandwidth is one direction's half of what data sheets add up.
struct Preset {
  const char *name;
  Figure memory, memoryRate;
  Figure f32, tf32, f16, bf16;
  PresetLink hostLink;
  Figure deviceLinkRate;
  Figure hostMemory, disk;
  /// The rate of the memory of one of the host's two sockets.
  Figure socketMemoryRate;
  PresetLink network;
  /// A faster link that joins two devices each; without a name there is none.
  PresetLink pairLink = {};
  Figure productEfficiency = {}, attentionEfficiency = {};
};

constexpr int64_t kMostPerHost = 8;

#define V100 "NVIDIA V100 data sheet (Jan 2020), SXM2"
#define A100 "NVIDIA A100 data sheet (2021), SXM"
#define H100 "NVIDIA H100 data sheet, SXM"
#define H200 "NVIDIA H200 data sheet, SXM"
#define H100P "NVIDIA H100 data sheet, PCIe"
#define B200 "NVIDIA HGX B200 data sheet, an eighth of the figures of eight GPUs"
#define DGX_B200 "NVIDIA DGX B200 data sheet"
#define L4 "NVIDIA L4 data sheet"
#define ADA "NVIDIA Ada GPU Architecture whitepaper V2, GeForce RTX 4090"
#define DGX1 "NVIDIA DGX-1 with Tesla V100 System Architecture, WP-08437-002"
#define DGX_A100 "NVIDIA DGX A100 data sheet"
#define DGX_H100 "NVIDIA DGX BasePOD reference architecture, DGX H200 and H100 systems"
#define G2 "Google Compute Engine documentation, g2-standard-96"
#define NCCL "NVIDIA/nccl 01afd20, src/graph/tuning.cc, hwLat of Ring with protocol Simple"

constexpr Figure kNvlinkLatency = {3.4e-6, NCCL ", NVLINK"}, kPcieLatency = {5.7e-6, NCCL ", PCI"},
                 kNetworkLatency = {9.6e-6, NCCL ", NET"},
                 kNoHost = {0, "not known: the card is sold without a host; say what yours has"},
                 kNoLatency = {0, "not known: no public figure; measure it"},
                 kNoDiskRate = {0, "not known: no public figure; measure it"}, kLacks = {};

/// Shares of links' rates, which the model of `lib/Profile/NetworkModel.cpp` has in common with the constants there:
/// fitted to the named measurements with nccl-tests, so not the quotients of their figures.
#define FITTED "fitted to measurements with nccl-tests: "
constexpr Figure kNetworkEfficiency = {0.96, FITTED "24 of 25 GB/s and 48 of 50 GB/s of a port (NVIDIA/nccl#1218)"},
                 kUnknownEfficiency = {0, "not known: no public figure; measure it"};
#define NVLINK2 FITTED "vTrain f8dda84, V100, all-reduce of "
constexpr PresetLink kNvlinkV100 = {"nvlink",
                                    {150e9, V100 ", NVLink 300 GB/s both ways"},
                                    kNvlinkLatency,
                                    {0.85, NVLINK2 "8 devices, 134 GB/s"},
                                    {0.36, NVLINK2 "3 and 6 devices, 45 GB/s; 7 have twice that"}};
#define NVLINK3 FITTED "vTrain f8dda84, A100, all-reduce of 3 to 7 devices, 212 to 227 GB/s"
constexpr PresetLink kNvlinkA100 = {"nvlink",
                                    {300e9, A100 ", NVLink 600 GB/s both ways"},
                                    kNvlinkLatency,
                                    {0.83, NVLINK3 "; mscclpp, of 8, 231 to 254"},
                                    {0.80, NVLINK3}};
#define NVLINK4 FITTED "autoparallel, H100, "
constexpr PresetLink kNvlinkH100 = {"nvlink",
                                    {450e9, H100 ", NVLink 900 GB/s both ways"},
                                    kNvlinkLatency,
                                    {0.84, NVLINK4 "gathers of 8 devices, 345 GB/s; ml-engineering, 361"},
                                    {0.77, NVLINK4 "gathers of 4 devices, 326 GB/s"},
                                    {1.10, FITTED "dgxc-benchmarking, H100, all-reduce of 8 devices, 480 GB/s"}};
#define NVLINK5 FITTED "ml-engineering, B200, "
constexpr PresetLink kNvlinkB200 = {"nvlink",       {900e9, B200 ", NVLink 1.8 TB/s both ways"},
                                    kNvlinkLatency, {0.71, NVLINK5 "exchange of 8 devices, 640 GB/s"},
                                    kLacks,         {0.94, NVLINK5 "all-reduce of 8 devices, 846 GB/s"}};
constexpr PresetLink kNetworkV100 = {"network",
                                     {6.25e9, DGX1 ", 4 x 100 Gb/s InfiniBand for 8 GPUs"},
                                     kNetworkLatency,
                                     kNetworkEfficiency,
                                     kLacks,
                                     kLacks,
                                     {4, DGX1 ", 4 x 100 Gb/s InfiniBand"}},
                     kNetworkA100 = {"network",
                                     {25e9, DGX_A100 ", 8 x 200 Gb/s InfiniBand for 8 GPUs"},
                                     kNetworkLatency,
                                     kNetworkEfficiency},
                     kNetworkH100 = {"network",
                                     {50e9, DGX_H100 ", 8 x 400 Gb/s InfiniBand for 8 GPUs"},
                                     kNetworkLatency,
                                     kNetworkEfficiency};

/// Shares of the peak in whole training steps, where clocks are those of a device under load.
#define STEPS "fitted to published steps (benchmarks/clusters --steps), half of the configurations: "
constexpr Figure kProductsA100 = {0.75, STEPS "llm-foundry and llm.c, A100"},
                 kAttentionA100 = {0.75, STEPS "llm-foundry, A100, sequences of 512 to 65,536"},
                 kProductsH100 = {0.60, STEPS "llm-foundry and llmq, H100"},
                 kAttentionH100 = {0.31, STEPS "llm-foundry, H100, sequences of 1,024 to 65,536"};

constexpr Preset kPresets[] = {
    {"v100-16g",
     {16e9, V100 ", 16 GB"},
     {900e9, V100 ", 900 GB/s"},
     {15.7e12, V100 ", single precision 15.7 TFLOPS"},
     kLacks,
     {125e12, V100 ", tensor 125 TFLOPS"},
     kLacks,
     kNvlinkV100,
     {16e9, V100 ", PCIe 32 GB/s both ways"},
     {512e9, DGX1 ", 512 GB"},
     {7.68e12, DGX1 ", 4 x 1.92 TB SSD"},
     {76.8e9, DGX1 ", 2 x Xeon E5-2698 v4; Intel: 76.8 GB/s each"},
     kNetworkV100},
    {"v100-32g",
     {32e9, V100 ", 32 GB"},
     {900e9, V100 ", 900 GB/s"},
     {15.7e12, V100 ", single precision 15.7 TFLOPS"},
     kLacks,
     {125e12, V100 ", tensor 125 TFLOPS"},
     kLacks,
     kNvlinkV100,
     {16e9, V100 ", PCIe 32 GB/s both ways"},
     {512e9, DGX1 ", 512 GB"},
     {7.68e12, DGX1 ", 4 x 1.92 TB SSD"},
     {76.8e9, DGX1 ", 2 x Xeon E5-2698 v4; Intel: 76.8 GB/s each"},
     kNetworkV100},
    {"a100-40g",
     {40e9, A100 ", 40 GB"},
     {1555e9, A100 ", 1,555 GB/s"},
     {19.5e12, A100 ", FP32 19.5 TFLOPS"},
     {156e12, A100 ", TF32 156 TFLOPS"},
     {312e12, A100 ", FP16 tensor 312 TFLOPS"},
     {312e12, A100 ", BFLOAT16 tensor 312 TFLOPS"},
     kNvlinkA100,
     {32e9, A100 ", PCIe Gen4 64 GB/s both ways"},
     {1e12, DGX_A100 " 320GB, 1 TB"},
     {15.36e12, DGX_A100 " 320GB, 4 x 3.84 TB NVMe"},
     {204.8e9, DGX_A100 ", 2 x EPYC 7742; AMD: 204.8 GB/s each"},
     kNetworkA100,
     {},
     kProductsA100,
     kAttentionA100},
    {"a100-80g",
     {80e9, A100 ", 80 GB"},
     {2039e9, A100 ", 2,039 GB/s"},
     {19.5e12, A100 ", FP32 19.5 TFLOPS"},
     {156e12, A100 ", TF32 156 TFLOPS"},
     {312e12, A100 ", FP16 tensor 312 TFLOPS"},
     {312e12, A100 ", BFLOAT16 tensor 312 TFLOPS"},
     kNvlinkA100,
     {32e9, A100 ", PCIe Gen4 64 GB/s both ways"},
     {2e12, DGX_A100 " 640GB, 2 TB"},
     {30.72e12, DGX_A100 " 640GB, 8 x 3.84 TB NVMe"},
     {204.8e9, DGX_A100 ", 2 x EPYC 7742; AMD: 204.8 GB/s each"},
     kNetworkA100,
     {},
     kProductsA100,
     kAttentionA100},
    {"h100",
     {80e9, H100 ", 80 GB"},
     {3350e9, H100 ", 3.35 TB/s"},
     {67e12, H100 ", FP32 67 TFLOPS"},
     {494.5e12, H100 ", TF32 989 TFLOPS with sparsity, half without"},
     {989.5e12, H100 ", FP16 tensor 1,979 TFLOPS with sparsity, half without"},
     {989.5e12, H100 ", BFLOAT16 tensor 1,979 TFLOPS with sparsity, half without"},
     kNvlinkH100,
     {64e9, H100 ", PCIe Gen5 128 GB/s both ways"},
     {2e12, DGX_H100 ", 2 TB"},
     {30.72e12, DGX_H100 ", 8 x 3.84 TB NVMe"},
     {307.2e9, DGX_H100 ", 2 x Xeon 8480C; each 8 channels of DDR5-4800"},
     kNetworkH100,
     {},
     kProductsH100,
     kAttentionH100},
    {"h200",
     {141e9, H200 ", 141 GB"},
     {4800e9, H200 ", 4.8 TB/s"},
     {67e12, H200 ", FP32 67 TFLOPS"},
     {494.5e12, H200 ", TF32 989 TFLOPS with sparsity, half without"},
     {989.5e12, H200 ", FP16 tensor 1,979 TFLOPS with sparsity, half without"},
     {989.5e12, H200 ", BFLOAT16 tensor 1,979 TFLOPS with sparsity, half without"},
     kNvlinkH100,
     {64e9, H200 ", PCIe Gen5 128 GB/s both ways"},
     {2e12, DGX_H100 ", 2 TB"},
     {30.72e12, DGX_H100 ", 8 x 3.84 TB NVMe"},
     {307.2e9, DGX_H100 ", 2 x Xeon 8480C; each 8 channels of DDR5-4800"},
     kNetworkH100,
     {},
     kProductsH100,
     kAttentionH100},
    {"b200",
     {180e9, DGX_B200 ", 1,440 GB for 8 GPUs"},
     {8e12, DGX_B200 ", 64 TB/s for 8 GPUs"},
     {75e12, B200 ", FP32 600 TFLOPS"},
     {1125e12, B200 ", TF32 18 PFLOPS with sparsity, half without"},
     {2250e12, B200 ", FP16 tensor 36 PFLOPS with sparsity, half without"},
     {2250e12, B200 ", BFLOAT16 tensor 36 PFLOPS with sparsity, half without"},
     kNvlinkB200,
     {64e9, "PCIe Gen5 x16, 128 GB/s both ways"},
     {2e12, DGX_B200 ", 2 TB"},
     {30.72e12, DGX_B200 ", 8 x 3.84 TB NVMe"},
     {358.4e9, DGX_B200 ", 2 x Xeon 8570; each 8 channels of DDR5-5600"},
     {"network", {50e9, DGX_B200 ", 8 x 400 Gb/s for 8 GPUs"}, kNetworkLatency, kNetworkEfficiency}},
    {"h100-pcie",
     {80e9, H100P ", 80 GB"},
     {2000e9, H100P ", 2 TB/s"},
     {51e12, H100P ", FP32 51 TFLOPS"},
     {378e12, H100P ", TF32 756 TFLOPS with sparsity, half without"},
     {756.5e12, H100P ", FP16 tensor 1,513 TFLOPS with sparsity, half without"},
     {756.5e12, H100P ", BFLOAT16 tensor 1,513 TFLOPS with sparsity, half without"},
     {"pcie", {64e9, H100P ", PCIe Gen5 128 GB/s both ways"}, kPcieLatency, kUnknownEfficiency},
     {64e9, H100P ", PCIe Gen5 128 GB/s both ways"},
     kNoHost,
     kNoHost,
     kNoHost,
     {"network", kNoHost, kNetworkLatency, kNetworkEfficiency},
     {"nvlink",
      {300e9, H100P ", NVLink bridge 600 GB/s both ways"},
      kNvlinkLatency,
      {0.39, FITTED "NVIDIA/nccl#1161, H100 PCIe, all-reduce of 2, 116 GB/s"}}},
    {"l4",
     {24e9, L4 ", 24 GB"},
     {300e9, L4 ", 300 GB/s"},
     {30.3e12, L4 ", FP32 30.3 TFLOPS"},
     {60e12, L4 ", TF32 120 TFLOPS with sparsity, half without"},
     {121e12, L4 ", FP16 tensor 242 TFLOPS with sparsity, half without"},
     {121e12, L4 ", BFLOAT16 tensor 242 TFLOPS with sparsity, half without"},
     {"pcie",
      {32e9, L4 ", PCIe Gen4 x16 64 GB/s both ways"},
      kPcieLatency,
      {0.14, FITTED "Mist, 8 x L4 through the memory of the host, gather of 4, 4.4 GB/s"},
      {0.115, FITTED "Mist, 8 x L4 through the memory of the host, gather of 2, 3.2 GB/s"}},
     {32e9, L4 ", PCIe Gen4 x16 64 GB/s both ways"},
     {384e9, G2 ", 384 GB for 8 GPUs"},
     {0, "not known: local disks of " G2 " are as many as one attaches"},
     {0, "not known: no public figure; measure it"},
     {"network",
      {1.5625e9, G2 ", 100 Gb/s for 8 GPUs"},
      kNetworkLatency,
      kNetworkEfficiency,
      kLacks,
      kLacks,
      {1, G2 ", 100 Gb/s"}}},
    {"rtx4090",
     {24e9, ADA ", 24 GB"},
     {1008e9, ADA ", 1,008 GB/s"},
     {82.6e12, ADA ", FP32 82.6 TFLOPS"},
     {82.6e12, ADA ", TF32 tensor 82.6 TFLOPS, dense"},
     {165.2e12, ADA ", FP16 tensor with FP32 accumulation 165.2 TFLOPS, dense"},
     {165.2e12, ADA ", BF16 tensor 165.2 TFLOPS, dense"},
     {"pcie", {31.5e9, "PCI Express Base 4.0: 16 lanes of 16 GT/s, 128 of 130 bits"}, kPcieLatency, kUnknownEfficiency},
     {31.5e9, "PCI Express Base 4.0: 16 lanes of 16 GT/s, 128 of 130 bits"},
     kNoHost,
     kNoHost,
     kNoHost,
     {"network", kNoHost, kNetworkLatency, kNetworkEfficiency}},
};

/// Fills a cluster and notes the source of each figure.
class PresetBuilder {
public:
  Cluster cluster;

  std::optional<int64_t> take(const std::string &path, const Figure &figure) {
    if (figure.source)
      cluster.sources[path] = figure.source;
    return figure.asInteger();
  }

  Link take(const std::string &path, const Figure &rate, const Figure &latency) {
    Link link;
    link.bytesPerSecond = take(path + ".bandwidth_bytes_per_s", rate);
    take(path + ".latency_s", latency);
    if (latency.value > 0)
      link.latencySeconds = latency.value;
    return link;
  }

  std::optional<double> takeShare(const std::string &path, const Figure &figure) {
    take(path, figure);
    return figure.value > 0 ? std::optional<double>(figure.value) : std::nullopt;
  }

  void addTier(int64_t devices, const PresetLink &link) {
    std::string path = "link_tiers[" + std::to_string(cluster.linkTiers.size()) + "]";
    LinkTier &tier = cluster.linkTiers.emplace_back();
    tier.name = link.name;
    tier.devices = devices;
    tier.link = take(path, link.rate, link.latency);
    tier.nics = take(path + ".nics", link.nics);
    tier.efficiency = takeShare(path + ".efficiency", link.efficiency);
    tier.partialEfficiency = takeShare(path + ".partial_efficiency", link.partialEfficiency);
    tier.inSwitchEfficiency = takeShare(path + ".in_switch_efficiency", link.inSwitchEfficiency);
  }
};

} // namespace

static Cluster makeGpus(const Preset &preset, int64_t hosts, int64_t devices) {
  PresetBuilder builder;
  Cluster &cluster = builder.cluster;
  std::string path = std::string("device_types.") + preset.name;
  DeviceType &type = cluster.deviceTypes[preset.name];
  type.backend = "cuda";
  type.memoryBytes = builder.take(path + ".memory_bytes", preset.memory);
  type.memoryBytesPerSecond = builder.take(path + ".memory_bandwidth_bytes_per_s", preset.memoryRate);
  const std::pair<const char *, const Figure *> peaks[] = {
      {"f32", &preset.f32}, {"tf32", &preset.tf32}, {"f16", &preset.f16}, {"bf16", &preset.bf16}};
  for (auto [dataType, figure] : peaks)
    if (std::optional<int64_t> peak = builder.take(path + ".peak_flops_per_s." + dataType, *figure))
      type.peakFlopsPerSecond[dataType] = *peak;

  type.productEfficiency = builder.takeShare(path + ".product_efficiency", preset.productEfficiency);
  type.attentionEfficiency = builder.takeShare(path + ".attention_efficiency", preset.attentionEfficiency);

  HostGroup &group = cluster.hosts.emplace_back();
  group.count = hosts;
  group.devices = devices;
  group.deviceType = preset.name;
  group.memoryBytes = builder.take("hosts[0].memory_bytes", preset.hostMemory);
  // One rank runs on one socket.
  Figure memoryRate = preset.socketMemoryRate;
  memoryRate.value *= static_cast<double>(std::min<int64_t>(devices, 2));
  group.memoryBytesPerSecond = builder.take("hosts[0].memory_bandwidth_bytes_per_s", memoryRate);
  group.deviceLink = builder.take("hosts[0].device_link", preset.deviceLinkRate, kNoLatency);
  group.diskBytes = builder.take("hosts[0].disk_bytes", preset.disk);
  group.diskBytesPerSecond = builder.take("hosts[0].disk_bandwidth_bytes_per_s", kNoDiskRate);
  if (preset.pairLink.name && devices % 2 == 0)
    builder.addTier(2, preset.pairLink);
  if (devices > (cluster.linkTiers.empty() ? 1 : 2))
    builder.addTier(devices, preset.hostLink);
  if (hosts > 1)
    builder.addTier(hosts * devices, preset.network);
  return std::move(cluster);
}

/// Makes `hosts` like this machine, of `ranks` each.
static Cluster makeCpus(int64_t hosts, int64_t ranks, int64_t hostMemoryBytes) {
  constexpr Figure kOwn = {0, "not known: it depends on the machine; measure it"};
  PresetBuilder builder;
  Cluster &cluster = builder.cluster;
  cluster.deviceTypes["cpu"].backend = "cpu";
  for (const char *key : {"memory_bandwidth_bytes_per_s", "peak_flops_per_s"})
    builder.take(std::string("device_types.cpu.") + key, kOwn);
  HostGroup &group = cluster.hosts.emplace_back();
  group.count = hosts;
  group.devices = ranks;
  group.deviceType = "cpu";
  group.memoryBytes = hostMemoryBytes;
  cluster.sources["hosts[0].memory_bytes"] = "this machine";
  if (ranks > 1)
    builder.addTier(ranks, {"memory", kOwn, kOwn, kLacks});
  if (hosts > 1)
    builder.addTier(hosts * ranks, {"network", kOwn, kOwn, kLacks, kLacks, kLacks, {1, "the least that a host has"}});
  return std::move(cluster);
}

/// Reads a rate such as 2GB/s, in bytes per second.
static bool parseRate(StringRef text, int64_t &rate) {
  double number = 0;
  int64_t unit = text.consume_back("GB/s") ? 1000000000 : text.consume_back("MB/s") ? 1000000 : 0;
  if (unit == 0 || text.empty() || !llvm::isDigit(text[0]) || text.getAsDouble(number) || number > 1e6)
    return false;
  rate = static_cast<int64_t>(number * static_cast<double>(unit));
  return rate > 0;
}

/// Makes CPU ranks with memory of their own: `text` is N or HOSTSxN, and settings behind commas.
static llvm::Expected<Cluster> makeEmulated(StringRef text, int64_t hostMemoryBytes) {
  constexpr int64_t kDeviceBytes = int64_t(1) << 30;
  constexpr char kForm[] =
      ": write emulated:N or emulated:HOSTSxN, and after commas device=SIZE and host=SIZE, in bytes, "
      "KiB, MiB or GiB, and h2d=RATE, d2h=RATE and disk=RATE in MB/s or GB/s, as in "
      "emulated:2,device=64MiB,h2d=2GB/s,d2h=2GB/s";
  auto fail = [&](const Twine &what) { return makeError("cluster " + printable("emulated:" + text.str()) + what); };
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',');
  auto ranks = makePreset(("cpu:" + parts.front()).str(), hostMemoryBytes);
  if (!ranks)
    return ranks.takeError();
  Cluster cluster = std::move(*ranks);
  DeviceType type = cluster.deviceTypes.at("cpu");
  type.memoryBytes = kDeviceBytes;
  HostGroup &group = cluster.hosts.front();
  std::optional<int64_t> toDevice, toHost;
  for (StringRef part : llvm::drop_begin(parts)) {
    auto [key, value] = part.split('=');
    int64_t number = 0;
    bool isSize = key == "device" || key == "host";
    if (isSize ? !parseBytes(value, number) : !parseRate(value, number))
      return fail(" has the setting " + printable(part) + kForm);
    if (key == "device")
      type.memoryBytes = number;
    else if (key == "host")
      group.memoryBytes = number;
    else if (key == "h2d")
      toDevice = number;
    else if (key == "d2h")
      toHost = number;
    else if (key == "disk")
      group.diskBytesPerSecond = number;
    else
      return fail(" has the setting " + printable(part) + kForm);
  }
  if (toDevice != toHost)
    return fail(" has different rates h2d and d2h: a link has one rate for both directions");
  group.deviceLink.bytesPerSecond = toDevice;
  group.deviceType = "emulated";
  cluster.deviceTypes = {{"emulated", type}};
  constexpr char kGiven[] = "as --cluster says", kOpen[] = "not known: --cluster may say it";
  std::map<std::string, std::string> sources = {
      {"device_types.emulated.memory_bytes", "as --cluster says, or 1 GiB"},
      {"hosts[0].device_link.bandwidth_bytes_per_s", toDevice ? kGiven : kOpen},
      {"hosts[0].device_link.latency_s", "not known: it depends on the machine; measure it"},
      {"hosts[0].disk_bandwidth_bytes_per_s", group.diskBytesPerSecond ? kGiven : kOpen}};
  for (const auto &[path, source] : cluster.sources) {
    StringRef rest = path;
    bool isOfType = rest.consume_front("device_types.cpu.");
    sources[((isOfType ? "device_types.emulated." : "") + rest).str()] = source;
  }
  cluster.sources = std::move(sources);
  return std::move(cluster);
}

std::vector<std::string> windlass::getPresetNames() {
  std::vector<std::string> names = {"cpu", "emulated"};
  for (const Preset &preset : kPresets)
    names.push_back(preset.name);
  return names;
}

static bool parseCount(StringRef text, int64_t &count) {
  return !text.empty() && llvm::all_of(text, llvm::isDigit) && !text.getAsInteger(10, count) && count >= 1;
}

llvm::Expected<Cluster> windlass::makePreset(StringRef text, int64_t hostMemoryBytes) {
  auto [name, shape] = text.split(':');
  int64_t hosts = 1, devices = 0;
  auto [first, second] = shape.split('x');
  bool isGood =
      shape.contains('x') ? parseCount(first, hosts) && parseCount(second, devices) : parseCount(shape, devices);
  if (name == "cpu") {
    if (!isGood || devices > Cluster::kMaxDevices / hosts)
      return makeError("cluster " + printable(text) + " names no number of ranks from 1 to " +
                       Twine(Cluster::kMaxDevices) +
                       ": use cpu:N on this machine, or cpu:HOSTSxN on several hosts like it, for example cpu:2");
    if (hostMemoryBytes < devices)
      return makeError("cluster " + printable(text) + " leaves no memory per rank: the host has " +
                       sizeText(hostMemoryBytes) + " for " + countOf(devices, "rank") + "; use fewer");
    return makeCpus(hosts, devices, hostMemoryBytes);
  }
  if (name == "emulated")
    return makeEmulated(shape, hostMemoryBytes);
  const Preset *preset = llvm::find_if(kPresets, [&, name = name](const Preset &each) { return name == each.name; });
  if (preset == std::end(kPresets))
    return makeError("cluster " + printable(text) + " is no preset");
  if (!isGood)
    return makeError("cluster " + printable(text) + " names no number of devices: use " + name + ":N on one host, or " +
                     name + ":HOSTSxDEVICES, for example " + name + ":4x8");
  if (devices > kMostPerHost)
    return makeError("cluster " + printable(text) + " has " + Twine(devices) + " devices on a host, but hosts of " +
                     name + " have at most " + Twine(kMostPerHost) + ": use " + name + ":HOSTSxDEVICES");
  if (hosts > Cluster::kMaxDevices / devices)
    return makeError("cluster " + printable(text) + " has more than " + Twine(Cluster::kMaxDevices) +
                     " devices, the most of a cluster");
  return makeGpus(*preset, hosts, devices);
}
