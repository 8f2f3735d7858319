// The line that a person watches, on a terminal only.
#ifndef WINDLASS_RT_SRC_PROGRAM_PROGRESS_H
#define WINDLASS_RT_SRC_PROGRAM_PROGRESS_H

#include "metrics.h"

#include <string>

namespace windlass::rt {

class progress {
public:
  ~progress() { clear(); } // an error that ends the run is printed on a line of its own
  /// Shows itself when standard error is a terminal and `wanted`.
  void open(bool wanted, std::int64_t steps);
  void show(const step_metrics &row);
  /// Takes the line away so that other text can be written.
  void clear();

private:
  bool is_shown_ = false, is_open_ = false;
  std::int64_t steps_ = 0;
  double last_ = 0;
};

/// A rate as "1234" or "12.3k" and bytes as "1.5 GiB", for people.
std::string short_number(double value);
std::string short_bytes(double bytes);
/// A loss with the digits that people read.
std::string short_loss(double loss);

} // namespace windlass::rt

#endif
