// Command-line flags of one subcommand: declared once, they give the parser and the help text.
#ifndef WINDLASS_SUPPORT_FLAGS_H
#define WINDLASS_SUPPORT_FLAGS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace windlass {

class Flags {
public:
  /// Declares a subcommand: `usage` is what follows the program's name, `summary` one sentence.
  Flags(std::string usage, std::string summary, std::string program = "windlass")
      : usage(std::move(usage)), summary(std::move(summary)), program(std::move(program)) {}

  /// Adds `--name VALUE` or `--name=VALUE`; `-x` where the name has one letter; a `value` in brackets may be left out.
  /// `set` returns an error text or nothing.
  void add(std::string name, std::string value, std::string help, std::function<std::string(llvm::StringRef)> set);
  /// Adds a flag without a value.
  void addSwitch(std::string name, std::string help, bool &target);
  void addText(std::string name, std::string value, std::string help, std::string &target);
  void addList(std::string name, std::string value, std::string help, std::vector<std::string> &target);
  /// Adds a flag for an integer in [least, most].
  void addInteger(std::string name, std::string help, int64_t &target, int64_t least, int64_t most);
  /// Adds a flag for one of `choices`.
  void addChoice(std::string name, std::vector<std::string> choices, std::string help, std::string &target);
  /// Adds a heading in the help text for the flags that follow.
  void addHeading(std::string text);

  /// Reads the words after the subcommand. Words that are no flags go to `positional`, of which `least` to `most` are
  /// wanted. Returns an error text that names the nearest flag for an unknown one, or nothing.
  std::string parse(llvm::ArrayRef<std::string> words, std::vector<std::string> &positional, size_t least, size_t most);

  /// Returns whether a flag has that name.
  bool has(llvm::StringRef name) { return find(name) != nullptr; }
  /// Returns whether the flag was given.
  bool isGiven(llvm::StringRef name) const;
  std::string getHelp() const;

private:
  struct Flag {
    std::string name, value, help;
    std::function<std::string(llvm::StringRef)> set;
    bool given = false;
  };
  Flag *find(llvm::StringRef name);
  std::string usage, summary, program;
  std::vector<Flag> flags; // a heading has no name
};

/// Returns the candidate nearest to `word`, or nothing when none is near.
std::string nearestOf(llvm::StringRef word, llvm::ArrayRef<std::string> candidates);

/// Reads the bytes of a size such as 1048576, 512MiB or 1.5GiB; a part of a byte is dropped. Returns false for anything
/// else, and for sizes below `least`.
bool parseBytes(llvm::StringRef text, int64_t &bytes, int64_t least = 1);

} // namespace windlass

#endif
