// RUN: windlass-opt %s -train-assign-ids | FileCheck %s

// CHECK-LABEL: func.func @ids
func.func @ids(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: train.tanh {{.*}}train.id = "block.mlp.tanh.0"
  %a = train.tanh %x : tensor<8xf32> loc("block.mlp"("node_1"))
  // CHECK: train.tanh {{.*}}train.id = "block.mlp.tanh.1"
  %b = train.tanh %a : tensor<8xf32> loc("block.mlp"("node_2"))
  // CHECK: train.exp {{.*}}train.id = "block.mlp.exp.0"
  %c = train.exp %b : tensor<8xf32> loc("block.mlp"("node_3"))
  // CHECK: train.exp {{.*}}train.id = "node_4.exp.0"
  %d = train.exp %c : tensor<8xf32> loc("node_4")
  return %d : tensor<8xf32>
}
