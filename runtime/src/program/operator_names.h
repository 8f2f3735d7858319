// operators.json of an emitted project: the model's operator for each command of a step. Only timelines read it: the
// names are those of a model that may come from anywhere.
#ifndef WINDLASS_RT_SRC_PROGRAM_OPERATOR_NAMES_H
#define WINDLASS_RT_SRC_PROGRAM_OPERATOR_NAMES_H

#include "windlass/rt/program.h"
#include "windlass/rt/status.h"

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace windlass::rt {

struct json;

class operator_names {
public:
  /// Reads the text of the file, for the program of a position whose functions have `streams` streams. Views of the
  /// names are valid as long as this object.
  status read(std::string_view text, std::int32_t position, std::int32_t streams);

  /// Returns the operator's name for each command of a stream, in the order of issue, where a step runs these actions;
  /// an empty name where a command has no operator.
  std::vector<std::string_view> of(std::size_t stream, const std::vector<const action *> &actions) const;

private:
  status read_chunk(const json &chunk, std::int32_t streams);

  std::vector<std::string> names_;
  /// The commands' places in `names_`, by stream, for each chunk, kind of action, and whether it is the last backward
  /// or weight gradient.
  std::map<std::tuple<std::int32_t, action_kind, bool>, std::vector<std::vector<std::size_t>>> commands_;
};

} // namespace windlass::rt

#endif
