// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

sched.program @program on <[]> {
// A constant whose elements differ is a table of bits; equal ones are one table.

// CHECK: emitc.file "constants.h"
// CHECK: constexpr std::uint32_t constant_0[] = {
// CHECK-NEXT: 0x3f800000, 0xff800000, 0x0
// CHECK: };
// CHECK: constexpr std::uint8_t constant_1[] = {
// CHECK-NEXT: 0x1, 0x0, 0x1
// CHECK: constexpr std::uint64_t constant_2[] = {
// CHECK-NEXT: 0xffffffffffffffff, 0x2, 0x3
// CHECK-NOT: constant_3
// CHECK: emitc.file "step.cpp"
// CHECK: verbatim "#include \22constants.h\22"
// CHECK: status init(
// CHECK: WINDLASS_TRY(constant(compute, at(v0), constant_0));
// CHECK: WINDLASS_TRY(constant(compute, at(v1), constant_1));
// CHECK: WINDLASS_TRY(constant(compute, at(v2), constant_2));
// CHECK: status forward(
// CHECK: WINDLASS_TRY(constant(compute, at(v3), constant_0));

sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<3xf32>
  %b = sched.buffer @device_arena[64] : memref<3xi1>
  %c = sched.buffer @device_arena[128] : memref<3xi64>
  sched.launch constant on @compute ins() outs(%a) {value = dense<[1.0, 0xFF800000, 0.0]> : tensor<3xf32>} : () -> memref<3xf32>
  sched.launch constant on @compute ins() outs(%b) {value = dense<[true, false, true]> : tensor<3xi1>} : () -> memref<3xi1>
  sched.launch constant on @compute ins() outs(%c) {value = dense<[-1, 2, 3]> : tensor<3xi64>} : () -> memref<3xi64>
  return
}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[256] : memref<3xf32>
  sched.launch constant on @compute ins() outs(%a) {value = dense<[1.0, 0xFF800000, 0.0]> : tensor<3xf32>} : () -> memref<3xf32>
  return
}
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
