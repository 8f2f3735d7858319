// RUN: windlass-opt %s -split-input-file -verify-diagnostics

// Operands, attributes and results of single operators.

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{permutation [0] has 1 entries for an operand of rank 2}}
  %0 = train.transpose %x [0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{permutation [0, 0] names dim 0 twice}}
  %0 = train.transpose %x [0, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{permutation 2 is not a dim of an operand of rank 2}}
  %0 = train.transpose %x [0, 2] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{failed to infer returned types}}
  // expected-error @below {{are incompatible with return type(s) of operation}}
  %0 = train.transpose %x [1, 0] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{starts [0] and sizes [2, 3] must have one entry per dim of}}
  %0 = train.slice %x from [0] sizes [2, 3] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{takes 3 elements from 1 along dim 1, which has 3}}
  %0 = train.slice %x from [0, 1] sizes [2, 3] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{low [0] and high [0, 0] must have one entry per dim of}}
  %0 = train.pad %x low [0] high [0, 0] value 0.0 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{pads dim 0 by -1 and 0; paddings are at least 0 (use train.slice to cut) and below 2^31}}
  %0 = train.pad %x low [-1, 0] high [0, 0] value 0.0 : tensor<2x3xf32> -> tensor<1x3xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{joins nothing; give it at least one operand}}
  %0 = "train.concat"() <{axis = 0 : i64}> : () -> tensor<1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{axis 2 is not a dim of an operand of rank 2}}
  %0 = train.concat %x axis 2 : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) {
  // expected-error @below {{cannot join 'tensor<3x3xf32>' to 'tensor<2x3xf32>' along axis 1; all other dims and the element type must agree}}
  %0 = train.concat %x, %y axis 1 : tensor<2x3xf32>, tensor<3x3xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{axis -1 is not a dim of an operand of rank 2}}
  %0 = train.split %x axis -1 sizes [3] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{sizes [2, 2] do not add up to the 3 elements of axis 1}}
  %0:2 = train.split %x axis 1 sizes [2, 2] : tensor<2x3xf32> -> tensor<2x2xf32>, tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{sizes [2] do not add up to the 3 elements of axis 1}}
  %0 = train.split %x axis 1 sizes [2] : tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f() {
  // expected-error @below {{counts in 'tensor<2xi1>'; the element type must be a number}}
  %0 = train.iota 0 start 0.0 step 1.0 : tensor<2xi1>
  return
}

// -----

