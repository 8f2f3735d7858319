#include "windlass/Support/LauncherFilter.h"

#include <algorithm>

using namespace windlass;

/// The most bytes of a launcher's message; a longer one was printed by a rank.
static constexpr size_t kLongestMessage = 1 << 16, kMostOwnWords = 4096;

llvm::ArrayRef<LauncherFilter::Frame> LauncherFilter::getFrames() {
  static constexpr llvm::StringLiteral rule(
      "--------------------------------------------------------------------------\n");
  static constexpr Frame frames[] = {{rule, rule}, {"mpirun: Forwarding signal ", "\n"}};
  return frames;
}

void LauncherFilter::hand(llvm::StringRef text) {
  if (text.empty())
    return;
  passed = true;
  pass(text);
}

/// Passes on what comes before the first message, or may not become one. Returns false where there is none yet.
bool LauncherFilter::findMessage() {
  llvm::StringRef text = pending;
  size_t first = llvm::StringRef::npos, held = 0;
  for (const Frame &each : getFrames()) {
    if (size_t at = text.find(each.begin); at < first) {
      first = at;
      frame = &each;
    }
    // What has come of a beginning is held back until the rest decides.
    for (size_t size = std::min(text.size(), each.begin.size() - 1); size > held; --size)
      if (text.ends_with(each.begin.take_front(size)))
        held = size;
  }
  hand(frame ? text.take_front(first) : text.drop_back(held));
  pending.erase(0, frame ? first + frame->begin.size() : pending.size() - held);
  return frame;
}

/// Takes out the message that has begun. Returns false where its end is still to come.
bool LauncherFilter::endMessage() {
  size_t end = llvm::StringRef(pending).find(frame->end);
  if (end == llvm::StringRef::npos && pending.size() <= kLongestMessage)
    return false;
  if (end == llvm::StringRef::npos) {
    hand(frame->begin);
  } else {
    ownWords += llvm::StringRef(pending).take_front(std::min(end, kMostOwnWords - ownWords.size())).str();
    pending.erase(0, end + frame->end.size());
  }
  frame = nullptr;
  return true;
}

void LauncherFilter::add(llvm::StringRef bytes) {
  pending += bytes.str();
  while (frame ? endMessage() : findMessage()) {
  }
}

void LauncherFilter::finish() {
  if (frame)
    ownWords += llvm::StringRef(pending).take_front(kMostOwnWords - ownWords.size()).str();
  else
    hand(pending);
  pending.clear();
}
