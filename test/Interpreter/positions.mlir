// A model of two layers, split by hand into two positions, of which the first has two micro-batches in flight (1F1B over the
// four of a step): over two steps it leaves what the unsplit model does at L2.
// RUN: split-file %s %t
// RUN: windlass-opt %t/whole.mlir -train-differentiate=micro-batches=4 -train-add-optimizer="optimizer=sgd micro-batches=4" -o %t/l2.mlir
// RUN: windlass-run %t/l2.mlir --level L2 --lr 0.1 --momentum 0.9 --weight-decay 0.1 -o %t/l2.safetensors
// RUN: windlass-opt %t/split.mlir --sched-verify-async -o %t/verified.mlir
// RUN: windlass-run %t/verified.mlir --level L4 --ranks 2 --lr 0.1 --momentum 0.9 --weight-decay 0.1 -o %t/l4.safetensors
// RUN: windlass-run --compare %t/l2.safetensors %t/l4.safetensors --bound 1e-10 | FileCheck %s
// CHECK-DAG: evaluate {{.*}} of 4 tensors
// CHECK-DAG: grad_norm {{.*}} of 2 tensors
// CHECK-DAG: gradient {{.*}} of 4 tensors
// CHECK-DAG: loss {{.*}} of 2 tensors
// CHECK-DAG: parameter {{.*}} of 2 tensors
// CHECK-DAG: state {{.*}} of 2 tensors

// Fused operators take messages as any others.
// RUN: windlass-opt %t/split.mlir --sched-fuse-elementwise --sched-verify-async -o %t/fused.mlir
// RUN: windlass-run %t/fused.mlir --level L4 --lr 0.1 --momentum 0.9 --weight-decay 0.1 -o %t/fused.safetensors
// RUN: windlass-run --compare %t/l2.safetensors %t/fused.safetensors --bound 1e-10

// Commands have slots for the micro-batches in flight; with one there is nothing to tell apart, and so no slots.
// RUN: windlass-opt %t/split.mlir --sched-verify-async --sched-fuse-pipeline --sched-to-commands-pipeline -o %t/l5.mlir
// RUN: FileCheck %s --check-prefix=SLOTS --input-file=%t/l5.mlir
// SLOTS: sched.slots @slots_0 chunk 0 in @device_arena[{{[0-9]+}}] count 2 bytes 704
// SLOTS-NOT: sched.slots
// RUN: windlass-run %t/l5.mlir --level L5 --ranks 2 --lr 0.1 --momentum 0.9 --weight-decay 0.1 -o %t/l5.safetensors
// RUN: windlass-run --compare %t/l2.safetensors %t/l5.safetensors --bound 1e-10
// The simulator runs both: the norm of all gradients is combined when both have come to it.
// RUN: windlass-opt --simulate-schedule %t/l5.mlir h200:2 | FileCheck %s --check-prefix=TIME
// TIME: position 0 busy
// TIME: messages with position 1
// TIME: position 1 busy
// TIME: update {{.*}}, over positions
// RUN: sed 's/#sched.action<forward>, #sched.action<send peer 1>, #sched.action<repeat x 3 of 4>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, /#sched.action<repeat x 4 of 4>, #sched.action<forward>, #sched.action<send peer 1>, /' %t/split.mlir > %t/in-turn.mlir
// RUN: windlass-opt %t/in-turn.mlir --sched-verify-async --sched-fuse-pipeline --sched-to-commands-pipeline -o %t/l5-in-turn.mlir
// RUN: FileCheck %s --check-prefix=NO-SLOTS --input-file=%t/l5-in-turn.mlir
// NO-SLOTS-NOT: sched.slots
// RUN: windlass-run %t/l5-in-turn.mlir --level L5 --ranks 2 --lr 0.1 --momentum 0.9 --weight-decay 0.1 -o %t/l5-in-turn.safetensors
// RUN: windlass-run --compare %t/l2.safetensors %t/l5-in-turn.safetensors --bound 1e-10

