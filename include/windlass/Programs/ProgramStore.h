// The folder of built programs: entries with a record of what they hold, locks, and what goes when it becomes too
// large.
//
//   NAME.lock          held while the entry is built
//   NAME.record        names the entry's folder, and the size and hash of every file that counts
//   NAME.1, NAME.2 ... a folder for each build; only the one that the record names is the entry. Its lock is shared by
//                      those that use it.
//   values-HASH        initial values, of which the entries that have the same hold hard links
//   limit              bytes that all of it may take
#ifndef WINDLASS_PROGRAMS_PROGRAMSTORE_H
#define WINDLASS_PROGRAMS_PROGRAMSTORE_H

#include "windlass/Support/FileLock.h"
#include "windlass/rt/status.h"

#include <functional>
#include <string>
#include <vector>

namespace windlass {

/// An entry, or what an interrupted build has left.
struct StoredEntry {
  std::string name, folder;
  /// The bytes on the disk, without values that other entries have too.
  int64_t bytes = 0;
  /// Seconds since 1970; 0 for a leftover.
  int64_t lastUse = 0;
  bool isComplete = false, isInUse = false;
};

class ProgramStore {
public:
  static constexpr int64_t kDefaultLimit = int64_t(10) << 30;
  /// How long to wait for another process that builds the same program.
  static constexpr int64_t kPatienceSeconds = 1800;

  /// Opens the folder; it is made where it is missing, and must belong to the user and be closed to others.
  rt::status open();
  /// Opens a folder of the caller's choice in the same way.
  rt::status openAt(const std::string &folder);
  /// Sets a folder that another user may have made, only to find entries in it.
  void lookInto(const std::string &folder) { root = folder; }
  const std::string &getRoot() const { return root; }

  /// Builds into an empty folder and names the files that count, relative to it; those in `made` come from the build.
  using Build = std::function<rt::status(const std::string &folder, std::vector<std::string> &given,
                                         std::vector<std::string> &made)>;
  /// Takes a line: that another process is waited for, or that a build is damaged.
  using Warn = std::function<void(llvm::StringRef line)>;
  /// Finds an entry with all of its files unchanged, or builds it. `folder` stays for as long as `use` lives. `warn`
  /// may be empty.
  rt::status obtain(const std::string &name, const Build &build, const Warn &warn, FileLock &use, std::string &folder);

  /// Returns whether there is an entry with all of its files unchanged; `folder` stays for as long as `use` lives.
  bool find(const std::string &name, FileLock &use, std::string &folder) const;

  /// Replaces a file of initial values by a link to the same values of another entry, where one has them.
  void shareValues(const std::string &path);

  /// Returns all entries and leftovers, by name.
  std::vector<StoredEntry> list() const;
  /// Returns the bytes of all entries and values.
  int64_t getBytes() const;
  int64_t getLimit() const;
  rt::status setLimit(int64_t bytes);
  /// Removes all leftovers and then entries, the least recently used first, until `bytes` are not exceeded; keeps what
  /// somebody uses. Returns the names of the folders that were removed.
  std::vector<std::string> trim(int64_t bytes);

private:
  enum class Found { none, damaged, good };
  Found use(const std::string &name, FileLock &use, std::string &folder, std::string &damage) const;
  std::string makeFolder(const std::string &name) const;
  bool remove(const StoredEntry &entry) const;
  std::vector<std::string> listValues() const;

  std::string root;
};

} // namespace windlass

#endif
