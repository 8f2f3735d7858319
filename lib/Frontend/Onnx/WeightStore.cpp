//===- WeightStore.cpp - the bytes that an imported model refers to -------===//

#include "windlass/Frontend/Onnx/WeightStore.h"

#include "windlass/Support/Printable.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace windlass;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

int64_t WeightStore::append(llvm::ArrayRef<char> bytes) {
  int64_t offset = static_cast<int64_t>(message->getBufferSize() + decoded.size());
  decoded.insert(decoded.end(), bytes.begin(), bytes.end());
  return offset;
}

llvm::Expected<llvm::ArrayRef<char>> WeightStore::getMessageBytes(int64_t offset, int64_t length) const {
  llvm::StringRef text = message->getBuffer();
  auto size = static_cast<int64_t>(text.size());
  if (offset >= 0 && length >= 0 && offset <= size && length <= size - offset)
    return llvm::ArrayRef<char>(text.data() + offset, length);
  auto extra = static_cast<int64_t>(decoded.size());
  if (offset >= size && length >= 0 && offset - size <= extra && length <= extra - (offset - size))
    return llvm::ArrayRef<char>(decoded.data() + (offset - size), length);
  return makeError("a tensor refers to " + llvm::Twine(length) + " bytes at offset " + llvm::Twine(offset) +
                   " of the model message, which has " + llvm::Twine(size + extra));
}

llvm::Expected<std::vector<char>> WeightStore::read(llvm::StringRef file, int64_t offset, int64_t length) const {
  if (file.empty()) {
    llvm::Expected<llvm::ArrayRef<char>> bytes = getMessageBytes(offset, length);
    if (!bytes)
      return bytes.takeError();
    return std::vector<char>(bytes->begin(), bytes->end());
  }
  llvm::Expected<std::optional<std::string>> resolved = resolveExternalData(folder, file);
  if (!resolved)
    return resolved.takeError();
  if (!*resolved)
    return makeError("weights file " + printable(file) + " is missing from " + printable(folder));
  if (offset < 0 || length < 0)
    return makeError("weights file " + printable(file) + ": a negative offset or length");
  llvm::Expected<fs::file_t> handle = fs::openNativeFileForRead(**resolved);
  if (!handle)
    return makeError("weights file " + printable(file) + ": " + llvm::toString(handle.takeError()));
  fs::file_status status;
  std::vector<char> bytes;
  uint64_t size = 0;
  if (!fs::status(*handle, status))
    size = status.getSize();
  // The length is checked against the file before anything is allocated.
  if (static_cast<uint64_t>(length) > size || static_cast<uint64_t>(offset) > size - length) {
    fs::closeFile(*handle);
    return makeError("weights file " + printable(file) + " has " + llvm::Twine(size) + " bytes but a tensor needs " +
                     llvm::Twine(length) + " from byte " + llvm::Twine(offset));
  }
  bytes.resize(length);
  int64_t done = 0;
  while (done < length) {
    llvm::Expected<size_t> got = fs::readNativeFileSlice(
        *handle, llvm::MutableArrayRef<char>(bytes.data() + done, length - done), offset + done);
    if (!got || *got == 0) {
      std::string why = got ? "it ended early" : llvm::toString(got.takeError());
      fs::closeFile(*handle);
      return makeError("weights file " + printable(file) + ": " + why);
    }
    done += static_cast<int64_t>(*got);
  }
  fs::closeFile(*handle);
  return bytes;
}

bool WeightStore::isPresent(llvm::StringRef file) const {
  if (file.empty())
    return true;
  llvm::Expected<std::optional<std::string>> resolved = resolveExternalData(folder, file);
  if (!resolved) {
    llvm::consumeError(resolved.takeError());
    return false;
  }
  return resolved->has_value();
}

/// Returns whether `target` is a direct child of the `blobs` folder of the Hugging Face cache that holds `folder`: a
/// parent of `folder` is named `snapshots` and has that `blobs` next to it.
static bool isInHuggingFaceBlobs(llvm::StringRef folder, llvm::StringRef target) {
  for (llvm::StringRef at = folder; !at.empty() && path::has_parent_path(at); at = path::parent_path(at)) {
    if (path::filename(at) != "snapshots")
      continue;
    llvm::SmallString<256> blobs(path::parent_path(at));
    path::append(blobs, "blobs");
    return path::parent_path(target) == blobs;
  }
  return false;
}

llvm::Expected<std::optional<std::string>> windlass::resolveExternalData(llvm::StringRef folder,
                                                                         llvm::StringRef location) {
  auto refuse = [&](llvm::StringRef why) {
    return makeError("external data " + printable(location) + " " + why +
                     "; weights must be below the folder of the model");
  };
  if (location.empty() || location.contains('\0') || location.contains('\\'))
    return refuse("is not a relative path");
  if (path::is_absolute(location))
    return refuse("is an absolute path");
  for (auto it = path::begin(location), end = path::end(location); it != end; ++it)
    if (*it == "..")
      return refuse("has a '..'");
  llvm::SmallString<256> joined(folder.empty() ? "." : folder);
  path::append(joined, location);
  llvm::SmallString<256> realFolder, realFile;
  if (fs::real_path(folder.empty() ? "." : folder, realFolder) || fs::real_path(joined, realFile)) {
    // A link to nowhere may become a link to somewhere; it is refused now, where a missing file is not.
    fs::file_status link;
    if (!fs::status(joined, link, /*follow=*/false) && link.type() == fs::file_type::symlink_file)
      return refuse("is a symbolic link to nothing");
    return std::optional<std::string>();
  }
  llvm::StringRef inside = realFile;
  bool below = inside.consume_front(realFolder) && (inside.starts_with("/") || llvm::StringRef(realFolder) == "/");
  if (!below && !isInHuggingFaceBlobs(realFolder, realFile))
    return refuse("leads outside through a symbolic link");
  fs::file_status status;
  if (fs::status(realFile, status) || status.type() != fs::file_type::regular_file)
    return refuse("is not a regular file");
  return std::optional<std::string>(std::string(realFile));
}
