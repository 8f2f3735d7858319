#include "windlass/Pipeline/Claims.h"

#include "Reserve.h"

#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Search/Certificate.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/RunTasks.h"
#include "windlass/Support/ThreadedContext.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

#include <cmath>
#include <numeric>
#include <set>

using namespace mlir;
using namespace windlass;

/// The operations that the solver may spend on the bound of one mesh.
static constexpr int64_t kCertifyWork = 200'000'000;
/// The share 1 / kQuickShare of it is spent on each mesh before any is searched to the end, and then on kAtOnce meshes
/// at a time, so that the answer does not depend on the number of threads.
static constexpr int64_t kQuickShare = 16;
static constexpr size_t kAtOnce = 2;

static std::string hash(llvm::StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}

/// Returns the hash of the profile of `choice`; empty where costs come from the analytic model.
static std::string hashOfProfile(const PlanChoice &choice) {
  return choice.profile ? hash(writeProfile(*choice.profile)) : "";
}

/// Returns the name of a mesh's problem: the sizes of the mesh, followed by the number of stages if there are several.
static std::vector<int64_t> makeName(plan::MeshAttr mesh, int64_t stages) {
  auto sizes = planner::getSizes(mesh);
  std::vector<int64_t> name(sizes.begin(), sizes.end());
  if (stages > 1)
    name.push_back(stages);
  return name;
}
static std::vector<int64_t> makeName(const planner::SearchedMesh &mesh) {
  return makeName(mesh.choice.mesh, mesh.stages);
}

