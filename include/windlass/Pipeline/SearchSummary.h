// The summary of a search and of the plan that it found.
#ifndef WINDLASS_PIPELINE_SEARCHSUMMARY_H
#define WINDLASS_PIPELINE_SEARCHSUMMARY_H

#include "windlass/Dialect/Plan/Transforms/Offload.h"
#include "windlass/Search/Problem.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace windlass {

struct SearchSummary {
  /// The number of meshes that were tried for the plan's number of stages.
  size_t meshes = 0;
  /// The number of stages of the plan.
  int64_t stages = 1;
  /// The numbers of stages that were tried, where the search chose among several. Each comes with the shortest
  /// simulated step of the plans that were scheduled with that number of stages, or with none where no plan fits or
  /// promises a shorter step than the best plan before. Few plans are scheduled for a number whose first plans are far
  /// slower.
  std::vector<std::pair<int64_t, std::optional<double>>> triedStages;
  /// Whether the plan has several stages, or plans of several were tried.
  bool hasStages() const { return stages > 1 || !triedStages.empty(); }
  /// The cost of a step in the search's model, which adds operators up; the duration of a step differs.
  int64_t costNanoseconds = 0;
  /// The simulated step.
  double stepSeconds = 0;
  /// A lower bound of the simulated step over all plans of the searched kind that the model's rows of memory admit,
  /// whatever they recompute, which are cut and scheduled as the search does. Absent where the rows admit
  /// no plan of as many stages: it would say nothing about a plan that was found in another way.
  std::optional<int64_t> boundNanoseconds;
  /// The numbers of stages whose plans the bound is of, ascending: that of the plan, and those of the other numbers
  /// that were tried which have a bound.
  std::vector<int64_t> boundStages = {1};
  /// What the host was asked to hold in these plans.
  plan::Offload boundOffload = plan::Offload::none;
  /// Returns the ratio of the step to its lower bound; nothing where there is no bound, or where it is 0.
  std::optional<double> getStepOverBound() const {
    return boundNanoseconds && *boundNanoseconds > 0 ? std::optional(stepSeconds * 1e9 / *boundNanoseconds)
                                                     : std::nullopt;
  }
  /// The shadow price (Lagrange multiplier) of memory on the plan's mesh: another GiB per device lowers its bound by at
  /// most `nanosecondsPerGib`.
  double nanosecondsPerGib = 0;
  /// The proof of the bound: the text of plan.cert.
  std::string certificate;
  double searchSeconds = 0;
  /// A named strategy in the same model without recompute, with the bytes by which it exceeds the memory.
  struct Named {
    std::string name;
    int64_t costNanoseconds = 0, excessBytes = 0;
  };
  std::vector<Named> named;
  /// The problem of labels that the plan solves.
  search::Problem problem;
  /// The figures that the search assumed because the cluster does not have them.
  std::vector<std::string> assumptions;
};

} // namespace windlass

#endif
