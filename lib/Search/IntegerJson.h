// JSON that holds integers, strings that nobody reads, lists and objects with known keys: read from the text in one
// pass, because a stored problem has a hundred million bytes of tables, for which a tree of values would take
// gigabytes.
#ifndef WINDLASS_LIB_SEARCH_INTEGERJSON_H
#define WINDLASS_LIB_SEARCH_INTEGERJSON_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <functional>
#include <string>

namespace windlass::search {

/// A reader of a text. The first failure stays; after it nothing is read and integers are 0.
class IntegerJson {
public:
  explicit IntegerJson(llvm::StringRef text) : text(text) {}

  struct Field {
    /// A key that may be left out ends with a question mark.
    llvm::StringRef key;
    std::function<void()> read;
  };
  void object(llvm::ArrayRef<Field> fields);
  template <typename Function> void array(Function readElement) {
    if (!expect('['))
      return;
    if (take(']'))
      return;
    do {
      readElement();
    } while (!failed() && take(','));
    expect(']');
  }
  /// Reads an integer from 0 to 2^63 - 1.
  int64_t integer();
  /// Reads the same, or less than 0 where a minus is in front.
  int64_t signedInteger() { return take('-') ? -integer() : integer(); }
  void skipString() { string(); }
  /// Fails where anything follows.
  void finish();

  void fail(const llvm::Twine &what);
  bool failed() const { return !error.empty(); }
  const std::string &message() const { return error; }

private:
  void skipSpace() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
      ++at;
  }
  bool take(char c) {
    skipSpace();
    if (failed() || at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool expect(char c);
  llvm::StringRef string();

  llvm::StringRef text;
  size_t at = 0;
  std::string error;
};

} // namespace windlass::search

#endif
