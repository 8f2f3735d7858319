// RUN: windlass-opt --sched-to-emitc -split-input-file -verify-diagnostics %s

sched.arena @device_arena bytes 64
func.func @init() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error@+1 {{the runtime has no kernel 'paint'}}
  sched.launch "paint" stream 0 ins() outs(%a) {} : () -> memref<4xf32>
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

sched.arena @device_arena bytes 64
func.func @init() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error@+1 {{kernel 'copy' does not take 0 operands and 1 results}}
  sched.launch "copy" stream 0 ins() outs(%a) {} : () -> memref<4xf32>
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

// expected-error@+1 {{level L5 needs a function @init}}
module {}