// A slot that is taken again too early, in commands and in their interpreter, which runs an order whatever the checker says.
// RUN: sed 's/count 2 bytes/count 1 bytes/' %t/l5.mlir > %t/early-slot.mlir
// RUN: not windlass-opt %t/early-slot.mlir --sched-verify-commands 2>&1 | FileCheck %s --check-prefix=EARLY-SLOT
// RUN: not windlass-run %t/early-slot.mlir --lr 0.1 --momentum 0.9 --weight-decay 0.1 2>&1 | FileCheck %s --check-prefix=EARLY-SLOT
// EARLY-SLOT: error: 'sched.schedule' op keeps 2 micro-batches of chunk 0 in flight, but the chunk has 1 slot

// What the checker refuses, one change each: a message that nobody receives, two that are exchanged, an order in which both
// wait, a backward that is given another micro-batch's slot by running before its gradient has come.
// RUN: sed 's/#sched.action<repeat x 4 of 4>, #sched.action<receive chunk 1 peer 0>, /#sched.action<repeat x 4 of 3>, /' %t/split.mlir > %t/missing.mlir
// RUN: not windlass-opt %t/missing.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: 'sched.schedule' op position 1
// RUN: sed 's/#sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>/#sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>/' %t/split.mlir > %t/deadlock.mlir
// RUN: not windlass-opt %t/deadlock.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// DEADLOCK: error: 'sched.schedule' op never ends: position 0 waits for position 1
// RUN: sed 's/#sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>/#sched.action<backward>, #sched.action<receive peer 1>, #sched.action<send peer 1>/' %t/split.mlir > %t/early.mlir
// RUN: not windlass-opt %t/early.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: 'sched.schedule' op position 0
// RUN: sed 's/#sched.action<forward chunk 1>, #sched.action<backward chunk 1>/#sched.action<backward chunk 1>, #sched.action<forward chunk 1>/' %t/split.mlir > %t/backward.mlir
// RUN: not windlass-opt %t/backward.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=BACKWARD
// BACKWARD: error: 'sched.schedule' op position 1

// Collectives over positions that do not meet: of one position only, in an order that differs, in a forward, and before a
// message. In the first two the commands of a position are those of another module.
// RUN: sed '0,/.all = sched.all_reduce .*/s//%%all = train.sqrt %%square : tensor<f32>/' %t/split.mlir > %t/alone.mlir
// RUN: not windlass-opt %t/alone.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: error: 'sched.all_reduce' op combines sum of tensor<f32> over [] and positions [0, 1], but position 0 combines nothing more over positions in a step
// RUN: not windlass-run %t/alone.mlir --lr 0.1 --momentum 0.9 --weight-decay 0.1 2>&1 | FileCheck %s --check-prefix=NOT-MET
// NOT-MET: error: 'sched.program' op waits at action 17 for the other positions, which do not come to its collective
// RUN: sed 's/\(.norm = train.sqrt .all\)/%%two = sched.all_reduce sum %%two_of over [] and positions [0, 1] : (tensor<2xf32>) -> tensor<2xf32>\n\1/; s/\(.all = sched.all_reduce\)/%%two_of = train.constant dense<1.0> : tensor<2xf32>\n\1/' %t/split.mlir > %t/two.mlir
// RUN: windlass-opt %t/two.mlir --sched-verify-async -o /dev/null
// RUN: sed '0,/.two = sched.all_reduce/{/.two = sched.all_reduce/d;}; 0,/\(.all = sched.all_reduce\)/s//%%two = sched.all_reduce sum %%two_of over [] and positions [0, 1] : (tensor<2xf32>) -> tensor<2xf32>\n\1/' %t/two.mlir > %t/orders.mlir
// RUN: not windlass-opt %t/orders.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=ORDERS
// ORDERS: error: 'sched.all_reduce' op combines sum of tensor<f32> over [] and positions [0, 1], but position 0 combines sum of tensor<2xf32> over [] and positions [0, 1]
// RUN: sed 's/sched.store @act, .a :/%%b = sched.all_reduce sum %%a over [] and positions [0, 1] : (tensor<8x6xf32>) -> tensor<8x6xf32>\nsched.store @act, %%b :/' %t/split.mlir > %t/in-forward.mlir
// RUN: not windlass-opt %t/in-forward.mlir --sched-verify-async 2>&1 | FileCheck %s --check-prefix=IN-FORWARD
// IN-FORWARD: error: 'sched.all_reduce' op combines over positions in a forward, but only reductions and updates may

