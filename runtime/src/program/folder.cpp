#include "windlass/rt/folder.h"

#include "windlass/rt/file.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

status system_error(const char *verb, const std::string &path) {
  return bad_input(std::string("cannot ") + verb + " " + quote(path) + ": " + std::generic_category().message(errno));
}

std::shared_ptr<const int> owned(int descriptor) {
  return std::shared_ptr<const int>(new int(descriptor), [](const int *held) {
    ::close(*held);
    delete held;
  });
}

/// Returns the kind of an entry itself, as S_IFMT tells it; 0 when there is none.
mode_t kind_of(int folder, const std::string &name) {
  struct stat info = {};
  return ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_mode & S_IFMT : 0;
}

status sync(int descriptor, const std::string &path) {
  // Some network file systems cannot sync folders and say EINVAL; their renames are synchronous.
  return ::fsync(descriptor) != 0 && errno != EINVAL ? system_error("sync the folder", path) : ok_status();
}

/// Makes a folder that the user names, its parents first; each is durable in its parent.
status make_path(const std::string &path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0)
    return S_ISDIR(info.st_mode)
               ? ok_status()
               : bad_input("cannot create the folder " + quote(path) + ": a file of that name exists");
  const std::string parent = parent_path(path);
  int made = ::mkdir(path.c_str(), 0777);
  if (made != 0 && errno == ENOENT && parent != path) {
    WINDLASS_TRY(make_path(parent));
    made = ::mkdir(path.c_str(), 0777);
  }
  if (made != 0)
    return errno == EEXIST ? ok_status() : system_error("create the folder", path);
  folder holder;
  WINDLASS_TRY(holder.open(parent));
  return holder.sync();
}

} // namespace

status folder::open(const std::string &path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return system_error("open the folder", path);
  descriptor_ = owned(descriptor);
  path_ = path;
  return ok_status();
}

status folder::make(const std::string &path) {
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/')
    plain.pop_back();
  WINDLASS_TRY(make_path(plain));
  return open(path);
}

status folder::enter(const std::string &name, folder &out) const {
  const int descriptor = ::openat(*descriptor_, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    const int error = errno;
    if (S_ISLNK(kind_of(*descriptor_, name)))
      return bad_input(quote(path_of(name)) + " is a symbolic link, and " + quote(path_) +
                       " has to hold that folder itself; put a folder in its place");
    errno = error;
    return system_error("open the folder", path_of(name));
  }
  std::string path = path_of(name); // `out` may be this one
  out.descriptor_ = owned(descriptor);
  out.path_ = std::move(path);
  return ok_status();
}

status folder::make(const std::string &name, folder &out) const {
  if (::mkdirat(*descriptor_, name.c_str(), 0777) == 0)
    WINDLASS_TRY(sync());
  else if (errno != EEXIST)
    return system_error("create the folder", path_of(name));
  return enter(name, out);
}

std::string folder::path_of(const std::string &name) const { return path_ == "." ? name : join_path(path_, name); }

status folder::list(std::vector<std::string> &names) const {
  names.clear();
  // A descriptor of its own, since the position in the listing is common to all that share a descriptor.
  const int descriptor = ::openat(*descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
  if (!entries) {
    status failed = system_error("list the folder", path_);
    if (descriptor >= 0)
      ::close(descriptor);
    return failed;
  }
  errno = 0;
  while (const dirent *entry = ::readdir(entries))
    if (const std::string name = entry->d_name; name != "." && name != "..")
      names.push_back(name);
  status listed = errno != 0 ? system_error("list the folder", path_) : ok_status();
  ::closedir(entries);
  std::sort(names.begin(), names.end());
  return listed;
}

bool folder::holds(const std::string &name) const { return kind_of(*descriptor_, name) != 0; }
bool folder::holds_file(const std::string &name) const { return S_ISREG(kind_of(*descriptor_, name)); }
bool folder::holds_folder(const std::string &name) const { return S_ISDIR(kind_of(*descriptor_, name)); }

status folder::remove(const std::string &name) const {
  if (::unlinkat(*descriptor_, name.c_str(), 0) == 0 || errno == ENOENT)
    return ok_status();
  if (errno != EISDIR)
    return system_error("remove", path_of(name));
  folder inner;
  std::vector<std::string> names;
  WINDLASS_TRY(enter(name, inner));
  WINDLASS_TRY(inner.list(names));
  for (const std::string &each : names)
    if (::unlinkat(inner.descriptor(), each.c_str(), 0) != 0)
      return system_error("remove", inner.path_of(each));
  return ::unlinkat(*descriptor_, name.c_str(), AT_REMOVEDIR) != 0 ? system_error("remove the folder", path_of(name))
                                                                   : ok_status();
}

status folder::rename(const std::string &from, const std::string &to) const {
  if (::renameat(*descriptor_, from.c_str(), *descriptor_, to.c_str()) != 0)
    return bad_input("cannot rename " + quote(path_of(from)) + " to " + quote(path_of(to)) + ": " +
                     std::generic_category().message(errno));
  return ok_status();
}

status folder::sync() const { return rt::sync(*descriptor_, path_); }

status folder::remove_temporaries() const {
  std::vector<std::string> names;
  WINDLASS_TRY(list(names));
  for (const std::string &name : names)
    if (is_temporary_name(name) && !holds_folder(name))
      WINDLASS_TRY(remove(name));
  return ok_status();
}

} // namespace windlass::rt
