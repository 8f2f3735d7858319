// windlass cache: the built programs, and room for others.
#include "CommandSupport.h"
#include "windlass/Programs/ProgramStore.h"

#include "windlass/Programs/ProgramCache.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <ctime>

using namespace windlass;

/// Returns the local time of `seconds` since 1970.
static std::string timeText(int64_t seconds) {
  std::time_t time = static_cast<std::time_t>(seconds);
  std::tm parts = {};
  char text[32] = {};
  localtime_r(&time, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

static std::string sizeText(int64_t bytes) { return llvm::formatv("{0,9:f1} MiB", double(bytes) / (1 << 20)); }

static const char *stateOf(const StoredEntry &entry) {
  return entry.isInUse ? "in use" : entry.isComplete ? "kept" : "leftover";
}

static void printJson(const ProgramStore &store, llvm::ArrayRef<std::string> removed) {
  llvm::json::OStream json(llvm::outs(), 1);
  json.object([&] {
    json.attribute("folder", llvm::json::fixUTF8(store.getRoot()));
    json.attribute("bytes", store.getBytes());
    json.attribute("limit_bytes", store.getLimit());
    json.attributeArray("removed", [&] {
      for (const std::string &name : removed)
        json.value(llvm::json::fixUTF8(name));
    });
    json.attributeArray("entries", [&] {
      for (const StoredEntry &entry : store.list())
        json.object([&] {
          json.attribute("name", llvm::json::fixUTF8(entry.name));
          json.attribute("folder", llvm::json::fixUTF8(entry.folder));
          json.attribute("bytes", entry.bytes);
          json.attribute("last_use", entry.lastUse);
          json.attribute("state", stateOf(entry));
        });
    });
  });
  llvm::outs() << "\n";
}

static void printText(const ProgramStore &store, llvm::ArrayRef<std::string> removed) {
  for (const std::string &name : removed)
    llvm::outs() << "removed " << oneLine(name) << "\n";
  for (const StoredEntry &entry : store.list()) {
    llvm::outs() << oneLine(entry.name) << sizeText(entry.bytes) << "  " << stateOf(entry);
    if (entry.isComplete)
      llvm::outs() << ", used " << timeText(entry.lastUse);
    llvm::outs() << "\n";
  }
  llvm::outs() << oneLine(store.getRoot()) << " holds" << sizeText(store.getBytes()) << " of at most"
               << sizeText(store.getLimit()) << "\n";
}

int windlass::runCache(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "cache [list] | cache clean [--keep SIZE] | cache limit SIZE | cache prepare [FOLDER]",
      "list shows the programs that train and profile have built and kept, with their sizes and when each was\n"
      "last used; clean removes the programs that no run uses; limit sets how much may be kept (default 10GiB): beyond "
      "it,\n"
      "the least recently used programs go after each build. A program that is gone is built again. prepare\n"
      "builds the runtime that all programs link, for which the first of them would wait, among the programs or\n"
      "in FOLDER, from which it removes other builds.\n"
      "For example: windlass cache clean --keep 2GiB");
  CommonFlags common;
  std::string keep;
  flags.addText("keep", "SIZE", "of clean: remove the least recently used programs until SIZE is left, such as 2GiB",
                keep);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 0, 2, code))
    return code;
  std::string action = positional.empty() ? "list" : positional[0];
  if (action != "list" && action != "clean" && action != "limit" && action != "prepare")
    return console.fail(Code::usage,
                        "unknown action " + printable(action) + "; cache knows: list, clean, limit, prepare");
  if (action == "prepare") {
    BuildEvents events = printEvents(console, common);
    // This build shows no progress.
    events.progress = nullptr;
    rt::status prepared = prepareRuntime(positional.size() > 1 ? positional[1] : "", events);
    return prepared.is_ok() ? kDone : console.fail(prepared);
  }
  if (positional.size() != (action == "limit" ? 2 : positional.empty() ? 0 : 1))
    return console.fail(Code::usage, action == "limit" ? "cache limit needs a size, such as 10GiB"
                                                       : "cache " + action + " takes nothing more, but " +
                                                             printable(positional.back()) + " is given");
  if (flags.isGiven("keep") && action != "clean")
    return console.fail(Code::usage, "--keep is for cache clean");
  int64_t bytes = 0;
  if (std::string size = action == "limit" ? positional[1] : keep; !size.empty() && !parseBytes(size, bytes))
    return console.fail(Code::usage, printable(size) + " is no size; give bytes or a number with KiB, MiB or GiB");

  ProgramStore store;
  if (rt::status opened = store.open().as(Code::program_cache); !opened.is_ok())
    return console.fail(opened);
  std::vector<std::string> removed;
  if (action == "limit")
    if (rt::status set = store.setLimit(bytes).as(Code::program_cache); !set.is_ok())
      return console.fail(set);
  if (action != "list")
    removed = store.trim(bytes);
  if (common.json)
    printJson(store, removed);
  else if (!common.quiet)
    printText(store, removed);
  return kDone;
}
