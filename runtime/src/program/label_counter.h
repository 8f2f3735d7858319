// The number of labels that the loss of a micro-batch sums over, known before the micro-batch runs.
#ifndef WINDLASS_RT_SRC_PROGRAM_LABEL_COUNTER_H
#define WINDLASS_RT_SRC_PROGRAM_LABEL_COUNTER_H

#include "data.h"

namespace windlass::rt {

/// Checks that the box of labels that a program counts is one of an input.
status check_labels(const job &j);

/// Reads labels into memory of its own. The program has passed `check_labels`.
class label_counter {
public:
  explicit label_counter(const job &j);
  /// Counts the labels of micro-batch `k` that are not ignored; 1 where the program does not average over tokens, so
  /// that each micro-batch has the same weight.
  status count(data_source &from, std::int64_t k, std::int64_t &labels);

private:
  bool is_needed_;
  counted_labels labels_;
  element_type type_ = element_type::i64;
  tensor_part part_;
  std::vector<std::byte> values_;
};

} // namespace windlass::rt

#endif
