#include "PositionBuilder.h"

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Schedule/FindRepeat.h"
#include "windlass/Support/RowShare.h"
#include "windlass/Support/TensorBytes.h"

#include <algorithm>

using namespace mlir;
using namespace windlass;
using schedule::ActionKind;
using TaskKind = simulation::Task::Kind;

namespace {

/// The most calls in a row that are folded into one loop; longer rows are repeated piece by piece.
constexpr size_t kMostFolded = 64;

/// Takes a memref or a ranked tensor.
double getBytes(Type type) {
  auto shaped = llvm::cast<ShapedType>(type);
  return static_cast<double>(shaped.getNumElements() * getElementBytes(shaped.getElementType()));
}

/// Returns the first number behind those of the program's own events.
int64_t countEvents(sched::ProgramOp program) {
  int64_t count = 0;
  program.walk([&](Operation *op) {
    if (auto record = llvm::dyn_cast<sched::RecordOp>(op))
      count = std::max(count, static_cast<int64_t>(record.getEvent()) + 1);
    else if (auto wait = llvm::dyn_cast<sched::WaitOp>(op))
      count = std::max(count, static_cast<int64_t>(wait.getEvent()) + 1);
  });
  return count;
}

} // namespace

JobPositions::JobPositions(ArrayRef<sched::ProgramOp> programs, const CostModel &costs)
    : programs(programs), costs(costs) {
  for (sched::ProgramOp program : programs)
    firstRanks.push_back(firstRanks.back() + program.getMesh().getRanks());
}

JobPositions::Message JobPositions::getMessage(int64_t from, int64_t to, double bytes) {
  Cost slowest;
  int64_t slowestRank = 0;
  for (int64_t rank = 0; rank < getRanks(from); ++rank) {
    Cost cost = costs.getMessageCost(firstRanks[from] + rank, firstRanks[to] + rank, bytes);
    if (rank == 0 || cost.picoseconds > slowest.picoseconds) {
      slowest = cost;
      slowestRank = rank;
    }
  }
  std::vector<simulation::Use> list;
  for (LinkUse use : costs.getMessageUses(firstRanks[from] + slowestRank, firstRanks[to] + slowestRank, bytes)) {
    list.push_back({getTierResource(from, use.tier, /*isReceiving=*/false), use.share});
    list.push_back({getTierResource(to, use.tier, /*isReceiving=*/true), use.share});
  }
  return {slowest, addUses(std::move(list))};
}

int64_t JobPositions::getUses(int64_t position, const CollectiveWork &work) {
  std::vector<simulation::Use> list;
  for (LinkUse use : costs.getUses(work))
    for (bool isReceiving : {false, true})
      list.push_back({getTierResource(position, use.tier, isReceiving), use.share});
  return addUses(std::move(list));
}

int64_t JobPositions::getCopyUses(int64_t position, sched::StreamKind direction, double bytes, int64_t picoseconds) {
  std::vector<simulation::Use> list;
  // The link to the host comes behind those of the tiers.
  if (double share = costs.getCopyShare(bytes); share > 0)
    list.push_back({getTierResource(position, costs.countTiers(), direction == sched::StreamKind::h2d), share});
  if (double share = costs.getHostMemoryShare(bytes, picoseconds); share > 0)
    list.push_back({getHostMemory(position), share});
  return addUses(std::move(list));
}

int64_t JobPositions::getHostUses(int64_t position, double bytes, int64_t picoseconds) {
  double share = costs.getHostMemoryShare(bytes, picoseconds);
  return share > 0 ? addUses({{getHostMemory(position), share}}) : -1;
}

int64_t JobPositions::getDiskUses(int64_t position) {
  // It comes behind the link to the host, and does one thing at a time.
  return addUses({{getTierResource(position, costs.countTiers() + 1, /*isReceiving=*/false), 1}});
}

int64_t JobPositions::addUses(std::vector<simulation::Use> list) {
  if (list.empty())
    return -1;
  std::vector<std::pair<int64_t, double>> key;
  for (const simulation::Use &use : list)
    key.emplace_back(use.resource, use.share);
  auto [found, isNew] = usesIndices.try_emplace(std::move(key), static_cast<int64_t>(uses.size()));
  if (isNew)
    uses.push_back(std::move(list));
  return found->second;
}

PositionBuilder::PositionBuilder(JobPositions &job, int64_t position, const CostModel &costs)
    : job(job), position(position), program(job.getProgram(position)), costs(costs), keys(program), streams(program),
      events(countEvents(program)) {
  for (auto communicator : program.getOps<sched::CommunicatorOp>())
    communicators[communicator.getName()] = communicator;
  rank.isSerial = !costs.overlapsCollectives();
  for (int64_t stream = 0; stream < streams.size(); ++stream)
    rank.isApart.push_back(isApart(streams.getKind(stream)));
}

bool PositionBuilder::isApart(sched::StreamKind kind) const {
  switch (kind) {
  case sched::StreamKind::disk_read:
  case sched::StreamKind::disk_write:
    return true;
  case sched::StreamKind::h2d:
  case sched::StreamKind::d2h:
  case sched::StreamKind::host: // computes with threads of its own
    return costs.overlapsCopies();
  default:
    return false;
  }
}

