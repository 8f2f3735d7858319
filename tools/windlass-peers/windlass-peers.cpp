// Answers the questions that other planners were given; benchmarks/peers asks them.
#include "Peers.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <csignal>

using namespace windlass;

/// The most bytes of a graph's file.
static constexpr int64_t kMostGraphBytes = int64_t(64) << 20;

static int fail(Code code, llvm::StringRef text) {
  llvm::errs() << "windlass-peers: error: " << text << " [" << rt::diagnostic_code(code) << "]\n";
  return exitCodeOf(code);
}

static int print(llvm::Expected<llvm::json::Value> answer) {
  if (!answer)
    return fail(Code::input, llvm::toString(answer.takeError()));
  printJson(llvm::outs(), *answer);
  llvm::outs() << "\n";
  return 0;
}

/// Reads the words after the subcommand, of which one is no flag: `path`. Returns the exit code where nothing is left
/// to do.
static std::optional<int> readWords(Flags &flags, llvm::ArrayRef<std::string> words, std::string &path) {
  bool help = false;
  flags.addSwitch("help", "this text", help);
  if (llvm::is_contained(words, "--help")) {
    llvm::outs() << flags.getHelp();
    return 0;
  }
  std::vector<std::string> positional;
  if (std::string error = flags.parse(words, positional, 1, 1); !error.empty())
    return fail(Code::usage, error);
  path = positional.front();
  return std::nullopt;
}

static int runPiper(llvm::ArrayRef<std::string> words) {
  Flags flags("piper GRAPH.json",
              "Splits a graph of Piper's form into stages, of which the slowest takes the least time.",
              "windlass-peers");
  peers::PiperQuestion question = {8, int64_t(8) << 30, 480, 25.0 * (int64_t(1) << 30)};
  flags.addInteger("devices", "the number of devices (default 8)", question.devices, 1, 1 << 20);
  flags.addInteger("memory", "the bytes of a device (default 8 GiB)", question.memoryBytes, 1, int64_t(1) << 50);
  flags.addInteger("micro-batches", "the number of micro-batches in a batch (default 480)", question.microBatches, 1,
                   1 << 20);
  flags.add("bandwidth", "BYTES", "bytes per second between any two devices (default 25 GiB)",
            [&](llvm::StringRef text) -> std::string {
              if (text.getAsDouble(question.bandwidth) || !(question.bandwidth > 0 && question.bandwidth <= 1e18))
                return "--bandwidth takes a number of bytes above 0, not '" + text.str() + "'";
              return "";
            });
  std::string path;
  if (std::optional<int> code = readWords(flags, words, path))
    return *code;
  llvm::Expected<llvm::json::Value> graph = readStrictJson(path, kMostGraphBytes, "graph");
  return print(graph ? peers::solvePiper(*graph, question) : graph.takeError());
}

static int runAceso(llvm::ArrayRef<std::string> words) {
  Flags flags("aceso FOLDER", "Plans a case of Aceso's tables so that an iteration takes the least time.",
              "windlass-peers");
  std::string path;
  if (std::optional<int> code = readWords(flags, words, path))
    return *code;
  return print(peers::solveAceso(path));
}

int main(int argc, char **argv) {
  // A reader that closes our output early is no error of ours.
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> words(argv + 1, argv + argc);
  std::string name = words.empty() ? "" : words.front();
  if (name != "piper" && name != "aceso")
    return fail(Code::usage, "wants a subcommand: piper or aceso");
  words.erase(words.begin());
  int code = name == "piper" ? runPiper(words) : runAceso(words);
  if (std::string error = finishOutput(); !error.empty()) {
    code = fail(Code::output, error);
    finishOutput();
  }
  return code;
}
