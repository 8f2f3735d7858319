// The dialect and its enumerations. Includes no other dialect, or their enumerations would be generated again.
#ifndef WINDLASS_SCHED_ENUMS_TD
#define WINDLASS_SCHED_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def SchedDialect : Dialect {
  let name = "sched";
  let cppNamespace = "::windlass::sched";
  let summary = "per-rank functions, collectives, buffers and commands";
  let description = [{
    A module has the parameters, the description of the job in its attributes, and a `sched.program` for each position,
    which all ranks of the position's mesh run.

    L4 (`async`): functions of `train` ops on local shapes. The attribute `sched.step` of a function gives its role in
    the step (`init`, `forward`, `backward`, `weight_gradient`, `reduce`, `update`, `evaluate`) and its chunk, by which
    all other code finds it. Everything that outlives a function is a `sched.resource`: inputs, parameters, accumulated
    gradients, state, init values, runtime scalars, outputs. The stash is the list of values that the forward of a chunk
    returns and its backward takes, in the same order; a backward in two parts returns values of its own, which its
    `weight_gradient` takes behind the stash. Data crosses devices only in the collectives of this dialect and, between
    positions, by the actions `send` and `receive` of `sched.schedule`, the position's step: they move the resources of
    kind `sent` to those of kind `received`.

    L5 (`cmd`): the same functions without arguments and results; values are `sched.buffer`s at fixed offsets of
    `sched.arena`s; the ops are commands on streams. Commands of a backward, or of its second part, that `sched.in_last`
    marks begin reductions of gradients and run in the last one of a step only; the function of role `reduce` has the
    other commands of the reduction. All ranks of a program share one text: offsets and shapes are equal on all of them.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let dependentDialects = ["::windlass::train::TrainDialect", "::windlass::plan::PlanDialect"];
}

class Sched_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::windlass::sched";
  let genSpecializedAttr = 0;
}

def Sched_ResourceKind : Sched_Enum<"ResourceKind", "what a resource holds", [
  I32EnumAttrCase<"input", 0>,      // a rank's local slice of a graph input of the current micro-batch
  I32EnumAttrCase<"parameter", 1>,  // a weight or buffer (compute copy; also master where both have one layout)
  I32EnumAttrCase<"gradient", 2>,   // a weight's accumulated gradient; @update reads it where there is no `reduced`
  I32EnumAttrCase<"state", 3>,      // optimizer state
  I32EnumAttrCase<"value", 4>,      // result of @init
  I32EnumAttrCase<"scalar", 5>,     // a hyperparameter
  I32EnumAttrCase<"loss", 6>,       // the rank's accumulated part of the loss; the step's loss after @reduce
  I32EnumAttrCase<"grad_norm", 7>,  // of the step, after @update
  I32EnumAttrCase<"evaluate", 8>,   // loss of the micro-batch, after @evaluate
  I32EnumAttrCase<"master", 9>,     // the master copy of a weight whose compute copy has another layout
  I32EnumAttrCase<"reduced", 10>,   // the gradient as @update reads it, where the accumulated one has another layout
  I32EnumAttrCase<"sent", 11>,      // a value that a chunk sends to a neighbour on another position
  I32EnumAttrCase<"received", 12>,  // a value that a neighbour on another position has sent
  I32EnumAttrCase<"squares", 13>    // a part of the sum of squares of all gradients, before @update
]>;
def Sched_ResourceKindAttr : EnumAttr<SchedDialect, Sched_ResourceKind, "kind">;

def Sched_StepRole : Sched_Enum<"StepRole", "what a function does in a run", [
  I32EnumAttrCase<"init", 0>,      // once, before the first step: values that depend on no input
  I32EnumAttrCase<"forward", 1>,   // of a micro-batch; returns the stash at L4
  I32EnumAttrCase<"backward", 2>,  // of a micro-batch; takes the stash at L4. Where the chunk has a weight_gradient, the
                                   // part that other chunks wait for, which returns at L4 what that one needs of it
  I32EnumAttrCase<"weight_gradient", 3>, // the rest of a micro-batch's backward; takes the stash and those values at L4
  I32EnumAttrCase<"reduce", 4>,    // of the step's gradients and loss
  I32EnumAttrCase<"update", 5>,    // of the parameters
  I32EnumAttrCase<"evaluate", 6>   // the loss of a micro-batch, outside of steps
]>;

def Sched_StreamKind : Sched_Enum<"StreamKind", "what runs on a stream", [
  I32EnumAttrCase<"compute", 0>, I32EnumAttrCase<"communicator", 1>, I32EnumAttrCase<"h2d", 2>,
  I32EnumAttrCase<"d2h", 3>, I32EnumAttrCase<"host", 4>, I32EnumAttrCase<"disk_read", 5>,
  I32EnumAttrCase<"disk_write", 6>]>;
def Sched_StreamKindAttr : EnumAttr<SchedDialect, Sched_StreamKind, "stream_kind">;

def Sched_CollectiveKind : Sched_Enum<"CollectiveKind", "collective", [
  I32EnumAttrCase<"all_reduce", 0>, I32EnumAttrCase<"all_gather", 1>, I32EnumAttrCase<"reduce_scatter", 2>,
  I32EnumAttrCase<"all_to_all", 3>, I32EnumAttrCase<"permute", 4>,
  I32EnumAttrCase<"gather_rows", 5>, I32EnumAttrCase<"scatter_rows", 6>]>;
def Sched_CollectiveKindAttr : EnumAttr<SchedDialect, Sched_CollectiveKind, "collective">;

#endif