LogicalResult PositionBuilder::build(ArrayRef<schedule::Action> actions) {
  if (failed(findPeers(actions)))
    return failure();
  std::vector<int64_t> calls;
  for (const schedule::Action &action : actions)
    calls.push_back(getFunction(action));
  addLoops(calls);
  return success(!hasUnknownCost);
}

LogicalResult PositionBuilder::findPeers(ArrayRef<schedule::Action> actions) {
  for (const schedule::Action &action : actions)
    if (schedule::isTransfer(action.kind))
      peers.push_back(action.peer);
  llvm::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  if (!peers.empty() && !streams.getCompute())
    return program.emitError("cannot be simulated: exchanges messages, but has no stream of kind compute");
  for (int64_t peer : peers)
    if (job.getRanks(peer) != job.getRanks(position))
      return program.emitError("cannot be simulated: has ")
             << job.getRanks(position) << " ranks, but position " << peer << ", with which it exchanges messages, has "
             << job.getRanks(peer);
  return success();
}

int64_t PositionBuilder::getPeerStream(int64_t peer) const {
  return streams.size() + (llvm::lower_bound(peers, peer) - peers.begin());
}

std::string PositionBuilder::getShownName(int64_t stream) const {
  return stream < streams.size() ? streams.getShownName(stream)
                                 : sched::getMessagesName(peers[stream - streams.size()]);
}

void PositionBuilder::addLoops(ArrayRef<int64_t> calls) {
  for (size_t begin = 0; begin < calls.size();) {
    schedule::Repeat found = schedule::findRepeat(
        begin, calls.size(), [&](size_t i, size_t period) { return calls[i] == calls[i - period]; });
    bool repeats = found.turns > 1;
    if (repeats || rank.loops.empty() || rank.loops.back().count != 1 || rank.loops.back().calls.size() >= kMostFolded)
      rank.loops.emplace_back();
    simulation::Loop &loop = rank.loops.back();
    loop.count = static_cast<int64_t>(found.turns);
    llvm::append_range(loop.calls, calls.slice(begin, found.period));
    begin += found.period * found.turns;
  }
}

int64_t PositionBuilder::getFunction(const schedule::Action &action) {
  SlotEvents::Waits waits = peers.empty() ? SlotEvents::Waits() : events.follow(action);
  // Only what commands do depends on whether an action is the first; only backwards differ where they are the last.
  bool isFirst = action.isFirst && !schedule::isTransfer(action.kind);
  bool isLast = action.isLast && schedule::endsBackward(action.kind);
  FunctionKey key{schedule::getName(action.kind).str(), isFirst, isLast, action.chunk, action.peerChunk, waits};
  auto [found, isNew] = indices.try_emplace(std::move(key), static_cast<int64_t>(functions.size()));
  if (isNew) {
    functions.push_back({action.kind, isLast, {}});
    rank.functions.push_back({{}, costs.getIssuePicoseconds(action.kind == ActionKind::Update)});
    addFunction(action, waits);
  }
  return found->second;
}

void PositionBuilder::addFunction(const schedule::Action &action, const SlotEvents::Waits &waits) {
  bool isTransfer = schedule::isTransfer(action.kind);
  std::optional<sched::StepRole> role = sched::getRole(action.kind);
  bool usesSlot = !peers.empty() && action.kind != ActionKind::Reduce && action.kind != ActionKind::Update;
  int64_t stream = isTransfer ? getPeerStream(action.peer) : usesSlot ? *streams.getCompute() : -1;
  for (auto [event, skips] : waits)
    addTask({TaskKind::Wait, stream, event, 0, -1, skips});
  if (isTransfer)
    addMessages(action);
  else if (auto function = role ? sched::getStepFunction(program, *role, action.chunk) : func::FuncOp())
    for (Operation &op : function.getBody().front())
      if (sched::runsIn(&op, functions.back().isLast))
        addTask(&op, !action.isFirst);
  if (usesSlot)
    addTask({TaskKind::Record, stream,
             isTransfer ? events.getMoved(action.chunk, action.peer) : events.getComputed(action.chunk)});
}

void PositionBuilder::addMessages(const schedule::Action &action) {
  bool sends = action.kind == ActionKind::Send;
  int64_t from = sends ? position : action.peer, to = sends ? action.peer : position;
  simulation::Task task = {sends ? TaskKind::Send : TaskKind::Receive, getPeerStream(action.peer),
                           job.getChannel(from, to)};
  for (sched::ResourceOp tensor :
       sched::getBorder(program, sends ? sched::ResourceKind::sent : sched::ResourceKind::received, action.chunk,
                        action.peerChunk)) {
    double bytes = getBytes(tensor.getType());
    JobPositions::Message message = job.getMessage(from, to, bytes);
    task.uses = message.uses;
    addTask(task, {tensor, message.cost, {schedule::getName(action.kind).str(), 0, bytes, 2}});
  }
}

