// JSON of files that people edit: what is doubtful is refused, and the message says where.
#ifndef WINDLASS_SUPPORT_STRICTJSON_H
#define WINDLASS_SUPPORT_STRICTJSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace windlass {

/// Makes an error of one line.
llvm::Error makeError(const llvm::Twine &message);

/// Parses a document. Refuses more than `maxBytes` of text, nesting deeper than 32, objects that have a key twice, and
/// what would take more than about 1 GiB in memory; all of these before the parser proper sees the text.
llvm::Expected<llvm::json::Value> parseStrictJson(llvm::StringRef text, size_t maxBytes = 256u << 20);

/// Reads and parses a regular file of at most `mostBytes`, a multiple of 1 MiB. Fails with one line that names the file
/// and says what it was read as, such as "cluster".
llvm::Expected<llvm::json::Value> readStrictJson(llvm::StringRef path, int64_t mostBytes, llvm::StringRef readAs);

/// Writes a value with its keys sorted and the shortest numbers that read back the same: on one line, or with an entry
/// per line down to `lineDepth` levels of objects and lists; `depth` is how deep the value itself stands.
void printJson(llvm::raw_ostream &os, const llvm::json::Value &value, int lineDepth = 0, int depth = 0);

/// Reads the fields of one object. The first failure stays in `takeError`; after it, fields read as defaults.
class ObjectReader {
public:
  /// Reads `value`; `path` says where the object is, such as "mesh" or "functions.update", and is empty for the
  /// document.
  ObjectReader(const llvm::json::Value &value, std::string path);

  /// Reads the field `key` by its kind. Fails where it is missing or, for an integer, not in [minimum, maximum].
  int64_t getInteger(llvm::StringRef key, int64_t minimum, int64_t maximum);
  /// Reads a number above 0 and at most `maximum`.
  double getNumber(llvm::StringRef key, double maximum);
  std::string getString(llvm::StringRef key);
  bool getBoolean(llvm::StringRef key);
  std::vector<std::string> getStrings(llvm::StringRef key);
  std::vector<int64_t> getIntegers(llvm::StringRef key);
  /// Returns the field, or null where the object has no such key; marks the key as known.
  const llvm::json::Value *find(llvm::StringRef key);
  /// Returns the field; fails where the object has no such key.
  const llvm::json::Value *get(llvm::StringRef key);
  /// Returns all keys, sorted: for objects that map names.
  std::vector<std::string> getKeys() const;

  std::string getPath(llvm::StringRef key) const;
  void fail(llvm::StringRef key, const llvm::Twine &message);
  bool failed() const { return !message.empty(); }
  /// Returns the first failure, else an error for a key that nothing has asked for, else success.
  llvm::Error takeError();

private:
  const llvm::json::Object *object = nullptr;
  std::string path, message;
  std::set<std::string> known;
};

} // namespace windlass

#endif
