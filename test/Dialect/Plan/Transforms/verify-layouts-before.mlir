// RUN: windlass-opt %s -verify-diagnostics --plan-verify-layouts=materialized=false

// Before layouts are materialized nothing is brought from one to another.
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // An op may make another layout than its result is found in, and take another than its operand lies in.
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    // expected-error @below {{does not belong to this level: layouts are not materialized yet}}
    %1 = plan.reshard %0 from <[<[<4>]>]> to <[<[<4, ["a"]>]>]> : tensor<4xf32>
    return
  }
}
