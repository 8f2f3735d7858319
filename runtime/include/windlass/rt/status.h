// Result of a runtime call. No exception crosses the runtime's API.
#ifndef WINDLASS_RT_STATUS_H
#define WINDLASS_RT_STATUS_H

#include <string>
#include <utility>

namespace windlass::rt {

/// What went wrong, as the exit codes of the command line name it.
enum class status_code : int {
  ok = 0,
  bad_input = 1,   ///< a file, flag or value that the user gave
  usage = 2,       ///< an unknown or malformed flag
  stopped = 6,     ///< training stopped: NaN, lost rank
  interrupted = 7, ///< interrupted by the user and saved
  internal = 70,
};

/// A code with one line of text: the cause and what to do. An ok status holds no text and does not allocate.
class [[nodiscard]] status {
public:
  status() = default;
  status(status_code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool is_ok() const { return code_ == status_code::ok; }
  status_code code() const { return code_; }
  const std::string &message() const { return message_; }

private:
  status_code code_ = status_code::ok;
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
