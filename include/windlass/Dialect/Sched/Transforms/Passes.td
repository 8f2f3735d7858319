// Passes of the `sched` dialect.
#ifndef WINDLASS_SCHED_PASSES_TD
#define WINDLASS_SCHED_PASSES_TD

include "mlir/Pass/PassBase.td"

def FuseElementwise : Pass<"sched-fuse-elementwise", "::windlass::sched::ProgramOp"> {
  let summary = "Turns chains of element-wise operators into scalar functions applied over an iteration space";
  let description = [{
    Afterwards no element-wise `train` op works on tensors: each chain is one `sched.map` of a scalar function, and so
    is a lone operator. `train.loss` and `train.clip_factor` become element-wise first. A producer joins its consumer
    when both have one iteration space and one `plan.repeat`, and an order without cycles is left; a value that is
    needed elsewhere becomes a further result. Operators that read the same value join too, where the later one is the
    last reader of values as large as its results. A cheap producer whose inputs cost less to read again than its result
    is computed in each consumer. Broadcasts become operand dims, splat constants become literals. Equal scalar
    functions exist once, named in order of first use.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", "true", "Join operators; without it each becomes a map of its own">,
    Option<"maxOps", "max-ops", "int64_t", "64", "Operators per scalar function at most">,
    Option<"maxOperands", "max-operands", "int64_t", "16", "Operands plus results per map at most">,
  ];
  let dependentDialects = ["::windlass::sched::SchedDialect", "::mlir::func::FuncDialect",
                           "::mlir::arith::ArithDialect"];
}

def JoinCollectives : Pass<"sched-join-collectives", "::windlass::sched::ProgramOp"> {
  let summary = "Makes units of the gathers of weights, and of the scatters of gradients, that follow each other";
  let description = [{
    Afterwards one `sched.all_gather` gathers the weights that operators read next to each other, where the first of them
    was gathered, and one `sched.reduce_scatter` scatters the gradients that are made next to each other, where the last
    of them was; one `sched.all_gather` of an update gathers the weights that it makes next to each other. A unit has at
    most 64 values along one dim over the same axes, and at most `plan.unit_bytes` bytes of whole weights or gradients;
    those that are read or written where they stand between functions may be as many as a bucket of named strategies
    has. Outside of updates a unit stays within an instance of a repeated block, so that instances stay equal. Left
    alone are values that are no weights, weights that need a copy to put their blocks in order before operators read
    them, results that anything else reads, and everything where that attribute is 0 or missing.
  }];
}

def OverlapCollectives : Pass<"sched-overlap-collectives", "::windlass::sched::ProgramOp"> {
  let summary = "Begins reductions and gathers of weights early, and adds scattered gradients after later scatters begin";
  let description = [{
    Afterwards a reduction over ranks stands right behind the last of its operands, and so does a sum of terms that
    kernels add up: work that stood between, such as the gradient of a weight, then overlaps with the reduction. A
    gather of a weight stands as early as the bytes of all weights that are gathered and not yet used stay within
    `plan.prefetch_bytes`, so that it runs beside the operators before its use; without that attribute or with 0 it
    stays where it is used. A gather that needs a copy to put its blocks in order stays too. The results of a scatter in
    `@backward` are added to their gradients behind the start of the first later scatter with which as many bytes or
    more have begun since as `plan.prefetch_bytes` exceeds `plan.unit_bytes`, so that a unit of gradients may be made
    meanwhile; where there is none, at the end. Without `plan.prefetch_bytes` or with 0 they are added where they are
    scattered. Operations that move take the `plan.repeat` of their new place. Both attributes are dropped.
  }];
}

def UpdateEarly : Pass<"sched-update-early", "::windlass::sched::ProgramOp"> {
  let summary = "Updates what the host holds as soon as its gradient is final, beside the backward pass";
  let description = [{
    Afterwards `@reduce` has the stores of `@update` to the host's memory and disk, and those of what was moved from there
    to the device, where a store needs one gradient and no sum over ranks. With clipping or a loss scale there are none,
    because each step needs the norm of all gradients. They are in the order in which the backward pass makes these
    gradients, and have no `plan.repeat`.
    `sched-lower-to-commands` begins them in `@backward`, each when its gradient is final and what it writes is no
    longer read. Programs of several chunks are left alone.
  }];
}

def SquareEarly : Pass<"sched-square-early", "::windlass::sched::ProgramOp"> {
  let summary = "Sums the squares of gradients that the host holds beside the backward pass";
  let description = [{
    Afterwards `@update` loads a resource of kind `squares` in place of each sum of squares of gradients of the host. Where
    a step has one micro-batch, the device sums the squares in the backward, before it copies the gradients there: its
    memory is several times as fast. Else the host holds the sum of the micro-batches, and `@reduce` sums the squares,
    beside the updates that `sched-update-early` has moved there. Clipping needs the norm before any update, and waits
    for it less. Programs of several chunks are left alone.
  }];
}

def RouteRows : Pass<"sched-route-rows", "::windlass::sched::ProgramOp"> {
  let summary = "Moves rows of tokens to the ranks with the experts of their choice only";
  let description = [{
    Afterwards a layer of experts, or its gradient, whose rows were gathered from the ranks that share its experts has
    `sched.gather_rows` for each of them, and `sched.scatter_rows` where its rows were scattered, as long as half of the
    tokens at most need a rank's experts, if all are chosen equally often. Choices and weights, which are small, are still
    gathered. Compilation for a cluster, which knows what moves faster there, decides by that instead.
  }];
}

def LowerToCommands : Pass<"sched-lower-to-commands", "::windlass::sched::ProgramOp"> {
  let summary = "Lowers functions on tensors to commands on buffers of one planned arena";
  let description = [{
    L4 to L5. Afterwards functions take and return nothing; every value is a window onto `@device_arena` at a fixed
    offset; resources have offsets, those of one gradient bucket are adjacent; views cost no command where the strides
    allow; commands run on the compute stream or on the stream of their communicator and are ordered by events.
    Collectives of `@reduce`, its copies and what the host runs of it are issued in `@backward`, marked `sched.in_last`, at
    the first border of a repeated block behind which what they use is complete; `@reduce` keeps the commands that wait
    for them. The arena's size and the largest live set are in the remark `arena`.
  }];
  let dependentDialects = ["::windlass::sched::SchedDialect", "::mlir::func::FuncDialect"];
}

def FuseLosses : Pass<"sched-fuse-losses", "::windlass::sched::ProgramOp"> {
  let summary = "Lets the forward pass write the gradient of cross entropy over the logits";
  let description = [{
    Afterwards `@forward` has `count_labels`, the map that computes the gradient's factor from the count, in the bytes
    of the rows' logarithms, and `softmax_cross_entropy_with_grad` before the first reader of the sum, where it had
    `softmax_cross_entropy`; `@backward` has neither the map nor `softmax_cross_entropy_grad`. This happens only where
    `@backward` has both, the gradient takes the logits' place, the map reads nothing but the count and hyperparameters,
    and no other command reads the factor, the logarithms, or the logits behind the loss. The same bits are written, and
    memory stays as it is. `@evaluate` is left alone.
  }];
}

def FuseNorms : Pass<"sched-fuse-norms", "::windlass::sched::ProgramOp"> {
  let summary = "Lets norms compute the sum that they read, and their gradients add to others";
  let description = [{
    Afterwards a norm behind a map that only adds two or three buffers up computes the sum itself (`add_layer_norm`,
    `add_rms_norm`); the gradient of a norm adds to the gradients of its parameters where maps did so before, and adds
    to the gradient of its input the buffer that a map added before. Commands work on the same buffers and streams, the
    earlier one at the place of the later, unless bytes in between or an event that another stream may wait for forbid
    that; memory stays as it is.
  }];
}

def FuseUpdates : Pass<"sched-fuse-updates", "::windlass::sched::ProgramOp"> {
  let summary = "Lets optimizer steps write the 16-bit weights too";
  let description = [{
    Afterwards `adamw`, `descend`, `lion` and `sgd` have a further result where a map behind them did nothing but round their new
    weight to 16 bits, on the same buffers and streams: the step moves to the place of the map or, where another stream may
    wait for it earlier, the map to that of the step, unless bytes in between or waits forbid that. The same bits are
    written, and memory stays as it is.
  }];
}

def JoinUpdates : Pass<"sched-join-updates", "::windlass::sched::ProgramOp"> {
  let summary = "Makes one command of AdamW steps of several parameters, and of the squares of several gradients";
  let description = [{
    Afterwards steps of dense buffers on one stream that share their scalars and settings, and either all round to one
    type or do not round, are one `adamw` at the place of the last, as far as nothing in between uses their bytes and no
    event or collective is there. A joined step has up to 64 parameters and 2^22 elements; a larger parameter keeps a
    step of its own. Sums of squares (`square_sum`) of dense f32 buffers, of which each adds to the one before, are one
    likewise, of up to 224 buffers.
  }];
}

def FuseEpilogues : Pass<"sched-fuse-epilogues", "::windlass::sched::ProgramOp"> {
  let summary = "Fuses matrix products with the commands that follow them, as libraries of devices compute them";
  let description = [{
    Afterwards these are one command, on the same buffers, wherever no order of commands and no memory forbids it: a
    product, and a map right behind it that adds a bias to its columns (`matmul_bias`), or that and another matrix, or
    that and the tanh approximation of GELU in 16 bits (`matmul_bias_gelu`); a product, and a map that computes nothing
    but the gradient of that approximation in 16 bits from it, in its place (`matmul_gelu_grad`); a product, and the sum
    of one of its operands over what it contracts, the gradient of a bias (`matmul_bias_grad`). A sum or its product
    moves to the later of both; the gradient of GELU moves to its product. Such a command rounds its results once; two commands would round the product too.
    Compilation for devices runs this on every schedule, and leaves two commands where a profile says they are faster.
  }];
}

def VerifyCommands : Pass<"sched-verify-commands", "::mlir::ModuleOp"> {
  let summary = "Checks commands: memory, order of streams, collectives";
  let description = [{
    Fails where an op is not a command, a resource or buffer exceeds its arena, resources overlap, a byte is read before
    it is written or after another value (`sched.storage`) overwrote it, a kernel writes over an operand that it may not
    update in place, streams use a byte without an event that orders them, an arena exceeds the limit of its kind, or
    the collectives of the ranks do not meet. Each arena has bytes of its own; streams and events are common to all. The
    kind of a stream says which arenas its commands read and write; one stream computes, and each communicator has its
    own. Two steps are checked in a row, of two micro-batches and of one. Where the module has a schedule, the order of
    its actions must be legal.
  }];
  let options = [
    Option<"memoryLimit", "memory-limit", "int64_t", "0", "Bytes that the device arena may have at most; 0: no limit">,
    Option<"hostMemoryLimit", "host-memory-limit", "int64_t", "0", "The same of the host arena">,
  ];
}

def VerifyAsync : Pass<"sched-verify-async", "::mlir::ModuleOp"> {
  let summary = "Fails at the first operation that does not belong to level L4";
  let description = [{
    At L4 the module has parameters and a program for each position. A program has a mesh, resources whose local types
    follow from their layouts, one schedule, and functions marked with `sched.step`: no two of one role and chunk, and
    one for each action of the schedule. Functions hold `train` ops on local tensors, `sched.map`, and ops that read and
    write resources and move data between ranks; nothing of `plan` but the mesh, layouts of resources and `plan.repeat`
    is left, and no buffers or commands are there yet. A backward takes what the forward of its chunk returns, and no
    other function takes or returns values; inputs and resources that are sent or received are used by functions of
    their chunk only, and inputs by no backward. The values of a border are the same on both sides. The schedules of all
    positions together are legal (`windlass/Schedule/Pipeline.h` has the rules). Collectives name axes of the mesh, each
    once, and change shapes by the number of their members.
  }];
}

#endif
