#include "windlass/Support/Glob.h"

#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace windlass;

llvm::Expected<std::vector<std::string>> windlass::matchNames(llvm::StringRef glob, llvm::ArrayRef<std::string> names,
                                                              llvm::StringRef what) {
  if (llvm::is_contained(names, glob))
    return std::vector<std::string>{glob.str()};
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob, /*MaxSubPatterns=*/1024);
  if (!pattern)
    return makeError(printable(glob) + " is not a glob: " + llvm::toString(pattern.takeError()));
  std::vector<std::string> matches;
  for (const std::string &name : names)
    if (pattern->match(name))
      matches.push_back(name);
  if (!matches.empty())
    return matches;
  std::string nearest = nearestOf(glob, names);
  return makeError("no " + what + " is called " + printable(glob) +
                   (nearest.empty() ? "" : "; the nearest is " + printable(nearest)));
}

std::string windlass::escapeGlob(llvm::StringRef name) {
  std::string pattern;
  for (char c : name) {
    if (llvm::StringRef("*?[]{}\\^!").contains(c))
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}
