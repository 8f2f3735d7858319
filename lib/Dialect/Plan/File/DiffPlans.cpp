#include "windlass/Dialect/Plan/PlanDiff.h"

#include "windlass/Support/Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace windlass;
using namespace windlass::plan;

/// A name in three parts: the text in front of the number of its layer, that number, and the text behind it. The last
/// part of an operator's id is its ordinal among equal operators, not a layer.
struct LayerName {
  llvm::StringRef before, number, after;
};

static LayerName findLayer(llvm::StringRef name) {
  size_t at = 0;
  while (true) {
    size_t end = name.find('.', at);
    if (end == llvm::StringRef::npos)
      return {name, "", ""};
    llvm::StringRef part = name.slice(at, end);
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      return {name.take_front(at), part, name.drop_front(end)};
    at = end + 1;
  }
}

std::string PlanDifference::getLabel() const {
  if (names.empty())
    return "";
  if (names.size() == 1)
    return names.front();
  LayerName first = findLayer(names.front());
  std::vector<int64_t> numbers;
  for (const std::string &name : names) {
    int64_t number = 0;
    findLayer(name).number.getAsInteger(10, number);
    numbers.push_back(number);
  }
  llvm::sort(numbers);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << first.before << '{';
  if (numbers.back() - numbers.front() == static_cast<int64_t>(numbers.size()) - 1)
    os << numbers.front() << '-' << numbers.back();
  else
    llvm::interleave(numbers, os, ",");
  os << '}' << first.after;
  return text;
}

std::string plan::getMeshText(const PlanFile &plan) {
  std::string text;
  for (const auto &[name, role, size] : plan.mesh)
    text += (text.empty() ? "" : " x ") + name + "=" + std::to_string(size);
  return text;
}

namespace {

class Differ {
public:
  std::vector<PlanDifference> differences;

  /// Begins a section; the differences are added at its end, grouped.
  void begin(std::string name) {
    finish();
    section = std::move(name);
  }

  void add(const std::string &name, std::string field, std::string before, std::string after) {
    if (before == after)
      return;
    if (found.empty() || found.back().first != name)
      found.push_back({name, {}});
    found.back().second.push_back({std::move(field), std::move(before), std::move(after)});
  }

  void finish() {
    std::map<std::tuple<std::string, std::string, std::vector<FieldDifference>>, size_t> groups;
    for (auto &[name, fields] : found) {
      LayerName layer = findLayer(name);
      auto key = std::make_tuple(layer.before.str(), (layer.number.empty() ? "" : "*") + layer.after.str(), fields);
      auto [group, isNew] = groups.try_emplace(key, differences.size());
      if (isNew)
        differences.push_back({section, {}, fields});
      if (!name.empty())
        differences[group->second].names.push_back(name);
    }
    found.clear();
  }

private:
  std::string section;
  std::vector<std::pair<std::string, std::vector<FieldDifference>>> found;
};

std::string toText(const SplitWords &splits) {
  std::string text;
  for (const auto &[factor, axes] : splits)
    text += (text.empty() ? "" : ", ") + factor + ":" + llvm::join(axes, "+");
  return text.empty() ? "none" : text;
}

/// The row of an operator in a plan: its splits and the layouts of its results.
struct Row {
  std::string splits = "none";
  std::vector<std::string> layouts;
};

std::map<std::string, Row> getRows(const PlannedFunction &function) {
  std::map<std::string, Row> rows;
  for (const auto &[id, op] : function.operators)
    rows[id] = {toText(op.splits), op.layouts};
  for (const std::string &id : function.whole)
    rows[id] = {};
  return rows;
}

/// Returns the keys of both maps, sorted.
template <class Map> std::set<std::string> getKeys(const Map &before, const Map &after) {
  std::set<std::string> keys;
  for (const Map *map : {&before, &after})
    for (const auto &entry : *map)
      keys.insert(entry.first);
  return keys;
}

void diffRows(Differ &differ, const std::map<std::string, Row> &before, const std::map<std::string, Row> &after) {
  for (const std::string &id : getKeys(before, after)) {
    auto a = before.find(id), b = after.find(id);
    if (a == before.end() || b == after.end()) {
      differ.add(id, "operator", a == before.end() ? "" : "there", b == after.end() ? "" : "there");
      continue;
    }
    differ.add(id, "split", a->second.splits, b->second.splits);
    // Layouts of an operator without a row are whole.
    size_t count = std::max(a->second.layouts.size(), b->second.layouts.size());
    auto layoutOf = [](const Row &row, size_t i) {
      return row.layouts.empty() ? "whole" : i < row.layouts.size() ? row.layouts[i] : "";
    };
    for (size_t i = 0; i < count; ++i)
      differ.add(id, "result " + std::to_string(i), layoutOf(a->second, i), layoutOf(b->second, i));
  }
}

/// Compares two lists by position.
void diffLists(Differ &differ, llvm::StringRef field, const std::vector<std::string> &before,
               const std::vector<std::string> &after) {
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i)
    differ.add("", (field + llvm::Twine(i)).str(), i < before.size() ? before[i] : "",
               i < after.size() ? after[i] : "");
}

