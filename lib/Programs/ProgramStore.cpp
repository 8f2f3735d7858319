#include "windlass/Programs/ProgramStore.h"

#include "windlass/Support/OutputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/rt/hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

using namespace windlass;
namespace fs = llvm::sys::fs;

namespace {

constexpr llvm::StringLiteral kFirstLine = "windlass built program 1", kLastLine = "end";
constexpr llvm::StringLiteral kRecord = ".record", kLock = ".lock", kValues = "values-";

/// One file of an entry.
struct RecordedFile {
  std::string path, hash;
  int64_t bytes = 0;
};

struct Record {
  std::string folder;
  std::vector<RecordedFile> files;
};

/// Reads the size and the hash of a file. Returns false where it is no regular file or cannot be read.
bool hashFile(const std::string &path, RecordedFile &file, bool synchronizes = false) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat info;
  bool isRead = descriptor >= 0 && fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  rt::sha256 hash;
  file.bytes = 0;
  std::vector<char> buffer(isRead ? 1 << 20 : 0);
  while (isRead) {
    ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR)
      continue;
    isRead = got >= 0;
    if (got <= 0)
      break;
    hash.update(buffer.data(), static_cast<size_t>(got));
    file.bytes += got;
  }
  if (isRead && synchronizes)
    isRead = fsync(descriptor) == 0;
  if (descriptor >= 0)
    close(descriptor);
  file.hash = hash.finish_hex();
  return isRead;
}

void synchronizeFolder(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  fsync(descriptor);
  close(descriptor);
}

bool isInside(llvm::StringRef path) {
  return !path.empty() && !path.starts_with("/") &&
         llvm::none_of(llvm::make_range(llvm::sys::path::begin(path), llvm::sys::path::end(path)),
                       [](llvm::StringRef part) { return part == ".."; });
}

/// Returns the entry of a folder: "program-1f" for "program-1f.2"; nothing for any other name.
llvm::StringRef entryOfFolder(llvm::StringRef folder) {
  auto [name, number] = folder.rsplit('.');
  unsigned value;
  return number.getAsInteger(10, value) ? "" : name;
}

/// Reads a record. Returns false for one that is missing, torn or of another form.
bool readRecord(const std::string &path, llvm::StringRef name, Record &record) {
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text || (*text)->getBufferSize() > 1 << 20)
    return false;
  llvm::SmallVector<llvm::StringRef> lines;
  (*text)->getBuffer().rtrim('\n').split(lines, '\n');
  if (lines.size() < 3 || lines.front() != kFirstLine || lines.back() != kLastLine || entryOfFolder(lines[1]) != name)
    return false;
  record.folder = lines[1].str();
  for (llvm::StringRef line : llvm::ArrayRef(lines).slice(2).drop_back()) {
    RecordedFile file;
    auto [hash, rest] = line.split(' ');
    auto [bytes, relative] = rest.split(' ');
    if (bytes.getAsInteger(10, file.bytes) || !isInside(relative))
      return false;
    file.hash = hash.str();
    file.path = relative.str();
    record.files.push_back(file);
  }
  return true;
}

std::string textOf(const Record &record) {
  std::string text = (kFirstLine + "\n" + record.folder + "\n").str();
  for (const RecordedFile &file : record.files)
    text += file.hash + " " + std::to_string(file.bytes) + " " + file.path + "\n";
  return text + kLastLine.str() + "\n";
}

/// Returns a description of what differs from the record; nothing where all is as it was.
std::string findDamage(const std::string &folder, const Record &record) {
  for (const RecordedFile &file : record.files) {
    RecordedFile now;
    if (!hashFile(folder + "/" + file.path, now))
      return file.path + " cannot be read";
    if (now.bytes != file.bytes)
      return file.path + " has " + std::to_string(now.bytes) + " bytes and had " + std::to_string(file.bytes);
    if (now.hash != file.hash)
      return file.path + " has changed";
  }
  return "";
}

std::vector<std::string> namesIn(const std::string &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error, /*follow_symlinks=*/false), end; !error && entry != end;
       entry.increment(error))
    names.push_back(llvm::sys::path::filename(entry->path()).str());
  llvm::sort(names);
  return names;
}

/// Returns the bytes that the files of a folder take, without those that it shares with another one.
int64_t ownBytes(const std::string &path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0)
    return 0;
  int64_t bytes = S_ISREG(info.st_mode) && info.st_nlink > 1 ? 0 : int64_t(info.st_blocks) * 512;
  if (S_ISDIR(info.st_mode))
    for (const std::string &name : namesIn(path))
      bytes += ownBytes(path + "/" + name);
  return bytes;
}

