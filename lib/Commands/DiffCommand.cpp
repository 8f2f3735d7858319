// windlass diff: two plans compared.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Dialect/Plan/PlanDiff.h"
#include "windlass/Support/Words.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <optional>

using namespace windlass;
using llvm::json::fixUTF8;

namespace {

/// The costs of a plan: those of the model, where one is given, or else those that the plan claims.
struct Figures {
  std::optional<double> seconds;
  std::optional<int64_t> bytes;
};

struct Summary {
  Figures first, second;
  std::string firstMesh, secondMesh;
  std::vector<plan::GroupChanges> groups;
};

} // namespace

static int predict(Console &console, const std::string &model, const plan::PlanFile &plan, const Flags &given,
                   Figures &figures) {
  auto context = makeContext(console, /*verbose=*/false);
  Compilation compilation(*context, model, printEvents(console));
  CompileFlags compileFlags;
  if (int code = applyPlan(console, compilation, plan, compileFlags, given, Purpose::trial))
    return code;
  figures.seconds = compilation.predict(compileFlags.choice).seconds;
  figures.bytes = compilation.getDeviceBytes();
  return kDone;
}

/// Returns a text such as " (12.5 % less)"; nothing where the two are equal.
static std::string changeText(double before, double after) {
  if (before == after || before <= 0)
    return "";
  return llvm::formatv(" ({0:f1} % {1})", 100 * std::abs(after - before) / before, after < before ? "less" : "more");
}

/// Returns a text such as "1.250 ms", or in s from one second on.
static std::string durationText(double seconds) {
  return seconds < 1 ? llvm::formatv("{0:f3} ms", seconds * 1e3).str() : llvm::formatv("{0:f3} s", seconds).str();
}

static void printSummary(const Summary &summary) {
  llvm::raw_ostream &out = llvm::outs();
  auto print = [&](llvm::StringRef name, auto before, auto after, auto toText) {
    out << "  " << name << ": ";
    if (before && after)
      out << toText(*before) << " -> " << toText(*after)
          << changeText(static_cast<double>(*before), static_cast<double>(*after)) << "\n";
    else
      out << "not said by "
          << (before  ? "the second plan"
              : after ? "the first plan"
                      : "the plans")
          << "; name the model behind them\n";
  };
  auto meshText = [](const std::string &text) { return text.empty() ? "1 device" : oneLine(text); };
  out << "summary\n";
  print("time", summary.first.seconds, summary.second.seconds, durationText);
  print("memory", summary.first.bytes, summary.second.bytes, sizeText);
  out << "  mesh: " << meshText(summary.firstMesh);
  if (summary.firstMesh != summary.secondMesh)
    out << " -> " << meshText(summary.secondMesh);
  out << "\n";
  int64_t changed = 0, operators = 0;
  for (const plan::GroupChanges &group : summary.groups) {
    changed += group.changed;
    operators += group.operators;
  }
  out << "  operators: " << changed << " of " << operators << (changed == 1 ? " differs\n" : " differ\n");
  for (const plan::GroupChanges &group : summary.groups)
    if (group.changed > 0)
      out << "    " << oneLine(group.group) << ": " << group.changed << " of " << group.operators << "\n";
}

static void writeSummary(llvm::json::OStream &json, const Summary &summary) {
  auto write = [&](llvm::StringRef name, const Figures &figures, const std::string &mesh) {
    json.attributeObject(name, [&] {
      json.attribute("seconds", figures.seconds ? llvm::json::Value(*figures.seconds) : nullptr);
      json.attribute("bytes", figures.bytes ? llvm::json::Value(*figures.bytes) : nullptr);
      json.attribute("mesh", fixUTF8(mesh));
    });
  };
  json.attributeObject("summary", [&] {
    write("first", summary.first, summary.firstMesh);
    write("second", summary.second, summary.secondMesh);
    json.attributeArray("groups", [&] {
      for (const plan::GroupChanges &group : summary.groups)
        json.object([&] {
          json.attribute("group", fixUTF8(group.group));
          json.attribute("changed", group.changed);
          json.attribute("operators", group.operators);
        });
    });
  });
}

static void printText(const std::vector<plan::PlanDifference> &differences) {
  llvm::raw_ostream &out = llvm::outs();
  std::string section;
  for (const plan::PlanDifference &difference : differences) {
    if (difference.section != section)
      out << (section = difference.section) << "\n";
    std::string indent = "  ";
    if (!difference.names.empty()) {
      out << indent << oneLine(difference.getLabel());
      if (difference.names.size() > 1)
        out << " (" << difference.names.size() << ")";
      out << "\n";
      indent += "  ";
    }
    for (const plan::FieldDifference &field : difference.fields) {
      out << indent << field.field << ": ";
      if (field.before.empty() || field.after.empty())
        out << "only in the " << (field.after.empty() ? "first: " : "second: ") << oneLine(field.before + field.after);
      else
        out << oneLine(field.before) << " -> " << oneLine(field.after);
      out << "\n";
    }
  }
}

static void printJson(const std::vector<plan::PlanDifference> &differences, const Summary &summary) {
  llvm::json::OStream json(llvm::outs(), 2);
  auto textOrNull = [](const std::string &text) {
    return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(fixUTF8(text));
  };
  json.object([&] {
    json.attribute("equal", differences.empty());
    writeSummary(json, summary);
    json.attributeArray("differences", [&] {
      for (const plan::PlanDifference &difference : differences)
        json.object([&] {
          json.attribute("section", difference.section);
          json.attributeArray("names", [&] {
            for (const std::string &name : difference.names)
              json.value(fixUTF8(name));
          });
          json.attributeArray("fields", [&] {
            for (const plan::FieldDifference &field : difference.fields)
              json.object([&] {
                json.attribute("field", fixUTF8(field.field));
                json.attribute("first", textOrNull(field.before));
                json.attribute("second", textOrNull(field.after));
              });
          });
        });
    });
  });
  llvm::outs() << "\n";
}

int windlass::runDiff(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "diff FIRST SECOND [MODEL]",
      "Compares two plans: settings, mesh, layouts of parameters, strategies and layouts of operators. A\n"
      "difference that several layers share is printed once. The summary before it has the time of a step and the\n"
      "memory of a device, predicted for MODEL or else as both plans claim them. Exit code 0 where the plans are\n"
      "equal, 1 where they differ; a file that is no plan is an error on standard error, with exit code 1 too.\n"
      "For example: windlass diff before.json after.json model.onnx");
  CommonFlags common;
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 2, 3, code))
    return code;
  plan::PlanFile first, second;
  if ((code = readPlan(console, positional[0], first)) || (code = readPlan(console, positional[1], second)))
    return code;
  std::vector<plan::PlanDifference> differences = plan::diffPlans(first, second);
  Summary summary = {
      {}, {}, plan::getMeshText(first), plan::getMeshText(second), plan::countChanges(first, second, differences)};
  for (auto [plan, figures] : {std::pair(&first, &summary.first), {&second, &summary.second}}) {
    if (positional.size() > 2) {
      if ((code = predict(console, positional[2], *plan, flags, *figures)))
        return code;
    } else if (first.claims && second.claims) {
      figures->seconds = static_cast<double>(plan->claims->costNanoseconds) * 1e-9;
      figures->bytes = plan->claims->arenaBytes;
    }
  }
  if (common.json) {
    printJson(differences, summary);
  } else if (!common.quiet && !differences.empty()) {
    printSummary(summary);
    printText(differences);
  }
  return differences.empty() ? kDone : kDifferent;
}
