#include "program_files.h"

#include "windlass/rt/file.h"

#include <climits>

#include <unistd.h>

namespace windlass::rt {

static std::string program_folder() {
  char buffer[PATH_MAX];
  ssize_t length = ::readlink("/proc/self/exe", buffer, sizeof buffer);
  return length <= 0 ? "." : parent_path(std::string(buffer, static_cast<std::size_t>(length)));
}

status find_program_file(const std::string &name, std::string &path) {
  const std::string folder = program_folder();
  for (const std::string &each : {folder, parent_path(folder)})
    if (path = join_path(each, name); is_file(path))
      return ok_status();
  return bad_input(name + " is neither in " + quote(folder) + " nor one folder up");
}

} // namespace windlass::rt
