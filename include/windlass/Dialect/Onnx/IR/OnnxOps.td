//===- OnnxOps.td - the operations of the onnx dialect --------------------===//

#ifndef WINDLASS_DIALECT_ONNX_IR_ONNXOPS_TD
#define WINDLASS_DIALECT_ONNX_IR_ONNXOPS_TD

include "windlass/Dialect/Onnx/IR/OnnxDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Onnx_Op<string mnemonic, list<Trait> traits = []> : Op<Onnx_Dialect, mnemonic, traits>;

def Onnx_Tensor : AnyTypeOf<[AnyTensor], "tensor">;
def Onnx_Operand : AnyTypeOf<[AnyTensor, Onnx_ValueType, Onnx_AbsentType], "tensor, !onnx.value or !onnx.absent">;
def Onnx_Result : AnyTypeOf<[AnyTensor, Onnx_ValueType, Onnx_AbsentType], "tensor, !onnx.value or !onnx.absent">;

def Onnx_GraphOp : Onnx_Op<"graph", [IsolatedFromAbove, SingleBlock]> {
  let summary = "The main graph of a model";
  let description = [{
    The block's arguments are the graph's inputs, in the file's order and without
    those that have an initializer; `onnx.return` gives the outputs. `dim_params`
    holds, per input, the name of each symbolic dimension (empty where the
    dimension is a number). `signature` lists the inputs that the exporter's
    graph signature names, in its order; absent where the file has none.
  }];
  let arguments = (ins StrAttr:$graph_name, StrArrayAttr:$input_names, StrArrayAttr:$output_names,
                       OptionalAttr<ArrayAttr>:$dim_params,
                       OptionalAttr<TypedArrayAttrBase<Onnx_SpecAttr, "inputs of a graph signature">>:$signature);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$graph_name `inputs` $input_names `outputs` $output_names (`dims` $dim_params^)? (`signature` $signature^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Onnx_ReturnOp : Onnx_Op<"return", [Terminator, HasParent<"GraphOp">, Pure]> {
  let summary = "The outputs of the graph";
  let arguments = (ins Variadic<Onnx_Operand>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def Onnx_AbsentOp : Onnx_Op<"absent", [Pure]> {
  let summary = "Stands for an optional input that a node leaves out";
  let results = (outs Onnx_AbsentType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Onnx_InitializerOp : Onnx_Op<"initializer", [Pure, HasParent<"GraphOp">]> {
  let summary = "A tensor that the file stores";
  let description = [{
    Integers and booleans of few elements, and float scalars, are kept as `value`:
    shapes and axes are computed from them. Everything else is a reference,
    `source`. `kind` is what the exporter says the tensor is.

    ```mlir
    %w = onnx.initializer "fc.weight" from #onnx.source<"", 96, 4096> kind "parameter" : tensor<32x32xf32>
    %shape = onnx.initializer "shape" value dense<[4, -1]> : tensor<2xi64> : tensor<2xi64>
    ```
  }];
  let arguments = (ins StrAttr:$initializer_name, OptionalAttr<Onnx_SourceAttr>:$source,
                       OptionalAttr<ElementsAttr>:$value, OptionalAttr<StrAttr>:$kind);
  let results = (outs Onnx_Tensor:$result);
  let assemblyFormat = [{
    $initializer_name (`from` $source^)? (`value` $value^)? (`kind` $kind^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Onnx_NodeOp : Onnx_Op<"node"> {
  let summary = "One ONNX operator";
  let description = [{
    `since_version` is the version of the operator that the node's opset import
    selects, where the operator is known, and the imported opset otherwise.
    `scope` is the path of the module that the exporter traced it from, and `call`
    what that module called. An empty `domain` is ONNX's own.

    ```mlir
    %y = onnx.node "Gemm" since 13 (%x, %w, %b) with {transB = 1 : i64} scope "mlp.fc"
       : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> !onnx.value
    ```
  }];
  let arguments = (ins StrAttr:$op_type, OptionalAttr<StrAttr>:$domain, I64Attr:$since_version,
                       Variadic<Onnx_Operand>:$inputs, OptionalAttr<DictionaryAttr>:$node_attributes,
                       OptionalAttr<StrAttr>:$scope, OptionalAttr<Onnx_CallAttr>:$call);
  let results = (outs Variadic<Onnx_Result>:$outputs);
  let assemblyFormat = [{
    $op_type (`in` $domain^)? `since` custom<Version>($since_version) `(` $inputs `)` (`with` $node_attributes^)?
    (`scope` $scope^)? (`call` $call^)? attr-dict `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
}

#endif // WINDLASS_DIALECT_ONNX_IR_ONNXOPS_TD
