// In what two plans differ.
#ifndef WINDLASS_DIALECT_PLAN_PLANDIFF_H
#define WINDLASS_DIALECT_PLAN_PLANDIFF_H

#include "windlass/Dialect/Plan/PlanFile.h"

namespace windlass::plan {

/// Something that two plans have otherwise, or only one of them has: then the other's text is empty.
struct FieldDifference {
  std::string field, before, after;
  bool operator<(const FieldDifference &other) const {
    return std::tie(field, before, after) < std::tie(other.field, other.before, other.after);
  }
};

/// The same differences of one or more things: operators and parameters whose names differ only in the number of the
/// layer, and which differ in the same way.
struct PlanDifference {
  /// "plan", "settings", "mesh", "parameters", or "@" and a function.
  std::string section;
  /// In the order of the file; empty for what is there once.
  std::vector<std::string> names;
  std::vector<FieldDifference> fields;
  /// The names as one: "transformer.h.{0-11}.mlp.matmul.0"; empty where there are none.
  std::string getLabel() const;
};

/// All of them, in the order plan, settings, mesh, parameters, functions; none where the plans say the same.
std::vector<PlanDifference> diffPlans(const PlanFile &before, const PlanFile &after);

/// How many operators of a group of layers, such as "transformer.h.*", two plans treat otherwise.
struct GroupChanges {
  std::string group;
  int64_t changed = 0, operators = 0;
};

/// All groups of the operators of all functions, sorted, by what `differences` say of them.
std::vector<GroupChanges> countChanges(const PlanFile &before, const PlanFile &after,
                                       const std::vector<PlanDifference> &differences);

/// "data=2 x model=2"; empty for a mesh of one device.
std::string getMeshText(const PlanFile &plan);

} // namespace windlass::plan

#endif
