"""Causal self-attention as the chain of primitives that the exporter writes."""

import math

import numpy
from onnx import TensorProto

from . import layers

MASKS = ('range', 'trilu')
# sdpa: torch's scaled_dot_product_attention as primitives; eager: transformers' own chain; operator: ONNX's Attention.
FORMS = ('sdpa', 'eager', 'operator')
LOWEST = float(numpy.finfo(numpy.float32).min)
INT64_MAX, INT64_MIN = 2**63 - 1, -2**63


def padding_pattern(builder, mask, config):
    """Returns the same pattern, made from `mask` [batch, tokens], which is not 0 where a key is a token."""
    visible = builder.op('Cast', [mask], '_to_copy', to=TensorProto.BOOL)
    visible = builder.op('Unsqueeze', [visible, builder.vector(1)], 'unsqueeze')
    visible = builder.op('Unsqueeze', [visible, builder.vector(1)], 'unsqueeze')
    return builder.op('Expand', [visible, builder.dims([config.batch, 1, config.tokens, config.tokens])], 'expand')


def causal_pattern(builder, config):
    """Returns a boolean [batch, 1, tokens, tokens] that is true where a query may look, made from position ids once for all layers."""
    batch, tokens = config.batch, config.tokens
    rows = builder.op('Unsqueeze', [builder.arange(tokens), builder.vector(1)], 'unsqueeze')
    columns = builder.op('Unsqueeze', [builder.arange(tokens), builder.vector(0)], 'unsqueeze')
    visible = builder.op('LessOrEqual', [columns, rows], 'le')
    visible = builder.op('Unsqueeze', [visible, builder.vector(0)], 'unsqueeze')
    visible = builder.op('Unsqueeze', [visible, builder.vector(1)], 'unsqueeze')
    return builder.op('Expand', [visible, builder.dims([batch, 1, tokens, tokens])], 'expand')


def bias(builder, config, pattern):
    """Returns the bias of the scores: 0 where a query may look, the lowest float elsewhere."""
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


def attend(builder, query, key, value, config, pattern):
    """Returns softmax(q·kᵀ/√d + mask)·v over [batch, heads, tokens, d] in the form that `config.attention` says."""
    form = {'sdpa': scaled_dot_product, 'eager': _eager, 'operator': _operator}[config.attention]
    return form(builder, query, key, value, config, pattern)


def _eager(builder, query, key, value, config, pattern):
    turned = builder.op('Transpose', [key], 'transpose', perm=[0, 1, 3, 2])
    scores = builder.op('MatMul', [query, turned], 'matmul')
    scores = builder.op('Mul', [scores, builder.scalar(1.0 / math.sqrt(config.head_width))], 'mul')
    scores = builder.op('Add', [scores, bias(builder, config, pattern)], 'add')
    weights = builder.op('Softmax', [scores], 'softmax', axis=-1)
    return builder.op('MatMul', [weights, value], 'matmul')


def _operator(builder, query, key, value, config, pattern):
    hint, origin = 'scaled_dot_product_attention', 'aten.scaled_dot_product_attention.default'
    if pattern is None:
        return builder.op('Attention', [query, key, value], hint, origin=origin, is_causal=1)
    return builder.op('Attention', [query, key, value, pattern], hint, origin=origin, is_causal=0)


def scaled_dot_product(builder, query, key, value, config, pattern):
    """Returns the same in torch's form: q and k each take the root of the scale."""
    scale = builder.op('CastLike', [builder.scalar(1.0 / math.sqrt(config.head_width)), query])
    turned = _transposed_keys(builder, key)
    scaled_query = builder.op('Mul', [query, builder.op('Sqrt', [scale])])
    scaled_key = builder.op('Mul', [turned, builder.op('Sqrt', [scale])])
    added = bias(builder, config, pattern)
    scores = builder.op('MatMul', [scaled_query, scaled_key])
    weights = builder.op('Softmax', [builder.op('Add', [scores, added])], axis=-1)
    if pattern is not None:
        # A row that may look nowhere is NaN; PyTorch makes it 0.
        lost = builder.op('IsNaN', [weights])
        weights = builder.op('Where', [lost, builder.scalar(0.0), weights])
    return builder.op('MatMul', [weights, value], 'scaled_dot_product_attention', origin='aten.scaled_dot_product_attention.default')


def split_heads(builder, value, config):
    """Brings [batch, tokens, heads · d] to [batch, heads, tokens, d]."""
    split = builder.reshape(value, [config.batch, config.tokens, -1, config.head_width])
    return builder.op('Transpose', [split], 'transpose', perm=[0, 2, 1, 3])


def join_heads(builder, value, config):
    joined = builder.op('Transpose', [value], 'transpose', perm=[0, 2, 1, 3])
    return builder.reshape(joined, [config.batch, config.tokens, -1])


def self_attention(builder, value, name, config, pattern, has_bias=True):
    """Applies self-attention to [batch, tokens, width]; `name` is the module's path."""
    batch, tokens, width = config.batch, config.tokens, config.width
    if config.fused_qkv:
        fused = layers.linear(builder, value, f'{name}.c_attn', (batch, tokens, width, 3 * width), config.linear, has_bias=has_bias)
        sequence = builder.op('SplitToSequence', [fused, builder.scalar(width, TensorProto.INT64)], 'split', axis=2, keepdims=1)
        parts = [builder.op('SequenceAt', [sequence, builder.scalar(index, TensorProto.INT64)], 'getitem') for index in range(3)]
    else:
        parts = [layers.linear(builder, value, f'{name}.{each}_proj', (batch, tokens, width, width), config.linear, has_bias=has_bias) for each in 'qkv']
    query, key, values = [split_heads(builder, part, config) for part in parts]
    joined = join_heads(builder, attend(builder, query, key, values, config, pattern), config)
    return layers.linear(builder, joined, f'{name}.c_proj', (batch, tokens, width, width), config.linear, kind='residual', has_bias=has_bias)
