#include "windlass/Pipeline/Claims.h"

#include "Reserve.h"

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

/// The operations that the solver may spend on the bound of one mesh.
static constexpr int64_t kCertifyWork = 100'000'000;

static std::string hash(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

/// Returns the hash of the profile of `choice`; empty where costs come from the analytic model.
static std::string hashOfProfile(const PlanChoice &choice) {
  return choice.profile ? hash(writeProfile(*choice.profile)) : "";
}

static std::vector<int64_t> getMeshName(const plan::StrategyChoice &mesh) {
  auto sizes = planner::getSizes(mesh.mesh);
  return {sizes.begin(), sizes.end()};
}

/// Returns the shadow price of memory: the nanoseconds by which a bound falls with each further GiB of a device.
static double getMemoryPrice(const search::Problem &problem, const search::Certificate &certificate) {
  // A problem without an allowed solution has no price.
  if (certificate.prices.size() < problem.capacity.size())
    return 0;
  double prices = std::accumulate(certificate.prices.begin(),
                                  certificate.prices.begin() + static_cast<int64_t>(problem.capacity.size()), 0.0);
  return std::ldexp(prices, 30 - search::Certificate::kPriceBits);
}

void windlass::certify(const std::vector<planner::SearchedMesh> &meshes, const plan::StrategyChoice &chosen,
                       int threads, SearchSummary &search) {
  std::vector<search::NamedCertificate> certificates(meshes.size());
  auto target = static_cast<int64_t>(std::llround(search.stepSeconds * 1e9));
  auto certify = [&](int k) {
    certificates[k] = {getMeshName(meshes[k].choice), search::certify(meshes[k].problem, target, kCertifyWork)};
  };
  // The least bound of all meshes is claimed, so no mesh needs a better one than that of the chosen mesh.
  auto isChosen = [&](const planner::SearchedMesh &mesh) { return getMeshName(mesh.choice) == getMeshName(chosen); };
  auto own = static_cast<int>(llvm::find_if(meshes, isChosen) - meshes.begin());
  certify(own);
  target = certificates[own].certificate.bound;
  runTasks(threads, static_cast<int>(meshes.size()), [&](int k) {
    if (k != own)
      certify(k);
  });
  search.nanosecondsPerGib = getMemoryPrice(meshes[own].problem, certificates[own].certificate);
  search.boundNanoseconds = search::kForbidden;
  for (const search::NamedCertificate &its : certificates)
    search.boundNanoseconds = std::min(*search.boundNanoseconds, its.certificate.bound);
  if (search.boundNanoseconds == search::kForbidden) {
    search.boundNanoseconds.reset();
    certificates.clear();
  }
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

/// Returns the name of a mesh as text: "mesh 4 x 1 x 2".
std::string describe(llvm::ArrayRef<int64_t> name) {
  std::string text = "mesh ";
  llvm::raw_string_ostream out(text);
  llvm::interleave(name, out, " x ");
  return text;
}

/// Compares the claims of one plan with the facts; `fail` reports the first claim that does not hold.
class ClaimsCheck {
public:
  ClaimsCheck(const plan::PlanClaims &claims, const ClaimedPlan &plan, const PlanChoice &choice)
      : claims(claims), plan(plan), context(this->plan.planned.getContext()), choice(choice),
        costs(choice.cluster, choice.profile.get(), plan.precision) {}

  LogicalResult run(llvm::StringRef certificate) {
    if (failed(checkProfile()) || failed(checkCost()) || failed(checkMemory()) || failed(checkBound(certificate)))
      return failure();
    if (std::string is = hash(certificate); claims.certificateHash != is)
      return fail("the plan claims certificate_hash " + printable(claims.certificateHash, 12) +
                  ", but the certificate's is " + printable(is, 12));
    return success();
  }

private:
  LogicalResult fail(const llvm::Twine &text) { return emitError(context, Code::claims) << text; }
  LogicalResult compare(llvm::StringRef what, int64_t claimed, int64_t is) {
    if (claimed == is)
      return success();
    return fail("the plan claims " + what + " " + llvm::Twine(claimed) + ", but it is " + llvm::Twine(is));
  }

  LogicalResult checkProfile() {
    std::string is = hashOfProfile(choice);
    if (claims.profileHash == is)
      return success();
    if (claims.profileHash.empty())
      return fail("the plan claims costs of the analytic model: leave --costs out");
    return fail("the plan claims costs of the profile of hash " + printable(claims.profileHash, 12) +
                (is.empty() ? ": give it by --costs" : ", but --costs is of hash " + printable(is, 12)));
  }

  LogicalResult checkCost() {
    plan::StrategyChoice chosen = planner::readChoice(plan.planned);
    FailureOr<plan::Pins> pinned = plan::readPins(plan.planned, chosen.mesh, plan.pins);
    if (failed(pinned))
      return failure();
    chosen.pins = std::move(*pinned);
    std::optional<int64_t> found = planner::evaluatePlan(plan.planned, chosen, costs);
    if (!found)
      return fail("the plan claims a cost, but chooses something that the search would not");
    cost = *found;
    return compare("cost_nanoseconds", claims.costNanoseconds, cost);
  }

  LogicalResult checkMemory() {
    int64_t reserve = plan.schedule.reserve.total();
    if (failed(compare("arena_bytes", claims.arenaBytes, plan.schedule.bytes - reserve)))
      return failure();
    return compare("peak_bytes", claims.peakBytes, plan.schedule.liveBytes - reserve);
  }

  LogicalResult checkBound(llvm::StringRef certificate);

  const plan::PlanClaims &claims;
  ClaimedPlan plan;
  MLIRContext *context;
  const PlanChoice &choice;
  CostModel costs;
  /// The cost of the plan in the search's model, in nanoseconds.
  int64_t cost = 0;
};

LogicalResult ClaimsCheck::checkBound(llvm::StringRef certificate) {
  auto read = search::parseCertificates(certificate);
  if (!read)
    return fail("the certificate " + llvm::toString(read.takeError()));
  std::vector<planner::SearchedMesh> meshes;
  // The problems refer to the search.
  FailureOr<std::unique_ptr<planner::PlanSearch>> search;
  if (claims.boundNanoseconds) {
    search = planner::PlanSearch::create(plan.unplanned, choice.cluster.getDevices(), costs,
                                         static_cast<int>(choice.searchThreads), plan.pins);
    if (failed(search))
      return failure();
    (*search)->setBesideBytes(
        [&](const plan::StrategyChoice &mesh) { return expectCommunication(mesh, choice.cluster); });
    meshes = (*search)->getProblems(getSearchedMemory(choice), 1);
  }
  if (read->size() != meshes.size())
    return fail("the certificate is of " + std::to_string(read->size()) + " meshes, but " +
                (claims.boundNanoseconds ? std::to_string(meshes.size()) + " can be chosen"
                                         : std::string("the plan claims no bound")));
  int64_t bound = search::kForbidden;
  for (auto [its, mesh] : llvm::zip_equal(*read, meshes)) {
    if (its.name != getMeshName(mesh.choice))
      return fail("the certificate has " + describe(its.name) + " where " + describe(getMeshName(mesh.choice)) +
                  " is wanted");
    std::string prefix = "the certificate of " + describe(its.name) + " ";
    llvm::Expected<int64_t> proven = search::proveBound(mesh.problem, its.certificate);
    if (!proven)
      return fail(prefix + llvm::toString(proven.takeError()));
    if (*proven != its.certificate.bound)
      return fail(prefix + "claims the bound " + std::to_string(its.certificate.bound) + ", but proves " +
                  std::to_string(*proven));
    bound = std::min(bound, *proven);
  }
  return claims.boundNanoseconds ? compare("bound_nanoseconds", *claims.boundNanoseconds, bound) : success();
}

} // namespace

LogicalResult windlass::verifyClaims(const plan::PlanClaims &claims, const ClaimedPlan &plan,
                                     llvm::StringRef certificate, const PlanChoice &choice) {
  return ClaimsCheck(claims, plan, choice).run(certificate);
}
