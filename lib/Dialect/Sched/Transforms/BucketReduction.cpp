#include "BucketReduction.h"

#include "windlass/Dialect/Sched/Analysis/Owner.h"

#include <map>
#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace {

/// The commands that begin one collective, and the number of commands of the backward pass behind which they may stand
/// at the earliest.
struct Issue {
  size_t position = 0;
  unsigned communicator = 0;
  /// Whether it moves copies, whose memory is released once it is done.
  bool hasTransients = false;
  std::vector<Command> commands;
};

class Composer {
public:
  Composer(ProgramLowering &program, std::vector<Command> backward, Location loc)
      : program(program), backward(std::move(backward)), loc(loc) {
    for (size_t i = 0; i < this->backward.size(); ++i)
      for (const View &view : llvm::concat<const View>(this->backward[i].ins, this->backward[i].outs))
        lastTouch[view.storage] = i + 1;
  }

  void addBucket(Bucket &bucket) {
    Issue issue;
    issue.communicator = bucket.communicator;
    issue.position = lastTouch.lookup(bucket.storage);
    unsigned stream = program.communicators[bucket.communicator].stream;
    int64_t ready = program.events++;
    issue.commands.push_back(makeEvent(Command::Kind::Record, kComputeStream, ready));
    issue.commands.push_back(makeEvent(Command::Kind::Wait, stream, ready));
    Command command(Command::Kind::Collective, bucket.op.getLoc());
    command.stream = stream;
    command.communicator = bucket.communicator;
    command.reduction = bucket.op.getKind();
    command.id = bucket.op->getAttr(train::kIdAttr);
    command.owner = getOwner(bucket.op, program.getSymbols());
    Type element = getElementTypeOrSelf(bucket.op.getInputs().front());
    View whole = View::dense(
        bucket.storage,
        RankedTensorType::get({program.storages[bucket.storage].bytes / getElementBytes(element)}, element));
    command.ins.push_back(whole);
    command.outs.push_back(whole);
    issue.commands.push_back(std::move(command));
    int64_t done = program.events++;
    issue.commands.push_back(makeEvent(Command::Kind::Record, stream, done));
    last.push_back(makeEvent(Command::Kind::Wait, kComputeStream, done));
    issues[moveToBorder(issue.position)].push_back(std::move(issue));
  }

  /// Divides the remaining commands of `@reduce`: a collective is issued early with all commands before it, except
  /// those that read results of collectives, span positions or work on the host's memory.
  void addReduce(std::vector<Command> commands) {
    std::vector<Command> group;
    for (Command &command : commands) {
      bool isEnd = command.kind == Command::Kind::Record && command.stream != kComputeStream;
      group.push_back(std::move(command));
      if (isEnd)
        addGroup(std::exchange(group, {}));
    }
    llvm::move(group, std::back_inserter(rest));
  }

  std::vector<Command> compose() {
    std::vector<Command> result;
    auto append = [&](std::vector<Command> commands, Command::Runs runs) {
      for (Command &command : commands) {
        command.runs = runs;
        result.push_back(std::move(command));
      }
    };
    for (size_t i = 0; i < backward.size(); ++i) {
      if (auto due = issues.find(i); due != issues.end())
        append(issueAll(due->second), Command::Runs::InLast);
      result.push_back(std::move(backward[i]));
    }
    if (auto due = issues.find(backward.size()); due != issues.end())
      append(issueAll(due->second), Command::Runs::InReduce);
    // What a collective that is still to come does with such a copy, its own wait says.
    for (Command &command : rest)
      if (command.kind == Command::Kind::Wait && issuedEarly.contains(command.event))
        llvm::erase_if(command.keepsAlive, [&](unsigned storage) { return released.contains(storage); });
    append(std::move(rest), Command::Runs::InReduce);
    append(std::move(last), Command::Runs::InReduce);
    return result;
  }

private:
  /// The copies that a collective in flight works on, and the event of its end.
  struct Flight {
    std::optional<int64_t> done;
    SmallVector<unsigned, 2> transients;
  };

  Command makeEvent(Command::Kind kind, unsigned stream, int64_t event) {
    Command command(kind, loc);
    command.stream = stream;
    command.event = event;
    return command;
  }

