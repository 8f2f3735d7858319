// Reduces events to those that the order needs, and numbers them: an event is recorded by one stream, and has the same
// number in every instance of a repeated block.
#include "ProgramLowering.h"

#include <map>
#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace {

/// Gives out the lowest number that is free.
class NumberPool {
public:
  int64_t take() {
    if (free.empty())
      return used++;
    int64_t number = *free.begin();
    free.erase(free.begin());
    return number;
  }
  void giveBack(int64_t number) { free.insert(number); }
  int64_t getUsed() const { return used; }

private:
  std::set<int64_t> free;
  int64_t used = 0;
};

/// The positions of the record of an event and of its last wait.
struct Span {
  size_t record = 0, last = 0;
};

bool isEvent(const Command &command) {
  return command.kind == Command::Kind::Record || command.kind == Command::Kind::Wait;
}

/// Numbers the events of one function, from 0 for each recording stream. A stream's first numbers go to events that
/// begin and end within one instance of a repeated block: they are the same in each instance, so that instances have
/// equal commands. All other events of the stream get the numbers behind these.
class EventNumbers {
public:
  explicit EventNumbers(std::vector<Command> &commands);

  /// Returns how many numbers each stream uses.
  std::map<unsigned, int64_t> getUsed() const;

  /// Writes the numbers into the commands: those of a stream begin at `first`.
  void write(const std::map<unsigned, int64_t> &first);

private:
  struct Stream {
    /// Within an instance nothing of another one is alive, so one pool serves all instances.
    NumberPool locals;
    NumberPool others;
  };

  unsigned streamOf(const Span &span) const { return commands[span.record].stream; }
  bool isLocal(const Span &span) const {
    return commands[span.record].repeat && segment[span.record] == segment[span.last];
  }

  std::vector<Command> &commands;
  std::vector<size_t> segment; // by command: the run of commands with one repeat
  llvm::DenseMap<int64_t, Span> spans;
  llvm::DenseMap<int64_t, int64_t> numbers;
  std::map<unsigned, Stream> streams;
};

} // namespace

EventNumbers::EventNumbers(std::vector<Command> &commands) : commands(commands), segment(commands.size(), 0) {
  for (size_t i = 1; i < commands.size(); ++i)
    segment[i] = segment[i - 1] + (commands[i].repeat != commands[i - 1].repeat);
  for (size_t i = 0; i < commands.size(); ++i) {
    if (commands[i].kind == Command::Kind::Record)
      spans[commands[i].event] = {i, i};
    else if (commands[i].kind == Command::Kind::Wait)
      spans.find(commands[i].event)->second.last = i;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!isEvent(commands[i]))
      continue;
    int64_t event = commands[i].event;
    const Span &span = spans.find(event)->second;
    Stream &stream = streams[streamOf(span)];
    NumberPool &pool = isLocal(span) ? stream.locals : stream.others;
    if (i == span.record)
      numbers[event] = pool.take();
    if (i == span.last)
      pool.giveBack(numbers[event]);
  }
}

std::map<unsigned, int64_t> EventNumbers::getUsed() const {
  std::map<unsigned, int64_t> used;
  for (const auto &[number, stream] : streams)
    used[number] = stream.locals.getUsed() + stream.others.getUsed();
  return used;
}

void EventNumbers::write(const std::map<unsigned, int64_t> &first) {
  for (Command &command : commands) {
    if (!isEvent(command))
      continue;
    const Span &span = spans.find(command.event)->second;
    unsigned stream = streamOf(span);
    int64_t behind = isLocal(span) ? 0 : streams.find(stream)->second.locals.getUsed();
    command.event = first.at(stream) + behind + numbers[command.event];
  }
}

