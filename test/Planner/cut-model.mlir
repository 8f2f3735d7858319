// RUN: windlass-opt %S/../Conversion/PlanToSched/pipelines.mlir --train-differentiate=micro-batches=4 "--train-add-optimizer=optimizer=sgd micro-batches=4" --plan-cut-model=cluster=cpu:4 | FileCheck %s
// RUN: not windlass-opt %S/../Conversion/PlanToSched/pipelines.mlir --train-differentiate=micro-batches=4 "--train-add-optimizer=optimizer=sgd micro-batches=4" --plan-cut-model="positions=3 cluster=cpu:4" 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not windlass-opt %S/../Conversion/PlanToSched/pipelines.mlir --train-differentiate=micro-batches=4 "--train-add-optimizer=optimizer=sgd micro-batches=4" --plan-cut-model="positions=2 chunks=9 cluster=cpu:4" 2>&1 | FileCheck %s --check-prefix=PLACES

// The last product and the loss take as long as the first product, or longer.
// CHECK: plan.pipeline = #plan.pipeline<positions = 2, schedule = "1f1b", begins = ["{{.*}}"]>
// SHARE: cannot be cut: 3 positions with 1 chunks each do not share 4 devices
// PLACES: the model has {{.*}} where chunks could begin, but 18 chunks need 17: use fewer stages or chunks
