"""A BERT-like masked language model: norms behind the sums, padding, labels that are mostly ignored."""

import dataclasses
import math

import numpy
from onnx import TensorProto

from . import attention, checks, layers, loss
from .builder import OPERATORS_OPSET, OPSET, GraphBuilder
from .parameters import Parameters


@dataclasses.dataclass(frozen=True)
class BertConfig:
    layers: int = 2
    width: int = 128
    heads: int = 4
    vocabulary: int = 256
    tokens: int = 64
    batch: int = 8
    activation: str = 'erf'
    attention: str = 'sdpa'

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'heads', 'vocabulary', 'tokens', 'batch')
        if self.width % self.heads:
            raise ValueError(f'the width {self.width} is not a multiple of the {self.heads} heads')

    @property
    def head_width(self):
        return self.width // self.heads


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True):
    """Builds the training graph: `input_ids`, `attention_mask` and `labels` [batch, tokens] to the scalar `loss`."""
    parameters = Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values)
    builder = GraphBuilder(parameters, OPERATORS_OPSET if config.attention == 'operator' else OPSET)
    shape = [config.batch, config.tokens]
    ids, mask, labels = (builder.input(name, TensorProto.INT64, shape) for name in ('input_ids', 'attention_mask', 'labels'))
    with builder.scope('', 'windlass_models.MaskedLanguageModel'):
        value = _embeddings(builder, ids, config)
        pattern = attention.padding_pattern(builder, mask, config)
        for layer in range(config.layers):
            value = _layer(builder, value, f'encoder.layer.{layer}', config, pattern)
        sizes = (config.batch, config.tokens, config.width)
        value = layers.activation(builder, layers.linear(builder, value, 'predictions.dense', (*sizes, config.width), 'matmul'), config.activation)
        value = layers.layer_norm(builder, value, 'predictions.LayerNorm', config.width)
        # The output layer shares the table of the embedding.
        turned = builder.op('Transpose', [builder.parameter('predictions.decoder.weight', [config.vocabulary, config.width], 'matrix')], perm=[1, 0])
        bias = builder.parameter('predictions.decoder.bias', [config.vocabulary], 'bias')
        logits = builder.op('Add', [builder.op('MatMul', [value, turned]), bias], 'linear', origin='aten.linear.default')
        return builder.model(loss.cross_entropy(builder, logits, labels, config.vocabulary))


def _embeddings(builder, ids, config):
    def rows(name, count, places):
        with builder.scope(f'embeddings.{name}', 'torch.nn.modules.sparse.Embedding'):
            weight = builder.parameter('predictions.decoder.weight' if name == 'word' else f'embeddings.{name}.weight', [count, config.width], 'matrix')
            return builder.op('Gather', [weight, places], 'embedding', origin='aten.embedding.default', axis=0)

    positions = builder.buffer('embeddings.position_ids', numpy.arange(config.tokens, dtype=numpy.int64).reshape(1, -1))
    kinds = builder.buffer('embeddings.token_type_ids', numpy.zeros((1, config.tokens), dtype=numpy.int64))
    spread = builder.op('Expand', [kinds, builder.dims([config.batch, config.tokens])], 'expand')
    places = builder.op('Expand', [positions, builder.dims([config.batch, config.tokens])], 'expand')
    kinds = builder.op('GatherElements', [spread, places], 'gather', axis=1)
    value = builder.op('Add', [rows('word', config.vocabulary, ids), rows('token_type', 2, kinds)], 'add')
    value = builder.op('Add', [value, rows('position', config.tokens, positions)], 'add')
    return layers.layer_norm(builder, value, 'embeddings.LayerNorm', config.width)


def _layer(builder, value, name, config, pattern):
    batch, tokens, width = config.batch, config.tokens, config.width

    def linear(of, part, inputs, outputs, kind='matrix'):
        return layers.linear(builder, of, f'{name}.{part}', (batch, tokens, inputs, outputs), 'matmul', kind)

    with builder.scope(name, 'windlass_models.Layer'):
        heads = [attention.split_heads(builder, linear(value, f'attention.self.{part}', width, width), config) for part in ('query', 'key', 'value')]
        mixed = attention.join_heads(builder, attention.attend(builder, *heads, config, pattern), config)
        mixed = linear(mixed, 'attention.output.dense', width, width, 'residual')
        value = layers.layer_norm(builder, builder.op('Add', [mixed, value], 'add'), f'{name}.attention.output.LayerNorm', width)
        hidden = layers.activation(builder, linear(value, 'intermediate.dense', width, 4 * width), config.activation)
        hidden = linear(hidden, 'output.dense', 4 * width, width, 'residual')
        return layers.layer_norm(builder, builder.op('Add', [hidden, value], 'add'), f'{name}.output.LayerNorm', width)
