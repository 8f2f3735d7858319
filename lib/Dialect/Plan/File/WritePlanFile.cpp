#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SHA256.h"

using namespace windlass;
using namespace windlass::plan;
using llvm::json::Array;
using llvm::json::Object;
using llvm::json::Value;

static Array toArray(const std::vector<std::string> &texts) {
  Array array;
  for (const std::string &text : texts)
    array.push_back(text);
  return array;
}

namespace {

/// Writes objects over several lines, with each small member on one line. Strings of the model may hold bytes that are
/// no UTF-8, which are replaced as JSON requires.
class Writer {
public:
  std::string text;

  void open(llvm::StringRef key) {
    start(key);
    text += '{';
    first = true;
    ++depth;
  }

  void close() {
    --depth;
    if (!first)
      newLine();
    text += '}';
    first = false;
  }

  /// Writes a member on one line, or with an entry per line where the value is less than `lineDepth` deep in the
  /// document.
  void add(llvm::StringRef key, const Value &value, int lineDepth = 0) {
    start(key);
    llvm::raw_string_ostream os(text);
    printJson(os, value, lineDepth, depth);
  }

  /// Writes a list with one element per line.
  void addLines(llvm::StringRef key, const std::vector<std::string> &elements) {
    start(key);
    text += '[';
    ++depth;
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i > 0)
        text += ',';
      newLine();
      llvm::raw_string_ostream os(text);
      os << Value(elements[i]);
    }
    --depth;
    if (!elements.empty())
      newLine();
    text += ']';
  }

private:
  void start(llvm::StringRef key) {
    if (depth == 0)
      return;
    if (!first)
      text += ',';
    first = false;
    newLine();
    llvm::raw_string_ostream os(text);
    os << Value(key) << ": ";
  }

  void newLine() {
    text += '\n';
    text.append(2 * depth, ' ');
  }

  int depth = 0;
  bool first = true;
};

} // namespace

static void addSettings(Writer &writer, const PlanSettings &settings) {
  writer.open("settings");
  writer.add("average", settings.average);
  if (settings.bf16Gradients)
    writer.add("bf16_gradients", true);
  writer.add("clip", settings.clip);
  // Absent where no parameter has its own.
  auto addScales = [&](llvm::StringRef key, const std::map<std::string, double> &scales) {
    Object object;
    for (const auto &[name, scale] : scales)
      object[name] = scale;
    if (!object.empty())
      writer.add(key, std::move(object));
  };
  addScales("decay_scales", settings.decayScales);
  Object dims;
  for (const auto &[name, size] : settings.dims)
    dims[name] = size;
  writer.add("dims", std::move(dims));
  if (settings.ema)
    writer.add("ema", true);
  writer.add("loss", settings.loss);
  addScales("lr_scales", settings.rateScales);
  if (settings.merge != 1)
    writer.add("merge", settings.merge);
  writer.add("micro_batches", settings.microBatches);
  writer.addLines("no_decay", settings.noDecay);
  writer.add("optimizer", settings.optimizer);
  writer.addLines("pins", settings.pins);
  writer.add("precision", settings.precision);
  writer.addLines("trainable", settings.trainable);
  writer.close();
}

static void writeClaims(Writer &writer, const PlanClaims &claims) {
  writer.open("claims");
  writer.add("arena_bytes", claims.arenaBytes);
  bool isOfPipelines = claims.boundNanoseconds && claims.boundStages.back() > 1;
  if (isOfPipelines && claims.boundChunks != PlanClaims().boundChunks)
    writer.add("bound_chunks", claims.boundChunks);
  writer.add("bound_nanoseconds", claims.boundNanoseconds ? Value(*claims.boundNanoseconds) : nullptr);
  if (claims.boundNanoseconds && claims.boundOffload != Offload::none)
    writer.add("bound_offload", stringifyOffload(claims.boundOffload));
  if (isOfPipelines && claims.boundSchedule != PlanClaims().boundSchedule)
    writer.add("bound_schedule", claims.boundSchedule);
  if (claims.boundNanoseconds && claims.boundStages != std::vector<int64_t>{1})
    writer.add("bound_stages", Array(claims.boundStages));
  writer.add("certificate_hash", claims.certificateHash);
  writer.add("cost_nanoseconds", claims.costNanoseconds);
  writer.add("peak_bytes", claims.peakBytes);
  writer.add("plan_hash", claims.planHash);
  writer.add("profile_hash", claims.profileHash);
  writer.close();
}

