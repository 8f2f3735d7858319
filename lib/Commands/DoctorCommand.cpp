// windlass doctor: what this machine has, and what is lost without the rest.
#include "CommandSupport.h"

#include "windlass/Doctor/Doctor.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;

static const char *nameOf(doctor::State state) {
  switch (state) {
  case doctor::State::present:
    return "present";
  case doctor::State::limited:
    return "limited";
  case doctor::State::missing:
    return "missing";
  }
  return "";
}

static void printJson(llvm::ArrayRef<doctor::Finding> findings) {
  llvm::json::OStream json(llvm::outs(), 2);
  json.array([&] {
    for (const doctor::Finding &finding : findings)
      json.object([&] {
        json.attribute("name", finding.name);
        json.attribute("state", nameOf(finding.state));
        json.attribute("found", llvm::json::fixUTF8(finding.found));
        json.attribute("loss", finding.loss);
        json.attribute("needed", finding.needed.has_value());
      });
  });
  llvm::outs() << "\n";
}

int windlass::runDoctor(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "doctor",
      "Looks at this machine: compilers, MLIR, MPI, GEMM kernels, GPUs, NCCL, processors, memory, shared\n"
      "memory, disk, variables of the environment; says what is missing and what is lost without it. Exit code 0 when "
      "models can be trained.\n"
      "For example: windlass doctor --json");
  CommonFlags common;
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 0, 0, code))
    return code;
  std::vector<doctor::Finding> findings;
  doctor::examineTools(findings);
  doctor::examineLibraries(findings);
  doctor::examineMachine(findings);
  doctor::examineEnvironment(findings);
  if (common.json)
    printJson(findings);
  else
    for (const doctor::Finding &finding : findings) {
      if (common.quiet && finding.state == doctor::State::present)
        continue;
      std::string name = finding.name + std::string(19 - std::min<size_t>(18, finding.name.size()), ' ');
      llvm::outs() << name << nameOf(finding.state) << (finding.found.empty() ? "" : "  ") << finding.found << "\n";
      if (!finding.loss.empty())
        llvm::outs() << std::string(19, ' ') << "         " << finding.loss << "\n";
    }
  for (const doctor::Finding &finding : findings)
    if (finding.needed && finding.state == doctor::State::missing)
      return console.fail(*finding.needed, finding.name + " is missing: " + finding.loss);
  return kDone;
}
