// JSON of integers, strings that are skipped, lists and objects with known keys, read from the text in one pass: a
// stored problem has a hundred million bytes of tables, for which a tree of values would take gigabytes.
#ifndef WINDLASS_LIB_SEARCH_INTEGERJSON_H
#define WINDLASS_LIB_SEARCH_INTEGERJSON_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <functional>
#include <string>

namespace windlass::search {

/// A reader of a text. The first failure is kept; after it nothing is read and integers are 0.
class IntegerJson {
public:
  explicit IntegerJson(llvm::StringRef text) : text(text) {}

  struct Field {
    /// The key; one that may be left out ends with a question mark.
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
  /// Reads an integer in the same range, negated where a minus precedes it.
  int64_t signedInteger() { return take('-') ? -integer() : integer(); }
  void skipString() { string(); }
  /// Fails where anything follows in the text.
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