std::string plan::writePlanFile(const PlanFile &plan) {
  Writer writer;
  writer.open("");
  writer.add("bucket_bytes", plan.bucketBytes);
  if (plan.claims)
    writeClaims(writer, *plan.claims);
  else
    writer.add("claims", nullptr);
  writer.add("cluster", toJson(plan.cluster), /*lineDepth=*/2);
  writer.open("functions");
  for (const auto &[name, function] : plan.functions) {
    writer.open(name);
    writer.add("arguments", toArray(function.arguments));
    writer.open("operators");
    for (const auto &[id, op] : function.operators) {
      Object splits;
      for (const auto &[factor, axes] : op.splits)
        splits[factor] = toArray(axes);
      writer.add(id, Object{{"layouts", toArray(op.layouts)}, {"split", std::move(splits)}});
    }
    writer.close();
    writer.add("results", toArray(function.results));
    writer.addLines("whole", function.whole);
    writer.close();
  }
  writer.close();
  // Absent where they are not kept.
  if (plan.keepsGathers)
    writer.add("keeps_gathers", true);
  Array axes;
  for (const auto &[name, role, size] : plan.mesh)
    axes.push_back(Object{{"name", name}, {"role", stringifyAxisRole(role)}, {"size", size}});
  writer.add("memory_limit_bytes", plan.memoryLimit > 0 ? Value(plan.memoryLimit) : Value(nullptr));
  writer.add("mesh", Object{{"axes", std::move(axes)},
                            {"device_order", Array(plan.deviceOrder)},
                            {"replicas", plan.replicas},
                            {"accumulation_steps", plan.accumulationSteps}});
  writer.add("model", Object{{"hash", plan.modelHash}, {"name", plan.modelName}});
  writer.open("parameters");
  for (const auto &[name, parameter] : plan.parameters) {
    Object row{{"compute", parameter.compute},
               {"gradient", parameter.gradient.empty() ? Value(nullptr) : Value(parameter.gradient)},
               {"master", parameter.master}};
    if (parameter.updatesOnDevice)
      row["updates_on_device"] = true;
    writer.add(name, std::move(row));
  }
  writer.close();
  // Absent in plans of one position.
  if (plan.pipeline) {
    Object pipeline{{"begins", toArray(plan.pipeline->begins)},
                    {"positions", plan.pipeline->positions},
                    {"schedule", plan.pipeline->schedule}};
    // Absent with a published schedule.
    if (!plan.pipeline->orders.empty())
      pipeline["orders"] = toArray(plan.pipeline->orders);
    writer.add("pipeline", std::move(pipeline));
  }
  writer.add("prefetch_bytes", plan.prefetchBytes);
  writer.add("profile", nullptr);
  // Absent in plans with the reserve of their back end.
  if (plan.cluster.reserveBytes)
    writer.add("reserve_bytes", *plan.cluster.reserveBytes);
  writer.open("segments");
  for (const auto &[name, label] : plan.segments)
    writer.add(name, label);
  writer.close();
  addSettings(writer, plan.settings);
  writer.add("unit_bytes", plan.unitBytes);
  writer.add("version", PlanFile::kVersion);
  writer.close();
  writer.text += '\n';
  return std::move(writer.text);
}

std::string plan::hashPlan(const PlanFile &plan, int64_t modelVersion) {
  PlanFile bare = plan;
  bare.claims.reset();
  std::string text = writePlanFile(bare) + std::to_string(modelVersion);
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)), /*LowerCase=*/true);
}
