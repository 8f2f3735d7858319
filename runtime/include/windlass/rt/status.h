// Result of a runtime call. No exception crosses the runtime's API.
#ifndef WINDLASS_RT_STATUS_H
#define WINDLASS_RT_STATUS_H

#include <string>
#include <utility>

namespace windlass::rt {

/// The class of an error, which the exit codes of the command line name.
enum class status_code : int {
  ok = 0,
  bad_input = 1,   ///< a file, flag or value that the user gave
  usage = 2,       ///< an unknown or malformed flag
  stopped = 6,     ///< training stopped: NaN, lost rank
  interrupted = 7, ///< interrupted by the user and saved
  internal = 70,
};

/// The kind of an error; `windlass explain` tells more about each.
enum class diagnostic : int {
  none = 0,
#define WINDLASS_DIAGNOSTIC(name, number, exit_code, title, explanation) name = number,
#include "windlass/rt/diagnostics.def"
#undef WINDLASS_DIAGNOSTIC
};

/// Returns the code as it is printed: "WL0305".
inline std::string diagnostic_code(diagnostic kind) {
  std::string digits = std::to_string(static_cast<int>(kind));
  return "WL" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

/// A code with one line of text: the cause and what to do. An ok status holds no text and does not allocate.
class [[nodiscard]] status {
public:
  status() = default;
  status(status_code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool is_ok() const { return code_ == status_code::ok; }
  status_code code() const { return code_; }
  const std::string &message() const { return message_; }
  /// Returns the same error with kind `kind`, unless it already has a kind.
  status as(diagnostic kind) && {
    if (!is_ok() && kind_ == diagnostic::none)
      kind_ = kind;
    return std::move(*this);
  }
  diagnostic kind() const {
    if (kind_ != diagnostic::none || is_ok())
      return kind_;
    switch (code_) {
    case status_code::usage:
      return diagnostic::usage;
    case status_code::stopped:
      return diagnostic::rank_lost;
    case status_code::interrupted:
      return diagnostic::interrupted;
    case status_code::internal:
      return diagnostic::internal;
    default:
      return diagnostic::input;
    }
  }

private:
  status_code code_ = status_code::ok;
  diagnostic kind_ = diagnostic::none;
  std::string message_;
};

inline status ok_status() { return {}; }
inline status bad_input(std::string message) { return {status_code::bad_input, std::move(message)}; }
inline status internal_error(std::string message) { return {status_code::internal, std::move(message)}; }

} // namespace windlass::rt

/// Returns from the enclosing function when `expression` is a status that is not ok.
#define WINDLASS_TRY(expression)                                                                                       \
  do {                                                                                                                 \
    if (::windlass::rt::status windlass_status_ = (expression); !windlass_status_.is_ok())                             \
      return windlass_status_;                                                                                         \
  } while (false)

#endif
