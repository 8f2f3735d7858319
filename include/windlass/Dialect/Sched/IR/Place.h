// Where the bytes of buffers and resources are.
#ifndef WINDLASS_DIALECT_SCHED_IR_PLACE_H
#define WINDLASS_DIALECT_SCHED_IR_PLACE_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/MemoryTimeline.h"

#include "llvm/ADT/DenseMapInfo.h"

#include <optional>

namespace windlass::sched {

/// Every storage, every part of a bucket and every slot begins at a multiple of this (bytes).
constexpr int64_t kAlignment = 64;

/// In the arenas of the disk and the host, storages begin at multiples of this (bytes) where a program has both: what
/// is read from a disk directly begins at a page on either side.
constexpr int64_t kDiskAlignment = 4096;

/// The first byte of a buffer or resource. An offset alone identifies no byte: equal offsets into two arenas, or into
/// the slots of two chunks, are different bytes.
struct Place {
  /// The name of the arena or of the slots.
  mlir::StringAttr arena;
  /// The offset in bytes from the arena's first byte.
  int64_t offset = 0;

  friend bool operator==(const Place &a, const Place &b) { return a.arena == b.arena && a.offset == b.offset; }
  friend bool operator!=(const Place &a, const Place &b) { return !(a == b); }
  /// Orders by the arena's name, then by offset: the same in every run.
  friend bool operator<(const Place &a, const Place &b);
};

/// The bytes of a buffer or resource in one arena, from the first to behind the last.
struct Extent {
  mlir::StringAttr arena;
  schedule::ByteRange bytes;

  /// Whether the two share a byte.
  bool overlaps(const Extent &other) const {
    return arena == other.arena && bytes.first < other.bytes.second && other.bytes.first < bytes.second;
  }
};

/// Returns the first byte of the result of a `sched.buffer`, or the bytes that it spans.
Place getPlace(mlir::Value buffer);
Extent getExtent(mlir::Value buffer);

/// Returns the same for a resource; none before it has been given a place.
std::optional<Place> getPlace(ResourceOp resource);
std::optional<Extent> getExtent(ResourceOp resource);

/// Returns the arena of a kind; null where the program has none of it, such as before it has buffers.
ArenaOp getArena(ProgramOp program, plan::MemoryKind kind);

/// Returns the arena of kind `device`, whose bytes count against the memory of a device.
inline ArenaOp getDeviceArena(ProgramOp program) { return getArena(program, plan::MemoryKind::device); }

/// Returns the slots of a chunk; null where its values share the arena with all others.
SlotsOp getSlots(ProgramOp program, int64_t chunk);

/// Returns a chunk's slots for what backwards hand to weight gradients; null where that is in its other slots.
SlotsOp getHandedSlots(ProgramOp program, int64_t chunk);

/// Numbers the arenas of a program, in the order of their declaration, by which emitted programs name them.
class ArenaTable {
public:
  /// An arena as emitted programs name it, and where an area begins in it.
  struct Area {
    int64_t arena = 0;
    /// The offset of the area's first byte: 0 for a whole arena, that of slot 0 for slots.
    int64_t offset = 0;
    /// The slots; null for a whole arena.
    SlotsOp slots;
  };

  explicit ArenaTable(ProgramOp program);
  llvm::ArrayRef<ArenaOp> getArenas() const { return arenas; }
  /// Returns the area of the arena or slots called `name`; none where the program has neither.
  std::optional<Area> find(mlir::StringAttr name) const;

private:
  llvm::SmallVector<ArenaOp> arenas;
  llvm::SmallVector<SlotsOp> slots;
};

/// Whether two buffers are the same elements in the same order.
bool isSame(mlir::Value a, mlir::Value b);

/// Buffers with their extents, which are compared with others. The buffers outlive this object.
class Buffers {
public:
  explicit Buffers(mlir::ValueRange values);
  /// Whether one of these buffers shares a byte with one of the others.
  bool overlap(const Buffers &others) const;

private:
  struct Each {
    mlir::Value value;
    Extent extent;
  };
  llvm::SmallVector<Each, 4> each;
};

/// Whether one of the buffers of `a` shares a byte with one of `b`.
inline bool overlap(mlir::ValueRange a, mlir::ValueRange b) { return Buffers(a).overlap(Buffers(b)); }

} // namespace windlass::sched

namespace llvm {
template <> struct DenseMapInfo<windlass::sched::Place> {
  using Arena = DenseMapInfo<mlir::StringAttr>;
  static windlass::sched::Place getEmptyKey() { return {Arena::getEmptyKey(), 0}; }
  static windlass::sched::Place getTombstoneKey() { return {Arena::getTombstoneKey(), 0}; }
  static unsigned getHashValue(const windlass::sched::Place &place) {
    return detail::combineHashValue(Arena::getHashValue(place.arena),
                                    DenseMapInfo<int64_t>::getHashValue(place.offset));
  }
  static bool isEqual(const windlass::sched::Place &a, const windlass::sched::Place &b) { return a == b; }
};
} // namespace llvm

#endif
