// windlass plan --verify: whether a plan's claims are true.
#include "CommandSupport.h"
#include "windlass/Pipeline/Claims.h"

#include "windlass/Support/InputFile.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int windlass::verifyPlan(Console &console, const std::string &model, const std::string &planFile, CompileFlags &flags,
                         const Flags &given, const CommonFlags &common) {
  for (llvm::StringRef flag : {"o", "export-onnx", "dump-problem", "start"})
    if (given.isGiven(flag))
      return console.fail(Code::usage, "--verify writes nothing: leave --" + flag.str() + " out");
  plan::PlanFile plan;
  if (int code = readPlanWithClaims(console, planFile, plan))
    return code;
  if (!plan.claims)
    return console.fail(Code::claims, printable(planFile) + " claims nothing: only plans that --strategy auto made do");
  if (std::string is = hashOfPlan(plan); plan.claims->planHash != is)
    return console.fail(Code::claims, "the plan claims plan_hash " + printable(plan.claims->planHash, 12) +
                                          ", but it is " + printable(is, 12) +
                                          ": it was edited since, or another windlass made it");
  std::string certificatePath = getCertificatePath(planFile);
  auto certificate = readInputFile(certificatePath, int64_t(128) << 20, "certificate");
  if (!certificate)
    return console.fail(Code::claims, llvm::toString(certificate.takeError()));
  auto context = makeContext(console, common.verbose);
  Compilation compilation(*context, model, printEvents(console));
  int code;
  if ((code = applyPlan(console, compilation, plan, flags, given, Purpose::program)) ||
      (code = console.codeOf(
           compilation.verifyClaims(*plan.claims, plan.settings.pins, (*certificate)->getBuffer(), flags.choice))))
    return code;
  const plan::PlanClaims &claims = *plan.claims;
  if (common.json) {
    llvm::json::OStream json(llvm::outs(), 2);
    json.object([&] {
      json.attribute("arena_bytes", claims.arenaBytes);
      json.attribute("bound_nanoseconds", claims.boundNanoseconds);
      json.attribute("bound_offload", plan::stringifyOffload(claims.boundOffload));
      json.attributeArray("bound_stages", [&] {
        for (int64_t stages : claims.boundNanoseconds ? claims.boundStages : std::vector<int64_t>())
          json.value(stages);
      });
      json.attribute("cost_nanoseconds", claims.costNanoseconds);
      json.attribute("peak_bytes", claims.peakBytes);
      json.attribute("verified", true);
    });
    llvm::outs() << "\n";
  } else if (!common.quiet) {
    llvm::outs() << "verified   " << planFile << ", " << certificatePath << "\n"
                 << "plan       legal, and as the model, the cluster and the settings need it\n"
                 << llvm::formatv("cost       {0} ns by the search's model\n", claims.costNanoseconds)
                 << (claims.boundNanoseconds
                         ? llvm::formatv(
                               "bound      {0} ns, a lower bound of the steps of all searched plans {1}{2}{3}, "
                               "proven in integers\n",
                               *claims.boundNanoseconds, describeBoundStages(claims.boundStages),
                               claims.boundOffload == plan::Offload::none
                                   ? ""
                                   : " with --offload " + plan::stringifyOffload(claims.boundOffload).str(),
                               plan.settings.merge == 1 ? "" : " with --merge " + std::to_string(plan.settings.merge))
                               .str()
                         : "bound      none claimed\n")
                 << llvm::formatv("memory     {0} bytes per device, of which at most {1} live at one time\n",
                                  claims.arenaBytes, claims.peakBytes);
  }
  return kDone;
}
