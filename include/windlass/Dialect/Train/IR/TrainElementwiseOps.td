// Element-wise operators: all operands and results have one shape; broadcasts are explicit (`train.broadcast`).
#ifndef WINDLASS_TRAIN_ELEMENTWISE_OPS_TD
#define WINDLASS_TRAIN_ELEMENTWISE_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

class Train_ElementwiseOp<string mnemonic, list<Trait> traits>
    : Train_ComputeOp<mnemonic, !listconcat([Elementwise, DeclareOpInterfaceMethods<ScalarOpInterface>], traits)>;

// An operator that computes a transcendental function, such as exp, or contains one, such as silu. It takes many
// instructions, so arithmetic limits it, where memory limits other element-wise operators.
def Train_Transcendental : NativeOpTrait<"Transcendental"> {
  let cppNamespace = "::windlass::train";
}

// T x T -> T.
class Train_BinaryOp<string mnemonic, string text, Type type = Train_Any, list<Trait> traits = [Train_Differentiable]>
    : Train_ElementwiseOp<mnemonic, !listconcat([SameOperandsAndResultType], traits)> {
  let summary = text;
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs `:` type($result) attr-dict";
}

// T -> T.
class Train_UnaryOp<string mnemonic, string text, Type type = Train_AnyFloat, list<Trait> traits = [Train_Differentiable]>
    : Train_ElementwiseOp<mnemonic, !listconcat([SameOperandsAndResultType], traits)> {
  let summary = text;
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let assemblyFormat = "$input `:` type($result) attr-dict";
}

class Train_FunctionOp<string mnemonic, string text>
    : Train_UnaryOp<mnemonic, text, Train_AnyFloat, [Train_Differentiable, Train_Transcendental]>;

// (x or y, dy) -> dx: derivative of an activation times the incoming gradient. Not differentiable again.
class Train_ActivationGradOp<string mnemonic, string text, list<Trait> traits = []>
    : Train_ElementwiseOp<mnemonic, !listconcat([SameOperandsAndResultType], traits)> {
  let summary = text;
  let arguments = (ins Train_AnyFloat:$input, Train_AnyFloat:$gradient);
  let results = (outs Train_AnyFloat:$result);
  let assemblyFormat = "$input `,` $gradient `:` type($result) attr-dict";
}

def AddOp : Train_BinaryOp<"add", "sum of two values", Train_Any, [Train_Differentiable, Commutative]> {
  let hasFolder = 1;
}
def SubOp : Train_BinaryOp<"sub", "difference"> {
  let hasFolder = 1;
}
def MulOp : Train_BinaryOp<"mul", "product", Train_Any, [Train_Differentiable, Commutative]> {
  let hasFolder = 1;
}
def DivOp : Train_BinaryOp<"div", "quotient; integers truncate towards zero, x/0 gives 0"> {
  let hasFolder = 1;
}
def PowOp
    : Train_BinaryOp<"pow", "power; the exponent is not differentiated", Train_AnyFloat, [Train_Differentiable, Train_Transcendental]>;
def MaxOp : Train_BinaryOp<"max", "greater one; a tie gives each operand half of the gradient">;
def MinOp : Train_BinaryOp<"min", "smaller one; a tie gives each operand half of the gradient">;
def AndOp : Train_BinaryOp<"and", "logical and", Train_AnyBoolean, []>;
def OrOp : Train_BinaryOp<"or", "logical or", Train_AnyBoolean, []>;

