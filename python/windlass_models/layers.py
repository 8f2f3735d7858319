"""Linear layers, normalisation and activations as the exporter writes them."""

import math

import numpy
import onnx
from onnx import TensorProto

ACTIVATIONS = ('chain', 'tanh', 'erf', 'relu')
LINEARS = ('conv1d', 'matmul')


def linear(builder, value, name, sizes, form, kind='matrix', has_bias=True):
    """Returns `value` [batch, tokens, inputs] times a weight, plus a bias. `sizes` is (batch, tokens, inputs, outputs).

    `conv1d` is GPT-2's layer: flatten, Gemm, unflatten, the weight [inputs, outputs]. `matmul` is torch's Linear on rank 3: the weight
    [outputs, inputs] goes through a Transpose.
    """
    batch, tokens, inputs, outputs = sizes
    bias = builder.parameter(f'{name}.bias', [outputs], 'bias') if has_bias else None
    if form == 'conv1d':
        weight = builder.parameter(f'{name}.weight', [inputs, outputs], kind)
        flat = builder.reshape(value, [-1, inputs])
        product = builder.op('Gemm', [flat, weight, bias], 'addmm', origin='aten.addmm.default', alpha=1.0, beta=1.0, transA=0, transB=0)
        return builder.reshape(product, [batch, tokens, outputs])
    weight = builder.parameter(f'{name}.weight', [outputs, inputs], kind)
    turned = builder.op('Transpose', [weight], perm=[1, 0])
    if not has_bias:
        return builder.op('MatMul', [value, turned], 'linear', origin='aten.linear.default')
    product = builder.op('MatMul', [value, turned])
    return builder.op('Add', [product, bias], 'linear', origin='aten.linear.default')


def flat_linear(builder, value, name, inputs, outputs, has_bias=True):
    """Returns the same for `value` [rows, inputs], as torch's Linear on rank 2: one Gemm, the weight [outputs, inputs]."""
    operands = [value, builder.parameter(f'{name}.weight', [outputs, inputs], 'matrix')]
    if has_bias:
        operands.append(builder.parameter(f'{name}.bias', [outputs], 'bias'))
    return builder.op('Gemm', operands, 'linear', origin='aten.linear.default', alpha=1.0, beta=1.0, transA=0, transB=1)


def layer_norm(builder, value, name, width, has_bias=True):
    operands = [value, builder.parameter(f'{name}.weight', [width], 'norm')]
    if has_bias:
        operands.append(builder.parameter(f'{name}.bias', [width], 'bias'))
    return builder.op('LayerNormalization', operands, 'layer_norm', origin='aten.layer_norm.default',
                      axis=-1, epsilon=1e-5, stash_type=1)


def rms_norm(builder, value, name, width, as_operator=False):
    weight = builder.parameter(f'{name}.weight', [width], 'norm')
    if as_operator:
        return builder.op('RMSNormalization', [value, weight], 'rms_norm', origin='aten.rms_norm.default', axis=-1, epsilon=1e-6)
    square = builder.op('Pow', [value, builder.scalar(2.0)], 'pow')
    mean = builder.op('ReduceMean', [square, builder.ints([-1])], 'mean', keepdims=1, noop_with_empty_axes=0)
    root = builder.op('Sqrt', [builder.op('Add', [mean, builder.scalar(1e-6)], 'add')])
    scaled = builder.op('Mul', [value, builder.op('Reciprocal', [root], 'rsqrt')], 'mul')
    return builder.op('Mul', [weight, scaled], 'mul')


def dropout(builder, value, ratio):
    """Adds a dropout; nothing at a ratio of 0."""
    if not ratio:
        return value
    training = builder.op('Constant', [], value=onnx.numpy_helper.from_array(numpy.array(True)))
    return builder.op('Dropout', [value, builder.scalar(ratio), training], 'dropout', origin='aten.dropout.default')


def silu(builder, value):
    return builder.op('Mul', [value, builder.op('Sigmoid', [value])], 'silu', origin='aten.silu.default')


def activation(builder, value, form):
    """`chain` is the tanh form of GELU as transformers' `gelu_new` spells it; `tanh` and `erf` are the operator."""
    if form == 'relu':
        return relu(builder, value)
    if form == 'tanh':
        return builder.op('Gelu', [value], 'gelu', origin='aten.gelu.default', approximate='tanh')
    if form == 'erf':
        return builder.op('Gelu', [value], 'gelu', origin='aten.gelu.default', approximate='none')
    half = builder.op('Mul', [value, builder.scalar(0.5)], 'mul')
    cube = builder.op('Pow', [value, builder.scalar(3.0)], 'pow')
    scaled = builder.op('Mul', [cube, builder.scalar(0.044715)], 'mul')
    inner = builder.op('Add', [value, scaled], 'add')
    argument = builder.op('Mul', [inner, builder.scalar(math.sqrt(2.0 / math.pi))], 'mul')
    tanh = builder.op('Tanh', [argument], 'tanh')
    outer = builder.op('Add', [tanh, builder.scalar(1.0)], 'add')
    return builder.op('Mul', [half, outer], 'mul')


def relu(builder, value):
    return builder.op('Relu', [value], 'relu', origin='aten.relu.default')


def positions(builder, tokens):
    """Returns position ids [1, tokens]."""
    ids = builder.op('Add', [builder.arange(tokens), builder.scalar(0, TensorProto.INT64)], 'add')
    return builder.op('Unsqueeze', [ids, builder.vector(0)], 'unsqueeze')
