//===- Importer.h - builds the onnx dialect from a message ------*- C++ -*-===//

#ifndef WINDLASS_LIB_FRONTEND_ONNX_IMPORTER_H
#define WINDLASS_LIB_FRONTEND_ONNX_IMPORTER_H

#include "ModelFile.h"
#include "onnx-ml.pb.h"

#include "windlass/Dialect/Onnx/IR/OnnxOps.h"
#include "windlass/Frontend/Onnx/Import.h"
#include "windlass/Support/WorkBudget.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace windlass {

/// Returns the module path in an exporter's scope list `['', 'model', 'model.fc', 'linear']`: the last entry but one,
/// because the last names the traced call itself.
std::string readScopePath(const ::onnx::NodeProto &node);

/// One walk over a parsed model. Every member function that fails has emitted its error.
class OnnxImporter {
public:
  OnnxImporter(const ::onnx::ModelProto &model, const MessageSkeleton &skeleton, WeightStore &weights,
               const ImportOptions &options, mlir::Location location, mlir::OpBuilder &builder)
      : model(model), skeleton(skeleton), weights(weights), options(options), location(location), builder(builder),
        work(options.budgets.steps) {}

  mlir::LogicalResult run();

private:
  using Opsets = llvm::StringMap<int64_t>;

  /// The scope in which names are looked up: the graph's, or that of one call of a function.
  struct Scope {
    llvm::StringMap<mlir::Value> values;
    llvm::StringMap<mlir::Type> types;
    Opsets opsets;
    /// The values that the caller gives for the function's attribute parameters.
    llvm::StringMap<mlir::Attribute> parameters;
    /// The prefix of node names, and the caller's module path.
    std::string prefix, path;
    int64_t depth = 0;
  };

  /// The inputs of the graph that are no initializers.
  struct GraphInputs {
    llvm::SmallVector<llvm::StringRef> names;
    llvm::SmallVector<mlir::Type> types;
    /// The symbolic names of each input's dimensions, an array of strings.
    llvm::SmallVector<mlir::Attribute> dimNames;
    /// All symbolic dimensions.
    llvm::StringSet<> symbols;
  };

  mlir::LogicalResult checkBudgets();
  /// Puts the model's own functions into `functions`.
  mlir::LogicalResult readFunctions();
  mlir::LogicalResult readOpsets(const ::google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> &imports,
                                 llvm::StringRef where, Opsets &opsets);
  mlir::LogicalResult checkName(llvm::StringRef name);
  /// Charges what inlining produces against the budgets: nodes, or what costs as much, and the bytes of a name.
  mlir::LogicalResult charge(int64_t nodes, llvm::StringRef name);
  /// Charges what reading the node takes, before it is read.
  mlir::LogicalResult chargeSteps(const ::onnx::NodeProto &node);
  /// Charges what a call reads of the function besides its nodes.
  mlir::LogicalResult chargeSteps(const ::onnx::FunctionProto &function);
  mlir::LogicalResult chargeSteps(int64_t steps);
  mlir::LogicalResult define(Scope &scope, llvm::StringRef name, mlir::Value value);

  /// Returns the tensors that the graph signature names, `#onnx.spec`s, and puts their kinds into `kinds`; null without
  /// a signature.
  mlir::FailureOr<mlir::ArrayAttr> readSignature();
  /// Makes parameters of the initializers that the options name.
  mlir::LogicalResult applyTrainPatterns();
  /// Finds `ownNames`.
  void collectOwnNames();
  mlir::FailureOr<GraphInputs> readInputs();
  /// Checks that the options bind symbolic dimensions of inputs, to 1 or more.
  mlir::LogicalResult checkBoundDims(const llvm::StringSet<> &symbols);
  /// Builds the graph op with all that it holds.
  mlir::LogicalResult buildGraph(const GraphInputs &inputs, mlir::ArrayAttr signature, Scope &scope);
  mlir::FailureOr<mlir::RankedTensorType> readInputType(const ::onnx::ValueInfoProto &input,
                                                        llvm::SmallVectorImpl<mlir::Attribute> &dimNames);
  /// Returns the type that the file states for a value, `!onnx.value` where it states none that is usable.
  mlir::Type readStatedType(const ::onnx::ValueInfoProto &info);
  mlir::LogicalResult addInitializer(Scope &scope, const ::onnx::TensorProto &tensor, const ValueRange &range);
  mlir::LogicalResult addNode(Scope &scope, const ::onnx::NodeProto &node, int64_t index);
  mlir::LogicalResult addCall(Scope &scope, const ::onnx::NodeProto &node, const ::onnx::FunctionProto &function,
                              llvm::StringRef name);
  /// Reads an attribute. Fails after a diagnostic; an attribute that only the callee's parameter would give is null,
  /// without an error.
  mlir::FailureOr<mlir::Attribute> readAttribute(Scope &scope, const ::onnx::AttributeProto &attribute,
                                                 mlir::Location nodeLocation);
  mlir::FailureOr<mlir::Attribute> readTensorAttribute(const ::onnx::TensorProto &tensor, mlir::Location nodeLocation);
  mlir::FailureOr<mlir::Value> lookUp(Scope &scope, llvm::StringRef name, mlir::Location nodeLocation);

  const ::onnx::ModelProto &model;
  const MessageSkeleton &skeleton;
  WeightStore &weights;
  const ImportOptions &options;
  mlir::Location location;
  mlir::OpBuilder &builder;

  llvm::StringMap<const ::onnx::FunctionProto *> functions;
  /// The exporter's kind of each initializer: "parameter" or "buffer".
  llvm::StringMap<llvm::StringRef> kinds;
  /// The names, in a file without a signature, that begin with the path of a module that reads them. A single number
  /// among them may be a parameter.
  llvm::StringSet<> ownNames;
  /// Nodes of functions are counted as often as they are inlined, and so are their names.
  int64_t nodes = 0, inlinedNameBytes = 0;
  WorkBudget work;
  mlir::Value absent;
};

} // namespace windlass

#endif // WINDLASS_LIB_FRONTEND_ONNX_IMPORTER_H