func.func @f() {
  // expected-error @below {{dim 1 is not a dim of an operand of rank 1}}
  %0 = train.iota 1 start 0.0 step 1.0 : tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{turns 'tensor<2xf32>' into 'tensor<2x3xf64>'; the element types must agree (use train.cast)}}
  %0 = train.broadcast %x dims [0] : tensor<2xf32> -> tensor<2x3xf64>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{dims [] must have one entry per dim of the operand}}
  %0 = train.broadcast %x dims [] : tensor<2xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{dims [1, 0] must increase from 0 on}}
  %0 = train.broadcast %x dims [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{result dim 2 is not a dim of an operand of rank 2}}
  %0 = train.broadcast %x dims [2] : tensor<2xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<1xf32>) {
  // expected-error @below {{puts dim 0 of size 1 at dim 1 of size 3; reshape dims of size 1 away before}}
  %0 = train.broadcast %x dims [1] : tensor<1xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @below {{turns 'tensor<2xf32>' into 'tensor<2xi64>'; the element types must agree (use train.cast)}}
  %0 = train.reshape %x : tensor<2xf32> -> tensor<2xi64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{turns 'tensor<2x3xf32>' of 6 elements into 'tensor<5xf32>' of 5}}
  %0 = train.reshape %x : tensor<2x3xf32> -> tensor<5xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %y: tensor<3x2xf64>) {
  // expected-error @below {{multiplies 'tensor<2x3xf32>' by 'tensor<3x2xf64>'; the element types must agree}}
  %0 = train.matmul %x, %y batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<3x2xf64> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{lhs dims 2 is not a dim of an operand of rank 2}}
  %0 = train.matmul %x, %x batch [] x [] contract [2] x [0] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{rhs dims [1, 1] names dim 1 twice}}
  %0 = train.matmul %x, %x batch [1] x [1] contract [0] x [1] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{batch dims [0] x [] must be equally many}}
  %0 = train.matmul %x, %x batch [0] x [] contract [1] x [1] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{differ: 3 and 2}}
  %0 = train.matmul %x, %x batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xi1>) {
  // expected-error @below {{combines elements of 'tensor<2x3xi1>'; cast truth values to numbers before}}
  %0 = train.reduce sum %x dims [0] : tensor<2x3xi1> -> tensor<3xi1>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{dims [1, 1] names dim 1 twice}}
  %0 = train.reduce sum %x dims [1, 1] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @below {{dims [1, 0] must increase}}
  %0 = train.reduce sum %x dims [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{works on rows, but its operand 'tensor<f32>' has no dims}}
  %0 = train.softmax %x : tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{works on rows, but its operand 'tensor<f32>' has no dims}}
  %0 = train.softmax_grad %x, %x : tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{works on rows, but its operand 'tensor<f32>' has no dims}}
  %0:3 = train.layer_norm %x, %x epsilon 0.0 : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32>, tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{scale has type 'tensor<2xf32>', but the other operands need 'tensor<3xf32>'}}
  %0:3 = train.layer_norm %x, %s epsilon 0.0 : tensor<2x3xf32>, tensor<2xf32> -> tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error @below {{bias has type 'tensor<2xf32>', but the other operands need 'tensor<3xf32>'}}
  %0:3 = train.layer_norm %x, %s, %b epsilon 0.0 : tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32> -> tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{must be a number of at least 0}}
  %0:3 = train.layer_norm %x, %s epsilon -1.0 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{works on rows, but its operand}}
  %0:3 = train.layer_norm_grad %x, %x, %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{gradient has type}}
  %0:3 = train.layer_norm_grad %s, %x, %s, %m, %m : (tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{scale has type}}
  %0:3 = train.layer_norm_grad %x, %x, %m, %m, %m : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{mean has type}}
  %0:3 = train.layer_norm_grad %x, %x, %s, %s, %m : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{rstd has type}}
  %0:3 = train.layer_norm_grad %x, %x, %s, %m, %s : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%t: tensor<7xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{reads rows of a table of two dims, but got 'tensor<7xf32>'}}
  %0 = train.embedding %t, %i : tensor<7xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @f(%i: tensor<2xi64>, %g: tensor<3x4xf32>) {
  // expected-error @below {{must have the dims of ids 'tensor<2xi64>' and one more}}
  %0 = train.embedding_grad %i, %g rows 7 : tensor<2xi64>, tensor<3x4xf32> -> tensor<7x4xf32>
  return
}

// -----

func.func @f(%i: tensor<2xi64>, %g: tensor<2x4xf32>) {
  // expected-error @below {{has a table of 0 rows; rows must be positive}}
  %0 = train.embedding_grad %i, %g rows 0 : tensor<2xi64>, tensor<2x4xf32> -> tensor<7x4xf32>
  return
}

// -----

