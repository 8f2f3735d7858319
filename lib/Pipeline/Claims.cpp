#include "windlass/Pipeline/Claims.h"

#include "FitMemory.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Search/Certificate.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/RunTasks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace windlass;

/// Of the solver, for the bound of one mesh.
static constexpr int64_t kCertifyWork = 100'000'000;

static std::string hash(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

/// Of the costs that a plan is searched with.
static std::string hashOfProfile(const PlanChoice &choice) {
  return choice.profile ? hash(writeProfile(*choice.profile)) : "";
}

static std::vector<int64_t> getMeshName(const plan::StrategyChoice &mesh) {
  return {mesh.groups, mesh.batchParts, mesh.modelRanks};
}

/// By how much a bound falls with each GiB that a device has more.
static double getWorthOfMemory(const search::Problem &problem, const search::Certificate &certificate) {
  // Where nothing is allowed there is no price.
  if (certificate.prices.size() < problem.capacity.size())
    return 0;
  double prices = std::accumulate(certificate.prices.begin(),
                                  certificate.prices.begin() + static_cast<int64_t>(problem.capacity.size()), 0.0);
  return std::ldexp(prices, 30 - search::Certificate::kPriceBits);
}

double SearchSummary::getGap() const {
  if (!boundNanoseconds)
    return 1;
  return costNanoseconds > 0 ? static_cast<double>(costNanoseconds - *boundNanoseconds) / costNanoseconds : 0;
}

void windlass::certify(const std::vector<planner::SearchedMesh> &meshes, const plan::StrategyChoice &chosen,
                       int threads, SearchSummary &search) {
  std::vector<search::NamedCertificate> certificates(meshes.size());
  runTasks(threads, static_cast<int>(meshes.size()), [&](int k) {
    certificates[k] = {getMeshName(meshes[k].choice),
                       search::certify(meshes[k].problem, search.costNanoseconds, kCertifyWork)};
  });
  search.boundNanoseconds = search.costNanoseconds;
  for (const search::NamedCertificate &its : certificates)
    search.boundNanoseconds = std::min(*search.boundNanoseconds, its.certificate.bound);
  for (auto [mesh, its] : llvm::zip_equal(meshes, certificates))
    if (its.name == getMeshName(chosen))
      search.nanosecondsPerGib = getWorthOfMemory(mesh.problem, its.certificate);
  search.certificate = search::printCertificates(certificates);
}

plan::PlanClaims windlass::makeClaims(const SearchSummary &search, const Schedule &schedule, const plan::PlanFile &plan,
                                      const PlanChoice &choice) {
  plan::PlanClaims claims;
  claims.costNanoseconds = search.costNanoseconds;
  claims.boundNanoseconds = search.boundNanoseconds;
  claims.arenaBytes = schedule.bytes - schedule.reserve.total();
  claims.peakBytes = schedule.liveBytes - schedule.reserve.total();
  claims.certificateHash = hash(search.certificate);
  claims.planHash = hashOfPlan(plan);
  claims.profileHash = hashOfProfile(choice);
  return claims;
}

std::string windlass::hashOfPlan(const plan::PlanFile &plan) { return plan::hashPlan(plan, planner::kModelVersion); }

std::string windlass::getCertificatePath(llvm::StringRef planPath) {
  llvm::SmallString<128> path(planPath);
  llvm::sys::path::replace_extension(path, "cert");
  return path.str().str();
}

namespace {

/// "mesh 4 x 1 x 2".
std::string describe(llvm::ArrayRef<int64_t> name) {
  std::string text = "mesh ";
  llvm::raw_string_ostream out(text);
  llvm::interleave(name, out, " x ");
  return text;
}

int failClaim(llvm::StringRef what, int64_t claimed, int64_t is) {
  return fail(Code::claims,
              ("the plan claims " + what + " " + llvm::Twine(claimed) + ", but it is " + llvm::Twine(is)).str());
}

} // namespace

int Compilation::verifyClaims(const plan::PlanClaims &claims, const std::vector<std::string> &pins,
                              llvm::StringRef certificate, const PlanChoice &choice) {
  if (std::string is = hashOfProfile(choice); claims.profileHash != is)
    return fail(Code::claims,
                claims.profileHash.empty()
                    ? "the plan claims costs of the analytic model: leave --costs out"
                    : "the plan claims costs of the profile of hash " + printable(claims.profileHash, 12) +
                          (is.empty() ? ": give it by --costs" : ", but --costs is of hash " + printable(is, 12)));
  CostModel costs(cluster, choice.profile.get(), compiled.precision);
  FailureOr<plan::Pins> pinned = plan::readPins(*module, pins);
  if (failed(pinned))
    return exitCodeOf(Code::pin);
  plan::StrategyChoice chosen = planner::readChoice(*module);
  chosen.pins = std::move(*pinned);
  std::optional<int64_t> cost = planner::evaluatePlan(*module, chosen, costs);
  if (!cost)
    return fail(Code::claims, "the plan claims a cost, but chooses something that the search would not");
  if (claims.costNanoseconds != *cost)
    return failClaim("cost_nanoseconds", claims.costNanoseconds, *cost);
  int64_t reserve = scheduled.reserve.total();
  if (claims.arenaBytes != scheduled.bytes - reserve)
    return failClaim("arena_bytes", claims.arenaBytes, scheduled.bytes - reserve);
  if (claims.peakBytes != scheduled.liveBytes - reserve)
    return failClaim("peak_bytes", claims.peakBytes, scheduled.liveBytes - reserve);

  auto read = search::parseCertificates(certificate);
  if (!read)
    return fail(Code::claims, "the certificate " + llvm::toString(read.takeError()));
  auto search = planner::PlanSearch::create(*unplanned, cluster.getDevices(), costs,
                                            static_cast<int>(choice.searchThreads), pins);
  if (failed(search))
    return kInternal;
  (*search)->setBesideBytes([&](const plan::StrategyChoice &mesh) { return expectCommunication(mesh, cluster); });
  std::vector<planner::SearchedMesh> meshes;
  if (claims.boundNanoseconds)
    meshes = (*search)->getProblems(getSearchedMemory(choice));
  if (read->size() != meshes.size())
    return fail(Code::claims, "the certificate is of " + std::to_string(read->size()) + " meshes, but " +
                                  (claims.boundNanoseconds ? std::to_string(meshes.size()) + " can be chosen"
                                                           : "the plan claims no bound"));
  int64_t bound = *cost;
  for (auto [its, mesh] : llvm::zip_equal(*read, meshes)) {
    if (its.name != getMeshName(mesh.choice))
      return fail(Code::claims, "the certificate has " + describe(its.name) + " where " +
                                    describe(getMeshName(mesh.choice)) + " is wanted");
    std::string prefix = "the certificate of " + describe(its.name) + " ";
    llvm::Expected<int64_t> proven = search::proveBound(mesh.problem, its.certificate);
    if (!proven)
      return fail(Code::claims, prefix + llvm::toString(proven.takeError()));
    if (*proven != its.certificate.bound)
      return fail(Code::claims, prefix + "claims the bound " + std::to_string(its.certificate.bound) + ", but proves " +
                                    std::to_string(*proven));
    bound = std::min(bound, *proven);
  }
  if (claims.boundNanoseconds && *claims.boundNanoseconds != bound)
    return failClaim("bound_nanoseconds", *claims.boundNanoseconds, bound);
  if (std::string is = hash(certificate); claims.certificateHash != is)
    return fail(Code::claims, "the plan claims certificate_hash " + printable(claims.certificateHash, 12) +
                                  ", but the certificate's is " + printable(is, 12));
  return kDone;
}
