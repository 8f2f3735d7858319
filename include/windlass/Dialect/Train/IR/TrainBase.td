// Types and base classes that the operator families share.
#ifndef WINDLASS_TRAIN_BASE_TD
#define WINDLASS_TRAIN_BASE_TD

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "windlass/Dialect/Train/IR/TrainEnums.td"
include "windlass/Dialect/Train/IR/TrainInterfaces.td"

def Train_Float : AnyTypeOf<[F32, F64, BF16, F16]>;
def Train_Integer : AnyTypeOf<[I64, I32]>;
def Train_Element : AnyTypeOf<[F32, F64, BF16, F16, I64, I32, I1]>;

def Train_Tensor : StaticShapeTensorOf<[Train_Element]>;
def Train_FloatTensor : StaticShapeTensorOf<[Train_Float]>;
def Train_IndexTensor : StaticShapeTensorOf<[Train_Integer]>;
def Train_MaskTensor : StaticShapeTensorOf<[I1]>;
def Train_FloatScalarTensor : 0DTensorOf<[Train_Float]>;

// Operands of element-wise ops: tensors of one shape, or scalars inside the body of a fused function.
def Train_Any : AnyTypeOf<[Train_Tensor, Train_Element]>;
def Train_AnyFloat : AnyTypeOf<[Train_FloatTensor, Train_Float]>;
def Train_AnyBoolean : AnyTypeOf<[Train_MaskTensor, I1]>;

// An operator that has every column: result types are inferred, factors, cost and precision are answered.
class Train_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Train_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<TrainOpInterface>], traits)>;

class Train_InferredOp<string mnemonic, list<Trait> traits = []>
    : Train_ComputeOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<InferTypeOpInterface>], traits)>;

def Train_Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
def Train_ReducesInside : DeclareOpInterfaceMethods<InnerReductionOpInterface>;

#endif