func.func @f(%t: tensor<7x4xf32>, %i: tensor<2xi64>, %f: tensor<2xi64>) {
  // expected-error @+1 {{has 7 rows of 14, which cannot be 2 equal parts of them}}
  %0 = train.embedding %t, %i first %f of 14 : tensor<7x4xf32>, tensor<2xi64>, tensor<2xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%t: tensor<8x4xf32>, %i: tensor<2xi64>, %f: tensor<2xi64>) {
  // expected-error @+1 {{has 8 rows of 6, which cannot be 2 equal parts of them}}
  %0 = train.embedding %t, %i first %f of 6 : tensor<8x4xf32>, tensor<2xi64>, tensor<2xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%i: tensor<2xi64>, %g: tensor<2x4xf32>, %f: tensor<2xi32>) {
  // expected-error @+1 {{first rows 'tensor<2xi32>' must be a list of 64-bit integers}}
  %0 = train.embedding_grad %i, %g rows 4 first %f of 8 : tensor<2xi64>, tensor<2x4xf32>, tensor<2xi32> -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%t: tensor<8x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{needs both where parts of the table begin and how many rows there are in all, or neither}}
  %0 = "train.embedding"(%t, %i) {all_rows = 16 : i64} : (tensor<8x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5xi64>, %w: tensor<5x2xf32>, %u: tensor<4x6x4xf32>, %d: tensor<4x7x3xf32>) {
  // expected-error @+1 {{has an input 'tensor<5x4xf32>', choices 'tensor<5xi64>', and matrices 'tensor<4x6x4xf32>' and 'tensor<4x7x3xf32>'; they have two, two, three and three dims}}
  %0 = train.experts %x to %c by %w through %u, %d silu gated : (tensor<5x4xf32>, tensor<5xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %u: tensor<4x5x4xf32>, %d: tensor<4x7x3xf32>) {
  // expected-error @+1 {{has 4 experts of 5 hidden values, of which a token takes 2; all are positive, and hidden values that are gated are an even number}}
  %0 = train.experts %x to %c by %w through %u, %d silu gated : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x5x4xf32>, tensor<4x7x3xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %u: tensor<4x6x4xf32>, %d: tensor<4x7x3xf32>) {
  // expected-error @+1 {{down has type 'tensor<4x7x3xf32>', but the other operands need 'tensor<4x7x6xf32>'}}
  %0 = train.experts %x to %c by %w through %u, %d silu : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %u: tensor<4x6x4xf32>, %d: tensor<4x7x3xf32>, %first: tensor<3xi64>) {
  // expected-error @+1 {{has a gate of its own, and halves that are gated; it has one of them}}
  %0 = train.experts %x to %c by %w through %u, %d gate %u silu gated : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>, tensor<4x6x4xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %u: tensor<4x3x4xf32>, %d: tensor<4x7x3xf32>) {
  // expected-error @+1 {{gate has type 'tensor<4x7x3xf32>', but the other operands need 'tensor<4x3x4xf32>'}}
  %0 = train.experts %x to %c by %w through %u, %d gate %d silu : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x3x4xf32>, tensor<4x7x3xf32>, tensor<4x7x3xf32>) -> tensor<5x7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %u: tensor<4x6x4xf32>, %d: tensor<4x7x3xf32>, %first: tensor<3xi64>) {
  // expected-error @+1 {{has 4 rows of 12, which cannot be 3 equal parts of them}}
  %0 = train.experts %x to %c by %w through %u, %d first %first of 12 silu gated : (tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>, tensor<3xi64>) -> tensor<5x7xf32>
  return
}

// -----

func.func @f(%x: tensor<5x4xf32>, %c: tensor<5x2xi64>, %w: tensor<5x2xf32>, %u: tensor<4x6x4xf32>, %d: tensor<4x7x3xf32>) {
  // expected-error @+1 {{gradient has type 'tensor<5x4xf32>', but the other operands need 'tensor<5x7xf32>'}}
  %0:4 = train.experts_grad %x, %x to %c by %w through %u, %d silu gated : (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x2xi64>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>) -> (tensor<5x4xf32>, tensor<5x2xf32>, tensor<4x6x4xf32>, tensor<4x7x3xf32>)
  return
}

// -----

func.func @f(%x: tensor<7x4xf32>, %i: tensor<2xi64>) {
  // expected-error @below {{axis 2 is not a dim of an operand of rank 2}}
  %0 = train.gather %x, %i axis 2 : tensor<7x4xf32>, tensor<2xi64> -> tensor<7x2xf32>
  return
}

// -----

