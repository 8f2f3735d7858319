// windlass diff: two plans compared.
#include "VerbSupport.h"

#include "windlass/Dialect/Plan/PlanDiff.h"
#include "windlass/Pipeline/Verbs.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;
using llvm::json::fixUTF8;

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

static void printJson(const std::vector<plan::PlanDifference> &differences) {
  llvm::json::OStream json(llvm::outs(), 2);
  auto textOrNull = [](const std::string &text) {
    return text.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(fixUTF8(text));
  };
  json.object([&] {
    json.attribute("equal", differences.empty());
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

int windlass::runDiff(const std::vector<std::string> &words) {
  Flags flags("diff FIRST SECOND",
              "Compares two plans: settings, mesh, layouts of parameters, strategies and layouts of operators. What\n"
              "differs alike in several layers is said once. Exit code 0 where the plans say the same, 1 where they\n"
              "differ; a file that is no plan is an error on standard error, with exit code 1 too.");
  CommonFlags common;
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(flags, common, words, positional, 2, 2, code))
    return code;
  plan::PlanFile first, second;
  if ((code = readPlan(positional[0], first)) || (code = readPlan(positional[1], second)))
    return code;
  std::vector<plan::PlanDifference> differences = plan::diffPlans(first, second);
  if (common.json)
    printJson(differences);
  else if (!common.quiet)
    printText(differences);
  return differences.empty() ? kDone : kDifferent;
}
