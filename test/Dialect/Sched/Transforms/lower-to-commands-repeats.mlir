// RUN: windlass-opt %S/Inputs/gpt.mlir -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adamw clip=true" -train-mark-repeats -plan-apply-strategy="ranks=4 bucket-bytes=8192" -plan-materialize-layouts -plan-to-sched -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands -o %t
// RUN: %python %S/Inputs/compare_repeats.py %t | FileCheck %s
// The instances of a repeated block have equal commands but for offsets, and stand in one piece: fusion, buffers in
// place and the collectives of buckets leave them alone.

// CHECK: forward h: 2 instances, 1 text, 2 pieces
// CHECK-NOT: {{[2-9]}} texts