def NegOp : Train_UnaryOp<"neg", "negation", Train_Any> {
  let hasFolder = 1;
}
def AbsOp : Train_UnaryOp<"abs", "absolute value", Train_Any>;
def ExpOp : Train_FunctionOp<"exp", "exponential">;
def LogOp : Train_FunctionOp<"log", "natural logarithm">;
def SqrtOp : Train_UnaryOp<"sqrt", "square root">;
def RsqrtOp : Train_UnaryOp<"rsqrt", "reciprocal of the square root">;
def ReciprocalOp : Train_UnaryOp<"reciprocal", "reciprocal">;
def TanhOp : Train_FunctionOp<"tanh", "hyperbolic tangent">;
def ErfOp : Train_FunctionOp<"erf", "error function">;
def SinOp : Train_FunctionOp<"sin", "sine">;
def CosOp : Train_FunctionOp<"cos", "cosine">;
def TanOp : Train_FunctionOp<"tan", "tangent">;
def AsinOp : Train_FunctionOp<"asin", "inverse sine">;
def AcosOp : Train_FunctionOp<"acos", "inverse cosine">;
def AtanOp : Train_FunctionOp<"atan", "inverse tangent">;
def SinhOp : Train_FunctionOp<"sinh", "hyperbolic sine">;
def CoshOp : Train_FunctionOp<"cosh", "hyperbolic cosine">;
def AsinhOp : Train_FunctionOp<"asinh", "inverse hyperbolic sine">;
def AcoshOp : Train_FunctionOp<"acosh", "inverse hyperbolic cosine">;
def AtanhOp : Train_FunctionOp<"atanh", "inverse hyperbolic tangent">;
def FloorOp : Train_UnaryOp<"floor", "greatest integer that is not above x">;
def CeilOp : Train_UnaryOp<"ceil", "least integer that is not below x">;
def RoundOp : Train_UnaryOp<"round", "nearest integer, of two the even one">;
def SignOp : Train_UnaryOp<"sign", "-1, 0 or 1; NaN where x is NaN">;
def SigmoidOp : Train_FunctionOp<"sigmoid", "1 / (1 + exp(-x))">;
def ReluOp : Train_UnaryOp<"relu", "max(x, 0)">;
def GeluErfOp : Train_FunctionOp<"gelu_erf", "x/2 (1 + erf(x/sqrt 2))">;
def GeluTanhOp : Train_FunctionOp<"gelu_tanh", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))">;
def SiluOp : Train_FunctionOp<"silu", "x sigmoid(x)">;
def NotOp : Train_UnaryOp<"not", "logical not", Train_AnyBoolean, []>;

def IsNanOp : Train_ElementwiseOp<"is_nan", [SameOperandsAndResultShape]> {
  let summary = "whether the value is not a number";
  let arguments = (ins Train_AnyFloat:$input);
  let results = (outs Train_AnyBoolean:$result);
  let assemblyFormat = "$input `:` type($input) `->` type($result) attr-dict";
}

def CompareOp : Train_ElementwiseOp<"compare", [SameOperandsAndResultShape, SameTypeOperands]> {
  let summary = "comparison of two values";
  let arguments = (ins Train_PredicateAttr:$predicate, Train_Any:$lhs, Train_Any:$rhs);
  let results = (outs Train_AnyBoolean:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs `:` type($lhs) `->` type($result) attr-dict";
}

def SelectOp : Train_ElementwiseOp<"select", [SameOperandsAndResultShape, AllTypesMatch<["lhs", "rhs", "result"]>,
                                              Train_Differentiable]> {
  let summary = "lhs where the condition holds, else rhs";
  let arguments = (ins Train_AnyBoolean:$condition, Train_Any:$lhs, Train_Any:$rhs);
  let results = (outs Train_Any:$result);
  let assemblyFormat = "$condition `,` $lhs `,` $rhs `:` type($condition) `,` type($result) attr-dict";
  let hasFolder = 1;
}

def CastOp : Train_ElementwiseOp<"cast", [SameOperandsAndResultShape, Train_Differentiable]> {
  let summary = "conversion of the element type; float to integer truncates, to i1 tests for non-zero";
  let arguments = (ins Train_Any:$input);
  let results = (outs Train_Any:$result);
  let assemblyFormat = "$input `:` type($input) `->` type($result) attr-dict";
  let hasFolder = 1;
}

def AccumulateOp : Train_ElementwiseOp<"accumulate", [SameOperandsAndResultType]> {
  let summary = "sum of any number of partial gradients, added in operand order";
  let description = [{ Kept n-ary so that unreduced operands are reduced once, after the sum. }];
  let arguments = (ins Variadic<Train_AnyFloat>:$inputs);
  let results = (outs Train_AnyFloat:$result);
  let assemblyFormat = "$inputs `:` type($result) attr-dict";
  let hasFolder = 1;
}

def ReluGradOp : Train_ActivationGradOp<"relu_grad", "dy where x > 0, else 0">;
def GeluErfGradOp : Train_ActivationGradOp<"gelu_erf_grad", "gradient of gelu_erf from x and dy", [Train_Transcendental]>;
def GeluTanhGradOp : Train_ActivationGradOp<"gelu_tanh_grad", "gradient of gelu_tanh from x and dy", [Train_Transcendental]>;
def SiluGradOp : Train_ActivationGradOp<"silu_grad", "gradient of silu from x and dy", [Train_Transcendental]>;
def SigmoidGradOp : Train_ActivationGradOp<"sigmoid_grad", "gradient of sigmoid from y and dy">;
def TanhGradOp : Train_ActivationGradOp<"tanh_grad", "gradient of tanh from y and dy">;

#endif
