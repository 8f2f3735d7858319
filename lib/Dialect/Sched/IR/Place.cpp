#include "windlass/Dialect/Sched/IR/Place.h"

#include "windlass/Dialect/Sched/IR/Strides.h"
#include "windlass/Support/TensorBytes.h"

#include <limits>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

bool sched::operator<(const Place &a, const Place &b) {
  return a.arena == b.arena ? a.offset < b.offset : a.arena.getValue() < b.arena.getValue();
}

Place sched::getPlace(Value buffer) {
  auto op = buffer.getDefiningOp<BufferOp>();
  return {op.getArenaAttr().getAttr(), static_cast<int64_t>(op.getOffset())};
}

std::optional<Place> sched::getPlace(ResourceOp resource) {
  if (!resource.getArenaAttr() || !resource.getOffset())
    return std::nullopt;
  return Place{resource.getArenaAttr().getAttr(), static_cast<int64_t>(*resource.getOffset())};
}

Extent sched::getExtent(Value buffer) {
  Place place = getPlace(buffer);
  auto type = cast<MemRefType>(buffer.getType());
  auto strides = getStrides(type);
  if (!strides)
    return {place.arena, {0, std::numeric_limits<int64_t>::max()}};
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), *strides)) {
    if (size == 0)
      return {place.arena, {place.offset, place.offset}};
    last += (size - 1) * stride;
  }
  return {place.arena, {place.offset, place.offset + (last + 1) * getElementBytes(type.getElementType())}};
}

std::optional<Extent> sched::getExtent(ResourceOp resource) {
  std::optional<Place> place = getPlace(resource);
  if (!place)
    return std::nullopt;
  return Extent{place->arena, {place->offset, place->offset + getTensorBytes(resource.getTensorType())}};
}

ArenaOp sched::getArena(ProgramOp program, plan::MemoryKind kind) {
  for (ArenaOp arena : program.getOps<ArenaOp>())
    if (arena.getKind() == kind)
      return arena;
  return nullptr;
}

static SlotsOp findSlots(ProgramOp program, int64_t chunk, bool isHanded) {
  for (SlotsOp slots : program.getOps<SlotsOp>())
    if (static_cast<int64_t>(slots.getChunk()) == chunk && slots.getHanded() == isHanded)
      return slots;
  return nullptr;
}

SlotsOp sched::getSlots(ProgramOp program, int64_t chunk) { return findSlots(program, chunk, /*isHanded=*/false); }

SlotsOp sched::getHandedSlots(ProgramOp program, int64_t chunk) { return findSlots(program, chunk, /*isHanded=*/true); }

ArenaTable::ArenaTable(ProgramOp program) : arenas(program.getOps<ArenaOp>()), slots(program.getOps<SlotsOp>()) {}

std::optional<ArenaTable::Area> ArenaTable::find(StringAttr name) const {
  for (size_t number = 0; number < arenas.size(); ++number)
    if (ArenaOp arena = arenas[number]; arena.getSymNameAttr() == name)
      return Area{static_cast<int64_t>(number), 0, nullptr};
  for (SlotsOp each : slots)
    if (each.getSymNameAttr() == name)
      if (std::optional<Area> around = find(each.getArenaAttr().getAttr()))
        return Area{around->arena, static_cast<int64_t>(each.getOffset()), each};
  return std::nullopt;
}

bool sched::isSame(Value a, Value b) { return a.getType() == b.getType() && getPlace(a) == getPlace(b); }

/// Returns the bytes of a buffer, counted from its arena's first byte; where they consist of too many runs, all bytes
/// from the first to the last.
static std::vector<schedule::ByteRange> getRanges(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  auto strides = getStrides(type);
  if (!strides)
    return {{0, std::numeric_limits<int64_t>::max()}};
  bool isExact = true;
  return schedule::getByteRanges(getPlace(buffer).offset, getElementBytes(type.getElementType()),
                                 {type.getShape().begin(), type.getShape().end()}, {strides->begin(), strides->end()},
                                 isExact);
}

Buffers::Buffers(ValueRange values) {
  for (Value value : values)
    each.push_back({value, getExtent(value)});
}

bool Buffers::overlap(const Buffers &others) const {
  return llvm::any_of(each, [&](const Each &a) {
    return llvm::any_of(others.each, [&](const Each &b) {
      return a.extent.overlaps(b.extent) && schedule::overlap(getRanges(a.value), getRanges(b.value));
    });
  });
}
