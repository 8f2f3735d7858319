// The dialect and its enumerations. Includes no other dialect, or their enumerations would be generated again.
#ifndef WINDLASS_PLAN_ENUMS_TD
#define WINDLASS_PLAN_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def PlanDialect : Dialect {
  let name = "plan";
  let cppNamespace = "::windlass::plan";
  let summary = "strategies, layouts and reshards";
  let description = [{
    Level L3. `plan.mesh` on the module names the axes. Every `train` op has `plan.strategy`; every op result, function
    argument and result has a layout (`plan.layouts` on ops, `plan.layout` on arguments and results). Layouts differ
    between a producer and a consumer only at `plan.reshard`. Types stay global.

    An axis has a role, and any number of axes may share one. The axes of role `replica` carry P data-parallel replicas
    (groups of ranks), numbered by their coordinates in row-major order; each replica runs `@microbatch` on its own
    micro-batches. Values inside `@microbatch` and `@evaluate` differ between replicas, so their layouts never name
    these axes; only values read from a parameter may, because all replicas share it. Gradients leave `@microbatch`
    unreduced over these axes, whatever their layout says, and are brought to the weight's `plan.gradient_layout` before
    they are added to those of earlier micro-batches.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def Plan_AxisRole : I32EnumAttr<"AxisRole", "what the members of a mesh axis divide among themselves", [
  I32EnumAttrCase<"model", 0>, I32EnumAttrCase<"replica", 1>, I32EnumAttrCase<"batch", 2>,
  I32EnumAttrCase<"expert", 3>]> {
  let cppNamespace = "::windlass::plan";
  let genSpecializedAttr = 0;
}

def Plan_MemoryKind : I32EnumAttr<"MemoryKind", "where a value is kept", [
  I32EnumAttrCase<"device", 0>, I32EnumAttrCase<"host", 1>, I32EnumAttrCase<"disk", 2>]> {
  let cppNamespace = "::windlass::plan";
  let genSpecializedAttr = 0;
}

#endif
