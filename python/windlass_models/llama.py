"""A LLaMA-like language model: RMS norm, rotary position embedding, grouped queries, SwiGLU, no biases."""

import dataclasses
import math

import numpy
from onnx import TensorProto

from . import attention, checks, layers, loss
from .builder import OPERATORS_OPSET, OPSET, GraphBuilder
from .parameters import Parameters

INT64_MAX = 2**63 - 1


@dataclasses.dataclass(frozen=True)
class LlamaConfig:
    layers: int = 2
    width: int = 128
    heads: int = 4
    key_heads: int = 2
    hidden: int = 256
    vocabulary: int = 256
    tokens: int = 64
    batch: int = 8
    mask: str = 'range'
    attention: str = 'sdpa'
    qkv_bias: bool = False
    tied: bool = False

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'heads', 'key_heads', 'hidden', 'vocabulary', 'batch')
        if self.width % (2 * self.heads):
            raise ValueError(f'the width {self.width} is not a multiple of twice the {self.heads} heads, whose halves are turned')
        if self.heads % self.key_heads:
            raise ValueError(f'the {self.heads} heads are not a multiple of the {self.key_heads} key heads')
        if self.tokens < 2:
            raise ValueError('one token leaves nothing to predict: give --tokens 2')

    @property
    def head_width(self):
        return self.width // self.heads


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True, feed_forward=None):
    """Builds the training graph: `input_ids` and `labels` [batch, tokens], which the graph shifts, to the scalar `loss`. `feed_forward` takes
    (builder, value, name of the layer, config) and replaces the MLP of each layer."""
    parameters = Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values)
    builder = GraphBuilder(parameters, OPERATORS_OPSET if config.attention == 'operator' else OPSET)
    shape = [config.batch, config.tokens]
    ids = builder.input('input_ids', TensorProto.INT64, shape)
    labels = builder.input('labels', TensorProto.INT64, shape)
    with builder.scope('', 'windlass_models.CausalLanguageModel'):
        with builder.scope('model.embed_tokens', 'torch.nn.modules.sparse.Embedding'):
            # A tied weight has the name of its last use, as the exporter gives it.
            name = 'lm_head.weight' if config.tied else 'model.embed_tokens.weight'
            weight = builder.parameter(name, [config.vocabulary, config.width], 'matrix')
            value = builder.op('Gather', [weight, ids], 'embedding', origin='aten.embedding.default', axis=0)
        pattern = attention.causal_pattern(builder, config) if config.mask == 'range' else None
        with builder.scope('model.rotary_emb', 'windlass_models.RotaryEmbedding'):
            tables = _tables(builder, config)
        for layer in range(config.layers):
            value = _layer(builder, value, f'model.layers.{layer}', config, pattern, tables, feed_forward or _mlp)
        value = _norm(builder, value, 'model.norm', config)
        logits = layers.linear(builder, value, 'lm_head', (config.batch, config.tokens, config.width, config.vocabulary), 'matmul', has_bias=False)
        return builder.model(loss.cross_entropy(builder, logits, loss.shifted(builder, labels, config.tokens), config.vocabulary))


def _norm(builder, value, name, config):
    with builder.scope(name, 'windlass_models.RMSNorm'):
        return layers.rms_norm(builder, value, name, config.width, config.attention == 'operator')


def _tables(builder, config):
    """Returns cosines and sines [1, tokens, d] of the positions; for the operator, of half the size."""
    half = config.head_width // 2
    frequencies = builder.buffer('model.rotary_emb.inv_freq', (10000.0 ** (-numpy.arange(half) / half)).astype(numpy.float32))
    places = builder.op('Unsqueeze', [builder.arange(config.tokens), builder.vector(0)], 'unsqueeze')
    places = builder.op('Cast', [builder.op('Unsqueeze', [places, builder.vector(2)], 'unsqueeze')], '_to_copy', to=TensorProto.FLOAT)
    angles = builder.op('Mul', [places, frequencies], 'mul')
    if config.attention == 'operator':
        angles = builder.op('Expand', [angles, builder.dims([config.batch, config.tokens, half])], 'expand')
    else:
        angles = builder.op('Concat', [angles, angles], 'cat', axis=-1)
    return [builder.op('Mul', [builder.op(kind, [angles], kind.lower()), builder.scalar(1.0)], 'mul') for kind in ('Cos', 'Sin')]


