#include "windlass/Interpreter/ScheduleChecker.h"

#include <algorithm>

using namespace windlass::interpreter;

static constexpr int64_t kWordBytes = 4;

ScheduleChecker::ScheduleChecker(llvm::ArrayRef<int64_t> arenaBytes) : arenas(arenaBytes.size()), clocks(1) {
  for (auto [arena, bytes] : llvm::zip_equal(arenas, arenaBytes))
    arena.writer.assign((bytes + kWordBytes - 1) / kWordBytes, -1);
}

unsigned ScheduleChecker::streamIndex(int64_t stream) {
  auto [found, isNew] = streams.try_emplace(stream, clocks.size());
  if (isNew)
    clocks.emplace_back();
  return found->second;
}

void ScheduleChecker::join(Clock &clock, const Clock &other) {
  if (clock.size() < other.size())
    clock.resize(other.size(), 0);
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

void ScheduleChecker::start(mlir::Operation *op, unsigned stream) {
  // The host has issued this after all that it has done and waited for.
  join(clocks[stream], Clock(clocks[0]));
  Clock &clock = clocks[stream];
  if (clock.size() <= stream)
    clock.resize(stream + 1, 0);
  current = static_cast<int32_t>(commands.size());
  commands.push_back({op, stream, ++clock[stream]});
}

void ScheduleChecker::begin(mlir::Operation *command, int64_t stream) { start(command, streamIndex(stream)); }

void ScheduleChecker::beginHost() { start(nullptr, 0); }

bool ScheduleChecker::isOrdered(int32_t command) const {
  const Command &earlier = commands[command];
  const Clock &clock = clocks[commands[current].stream];
  return command == current || (earlier.stream < clock.size() && clock[earlier.stream] >= earlier.time);
}

ScheduleChecker::Finding ScheduleChecker::findingOf(llvm::StringRef text, int32_t other, int64_t word) const {
  Finding finding;
  finding.text = (text + " at byte " + llvm::Twine(word * kWordBytes)).str();
  finding.other = commands[other].op;
  finding.meetsHost = !finding.other;
  return finding;
}

template <class Visit>
std::optional<ScheduleChecker::Finding> ScheduleChecker::forEachWord(const Window &window, Visit visit) {
  for (int64_t size : window.sizes)
    if (size == 0)
      return std::nullopt;
  // Dense trailing dims are one run.
  int64_t run = window.elementBytes;
  size_t outer = window.sizes.size();
  while (outer > 0 && (window.sizes[outer - 1] == 1 || window.strides[outer - 1] * window.elementBytes == run)) {
    run *= window.sizes[outer - 1];
    --outer;
  }
  llvm::SmallVector<int64_t, 4> index(outer, 0);
  int64_t last = -1;
  while (true) {
    int64_t begin = window.offset;
    for (size_t i = 0; i < outer; ++i)
      begin += index[i] * window.strides[i] * window.elementBytes;
    for (int64_t word = begin / kWordBytes; word <= (begin + run - 1) / kWordBytes; ++word) {
      if (word == last)
        continue;
      last = word;
      if (std::optional<Finding> finding = visit(word))
        return finding;
    }
    size_t dim = outer;
    while (dim > 0) {
      --dim;
      // A dim that repeats its elements adds no bytes.
      if (window.strides[dim] != 0 && ++index[dim] < window.sizes[dim])
        break;
      index[dim] = 0;
      if (dim == 0)
        return std::nullopt;
    }
    if (outer == 0)
      return std::nullopt;
  }
}

std::optional<ScheduleChecker::Finding> ScheduleChecker::read(const Window &window, bool mayBeUnwritten) {
  Arena &arena = arenas[window.arena];
  unsigned stream = commands[current].stream;
  while (arena.readers.size() <= stream)
    arena.readers.emplace_back(arena.writer.size(), -1);
  std::vector<int32_t> &readers = arena.readers[stream];
  int32_t known = current;
  return forEachWord(window, [&](int64_t word) -> std::optional<Finding> {
    int32_t writer = arena.writer[word];
    readers[word] = current;
    if (writer == known)
      return std::nullopt;
    if (writer < 0) {
      if (mayBeUnwritten)
        return std::nullopt;
      Finding finding;
      finding.text = "reads what nothing has written at byte " + std::to_string(word * kWordBytes);
      return finding;
    }
    if (!isOrdered(writer))
      return findingOf("reads what an unordered command writes", writer, word);
    known = writer;
    return std::nullopt;
  });
}

std::optional<ScheduleChecker::Finding> ScheduleChecker::write(const Window &window, bool mayOverlapReads) {
  Arena &arena = arenas[window.arena];
  int32_t known = current;
  return forEachWord(window, [&](int64_t word) -> std::optional<Finding> {
    int32_t writer = arena.writer[word];
    if (writer >= 0 && writer != known) {
      if (!isOrdered(writer))
        return findingOf("writes what an unordered command writes too", writer, word);
      known = writer;
    }
    for (const std::vector<int32_t> &readers : arena.readers) {
      int32_t reader = readers[word];
      if (reader < 0)
        continue;
      if (reader == current) {
        if (!mayOverlapReads)
          return findingOf("writes what it reads, which its kernel does not allow,", reader, word);
        continue;
      }
      if (!isOrdered(reader))
        return findingOf("overwrites what an unordered command reads", reader, word);
    }
    arena.writer[word] = current;
    return std::nullopt;
  });
}

void ScheduleChecker::record(int64_t event, int64_t stream) {
  unsigned index = streamIndex(stream);
  join(clocks[index], Clock(clocks[0]));
  events[event] = clocks[index];
}

bool ScheduleChecker::wait(int64_t event, int64_t stream) {
  auto found = events.find(event);
  if (found == events.end())
    return false;
  join(clocks[streamIndex(stream)], found->second);
  return true;
}

void ScheduleChecker::waitByHost(int64_t stream) {
  unsigned index = streamIndex(stream); // first, for it may add a clock
  join(clocks[0], Clock(clocks[index]));
}

void ScheduleChecker::waitByHost() {
  for (size_t i = 1; i < clocks.size(); ++i)
    join(clocks[0], Clock(clocks[i]));
}
