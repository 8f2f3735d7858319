#include "windlass/Schedule/MemoryTimeline.h"

#include <algorithm>

using namespace windlass::schedule;

std::vector<ByteRange> windlass::schedule::getByteRanges(int64_t offset, int64_t elementBytes,
                                                         std::vector<int64_t> sizes, std::vector<int64_t> strides,
                                                         bool &isExact, size_t limit) {
  isExact = true;
  // The dims from the smallest stride on; those that add no byte are left out.
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0)
      return {};
    if (sizes[i] != 1 && strides[i] != 0)
      dims.push_back({strides[i] * elementBytes, sizes[i]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t run = elementBytes;
  size_t outer = 0;
  while (outer < dims.size() && dims[outer].first == run)
    run *= dims[outer++].second;

  int64_t last = offset;
  size_t runs = 1;
  for (size_t i = outer; i < dims.size(); ++i) {
    last += dims[i].first * (dims[i].second - 1);
    runs = runs > limit ? runs : runs * dims[i].second;
  }
  if (runs > limit) {
    isExact = false;
    return {{offset, last + run}};
  }
  std::vector<int64_t> starts{offset};
  for (size_t i = dims.size(); i-- > outer;) {
    std::vector<int64_t> next;
    for (int64_t start : starts)
      for (int64_t k = 0; k < dims[i].second; ++k)
        next.push_back(start + k * dims[i].first);
    starts = std::move(next);
  }
  std::sort(starts.begin(), starts.end());
  std::vector<ByteRange> ranges;
  for (int64_t start : starts) {
    if (!ranges.empty() && start <= ranges.back().second)
      ranges.back().second = std::max(ranges.back().second, start + run);
    else
      ranges.push_back({start, start + run});
  }
  return ranges;
}

bool windlass::schedule::overlap(const std::vector<ByteRange> &a, const std::vector<ByteRange> &b) {
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    if (a[i].first < b[k].second && b[k].first < a[i].second)
      return true;
    (a[i].second <= b[k].second ? i : k) += 1;
  }
  return false;
}

void StreamOrder::beginCommand(int64_t newStream) {
  stream = newStream;
  clocks[stream][stream] = ++number;
}

bool StreamOrder::isAfter(int64_t other, int64_t otherNumber) const {
  if (otherNumber == 0 || other == stream)
    return true;
  const Clock &clock = clocks.at(stream);
  auto it = clock.find(other);
  return it != clock.end() && it->second >= otherNumber;
}

void StreamOrder::record(int64_t event, int64_t onStream) { events[event] = clocks[onStream]; }

std::string StreamOrder::wait(int64_t event, int64_t onStream) {
  auto it = events.find(event);
  if (it == events.end())
    return "waits for event " + std::to_string(event) + ", which nothing has recorded";
  Clock &clock = clocks[onStream];
  for (auto [other, reached] : it->second)
    clock[other] = std::max(clock[other], reached);
  return {};
}

void MemoryTimeline::Region::setReader(int64_t stream, int64_t number) {
  auto it = std::find_if(readers.begin(), readers.end(), [&](const auto &entry) { return entry.first >= stream; });
  if (it != readers.end() && it->first == stream)
    it->second = number;
  else
    readers.insert(it, {stream, number});
}

bool MemoryTimeline::Region::isLike(const Region &other) const {
  return owner == other.owner && writer == other.writer && written == other.written && readers == other.readers;
}

MemoryTimeline::Regions::iterator MemoryTimeline::join(Regions::iterator it) {
  if (it == regions.end() || it == regions.begin())
    return it;
  auto before = std::prev(it);
  if (before->second.end != it->first || !before->second.isLike(it->second))
    return it;
  before->second.end = it->second.end;
  regions.erase(it);
  return before;
}

MemoryTimeline::Regions::iterator MemoryTimeline::find(int64_t position, Regions::iterator hint) {
  // The runs of a strided window are close to one another.
  constexpr int kSteps = 4;
  for (int step = 0; step < kSteps && hint != regions.end(); ++step, ++hint)
    if (hint->second.end > position)
      return hint;
  auto it = regions.upper_bound(position);
  if (it != regions.begin() && std::prev(it)->second.end > position)
    --it;
  return it;
}

