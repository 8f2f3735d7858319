// operators.json of an emitted project: which operator of the model each command of a step is of. Timelines show it,
// and nothing else reads it: the names are those of a model that may come from anywhere.
#ifndef WINDLASS_RT_SRC_PROGRAM_OPERATOR_NAMES_H
#define WINDLASS_RT_SRC_PROGRAM_OPERATOR_NAMES_H

#include "windlass/rt/program.h"
#include "windlass/rt/status.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace windlass::rt {

class operator_names {
public:
  /// Reads the text of the file, for a program of so many streams. Views of the names are valid as long as this is.
  status read(std::string_view text, std::int32_t streams);

  /// Of each command of a stream in the order of issue, where a step runs these actions; empty where it is of none.
  std::vector<std::string_view> of(std::size_t stream, const std::vector<const action *> &actions) const;

private:
  std::vector<std::string> names_;
  /// By kind of action, whether it is the last backward, and stream: a place in `names_` for each command.
  std::map<std::pair<action_kind, bool>, std::vector<std::vector<std::size_t>>> commands_;
};

} // namespace windlass::rt

#endif
