#include "FitMemory.h"

#include "RunPasses.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/Transforms/Scratch.h"
#include "windlass/Support/TensorBytes.h"

#include <set>
#include <thread>

using namespace mlir;
using namespace windlass;

/// Of more than `kStepShare` steps, so many numbers are tried by what they free; then the fewest are found but for one
/// part in `kStepShare` of all.
static constexpr size_t kMostGuesses = 3, kStepShare = 32;
/// A plan that is expected to exceed the limit by more than one part in so many does: estimates are truer than that.
static constexpr int64_t kSureShare = 8;

size_t RerunReport::countBlocks() const {
  return llvm::count_if(segments, [](const auto &entry) { return entry.second != plan::kKeptLabel; });
}

std::unique_ptr<Pass> windlass::createStrategyPass(const PlanChoice &choice) {
  plan::ApplyStrategyOptions options;
  options.strategy = choice.strategy;
  options.ranks = choice.cluster.getDevices();
  options.pins.append(choice.pins.begin(), choice.pins.end());
  return plan::createApplyStrategy(options);
}

static int64_t countHosts(const Cluster &cluster) {
  int64_t hosts = 0;
  for (const HostGroup &group : cluster.hosts)
    hosts += group.count;
  return hosts;
}

/// What a rank's reserve follows from whatever the plan and the processor are.
static rt::reserve_need describeRank(int64_t ranks, const Cluster &cluster) {
  rt::reserve_need need;
  need.ranks = ranks;
  need.has_processes = ranks > 1;
  need.is_one_host = countHosts(cluster) <= 1;
  return need;
}

/// What the cluster's back end declares.
static rt::reserve declareReserve(const Cluster &cluster, const rt::reserve_need &need) {
  return cluster.getBackend() == "cpu" ? rt::declare_reserve(need) : rt::declare_device_reserve(need);
}

int64_t windlass::getSearchedMemory(const PlanChoice &choice) {
  rt::reserve least = declareReserve(choice.cluster, describeRank(choice.cluster.getDevices(), choice.cluster));
  return choice.getMemoryLimit() - (least.total() - least.threads);
}

int64_t windlass::expectCommunication(const plan::StrategyChoice &mesh, const Cluster &cluster) {
  rt::reserve_need need = describeRank(cluster.getDevices(), cluster);
  int64_t without = declareReserve(cluster, need).communication;
  int64_t all = mesh.groups * mesh.batchParts * mesh.modelRanks;
  for (int64_t members : {mesh.groups, mesh.batchParts, mesh.modelRanks})
    if (members > 1 && members < all)
      need.communicators.push_back({static_cast<int32_t>(members), false});
  need.communicators.push_back({static_cast<int32_t>(all), false});
  return declareReserve(cluster, need).communication - without;
}

/// What the back end declares for a rank of a module at L5.
static rt::reserve declareReserve(ModuleOp module, const Cluster &cluster, int64_t threads) {
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  rt::reserve_need need = describeRank(mesh.getRanks(), cluster);
  int64_t most = 1;
  for (const HostGroup &group : cluster.hosts)
    most = std::max(most, group.devices);
  need.threads = threads ? threads : std::max<int64_t>(1, std::thread::hardware_concurrency() / most);
  for (auto communicator : module.getOps<sched::CommunicatorOp>()) {
    rt::reserve_need::communicator &its = need.communicators.emplace_back();
    for (Attribute axis : communicator.getAxes())
      its.members *= static_cast<int32_t>(mesh.sizeOf(cast<StringAttr>(axis).getValue()));
    its.exchanges = communicator.getExchanges();
  }
  need.scratch_bytes = sched::getScratchBytesPerThread(module);
  for (auto resource : module.getOps<sched::ResourceOp>())
    switch (resource.getKind()) {
    case sched::ResourceKind::input:
      need.input_bytes += getTensorBytes(resource.getGlobalTensorType());
      [[fallthrough]];
    case sched::ResourceKind::parameter:
    case sched::ResourceKind::state:
      ++need.tensors;
      break;
    default:
      break;
    }
  return declareReserve(cluster, need);
}

static RerunReport reportRerun(ModuleOp planned) {
  RerunReport report;
  for (const plan::SegmentBlock &block : plan::getSegmentBlocks(planned))
    report.segments.push_back({block.name, *block.getLabel()});
  plan::Rerun rerun(planned.lookupSymbol<func::FuncOp>(train::kMicrobatchFunction));
  rerun.addChosen();
  report.stashBytesBefore = rerun.getStashBytes();
  report.stashBytes = report.stashBytesBefore - rerun.getFreedBytes();
  report.flops = rerun.getFlops();
  report.flopsBefore = rerun.getAllFlops();
  return report;
}

int windlass::materialize(ModuleOp module, Code code) { return runPhases(module, code, {Phase::materializeLayouts}); }

int windlass::makeSchedule(ModuleOp planned, const Cluster &cluster, int64_t threads, Code code, Schedule &schedule) {
  schedule.rerun = reportRerun(planned);
  schedule.module = planned.clone();
  if (int failed = materialize(*schedule.module, code))
    return failed;
  if (int failed =
          runPhases(*schedule.module, Code::lowering, {Phase::distribute, Phase::fuse, Phase::lowerToCommands}))
    return failed;
  schedule.reserve = declareReserve(*schedule.module, cluster, threads);
  schedule.bytes = schedule.liveBytes = schedule.reserve.total();
  sched::ArenaOp arena = sched::getDeviceArena(*schedule.module);
  schedule.bytes += arena.getBytes();
  schedule.liveBytes += arena->getAttrOfType<IntegerAttr>(sched::kLargestLiveSetAttr).getInt();
  return kDone;
}

