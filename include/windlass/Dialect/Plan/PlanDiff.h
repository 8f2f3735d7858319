// The differences between two plans.
#ifndef WINDLASS_DIALECT_PLAN_PLANDIFF_H
#define WINDLASS_DIALECT_PLAN_PLANDIFF_H

#include "windlass/Dialect/Plan/PlanFile.h"

namespace windlass::plan {

/// A field whose text differs between two plans; the text is empty for the plan that does not have the field.
struct FieldDifference {
  std::string field, before, after;
  bool operator<(const FieldDifference &other) const {
    return std::tie(field, before, after) < std::tie(other.field, other.before, other.after);
  }
};

/// Differences that one or more operators or parameters have in common: their names differ only in the number of the
/// layer.
struct PlanDifference {
  /// The section: "plan", "settings", "mesh", "parameters", or "@" and a function.
  std::string section;
  /// The names in the order of the file; empty for a field that a plan has once.
  std::vector<std::string> names;
  std::vector<FieldDifference> fields;
  /// Returns the names as one: "transformer.h.{0-11}.mlp.matmul.0"; empty where there are none.
  std::string getLabel() const;
};

/// Returns all differences in the order plan, settings, mesh, parameters, functions; none where the plans are equal.
std::vector<PlanDifference> diffPlans(const PlanFile &before, const PlanFile &after);

/// The number of operators of a group of layers, such as "transformer.h.*", that two plans treat differently.
struct GroupChanges {
  std::string group;
  int64_t changed = 0, operators = 0;
};

/// Counts, for each group of operators of all functions, the operators that `differences` names; sorted by group.
std::vector<GroupChanges> countChanges(const PlanFile &before, const PlanFile &after,
                                       const std::vector<PlanDifference> &differences);

/// Returns the mesh as text, such as "data=2 x model=2"; empty for a mesh of one device.
std::string getMeshText(const PlanFile &plan);

} // namespace windlass::plan

#endif