void PositionBuilder::addTask(simulation::Task task, Command command) {
  task.picoseconds = command.cost.picoseconds;
  rank.functions.back().tasks.push_back(task);
  functions.back().commands.push_back(std::move(command));
}

void PositionBuilder::addTask(Operation *op, bool isLater) {
  if (auto record = llvm::dyn_cast<sched::RecordOp>(op))
    addTask({TaskKind::Record, streams.getNumber(op), static_cast<int64_t>(record.getEvent())});
  else if (auto wait = llvm::dyn_cast<sched::WaitOp>(op))
    addTask({TaskKind::Wait, streams.getNumber(op), static_cast<int64_t>(wait.getEvent())});
  else if (auto collective = llvm::dyn_cast<sched::LaunchCollectiveOp>(op))
    addCollective(collective);
  else if (llvm::isa<sched::LaunchOp, sched::LaunchMapOp>(op))
    addLaunch(op, isLater);
}

void PositionBuilder::addCollective(sched::LaunchCollectiveOp collective) {
  sched::CommunicatorOp communicator = communicators.lookup(collective.getCommunicator());
  SmallVector<StringAttr> axes;
  for (Attribute axis : communicator.getAxes())
    axes.push_back(llvm::cast<StringAttr>(axis));
  GroupShape group = plan::getGroup(program.getMesh(), axes);
  if (std::optional<ArrayRef<int64_t>> positions = communicator.getPositions(); positions && positions->size() > 1) {
    // As if the positions were evenly apart.
    int64_t gaps = positions->size() - 1;
    group.axes.push_back({job.countRanks() / job.size() * (positions->back() - positions->front()) / gaps, gaps + 1});
  }
  if (collective.exchangesRows())
    return addRowExchange(collective, group);
  double bytes = 0;
  for (auto [in, out] : llvm::zip_equal(collective.getIns().getTypes(), collective.getOuts().getTypes()))
    bytes += std::max(getBytes(in), getBytes(out));
  std::string kind = sched::stringifyCollectiveKind(collective.getKind()).str();
  simulation::Task task = {TaskKind::Work, streams.getNumber(collective)};
  if (communicator.getPositions())
    task = {TaskKind::Meet, task.stream, job.getGroup(communicator)};
  CollectiveWork work = {kind, group, bytes};
  task.uses = job.getUses(position, work);
  addTask(task, {collective, costs.getCost(work), {kind, 0, bytes, group.getMembers()}});
}

void PositionBuilder::addRowExchange(sched::LaunchCollectiveOp collective, const GroupShape &group) {
  Value rows = collective.getIns()[0], filled = collective.getOuts()[0];
  double whole = std::max(getBytes(rows.getType()), getBytes(filled.getType()));
  int64_t chosen = cast<MemRefType>(collective.getIns()[1].getType()).getDimSize(1);
  RowExchange exchange = {group, whole,
                          getRowShare(static_cast<int64_t>(*collective.getExperts()), group.getMembers(), chosen)};
  CollectiveWork moved = exchange.getMoved();
  simulation::Task task = {TaskKind::Work, streams.getNumber(collective)};
  task.uses = job.getUses(position, moved);
  std::string kind = sched::stringifyCollectiveKind(collective.getKind()).str();
  addTask(task, {collective, costs.getCost(exchange), {kind, 0, moved.payloadBytes, group.getMembers()}});
}

void PositionBuilder::addLaunch(Operation *op, bool isLater) {
  int64_t number = streams.getNumber(op);
  sched::StreamKind kind = streams.getKind(number);
  simulation::Task task = {TaskKind::Work, number};
  if (kind == sched::StreamKind::h2d || kind == sched::StreamKind::d2h) {
    double bytes = getBytes(op->getOperand(0).getType());
    std::optional<Cost> cost = costs.getCopyCost(bytes);
    if (!cost)
      return reportUnknown(op, kind, "how fast the link between devices and hosts is");
    task.uses = job.getCopyUses(position, kind, bytes, cost->picoseconds);
    return addTask(task, {op, *cost, {stringifyStreamKind(kind).str(), 0, bytes}});
  }
  if (sched::isOfDisk(kind)) {
    double bytes = getBytes(op->getOperand(0).getType());
    task.uses = job.getDiskUses(position);
    return addTask(task, {op, costs.getDiskCost(bytes), {stringifyStreamKind(kind).str(), 0, bytes}});
  }
  const CommandKey &key = keys.get(op, isLater);
  std::optional<Cost> cost =
      kind == sched::StreamKind::host ? costs.getHostCost(key.text, key.work) : costs.getCost(key.text, key.work);
  if (!cost)
    return reportUnknown(op, kind, "how fast hosts compute");
  if (kind == sched::StreamKind::host)
    task.uses = job.getHostUses(position, key.work.bytes, cost->picoseconds);
  addTask(task, {op, *cost, {key.work.family, key.work.flops, key.work.bytes}});
}

void PositionBuilder::reportUnknown(Operation *op, sched::StreamKind kind, StringRef what) {
  if (!std::exchange(hasUnknownCost, true))
    op->emitError("cannot be simulated: runs on a stream of kind ")
        << stringifyStreamKind(kind) << ", but the cluster does not say " << what;
}
