// The user's settings of what is compiled.
#ifndef WINDLASS_PIPELINE_COMPILESETTINGS_H
#define WINDLASS_PIPELINE_COMPILESETTINGS_H

#include "windlass/Dialect/Plan/PlanFile.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass {

/// Settings as the user gives them: parameters by patterns.
struct CompileSettings : plan::ProgramSettings {
  std::vector<std::string> freeze;
  std::vector<std::string> noDecay;
  /// GLOB=X: what the weight decay and the learning rate of these are times the run's.
  std::vector<std::string> decayPatterns, ratePatterns;
  /// The initializers that train even where the file says that they do not.
  std::vector<std::string> train;
  /// Whether to accept a file that holds another model than was exported.
  bool acceptAltered = false;
  /// Whether the number of merged micro-batches is searched with the plan; `merge` is 1 then.
  bool searchesMerge = false;
  /// Whether warnings about the model are errors.
  bool strict = false;
  /// When set, exactly these parameters train, by logical name (a plan's; `freeze` is empty then).
  std::optional<std::vector<std::string>> trainable;
};

} // namespace windlass

#endif
