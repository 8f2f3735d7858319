"""Causal self-attention as the chain of primitives that the exporter writes."""

import math

import numpy
from onnx import TensorProto

from . import layers

MASKS = ('range', 'trilu')
LOWEST = float(numpy.finfo(numpy.float32).min)
INT64_MAX, INT64_MIN = 2**63 - 1, -2**63


def causal_pattern(builder, config):
    """A boolean [batch, 1, tokens, tokens] that is true where a query may look, from position ids: built once, used by all layers."""
    batch, tokens = config.batch, config.tokens
    rows = builder.op('Unsqueeze', [builder.arange(tokens), builder.vector(1)], 'unsqueeze')
    columns = builder.op('Unsqueeze', [builder.arange(tokens), builder.vector(0)], 'unsqueeze')
    visible = builder.op('LessOrEqual', [columns, rows], 'le')
    visible = builder.op('Unsqueeze', [visible, builder.vector(0)], 'unsqueeze')
    visible = builder.op('Unsqueeze', [visible, builder.vector(1)], 'unsqueeze')
    return builder.op('Expand', [visible, builder.dims([batch, 1, tokens, tokens])], 'expand')


def _bias(builder, config, pattern):
    """What is added to the scores: 0 where a query may look, the lowest float elsewhere."""
    if pattern is not None:
        return builder.op('Where', [pattern, builder.scalar(0.0), builder.scalar(LOWEST)])
    ones = builder.op('Expand', [builder.op('Constant', [], value_float=1.0), builder.dims([config.tokens, config.tokens])])
    hidden = builder.op('Equal', [builder.op('Trilu', [ones], upper=0), builder.op('Constant', [], value_float=0.0)])
    return builder.op('Where', [hidden, builder.scalar(LOWEST), builder.scalar(0.0)])


def _transposed_keys(builder, keys):
    """Swaps the last two dimensions of `keys` through rank 3, with the shape taken from the value itself."""
    shape = builder.op('Shape', [keys], start=0)
    last = builder.op('Slice', [shape, builder.vector(-1), builder.ints([INT64_MAX])])
    previous = builder.op('Slice', [shape, builder.vector(-2), builder.vector(-1)])
    leading = builder.op('Slice', [shape, builder.ints([INT64_MIN]), builder.vector(-2)])
    flat_shape = builder.op('Concat', [builder.ints([-1]), previous, last], axis=0)
    flat = builder.op('Reshape', [keys, flat_shape], allowzero=0)
    turned = builder.op('Transpose', [flat], perm=[0, 2, 1])
    back = builder.op('Concat', [leading, last, previous], axis=0)
    return builder.op('Reshape', [turned, back], allowzero=0)


def scaled_dot_product(builder, query, key, value, config, pattern):
    """softmax(q·kᵀ/√d + mask)·v over [batch, heads, tokens, d]; q and k each take the root of the scale."""
    scale = builder.op('CastLike', [builder.scalar(1.0 / math.sqrt(config.head_width)), query])
    turned = _transposed_keys(builder, key)
    scaled_query = builder.op('Mul', [query, builder.op('Sqrt', [scale])])
    scaled_key = builder.op('Mul', [turned, builder.op('Sqrt', [scale])])
    bias = _bias(builder, config, pattern)
    scores = builder.op('MatMul', [scaled_query, scaled_key])
    weights = builder.op('Softmax', [builder.op('Add', [scores, bias])], axis=-1)
    if pattern is not None:
        # A row that may look nowhere is NaN; PyTorch makes it 0.
        lost = builder.op('IsNaN', [weights])
        weights = builder.op('Where', [lost, builder.scalar(0.0), weights])
    return builder.op('MatMul', [weights, value], 'scaled_dot_product_attention', origin='aten.scaled_dot_product_attention.default')


def self_attention(builder, value, name, config, pattern):
    """[batch, tokens, width] to the same; `name` is the module's path."""
    batch, tokens, width = config.batch, config.tokens, config.width

    def heads(part):
        split = builder.reshape(part, [batch, tokens, -1, config.head_width])
        return builder.op('Transpose', [split], 'transpose', perm=[0, 2, 1, 3])

    if config.fused_qkv:
        fused = layers.linear(builder, value, f'{name}.c_attn', (batch, tokens, width, 3 * width), config.linear)
        sequence = builder.op('SplitToSequence', [fused, builder.scalar(width, TensorProto.INT64)], 'split', axis=2, keepdims=1)
        parts = [builder.op('SequenceAt', [sequence, builder.scalar(index, TensorProto.INT64)], 'getitem') for index in range(3)]
    else:
        parts = [layers.linear(builder, value, f'{name}.{each}_proj', (batch, tokens, width, width), config.linear) for each in 'qkv']
    query, key, values = [heads(part) for part in parts]
    mixed = scaled_dot_product(builder, query, key, values, config, pattern)
    joined = builder.op('Transpose', [mixed], 'transpose', perm=[0, 2, 1, 3])
    joined = builder.reshape(joined, [batch, tokens, -1])
    return layers.linear(builder, joined, f'{name}.c_proj', (batch, tokens, width, width), config.linear, kind='residual')