int64_t sizeOf(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? int64_t(info.st_blocks) * 512 : 0;
}

} // namespace

rt::status ProgramStore::open() {
  const char *base = std::getenv("XDG_CACHE_HOME");
  const char *home = std::getenv("HOME");
  if (base && base[0] == '/')
    root = base;
  else if (home && home[0] == '/')
    root = std::string(home) + "/.cache";
  else
    return rt::bad_input("no folder for built programs: set HOME or XDG_CACHE_HOME to an absolute path");
  fs::create_directories(root);
  return openAt(root + "/windlass");
}

rt::status ProgramStore::openAt(const std::string &folder) {
  root = folder;
  if (mkdir(root.c_str(), 0700) != 0 && errno != EEXIST)
    return rt::bad_input("cannot make the folder of built programs " + printable(root) + ": " + std::strerror(errno));
  struct stat info;
  if (lstat(root.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid())
    return rt::bad_input(printable(root) + " must be a folder of your own; remove it or set XDG_CACHE_HOME");
  chmod(root.c_str(), 0700);
  return {};
}

ProgramStore::Found ProgramStore::use(const std::string &name, FileLock &use, std::string &folder,
                                      std::string &damage) const {
  std::string path = root + "/" + name + kRecord.str();
  Record record, again;
  if (!readRecord(path, name, record))
    return Found::none;
  folder = root + "/" + record.folder;
  // A process that removes the entry removes its record before it releases the folder.
  if (!use.tryFolder(folder, /*shared=*/true) || !readRecord(path, name, again) || again.folder != record.folder) {
    use.release();
    return Found::none;
  }
  damage = findDamage(folder, record);
  if (damage.empty()) {
    utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
    return Found::good;
  }
  use.release();
  return Found::damaged;
}

bool ProgramStore::find(const std::string &name, FileLock &used, std::string &folder) const {
  std::string damage;
  return use(name, used, folder, damage) == Found::good;
}

/// Makes a folder that no build has had: a compiler that an interrupted build has left behind cannot reach it.
std::string ProgramStore::makeFolder(const std::string &name) const {
  for (int number = 1; number < 10000; ++number) {
    std::string folder = root + "/" + name + "." + std::to_string(number);
    if (mkdir(folder.c_str(), 0700) == 0)
      return folder;
    if (errno != EEXIST)
      return "";
  }
  return "";
}

rt::status ProgramStore::obtain(const std::string &name, const Build &build, const Warn &warn, FileLock &used,
                                std::string &folder) {
  std::string damage;
  if (use(name, used, folder, damage) == Found::good)
    return {};
  FileLock lock;
  WINDLASS_TRY(lock.take(root + "/" + name + kLock.str(), kPatienceSeconds, [&](llvm::StringRef holder) {
    if (warn)
      warn(("waiting for " + holder + ", which builds the same program").str());
  }));
  Found found = use(name, used, folder, damage);
  if (found == Found::good)
    return {};
  if (found == Found::damaged && warn)
    warn("the built program in " + printable(folder) + " is damaged (" + damage + "); building it again");

  folder = makeFolder(name);
  if (folder.empty())
    return rt::bad_input("cannot make a folder in " + printable(root) + ": " + std::strerror(errno));
  // The leftovers of earlier builds are of no use any more.
  for (const std::string &other : namesIn(root)) {
    FileLock alone;
    std::string path = root + "/" + other;
    if (entryOfFolder(other) == name && path != folder && alone.tryFolder(path, /*shared=*/false))
      fs::remove_directories(path);
  }

  std::vector<std::string> given, made;
  WINDLASS_TRY(build(folder, given, made));
  Record record;
  record.folder = llvm::sys::path::filename(folder).str();
  for (bool isMade : {false, true})
    for (const std::string &path : isMade ? made : given) {
      RecordedFile file;
      if (!hashFile(folder + "/" + path, file, /*synchronizes=*/isMade))
        return rt::bad_input("cannot read back " + printable(folder + "/" + path));
      file.path = path;
      record.files.push_back(file);
      if (isMade)
        synchronizeFolder(llvm::sys::path::parent_path(folder + "/" + path).str());
    }
  synchronizeFolder(folder);
  if (std::string error = writeFile(root + "/" + name + kRecord.str(), textOf(record)); !error.empty())
    return rt::bad_input(error);
  synchronizeFolder(root);
  if (use(name, used, folder, damage) != Found::good)
    return rt::bad_input("the program that was built in " + printable(folder) + " is gone or has changed: " + damage);
  return {};
}

void ProgramStore::shareValues(const std::string &path) {
  RecordedFile values, held;
  if (!hashFile(path, values))
    return;
  std::string shared = root + "/" + kValues.str() + values.hash, temporary = path + ".link";
  bool isHeld = hashFile(shared, held);
  if (isHeld && held.hash == values.hash) {
    // File systems without links keep the copy.
    if (link(shared.c_str(), temporary.c_str()) != 0 || rename(temporary.c_str(), path.c_str()) != 0)
      unlink(temporary.c_str());
    return;
  }
  unlink(shared.c_str());
  (void)!link(path.c_str(), shared.c_str());
}

std::vector<StoredEntry> ProgramStore::list() const {
  std::vector<StoredEntry> entries;
  for (const std::string &file : namesIn(root)) {
    if (fs::is_symlink_file(root + "/" + file) || !fs::is_directory(root + "/" + file))
      continue;
    StoredEntry entry;
    entry.name = entryOfFolder(file).str();
    entry.folder = root + "/" + file;
    entry.bytes = ownBytes(entry.folder);
    Record record;
    std::string path = root + "/" + entry.name + kRecord.str();
    struct stat info;
    entry.isComplete = !entry.name.empty() && readRecord(path, entry.name, record) && record.folder == file &&
                       lstat(path.c_str(), &info) == 0;
    if (entry.isComplete)
      entry.lastUse = info.st_mtime;
    FileLock alone, building;
    entry.isInUse =
        !alone.tryFolder(entry.folder, /*shared=*/false) ||
        (!entry.isComplete && !entry.name.empty() && !building.tryFile(root + "/" + entry.name + kLock.str()));
    if (entry.name.empty())
      entry.name = file;
    entries.push_back(entry);
  }
  return entries;
}

std::vector<std::string> ProgramStore::listValues() const {
  std::vector<std::string> paths;
  for (const std::string &file : namesIn(root))
    if (llvm::StringRef(file).starts_with(kValues))
      paths.push_back(root + "/" + file);
  return paths;
}

int64_t ProgramStore::getBytes() const {
  int64_t bytes = 0;
  for (const StoredEntry &entry : list())
    bytes += entry.bytes;
  for (const std::string &path : listValues())
    bytes += sizeOf(path);
  return bytes;
}

int64_t ProgramStore::getLimit() const {
  auto text = llvm::MemoryBuffer::getFile(root + "/limit");
  int64_t limit = 0;
  return text && !(*text)->getBuffer().trim().getAsInteger(10, limit) && limit >= 0 ? limit : kDefaultLimit;
}

rt::status ProgramStore::setLimit(int64_t bytes) {
  std::string error = writeFile(root + "/limit", std::to_string(bytes) + "\n");
  return error.empty() ? rt::ok_status() : rt::bad_input(error);
}

/// Removes an entry or leftover that nobody uses or builds. Returns whether it is gone.
bool ProgramStore::remove(const StoredEntry &entry) const {
  FileLock building, alone;
  std::string lock = root + "/" + entry.name + kLock.str();
  if (!building.tryFile(lock) || !alone.tryFolder(entry.folder, /*shared=*/false))
    return false;
  if (entry.isComplete)
    fs::remove(root + "/" + entry.name + kRecord.str());
  fs::remove(lock);
  return !fs::remove_directories(entry.folder);
}

std::vector<std::string> ProgramStore::trim(int64_t bytes) {
  std::vector<StoredEntry> entries = list();
  std::vector<std::string> removed;
  int64_t left = 0;
  // Values are removed with the last entry that has them.
  auto trimValues = [&] {
    int64_t kept = 0;
    for (const std::string &path : listValues()) {
      struct stat info;
      if (lstat(path.c_str(), &info) == 0 && info.st_nlink == 1)
        unlink(path.c_str());
      else
        kept += sizeOf(path);
    }
    return kept;
  };
  for (const StoredEntry &entry : entries)
    left += entry.bytes;
  left += trimValues();
  // Leftovers have the time 0.
  llvm::sort(entries, [](const StoredEntry &a, const StoredEntry &b) {
    return std::tie(a.lastUse, a.folder) < std::tie(b.lastUse, b.folder);
  });
  for (const StoredEntry &entry : entries) {
    if (entry.isComplete && left <= bytes)
      break;
    if (!remove(entry))
      continue;
    removed.push_back(llvm::sys::path::filename(entry.folder).str());
    int64_t values = 0;
    for (const std::string &path : listValues())
      values += sizeOf(path);
    left -= entry.bytes + values - trimValues();
  }
  return removed;
}