  void addGroup(std::vector<Command> group) {
    Issue issue;
    bool mayMove = true;
    for (const Command &command : group) {
      mayMove &= command.kind != Command::Kind::Wait || command.stream != kComputeStream;
      for (const View &view : llvm::concat<const View>(command.ins, command.outs)) {
        mayMove &= !touchedByRest.contains(view.storage) && !movedEarly.contains(view.storage);
        // The host may still add to what the backward pass has copied there.
        mayMove &= program.storages[view.storage].memory == plan::MemoryKind::device;
        issue.position = std::max(issue.position, lastTouch.lookup(view.storage));
        issue.hasTransients |= program.storages[view.storage].isTransient;
      }
      if (command.kind == Command::Kind::Collective) {
        issue.communicator = command.communicator;
        // Other positions may still wait for what the backward sends.
        mayMove &= !program.communicators[command.communicator].positions;
      }
    }
    if (!mayMove) {
      for (Command &command : group) {
        for (const View &view : llvm::concat<const View>(command.ins, command.outs))
          touchedByRest.insert(view.storage);
        rest.push_back(std::move(command));
      }
      return;
    }
    issuedEarly.insert(group.back().event);
    for (const Command &command : group)
      if (command.kind == Command::Kind::Collective)
        for (const View &view : llvm::concat<const View>(command.ins, command.outs))
          movedEarly.insert(view.storage);
    issue.commands = std::move(group);
    size_t position = moveToBorder(issue.position);
    // What it makes may be an operand of a collective behind it, which is issued no earlier then.
    for (const Command &command : issue.commands)
      for (const View &view : llvm::concat<const View>(command.ins, command.outs)) {
        size_t &last = lastTouch[view.storage];
        last = std::max(last, position);
      }
    issues[position].push_back(std::move(issue));
  }

  /// Returns the next border of a repeated block, so that the block's instances keep equal commands.
  size_t moveToBorder(size_t position) const {
    while (position > 0 && position < backward.size() && backward[position - 1].repeat &&
           backward[position].repeat == backward[position - 1].repeat)
      ++position;
    return position;
  }

  /// Issues the commands that are due at one position. Collectives on copies made at the position before are waited for
  /// first: memory holds the copies of at most two positions.
  std::vector<Command> issueAll(MutableArrayRef<Issue> due) {
    std::vector<Command> result;
    std::set<unsigned> withTransients;
    for (const Issue &issue : due)
      if (issue.hasTransients)
        withTransients.insert(issue.communicator);
    Attribute repeat = due.front().commands.front().repeat;
    for (unsigned communicator : withTransients)
      if (Flight &flight = inFlight[communicator]; flight.done) {
        Command wait = makeEvent(Command::Kind::Wait, kComputeStream, *flight.done);
        wait.repeat = repeat;
        wait.keepsAlive = std::exchange(flight.transients, {});
        flight.done.reset();
        released.insert(wait.keepsAlive.begin(), wait.keepsAlive.end());
        result.push_back(std::move(wait));
      }
    for (Issue &issue : due)
      for (Command &command : issue.commands) {
        if (command.kind == Command::Kind::Collective)
          for (const View &view : llvm::concat<const View>(command.ins, command.outs))
            if (program.storages[view.storage].isTransient)
              inFlight[issue.communicator].transients.push_back(view.storage);
        result.push_back(std::move(command));
      }
    for (unsigned communicator : withTransients) {
      Flight &flight = inFlight[communicator];
      flight.done = program.events++;
      Command record = makeEvent(Command::Kind::Record, program.communicators[communicator].stream, *flight.done);
      record.repeat = repeat;
      result.push_back(std::move(record));
    }
    return result;
  }

  ProgramLowering &program;
  std::vector<Command> backward;
  Location loc;
  /// By storage, the position behind the last command that uses it: of the backward pass, or of what is issued in it.
  llvm::DenseMap<unsigned, size_t> lastTouch;
  /// The commands to issue, by position, in the order of `@reduce`.
  std::map<size_t, std::vector<Issue>> issues;
  std::vector<Command> rest, last;
  llvm::DenseSet<unsigned> touchedByRest;
  /// The events at the ends of collectives that are issued early, and what these move: it is there after a wait only,
  /// which may be one for another result of the same collective.
  llvm::DenseSet<int64_t> issuedEarly;
  llvm::DenseSet<unsigned> movedEarly;
  /// The copies whose memory is released before the end.
  llvm::DenseSet<unsigned> released;
  std::map<unsigned, Flight> inFlight;
};

} // namespace

std::vector<Command> windlass::sched::composeReduction(ProgramLowering &program, std::vector<Command> backward,
                                                       std::vector<Command> reduce, int64_t chunk, Location loc) {
  Composer composer(program, std::move(backward), loc);
  for (Bucket &bucket : program.buckets)
    if (bucket.chunk == chunk)
      composer.addBucket(bucket);
  composer.addReduce(std::move(reduce));
  return composer.compose();
}
