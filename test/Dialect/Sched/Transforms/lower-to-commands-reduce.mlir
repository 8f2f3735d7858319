// RUN: windlass-opt %S/Inputs/gpt.mlir -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adamw" -train-mark-repeats -plan-apply-strategy="ranks=2 strategy=zero1" -plan-materialize-layouts -plan-to-sched -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands | FileCheck %s
// Gradients that are scattered.
// Each is reduced where it stands, into the part that the rank updates, as soon as its layer is through; those of a
// layer are begun by one event, and @reduce waits for all at its end.

// CHECK: func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
// CHECK: "h.1/ln1.grad.input"
// CHECK: sched.record [[#E:]] on @compute {plan.repeat = #plan.repeat<"h", 1>, sched.in_last}
// CHECK-NEXT: sched.wait [[#E]] on @over_data {plan.repeat = #plan.repeat<"h", 1>, sched.in_last}
// CHECK-NOT: "h.0/
// CHECK-COUNT-12: sched.launch_collective{{ +}}reduce_scatter{{.*}} {plan.repeat = #plan.repeat<"h", 1>, sched.in_last, train.id = "h.1.{{.*}}"}
// CHECK-NOT: sched.launch_collective
// CHECK-NOT: sched.wait
// CHECK: "h.0/ln1.grad.input"
// CHECK: sched.record [[#E]] on @compute {plan.repeat = #plan.repeat<"h", 0>, sched.in_last}
// CHECK-NEXT: sched.wait [[#E]] on @over_data {plan.repeat = #plan.repeat<"h", 0>, sched.in_last}
// CHECK-COUNT-12: sched.launch_collective{{ +}}reduce_scatter{{.*}} {plan.repeat = #plan.repeat<"h", 0>, sched.in_last, train.id = "h.0.{{.*}}"}
// CHECK: return
// CHECK: func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
// CHECK: sched.record [[#LAST:]] on @over_data
// CHECK-NEXT: sched.wait [[#LAST]] on @compute
// CHECK-NEXT: return

// What is gathered of new weights is received by the copy that the next step computes with.
// CHECK: func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
// CHECK: sched.launch adamw
// CHECK: sched.launch_collective{{ +}}all_gather
// CHECK-NOT: sched.launch copy
// CHECK: sched.record [[#LAST]] on @over_data
// CHECK-NEXT: sched.wait [[#LAST]] on @compute
// CHECK-NEXT: return
