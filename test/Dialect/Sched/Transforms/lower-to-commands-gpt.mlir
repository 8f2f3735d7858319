// RUN: windlass-opt %S/Inputs/gpt.mlir -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adamw clip=true" -plan-apply-strategy="ranks=4 bucket-bytes=8192" -plan-materialize-layouts -plan-to-sched -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands -o %t
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=COPIES < %t
// RUN: windlass-opt %t -sched-verify-commands | diff - %t
// RUN: windlass-opt %S/Inputs/gpt.mlir -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adamw clip=true" -plan-apply-strategy=ranks=1 -plan-materialize-layouts -plan-to-sched -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands | FileCheck %s --check-prefix=ALONE
// A GPT of two layers on four ranks: two groups on the axis of micro-batches, the batch split in two.

// No value is copied: heads are views of the joint projection, attention writes in the order that the next projection
// reads.
// COPIES: func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
// COPIES-NOT: sched.launch copy
// COPIES: func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {

// Streams stand in the order of their numbers.
// CHECK: sched.stream @compute compute
// CHECK-NEXT: sched.stream @over_data_x_batch communicator
// CHECK-NEXT: sched.stream @over_batch communicator
// CHECK-DAG: sched.communicator @[[BATCH:.*]] over ["batch"] on @[[BATCHSTREAM:.*]]
// CHECK-DAG: sched.communicator @[[ALL:.*]] over ["data", "batch"] on @[[ALLSTREAM:.*]]
// CHECK: func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
// CHECK: sched.launch attention on @compute ins({{.*}}) outs({{.*}}) {causal, scale = {{.*}}} {{.*}} : (memref<2x2x8x8xf32, strided<[384, 8, 48, 1]>>, {{.*}}) -> (memref<2x2x8x8xf32, strided<[128, 8, 16, 1]>>, memref<2x2x8xf32>)
// The count is reduced over the batch before the loss is made of it.
// CHECK: sched.launch softmax_cross_entropy
// CHECK: sched.record [[#E:]] on @compute
// CHECK-NEXT: sched.wait [[#E]] on @[[BATCHSTREAM]]
// CHECK-NEXT: sched.buffer {{.*}} : memref<1xf32>
// CHECK-NEXT: sched.launch_collective{{ +}}all_reduce{{ +}}sum @[[BATCH]], %{{.*}} : memref<1xf32>
// Its end is an event of its own stream: a number belongs to one stream.
// CHECK-NEXT: sched.record [[#R:]] on @[[BATCHSTREAM]]
// CHECK-NOT: sched.record [[#R]] on @compute
// CHECK: sched.wait [[#R]] on @compute
// CHECK: return

// CHECK: func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
// The gradient of the logits takes their place; the row that has no label is cleared after.
// CHECK: sched.launch softmax_cross_entropy_grad on @compute ins(%{{.*}}, %[[LOGITS:.*]], %{{.*}}, %{{.*}}) outs(%[[LOGITS]])
// CHECK-NEXT: sched.buffer {{.*}} : memref<2x1x16xf32, strided<[128, 16, 1]>>
// CHECK-NEXT: sched.launch fill
// A tied weight: the second gradient is added to the first.
// CHECK: sched.launch matmul on @compute ins({{.*}}) outs(%[[TIED:[0-9]+]]) {{.*}} {train.id = "logits.grad.rhs"}
// Gradients of query, key and value are written into that of the joint projection.
// CHECK: sched.launch attention_grad {{.*}} -> (memref<2x2x8x8xf32, strided<[384, 8, 48, 1]>>, memref<2x2x8x8xf32, strided<[384, 8, 48, 1]>>, memref<2x2x8x8xf32, strided<[384, 8, 48, 1]>>)
// The last backward reduces buckets while the rest of it runs; the last bucket is left to @reduce, which waits.
// CHECK: sched.launch_collective{{ +}}all_reduce{{ +}}sum @[[ALL]]{{.*}} {sched.in_last,
// CHECK: sched.launch attention_grad
// CHECK: sched.launch embedding_grad on @compute ins({{.*}}) outs(%[[TIED]]) {rows = 16 : i64} accumulate {train.id = "emb.grad.table"}
// CHECK: return
// CHECK: func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
// CHECK: sched.launch_collective{{ +}}all_reduce{{ +}}sum @[[ALL]]
// CHECK: sched.record [[#LAST:]] on @[[ALLSTREAM]]
// CHECK-NEXT: sched.wait [[#LAST]] on @compute
// CHECK-NEXT: return

// The norm is summed by the kernel of its terms.
// CHECK: func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
// CHECK: sched.launch square_sum on @compute ins({{.*}}) outs(%[[NORM:.*]]) {} {train.id
// CHECK: sched.launch square_sum on @compute ins({{.*}}) outs(%[[NORM]]) {} accumulate

// CHECK: sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]

// ALONE-NOT: sched.communicator
// ALONE-NOT: launch_collective
// ALONE: sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
