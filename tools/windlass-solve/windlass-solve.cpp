// Solves a stored problem.
#include "windlass/Search/Certificate.h"
#include "windlass/Search/ProblemFile.h"
#include "windlass/Search/Solver.h"
#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>

using namespace windlass;

namespace {

constexpr int kNothingFits = 3;

int fail(Code code, llvm::StringRef text) {
  llvm::errs() << "windlass-solve: error: " << text << " [" << rt::diagnostic_code(code) << "]\n";
  return exitCodeOf(code);
}

/// What a file of one certificate proves of the problem.
int verify(const search::Problem &problem, llvm::StringRef path, bool printsJson) {
  auto read = search::readCertificates(path);
  if (!read)
    return fail(Code::claims, llvm::toString(read.takeError()));
  std::string prefix = "the certificate " + printable(path) + " ";
  if (read->size() != 1)
    return fail(Code::claims, prefix + "is of " + std::to_string(read->size()) + " problems, but one is given");
  const search::Certificate &certificate = read->front().certificate;
  llvm::Expected<int64_t> bound = search::proveBound(problem, certificate);
  if (!bound)
    return fail(Code::claims, prefix + llvm::toString(bound.takeError()));
  if (*bound != certificate.bound)
    return fail(Code::claims, prefix + "claims the bound " + std::to_string(certificate.bound) + ", but proves " +
                                  std::to_string(*bound));
  if (printsJson)
    llvm::outs() << "{\"bound\":" << *bound << ",\"verified\":true}\n";
  else
    llvm::outs() << "bound " << *bound << " verified\n";
  return 0;
}

int solve(int argc, char **argv) {
  auto begin = std::chrono::steady_clock::now();
  Flags flags("FILE.json[.gz]", "Chooses a label for each node of a stored problem, and bounds what is possible.",
              "windlass-solve");
  search::SolveOptions options;
  std::string output, certificateOutput, verified;
  int64_t threads = 1;
  bool printsJson = false, isVerbose = false, help = false;
  flags.add("time-limit", "SECONDS", "stop after this long; the answer then depends on the machine",
            [&](llvm::StringRef text) -> std::string {
              if (text.getAsDouble(options.seconds) || !(options.seconds > 0 && options.seconds <= 1e6))
                return "--time-limit takes a number of seconds above 0 and at most 1000000, not '" + text.str() + "'";
              return "";
            });
  flags.addInteger("work-limit", "stop after so many operations, about one a nanosecond (default 10000000000)",
                   options.workLimit, 1, int64_t(1) << 60);
  flags.addInteger("threads", "of them (default 1)", threads, 1, 256);
  flags.addText("o", "FILE", "write the labels there, one in each line", output);
  flags.addText("certificate", "FILE", "write a proof of a bound there, which may be below the one that is printed",
                certificateOutput);
  flags.addText("verify", "FILE", "solve nothing: check such a proof", verified);
  flags.addSwitch("json", "print the result as JSON", printsJson);
  flags.addSwitch("v", "tell what happens on standard error", isVerbose);
  flags.addSwitch("help", "this text", help);
  std::vector<std::string> words(argv + 1, argv + argc), positional;
  if (llvm::is_contained(words, "--help") || llvm::is_contained(words, "-h")) {
    llvm::outs() << flags.getHelp();
    return 0;
  }
  if (std::string error = flags.parse(words, positional, 1, 1); !error.empty())
    return fail(Code::usage, error);
  options.threads = static_cast<int>(threads);

  llvm::Expected<search::Problem> problem = search::readProblem(positional.front());
  if (!problem)
    return fail(Code::input, llvm::toString(problem.takeError()));
  if (!verified.empty())
    return verify(*problem, verified, printsJson);
  auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  // The time to read counts.
  if (options.seconds >= 0)
    options.seconds = std::max(0.0, options.seconds - elapsed());
  if (isVerbose)
    options.log = [&](const std::string &line) { llvm::errs() << llvm::format("%7.2f s ", elapsed()) << line << "\n"; };
  search::SolveResult result = search::solve(*problem, options);

  if (result.isFeasible() && !output.empty())
    if (std::string error = writeFile(output, search::printSolution(result.solution)); !error.empty())
      return fail(Code::output, error);
  if (!certificateOutput.empty()) {
    search::Certificate proof = search::certify(*problem, result.cost, options.workLimit);
    if (std::string error = writeFile(certificateOutput, search::printCertificates({{{}, proof}})); !error.empty())
      return fail(Code::output, error);
  }
  if (printsJson) {
    llvm::json::OStream writer(llvm::outs());
    writer.object([&] {
      if (result.isFeasible())
        writer.attribute("cost", result.cost);
      else
        writer.attribute("cost", nullptr);
      writer.attribute("bound", result.bound);
      writer.attribute("feasible", result.isFeasible());
      writer.attribute("seconds", elapsed());
    });
    llvm::outs() << "\n";
  } else if (result.isFeasible()) {
    llvm::outs() << "cost " << result.cost << ", bound " << result.bound << (result.isOptimal() ? ": optimal" : "")
                 << "\n";
  }
  llvm::outs().flush();
  if (!result.isFeasible()) {
    llvm::errs() << "windlass-solve: "
                 << (result.bound >= search::kForbidden ? "no solution fits" : "found no solution that fits") << "\n";
    return kNothingFits;
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  // A reader that closes our output early is no error of ours.
  std::signal(SIGPIPE, SIG_IGN);
  int code = solve(argc, argv);
  if (std::string error = finishOutput(); !error.empty()) {
    code = fail(Code::output, error);
    finishOutput();
  }
  return code;
}