// The interpreter runs an order whatever the checker says, and stops where it cannot go on.
// RUN: not windlass-run %t/missing.mlir --lr 0.1 --momentum 0.9 --weight-decay 0.1 2>&1 | FileCheck %s --check-prefix=UNREAD
// UNREAD: error: reads @act before anything wrote it
// RUN: not windlass-run %t/backward.mlir --lr 0.1 --momentum 0.9 --weight-decay 0.1 2>&1 | FileCheck %s --check-prefix=NO-STASH
// NO-STASH: error: cannot be executed: nothing has handed over its stash in slot 0
// RUN: sed 's/#sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>/#sched.action<receive peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<reduce>/' %t/split.mlir > %t/waits.mlir
// RUN: not windlass-run %t/waits.mlir --lr 0.1 --momentum 0.9 --weight-decay 0.1 2>&1 | FileCheck %s --check-prefix=WAITS
// WAITS: error: 'sched.program' op waits at action 16 for chunk 1, which sends nothing more

//--- whole.mlir
module attributes {train.model = "two_layers"} {
  train.parameter weight @w0 "fc0.weight" : tensor<4x6xf32> from #train.source<packed> {trainable}
  train.parameter weight @w1 "fc1.weight" : tensor<6x3xf32> from #train.source<packed> {trainable}
  func.func @loss(%x: tensor<8x4xf32> {train.input = "x"}, %y: tensor<8xi64> {train.input = "y", train.vocabulary = 3 : i64}) -> tensor<f32> {
    %0 = train.read @w0 : tensor<4x6xf32>
    %h = train.matmul %x, %0 batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32> {train.id = "fc0"}
    %a = train.tanh %h : tensor<8x6xf32> {train.id = "act"}
    %1 = train.read @w1 : tensor<6x3xf32>
    %l = train.matmul %a, %1 batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x3xf32> -> tensor<8x3xf32> {train.id = "fc1"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %l, %y ignore -100 {train.id = "ce"} : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}

//--- split.mlir
module attributes {train.model = "two_layers", train.settings = {clip = false, micro_batches = 4 : i64, optimizer = "sgd"},
                   sched.placement = #sched.placement<[0, 1]>} {
  train.parameter weight @w0 "fc0.weight" : tensor<4x6xf32> from <packed> {decays, trainable}
  train.parameter weight @w1 "fc1.weight" : tensor<6x3xf32> from <packed> {decays, trainable}
  train.parameter state @m0 "fc0.weight/momentum_buffer" : tensor<4x6xf32> from <none> {of = @w0}
  train.parameter state @m1 "fc1.weight/momentum_buffer" : tensor<6x3xf32> from <none> {of = @w1}

  sched.program @first on <[]> {
    sched.resource input @x : tensor<8x4xf32> of tensor<8x4xf32> <[<[<8>]>, <[<4>]>]> {logical_name = "x"}
    sched.resource parameter @w : tensor<4x6xf32> of tensor<4x6xf32> <[<[<4>]>, <[<6>]>]> {logical_name = "fc0.weight", of = @w0}
    sched.resource gradient @g : tensor<4x6xf32> of tensor<4x6xf32> <[<[<4>]>, <[<6>]>]> {logical_name = "fc0.weight", of = @w0}
    sched.resource state @m : tensor<4x6xf32> of tensor<4x6xf32> <[<[<4>]>, <[<6>]>]> {logical_name = "fc0.weight/momentum_buffer", of = @m0}
    sched.resource scalar @lr : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter learning_rate>}
    sched.resource scalar @momentum : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter momentum>}
    sched.resource scalar @decay : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter weight_decay>}
    sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
    sched.resource sent @act : tensor<8x6xf32> of tensor<8x6xf32> <[<[<8>]>, <[<6>]>]> {peer = 1 : i64}
    sched.resource received @d_act : tensor<8x6xf32> of tensor<8x6xf32> <[<[<8>]>, <[<6>]>]> {peer = 1 : i64}
    func.func @forward() -> (tensor<8x6xf32>, tensor<8x4xf32>) attributes {sched.step = #sched.step<forward, chunk 0>} {
      %x = sched.load @x : tensor<8x4xf32>
      %w = sched.load @w : tensor<4x6xf32>
      %h = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
      %a = train.tanh %h : tensor<8x6xf32>
      sched.store @act, %a : tensor<8x6xf32>
      return %a, %x : tensor<8x6xf32>, tensor<8x4xf32>
    }
    func.func @backward(%a: tensor<8x6xf32>, %x: tensor<8x4xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
      %d = sched.load @d_act : tensor<8x6xf32>
      %dh = train.tanh_grad %a, %d : tensor<8x6xf32>
      %dw = train.matmul %x, %dh batch [] x [] contract [0] x [0] : tensor<8x4xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
      sched.add_to @g, %dw : tensor<4x6xf32>
      return
    }
    func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
      return
    }
    func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
      %g = sched.load @g : tensor<4x6xf32>
      %square = train.square_sum %g : tensor<4x6xf32> -> tensor<f32>
      %all = sched.all_reduce sum %square over [] and positions [0, 1] : (tensor<f32>) -> tensor<f32>
      %norm = train.sqrt %all : tensor<f32>
      %one = train.constant dense<1.0> : tensor<f32>
      %w = sched.load @w : tensor<4x6xf32>
      %m = sched.load @m : tensor<4x6xf32>
      %lr = sched.load @lr : tensor<f32>
      %momentum = sched.load @momentum : tensor<f32>
      %decay = sched.load @decay : tensor<f32>
      %w1, %m1 = train.sgd %w, %m, %g, %lr, %momentum, %decay, %one decays : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
      sched.store @w, %w1 : tensor<4x6xf32>
      sched.store @m, %m1 : tensor<4x6xf32>
      sched.store @norm, %norm : tensor<f32>
      return
    }
    func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
      %x = sched.load @x : tensor<8x4xf32>
      %w = sched.load @w : tensor<4x6xf32>
      %h = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
      %a = train.tanh %h : tensor<8x6xf32>
      sched.store @act, %a : tensor<8x6xf32>
      return
    }
    // forward, send, then (forward, receive, send, backward) x 3, receive, backward: two micro-batches in flight.
    sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<repeat x 3 of 4>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  }

  sched.program @second position 1 on <[]> {
    sched.resource input @y : tensor<8xi64> of tensor<8xi64> <[<[<8>]>]> {chunk = 1 : i64, logical_name = "y", train.vocabulary = 3 : i64}
    sched.resource parameter @w : tensor<6x3xf32> of tensor<6x3xf32> <[<[<6>]>, <[<3>]>]> {logical_name = "fc1.weight", of = @w1}
    sched.resource gradient @g : tensor<6x3xf32> of tensor<6x3xf32> <[<[<6>]>, <[<3>]>]> {logical_name = "fc1.weight", of = @w1}
    sched.resource state @m : tensor<6x3xf32> of tensor<6x3xf32> <[<[<6>]>, <[<3>]>]> {logical_name = "fc1.weight/momentum_buffer", of = @m1}
    sched.resource scalar @lr : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter learning_rate>}
    sched.resource scalar @momentum : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter momentum>}
    sched.resource scalar @decay : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter weight_decay>}
    sched.resource loss @loss : tensor<f32> of tensor<f32> <[]>
    sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
    sched.resource evaluate @evaluated : tensor<f32> of tensor<f32> <[]>
    sched.resource received @act : tensor<8x6xf32> of tensor<8x6xf32> <[<[<8>]>, <[<6>]>]> {chunk = 1 : i64, peer = 0 : i64}
    sched.resource sent @d_act : tensor<8x6xf32> of tensor<8x6xf32> <[<[<8>]>, <[<6>]>]> {chunk = 1 : i64, peer = 0 : i64}
    func.func @forward() -> (tensor<f32>, tensor<8x3xf32>, tensor<8xf32>, tensor<8x6xf32>, tensor<8xi64>) attributes {sched.step = #sched.step<forward, chunk 1>} {
      %a = sched.load @act : tensor<8x6xf32>
      %y = sched.load @y : tensor<8xi64>
      %w = sched.load @w : tensor<6x3xf32>
      %l = train.matmul %a, %w batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x3xf32> -> tensor<8x3xf32>
      %sum, %count, %log_sum = train.softmax_cross_entropy %l, %y ignore -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
      %loss = train.loss %sum, %count : tensor<f32>
      %quarter = train.constant dense<0.25> : tensor<f32>
      %share = train.mul %loss, %quarter : tensor<f32>
      sched.add_to @loss, %share : tensor<f32>
      return %count, %l, %log_sum, %a, %y : tensor<f32>, tensor<8x3xf32>, tensor<8xf32>, tensor<8x6xf32>, tensor<8xi64>
    }
    func.func @backward(%count: tensor<f32>, %l: tensor<8x3xf32>, %log_sum: tensor<8xf32>, %a: tensor<8x6xf32>, %y: tensor<8xi64>) attributes {sched.step = #sched.step<backward, chunk 1>} {
      %quarter = train.constant dense<0.25> : tensor<f32>
      %factor = train.div %quarter, %count : tensor<f32>
      %dl = train.softmax_cross_entropy_grad %factor, %l, %y, %log_sum ignore -100 : (tensor<f32>, tensor<8x3xf32>, tensor<8xi64>, tensor<8xf32>) -> tensor<8x3xf32>
      %w = sched.load @w : tensor<6x3xf32>
      %da = train.matmul %dl, %w batch [] x [] contract [1] x [1] : tensor<8x3xf32>, tensor<6x3xf32> -> tensor<8x6xf32>
      sched.store @d_act, %da : tensor<8x6xf32>
      %dw = train.matmul %a, %dl batch [] x [] contract [0] x [0] : tensor<8x6xf32>, tensor<8x3xf32> -> tensor<6x3xf32>
      sched.add_to @g, %dw : tensor<6x3xf32>
      return
    }
    func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
      return
    }
    func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
      %g = sched.load @g : tensor<6x3xf32>
      %square = train.square_sum %g : tensor<6x3xf32> -> tensor<f32>
      %all = sched.all_reduce sum %square over [] and positions [0, 1] : (tensor<f32>) -> tensor<f32>
      %norm = train.sqrt %all : tensor<f32>
      %one = train.constant dense<1.0> : tensor<f32>
      %w = sched.load @w : tensor<6x3xf32>
      %m = sched.load @m : tensor<6x3xf32>
      %lr = sched.load @lr : tensor<f32>
      %momentum = sched.load @momentum : tensor<f32>
      %decay = sched.load @decay : tensor<f32>
      %w1, %m1 = train.sgd %w, %m, %g, %lr, %momentum, %decay, %one decays : (tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<6x3xf32>, tensor<6x3xf32>)
      sched.store @w, %w1 : tensor<6x3xf32>
      sched.store @m, %m1 : tensor<6x3xf32>
      sched.store @norm, %norm : tensor<f32>
      return
    }
    func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 1>} {
      %a = sched.load @act : tensor<8x6xf32>
      %y = sched.load @y : tensor<8xi64>
      %w = sched.load @w : tensor<6x3xf32>
      %l = train.matmul %a, %w batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x3xf32> -> tensor<8x3xf32>
      %sum, %count, %log_sum = train.softmax_cross_entropy %l, %y ignore -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
      %loss = train.loss %sum, %count : tensor<f32>
      sched.store @evaluated, %loss : tensor<f32>
      return
    }
    sched.schedule [#sched.action<repeat x 4 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
  }
}
