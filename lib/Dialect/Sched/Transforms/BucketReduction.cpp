#include "BucketReduction.h"

#include "windlass/Dialect/Sched/Analysis/Owner.h"

#include <map>
#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace {

/// The commands that begin one collective, copy or command of the host, and the number of commands of the backward pass
/// behind which they may stand at the earliest.
struct Issue {
  size_t position = 0;
  /// None for copies between memories and what the host runs.
  std::optional<unsigned> communicator;
  /// Whether it moves copies, whose memory is released once it is done.
  bool hasTransients = false;
  std::vector<Command> commands;
};

/// Says behind how many commands of a function a storage is free for a command of another stream.
class StorageUses {
public:
  StorageUses(ArrayRef<Command> commands, size_t streams) : end(commands.size()), awaited(streams) {
    // By stream, for each stream: the place up to which its commands are over. A wait brings what the stream of its
    // record has waited for besides.
    std::vector<std::vector<size_t>> over(streams, std::vector<size_t>(streams, 0));
    llvm::DenseMap<int64_t, std::vector<size_t>> records; // by event
    for (auto [i, command] : llvm::enumerate(commands)) {
      for (const View &view : llvm::concat<const View>(command.ins, command.outs))
        last[view.storage][command.stream] = i + 1;
      std::vector<size_t> &own = over[command.stream];
      if (command.kind == Command::Kind::Record) {
        own[command.stream] = i + 1;
        records[command.event] = own;
      } else if (command.kind == Command::Kind::Wait) {
        auto record = records.find(command.event);
        if (record == records.end())
          continue;
        for (auto [stream, place] : llvm::enumerate(record->second))
          if (place > own[stream]) {
            own[stream] = place;
            if (command.stream == kComputeStream)
              awaited[stream].push_back({place, i + 1});
          }
      }
    }
  }

  /// Returns the place from which on a command of `stream` that waits for the compute stream there may use the storage.
  size_t getFree(unsigned storage, unsigned stream) const {
    size_t free = 0;
    auto uses = last.find(storage);
    if (uses == last.end())
      return free;
    for (auto [user, place] : uses->second)
      free = std::max(free, user == stream || user == kComputeStream ? place : getAwaited(user, place));
    return free;
  }

private:
  /// Returns the place behind which the compute stream has waited for what `stream` did before `place`.
  size_t getAwaited(unsigned stream, size_t place) const {
    auto first = llvm::lower_bound(awaited[stream], std::pair(place, size_t(0)));
    return first == awaited[stream].end() ? end : first->second;
  }

  size_t end;
  llvm::DenseMap<unsigned, llvm::SmallDenseMap<unsigned, size_t, 2>> last;
  /// By stream: places up to which its commands are over, and those from which on the compute stream knows it; both in
  /// order.
  std::vector<std::vector<std::pair<size_t, size_t>>> awaited;
};

class Composer {
public:
  Composer(ProgramLowering &program, std::vector<Command> backward, Location loc)
      : program(program), uses(backward, program.streams.size()), backward(std::move(backward)), loc(loc) {}

  void addBucket(Bucket &bucket) {
    Issue issue;
    issue.communicator = bucket.communicator;
    unsigned stream = program.communicators[bucket.communicator].stream;
    issue.position = uses.getFree(bucket.storage, stream);
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
    size_t position = moveToBorder(issue.position);
    eventPlaces[done] = position;
    bucketEvents[bucket.storage] = done;
    issues[position].push_back(std::move(issue));
  }

