// A folder that is ours, by its descriptor: nothing that is done in it follows a link, whoever put the link there.
#ifndef WINDLASS_RT_FOLDER_H
#define WINDLASS_RT_FOLDER_H

#include "windlass/rt/status.h"

#include <memory>
#include <string>
#include <vector>

namespace windlass::rt {

/// A folder by its descriptor. How a run's folder, a checkpoint or an emitted project is reached is the user's
/// business, so `open` and `make` of a path follow links. A name below it is looked at itself: a link there is replaced
/// or refused, so that nobody who can write into the folder leads us out of it. Copies share one descriptor.
class folder {
public:
  /// Opens a folder that the user names.
  status open(const std::string &path);
  /// Opens a folder that the user names, creating it and its parents where they are missing.
  status make(const std::string &path);
  /// Opens the folder `name` of this one, which must not be a link.
  status enter(const std::string &name, folder &out) const;
  /// Opens the folder `name` of this one, creating it where it is missing; it must not be a link.
  status make(const std::string &name, folder &out) const;

  const std::string &path() const { return path_; }
  std::string path_of(const std::string &name) const;
  int descriptor() const { return descriptor_ ? *descriptor_ : -1; }

  /// Lists the names in the folder, sorted.
  status list(std::vector<std::string> &names) const;
  bool holds(const std::string &name) const;
  bool holds_file(const std::string &name) const;
  bool holds_folder(const std::string &name) const;
  /// Removes a file, a link, or a folder that holds no folders. A missing one is no error.
  status remove(const std::string &name) const;
  status rename(const std::string &from, const std::string &to) const;
  /// Makes the folder's entries durable.
  status sync() const;
  /// Removes the temporary files (`output_file::replace`) that a killed process left in the folder.
  status remove_temporaries() const;

private:
  std::shared_ptr<const int> descriptor_; ///< closed with the last copy
  std::string path_;
};

} // namespace windlass::rt

#endif
