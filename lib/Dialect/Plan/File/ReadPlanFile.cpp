#include "windlass/Dialect/Plan/PlanFile.h"

#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"
#include "windlass/Dialect/Train/Transforms/MergeMicroBatches.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/StringSet.h"

#include <limits>

using namespace windlass;
using namespace windlass::plan;
using llvm::StringRef;
using llvm::Twine;

static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

namespace {

/// Reads the parts of the document; the first failure is kept.
class PlanReader {
public:
  PlanFile plan;
  std::string message;

  void read(const llvm::json::Value &document) {
    ObjectReader reader(document, "");
    int64_t version = reader.getInteger("version", 1, kMax);
    if (!reader.failed() && version != PlanFile::kVersion)
      reader.fail("version", "is " + Twine(version) + ", of " +
                                 (version < PlanFile::kVersion ? "an older" : "a newer") +
                                 " windlass, but this one reads version " + Twine(PlanFile::kVersion) +
                                 ": plan again with this one (windlass plan MODEL --cluster C -o plan.json)");
    // The rest of a file of another version is not read.
    if (reader.failed())
      return keep(reader);
    plan.bucketBytes = reader.getInteger("bucket_bytes", 1, kMax);
    plan.prefetchBytes = reader.getInteger("prefetch_bytes", 0, kMax);
    plan.unitBytes = reader.getInteger("unit_bytes", 0, kMax);
    plan.keepsGathers = reader.find("keeps_gathers") && reader.getBoolean("keeps_gathers");
    if (const llvm::json::Value *value = reader.get("profile"); value && value->kind() != llvm::json::Value::Null)
      reader.fail("profile", "must be null: it cannot be checked yet");
    const llvm::json::Value *claims = reader.get("claims"), *cluster = reader.get("cluster"),
                            *functions = reader.get("functions"), *mesh = reader.get("mesh"),
                            *model = reader.get("model"), *parameters = reader.get("parameters"),
                            *segments = reader.get("segments"), *settings = reader.get("settings");
    if (const llvm::json::Value *limit = reader.get("memory_limit_bytes");
        limit && limit->kind() != llvm::json::Value::Null)
      plan.memoryLimit = reader.getInteger("memory_limit_bytes", 1, kMax);
    std::optional<int64_t> reserve;
    if (reader.find("reserve_bytes"))
      reserve = reader.getInteger("reserve_bytes", 0, kMax);
    const llvm::json::Value *pipeline = reader.find("pipeline");
    if (pipeline && plan.keepsGathers)
      reader.fail("keeps_gathers", "is true, but the chunks of a pipeline gather weights again");
    keep(reader);
    if (failed())
      return;
    if (pipeline)
      readPipeline(*pipeline);
    if (llvm::Expected<Cluster> read = clusterFromJson(*cluster, "cluster"))
      plan.cluster = *read;
    else
      keep(read.takeError());
    plan.cluster.reserveBytes = reserve;
    if (failed())
      return;
    readSettings(*settings);
    readMesh(*mesh);
    ObjectReader modelReader(*model, "model");
    plan.modelHash = modelReader.getString("hash");
    plan.modelName = modelReader.getString("name");
    keep(modelReader);
    readFunctions(*functions);
    ObjectReader segmentReader(*segments, "segments");
    for (const std::string &name : segmentReader.getKeys())
      plan.segments[name] = segmentReader.getString(name);
    keep(segmentReader);
    readParameters(*parameters);
    if (claims->kind() != llvm::json::Value::Null)
      readClaims(*claims);
  }

private:
  bool failed() const { return !message.empty(); }
  void keep(llvm::Error error) {
    if (!error)
      return;
    std::string text = llvm::toString(std::move(error));
    if (message.empty())
      message = text;
  }
  void keep(ObjectReader &reader) { keep(reader.takeError()); }

  void readSettings(const llvm::json::Value &value) {
    ObjectReader reader(value, "settings");
    PlanSettings &settings = plan.settings;
    settings.average = reader.getString("average");
    if (!reader.failed() && settings.average != "micro-batches" && settings.average != "tokens")
      reader.fail("average", "is " + printable(settings.average) +
                                 ", but losses are averaged over 'micro-batches' or "
                                 "'tokens'");
    settings.bf16Gradients = reader.find("bf16_gradients") && reader.getBoolean("bf16_gradients");
    settings.clip = reader.getBoolean("clip");
    settings.ema = reader.find("ema") && reader.getBoolean("ema");
    settings.loss = reader.getString("loss");
    if (reader.find("merge"))
      settings.merge = reader.getInteger("merge", 1, train::kMostMerged);
    settings.microBatches = reader.getInteger("micro_batches", 1, kMax);
    settings.noDecay = reader.getStrings("no_decay");
    settings.optimizer = reader.getString("optimizer");
    settings.pins = reader.getStrings("pins");
    settings.precision = reader.getString("precision");
    settings.trainable = reader.getStrings("trainable");
    const llvm::json::Value *dims = reader.get("dims"), *decayScales = reader.find("decay_scales"),
                            *rateScales = reader.find("lr_scales");
    keep(reader);
    if (failed())
      return;
    readScales(decayScales, "settings.decay_scales", settings.decayScales);
    readScales(rateScales, "settings.lr_scales", settings.rateScales);
    if (failed())
      return;
    ObjectReader dimReader(*dims, "settings.dims");
    for (const std::string &name : dimReader.getKeys())
      settings.dims[name] = dimReader.getInteger(name, 0, kMax);
    keep(dimReader);
  }

