// What comments of emitted code say to a person.
#ifndef WINDLASS_TARGET_CPP_LABEL_H
#define WINDLASS_TARGET_CPP_LABEL_H

#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <string>

namespace windlass::cpp {

/// The text of a comment: words of the compiler's own, and names of the model. A model's names may hold anything; a
/// label takes only their letters, digits, '_' and '.', so that no name ends a comment or continues its line.
class Label {
public:
  /// The most characters of one name that a label takes.
  static constexpr size_t kLongestName = 100;

  Label() = default;
  /// Makes a label of words of the compiler's own.
  template <size_t size> Label(const char (&words)[size]) : text(words) {}
  /// Makes a label of a name of the model, with '_' for each byte that a label cannot have. A longer name keeps its
  /// end, by which names in nested scopes differ.
  static Label ofName(llvm::StringRef name);
  static Label ofNumber(size_t number);

  friend Label operator+(Label first, const Label &second) {
    first.text += second.text;
    return first;
  }
  friend bool operator==(const Label &a, const Label &b) { return a.text == b.text; }
  bool empty() const { return text.empty(); }
  const std::string &getText() const { return text; }

private:
  std::string text;
};

} // namespace windlass::cpp

#endif
