// The loss is three times a number that trains, so that its gradient is 3 in each step. AdamW moves the number by
// lr * g / (g + eps), where g is the gradient after it was clipped, and the loss falls by three times that.

// RUN: rm -rf %t && mkdir %t
// RUN: windlass-opt %s --train-differentiate=micro-batches=2 --train-add-optimizer=clip=true -o %t/l2.mlir
// DEFINE: %{flags} =
// DEFINE: %{run} = windlass-run %t/l2.mlir --weight-decay 0 %{flags} --json
// DEFINE: %{falls} = %{run} | %python -c 'import json, sys; a, b = json.load(sys.stdin)["losses"]; print(f"falls by {a - b:.6f}")'

// RUN: %{falls} | FileCheck %s --check-prefix=DEFAULT
// DEFAULT: falls by 0.003000
// REDEFINE: %{flags} = --lr 0.5
// RUN: %{falls} | FileCheck %s --check-prefix=RATE
// RATE: falls by 1.500000
// REDEFINE: %{flags} = --lr 0.5 --eps 3
// RUN: %{falls} | FileCheck %s --check-prefix=EPSILON
// EPSILON: falls by 0.375000
// REDEFINE: %{flags} = --lr 0.5 --eps 3 --clip-norm 100
// RUN: %{falls} | FileCheck %s --check-prefix=UNCLIPPED
// UNCLIPPED: falls by 0.750000
// REDEFINE: %{flags} = --lr 0.5 --betas 0.5,0.25
// RUN: %{falls} | FileCheck %s --check-prefix=RATE
// REDEFINE: %{flags} = --betas 0.5
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=BETAS
// BETAS: windlass-run: --betas takes two numbers
// REDEFINE: %{flags} = --loss-scale 3
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=SCALE
// REDEFINE: %{flags} = --loss-scale-floor 0
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=SCALE
// SCALE: windlass-run: --loss-scale and --loss-scale-floor take powers of two
// REDEFINE: %{flags} = --initial %t/missing.safetensors
// RUN: not %{run} 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: windlass-run: {{.*}}missing.safetensors

// A seed makes the numbers at the start.
// RUN: windlass-run %t/l2.mlir --seed 1 > %t/seed1
// RUN: windlass-run %t/l2.mlir --seed 1 | diff - %t/seed1
// RUN: windlass-run %t/l2.mlir --seed 2 | not diff - %t/seed1
// RUN: FileCheck %s --check-prefix=STEPS --input-file=%t/seed1
// STEPS: step 0 loss {{[-0-9.]+}} grad_norm 3
// STEPS-NEXT: step 1 loss {{[-0-9.]+}} grad_norm 3
// STEPS-NOT: step

// A module without an optimizer finds the parameters of each step in another run's trajectory.
// RUN: windlass-run %t/l2.mlir --lr 0.5 --steps 3 --keep-trajectory -o %t/l2.safetensors | sed 's/ grad_norm.*//' > %t/l2.txt
// RUN: windlass-run %s --micro-batches 2 --steps 3 --trajectory %t/l2.safetensors -o %t/l1.safetensors | diff - %t/l2.txt

// Dumps are compared by kind of tensor.
// RUN: windlass-run --compare %t/l1.safetensors %t/l2.safetensors | FileCheck %s --check-prefix=SAME
// SAME: loss 0.000e+00 at
// RUN: windlass-run %t/l2.mlir --lr 0.25 --steps 3 -o %t/other.safetensors
// RUN: not windlass-run --compare %t/other.safetensors %t/l2.safetensors --json > %t/differs 2>&1
// RUN: FileCheck %s --check-prefix=DIFFERS --input-file=%t/differs
// DIFFERS: {"bound":1{{.*}},"passes":false,"deviations":{
// RUN: windlass-run --compare %t/other.safetensors %t/l2.safetensors --bound 1e9 --json | FileCheck %s --check-prefix=PASSES
// PASSES: {"bound":1000000000,"passes":true,

// RUN: not windlass-run 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not windlass-run %s %s 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: windlass-run: needs one file to run
// RUN: not windlass-run --compare %t/l1.safetensors 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: windlass-run: needs two dumps to compare

train.parameter weight @w "w" : tensor<1xf32> from <packed> {trainable}
func.func @loss() -> tensor<f32> {
  %w = train.read @w : tensor<1xf32> {train.id = "w"}
  %three = train.constant dense<3.0> : tensor<1xf32>
  %product = train.mul %w, %three : tensor<1xf32> {train.id = "product"}
  %loss = train.reduce sum %product dims [0] : tensor<1xf32> -> tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}