  void readScales(const llvm::json::Value *value, const char *path, std::map<std::string, double> &scales) {
    if (!value)
      return;
    ObjectReader reader(*value, path);
    for (const std::string &name : reader.getKeys())
      scales[name] = reader.getNumber(name, train::kMostScale);
    keep(reader);
  }

  void readPipeline(const llvm::json::Value &value) {
    ObjectReader reader(value, "pipeline");
    PlannedPipeline &pipeline = plan.pipeline.emplace();
    pipeline.positions = reader.getInteger("positions", 2, Cluster::kMaxDevices);
    pipeline.schedule = reader.getString("schedule");
    pipeline.begins = reader.getStrings("begins");
    if (reader.find("orders"))
      pipeline.orders = reader.getStrings("orders");
    if (!reader.failed() && (pipeline.schedule == kOwnSchedule) == pipeline.orders.empty())
      reader.fail("orders", Twine(pipeline.orders.empty() ? "are missing" : "are given") + ", but the schedule is " +
                                printable(pipeline.schedule) + "; orders are those of the schedule 'own'");
    if (!reader.failed() && pipeline.countChunks() < pipeline.positions)
      reader.fail("begins", "make " + countOf(pipeline.countChunks(), "chunk") + ", but each of the " +
                                Twine(pipeline.positions) + " positions runs at least one");
    keep(reader);
  }