  /// Divides the remaining commands of `@reduce`: a collective is issued early with all commands before it, except
  /// those that span positions and those that read what earlier commands make of the results of collectives. Copies
  /// between memories and what the host runs are issued early too, in their order.
  void addReduce(std::vector<Command> commands) {
    std::vector<Command> group;
    llvm::SmallDenseSet<size_t> reading; // the places in the group of what reads results of collectives
    for (Command &command : commands) {
      if (command.kind == Command::Kind::Collective)
        for (const View &view : llvm::concat<const View>(command.ins, command.outs))
          moved[command.stream].push_back(view.storage);
      if (command.kind == Command::Kind::Record && moved.contains(command.stream))
        delivered[command.event] = {command.stream, moved[command.stream].size()};
      if (readsDelivered(command)) {
        if (command.kind == Command::Kind::Wait)
          touchDelivered(command.event);
        touchInRest(command);
        reading.insert(group.size());
      }
      bool isEnd = command.kind == Command::Kind::Record && command.stream != kComputeStream;
      group.push_back(std::move(command));
      if (!isEnd)
        continue;
      if (isBeside(group.back().stream))
        addBeside(takeOthers(group, reading));
      else
        addGroup(std::move(group), reading);
      group.clear();
      reading.clear();
    }
    addRest(std::move(group));
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

  /// Adds those commands of a group that read what collectives bring, at the places `reading`, and what the compute
  /// stream does before them; returns the others.
  std::vector<Command> takeOthers(std::vector<Command> &group, const llvm::SmallDenseSet<size_t> &reading) {
    size_t end = 0; // of the commands that read
    for (size_t place : reading)
      end = std::max(end, place + 1);
    std::vector<Command> behind, others;
    for (auto [place, command] : llvm::enumerate(group)) {
      bool isBefore = place < end && command.stream == kComputeStream && command.kind != Command::Kind::Record;
      (isBefore ? behind : others).push_back(std::move(command));
    }
    addRest(std::move(behind));
    return others;
  }

  /// Adds a collective with the commands before it, of which those at `reading` are not issued early with it.
  void addGroup(std::vector<Command> group, const llvm::SmallDenseSet<size_t> &reading) {
    Issue issue;
    bool mayMove = true;
    for (auto [place, command] : llvm::enumerate(group)) {
      if (reading.contains(place))
        continue;
      mayMove &= command.kind != Command::Kind::Wait || command.stream != kComputeStream;
      mayMove &= !conflictsWithRest(command);
      for (const View &view : llvm::concat<const View>(command.ins, command.outs)) {
        mayMove &= !movedEarly.contains(view.storage) && !bucketEvents.contains(view.storage);
        // What an earlier collective makes may be an operand of this one, which is issued no earlier then.
        issue.position =
            std::max({issue.position, uses.getFree(view.storage, command.stream), issuedPlaces.lookup(view.storage)});
        issue.hasTransients |= program.storages[view.storage].isTransient;
      }
      if (command.kind == Command::Kind::Collective) {
        issue.communicator = command.communicator;
        // Other positions may still wait for what the backward sends.
        mayMove &= !program.communicators[command.communicator].positions;
      }
    }
    if (!mayMove)
      return addRest(std::move(group));
    issuedEarly.insert(group.back().event);
    std::vector<Command> behind, releases;
    for (auto [place, command] : llvm::enumerate(group)) {
      if (command.kind == Command::Kind::Collective)
        for (const View &view : llvm::concat<const View>(command.ins, command.outs))
          movedEarly.insert(view.storage);
      bool isRelease = command.kind == Command::Kind::Wait && isBeside(command.stream);
      (isRelease ? releases : reading.contains(place) ? behind : issue.commands).push_back(std::move(command));
    }
    addReleases(std::move(releases));
    addRest(std::move(behind));
    issue.position = moveToBorder(issue.position);
    addIssue(std::move(issue));
  }

  /// Whether the device waits for collectives of `@reduce`, or computes with what it has waited for.
  bool readsDelivered(const Command &command) const {
    if (command.stream != kComputeStream || command.kind == Command::Kind::Record)
      return false;
    if (command.kind == Command::Kind::Wait)
      return delivered.contains(command.event);
    return conflictsWithRest(command);
  }

  /// Whether the command cannot come before those of the rest: it reads what one of them writes, or writes what one
  /// reads or writes.
  bool conflictsWithRest(const Command &command) const {
    return llvm::any_of(command.ins, [&](const View &view) { return writtenByRest.contains(view.storage); }) ||
           llvm::any_of(command.outs, [&](const View &view) {
             return writtenByRest.contains(view.storage) || readByRest.contains(view.storage);
           });
  }

  /// Notes what the collectives before an event have worked on.
  void touchDelivered(int64_t event) {
    auto [stream, count] = delivered.lookup(event);
    size_t &noted = awaitedMoves[stream];
    for (; noted < count; ++noted)
      writtenByRest.insert(moved[stream][noted]);
  }

  void touchInRest(const Command &command) {
    for (const View &view : command.ins)
      readByRest.insert(view.storage);
    for (const View &view : command.outs)
      writtenByRest.insert(view.storage);
    // Other streams may count on the device for what it has waited for.
    writtenByRest.insert(command.keepsAlive.begin(), command.keepsAlive.end());
  }

  void addRest(std::vector<Command> group) {
    for (const Command &command : group)
      for (const View &view : llvm::concat<const View>(command.ins, command.outs))
        if (auto bucket = bucketEvents.find(view.storage); bucket != bucketEvents.end())
          if (auto wait = llvm::find_if(last, [&](const Command &its) { return its.event == bucket->second; });
              wait != last.end()) {
            rest.push_back(std::move(*wait));
            last.erase(wait);
          }
    for (Command &command : group) {
      touchInRest(command);
      rest.push_back(std::move(command));
    }
  }

  void addIssue(Issue issue) {
    for (const Command &command : issue.commands) {
      if (command.kind == Command::Kind::Record)
        eventPlaces[command.event] = issue.position;
      for (const View &view : llvm::concat<const View>(command.ins, command.outs)) {
        size_t &place = issuedPlaces[view.storage];
        place = std::max(place, issue.position);
      }
    }
    issues[issue.position].push_back(std::move(issue));
  }

  /// Whether commands of the stream copy between memories or run on the host.
  bool isBeside(unsigned stream) const {
    StreamKind kind = program.streams[stream].kind;
    return kind != StreamKind::compute && kind != StreamKind::communicator;
  }

  /// Adds waits of copies and of the host until something there is no longer used, which stand behind what uses it and
  /// may have come before a collective that has nothing to do with them.
  void addReleases(std::vector<Command> waits) {
    if (waits.empty())
      return;
    Issue issue;
    issue.position = lastBeside;
    for (const Command &wait : waits) {
      auto place = eventPlaces.find(wait.event);
      if (place == eventPlaces.end())
        return addRest(std::move(waits));
      issue.position = std::max(issue.position, place->second);
    }
    issue.position = lastBeside = moveToBorder(issue.position);
    issue.commands = std::move(waits);
    addBesideIssue(std::move(issue));
  }

  /// Issues copies or commands of the host early, in the instance of a block that they follow.
  void addBesideIssue(Issue issue) {
    bool isBehind = issue.position > 0 && issue.position < backward.size();
    for (Command &command : issue.commands)
      command.repeat = isBehind ? backward[issue.position - 1].repeat : Attribute();
    addIssue(std::move(issue));
  }

  /// Adds a copy or a command of the host, with the events before it. It stays behind those added before: what they
  /// release may be where it writes.
  void addBeside(std::vector<Command> group) {
    Issue issue;
    issue.position = lastBeside;
    unsigned stream = group.back().stream;
    bool mayMove = true;
    llvm::SmallDenseSet<int64_t> own;
    llvm::SmallSetVector<int64_t, 2> buckets;
    for (const Command &command : group) {
      if (command.kind == Command::Kind::Record)
        own.insert(command.event);
      if (command.kind == Command::Kind::Wait && !own.contains(command.event)) {
        auto place = eventPlaces.find(command.event);
        mayMove &= command.stream != kComputeStream && place != eventPlaces.end();
        issue.position = std::max(issue.position, mayMove ? place->second : 0);
      }
      // What the device reads for an update may be there behind a wait of its own only.
      mayMove &= command.stream != kComputeStream || command.ins.empty();
      mayMove &= !conflictsWithRest(command);
      for (const View &view : llvm::concat<const View>(command.ins, command.outs)) {
        issue.position =
            std::max({issue.position, uses.getFree(view.storage, command.stream), issuedPlaces.lookup(view.storage)});
        if (auto bucket = bucketEvents.find(view.storage); bucket != bucketEvents.end()) {
          buckets.insert(bucket->second);
          issue.position = std::max(issue.position, eventPlaces.lookup(bucket->second));
        }
      }
    }
    if (mayMove)
      issue.position = lastBeside = moveToBorder(issue.position);
    auto push = [&](Command::Kind kind, unsigned on, int64_t event) {
      issue.commands.push_back(makeEvent(kind, on, event));
    };
    // What the compute stream has used or waited for until there is free.
    if (!mayMove || awaitedPlaces.insert({stream, issue.position}).second) {
      int64_t event = program.events++;
      push(Command::Kind::Record, kComputeStream, event);
      push(Command::Kind::Wait, stream, event);
    }
    for (int64_t event : buckets)
      push(Command::Kind::Wait, stream, event);
    llvm::move(group, std::back_inserter(issue.commands));
    if (!mayMove)
      return addRest(std::move(issue.commands));
    for (const Command &command : issue.commands)
      for (const View &view : llvm::concat<const View>(command.ins, command.outs))
        movedEarly.insert(view.storage);
    addBesideIssue(std::move(issue));
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
        withTransients.insert(*issue.communicator);
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
              inFlight[*issue.communicator].transients.push_back(view.storage);
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
  StorageUses uses;
  std::vector<Command> backward;
  Location loc;
  /// The commands to issue, by position, in the order of `@reduce`.
  std::map<size_t, std::vector<Issue>> issues;
  std::vector<Command> rest, last;
  /// The storages that commands of the rest read, and those that they write or wait for.
  llvm::DenseSet<unsigned> readByRest, writtenByRest;
  /// By stream: what the collectives of `@reduce` work on, in order, and how many of these the device has waited for.
  /// By event: the stream that records it, and how many are before it.
  llvm::DenseMap<unsigned, std::vector<unsigned>> moved;
  llvm::DenseMap<unsigned, size_t> awaitedMoves;
  llvm::DenseMap<int64_t, std::pair<unsigned, size_t>> delivered;
  /// The events at the ends of collectives that are issued early, and what these move: it is there after a wait only,
  /// which may be one for another result of the same collective.
  llvm::DenseSet<int64_t> issuedEarly;
  llvm::DenseSet<unsigned> movedEarly;
  /// The places where events are recorded that are issued early, and the last ones where storages are used.
  llvm::DenseMap<int64_t, size_t> eventPlaces;
  llvm::DenseMap<unsigned, size_t> issuedPlaces;
  /// By storage: the event at the end of its bucket's reduction.
  llvm::DenseMap<unsigned, int64_t> bucketEvents;
  /// The place of the last copy or command of the host that is issued early, and the places where their streams wait
  /// for the compute stream.
  size_t lastBeside = 0;
  llvm::DenseSet<std::pair<unsigned, size_t>> awaitedPlaces;
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