MemoryTimeline::Regions::iterator MemoryTimeline::cut(const ByteRange &range, Regions::iterator hint) {
  auto splitAt = [&](Regions::iterator it, int64_t position) {
    Region tail = it->second;
    it->second.end = position;
    return regions.emplace_hint(std::next(it), position, std::move(tail));
  };
  auto it = find(range.first, hint);
  if (it != regions.end() && it->first < range.first)
    it = splitAt(it, range.first);
  auto first = regions.end();
  for (int64_t position = range.first; position < range.second;) {
    if (it == regions.end() || it->first > position) {
      Region empty;
      empty.end = it == regions.end() ? range.second : std::min(range.second, it->first);
      it = regions.emplace_hint(it, position, empty);
    } else if (it->second.end > range.second) {
      splitAt(it, range.second);
    }
    if (first == regions.end())
      first = it;
    position = it->second.end;
    ++it;
  }
  return first == regions.end() ? it : first;
}

void MemoryTimeline::define(const ByteRange &range, int64_t owner) {
  if (range.first >= range.second)
    return;
  auto it = cut(range);
  while (it != regions.end() && it->first < range.second)
    it = regions.erase(it);
  Region region;
  region.end = range.second;
  region.owner = owner;
  regions.emplace(range.first, region);
}

void MemoryTimeline::forget(const ByteRange &range) {
  for (auto it = cut(range); it != regions.end() && it->first < range.second; ++it)
    it->second.owner = kNothing;
}

void MemoryTimeline::adoptPadding(const ByteRange &range, int64_t owner, int64_t alignment) {
  auto it = cut(range);
  while (it != regions.end() && it->first < range.second) {
    auto gap = it;
    while (it != regions.end() && it->first < range.second && it->second.owner != owner)
      ++it;
    int64_t end = it == regions.end() ? range.second : std::min(range.second, it->first);
    if (gap != it && gap->first > range.first && end < range.second && end - gap->first < alignment)
      for (; gap != it; ++gap)
        gap->second.owner = owner;
    if (it != regions.end() && it->first < range.second)
      ++it;
  }
}

std::string MemoryTimeline::read(const std::vector<ByteRange> &ranges, int64_t owner) {
  // Where one command reads all parts of a row, they are one region again afterwards.
  auto it = regions.end();
  for (const ByteRange &range : ranges) {
    for (it = cut(range, it); it != regions.end() && it->first < range.second; it = std::next(join(it))) {
      Region &region = it->second;
      if (region.owner == kNothing)
        return "reads byte " + std::to_string(it->first) + " before it is written";
      if (region.owner != owner)
        return "reads byte " + std::to_string(it->first) + " of value " + std::to_string(owner) + " after value " +
               std::to_string(region.owner) + " overwrote it";
      if (!order->isAfter(region.writer, region.written))
        return "reads byte " + std::to_string(it->first) + " without waiting for its write on stream " +
               std::to_string(region.writer);
      region.setReader(order->getStream(), order->getNumber());
    }
    it = join(it);
  }
  return {};
}

std::string MemoryTimeline::write(const std::vector<ByteRange> &ranges, int64_t owner) {
  auto it = regions.end();
  for (const ByteRange &range : ranges) {
    if (range.first >= range.second)
      continue;
    auto first = it = cut(range, it);
    for (; it != regions.end() && it->first < range.second; ++it) {
      Region &region = it->second;
      if (!order->isAfter(region.writer, region.written))
        return "writes byte " + std::to_string(it->first) + " without waiting for its write on stream " +
               std::to_string(region.writer);
      for (auto [reader, read] : region.readers)
        if (!order->isAfter(reader, read))
          return "writes byte " + std::to_string(it->first) + " without waiting for its reader on stream " +
                 std::to_string(reader);
    }
    // One region for all of it.
    regions.erase(std::next(first), it);
    first->second = {range.second, owner, order->getStream(), order->getNumber(), {}};
    join(first);
    it = join(it);
  }
  return {};
}
