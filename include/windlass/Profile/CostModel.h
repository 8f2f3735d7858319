// How long operators and collectives take on a cluster: as measured, or by its public figures. No MLIR.
#ifndef WINDLASS_PROFILE_COSTMODEL_H
#define WINDLASS_PROFILE_COSTMODEL_H

#include "windlass/Cluster/Cluster.h"
#include "windlass/Profile/CollectiveWork.h"
#include "windlass/Profile/DeviceModel.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windlass {

struct Profile;
class OperatorFits;
class CollectiveFits;
class NetworkModel;

/// What a rank does when it runs an operator once, at its local shapes.
struct OperatorWork {
  double flops = 0;
  /// The bytes read from and written to the device's memory.
  double bytes = 0;
  /// Whether the flops are products of 16-bit floats that add up in f32.
  bool isNarrow = false;
  /// The family of work whose times follow one law: `makeFamily` of the kernel's name, or `kTf32Products`. The name of
  /// an element-wise function is `transcendental` where one of its operators is (`Train_Transcendental`), else `map`.
  std::string family = {};
};

/// Returns the family of `kernel`, such as `matmul`, or `matmul.narrow` where the first operand holds floats narrower
/// than f32.
std::string makeFamily(std::string kernel, bool isNarrow);
/// The family of products of f32 operands that are rounded to TF32.
constexpr char kTf32Products[] = "matmul.tf32";

enum class CostSource { Measured, Fitted, Analytic };
/// Returns "measured", "fitted" or "analytic".
const char *getName(CostSource source);

struct Cost {
  int64_t picoseconds = 0;
  CostSource source = CostSource::Analytic;
  /// The share of the time by which it may be off: the spread of a measured time, or the error of a fit over the
  /// measured times. Nothing where no measurement was compared.
  std::optional<double> errorShare = std::nullopt;
};

/// Returns a whole number of picoseconds, so that times add up alike on every machine. Clamps `seconds` to [0, 1000].
int64_t toPicoseconds(double seconds);

/// Costs by a profile's entries where it has them, by a fit to the entries of the same family for other work, and else
/// by the analytic models: a roofline for operators, and for collectives the algorithms of the communication library on
/// the cluster's links.
class CostModel {
public:
  /// Makes the model of `cluster`. `profile` may be null, was taken on the cluster's devices and outlives the model.
  /// `precision` is the program's, whose 16-bit floats are bf16 unless it is f16.
  explicit CostModel(const Cluster &cluster, const Profile *profile = nullptr, const std::string &precision = "f32");
  ~CostModel();

  /// Returns the cost of a command of L5 by its key (`CommandKeys.h`).
  Cost getCost(const std::string &key, const OperatorWork &work) const;
  Cost getCost(const OperatorWork &work) const;
  Cost getCost(const CollectiveWork &work) const;
  /// Returns the cost of an exchange of rows: what moves, and two copies.
  Cost getCost(const RowExchange &work) const;
  /// Whether rows go only to the members that need them, and not to all. They do where the cluster's links need at most
  /// half the time for that, since rows are also copied. Measured times of a profile are not used, so that a plan's
  /// programs do not depend on a profile.
  bool routesRows(const RowExchange &work) const;
  /// Returns the cost of a message of `bytes` from a rank to another one, which is that of a permutation of the two:
  /// as a profile measured it where one host has both, and else by the tiers between them.
  Cost getMessageCost(int64_t from, int64_t to, double bytes) const;
  /// Returns the cost of a copy of `bytes` between the memory of a device and pinned memory of its host: a launch, the
  /// link's latency, and bytes over the link's rate; where both are one memory, the cost of a copy in it. Returns
  /// nothing where the cluster does not state the link's rate.
  std::optional<Cost> getCopyCost(double bytes) const;
  /// Returns a lower bound of the same, in picoseconds, for bytes that one copy may take with others; 0 for CPU ranks,
  /// and where the rate of the links is unknown.
  int64_t getLeastCopyPicoseconds(double bytes) const;
  /// Returns the cost of a command of L5 that the host runs on its own memory; CPU ranks are their own hosts. A host of
  /// GPUs gives each of its devices an equal part of its rates, and takes the longer of the times for FLOPs and for
  /// bytes. Rates are those of the cluster, or for memory that at which a profile has measured the optimizer on the
  /// host. Where none is known, memory is as fast as the links to all devices together, because servers are built so,
  /// and the processors compute as many FLOPs for each byte as the cores of `cpu` clusters. Returns nothing where the
  /// rate of the links is unknown too.
  std::optional<Cost> getHostCost(const std::string &key, const OperatorWork &work) const;
  /// Returns a lower bound of the same, in picoseconds, for work that one command may do together with other work; 0
  /// for CPU ranks, which may be busy with their device's work instead, and where the rates are unknown.
  int64_t getLeastHostPicoseconds(const OperatorWork &work) const;

  /// Returns the cost of a command that reads `bytes` from a host's disk, or writes them. Each device of the host has
  /// an equal part of the disk's rate: the lower one of the two that a profile has measured, for reading and for
  /// writing; else the cluster's; else an assumed one.
  Cost getDiskCost(double bytes) const;
  /// Returns a lower bound of the same, in picoseconds, for bytes that one command may move together with others.
  int64_t getLeastDiskPicoseconds(double bytes) const;

