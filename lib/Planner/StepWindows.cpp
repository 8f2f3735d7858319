#include "StepWindows.h"

using namespace windlass;
using namespace windlass::planner;

StepWindows StepWindows::withCollectives(bool hasHostGradients, bool hasHostWeights, bool hasHostStates) {
  std::vector<Window> windows;
  for (WindowKind kind : {WindowKind::forward, WindowKind::backward, WindowKind::lastBackward}) {
    Window &window = windows.emplace_back();
    window = {kind, {{"compute", StreamKind::compute}, {"collectives", StreamKind::communicator}}};
    if (hasHostWeights)
      window.streams.push_back({"copies to the device", StreamKind::hostToDevice});
    if (hasHostGradients && kind != WindowKind::forward) {
      window.streams.push_back({"copies to the host", StreamKind::deviceToHost});
      window.streams.push_back({"host", StreamKind::host});
    }
    if (window.streams.size() > 2)
      window.streams.push_back({"host's memory", StreamKind::hostMemory});
  }
  if (hasHostStates)
    windows.push_back({WindowKind::update,
                       {{"copies to the device", StreamKind::hostToDevice},
                        {"copies to the host", StreamKind::deviceToHost},
                        {"host", StreamKind::host},
                        {"host's memory", StreamKind::hostMemory}}});
  return StepWindows(std::move(windows));
}

std::optional<int32_t> StepWindows::find(WindowKind window, StreamKind stream, int64_t span) const {
  int32_t index = 0;
  for (const Window &its : windows)
    for (const Stream &each : its.streams) {
      bool carries = each.kind == stream && (stream != StreamKind::communicator || span <= each.mostDevices);
      if (its.kind == window && carries)
        return index;
      ++index;
    }
  return std::nullopt;
}

void StepWindows::addTo(search::Problem &problem) const {
  for (const Window &window : windows) {
    problem.load.resize(problem.load.size() + window.streams.size(), 0);
    problem.windowEnd.push_back(static_cast<int32_t>(problem.load.size()));
  }
}
