#include "windlass/Explain/ExplainOperator.h"

#include "PlacementFacts.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Glob.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

using namespace windlass;
using llvm::json::Array;
using llvm::json::fixUTF8;
using llvm::json::Object;
using llvm::json::Value;

static Array toArray(llvm::ArrayRef<std::string> texts) {
  Array array;
  for (const std::string &text : texts)
    array.push_back(fixUTF8(text));
  return array;
}

static Value orNull(const std::string &text) { return text.empty() ? Value(nullptr) : Value(fixUTF8(text)); }

static Object toJson(const ReshardFacts &reshard) {
  Array steps;
  for (const StepFacts &step : reshard.steps)
    steps.push_back(Object{{"collective", step.kind}, {"axes", step.axes}, {"members", step.members}});
  return Object{{"from", reshard.from},
                {"to", reshard.to},
                {"steps", std::move(steps)},
                {"bytes_sent_per_step", reshard.bytesPerStep}};
}

static Object toJson(const ValueFacts &value) {
  Array reshards;
  for (const ReshardFacts &reshard : value.reshards)
    reshards.push_back(toJson(reshard));
  return Object{{"name", fixUTF8(value.name)},         {"type", value.type},
                {"local_type", value.localType},       {"layout", value.layout},
                {"bytes_per_rank", value.bytes},       {"reshards", std::move(reshards)},
                {"kept_for_backward", value.isStashed}};
}

static Value toJson(const SegmentFacts *segment) {
  if (!segment)
    return nullptr;
  return Object{{"block", fixUTF8(segment->block)},
                {"part", orNull(segment->part)},
                {"recomputed", segment->isRecomputed},
                {"stash_bytes_freed", segment->freedBytes},
                {"flops_per_micro_batch", segment->flops}};
}

static Object toJson(const OperatorFacts &op) {
  Array axes, factors, operands, results;
  for (const AxisFacts &axis : op.axes)
    axes.push_back(Object{{"axis", axis.name}, {"size", axis.size}, {"role", axis.role}});
  for (const FactorFacts &factor : op.factors)
    factors.push_back(Object{{"name", factor.name},
                             {"kind", factor.kind},
                             {"size", factor.size},
                             {"size_per_rank", factor.localSize},
                             {"blocks", factor.blocks},
                             {"axes", toArray(factor.axes)}});
  for (const ValueFacts &value : op.operands)
    operands.push_back(toJson(value));
  for (const ValueFacts &value : op.results)
    results.push_back(toJson(value));
  return Object{{"id", fixUTF8(op.id)},
                {"kind", op.kind},
                {"function", op.function},
                {"adjoint_of", orNull(op.forward)},
                {"repeat", op.repeat < 0 ? Value(nullptr)
                                         : Value(Object{{"class", fixUTF8(op.repeatClass)}, {"index", op.repeat}})},
                {"runs_per_step", op.runsPerStep},
                {"chunk", op.chunk},
                {"axes", std::move(axes)},
                {"factors", std::move(factors)},
                {"operands", std::move(operands)},
                {"results", std::move(results)},
                {"adjoints", toArray(op.adjoints)}};
}

static Object toJson(const ParameterFacts &parameter) {
  Object copies;
  for (const auto &[name, copy] : parameter.copies)
    copies[name] = Object{{"layout", copy.layout}, {"local_type", copy.localType}, {"bytes_per_rank", copy.bytes}};
  Array reshards;
  for (const auto &[what, facts] : parameter.reshards) {
    Object reshard = toJson(facts);
    reshard["what"] = what;
    reshards.push_back(std::move(reshard));
  }
  return Object{{"name", fixUTF8(parameter.name)},
                {"type", parameter.type},
                {"trains", parameter.trains},
                {"copies", std::move(copies)},
                {"reshards", std::move(reshards)}};
}

namespace {

/// Prints facts as indented lines.
class Printer {
public:
  explicit Printer(llvm::raw_ostream &out) : out(out) {}

  void print(const OperatorFacts &op, const SegmentFacts *segment, llvm::ArrayRef<std::string> pins) {
    out << oneLine(op.id) << "\n  " << op.kind << " in @" << op.function;
    if (op.runsPerStep > 0)
      out << ", " << op.runsPerStep << (op.runsPerStep == 1 ? " run" : " runs") << " a step by each rank";
    if (op.chunk)
      out << ", in chunk " << *op.chunk << " of the pipeline";
    if (op.repeat >= 0)
      out << ", repeat " << op.repeat << " of " << oneLine(op.repeatClass);
    out << "\n";
    if (!op.forward.empty())
      out << "  adjoint of " << oneLine(op.forward) << "\n";
    if (segment)
      print(*segment);
    printPins(pins);
    head("axes", op.axes.empty());
    for (const AxisFacts &axis : op.axes)
      out << "    " << pad(axis.name + "=" + std::to_string(axis.size)) << axis.role << "\n";
    head("factors", op.factors.empty());
    for (const FactorFacts &factor : op.factors) {
      out << "    " << pad(factor.name) << factor.size << ", " << factor.kind;
      if (!factor.axes.empty())
        out << ", split over " << llvm::join(factor.axes, "+")
            << (factor.blocks > 1 ? " in " + std::to_string(factor.blocks) + " blocks" : "") << ": " << factor.localSize
            << " a rank";
      out << "\n";
    }
    printValues("operands", op.operands);
    printValues("results", op.results);
    head("adjoints", op.adjoints.empty());
    for (const std::string &id : op.adjoints)
      out << "    " << oneLine(id) << "\n";
  }