/// Merges the waits at a function's end to one event per stream, because a stream ends its commands in order. Records
/// elsewhere that only the end waits for are removed. The function's commands end before `end`.
static void mergeLastWaits(std::vector<Command> &commands, size_t end, int64_t &events) {
  llvm::DenseMap<int64_t, unsigned> streams;
  llvm::DenseMap<int64_t, unsigned> waits;
  for (const Command &command : commands) {
    if (command.kind == Command::Kind::Record)
      streams[command.event] = command.stream;
    else if (command.kind == Command::Kind::Wait)
      ++waits[command.event];
  }
  size_t tail = end;
  while (tail > 0 && isEvent(commands[tail - 1]) && commands[tail - 1].runs == commands[end - 1].runs)
    --tail;
  std::map<unsigned, Command> last; // by the stream waited for
  llvm::DenseSet<int64_t> merged;
  for (size_t i = tail; i < end; ++i) {
    const Command &wait = commands[i];
    if (wait.kind != Command::Kind::Wait || wait.stream != kComputeStream || waits.lookup(wait.event) != 1)
      continue;
    merged.insert(wait.event);
    auto [it, isNew] = last.try_emplace(streams.lookup(wait.event), wait);
    if (!isNew)
      llvm::append_range(it->second.keepsAlive, wait.keepsAlive);
  }
  std::vector<Command> kept;
  kept.reserve(commands.size());
  auto keep = [&](size_t begin, size_t behind) {
    for (size_t i = begin; i < behind; ++i)
      if (!isEvent(commands[i]) || !merged.contains(commands[i].event))
        kept.push_back(std::move(commands[i]));
  };
  keep(0, end);
  for (auto &[stream, wait] : last) {
    Command record(Command::Kind::Record, wait.loc);
    record.stream = stream;
    record.runs = wait.runs;
    record.event = wait.event = events++;
    kept.push_back(std::move(record));
    kept.push_back(std::move(wait));
  }
  keep(end, commands.size());
  commands = std::move(kept);
}

/// Lets a record or wait stand for a later one: it then runs wherever the later one does.
static void standFor(Command &earlier, const Command &later) {
  if (earlier.runs != later.runs && later.runs != Command::Runs::InReduce)
    earlier.runs = Command::Runs::Always;
}

/// Merges records of a stream between which it gets no other command, within an instance of a block.
static void mergeEqualRecords(std::vector<Command> &commands) {
  struct Recorded {
    Command *record = nullptr;
    llvm::SmallDenseMap<unsigned, Command *> waits; // by the stream that waits
  };
  std::map<unsigned, Recorded> recorded; // by stream, while it stands still
  llvm::DenseMap<int64_t, int64_t> replacement;
  llvm::DenseSet<const Command *> dropped;
  Attribute repeat;
  for (Command &command : commands) {
    if (command.repeat != repeat)
      recorded.clear();
    repeat = command.repeat;
    if (command.kind == Command::Kind::Record) {
      Recorded &its = recorded[command.stream];
      if (its.record) {
        standFor(*its.record, command);
        dropped.insert(&command);
      } else {
        its.record = &command;
      }
      replacement[command.event] = its.record->event;
      continue;
    }
    if (command.kind == Command::Kind::Wait) {
      auto known = replacement.find(command.event);
      if (known != replacement.end())
        command.event = known->second;
      auto of = llvm::find_if(recorded, [&](auto &entry) { return entry.second.record->event == command.event; });
      if (of != recorded.end()) {
        auto [wait, isNew] = of->second.waits.try_emplace(command.stream, &command);
        if (!isNew && command.keepsAlive.empty()) {
          standFor(*wait->second, command);
          dropped.insert(&command);
          continue;
        }
      }
    }
    recorded.erase(command.stream);
  }
  std::vector<Command> kept;
  kept.reserve(commands.size() - dropped.size());
  for (Command &command : commands)
    if (!dropped.contains(&command))
      kept.push_back(std::move(command));
  commands = std::move(kept);
}

void ProgramLowering::numberEvents() {
  for (auto &[function, commands] : functions) {
    mergeLastWaits(commands, commands.size(), events);
    // @reduce stands behind @backward.
    auto isReduce = [](const Command &command) { return command.runs == Command::Runs::InReduce; };
    if (size_t end = llvm::find_if(commands, isReduce) - commands.begin(); end < commands.size())
      mergeLastWaits(commands, end, events);
    mergeEqualRecords(commands);
  }

  // What a function records is waited for in it or in the reduction behind it, so functions share the numbers. Streams
  // do not: a wait that a queue still holds ends at any later record of its event, and only those of the stream that it
  // waits for come after what it waits for.
  std::vector<EventNumbers> numbered;
  std::map<unsigned, int64_t> used;
  for (auto &[function, commands] : functions) {
    numbered.emplace_back(commands);
    for (auto [stream, count] : numbered.back().getUsed())
      used[stream] = std::max(used[stream], count);
  }
  events = 0;
  std::map<unsigned, int64_t> first;
  for (auto [stream, count] : used) {
    first[stream] = events;
    events += count;
  }
  for (EventNumbers &its : numbered)
    its.write(first);
}
