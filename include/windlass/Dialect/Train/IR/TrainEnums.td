// Enumerations of the `train` dialect.
#ifndef WINDLASS_TRAIN_ENUMS_TD
#define WINDLASS_TRAIN_ENUMS_TD

include "mlir/IR/EnumAttr.td"
include "windlass/Dialect/Train/IR/TrainDialect.td"

class Train_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::windlass::train";
  let genSpecializedAttr = 0;
}

def Train_Role : Train_Enum<"Role", "what a parameter is", [
  I32EnumAttrCase<"weight", 0>, I32EnumAttrCase<"state", 1>, I32EnumAttrCase<"buffer", 2>]>;
def Train_RoleAttr : EnumAttr<TrainDialect, Train_Role, "role">;

def Train_SourceKind : Train_Enum<"SourceKind", "where initial bytes are", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"packed", 1>, I32EnumAttrCase<"external", 2>]>;

def Train_Predicate : Train_Enum<"Predicate", "comparison", [
  I32EnumAttrCase<"equal", 0>, I32EnumAttrCase<"not_equal", 1>, I32EnumAttrCase<"less", 2>,
  I32EnumAttrCase<"less_equal", 3>, I32EnumAttrCase<"greater", 4>, I32EnumAttrCase<"greater_equal", 5>]>;
def Train_PredicateAttr : EnumAttr<TrainDialect, Train_Predicate, "predicate">;

def Train_ReductionKind : Train_Enum<"ReductionKind", "how values are combined", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]>;
def Train_ReductionKindAttr : EnumAttr<TrainDialect, Train_ReductionKind, "reduction">;

def Train_ExpertActivation : Train_Enum<"ExpertActivation", "the function between an expert's matrices", [
  I32EnumAttrCase<"relu", 0>, I32EnumAttrCase<"gelu_erf", 1>, I32EnumAttrCase<"gelu_tanh", 2>,
  I32EnumAttrCase<"silu", 3>]>;
def Train_ExpertActivationAttr : EnumAttr<TrainDialect, Train_ExpertActivation, "expert_activation">;

def Train_Hyperparameter : Train_Enum<"Hyperparameter", "a scalar given to the program at run time", [
  I32EnumAttrCase<"learning_rate", 0>, I32EnumAttrCase<"one_minus_beta1", 1>, I32EnumAttrCase<"one_minus_beta2", 2>,
  I32EnumAttrCase<"epsilon", 3>, I32EnumAttrCase<"weight_decay", 4>, I32EnumAttrCase<"momentum", 5>,
  I32EnumAttrCase<"clip_norm", 6>, I32EnumAttrCase<"bias_correction1", 7>, I32EnumAttrCase<"bias_correction2", 8>,
  I32EnumAttrCase<"loss_scale", 9>, I32EnumAttrCase<"inverse_loss_scale", 10>,
  I32EnumAttrCase<"inverse_label_count", 11>, I32EnumAttrCase<"ema_rate", 12>,
  I32EnumAttrCase<"inverse_sqrt_step", 13>, I32EnumAttrCase<"second_moment_rate", 14>]>;
def Train_HyperparameterAttr : EnumAttr<TrainDialect, Train_Hyperparameter, "hyperparameter">;

def Train_SourceAttr : AttrDef<TrainDialect, "Source"> {
  let mnemonic = "source";
  let summary = "where the initial bytes of a parameter are";
  let description = [{
    `packed`: in the `params.safetensors` that emission writes, under the logical name. `external`: `length` bytes at
    `offset` of `file`, a path relative to the model's folder. `none`: nowhere (optimizer state starts at zero; weights
    can only be made by `--init random`). `stored` is the element type of the bytes where it is not the parameter's.
  }];
  let parameters = (ins EnumParameter<Train_SourceKind>:$kind, StringRefParameter<"relative path", "\"\"">:$file,
                        DefaultValuedParameter<"int64_t", "0">:$offset, DefaultValuedParameter<"int64_t", "0">:$length,
                        OptionalParameter<"::mlir::Type">:$stored);
  // `<kind>`, `<kind, "file", offset, length>` or `<kind, "file", offset, length, stored>`; a generated format would leave an offset of 0 out.
  let hasCustomAssemblyFormat = 1;
}

def Train_CountedLabelsAttr : AttrDef<TrainDialect, "CountedLabels"> {
  let mnemonic = "counted_labels";
  let summary = "the elements of an input that a step counts before its first micro-batch";
  let description = [{
    `input` is the input's logical name, `type` its type, of integers. What counts of it is the box of `sizes` elements
    from `starts`, without the elements that are `ignoreIndex`. `vocabulary` is the bound of the input's ids, or 0
    where it is unknown.
  }];
  let parameters = (ins StringRefParameter<"logical name">:$input, "::mlir::RankedTensorType":$type,
                        ArrayRefParameter<"int64_t">:$starts, ArrayRefParameter<"int64_t">:$sizes,
                        "int64_t":$ignoreIndex, "int64_t":$vocabulary);
  let assemblyFormat = [{
    `<` $input `:` $type `,` `from` `[` $starts `]` `sizes` `[` $sizes `]` `ignore` $ignoreIndex
    `vocabulary` $vocabulary `>`
  }];
  let genVerifyDecl = 1;
}

#endif
