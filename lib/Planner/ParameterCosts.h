// The cost of a parameter's three copies: bytes from step to step, and the time of its collectives and its update.
#ifndef WINDLASS_LIB_PLANNER_PARAMETERCOSTS_H
#define WINDLASS_LIB_PLANNER_PARAMETERCOSTS_H

#include "Reshards.h"
#include "StepWindows.h"

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

#include <map>
#include <optional>

namespace windlass::planner {

/// The layouts of a parameter's copies, and the layout in which operators find it.
struct ParameterLabel {
  plan::LayoutAttr read;
  plan::ParameterLayouts copies;
  /// The memories of the copies, and whether a state in another memory comes to the device for its update.
  plan::CopyMemories memories = {};

  /// Whether data-parallel ranks shard the compute copy, in whichever memory it is.
  bool shardsCompute() const { return isShard(copies.compute); }
  bool shardsGradient() const { return isShard(copies.gradient); }
  bool shardsMaster() const { return isShard(copies.master); }
  /// Whether ranks accumulate just the gradient that the update reads, but for sums that may be left over axes.
  bool accumulatesAsRead(plan::MeshAttr mesh) const {
    return plan::isReadAsAccumulated(plan::dropUnreduced(copies.gradient), copies.master, mesh);
  }
  /// Whether ranks keep just the part of the weight that they update.
  bool keepsWhatItUpdates(plan::MeshAttr mesh) const {
    return plan::haveSameParts(copies.compute, copies.master, mesh);
  }

private:
  bool isShard(plan::LayoutAttr copy) const {
    return copy.getDims() != read.getDims() || copy.getFlat() != read.getFlat();
  }
};

/// The traits on which the costs and the bytes of a parameter depend besides its layouts.
struct ParameterTraits {
  /// The type of the master copy, the optimizer's state and the accumulated gradient.
  mlir::RankedTensorType type;
  /// The type in which the gradient travels between ranks and to the host.
  mlir::RankedTensorType sentType;
  /// Whether the update takes the gradient in that type; else it is converted before.
  bool updatesFromSent = false;
  /// The type in which operators find the parameter.
  mlir::RankedTensorType computeType;
  bool isTrainable = true;
  /// The number of tensors of the optimizer's state that have its type.
  int64_t states = 0;
  /// The bytes of other optimizer state, which is whole on every rank.
  int64_t wholeStateBytes = 0;
  /// Whether one of the states is a moving average, which is moved by a command of its own.
  bool hasAverage = false;
  /// Whether squares of a gradient that the host holds are summed beside the backward pass (`sched-square-early`).
  bool squaresEarly = false;
  /// Whether the update needs no gradient but the parameter's own, so that the host begins it beside the backward pass
  /// (`sched-update-early`).
  bool updatesEarly = false;
  /// The number of times that the forward and the backward pass of one micro-batch read it, each with a gather where it
  /// is sharded.
  int64_t forwardReads = 1, backwardReads = 1;
};

/// The number of times that a rank repeats the work of a step.
struct StepCounts {
  /// The gradient accumulation steps m: micro-batches that a rank runs one after another.
  int64_t accumulationSteps = 1;
  /// The bytes of gradients or weights on a rank that one collective takes together which happens once in a step.
  int64_t bucketBytes = 0;
  /// The most bytes that any collective of parameters or gradients takes together.
  int64_t mostBytes = 0;
  /// The bytes that one collective takes together which happens in each micro-batch.
  int64_t unitBytes = 0;
};

/// The time of a step's update of a parameter and of the collectives of its copies, in nanoseconds.
struct ParameterTimes {
  /// The time beside which nothing else runs.
  int64_t exposed = 0;
  /// The time that communicators may carry beside the operators of a window.
  std::map<WindowKind, int64_t> collectives;
  /// The time of copies to the host, of gradients and updated states, and of what is computed there, which run beside
  /// operators too.
  std::map<WindowKind, int64_t> copies, computed;
  /// The time of copies to the device, of weights and states, which do so as well.
  std::map<WindowKind, int64_t> fetches;
  /// The time for which all of these together have the host's memory to themselves.
  std::map<WindowKind, int64_t> hostMemory;
};

/// Lower bounds of what the update of a parameter takes besides the device: what the host computes, reads and writes of
/// its disk, copies in either direction, and the time for which all of it has the host's memory to itself.
struct LeastHostTimes {
  int64_t computed = 0, disk = 0, toHost = 0, toDevice = 0, memory = 0;
};

/// Lower bounds of the same, in nanoseconds of a step, whatever collectives are put together.
struct LeastParameterTimes {
  /// The reduction of the last micro-batch's gradient, and those of the ones before.
  int64_t lastReduction = 0, reductionsBefore = 0;
  /// The gathers of the forward and backward passes.
  int64_t gathers = 0;
  /// The sum of the gradient's squares, and the rest of the update, on the device.
  int64_t squares = 0, update = 0;
  /// The copies of the weight from the host, and those of gradients to the host for each micro-batch.
  int64_t fetches = 0, gradientCopies = 0;
  /// The additions of gradients on the host.
  int64_t hostAdditions = 0;
  /// The time for which these copies and additions have the host's memory to themselves.
  int64_t hostMemory = 0;
  /// The update's work behind the backward pass, or maybe beside it.
  LeastHostTimes late, early;
  /// The gather behind such an update, and behind others.
  int64_t gatherEarly = 0, updateGather = 0;
};

/// The costs and bytes of one parameter on a mesh, by its label. Times are those of collectives and of the update.
class ParameterCosts {
public:
  /// `reshards` and `costs` outlive this object.
  ParameterCosts(const ParameterTraits &traits, Reshards &reshards, const CostModel &costs, StepCounts counts)
      : traits(traits), reshards(reshards), costs(costs), counts(counts), mesh(reshards.getMesh()) {}