func.func @f(%i: tensor<2xi64>, %x: tensor<7x4xf32>) {
  // expected-error @below {{dims from 0 on of 'tensor<7x4xf32>' must be those of indices 'tensor<2xi64>'}}
  %0 = train.scatter_add %i, %x axis 0 size 5 : tensor<2xi64>, tensor<7x4xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @f(%i: tensor<7xi64>, %x: tensor<7x4xf32>) {
  // expected-error @below {{makes an axis of 0 elements; size must be positive}}
  %0 = train.scatter_add %i, %x axis 0 size 0 : tensor<7xi64>, tensor<7x4xf32> -> tensor<5x4xf32>
  return
}

// -----

func.func @f(%q: tensor<4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{must have four dims}}
  %0:2 = train.attention %q, %k, %v scale 0.5 : (tensor<4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x9xf32>, %v: tensor<1x2x5x8xf32>) {
  // expected-error @below {{key has type 'tensor<1x2x5x9xf32>', but the other operands need 'tensor<1x2x5x8xf32>'}}
  %0:2 = train.attention %q, %k, %v scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x2x5x9xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x6x8xf32>) {
  // expected-error @below {{value has type 'tensor<1x2x6x8xf32>', but the other operands need 'tensor<1x2x5x8xf32>'}}
  %0:2 = train.attention %q, %k, %v scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x6x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %v: tensor<1x2x5x8xf32>, %m: tensor<1x1x5x5xf32>) {
  // expected-error @below {{mask has type 'tensor<1x1x5x5xf32>', but the other operands need 'tensor<1x4x5x5xf32>'}}
  %0:2 = train.attention %q, %k, %v mask %m scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x1x5x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x3x5x8xf32>, %v: tensor<1x3x5x8xf32>) {
  // expected-error @below {{4 query heads are not a multiple of 3 key heads}}
  %0:2 = train.attention %q, %k, %v scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x3x5x8xf32>, tensor<1x3x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>) {
  // expected-error @below {{scale must be a finite number}}
  %0:2 = train.attention %q, %k, %k scale 0x7FF0000000000000 : (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x4x5xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %g: tensor<1x2x5x8xf32>, %o: tensor<1x4x5x8xf32>, %l: tensor<1x4x5xf32>) {
  // expected-error @below {{gradient has type}}
  %0:3 = train.attention_grad %g, %q, %k, %k output %o, %l scale 0.5 : (tensor<1x2x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %g: tensor<1x4x5x8xf32>, %o: tensor<1x2x5x8xf32>, %l: tensor<1x4x5xf32>) {
  // expected-error @below {{output has type}}
  %0:3 = train.attention_grad %g, %q, %k, %k output %o, %l scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x2x5x8xf32>, %g: tensor<1x4x5x8xf32>, %o: tensor<1x4x5x8xf32>, %l: tensor<1x4x6xf32>) {
  // expected-error @below {{log_sum has type}}
  %0:3 = train.attention_grad %g, %q, %k, %k output %o, %l scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x6xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x2x5x8xf32>, tensor<1x2x5x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x4x5x8xf32>, %k: tensor<1x3x5x8xf32>, %g: tensor<1x4x5x8xf32>, %o: tensor<1x4x5x8xf32>, %l: tensor<1x4x5xf32>) {
  // expected-error @below {{4 query heads are not a multiple of 3 key heads}}
  %0:3 = train.attention_grad %g, %q, %k, %k output %o, %l scale 0.5 : (tensor<1x4x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x3x5x8xf32>, tensor<1x3x5x8xf32>, tensor<1x4x5x8xf32>, tensor<1x4x5xf32>) -> (tensor<1x4x5x8xf32>, tensor<1x3x5x8xf32>, tensor<1x3x5x8xf32>)
  return
}

// -----

func.func @f(%x: tensor<4x7xf32>, %l: tensor<3xi64>) {
  // expected-error @below {{must have the dims of labels 'tensor<3xi64>' and then the classes}}
  %0:3 = train.softmax_cross_entropy %x, %l ignore -100 : (tensor<4x7xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<f32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%g: tensor<f32>, %x: tensor<4x7xf32>, %l: tensor<3xi64>, %s: tensor<4xf32>) {
  // expected-error @below {{must have the dims of labels}}
  %0 = train.softmax_cross_entropy_grad %g, %x, %l, %s ignore -100 : (tensor<f32>, tensor<4x7xf32>, tensor<3xi64>, tensor<4xf32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @f(%g: tensor<f64>, %x: tensor<4x7xf32>, %l: tensor<4xi64>, %s: tensor<4xf32>) {
  // expected-error @below {{gradient has type}}
  %0 = train.softmax_cross_entropy_grad %g, %x, %l, %s ignore -100 : (tensor<f64>, tensor<4x7xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @f(%g: tensor<f32>, %x: tensor<4x7xf32>, %l: tensor<4xi64>, %s: tensor<3xf32>) {
  // expected-error @below {{log_sum has type}}
  %0 = train.softmax_cross_entropy_grad %g, %x, %l, %s ignore -100 : (tensor<f32>, tensor<4x7xf32>, tensor<4xi64>, tensor<3xf32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %v: tensor<5xf32>, %h: tensor<f32>) {
  // expected-error @below {{operand 1 has type 'tensor<5xf32>', but the weight 'tensor<4xf32>' needs 'tensor<4xf32>'}}
  %0:3 = train.adamw %w, %v, %w, %w, %h, %h, %h, %h, %h, %h, %h, %h : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %v: tensor<5xf32>, %h: tensor<f32>) {
  // expected-error @+1 {{operand 2 has type 'tensor<5xf32>', but the weight 'tensor<4xf32>' needs 'tensor<4xf32>'}}
  %0:2 = train.lion %w, %w, %v, %h, %h, %h, %h, %h : (tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %v: tensor<5xf32>, %h: tensor<f32>) {
  // expected-error @+1 {{operand 3 has type 'tensor<5xf32>', but the weight 'tensor<4xf32>' needs 'tensor<4xf32>'}}
  %0:3 = train.lamb %w, %w, %w, %v, %h, %h, %h, %h, %h, %h, %h : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %v: tensor<5xf32>, %h: tensor<f32>) {
  // expected-error @+1 {{operand 1 has type 'tensor<5xf32>', but the weight 'tensor<4xf32>' needs 'tensor<4xf32>'}}
  %0:2 = train.momentum %w, %v, %h, %h : (tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %v: tensor<5xf32>, %h: tensor<f32>) {
  // expected-error @+1 {{operand 1 has type 'tensor<5xf32>', but the weight 'tensor<4xf32>' needs 'tensor<4xf32>'}}
  %0 = train.descend %w, %v, %h, %h : (tensor<4xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %v: tensor<4xf32>, %d: tensor<f64>) {
  // expected-error @+1 {{operand 2 has type 'tensor<f64>', but the weight 'tensor<4xf32>' needs 'tensor<f32>'}}
  %0 = train.ema %w, %v, %d : (tensor<4xf32>, tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %h: tensor<f32>, %d: tensor<f64>) {
  // expected-error @below {{operand 6 has type 'tensor<f64>', but the weight 'tensor<4xf32>' needs 'tensor<f32>'}}
  %0:2 = train.sgd %w, %w, %w, %h, %h, %h, %d : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f64>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @f(%w: tensor<4xf32>, %g: tensor<3xf32>) {
  // expected-error @below {{operand 1 has type 'tensor<3xf32>', but the weight 'tensor<4xf32>' needs 'tensor<4xf32>'}}
  %0 = train.average %w, %g rate 0.1 : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%w: tensor<4xf32>) {
  // expected-error @below {{has a rate of 1.500000e+00; a share is between 0 and 1}}
  %0 = train.average %w, %w rate 1.5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%w: tensor<4xf32>) {
  // expected-error @below {{corrects the statistic by 0.000000e+00, which must be finite and above 0}}
  %0 = train.track_statistic %w, %w correction 0.0 : tensor<4xf32>
  return
}

// -----

// expected-error @below {{has a momentum, as running statistics have; these are weights that do not decay}}
train.parameter buffer @m "m" : tensor<4xf32> from <packed> {momentum = 0.9 : f64}

// -----

// expected-error @below {{has a momentum of -1.000000e-01; a share is between 0 and 1}}
train.parameter weight @m "m" : tensor<4xf32> from <packed> {momentum = -0.1 : f64}

// -----

func.func @f() {
  // expected-error @below {{names @w, which is no parameter of the module}}
  %0 = train.read @w : tensor<f32>
  return
}

// -----

// expected-error @below {{has an empty logical name; give it the name of its initializer}}
train.parameter weight @w "" : tensor<2xf32> from <packed>

// -----

// expected-error @below {{is trainable, but its role is buffer; only weights are trained}}
train.parameter buffer @w "w" : tensor<2xf32> from <packed> {trainable}

// -----

// expected-error @below {{has compute type 'bf16', but integer elements: 'tensor<2xi64>'}}
train.parameter buffer @w "w" : tensor<2xi64> from <packed> {compute_type = bf16}

// -----

// expected-error @below {{is trainable, but has integer elements: 'tensor<2xi64>'}}
train.parameter weight @w "w" : tensor<2xi64> from <packed> {trainable}

// -----

// expected-error @below {{has role weight and the attribute 'of'; exactly states name their weight}}
train.parameter weight @w "w" : tensor<2xf32> from <packed> {of = @v}

// -----

// expected-error @below {{has role state but not the attribute 'of'; exactly states name their weight}}
train.parameter state @w "w" : tensor<2xf32> from <none>

// -----

// expected-error @below {{has its bytes at offset -1 and length 8; both are at least 0}}
train.parameter weight @w "w" : tensor<2xf32> from <external, "f", -1, 8>

// -----

// expected-error @below {{has external bytes, but names no file}}
train.parameter weight @w "w" : tensor<2xf32> from <external>

// -----

train.parameter weight @w "w" : tensor<2xf32> from <packed>
func.func @f(%x: tensor<3xf32>) {
  // expected-error @below {{takes @w as 'tensor<3xf32>', but it is declared as 'tensor<2xf32>'}}
  train.write @w, %x : tensor<3xf32>
  return
}

// -----

// expected-error @below {{there is no source of kind disk; write none, packed or external}}
train.parameter weight @w "w" : tensor<2xf32> from <disk>

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{works on rows, but its operand 'tensor<f32>' has no dims}}
  %0:2 = train.rms_norm %x, %x epsilon 0.0 : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @below {{scale has type 'tensor<2xf32>', but the other operands need 'tensor<3xf32>'}}
  %0:2 = train.rms_norm %x, %s epsilon 0.0 : tensor<2x3xf32>, tensor<2xf32> -> tensor<2x3xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  // expected-error @below {{must be a number of at least 0}}
  %0:2 = train.rms_norm %x, %s epsilon -1.0 : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<f32>) {
  // expected-error @below {{works on rows, but its operand}}
  %0:2 = train.rms_norm_grad %x, %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{gradient has type}}
  %0:2 = train.rms_norm_grad %s, %x, %s, %m : (tensor<3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{scale has type}}
  %0:2 = train.rms_norm_grad %x, %x, %m, %m : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>, %m: tensor<2xf32>) {
  // expected-error @below {{rstd has type}}
  %0:2 = train.rms_norm_grad %x, %x, %s, %s : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @f(%x: tensor<2x4xf32>, %i: tensor<3x1xi64>, %v: tensor<2xi64>) {
  // expected-error @below {{axis 2 is not a dim of an operand of rank 2}}
  %0 = train.gather_elements %x, %i axis 2 : tensor<2x4xf32>, tensor<3x1xi64> -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4xf32>, %i: tensor<3x1xi64>, %v: tensor<2xi64>) {
  // expected-error @below {{indices 'tensor<3x1xi64>' must have the dims of 'tensor<2x4xf32>' but for axis 1}}
  %0 = train.gather_elements %x, %i axis 1 : tensor<2x4xf32>, tensor<3x1xi64> -> tensor<2x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x4xf32>, %i: tensor<3x1xi64>, %v: tensor<2xi64>) {
  // expected-error @below {{must have the dims of 'tensor<2x4xf32>' but for axis 0}}
  %0 = train.gather_elements %x, %v axis 0 : tensor<2x4xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x1xf32>, %i: tensor<3x1xi64>, %j: tensor<2x1xi64>) {
  // expected-error @below {{axis -1 is not a dim}}
  %0 = train.scatter_elements_add %j, %x axis -1 size 4 : tensor<2x1xi64>, tensor<2x1xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x1xf32>, %i: tensor<3x1xi64>, %j: tensor<2x1xi64>) {
  // expected-error @below {{indices 'tensor<3x1xi64>' must have the dims of 'tensor<2x1xf32>'}}
  %0 = train.scatter_elements_add %i, %x axis 1 size 4 : tensor<3x1xi64>, tensor<2x1xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x1xf32>, %i: tensor<3x1xi64>, %j: tensor<2x1xi64>) {
  // expected-error @below {{makes an axis of 0 elements; size must be positive}}
  %0 = train.scatter_elements_add %j, %x axis 1 size 0 : tensor<2x1xi64>, tensor<2x1xf32> -> tensor<2x0xf32>
  return
}

// -----

func.func @f(%x: tensor<2x5xf32>) {
  // expected-error @below {{turns the halves of rows of an even size per token, but its operand is 'tensor<2x5xf32>'}}
  %0 = train.rotary %x, %x, %x : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  return
}

// -----

func.func @f(%x: tensor<3x2x4xf32>, %t: tensor<2x4xf32>, %u: tensor<3x4xf32>) {
  // expected-error @below {{cosine has type 'tensor<3x4xf32>', but the other operands need 'tensor<2x4xf32>'}}
  %0 = train.rotary %x, %u, %t : tensor<3x2x4xf32>, tensor<3x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<3x2x4xf32>, %t: tensor<2x4xf32>, %u: tensor<3x4xf32>) {
  // expected-error @below {{sine has type 'tensor<3x4xf32>', but the other operands need 'tensor<2x4xf32>'}}
  %0 = train.rotary %x, %t, %u : tensor<3x2x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %k: tensor<3xi64>) {
  // expected-error @below {{needs one key for each sample of 'tensor<2x3xf32>', but its keys are 'tensor<3xi64>'}}
  %0 = train.dropout %x, %k ratio 0.5 : tensor<2x3xf32>, tensor<3xi64>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %k: tensor<2xi64>) {
  // expected-error @below {{drops elements at the rate 1.000000e+00, which must be at least 0 and below 1}}
  %0 = train.dropout %x, %k ratio 1.0 : tensor<2x3xf32>, tensor<2xi64>
  return
}

// -----

// expected-error @below {{is stored as 'bf16' and used as 'i64'; only floats are converted}}
train.parameter buffer @b0 "ids" : tensor<2xi64> from <packed, "", 0, 4, bf16>

// -----

// expected-error @below {{labels are a tensor of integers of a static shape, not 'tensor<4xf32>'}}
module attributes {a = #train.counted_labels<"y" : tensor<4xf32>, from [0] sizes [4] ignore -100 vocabulary 0>} {
}

// -----

// expected-error @below {{a box of 'tensor<2x4xi64>' has 2 starts and sizes, not 2 and 1}}
module attributes {a = #train.counted_labels<"y" : tensor<2x4xi64>, from [0, 1] sizes [4] ignore -100 vocabulary 0>} {
}

// -----

// expected-error @below {{a box from 1 of 4 elements lies outside of 'tensor<2x4xi64>'}}
module attributes {a = #train.counted_labels<"y" : tensor<2x4xi64>, from [0, 1] sizes [2, 4] ignore -100 vocabulary 0>} {
}

// -----

// expected-error @below {{the bound of ids is -1; it is at least 0}}
module attributes {a = #train.counted_labels<"y" : tensor<4xi64>, from [0] sizes [4] ignore -100 vocabulary -1>} {
}

// -----

func.func @f(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>) {
  // expected-error @below {{has an input of sizes [2, 3] and a weight of sizes [2, 3]; both have one rank, of at least 3}}
  %0 = train.convolution %x, %w strides [] dilations [] pads [] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<1x5x4x4xf32>, %w: tensor<2x2x3x3xf32>) {
  // expected-error @below {{has an input of sizes [1, 5, 4, 4] and a weight of sizes [2, 2, 3, 3]; the input's channels are a multiple of the weight's dim 1, and the weight's dim 0 is a multiple of that many groups}}
  %0 = train.convolution %x, %w strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] : (tensor<1x5x4x4xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x4x4x4xf32>, %w: tensor<2x4x3x3xf64>) {
  // expected-error @below {{convolves 'tensor<1x4x4x4xf32>' with 'tensor<2x4x3x3xf64>'; the element types must agree}}
  %0 = train.convolution %x, %w strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf64>) -> tensor<1x2x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x4x4x4xf32>, %w: tensor<2x4x3x3xf32>) {
  // expected-error @below {{has window [3, 3], strides [1], dilations [1, 1] and pads [0, 0, 0, 0] for 2 spatial dims; each needs one entry per dim, and pads need two}}
  %0 = train.convolution %x, %w strides [1] dilations [1, 1] pads [0, 0, 0, 0] : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x4x4x4xf32>, %w: tensor<2x4x3x3xf32>) {
  // expected-error @below {{has along spatial dim 1 of 4 elements a window of 3 with stride 0, dilation 1 and pads 0 and 0; pads are at least 0, the others at least 1, and all below 2^31}}
  %0 = train.convolution %x, %w strides [1, 0] dilations [1, 1] pads [0, 0, 0, 0] : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x4x4x4xf32>, %w: tensor<2x4x3x3xf32>) {
  // expected-error @below {{has along spatial dim 0 a window that spans 5 elements, but only 4 with the pads}}
  %0 = train.convolution %x, %w strides [1, 1] dilations [2, 1] pads [0, 0, 0, 0] : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x2x2x2xf32>
  return
}

// -----

func.func @f(%x: tensor<1x4x4x4xf32>, %w: tensor<2x4x3x3xf32>) {
  // expected-error @below {{gradient has type 'tensor<1x4x4x4xf32>', but the other operands need 'tensor<1x2x2x2xf32>'}}
  %0 = train.convolution_data_grad %x, %w sizes [1, 4, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] : (tensor<1x4x4x4xf32>, tensor<2x4x3x3xf32>) -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<1x2x2x2xf32>, %w: tensor<2x4x3x3xf64>) {
  // expected-error @below {{has operands 'tensor<1x2x2x2xf32>' and 'tensor<2x4x3x3xf64>'; the element types must agree}}
  %0 = train.convolution_data_grad %x, %w sizes [1, 4, 4, 4] strides [1, 1] dilations [1, 1] pads [0, 0, 0, 0] : (tensor<1x2x2x2xf32>, tensor<2x4x3x3xf64>) -> tensor<1x4x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x4x4x4x4xf32>) {
  // expected-error @below {{has an operand of sizes [2, 3, 4, 4, 4, 4]; it takes batch, channels and one to three spatial dims}}
  %0 = train.max_pool %x window [2] strides [1] dilations [1] pads [0, 0] : tensor<2x3x4x4x4x4xf32> -> tensor<2x3x4x4x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<0x3x4xf32>) {
  // expected-error @below {{has an operand of sizes [0, 3, 4]; it takes at least one sample and one channel}}
  %0 = train.max_pool %x window [2] strides [1] dilations [1] pads [0, 0] : tensor<0x3x4xf32> -> tensor<0x3x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3x4xf32>) {
  // expected-error @below {{has along spatial dim 0 of 4 elements windows that span 2 with dilation 1, the first from -2 and the last from 2; one may have no element inside}}
  %0 = train.average_pool %x window [2] strides [1] dilations [1] pads [2, 0] : tensor<2x3x4xf32> -> tensor<2x3x5xf32>
  return
}