void diffSettings(Differ &differ, const PlanSettings &before, const PlanSettings &after) {
  auto asText = [](bool value) { return std::string(value ? "true" : "false"); };
  for (const std::string &name : getKeys(before.dims, after.dims)) {
    auto a = before.dims.find(name), b = after.dims.find(name);
    differ.add("", "dim " + name, a == before.dims.end() ? "" : std::to_string(a->second),
               b == after.dims.end() ? "" : std::to_string(b->second));
  }
  auto addScales = [&](const char *field, const std::map<std::string, double> &a,
                       const std::map<std::string, double> &b) {
    auto textOf = [](const std::map<std::string, double> &scales, const std::string &name) {
      auto found = scales.find(name);
      return found == scales.end() ? std::string()
                                   : llvm::formatv("{0}={1}", name, llvm::json::Value(found->second)).str();
    };
    for (const std::string &name : getKeys(a, b))
      differ.add("", field, textOf(a, name), textOf(b, name));
  };
  addScales("decay_scales", before.decayScales, after.decayScales);
  addScales("lr_scales", before.rateScales, after.rateScales);
  differ.add("", "average", before.average, after.average);
  differ.add("", "bf16_gradients", asText(before.bf16Gradients), asText(after.bf16Gradients));
  differ.add("", "clip", asText(before.clip), asText(after.clip));
  differ.add("", "ema", asText(before.ema), asText(after.ema));
  differ.add("", "loss", before.loss, after.loss);
  differ.add("", "merge", std::to_string(before.merge), std::to_string(after.merge));
  differ.add("", "micro_batches", std::to_string(before.microBatches), std::to_string(after.microBatches));
  differ.add("", "optimizer", before.optimizer, after.optimizer);
  differ.add("", "precision", before.precision, after.precision);
  const std::tuple<const char *, const std::vector<std::string> &, const std::vector<std::string> &> lists[] = {
      {"no_decay", before.noDecay, after.noDecay},
      {"pins", before.pins, after.pins},
      {"trainable", before.trainable, after.trainable}};
  for (const auto &[field, a, b] : lists) {
    std::set<std::string> inA(a.begin(), a.end()), inB(b.begin(), b.end());
    for (const std::string &name : a)
      if (!inB.count(name))
        differ.add("", field, name, "");
    for (const std::string &name : b)
      if (!inA.count(name))
        differ.add("", field, "", name);
  }
}