/// Returns the nanoseconds that a step takes at least where all positions together take `nanoseconds` at least.
static int64_t getStepBound(const planner::SearchedMesh &mesh, int64_t nanoseconds) {
  return nanoseconds >= search::kForbidden ? nanoseconds : nanoseconds / mesh.stages;
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

void windlass::certify(const std::vector<planner::SearchedMesh> &meshes, plan::MeshAttr chosen, int threads,
                       SearchSummary &search) {
  search.boundNanoseconds.reset();
  search.certificate = search::printCertificates({});
  auto isChosen = [&](const planner::SearchedMesh &mesh) { return makeName(mesh) == makeName(chosen, search.stages); };
  auto own = static_cast<int>(llvm::find_if(meshes, isChosen) - meshes.begin());
  if (own == static_cast<int>(meshes.size()))
    return;
  std::vector<search::NamedCertificate> certificates(meshes.size());
  auto target = static_cast<int64_t>(std::llround(search.stepSeconds * 1e9));
  auto boundOf = [&](int k) { return getStepBound(meshes[k], certificates[k].certificate.bound); };
  auto certify = [&](int k, int64_t work) {
    int64_t sum = std::min(target, search::kForbidden / meshes[k].stages) * meshes[k].stages;
    search::Certificate found = search::certify(meshes[k].problem, sum, work);
    search::NamedCertificate &kept = certificates[k];
    if (kept.name.empty() || found.bound > kept.certificate.bound)
      kept = {makeName(meshes[k]), std::move(found)};
  };
  // The least bound of all meshes is claimed, so no mesh needs a better one than another mesh reaches. Most reach it
  // soon; of the others, the one with the least bound goes first.
  certify(own, kCertifyWork);
  target = boundOf(own);
  std::vector<int> others(meshes.size());
  std::iota(others.begin(), others.end(), 0);
  others.erase(others.begin() + own);
  runTasks(threads, static_cast<int>(others.size()), [&](int i) { certify(others[i], kCertifyWork / kQuickShare); });
  llvm::sort(others, [&](int a, int b) { return std::pair(boundOf(a), a) < std::pair(boundOf(b), b); });
  for (size_t begin = 0; begin < others.size() && boundOf(others[begin]) < target; begin += kAtOnce) {
    llvm::ArrayRef<int> wave = llvm::ArrayRef(others).drop_front(begin).take_front(kAtOnce);
    runTasks(threads, static_cast<int>(wave.size()), [&](int i) { certify(wave[i], kCertifyWork); });
    for (int k : wave)
      target = std::min(target, boundOf(k));
  }
  search.nanosecondsPerGib = getMemoryPrice(meshes[own].problem, certificates[own].certificate);
  int64_t bound = search::kForbidden;
  std::set<int64_t> stages;
  for (auto [mesh, its] : llvm::zip_equal(meshes, certificates)) {
    bound = std::min(bound, getStepBound(mesh, its.certificate.bound));
    stages.insert(mesh.stages);
  }
  if (bound >= search::kForbidden)
    return;
  search.boundNanoseconds = bound;
  search.boundStages.assign(stages.begin(), stages.end());
  search.certificate = search::printCertificates(certificates);
}

plan::PlanClaims windlass::makeClaims(const SearchSummary &search, const Schedule &schedule, const plan::PlanFile &plan,
                                      const PlanChoice &choice) {
  plan::PlanClaims claims;
  claims.costNanoseconds = search.costNanoseconds;
  claims.boundNanoseconds = search.boundNanoseconds;
  claims.boundStages = search.boundStages;
  claims.boundSchedule = choice.pipeline.schedule;
  claims.boundChunks = choice.pipeline.chunksPerPosition;
  claims.boundOffload = search.boundOffload;
  claims.arenaBytes = schedule.bytes - schedule.reserve.total();
  claims.peakBytes = schedule.liveBytes - schedule.reserve.total();
  claims.certificateHash = hash(search.certificate);
  claims.planHash = hashOfPlan(plan);
  claims.profileHash = hashOfProfile(choice);
  return claims;
}

std::string windlass::describeBoundStages(llvm::ArrayRef<int64_t> stages) {
  bool hasPipelines = stages.back() > 1;
  return "of " + listOf(stages) + (hasPipelines ? " stages, cut and scheduled as the search does" : " stage");
}

std::string windlass::hashOfPlan(const plan::PlanFile &plan) { return plan::hashPlan(plan, planner::kModelVersion); }

std::string windlass::getCertificatePath(llvm::StringRef planPath) {
  llvm::SmallString<128> path(planPath);
  llvm::sys::path::replace_extension(path, "cert");
  return path.str().str();
}

namespace {

/// Returns the name of a mesh as text: "mesh 4 x 1 x 2", with " of 2 stages" behind it for a pipeline.
std::string describe(llvm::ArrayRef<int64_t> name) {
  std::string text = "mesh ";
  llvm::raw_string_ostream out(text);
  llvm::interleave(name.take_front(3), out, " x ");
  if (name.size() == 4)
    out << " of " << name.back() << " stages";
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

  /// Returns the cut and the schedule of plans of `stages` stages in the search that found the plan.
  FailureOr<plan::PipelineAttr> chooseCut(int64_t stages);
  /// Adds the problems of all meshes of plans of `stages` stages; `searches` keeps what they refer to.
  LogicalResult addProblems(int64_t stages, std::vector<std::unique_ptr<planner::PlanSearch>> &searches,
                            std::vector<planner::SearchedMesh> &meshes);
  LogicalResult checkBound(llvm::StringRef certificate);

  const plan::PlanClaims &claims;
  ClaimedPlan plan;
  MLIRContext *context;
  const PlanChoice &choice;
  CostModel costs;
  /// The cost of the plan in the search's model, in nanoseconds.
  int64_t cost = 0;
};

FailureOr<plan::PipelineAttr> ClaimsCheck::chooseCut(int64_t stages) {
  auto planned = plan.planned->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr);
  planner::PipelineChoice pipeline = {stages, claims.boundSchedule, claims.boundChunks};
  if (claims.boundSchedule == plan::kOwnSchedule && planned) {
    llvm::Expected<schedule::Pipeline> orders = plan::readOrders(planned);
    if (!orders)
      return fail("the plan's schedule is wrong: " + llvm::toString(orders.takeError()));
    pipeline.own = std::make_shared<const schedule::Pipeline>(std::move(*orders));
  }
  FailureOr<plan::PipelineAttr> cut =
      planner::chooseCut(plan.unplanned, pipeline, choice.cluster.getDevices() / stages, costs);
  if (succeeded(cut) && planned && planned.getPositions() == stages && planned != *cut)
    return fail("the plan claims a bound of plans that are cut and scheduled as the search does, but it is not one");
  return cut;
}

LogicalResult ClaimsCheck::addProblems(int64_t stages, std::vector<std::unique_ptr<planner::PlanSearch>> &searches,
                                       std::vector<planner::SearchedMesh> &meshes) {
  int64_t devices = choice.cluster.getDevices();
  if (devices % stages != 0)
    return fail("the plan claims a bound of plans of " + std::to_string(stages) + " stages, which cannot share " +
                countOf(devices, "device") + " evenly");
  plan::PipelineAttr pipeline;
  if (stages > 1) {
    FailureOr<plan::PipelineAttr> cut = chooseCut(stages);
    if (failed(cut))
      return failure();
    pipeline = *cut;
  }
  ThreadedContext threaded(context);
  auto search = planner::PlanSearch::create(plan.unplanned, devices / stages, costs,
                                            static_cast<int>(choice.searchThreads), plan.pins);
  if (failed(search))
    return failure();
  (*search)->setBesideBytes(
      [&](const plan::StrategyChoice &mesh) { return expectCommunication(mesh, choice.cluster); });
  std::vector<planner::SearchedMesh> its = (*search)->getProblems(getSearchedMemory(choice), pipeline);
  meshes.insert(meshes.end(), std::make_move_iterator(its.begin()), std::make_move_iterator(its.end()));
  searches.push_back(std::move(*search));
  return success();
}

LogicalResult ClaimsCheck::checkBound(llvm::StringRef certificate) {
  auto read = search::parseCertificates(certificate);
  if (!read)
    return fail("the certificate " + llvm::toString(read.takeError()));
  std::vector<std::unique_ptr<planner::PlanSearch>> searches;
  std::vector<planner::SearchedMesh> meshes;
  if (claims.boundNanoseconds) {
    auto pipeline = plan.planned->getAttrOfType<plan::PipelineAttr>(plan::kPipelineAttr);
    int64_t own = pipeline ? pipeline.getPositions() : 1;
    plan::applyOffload(plan.unplanned, claims.boundOffload);
    if (!llvm::is_contained(claims.boundStages, own))
      return fail("the plan claims a bound of plans of other numbers of stages than its own, which has " +
                  countOf(own, "stage"));
    for (int64_t stages : claims.boundStages)
      if (failed(addProblems(stages, searches, meshes)))
        return failure();
  }
  if (read->size() != meshes.size())
    return fail("the certificate is of " + std::to_string(read->size()) + " meshes, but " +
                (claims.boundNanoseconds ? std::to_string(meshes.size()) + " can be chosen"
                                         : std::string("the plan claims no bound")));
  int64_t bound = search::kForbidden;
  for (auto [its, mesh] : llvm::zip_equal(*read, meshes)) {
    if (its.name != makeName(mesh))
      return fail("the certificate has " + describe(its.name) + " where " + describe(makeName(mesh)) + " is wanted");
    std::string prefix = "the certificate of " + describe(its.name) + " ";
    llvm::Expected<int64_t> proven = search::proveBound(mesh.problem, its.certificate);
    if (!proven)
      return fail(prefix + llvm::toString(proven.takeError()));
    if (*proven != its.certificate.bound)
      return fail(prefix + "claims the bound " + std::to_string(its.certificate.bound) + ", but proves " +
                  std::to_string(*proven));
    bound = std::min(bound, getStepBound(mesh, *proven));
  }
  return claims.boundNanoseconds ? compare("bound_nanoseconds", *claims.boundNanoseconds, bound) : success();
}

} // namespace

LogicalResult windlass::verifyClaims(const plan::PlanClaims &claims, const ClaimedPlan &plan,
                                     llvm::StringRef certificate, const PlanChoice &choice) {
  return ClaimsCheck(claims, plan, choice).run(certificate);
}
