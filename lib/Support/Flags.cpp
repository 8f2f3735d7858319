#include "windlass/Support/Flags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace windlass;

static std::string dashed(llvm::StringRef name) { return (name.size() == 1 ? "-" : "--") + name.str(); }

void Flags::add(std::string name, std::string value, std::string help,
                std::function<std::string(llvm::StringRef)> set) {
  flags.push_back({std::move(name), std::move(value), std::move(help), std::move(set)});
}

void Flags::addSwitch(std::string name, std::string help, bool &target) {
  add(std::move(name), "", std::move(help), [&target](llvm::StringRef) {
    target = true;
    return std::string();
  });
}

void Flags::addText(std::string name, std::string value, std::string help, std::string &target) {
  add(std::move(name), std::move(value), std::move(help), [&target](llvm::StringRef text) {
    target = text.str();
    return std::string();
  });
}

void Flags::addList(std::string name, std::string value, std::string help, std::vector<std::string> &target) {
  add(std::move(name), std::move(value), std::move(help), [&target](llvm::StringRef text) {
    target.push_back(text.str());
    return std::string();
  });
}

void Flags::addInteger(std::string name, std::string help, int64_t &target, int64_t least, int64_t most) {
  std::string shown = dashed(name);
  add(std::move(name), "N", std::move(help), [&target, shown, least, most](llvm::StringRef text) -> std::string {
    int64_t value;
    if (text.getAsInteger(10, value) || value < least || value > most)
      return shown + " takes a whole number from " + std::to_string(least) + " to " + std::to_string(most) + ", not '" +
             text.str() + "'";
    target = value;
    return "";
  });
}

void Flags::addChoice(std::string name, std::vector<std::string> choices, std::string help, std::string &target) {
  std::string shown = dashed(name);
  std::string value = llvm::join(choices, "|");
  add(std::move(name), value, std::move(help), [&target, shown, choices, value](llvm::StringRef text) -> std::string {
    if (!llvm::is_contained(choices, text.str()))
      return shown + " takes one of " + value + ", not '" + text.str() + "'";
    target = text.str();
    return "";
  });
}

void Flags::addHeading(std::string text) { flags.push_back({"", "", std::move(text), {}}); }

Flags::Flag *Flags::find(llvm::StringRef name) {
  for (Flag &flag : flags)
    if (!flag.name.empty() && flag.name == name)
      return &flag;
  return nullptr;
}

bool Flags::isGiven(llvm::StringRef name) const {
  return llvm::any_of(flags, [&](const Flag &flag) { return flag.name == name && flag.given; });
}

std::string windlass::nearestOf(llvm::StringRef word, llvm::ArrayRef<std::string> candidates) {
  // Names of files may have thousands of letters, and there may be thousands of them.
  constexpr size_t kLongest = 256;
  if (word.size() > kLongest)
    return "";
  std::string best;
  unsigned bestDistance = 1 + static_cast<unsigned>(word.size()) / 3;
  for (const std::string &candidate : candidates) {
    if (candidate.size() > word.size() + bestDistance)
      continue;
    unsigned distance = word.edit_distance(candidate, true, bestDistance);
    // Two letters change places more often than one is missing and another one wrong.
    bool isNearer = distance < bestDistance || (candidate.size() == word.size() && best.size() != word.size());
    if (distance <= bestDistance && (best.empty() || isNearer)) {
      best = candidate;
      bestDistance = distance;
    }
  }
  if (!best.empty())
    return best;
  // Or it begins in the same way: "bandwidth" for "bandwidth_bytes_per_s".
  size_t longest = std::max<size_t>(2, word.size() / 2);
  for (const std::string &candidate : candidates) {
    size_t common = 0;
    while (common < std::min(word.size(), candidate.size()) && word[common] == candidate[common])
      ++common;
    if (common > longest || (!best.empty() && common == longest && candidate.size() < best.size())) {
      best = candidate;
      longest = common;
    }
  }
  return best;
}

std::string Flags::parse(llvm::ArrayRef<std::string> words, std::vector<std::string> &positional, size_t least,
                         size_t most) {
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    if (!word.starts_with("-") || word == "-") {
      positional.push_back(word.str());
      continue;
    }
    auto [name, value] = word.ltrim('-').split('=');
    bool hasValue = word.contains('=');
    Flag *flag = find(name);
    if (!flag || word.starts_with("---") || (name.size() > 1) != word.starts_with("--")) {
      std::vector<std::string> names;
      for (const Flag &candidate : flags)
        if (!candidate.name.empty())
          names.push_back(candidate.name);
      std::string nearest = nearestOf(name, names);
      return "unknown flag '" + word.split('=').first.str() + "'" +
             (nearest.empty() ? "; see --help" : "; did you mean " + dashed(nearest) + "?");
    }
    if (flag->value.empty()) {
      if (hasValue)
        return dashed(name) + " takes no value";
    } else if (!hasValue && flag->value.front() == '[') {
      if (i + 1 < words.size() && !llvm::StringRef(words[i + 1]).starts_with("-"))
        value = words[++i];
    } else if (!hasValue) {
      if (i + 1 == words.size())
        return dashed(name) + " needs a value (" + flag->value + ")";
      value = words[++i];
    }
    if (std::string error = flag->set(value); !error.empty())
      return error;
    flag->given = true;
  }
  if (positional.size() < least || positional.size() > most)
    return "expected '" + usage + "'";
  return "";
}

std::string Flags::getHelp() const {
  std::string text = "usage: " + program + " " + usage + "\n" + summary + "\n";
  for (const Flag &flag : flags) {
    if (flag.name.empty()) {
      text += "\n" + flag.help + "\n";
      continue;
    }
    std::string left = "  " + dashed(flag.name) + (flag.value.empty() ? "" : " " + flag.value);
    text +=
        left + (left.size() < 28 ? std::string(28 - left.size(), ' ') : "\n" + std::string(28, ' ')) + flag.help + "\n";
  }
  return text;
}

bool windlass::parseBytes(llvm::StringRef text, int64_t &bytes, int64_t least) {
  constexpr int64_t kMost = int64_t(1) << 60;
  int64_t unit = 1;
  if (text.consume_back("GiB"))
    unit = int64_t(1) << 30;
  else if (text.consume_back("MiB"))
    unit = int64_t(1) << 20;
  else if (text.consume_back("KiB"))
    unit = int64_t(1) << 10;
  auto [whole, part] = text.trim().split('.');
  // A part of a unit has a digit on both sides of the point, and few enough of them to be exact.
  constexpr size_t kMostDigits = 9;
  int64_t count, parts = 0, scale = 1;
  bool hasPart = text.contains('.');
  if (whole.getAsInteger(10, count) || count < 0 || count > kMost / unit ||
      (hasPart &&
       (unit == 1 || part.size() > kMostDigits || !llvm::all_of(part, llvm::isDigit) || part.getAsInteger(10, parts))))
    return false;
  for (size_t i = 0; i < part.size(); ++i)
    scale *= 10;
  int64_t size = count * unit + parts * unit / scale;
  if (size < least || size > kMost)
    return false;
  bytes = size;
  return true;
}
