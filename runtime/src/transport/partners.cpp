#include "partners.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

/// Returns the state letter and start time of a process; false when there is none of that id. Does not allocate: it is
/// called during the steps of a run.
bool read_process(std::int64_t id, char &letter, std::int64_t &started) {
  char path[48], text[1024];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(id));
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0)
    return false;
  text[length] = 0;
  // The name, which may hold anything, ends with the last parenthesis; the letter is the third field, the time the
  // 22nd.
  const char *at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ')
    return false;
  letter = at[2];
  ++at; // the space before the third field
  for (int field = 3; field < 22 && at != nullptr; ++field)
    at = std::strchr(at + 1, ' ');
  if (at == nullptr)
    return false;
  started = std::strtoll(at, nullptr, 10);
  return true;
}

std::int64_t id_space() {
  struct stat info = {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? static_cast<std::int64_t>(info.st_ino) : 0;
}

} // namespace

partners::partners(partner_entry *table, const std::vector<std::int32_t> &ranks, std::int32_t index)
    : table_(table), ranks_(ranks), index_(static_cast<std::size_t>(index)), stands_(ranks.size(), 0),
      next_look_(std::chrono::steady_clock::now() + interval) {
  char letter = 0;
  partner_entry &own = table_[index_];
  own.id_space = id_space();
  // Without /proc no process can be looked up, and the entry stays empty.
  if (own.id_space != 0 && read_process(getpid(), letter, own.started))
    own.process.store(getpid());
}

partners::state partners::look_at(const partner_entry &entry) {
  const std::int64_t process = entry.process.load();
  char letter = 0;
  std::int64_t started = 0;
  if (process == 0)
    return state::runs; // not known yet, or not visible
  if (!read_process(process, letter, started) || started != entry.started || letter == 'Z' || letter == 'X')
    return state::gone;
  return letter == 'T' ? state::stands : state::runs;
}

bool partners::is_over() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_)
    return !loss_.empty();
  next_look_ = now + interval;
  const partner_entry &own = table_[index_];
  bool lower_runs = false;
  for (std::size_t m = 0; m < ranks_.size() && loss_.empty(); ++m) {
    const partner_entry &other = table_[m];
    if (m == index_ || own.process.load() == 0 || (other.process.load() != 0 && other.id_space != own.id_space))
      continue;
    const state seen = look_at(other);
    stands_[m] = seen == state::stands ? stands_[m] + 1 : 0;
    lower_runs |= m < index_ && seen == state::runs;
    if (seen == state::runs || (seen == state::stands && stands_[m] * interval < patience))
      continue;
    // One rank's report is enough, as long as there is one.
    if (lower_runs && held_back_++ < 8)
      continue;
    loss_ = "rank " + std::to_string(ranks_[m]) + " (process " + std::to_string(other.process.load()) + ") " +
            (seen == state::gone ? "is gone: it was killed or has crashed"
                                 : "has stood still for " + std::to_string(patience.count() / 1000) + " s");
  }
  return !loss_.empty();
}

} // namespace windlass::rt
