// A program while it is lowered to commands: storages without offsets, and the commands of each function.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_PROGRAMLOWERING_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_PROGRAMLOWERING_H

#include "Views.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Schedule/ArenaPacker.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

namespace windlass::sched {

/// Memory that is placed as one piece: a resource, the gradients of a bucket, or a transient value.
struct Storage {
  int64_t bytes = 0;
  plan::MemoryKind memory = plan::MemoryKind::device;
  bool isTransient = true;
  /// Whether forward or backward may change what it holds while others still read it.
  bool isMutableInStep = false;
  /// The chunk each of whose slots has such a storage; none: there is one for all micro-batches.
  std::optional<int64_t> chunk;
  /// Whether it is in the slots for what backwards hand to weight gradients.
  bool isHanded = false;
  /// The bytes from the start of the arena or slot; set by packing.
  int64_t offset = 0;
};

/// Slots; their place and size are set by packing.
struct SlotArea {
  int64_t count = 1, offset = 0, bytes = 0;
};

/// The slots of a chunk, and those for what its backwards hand to its weight gradients, which have no bytes where that
/// is in the others.
struct Slots {
  SlotArea own, handed;
};

/// A queue of commands before it is an operation.
struct Stream {
  std::string name;
  StreamKind kind = StreamKind::compute;
};

/// The number of the compute stream among the streams of a program.
constexpr unsigned kComputeStream = 0;

/// A command before it is an operation.
struct Command {
  enum class Kind { Launch, Map, Collective, Record, Wait };

  Command(Kind kind, mlir::Location loc) : kind(kind), loc(loc) {}
  Command(const Command &) = default;
  Command &operator=(const Command &) = default;
  // A vector that grows would copy what may throw, as moves of LLVM's vectors may by their declaration.
  Command(Command &&) noexcept = default;
  Command &operator=(Command &&) noexcept = default;

  /// Which runs of the function that holds it have the command.
  enum class Runs {
    Always,
    InLast,  ///< of @backward: the last of a step, where it belongs to the reduction of a bucket
    InReduce ///< of @reduce, behind the last backward: the same events order both, so one list holds both
  };

  Kind kind;
  mlir::Location loc;
  Runs runs = Runs::Always;
  /// The number of its stream among the program's.
  unsigned stream = kComputeStream;
  // Most commands are events or have few operands.
  llvm::SmallVector<View, 2> ins;
  llvm::SmallVector<View, 1> outs;
  /// Launch.
  KernelKind kernel = KernelKind::copy;
  llvm::SmallVector<mlir::NamedAttribute, 1> settings;
  bool accumulates = false, accumulatesAfterFirst = false;
  /// Map.
  mlir::FlatSymbolRefAttr function;
  /// Collective.
  CollectiveKind collective = CollectiveKind::all_reduce;
  train::ReductionKind reduction = train::ReductionKind::sum;
  unsigned communicator = 0;
  mlir::DenseI64ArrayAttr destinations;
  mlir::IntegerAttr experts;
  /// Record, Wait.
  int64_t event = 0;
  /// Wait: the storages that are in use until then.
  llvm::SmallVector<unsigned, 2> keepsAlive;
  /// `plan.repeat` and `train.id` of the operation that it came from.
  mlir::Attribute repeat, id;
  /// The operator of the model under which timelines show it; null for Record and Wait.
  mlir::StringAttr owner;
};

/// The axes and positions over which ranks communicate, and the number of the stream on which their collectives run.
struct Communicator {
  mlir::ArrayAttr axes;
  mlir::DenseI64ArrayAttr positions; ///< null for the program's own
  unsigned stream = 0;
};

/// The resources that one collective reduces in place.
struct Bucket {
  AllReduceOp op;
  llvm::SmallVector<ResourceOp> resources;
  int64_t chunk = 0;
  unsigned storage = 0;
  unsigned communicator = 0;
};

class ProgramLowering {
public:
  /// Makes the storages of all resources; the functions @reduce decide which stand together. `slots` are those of the
  /// chunks that have any.
  ProgramLowering(ProgramOp program, llvm::MapVector<int64_t, Slots> slots, bool hasOneMicroBatch);

  ProgramOp program;
  std::vector<Storage> storages;
  /// The commands of each function; those of @reduce are behind those of @backward.
  llvm::MapVector<mlir::func::FuncOp, std::vector<Command>> functions;
  llvm::SmallVector<Stream> streams;
  llvm::SmallVector<Communicator> communicators;
  llvm::SmallVector<Bucket> buckets;
  llvm::MapVector<int64_t, Slots> slots;
  /// Whether a step runs each function once, so that nothing is added to a resource.
  bool hasOneMicroBatch;
  int64_t events = 0;

