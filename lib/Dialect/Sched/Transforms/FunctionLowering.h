// Turns one function of L4 into commands.
#ifndef WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_FUNCTIONLOWERING_H
#define WINDLASS_LIB_DIALECT_SCHED_TRANSFORMS_FUNCTIONLOWERING_H

#include "ProgramLowering.h"

#include <map>

namespace windlass::sched {

/// Returns the arity of a launch with the operands and results of `op`, and without terms.
inline KernelArity getArity(mlir::Operation *op) { return {op->getNumOperands(), op->getNumResults(), 0}; }

class FunctionLowering {
public:
  FunctionLowering(ProgramLowering &program, mlir::func::FuncOp function) : program(program), function(function) {}

  /// Lowers the body. `arguments` are the views of the function's arguments; `results` receives those of its results.
  /// Operations in `skipped` have been lowered elsewhere.
  mlir::LogicalResult run(llvm::ArrayRef<View> arguments, llvm::SmallVectorImpl<View> &results,
                          const llvm::DenseSet<mlir::Operation *> &skipped = {});

  std::vector<Command> commands;

private:
  /// The way in which a result changes its buffer: overwrites it, adds to it from the second micro-batch on, or adds to
  /// it.
  enum class Mode { Overwrite, AddAfterFirst, Add };

  /// The place that a result is written to.
  struct Destination {
    View view;
    Mode mode = Mode::Overwrite;
    /// The store, add_to or assembling op that determines the place.
    mlir::Operation *consumer = nullptr;
  };

  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerView(mlir::Operation *op);
  mlir::LogicalResult lowerLoad(LoadOp op);
  mlir::LogicalResult lowerStore(StoreOp op);
  mlir::LogicalResult lowerAddTo(AddToOp op);
  mlir::LogicalResult lowerConstant(train::ConstantOp op);
  mlir::LogicalResult lowerConcat(train::ConcatOp op);
  mlir::LogicalResult lowerPad(train::PadOp op);
  mlir::LogicalResult lowerAccumulate(train::AccumulateOp op);
  mlir::LogicalResult lowerMap(MapOp op);
  mlir::LogicalResult lowerMatmul(train::MatmulOp op);
  mlir::LogicalResult lowerReduce(train::ReduceOp op);
  /// Lowers an operator to one kernel with the same operands, results and attributes.
  mlir::LogicalResult lowerKernel(mlir::Operation *op, const KernelRow &row);
  mlir::LogicalResult lowerAllReduce(AllReduceOp op);
  /// Lowers an all_gather, reduce_scatter, all_to_all, permute or own_part.
  mlir::LogicalResult lowerExchange(mlir::Operation *op);
  mlir::LogicalResult lowerPermute(PermuteOp op);
  /// Lowers a gather_rows or scatter_rows.
  mlir::LogicalResult lowerRows(mlir::Operation *op);
  mlir::LogicalResult lowerMove(MoveOp op);
  /// Returns the stream on which a copy runs, of those of its kind.
  unsigned getStreamOfMove(MoveOp op, StreamKind kind);
  void pushCollective(mlir::Operation *op, CollectiveKind kind, train::ReductionKind reduction, mlir::ArrayAttr axes,
                      llvm::ArrayRef<View> outs, llvm::ArrayRef<View> ins);

  /// Emits a collective that brings a result for each of `ins`; `getBlocks` gives the blocks of a result that members
  /// send.
  void receive(mlir::Operation *op, CollectiveKind kind, mlir::ArrayAttr axes, llvm::ArrayRef<View> ins,
               llvm::function_ref<View(const View &)> getBlocks);

  /// Returns the place that the only use of `value` determines; none where it determines none or the value cannot be
  /// written there.
  std::optional<Destination> findDestination(mlir::Value value, mlir::Operation *producer);
  bool addsMatrices(mlir::Operation *op, const KernelRow &row);
  /// Makes the views to write the results to. A destination that adds is used only where `canAccumulate`; otherwise the
  /// value gets memory of its own and `finish` adds it. Sets the outputs and the mode of `command`.
  void makeOutputs(mlir::Operation *op, bool canAccumulate, Command &command);
  /// Returns the operand that the kernel of `op` changes into a result, where a move has brought it for `op` only; null
  /// elsewhere.
  static mlir::Value findMovedHere(mlir::Operation *op, unsigned result);
  View allocate(mlir::RankedTensorType type);
  /// Allocates memory for a result in the order of dims that suits its users.
  View allocateFor(mlir::Value value);
  /// The storage that `op` (a concat, pad, accumulate or all_reduce) assembles from parts, made when the first part is:
  /// that of `producer`.
  Destination getAssembled(mlir::Operation *op, mlir::Operation *producer);
  View getPart(mlir::Operation *op, unsigned index, mlir::Operation *producer);
  /// Emits the additions that the kernel of `op` could not make itself.
  void finish(mlir::Operation *op);

