// A position of a job as a rank of the event simulation.
#ifndef WINDLASS_LIB_SIMULATOR_POSITIONBUILDER_H
#define WINDLASS_LIB_SIMULATOR_POSITIONBUILDER_H

#include "SlotEvents.h"

#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Profile/Kernels/CommandKeys.h"
#include "windlass/Simulator/EventSimulation.h"
#include "windlass/Simulator/PredictStep.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace windlass {

/// The positions of a job, as each of them sees the others.
class JobPositions {
public:
  /// Takes the programs of all positions, in their order.
  JobPositions(mlir::ArrayRef<sched::ProgramOp> programs, const CostModel &costs);

  int64_t size() const { return static_cast<int64_t>(programs.size()); }
  sched::ProgramOp getProgram(int64_t position) const { return programs[position]; }
  int64_t getRanks(int64_t position) const { return firstRanks[position + 1] - firstRanks[position]; }
  /// Returns the channel of the messages from one position to another.
  int64_t getChannel(int64_t from, int64_t to) {
    return channels.try_emplace({from, to}, channels.size()).first->second;
  }
  /// Returns the group of a communicator that spans positions.
  int64_t getGroup(sched::CommunicatorOp communicator) {
    return groups.try_emplace({communicator.getAxes(), communicator.getPositionsAttr()}, groups.size()).first->second;
  }
  int64_t countRanks() const { return firstRanks.back(); }
  /// A message of `bytes` from each rank of a position to the one of the same number of another position, which has as
  /// many: that of the slowest pair.
  struct Message {
    Cost cost;
    /// What it uses, as an index into `getUses()`.
    int64_t uses;
  };
  Message getMessage(int64_t from, int64_t to, double bytes);

  /// Returns what a collective of a position uses, as an index into `getUses()`; -1 where it shares nothing.
  int64_t getUses(int64_t position, const CollectiveWork &work);
  /// Returns what a copy between the memories of a position's devices and of their hosts uses likewise, which takes
  /// that time alone.
  int64_t getCopyUses(int64_t position, sched::StreamKind direction, double bytes, int64_t picoseconds);
  /// Returns what a command of the hosts uses likewise, which moves `bytes` in that time.
  int64_t getHostUses(int64_t position, double bytes, int64_t picoseconds);
  /// Returns what reading from the disk of a position's hosts, or writing to it, uses likewise.
  int64_t getDiskUses(int64_t position);
  /// Returns the lists of what activities use, for `simulation::Problem::uses`.
  const std::vector<std::vector<simulation::Use>> &getUses() const { return uses; }

private:
  /// The links of a device, each in one direction: on each tier, to its host, and the host's disk with its memory. One
  /// device stands for all of a position, as its rank does: what several devices share, such as the ports of a host, is
  /// priced so.
  int64_t getTierResource(int64_t position, int64_t tier, bool isReceiving) const {
    return position * (2 * costs.countTiers() + 4) + 2 * tier + isReceiving;
  }
  int64_t getHostMemory(int64_t position) const {
    return getTierResource(position, costs.countTiers() + 1, /*isReceiving=*/true);
  }
  int64_t addUses(std::vector<simulation::Use> list);

  llvm::SmallVector<sched::ProgramOp> programs;
  const CostModel &costs;
  std::vector<std::vector<simulation::Use>> uses;
  /// The index of each list by its numbers.
  std::map<std::vector<std::pair<int64_t, double>>, int64_t> usesIndices;
  /// The number in the job of each position's first rank, and behind them the number of ranks.
  std::vector<int64_t> firstRanks = {0};
  std::map<std::pair<int64_t, int64_t>, int64_t> channels;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, int64_t> groups;
};

/// A command or message with its cost; empty for a task that takes no time.
struct Command {
  mlir::Operation *op = nullptr;
  Cost cost;
  CommandTotal total = {};
};

/// A function as actions of one kind call it.
struct StepFunction {
  schedule::ActionKind kind;
  bool isLast = false;           ///< of a backward
  std::vector<Command> commands; ///< by task
};

/// Builds one rank, which stands for all of its position.
class PositionBuilder {
public:
  PositionBuilder(JobPositions &job, int64_t position, const CostModel &costs);

  /// Builds the rank that runs `actions`. Fails, with a diagnostic, where nobody knows how long a command takes, or
  /// where ranks have no partner for their messages.
  mlir::LogicalResult build(llvm::ArrayRef<schedule::Action> actions);

  /// Returns the name of a stream in reports: those of `sched::StreamTable`, and `messages with position 1` for the
  /// messages that are exchanged with position 1.
  std::string getShownName(int64_t stream) const;

  simulation::Rank rank;
  std::vector<StepFunction> functions;
  /// What a function of the simulation is called by: the name of the action's kind, whether it runs for the first time
  /// in the step, whether it is the last backward, its chunk and its peer chunk, and what it waits for.
  using FunctionKey = std::tuple<std::string, bool, bool, int64_t, int64_t, SlotEvents::Waits>;
  std::map<FunctionKey, int64_t> indices;

private:
  /// Whether commands on a stream of a kind take no part of the core that a serial rank's others share.
  bool isApart(sched::StreamKind kind) const;
  mlir::LogicalResult findPeers(llvm::ArrayRef<schedule::Action> actions);
  void addLoops(llvm::ArrayRef<int64_t> calls);
  int64_t getFunction(const schedule::Action &action);
  void addFunction(const schedule::Action &action, const SlotEvents::Waits &waits);
  /// Adds the sends or receives of a border, one for each of its tensors.
  void addMessages(const schedule::Action &action);
  void addTask(simulation::Task task, Command command = {});
  void addTask(mlir::Operation *op, bool isLater);
  void addCollective(sched::LaunchCollectiveOp collective);
  void addRowExchange(sched::LaunchCollectiveOp collective, const GroupShape &group);
  /// Adds a kernel of the device or the host, or a copy between them.
  void addLaunch(mlir::Operation *op, bool isLater);
  void reportUnknown(mlir::Operation *op, sched::StreamKind kind, llvm::StringRef what);

  /// The messages with a position run on a stream of their own, in the order of the table.
  int64_t getPeerStream(int64_t peer) const;

  JobPositions &job;
  int64_t position;
  sched::ProgramOp program;
  const CostModel &costs;
  CommandKeys keys;
  sched::StreamTable streams;
  llvm::StringMap<sched::CommunicatorOp> communicators;
  /// The positions that this one exchanges messages with.
  std::vector<int64_t> peers;
  SlotEvents events;
  bool hasUnknownCost = false;
};

} // namespace windlass

#endif
