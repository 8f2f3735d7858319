#include "windlass/Dialect/Sched/IR/Place.h"

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
  SmallVector<int64_t> strides;
  int64_t offset, last = 0;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return {place.arena, {0, std::numeric_limits<int64_t>::max()}};
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
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

SlotsOp sched::getSlots(ProgramOp program, int64_t chunk) {
  for (SlotsOp slots : program.getOps<SlotsOp>())
    if (static_cast<int64_t>(slots.getChunk()) == chunk)
      return slots;
  return nullptr;
}

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

/// Whether two buffers whose extents overlap share a byte.
static bool sharesByte(Value a, Value b) {
  auto rangesOf = [](Value buffer) {
    SmallVector<int64_t> strides;
    int64_t offset;
    bool isExact = true;
    auto type = cast<MemRefType>(buffer.getType());
    if (failed(type.getStridesAndOffset(strides, offset)))
      return std::vector<schedule::ByteRange>{{0, std::numeric_limits<int64_t>::max()}};
    return schedule::getByteRanges(getPlace(buffer).offset, getElementBytes(type.getElementType()),
                                   {type.getShape().begin(), type.getShape().end()}, {strides.begin(), strides.end()},
                                   isExact);
  };
  return schedule::overlap(rangesOf(a), rangesOf(b));
}

bool sched::overlap(Value a, Value b) { return getExtent(a).overlaps(getExtent(b)) && sharesByte(a, b); }

bool sched::overlap(ValueRange a, ValueRange b) {
  SmallVector<Extent> others = llvm::map_to_vector(b, [](Value y) { return getExtent(y); });
  return llvm::any_of(a, [&](Value x) {
    Extent extent = getExtent(x);
    return llvm::any_of(llvm::zip_equal(b, others), [&](auto each) {
      auto &[y, other] = each;
      return extent.overlaps(other) && sharesByte(x, y);
    });
  });
}