  void push(Command command, mlir::Operation *op);
  /// Adds a copy between memories, or a command that the host runs, with the events that order its stream among others.
  void pushBeside(Command command, mlir::Operation *op);
  /// Makes the stream of `command` wait for the compute stream's last command on the storages of `command`.
  void waitForCompute(const Command &command, mlir::Operation *op);
  /// Transient tensors that moves have begun to bring elsewhere, in order. Those from `first` on still hold memory.
  struct Transit {
    struct Tensor {
      unsigned storage;
      /// The event behind which a stream beside the compute stream has made it; none where the compute stream has.
      std::optional<int64_t> made;
    };
    llvm::SmallVector<Tensor> tensors;
    size_t first = 0;
    int64_t bytes = 0;
    /// The most bytes that go together.
    int64_t largest = 0;
  };
  /// Whether the function brings states back to the host that the device has updated.
  bool returnsStates = false;
  /// Says how many bytes go together: those of the largest tensor that the function moves, and what one operator's
  /// results bring to the disk, or from the device that updates them to the host, each of which waits for the operator.
  void measureMoves(mlir::Block &body);
  /// Makes room for a tensor beside those that hold memory, so that all take at most twice what goes together: calls
  /// `release` with each that has to be no longer used.
  void makeRoom(Transit &transit, int64_t bytes, llvm::function_ref<void(const Transit::Tensor &)> release);
  void add(Transit &transit, unsigned storage, std::optional<int64_t> made = std::nullopt);
  /// Makes the compute stream wait for the event, if something is in use until then.
  void waitIfPending(int64_t event, mlir::Operation *op);
  /// Makes the streams that write to the host's memory wait until the storage is no longer used.
  void releaseOnHost(unsigned storage, mlir::Operation *op);
  void pushEvent(Command::Kind kind, unsigned stream, int64_t event, mlir::Operation *op);
  void pushCopy(mlir::Operation *op, const View &out, const View &in);
  Command makeFill(mlir::Operation *op, const View &out, double value);
  void pushFill(mlir::Operation *op, const View &out, double value);
  /// Sets `out` to 0 at the start of the function, so that this stands in no instance of a repeated block.
  void fillAtStart(mlir::Operation *op, const View &out);
  void pushAdd(mlir::Operation *op, const View &out, const View &in);
  /// Makes the compute stream wait until collectives that work on the storages of `command` are done.
  void waitFor(const Command &command);
  /// Makes the compute stream wait for the collective that has written a gradient in place, where it would be added:
  /// what that collective has sent is not in use any more from there on.
  void waitForDelivery(AddToOp op, unsigned storage);
  void waitForAll();
  void pushWait(int64_t event, mlir::Location loc, mlir::Attribute repeat);

  View makeDense(mlir::Operation *op, const View &view);

  /// Whether something reads or writes the resource after `from` (excluded) and before `to` (excluded), or reads what
  /// a load gave before, after `from`.
  bool isTouchedBetween(mlir::FlatSymbolRefAttr resource, mlir::Operation *from, mlir::Operation *to);
  bool isLoaded(unsigned storage);
  bool isWrittenWhileRead(LoadOp load);

  ProgramLowering &program;
  mlir::func::FuncOp function;
  llvm::DenseMap<mlir::Value, View> views;
  /// The add_to ops whose addition the producer performs.
  llvm::DenseSet<mlir::Operation *> delivered;
  llvm::SmallVector<std::pair<mlir::Value, Destination>, 2> additions;
  llvm::DenseMap<mlir::Operation *, Destination> assembled;
  /// The sums whose first term has been written.
  llvm::DenseSet<mlir::Operation *> begun;
  /// An event behind which a stream beside the compute stream has ended its work on a storage.
  struct Pending {
    int64_t event;
    unsigned stream;
  };
  /// By storage: the last of these events, which the compute stream has not waited for.
  llvm::MapVector<unsigned, Pending> pending;
  /// By storage: the number of commands behind the last one of the compute stream that works on it.
  llvm::DenseMap<unsigned, size_t> touched;
  /// By memory: the number of commands behind the compute stream's last one that may have freed something there, which
  /// may be a wait: what it has waited for is free.
  std::map<plan::MemoryKind, size_t> lastComputed;
  /// The last record on the compute stream for a copy, the number of commands behind it, and the streams that have
  /// waited for it.
  std::optional<std::pair<int64_t, size_t>> computed;
  llvm::SmallDenseSet<unsigned> waited;
  /// Whether the function has a command on the host's stream.
  bool hasHostBegun = false;
  /// The tensors on the host that have been copied there from the device, and those that are copied back or to the
  /// disk; those of the device that are copied from it.
  Transit arriving, leaving, departing;
  /// Where the operator that is lowered runs, and its results are.
  plan::MemoryKind memory = plan::MemoryKind::device;
  llvm::DenseMap<mlir::Attribute, mlir::SmallVector<mlir::Operation *>> resourceUsers;
};

} // namespace windlass::sched

#endif