  void readMesh(const llvm::json::Value &value) {
    ObjectReader reader(value, "mesh");
    plan.replicas = reader.getInteger("replicas", 1, Cluster::kMaxDevices);
    plan.accumulationSteps = reader.getInteger("accumulation_steps", 1, kMax);
    plan.deviceOrder = reader.getIntegers("device_order");
    const llvm::json::Value *axes = reader.get("axes");
    const llvm::json::Array *array = axes ? axes->getAsArray() : nullptr;
    if (axes && !array)
      reader.fail("axes", "must be a list of objects");
    keep(reader);
    if (failed())
      return;
    for (const llvm::json::Value &axis : *array) {
      ObjectReader axisReader(axis, "mesh.axes[" + std::to_string(plan.mesh.size()) + "]");
      std::string name = axisReader.getString("name");
      std::string roleName = axisReader.getString("role");
      std::optional<AxisRole> role = symbolizeAxisRole(roleName);
      if (!axisReader.failed() && !role)
        axisReader.fail("role", "is " + printable(roleName) + ": use replica, batch, model or expert");
      plan.mesh.push_back(
          {name, role.value_or(AxisRole::model), axisReader.getInteger("size", 1, Cluster::kMaxDevices)});
      if (!axisReader.failed() && (name.empty() || !llvm::isAlpha(name[0]) || name.size() > 64 ||
                                   !llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; })))
        axisReader.fail("name", "is " + printable(name) + ": use letters, digits and underscores");
      keep(axisReader);
      if (failed())
        return;
    }
    keep(checkMesh());
  }

  llvm::Error checkMesh() {
    llvm::StringSet<> names;
    int64_t ranks = 1, replicas = 1;
    for (const auto &[name, role, size] : plan.mesh) {
      if (!names.insert(name).second)
        return makeError("mesh.axes has axis " + printable(name) + " twice");
      ranks *= size;
      replicas *= role == AxisRole::replica ? size : 1;
      if (ranks > Cluster::kMaxDevices)
        return makeError("mesh.axes make more than " + Twine(Cluster::kMaxDevices) + " ranks");
    }
    ranks *= plan.getPositions();
    if (ranks != plan.cluster.getDevices())
      return makeError("mesh.axes make " + countOf(ranks / plan.getPositions(), "rank") +
                       (plan.pipeline ? " of each of " + countOf(plan.pipeline->positions, "position") : "") +
                       ", but the cluster has " + countOf(plan.cluster.getDevices(), "device"));
    std::vector<bool> seen(ranks);
    bool isPermutation = static_cast<int64_t>(plan.deviceOrder.size()) == ranks;
    for (int64_t device : plan.deviceOrder) {
      isPermutation = isPermutation && device >= 0 && device < ranks && !seen[device];
      if (isPermutation)
        seen[device] = true;
    }
    if (!isPermutation)
      return makeError("mesh.device_order must hold each device from 0 to " + Twine(ranks - 1) + " once");
    if (replicas != plan.replicas)
      return makeError("mesh.replicas is " + Twine(plan.replicas) + ", but the mesh.axes of role 'replica' have " +
                       countOf(replicas, "member") + " together");
    const int64_t merge = plan.settings.merge, merged = plan.settings.microBatches / merge;
    if (plan.settings.microBatches % merge != 0)
      return makeError("settings.merge " + Twine(merge) + " does not divide settings.micro_batches " +
                       Twine(plan.settings.microBatches));
    if (merged % plan.replicas != 0 || merged / plan.replicas != plan.accumulationSteps)
      return makeError("mesh.replicas " + Twine(plan.replicas) + " times mesh.accumulation_steps " +
                       Twine(plan.accumulationSteps) + " is not settings.micro_batches " +
                       Twine(plan.settings.microBatches) +
                       (merge == 1 ? Twine() : " over settings.merge " + Twine(merge)));
    return llvm::Error::success();
  }

  void readClaims(const llvm::json::Value &value) {
    ObjectReader reader(value, "claims");
    PlanClaims &claims = plan.claims.emplace();
    claims.arenaBytes = reader.getInteger("arena_bytes", 0, kMax);
    if (const llvm::json::Value *bound = reader.get("bound_nanoseconds");
        bound && bound->kind() != llvm::json::Value::Null)
      claims.boundNanoseconds = reader.getInteger("bound_nanoseconds", 0, kMax);
    if (reader.find("bound_offload")) {
      std::optional<Offload> offload = parseOffload(reader.getString("bound_offload"));
      claims.boundOffload = offload.value_or(Offload::none);
      if (!offload)
        reader.fail("bound_offload", "must be one of " + listOffloads());
    }
    if (reader.find("bound_schedule"))
      claims.boundSchedule = reader.getString("bound_schedule");
    if (reader.find("bound_chunks"))
      claims.boundChunks = reader.getInteger("bound_chunks", 1, int64_t(1) << 20);
    if (reader.find("bound_stages")) {
      claims.boundStages = reader.getIntegers("bound_stages");
      bool areAscending = llvm::is_sorted(claims.boundStages, std::less_equal<int64_t>());
      if (claims.boundStages.empty() || !areAscending || claims.boundStages.front() < 1)
        reader.fail("bound_stages", "must be one or more numbers of stages, each greater than the one before");
    }
    claims.certificateHash = reader.getString("certificate_hash");
    claims.costNanoseconds = reader.getInteger("cost_nanoseconds", 0, kMax);
    claims.peakBytes = reader.getInteger("peak_bytes", 0, kMax);
    claims.planHash = reader.getString("plan_hash");
    claims.profileHash = reader.getString("profile_hash");
    keep(reader);
  }

  void readFunctions(const llvm::json::Value &value) {
    ObjectReader reader(value, "functions");
    for (const std::string &name : reader.getKeys()) {
      if (failed())
        return;
      const llvm::json::Value *entry = reader.find(name);
      ObjectReader functionReader(*entry, reader.getPath(name));
      PlannedFunction &function = plan.functions[name];
      function.arguments = functionReader.getStrings("arguments");
      function.results = functionReader.getStrings("results");
      function.whole = functionReader.getStrings("whole");
      const llvm::json::Value *operators = functionReader.get("operators");
      std::string path = functionReader.getPath("operators");
      keep(functionReader);
      if (failed())
        return;
      ObjectReader operatorsReader(*operators, path);
      for (const std::string &id : operatorsReader.getKeys()) {
        ObjectReader opReader(*operatorsReader.find(id), operatorsReader.getPath(id));
        PlannedOp &op = function.operators[id];
        op.layouts = opReader.getStrings("layouts");
        const llvm::json::Value *split = opReader.get("split");
        std::string splitPath = opReader.getPath("split");
        keep(opReader);
        if (failed())
          return;
        ObjectReader splitReader(*split, splitPath);
        for (const std::string &factor : splitReader.getKeys())
          op.splits[factor] = splitReader.getStrings(factor);
        keep(splitReader);
      }
      keep(operatorsReader);
    }
    keep(reader);
  }

  void readParameters(const llvm::json::Value &value) {
    ObjectReader reader(value, "parameters");
    for (const std::string &name : reader.getKeys()) {
      if (failed())
        return;
      ObjectReader parameterReader(*reader.find(name), reader.getPath(name));
      PlannedParameter &parameter = plan.parameters[name];
      parameter.compute = parameterReader.getString("compute");
      parameter.master = parameterReader.getString("master");
      const llvm::json::Value *gradient = parameterReader.get("gradient");
      if (gradient && gradient->kind() != llvm::json::Value::Null) {
        if (std::optional<StringRef> text = gradient->getAsString())
          parameter.gradient = text->str();
        else
          parameterReader.fail("gradient", "must be a layout or null");
      }
      parameter.updatesOnDevice =
          parameterReader.find("updates_on_device") && parameterReader.getBoolean("updates_on_device");
      keep(parameterReader);
    }
    keep(reader);
  }
};

} // namespace

llvm::Expected<PlanFile> plan::readPlanFile(StringRef text) {
  llvm::Expected<llvm::json::Value> document = parseStrictJson(text);
  if (!document)
    return document.takeError();
  PlanReader reader;
  reader.read(*document);
  if (!reader.message.empty())
    return makeError(reader.message);
  return std::move(reader.plan);
}