  unsigned addTransient(int64_t bytes, plan::MemoryKind memory);
  /// Returns the number of the stream of this name and kind. It is created at its first use.
  unsigned getStream(StreamKind kind, llvm::StringRef name);
  /// Returns the number of the stream that has the name of its kind.
  unsigned getStream(StreamKind kind) { return getStream(kind, stringifyStreamKind(kind)); }
  /// Whether resources are on a disk.
  bool usesDisk() const { return hasDisk; }
  ResourceOp getResource(mlir::FlatSymbolRefAttr name) { return symbols.lookup<ResourceOp>(name.getValue()); }
  const mlir::SymbolTable &getSymbols() const { return symbols; }
  View getView(ResourceOp resource) const { return resourceViews.lookup(resource.getSymNameAttr()); }
  plan::MeshAttr getMesh() { return program.getMesh(); }
  /// Returns the index of the communicator over these axes and positions (null for the program's own). It is created
  /// at its first use, with its stream.
  unsigned getCommunicator(mlir::ArrayAttr axes, mlir::DenseI64ArrayAttr positions = {});
  /// Returns the scalar function that returns its argument of type `element`; it is created at its first use.
  mlir::FlatSymbolRefAttr getIdentityFunction(mlir::Type element);

  /// Lets outputs take the place of inputs whose last use is the command, where the kernel may run in place. Where
  /// several inputs qualify, the one that was written last is taken: if a product has written it, FuseEpilogues can
  /// make both commands one.
  void shareStorages();
  /// Merges the waits at the end of functions, and renumbers events: functions, and instances of a repeated block,
  /// reuse the same numbers.
  void numberEvents();
  /// Decides which storages are in slots, and which transients are kept from one function to another.
  void assignSlots();
  /// Gives every storage its offset; reports the arena.
  void placeStorages();
  /// Replaces the bodies of all functions by their commands.
  void emit();

private:
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::StringAttr, View> resourceViews;
  llvm::DenseMap<mlir::Type, mlir::FlatSymbolRefAttr> identityFunctions;
  /// The symbols of streams and communicators, by number, once `emit` has declared them.
  llvm::SmallVector<mlir::FlatSymbolRefAttr> streamNames, communicatorNames;
  /// By chunk, and whether they are for what is handed on, once `emit` has declared them.
  std::map<std::pair<int64_t, bool>, mlir::FlatSymbolRefAttr> slotsNames;
  /// The bytes of each arena.
  std::map<plan::MemoryKind, int64_t> arenaBytes;
  bool hasDisk = false;
  /// Those of the device's.
  int64_t permanentBytes = 0, liveBytes = 0, stashBytes = 0;
  mlir::DictionaryAttr peak;

  void collectBuckets(mlir::func::FuncOp reduce);
  /// Whether the storage has a place of its own in the arena for the whole run.
  bool isPermanent(const Storage &storage) const { return !storage.isTransient && !storage.chunk; }
  /// Returns the storages of resources, by kind, so that what the runtime walks (parameters, then state, then
  /// gradients) is adjacent, each once.
  llvm::SetVector<unsigned> listResources();
  /// Gives the storages of each chunk's slots their offsets, and the slots a place from `end` of the arena on.
  void placeSlots(llvm::ArrayRef<unsigned> resources, int64_t &end);
  /// Gives the stash of a chunk its offsets in slots whose other storages have theirs. `intervals` has all storages.
  void placeStash(int64_t chunk, llvm::ArrayRef<schedule::LiveInterval> intervals, Slots &its);
  /// Returns what the storages of an arena begin at multiples of.
  int64_t getAlignment(plan::MemoryKind memory) const;
  /// Places what lives for the whole run in the arena of a kind; returns where it ends.
  int64_t placePermanent(plan::MemoryKind memory, const llvm::SetVector<unsigned> &resources);
  /// Places the transients of an arena from `end` on, by the times of the timeline in which they are live.
  void placeTransients(plan::MemoryKind memory, int64_t end, llvm::ArrayRef<Command *> timeline);
  /// Returns the symbol of the arena or slots that a storage is in.
  mlir::FlatSymbolRefAttr getArenaName(unsigned storage) const;
  /// Returns the commands of all functions in the order of time in which their transients are live.
  std::vector<Command *> getTimeline();
  /// Declares the arena, slots, streams and communicators at the program's beginning.
  void emitArena();
  /// Writes the commands that are of @reduce, or those that are not.
  void emitFunction(mlir::func::FuncOp function, llvm::ArrayRef<Command> commands, bool isReduce);
};

} // namespace windlass::sched

#endif