void diffMesh(Differ &differ, const PlanFile &before, const PlanFile &after) {
  auto orderOf = [](const PlanFile &plan) {
    std::vector<std::string> texts;
    for (int64_t device : plan.deviceOrder)
      texts.push_back(std::to_string(device));
    return llvm::join(texts, ", ");
  };
  differ.add("", "axes", getMeshText(before), getMeshText(after));
  auto rolesOf = [](const PlanFile &plan) {
    std::vector<std::string> texts;
    for (const auto &[name, role, size] : plan.mesh)
      texts.push_back(name + ": " + stringifyAxisRole(role).str());
    return llvm::join(texts, ", ");
  };
  // Where the axes differ, so do their roles.
  if (getMeshText(before) == getMeshText(after))
    differ.add("", "roles", rolesOf(before), rolesOf(after));
  auto pipelineOf = [](const PlanFile &plan) {
    return plan.pipeline ? countOf(plan.pipeline->positions, "position") + " by " + plan.pipeline->schedule
                         : std::string();
  };
  auto beginsOf = [](const PlanFile &plan) {
    return plan.pipeline ? llvm::join(plan.pipeline->begins, ", ") : std::string();
  };
  auto ordersOf = [](const PlanFile &plan) {
    return plan.pipeline ? llvm::join(plan.pipeline->orders, "; ") : std::string();
  };
  differ.add("", "pipeline", pipelineOf(before), pipelineOf(after));
  if (pipelineOf(before) == pipelineOf(after)) {
    differ.add("", "begins of chunks", beginsOf(before), beginsOf(after));
    differ.add("", "orders of positions", ordersOf(before), ordersOf(after));
  }
  differ.add("", "replicas", std::to_string(before.replicas), std::to_string(after.replicas));
  differ.add("", "accumulation_steps", std::to_string(before.accumulationSteps),
             std::to_string(after.accumulationSteps));
  // Where the number of devices differs, so does their order.
  if (before.deviceOrder.size() == after.deviceOrder.size())
    differ.add("", "device_order", orderOf(before), orderOf(after));
}

} // namespace

static std::string describeUpdate(const PlannedParameter &parameter) {
  return parameter.updatesOnDevice ? "on the device" : "";
}

static void diffParameters(Differ &differ, const PlanFile &before, const PlanFile &after) {
  differ.begin("parameters");
  for (const std::string &name : getKeys(before.parameters, after.parameters)) {
    auto a = before.parameters.find(name), b = after.parameters.find(name);
    if (a == before.parameters.end() || b == after.parameters.end()) {
      differ.add(name, "parameter", a == before.parameters.end() ? "" : "there",
                 b == after.parameters.end() ? "" : "there");
      continue;
    }
    differ.add(name, "compute", a->second.compute, b->second.compute);
    differ.add(name, "gradient", a->second.gradient, b->second.gradient);
    differ.add(name, "master", a->second.master, b->second.master);
    differ.add(name, "update", describeUpdate(a->second), describeUpdate(b->second));
  }
}