void Fit::apply(ModuleOp planned) const {
  if (schedule.hasDroppedPrefetch)
    planned->removeAttr(plan::kPrefetchBytesAttr);
  plan::RerunSteps(planned).apply(planned, steps);
}

int windlass::fitMemory(ModuleOp planned, const PlanChoice &choice, bool wantsLeast, int64_t expectedExcess, Fit &fit) {
  int64_t limit = choice.getMemoryLimit(), missing = expectedExcess;
  bool isSureToExceed = expectedExcess > limit / kSureShare && !plan::getSegmentBlocks(planned).empty();
  if (!isSureToExceed) {
    if (int code = makeSchedule(planned, choice.cluster, choice.threads, Code::strategy, fit.schedule))
      return code;
    fit.excessBytes = fit.schedule.bytes - limit;
    if (fit.excessBytes <= 0)
      return kDone;
    missing = fit.schedule.liveBytes - limit;
  }

  plan::RerunSteps steps(planned);
  OwningOpRef<ModuleOp> copy(planned.clone());
  bool dropsPrefetch = bool(copy.get()->removeAttr(plan::kPrefetchBytesAttr));
  std::set<size_t> tried = {0};
  auto attempt = [&](size_t count, Schedule &schedule) {
    tried.insert(count);
    steps.apply(*copy, count);
    schedule.hasDroppedPrefetch = dropsPrefetch;
    return makeSchedule(*copy, choice.cluster, choice.threads, Code::strategy, schedule);
  };
  size_t count = 0;
  if (dropsPrefetch && !isSureToExceed) {
    Schedule without;
    if (int code = attempt(count, without))
      return code;
    missing = without.liveBytes - limit;
    if (without.bytes < fit.schedule.bytes)
      fit.schedule = std::move(without);
    if (fit.schedule.bytes <= limit)
      return kDone;
  }
  if (!wantsLeast && missing > steps.getFreedBytes(steps.size()))
    return kDone;
  auto tryCount = [&](size_t count, bool &fits) {
    Schedule next;
    if (int code = attempt(count, next))
      return code;
    // Where all that lives would fit, what packing leaves between is missing.
    missing = next.liveBytes > limit ? next.liveBytes - limit : next.bytes - limit;
    fits = next.bytes <= limit;
    if (fits || !fit.schedule.module || next.bytes < fit.schedule.bytes)
      fit = {count, std::move(next), fit.excessBytes};
    return int(kDone);
  };
  // What lives at one time is at most smaller by what steps free. So those that free less than is missing do not do.
  size_t mostGuesses = steps.size() > kStepShare ? kMostGuesses : steps.size();
  for (size_t guesses = 0; count < steps.size() && guesses < mostGuesses; ++guesses) {
    int64_t freed = steps.getFreedBytes(count++);
    while (count < steps.size() && steps.getFreedBytes(count) - freed < missing)
      ++count;
    bool fits = false;
    if (int code = tryCount(count, fits); code || fits)
      return code;
  }
  // Where they free much less than that, halving what is left comes sooner to an end.
  if (count < steps.size()) {
    size_t low = count, high = steps.size();
    bool fits = false;
    if (int code = tryCount(high, fits))
      return code;
    while (fits && high - low > std::max<size_t>(1, steps.size() / kStepShare)) {
      size_t middle = low + (high - low) / 2;
      bool fitsThere = false;
      if (int code = tryCount(middle, fitsThere))
        return code;
      (fitsThere ? high : low) = middle;
    }
    if (fits)
      return kDone;
  }
  // Blocks that are run again as one may take more than their parts.
  if (tried.insert(steps.countParts()).second) {
    Schedule parts;
    if (int code = attempt(steps.countParts(), parts))
      return code;
    if (parts.bytes < fit.schedule.bytes)
      fit = {steps.countParts(), std::move(parts), fit.excessBytes};
  }
  return kDone;
}

/// Bytes of the copies of parameters and of their state on a rank, which every schedule holds from step to step.
static int64_t getHeldBytes(ModuleOp planned) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  int64_t total = 0;
  for (auto parameter : planned.getOps<train::ParameterOp>()) {
    auto compute = parameter->getAttrOfType<plan::LayoutAttr>(plan::kLayoutAttr);
    auto master = parameter->getAttrOfType<plan::LayoutAttr>(plan::kMasterLayoutAttr);
    total += getTensorBytes(compute.getLocalType(parameter.getComputeTensorType(), mesh));
    if (parameter.getTrainable() && !plan::haveSameParts(compute, master, mesh))
      total += getTensorBytes(master.getLocalType(parameter.getTensorType(), mesh));
  }
  return total;
}

bool windlass::tryStrategy(ModuleOp unplanned, const PlanChoice &choice, Fit &fit) {
  ScopedDiagnosticHandler silent(unplanned.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> planned(unplanned.clone());
  auto add = [&](OpPassManager &manager) { manager.addPass(createStrategyPass(choice)); };
  return runPasses(*planned, Code::strategy, add) == kDone && getHeldBytes(*planned) <= choice.getMemoryLimit() &&
         fitMemory(*planned, choice, /*wantsLeast=*/false, /*expectedExcess=*/0, fit) == kDone &&
         fit.schedule.bytes <= choice.getMemoryLimit();
}