  /// Returns what a collective takes of the links of each tier while it runs alone, with the other groups along its
  /// axes; by the analytic model, also where a profile says how long it takes. Nothing for CPU ranks, whose messages
  /// are copies by the processor.
  std::vector<LinkUse> getUses(const CollectiveWork &work) const;
  /// Returns the same of a message, of the links of the sender and of the receiver.
  std::vector<LinkUse> getMessageUses(int64_t from, int64_t to, double bytes) const;
  /// Returns the share of the rate of the link between a device and its host that a copy uses in the mean; 0 where both
  /// are one memory, or where the cluster does not state the rate.
  double getCopyShare(double bytes) const;
  /// Returns the share of the rate of the host's memory, of the part of one device, that something uses which moves
  /// `bytes` there in that time; 0 where the cluster does not state the rate, and for ranks on processors.
  double getHostMemoryShare(double bytes, int64_t picoseconds) const;
  /// Returns the time in which that memory moves `bytes` at its full rate; 0 as above.
  int64_t getHostMemoryPicoseconds(double bytes) const;
  int64_t countTiers() const;

  int64_t getPicoseconds(const OperatorWork &work) const { return getCost(work).picoseconds; }
  int64_t getPicoseconds(const CollectiveWork &work) const { return getCost(work).picoseconds; }

  /// Returns picoseconds that no command takes less than which does `work` and maybe more of the same family: those of
  /// the analytic model, times the least ratio of measured to analytic time in the family where a profile has some.
  /// With `hasLaunch` false, the command may do other work too, and its launch does not count.
  int64_t getLeastPicoseconds(const OperatorWork &work, bool hasLaunch) const;
  /// Returns picoseconds per byte, times `bytes`, that no collective over `group` takes less than which moves `bytes`
  /// as a part of at most `mostBytes`: the larger, the better its rate.
  int64_t getLeastPicoseconds(const CollectiveWork &work, double mostBytes) const;

  /// Returns the larger of FLOPs over the device's rate and bytes over its memory's rate, plus a launch, with the
  /// corrections of the device's model (Williams, Waterman, Patterson: Roofline, 2009).
  double getAnalyticSeconds(const OperatorWork &work) const;
  /// Returns the time of the host of GPUs, without a launch.
  double getHostSeconds(const OperatorWork &work) const;
  /// Returns the time by the tiers of links (docs/cluster.md); 0 where the cluster has none.
  double getAnalyticSeconds(const CollectiveWork &work) const;

  /// Returns whether collectives run at the same time as operators; CPU ranks share their cores with their collectives.
  bool overlapsCollectives() const { return overlaps; }

  /// Returns whether copies between the memories of a device and its host run beside commands: those of an emulated
  /// device take their time waiting.
  bool overlapsCopies() const { return overlaps || (!sharesHostMemory && hostLinkBytesPerSecond > 0); }

  /// Returns whether products may be computed together with what follows them, as libraries of GPUs do
  /// (`sched::fuseEpilogues`).
  bool fusesEpilogues() const { return overlaps; } // GPUs do both

  /// Returns the time that the host takes to issue a command of the update, or else of a micro-batch.
  int64_t getIssuePicoseconds(bool isUpdate) const {
    return toPicoseconds(isUpdate ? device.updateIssueSeconds : device.issueSeconds);
  }

  /// Returns what was assumed where the cluster states nothing, a line each.
  const std::vector<std::string> &getAssumptions() const { return assumptions; }
  /// Returns the same of the hosts' disks, which few plans use; empty where their rate is known.
  const std::string &getDiskAssumption() const { return diskAssumption; }

private:
  CollectiveWork getMessageWork(int64_t from, int64_t to, double bytes) const;
  void addHostRates(const HostGroup &group, bool isFirst);
  void addDiskRate(const HostGroup &group);
  bool overlaps = false;
  /// Whether ranks are processors, which are also their hosts, and whether they have one memory.
  bool isHost = false, sharesHostMemory = false;
  /// The largest latency and the smallest rate of the links between devices and hosts. An unknown latency counts as 0;
  /// a rate of 0 says that one of the rates is unknown.
  double hostLinkLatencySeconds = 0, hostLinkBytesPerSecond = 0;
  /// A device's part of the smallest rates of hosts of GPUs; 0 where one of the memories' rates is unknown.
  double hostMemoryBytesPerSecond = 0, hostFlopsPerSecond = 0;
  CostSource hostSource = CostSource::Analytic;
  /// A device's part of the smallest rate of the hosts' disks.
  double diskBytesPerSecond = std::numeric_limits<double>::infinity();
  std::string diskAssumption;
  double flopsPerSecond = 0, narrowFlopsPerSecond = 0, tf32FlopsPerSecond = 0, memoryBytesPerSecond = 0;
  DeviceModel device;
  /// The share of the peak that attentions reach.
  double attentionShare = DeviceModel().productShare;
  CostSource deviceSource = CostSource::Analytic;
  std::unique_ptr<NetworkModel> network;
  /// The device of each rank; empty where it is the rank's own number.
  std::vector<int64_t> deviceOrder;
  std::vector<std::string> assumptions;
  const Profile *profile;
  std::unique_ptr<OperatorFits> operatorFits;
  std::unique_ptr<CollectiveFits> collectiveFits;
};

} // namespace windlass

#endif
