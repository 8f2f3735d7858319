//===- Passes.td - the passes from L0 to L1 -------------------------------===//

#ifndef WINDLASS_CONVERSION_ONNXTOTRAIN_PASSES_TD
#define WINDLASS_CONVERSION_ONNXTOTRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def OnnxConvertToTrain : Pass<"onnx-convert-to-train", "::mlir::ModuleOp"> {
  let summary = "Legalize an onnx.graph into @loss over train ops";
  let description = [{
    One forward walk evaluates everything that depends on no input and no parameter, and legalizes the rest. Leaves no
    `onnx` op: a function `@loss` with static shapes and `train.parameter` symbols in the order of the file. Values of
    initializers that the graph holds by reference only are not read.
  }];
  let options = [Option<"loss", "loss", "std::string", "\"\"", "Name of the output to train on">,
                 Option<"acceptAltered", "accept-altered-parameters", "bool", "false",
                        "Go on with a file that holds another model than was exported">];
  let dependentDialects = ["::windlass::train::TrainDialect", "::mlir::func::FuncDialect"];
}

def TrainSimplifyLayout : Pass<"train-simplify-layout", "::mlir::func::FuncOp"> {
  let summary = "Fold reshapes and transposes into one another";
  let description = [{
    A transpose that a flatten and its inverse surround becomes one transpose; a reshape of a reshape becomes one, and so
    does a transpose of a transpose.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainKeepDimensions : Pass<"train-keep-dimensions", "::mlir::func::FuncOp"> {
  let summary = "Let operators work on the dims that a flatten merged";
  let description = [{
    Exporters flatten batch and tokens before a GEMM or a loss and restore them behind. The flatten is moved behind the
    operators that do not mix rows (matmul, element-wise ops, normalisation, cross entropy), where it meets its inverse.
    A transposed matmul operand becomes other contracted dims. Afterwards a matmul's free dims are the model's own, so that each can be split by a plan.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainRecognizeActivations : Pass<"train-recognize-activations", "::mlir::func::FuncOp"> {
  let summary = "Replace the chains of GELU (erf and tanh) and SiLU by one op";
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainRecognizeNorms : Pass<"train-recognize-norms", "::mlir::func::FuncOp"> {
  let summary = "Replace the chains of layer norm and RMS norm by one op";
  let description = [{
    Recognises rows, centered or not, times or divided by the root of their mean square, times a scale, and for centered
    rows plus a bias; factors may be nested and ordered in any way.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainRecognizeRotary : Pass<"train-recognize-rotary", "::mlir::func::FuncOp"> {
  let summary = "Replace rotary position embedding over halves of rows by one op";
  let description = [{
    Recognises a product with cosines plus the product of the turned halves with sines, where both tables are the same
    for all rows of a token and lead to no trainable parameter.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainRecognizeAttention : Pass<"train-recognize-attention", "::mlir::func::FuncOp"> {
  let summary = "Replace scaled dot-product attention over primitives by one op";
  let description = [{
    Recognises the product of queries and keys with the scale on either or both, an added mask, the softmax, the guard
    that turns NaN rows into zeros, and the product with the values. A mask that is zero up to the diagonal and at most
    -1e9 beyond becomes `causal`; keys and values that are repeated for groups of queries are used unrepeated. A choice
    between scores and such a number becomes an added mask. Without the guard the mask must be made of finite numbers.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainRecognizeExperts : Pass<"train-recognize-experts", "::mlir::func::FuncOp"> {
  let summary = "Replace the experts of a mixture over primitives by one op";
  let description = [{
    Recognises two forms of the sum over a token's choices. In one, each choice's matrices are gathered and multiplied by
    the token; in the other, all experts compute all tokens, and weights that are zero for experts that are not chosen
    multiply the results: a one-hot matrix times the weights of the choices, or a scatter of them. Between the matrices is
    an activation, perhaps of one half, which multiplies the other, or of a gate with matrices of its own. Dims may be in
    any order, merged and repeated, as products, einsums and reshapes leave them.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def TrainAssignIds : Pass<"train-assign-ids", "::mlir::func::FuncOp"> {
  let summary = "Give every op its id: scope path, kind and ordinal";
  let description = [{ Ids are unique in the function; nothing else changes. }];
}

#endif // WINDLASS_CONVERSION_ONNXTOTRAIN_PASSES_TD