  /// Returns the bytes of a rank's copies from step to step, by the kind of their memory: compute copy, accumulated
  /// gradient, master copy with the optimizer's state. Copies of one layout and one type are one.
  std::map<plan::MemoryKind, int64_t> getCopyBytes(const ParameterLabel &label) const;

  /// Returns the bytes of the whole weight that a rank gathers from a sharded compute copy, or copies from the host, to
  /// read it; 0 where it reads the copy that it keeps.
  int64_t getGatheredBytes(const ParameterLabel &label) const;

  /// Returns the time of a step's collectives among the data-parallel ranks (Rajbhandari et al.: ZeRO, 2020, section 7)
  /// and of the update, which reads gradient, weight and state, writes the latter two, and writes the weight in the
  /// compute type too where that differs.
  ParameterTimes getTimes(const ParameterLabel &label) const;
  LeastParameterTimes getLeastTimes(const ParameterLabel &label) const;

  /// Returns the nanoseconds of a step in which each micro-batch brings `count` gradients of the layout `made` to the
  /// copy in which the label accumulates them; search::kForbidden where no reshard leads there.
  int64_t getGradientCost(int64_t count, plan::LayoutAttr made, const ParameterLabel &label) const;

  /// Returns the consecutive devices that the groups of data-parallel ranks span.
  int64_t getSpan() const { return plan::getGroup(mesh, mesh.getDataAxes()).getSpan(); }

private:
  int64_t getBytes(plan::LayoutAttr layout, mlir::RankedTensorType type) const;
  /// Returns the type of the gradient between the backward pass and the update. Where it is of one micro-batch, that is
  /// the type in which it travels.
  mlir::RankedTensorType getGradientType(const ParameterLabel &label) const;
  /// Whether the weight that operators read is its own master copy.
  bool isOwnMaster(const ParameterLabel &label) const;
  /// Returns the bytes on a rank of the optimizer's state and of the master copy that is with it.
  int64_t getStateBytes(const ParameterLabel &label) const;
  /// Returns the time of a copy between the host and the device; 0 for no bytes, or where nothing is known about their
  /// link.
  int64_t getCopyPicoseconds(int64_t bytes) const;
  /// Returns the time in which an update reads and writes the state on the disk; 0 where it is not there.
  int64_t getDiskPicoseconds(const ParameterLabel &label) const;
  /// Whether the gradient is accumulated on the host. Labels do not say over which axes operators leave partial sums;
  /// those over axes of the model are taken for none.
  bool addsOnHost(const ParameterLabel &label) const;
  /// Whether each pass copies the weight from the host.
  bool isFetched(const ParameterLabel &label) const;
  OperatorWork getAdditionWork(plan::LayoutAttr gradient) const;
  /// Returns the work of converting a gradient between the types in which it is added up and in which it travels.
  OperatorWork getConversionWork(plan::LayoutAttr gradient) const;
  /// Returns the time of a step in which the device does so, each as a command of its own.
  int64_t getConversionPicoseconds(const ParameterLabel &label) const;
  OperatorWork getSquaresWork(plan::LayoutAttr gradient, const ParameterLabel &label) const;
  OperatorWork getUpdateWork(const ParameterLabel &label) const;
  /// Returns the type in which the update finds the gradient.
  mlir::RankedTensorType getReadGradientType(const ParameterLabel &label) const;
  /// Returns the work of moving its average; none where it has none.
  std::optional<OperatorWork> getAverageWork(plan::LayoutAttr master) const;
  /// What an update has to do beside the device: picoseconds of each stream, and the bytes that it reads and writes in
  /// the host's memory.
  struct UpdateWork {
    int64_t toDevice = 0, toHost = 0, onHost = 0;
    double bytes = 0;
  };
  void addBesideUpdate(const UpdateWork &work, WindowKind window, ParameterTimes &times) const;
  /// Adds the time of the update, and of the copies between memories that it needs.
  void addUpdate(const ParameterLabel &label, ParameterTimes &times) const;
  void addUpdateOfHost(const ParameterLabel &label, ParameterTimes &times) const;
  /// Returns the work of the update with that of moving its average.
  OperatorWork getStateUpdateWork(const ParameterLabel &label) const;
  /// Returns lower bounds of what the update takes besides the device, of a label whose state is in another memory.
  LeastHostTimes getLeastHostTimes(const ParameterLabel &label) const;
  /// The least nanoseconds of a copy between the host and the device, and those for which it has the host's memory to
  /// itself.
  struct LeastCopy {
    int64_t time = 0, memory = 0;
  };
  LeastCopy getLeastCopy(int64_t bytes) const;
  /// Whether the device squares gradients that go to the host: those of one micro-batch, before it copies them.
  bool squaresOnDevice() const { return traits.squaresEarly && counts.accumulationSteps == 1; }
  /// Adds the sum of the squares of a gradient that the host holds.
  void addHostSquares(const ParameterLabel &label, ParameterTimes &times) const;
  /// Whether the host updates the parameter beside the backward pass.
  bool runsEarly() const { return traits.updatesEarly && costs.overlapsCollectives(); }
  /// Returns the least nanoseconds of a collective of gradients, over the data-parallel ranks that surely take part and
  /// maybe over further axes at once.
  int64_t getLeastReduction(const char *kind, int64_t bytes) const;

  ParameterTraits traits;
  Reshards &reshards;
  const CostModel &costs;
  StepCounts counts;
  plan::MeshAttr mesh;
};

} // namespace windlass::planner

#endif
