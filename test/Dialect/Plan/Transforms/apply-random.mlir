// One seed gives one plan, another seed another one.
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-random="seed=1 ranks=4" > %t.1
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-random="seed=1 ranks=4" | cmp - %t.1
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-random="seed=3 ranks=4" > %t.3
// RUN: not cmp %t.1 %t.3
// RUN: FileCheck %s --input-file=%t.1 --check-prefixes=GROUPS,CHECK
// RUN: FileCheck %s --input-file=%t.3 --check-prefixes=ALONE,CHECK

// Any of the axes may be of replicas, where it divides the micro-batches.
// GROUPS: plan.mesh = #plan.mesh<[<"x", 2, replica>, <"y", 2>]>, plan.prefetch_bytes
// ALONE: plan.mesh = #plan.mesh<[<"x", 4>]>

// Everything has its place.
// CHECK: train.parameter weight @w0 {{.*}}plan.gradient_layout = {{.*}}plan.layout = {{.*}}plan.master_layout =
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: plan.layout = #plan.layout<{{.*}}train.input = "x"
// CHECK: train.matmul {{.*}}plan.layouts = [#plan.layout<{{.*}}plan.strategy = #plan.strategy<
// CHECK-LABEL: func.func @update

// Every plan is legal, and what it becomes at the next level is too.
// DEFINE: %{seed} = 0
// DEFINE: %{ranks} = 1
// DEFINE: %{legal} = windlass-opt %S/Inputs/mlp.mlir --plan-apply-random="seed=%{seed} ranks=%{ranks}" \
// DEFINE:   --plan-verify-layouts=materialized=false --plan-decompose-split-reductions --plan-materialize-layouts \
// DEFINE:   --plan-verify-layouts --plan-to-sched --sched-verify-async -o /dev/null
// RUN: %{legal}
// REDEFINE: %{seed} = 5
// REDEFINE: %{ranks} = 2
// RUN: %{legal}
// REDEFINE: %{seed} = 6
// REDEFINE: %{ranks} = 12
// RUN: %{legal}
// REDEFINE: %{seed} = 7
// REDEFINE: %{ranks} = 8
// RUN: %{legal}
// REDEFINE: %{seed} = 18446744073709551615
// RUN: %{legal}

// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-random="ranks=0" 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: error: cannot plan for 0 ranks: use between 1 and 4096
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-random="ranks=4097" 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: cannot plan for 4097 ranks: use between 1 and 4096
// RUN: not windlass-opt %s --plan-apply-random 2>&1 | FileCheck %s --check-prefix=STRANGE
// STRANGE: error: argument 0 is neither an input, a value of @init nor a gradient
func.func @microbatch(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
