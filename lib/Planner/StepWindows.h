// The windows of a step: parts of it in which streams carry work side by side.
#ifndef WINDLASS_LIB_PLANNER_STEPWINDOWS_H
#define WINDLASS_LIB_PLANNER_STEPWINDOWS_H

#include "windlass/Search/Problem.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace windlass::planner {

/// The kind of work of a stream: operators of the device, collectives of one link tier, copies between the memories of
/// device and host, operators of the host, transfers to and from a peer; or the time for which copies and operators of
/// the host together have its memory to themselves.
enum class StreamKind { compute, communicator, hostToDevice, deviceToHost, host, peer, hostMemory };

/// A stream, which works beside the other streams of its window.
struct Stream {
  std::string name;
  StreamKind kind = StreamKind::compute;
  /// The most consecutive devices that a group of a communicator on this stream may span: those of its link tier.
  int64_t mostDevices = std::numeric_limits<int64_t>::max();
};

/// The parts of a step: all forward passes, the backward passes of all micro-batches but the last, that of the last
/// micro-batch, and the update.
enum class WindowKind { forward, backward, lastBackward, update };

/// A part of a step that takes as long as the busiest of its streams.
struct Window {
  WindowKind kind = WindowKind::forward;
  std::vector<Stream> streams;
};

/// The windows of a step. Work that no stream of them carries is exposed: its time is added to the step.
class StepWindows {
public:
  /// Makes a step without windows, in which everything is exposed.
  StepWindows() = default;
  /// Takes at most one window of each kind. The names of a window's streams differ; the streams of its communicators
  /// are in the order of their tiers, the tier of the fewest devices first.
  explicit StepWindows(std::vector<Window> windows) : windows(std::move(windows)) {}

  /// Returns the windows of a step in which collectives of parameters and gradients run beside operators: the forward
  /// passes and both kinds of backward passes, each with a stream of operators and one of collectives. With
  /// `hasHostGradients`, gradients are copied to the host and added up there beside the backward passes; with
  /// `hasHostWeights`, weights are copied from there beside all passes; with `hasHostStates`, copies in both directions
  /// and what the host computes run side by side in the update too. All of these share the host's memory.
  static StepWindows withCollectives(bool hasHostGradients = false, bool hasHostWeights = false,
                                     bool hasHostStates = false);

  const std::vector<Window> &getWindows() const { return windows; }

  /// Returns the index, among the streams of all windows, of the stream that carries work of kind `stream` in `window`;
  /// among streams of collectives, the one of the smallest tier that joins `span` consecutive devices. Returns nothing
  /// where no stream does.
  std::optional<int32_t> find(WindowKind window, StreamKind stream, int64_t span = 1) const;

  /// Adds the windows to a problem, with streams that carry nothing yet.
  void addTo(search::Problem &problem) const;

private:
  std::vector<Window> windows;
};

} // namespace windlass::planner

#endif