  void print(const ParameterFacts &parameter, llvm::ArrayRef<std::string> pins) {
    out << oneLine(parameter.name) << "\n  parameter, " << parameter.type
        << (parameter.trains ? ", trains" : ", does not train") << "\n";
    printPins(pins);
    out << "  copies\n";
    for (const auto &[name, copy] : parameter.copies)
      out << "    " << pad(name) << copy.layout << ", " << copy.localType << " a rank, " << copy.bytes << " bytes\n";
    head("reshards", parameter.reshards.empty());
    for (const auto &[what, reshard] : parameter.reshards) {
      out << "    " << what << "\n";
      print(reshard, "      ");
    }
  }

private:
  static std::string pad(std::string text) {
    text.append(text.size() < 12 ? 12 - text.size() : 1, ' ');
    return text;
  }

  void printPins(llvm::ArrayRef<std::string> pins) {
    for (const std::string &pin : pins)
      out << "  pinned: " << oneLine(pin) << "\n";
  }

  void print(const SegmentFacts &segment) {
    out << "  segment: " << (segment.part.empty() ? "all" : oneLine(segment.part)) << " of " << oneLine(segment.block)
        << (segment.isRecomputed ? ", recomputed, which frees " : ", kept; to recompute it would free ")
        << segment.freedBytes << " bytes of a rank's stash and " << (segment.isRecomputed ? "costs " : "cost ")
        << llvm::formatv("{0:f0}", segment.flops) << " FLOPs a micro-batch\n";
  }

  void head(llvm::StringRef text, bool isEmpty) {
    if (!isEmpty)
      out << "  " << text << "\n";
  }

  void print(const ReshardFacts &reshard, llvm::StringRef indent) {
    out << indent << reshard.from << " -> " << reshard.to << ": ";
    llvm::interleave(
        reshard.steps, out,
        [&](const StepFacts &step) {
          out << step.kind;
          if (!step.axes.empty())
            out << " over " << step.axes << " (" << step.members << " ranks)";
        },
        ", ");
    out << "; a rank sends " << reshard.bytesPerStep << " bytes a step\n";
  }

  void printValues(llvm::StringRef title, llvm::ArrayRef<ValueFacts> values) {
    head(title, values.empty());
    for (const auto &[i, value] : llvm::enumerate(values)) {
      out << "    " << i << "  ";
      if (title == "operands")
        out << oneLine(value.name) << ", ";
      out << value.type << " as " << value.layout << ": " << value.localType << " a rank, " << value.bytes << " bytes"
          << (value.isStashed ? ", kept for the backward pass" : "") << "\n";
      for (const ReshardFacts &reshard : value.reshards)
        print(reshard, title == "operands" ? "       reshard before, " : "       reshard after, ");
    }
  }

  llvm::raw_ostream &out;
};

} // namespace

static void printDocument(llvm::raw_ostream &out, Array operators, Array parameters) {
  out << llvm::formatv("{0:2}",
                       Value(Object{{"operators", std::move(operators)}, {"parameters", std::move(parameters)}}))
      << "\n";
}

/// Splits the matches of a pattern into ids of operators and names of parameters.
static rt::status findMatches(llvm::StringRef pattern, std::vector<std::string> ids,
                              const std::vector<std::string> &names, std::vector<std::string> &operators,
                              std::vector<std::string> &parameters) {
  std::set<std::string> isId(ids.begin(), ids.end());
  std::vector<std::string> all = std::move(ids);
  all.insert(all.end(), names.begin(), names.end());
  llvm::Expected<std::vector<std::string>> matches = matchNames(pattern, all, "operator or parameter");
  if (!matches)
    return rt::bad_input(llvm::toString(matches.takeError())).as(Code::pattern);
  for (std::string &match : *matches)
    (isId.count(match) ? operators : parameters).push_back(std::move(match));
  return {};
}

/// Returns the ids of the plan, each with the operators that it became: passes take some operators apart, and what they
/// make has the id with a suffix.
static std::map<std::string, std::vector<std::string>> findParts(const plan::PlanFile &plan,
                                                                 const std::vector<std::string> &ids) {
  std::set<llvm::StringRef> planned;
  for (const auto &[function, rows] : plan.functions) {
    planned.insert(rows.whole.begin(), rows.whole.end());
    for (const auto &[id, row] : rows.operators)
      planned.insert(id);
  }
  std::map<std::string, std::vector<std::string>> parts;
  for (const std::string &id : ids) {
    llvm::StringRef owner = id;
    while (!owner.empty() && !planned.count(owner))
      owner = owner.contains('.') ? owner.rsplit('.').first : "";
    parts[owner.empty() ? id : owner.str()].push_back(id);
  }
  return parts;
}

