#include "ProgramFlags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace windlass;

llvm::ArrayRef<ProgramFlag> windlass::getProgramFlags() {
  using V = ProgramValue;
  static constexpr ProgramFlag flags[] = {
      {"data", V::Needed},
      {"bytes", V::None},
      {"inputs", V::Needed},
      {"steps", V::Needed},
      {"lr", V::Needed},
      {"betas", V::Needed},
      {"eps", V::Needed},
      {"momentum", V::Needed},
      {"weight-decay", V::Needed},
      {"clip-norm", V::Needed},
      {"lr-schedule", V::Needed},
      {"schedule-steps", V::Needed},
      {"warmup", V::Needed},
      {"seed", V::Needed},
      {"weights", V::Needed},
      {"init", V::Needed},
      {"resume", V::Optional},
      {"checkpoint-every", V::Needed},
      {"checkpoint-initial", V::None},
      {"keep", V::Needed},
      {"eval-data", V::Needed},
      {"eval-every", V::Needed},
      {"eval-batches", V::Needed},
      {"threads", V::Needed},
      {"communicator", V::Needed},
      {"dump-gradients", V::Needed},
      {"profile", V::None},
      {"on-nan", V::Needed},
  };
  return flags;
}

std::string windlass::takeProgramFlags(std::vector<std::string> &words, std::vector<std::string> &handedOn) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::StringRef word = words[i];
    auto found = getProgramFlags().end();
    if (word.starts_with("--"))
      found = llvm::find_if(getProgramFlags(),
                            [&](const ProgramFlag &flag) { return word.drop_front(2).split('=').first == flag.name; });
    if (found == getProgramFlags().end()) {
      rest.push_back(words[i]);
      continue;
    }
    handedOn.push_back(words[i]);
    if (found->value == ProgramValue::None || word.contains('='))
      continue;
    bool hasNext = i + 1 < words.size();
    if (found->value == ProgramValue::Needed) {
      if (!hasNext)
        return "--" + std::string(found->name) + " needs a value";
      handedOn.push_back(words[++i]);
    } else if (hasNext && !llvm::StringRef(words[i + 1]).starts_with("-")) {
      handedOn.push_back(words[++i]);
    }
  }
  words = std::move(rest);
  return "";
}
