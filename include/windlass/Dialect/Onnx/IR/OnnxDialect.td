//===- OnnxDialect.td - the onnx dialect, its types and attributes --------===//
//
// L0 of the design: what an ONNX file says, before anything is understood.
//
//===----------------------------------------------------------------------===//

#ifndef WINDLASS_DIALECT_ONNX_IR_ONNXDIALECT_TD
#define WINDLASS_DIALECT_ONNX_IR_ONNXDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::windlass::onnx";
  let summary = "An ONNX graph as its file states it";
  let description = [{
    One generic op, `onnx.node`, stands for every ONNX operator: nothing here
    knows what an operator computes. Functions are inlined, every node carries
    the since-version that its own opset import selects, and weights are byte
    ranges (`#onnx.source`), never values.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Onnx_Type<string name, string typeMnemonic> : TypeDef<Onnx_Dialect, name> { let mnemonic = typeMnemonic; }
class Onnx_Attr<string name, string attrMnemonic> : AttrDef<Onnx_Dialect, name> { let mnemonic = attrMnemonic; }

def Onnx_ValueType : Onnx_Type<"Value", "value"> {
  let summary = "A value whose type the file does not state";
  let description = [{
    Exporters leave many values without a type, and what they do state may be
    wrong; types are inferred when the graph is legalized. Sequences have this
    type too.
  }];
}

def Onnx_AbsentType : Onnx_Type<"Absent", "absent"> {
  let summary = "The type of an optional input that is left out";
}

def Onnx_SourceAttr : Onnx_Attr<"Source", "source"> {
  let summary = "Where the bytes of a tensor are";
  let description = [{
    `length` bytes, little endian and densely packed, from byte `offset` of
    `file`, which is relative to the model's folder. An empty `file` is the
    unpacked model message itself; offsets past its end belong to values that
    the message holds in another form and that the importer decoded.

    ```mlir
    #onnx.source<"model.onnx.data", 1024, 4096>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$file, "int64_t":$offset, "int64_t":$length);
  let assemblyFormat = "`<` $file `,` $offset `,` $length `>`";
  let genVerifyDecl = 1;
}

def Onnx_SpecAttr : Onnx_Attr<"Spec", "spec"> {
  let summary = "An input that an exporter's graph signature names";
  let description = [{
    `kind` is the signature's word for it: `PARAMETER`, `BUFFER` or
    `CONSTANT_TENSOR` for a tensor of the exported module, else `USER_INPUT`.
    `target` is the tensor's path in the module, the name that its initializer
    bears; `placeholder` stands for the input in the calls of the traced program
    (`#onnx.call`).

    ```mlir
    #onnx.spec<"PARAMETER", "p_fc_weight", "fc.weight">
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$kind, "::mlir::StringAttr":$placeholder, "::mlir::StringAttr":$target);
  let assemblyFormat = "`<` $kind `,` $placeholder `,` $target `>`";
  let genVerifyDecl = 1;
}

def Onnx_CallAttr : Onnx_Attr<"Call", "call"> {
  let summary = "The call of the traced program that a node was made for";
  let description = [{
    `result` is the call's name in the traced program, `target` the operator that
    it calls and `arguments` its arguments as the exporter prints them. Several
    nodes may stand for one call.

    ```mlir
    #onnx.call<"linear", "aten.linear.default", "(%x, %p_fc_weight, %p_fc_bias), kwargs = {}">
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$result, "::mlir::StringAttr":$target, "::mlir::StringAttr":$arguments);
  let assemblyFormat = "`<` $result `,` $target `,` $arguments `>`";
}

def Onnx_OmittedAttr : Onnx_Attr<"Omitted", "omitted"> {
  let summary = "An attribute of a node that is not imported";
  let description = [{
    `kind` says what stood there: `graph`, `sparse_tensor` or `type`. A node that
    has one is reported as unsupported when the graph is legalized.
  }];
  let parameters = (ins "::mlir::StringAttr":$kind);
  let assemblyFormat = "`<` $kind `>`";
}

#endif // WINDLASS_DIALECT_ONNX_IR_ONNXDIALECT_TD