/// Returns the pins of a plan that fix something of the operator or parameter `name`.
static std::vector<std::string> findPins(const plan::PlanFile &plan, const std::string &name) {
  std::vector<std::string> found;
  for (const std::string &pin : plan.settings.pins)
    if (auto matches = matchNames(llvm::StringRef(pin).rsplit('=').first, name, ""))
      found.push_back(pin);
    else
      llvm::consumeError(matches.takeError());
  return found;
}

rt::status windlass::explainPlacement(mlir::ModuleOp module, const llvm::StringMap<SegmentFacts> &segments,
                                      const plan::PlanFile &plan, llvm::StringRef pattern, bool asJson,
                                      llvm::raw_ostream &out) {
  PlacementFacts facts(module, plan.accumulationSteps);
  auto parts = findParts(plan, facts.getOperatorIds());
  std::vector<std::string> ids, operators, parameters;
  for (const auto &[id, made] : parts)
    ids.push_back(id);
  WINDLASS_TRY(findMatches(pattern, ids, facts.getParameterNames(), operators, parameters));
  Printer printer(out);
  Array operatorRows, parameterRows;
  auto withPins = [](Object row, llvm::ArrayRef<std::string> pins) {
    row["pins"] = toArray(pins);
    return row;
  };
  for (const std::string &id : operators) {
    std::vector<std::string> pins = findPins(plan, id);
    for (const std::string &part : parts[id])
      for (const OperatorFacts &op : facts.describeOperator(part)) {
        auto found = op.function == train::kMicrobatchFunction ? segments.find(id) : segments.end();
        const SegmentFacts *segment = found == segments.end() ? nullptr : &found->second;
        if (!asJson) {
          printer.print(op, segment, pins);
          continue;
        }
        Object row = withPins(::toJson(op), pins);
        row["segment"] = ::toJson(segment);
        operatorRows.push_back(std::move(row));
      }
  }
  for (const std::string &name : parameters) {
    std::vector<std::string> pins = findPins(plan, name);
    ParameterFacts parameter = facts.describeParameter(name);
    if (asJson)
      parameterRows.push_back(withPins(::toJson(parameter), pins));
    else
      printer.print(parameter, pins);
  }
  if (asJson)
    printDocument(out, std::move(operatorRows), std::move(parameterRows));
  return {};
}

rt::status windlass::explainRows(const plan::PlanFile &plan, llvm::StringRef pattern, bool asJson,
                                 llvm::raw_ostream &out) {
  std::set<std::string> ids;
  for (const auto &[function, rows] : plan.functions) {
    ids.insert(rows.whole.begin(), rows.whole.end());
    for (const auto &[id, row] : rows.operators)
      ids.insert(id);
  }
  std::vector<std::string> names, operators, parameters;
  for (const auto &[name, row] : plan.parameters)
    names.push_back(name);
  WINDLASS_TRY(findMatches(pattern, {ids.begin(), ids.end()}, names, operators, parameters));
  Array operatorRows, parameterRows;
  for (const std::string &id : operators)
    for (const auto &[function, rows] : plan.functions) {
      auto row = rows.operators.find(id);
      bool isThere = row != rows.operators.end();
      if (!isThere && !llvm::is_contained(rows.whole, id))
        continue;
      if (asJson) {
        Object split;
        if (isThere)
          for (const auto &[factor, axes] : row->second.splits)
            split[factor] = toArray(axes);
        operatorRows.push_back(Object{{"id", fixUTF8(id)},
                                      {"function", function},
                                      {"split", std::move(split)},
                                      {"layouts", isThere ? Value(toArray(row->second.layouts)) : Value("whole")}});
        continue;
      }
      out << oneLine(id) << "\n  in @" << oneLine(function) << "\n";
      if (!isThere) {
        out << "  splits nothing, results whole on every rank\n";
        continue;
      }
      for (const auto &[factor, axes] : row->second.splits)
        out << "  splits " << factor << " over " << llvm::join(axes, "+") << "\n";
      for (const auto &[i, layout] : llvm::enumerate(row->second.layouts))
        out << "  result " << i << " is found as " << layout << "\n";
    }
  for (const std::string &name : parameters) {
    const plan::PlannedParameter &row = plan.parameters.at(name);
    if (asJson)
      parameterRows.push_back(Object{{"name", fixUTF8(name)},
                                     {"compute", row.compute},
                                     {"gradient", orNull(row.gradient)},
                                     {"master", row.master},
                                     {"updates_on_device", row.updatesOnDevice}});
    else
      out << oneLine(name) << "\n  parameter\n  compute  " << row.compute << "\n  gradient "
          << (row.gradient.empty() ? "none" : row.gradient) << "\n  master   " << row.master
          << (row.updatesOnDevice ? ", updated on the device" : "") << "\n";
  }
  if (asJson)
    printDocument(out, std::move(operatorRows), std::move(parameterRows));
  else
    out << "give MODEL too for operands, reshards, memory and segments: windlass explain OP MODEL --plan P\n";
  return {};
}