def _turn(builder, value, config, tables):
    if config.attention == 'operator':
        return builder.op('RotaryEmbedding', [value, *tables], 'rotary_embedding')
    cosine, sine = [builder.op('Unsqueeze', [table, builder.vector(1)], 'unsqueeze') for table in tables]
    half = config.head_width // 2
    first, second = builder.slice(value, 0, half, 3), builder.slice(value, half, INT64_MAX, 3)
    turned = builder.op('Concat', [builder.op('Neg', [second], 'neg'), first], 'cat', axis=-1)
    return builder.op('Add', [builder.op('Mul', [value, cosine], 'mul'), builder.op('Mul', [turned, sine], 'mul')], 'add')


def _repeat(builder, value, config):
    """Repeats [batch, key heads, tokens, d] to [batch, heads, tokens, d], which the operator does itself."""
    group = config.heads // config.key_heads
    if group == 1 or config.attention == 'operator':
        return value
    apart = builder.op('Unsqueeze', [value, builder.vector(2)], 'unsqueeze')
    apart = builder.op('Expand', [apart, builder.dims([config.batch, config.key_heads, group, config.tokens, config.head_width])], 'expand')
    apart = builder.op('Identity', [apart], 'clone')
    return builder.reshape(apart, [config.batch, config.heads, config.tokens, config.head_width], '_unsafe_view')


def _layer(builder, value, name, config, pattern, tables, feed_forward):
    batch, tokens, width = config.batch, config.tokens, config.width

    def linear(of, part, inputs, outputs, kind='matrix', has_bias=False):
        return layers.linear(builder, of, f'{name}.{part}', (batch, tokens, inputs, outputs), 'matmul', kind, has_bias)

    with builder.scope(name, 'windlass_models.DecoderLayer'):
        normed = _norm(builder, value, f'{name}.input_layernorm', config)
        with builder.scope(f'{name}.self_attn', 'windlass_models.Attention'):
            widths = {'q': width, 'k': config.key_heads * config.head_width, 'v': config.key_heads * config.head_width}
            query, key, values = [attention.split_heads(builder, linear(normed, f'self_attn.{part}_proj', width, outputs, has_bias=config.qkv_bias), config)
                                  for part, outputs in widths.items()]
            query, key = _turn(builder, query, config, tables), _turn(builder, key, config, tables)
            key, values = _repeat(builder, key, config), _repeat(builder, values, config)
            mixed = attention.join_heads(builder, attention.attend(builder, query, key, values, config, pattern), config)
            mixed = linear(mixed, 'self_attn.o_proj', width, width, 'residual')
        value = builder.op('Add', [value, mixed], 'add')
        normed = _norm(builder, value, f'{name}.post_attention_layernorm', config)
        return builder.op('Add', [value, feed_forward(builder, normed, name, config)], 'add')


def _mlp(builder, value, name, config):
    def linear(of, part, inputs, outputs, kind='matrix'):
        return layers.linear(builder, of, f'{name}.mlp.{part}', (config.batch, config.tokens, inputs, outputs), 'matmul', kind, has_bias=False)

    with builder.scope(f'{name}.mlp', 'windlass_models.MLP'):
        gate = layers.silu(builder, linear(value, 'gate_proj', config.width, config.hidden))
        gated = builder.op('Mul', [gate, linear(value, 'up_proj', config.width, config.hidden)], 'mul')
        return linear(gated, 'down_proj', config.hidden, config.width, 'residual')