std::vector<PlanDifference> plan::diffPlans(const PlanFile &before, const PlanFile &after) {
  Differ differ;
  differ.begin("plan");
  differ.add("", "model", before.modelName, after.modelName);
  differ.add("", "model hash", before.modelHash, after.modelHash);
  if (std::string text = findDifference(before.cluster, after.cluster); !text.empty())
    differ.add("", "cluster", before.cluster.describe(), after.cluster.describe() + " (" + text + ")");
  differ.add("", "bucket_bytes", std::to_string(before.bucketBytes), std::to_string(after.bucketBytes));
  auto toText = [](int64_t limit) { return limit > 0 ? std::to_string(limit) : std::string(); };
  differ.add("", "memory_limit_bytes", toText(before.memoryLimit), toText(after.memoryLimit));
  auto reserveOf = [](const PlanFile &plan) {
    return plan.cluster.reserveBytes ? std::to_string(*plan.cluster.reserveBytes) : std::string();
  };
  differ.add("", "reserve_bytes", reserveOf(before), reserveOf(after));
  differ.add("", "prefetch_bytes", std::to_string(before.prefetchBytes), std::to_string(after.prefetchBytes));
  auto describeGathers = [](const PlanFile &plan) { return plan.keepsGathers ? "kept" : "gathered again"; };
  differ.add("", "keeps_gathers", describeGathers(before), describeGathers(after));
  differ.add("", "unit_bytes", std::to_string(before.unitBytes), std::to_string(after.unitBytes));
  // A claim that one of the plans lacks is no difference in what they say.
  if (before.claims && after.claims) {
    differ.begin("claims");
    auto compare = [&](const char *field, int64_t PlanClaims::*claim) {
      differ.add("", field, std::to_string((*before.claims).*claim), std::to_string((*after.claims).*claim));
    };
    auto boundOf = [](const PlanClaims &its) {
      return its.boundNanoseconds ? std::to_string(*its.boundNanoseconds) : std::string();
    };
    auto offloadOf = [](const PlanClaims &its) {
      return its.boundNanoseconds ? stringifyOffload(its.boundOffload).str() : std::string();
    };
    auto stagesOf = [](const PlanClaims &its) {
      return its.boundNanoseconds ? listOf(its.boundStages, "and") : std::string();
    };
    auto scheduleOf = [](const PlanClaims &its) {
      bool isOfPipelines = its.boundNanoseconds && its.boundStages.back() > 1;
      return isOfPipelines ? its.boundSchedule + "=" + std::to_string(its.boundChunks) : std::string();
    };
    compare("arena_bytes", &PlanClaims::arenaBytes);
    differ.add("", "bound_nanoseconds", boundOf(*before.claims), boundOf(*after.claims));
    differ.add("", "bound_offload", offloadOf(*before.claims), offloadOf(*after.claims));
    differ.add("", "bound_schedule", scheduleOf(*before.claims), scheduleOf(*after.claims));
    differ.add("", "bound_stages", stagesOf(*before.claims), stagesOf(*after.claims));
    compare("cost_nanoseconds", &PlanClaims::costNanoseconds);
    compare("peak_bytes", &PlanClaims::peakBytes);
  }
  differ.begin("settings");
  diffSettings(differ, before.settings, after.settings);
  differ.begin("mesh");
  diffMesh(differ, before, after);
  differ.begin("segments");
  for (const std::string &name : getKeys(before.segments, after.segments)) {
    auto a = before.segments.find(name), b = after.segments.find(name);
    differ.add(name + ".*", "stash", a == before.segments.end() ? "" : a->second,
               b == after.segments.end() ? "" : b->second);
  }
  diffParameters(differ, before, after);
  for (const std::string &name : getKeys(before.functions, after.functions)) {
    differ.begin("@" + name);
    static const PlannedFunction none;
    auto a = before.functions.find(name), b = after.functions.find(name);
    const PlannedFunction &rowsA = a == before.functions.end() ? none : a->second;
    const PlannedFunction &rowsB = b == after.functions.end() ? none : b->second;
    diffLists(differ, "argument ", rowsA.arguments, rowsB.arguments);
    diffLists(differ, "result ", rowsA.results, rowsB.results);
    diffRows(differ, getRows(rowsA), getRows(rowsB));
  }
  differ.finish();
  return std::move(differ.differences);
}

/// Returns the group of an id: "transformer.h.*" for "transformer.h.0.mlp.matmul.0.grad.rhs"; for ids outside of
/// layers, their first part.
static std::string findGroup(llvm::StringRef id) {
  id.consume_front("update/");
  // The text behind an operator's ordinal names its adjoint or another part of it; the ordinal is no layer.
  for (llvm::StringRef part : {".grad", ".stash", ".again", ".recompute", ".share", ".split", ".partial"}) {
    size_t at = id.find(part), end = at + part.size();
    if (at != llvm::StringRef::npos && (end == id.size() || id[end] == '.'))
      id = id.take_front(at);
  }
  LayerName layer = findLayer(id);
  return layer.number.empty() ? id.take_until([](char c) { return c == '.' || c == '/'; }).str()
                              : layer.before.str() + "*";
}

std::vector<GroupChanges> plan::countChanges(const PlanFile &before, const PlanFile &after,
                                             const std::vector<PlanDifference> &differences) {
  std::set<std::pair<std::string, std::string>> changed; // function, id
  for (const PlanDifference &difference : differences)
    if (llvm::StringRef section = difference.section; section.consume_front("@"))
      for (const std::string &name : difference.names)
        changed.insert({section.str(), name});
  std::map<std::string, GroupChanges> groups;
  static const PlannedFunction none;
  for (const std::string &function : getKeys(before.functions, after.functions)) {
    auto a = before.functions.find(function), b = after.functions.find(function);
    for (const std::string &id : getKeys(getRows(a == before.functions.end() ? none : a->second),
                                         getRows(b == after.functions.end() ? none : b->second))) {
      std::string group = findGroup(id);
      GroupChanges &changes = groups.try_emplace(group, GroupChanges{group}).first->second;
      ++changes.operators;
      changes.changed += changed.count({function, id});
    }
  }
  std::vector<GroupChanges> found;
  for (auto &[key, changes] : groups)
    found.push_back(std::move(changes));
  return found;
}
