// The line that a person watches while a run goes on.
#ifndef WINDLASS_RT_SRC_PROGRAM_PROGRESS_H
#define WINDLASS_RT_SRC_PROGRAM_PROGRESS_H

#include "metrics.h"
#include "text_line.h"

#include <string>

namespace windlass::rt {

/// The way in which a run shows its progress. `automatic`: `renewed` where standard error is a terminal, `lines`
/// elsewhere.
enum class progress_style { automatic, renewed, lines, off };

/// Means over the last seconds of a run: a step's share of a mean falls with the time since, so that a single slow
/// step changes little and a lasting change shows soon.
class smoothed_rate {
public:
  /// Adds a step that began `elapsed` seconds after the one before and computed for `busy` seconds, with that many
  /// tokens or samples.
  void add(double elapsed, double busy, double units);
  /// Returns 0 where nothing is known.
  double units_per_second() const { return busy_ > 0 ? units_ / busy_ : 0; }
  double seconds_per_step() const { return steps_ > 0 ? elapsed_ / steps_ : 0; }

private:
  double steps_ = 0, elapsed_ = 0, busy_ = 0, units_ = 0;
};

class progress {
public:
  ~progress() { clear(); } // an error that ends the run is printed on a line of its own
  /// Shows the steps up to `steps` from now on.
  void open(progress_style style, std::int64_t steps);
  /// Shows a step that ended at `now`, in seconds of clock_seconds().
  void show(const step_metrics &row, double now);
  /// Takes the renewed line away so that other text can be written.
  void clear();

private:
  bool is_shown_ = false;
  progress_style style_ = progress_style::off;
  std::int64_t steps_ = 0;
  double last_step_ = 0, last_shown_ = 0; ///< 0: never
  smoothed_rate rate_;
  text_line line_;
};

/// Returns a rate as "1234" or "12.3k"; `short_bytes` returns bytes as "1.5 GiB". Both are for people.
std::string short_number(double value);
std::string short_bytes(double bytes);
/// Returns a loss with the digits that people read.
std::string short_loss(double loss);
/// Returns a duration as "42 s", "3 min 20 s", "2 h 5 min" or "1 d 3 h".
std::string short_duration(double seconds);

} // namespace windlass::rt

#endif
