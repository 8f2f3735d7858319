"""A language model that repeats nothing: every layer has another width, norm, activation and spelling, and takes what it adds from a
random earlier one. It computes nothing useful; it is what a planner cannot have been written for."""

import dataclasses
import math

import numpy
from onnx import TensorProto

from . import attention, gpt, layers, loss
from .builder import OPSET, GraphBuilder
from .parameters import Parameters

ACTIVATIONS = (*layers.ACTIVATIONS, 'silu')
NORMS = ('layer', 'rms', 'none')
SKIPS = ('add', 'gate', 'concat', 'none')


@dataclasses.dataclass(frozen=True)
class IrregularConfig:
    """`structure` is the seed of everything that is random about the graph; `width` is the mean of the layers' widths."""
    layers: int = 6
    width: int = 64
    vocabulary: int = 256
    tokens: int = 32
    batch: int = 8
    structure: int = 0

    def __post_init__(self):
        for name, least in (('layers', 1), ('width', 8), ('vocabulary', 1), ('tokens', 2), ('batch', 1), ('structure', 0)):
            if getattr(self, name) < least:
                raise ValueError(f'{name} is {getattr(self, name)}: it must be at least {least}')


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True):
    """Builds the training graph: `input_ids` and `labels` [batch, tokens], which the graph shifts, to the scalar `loss`."""
    builder = GraphBuilder(Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values), OPSET)
    random = numpy.random.RandomState(config.structure)
    shape = [config.batch, config.tokens]
    ids = builder.input('input_ids', TensorProto.INT64, shape)
    labels = builder.input('labels', TensorProto.INT64, shape)
    with builder.scope('', 'windlass_models.IrregularModel'):
        width = _width(random, config, 0)
        with builder.scope('embedding', 'torch.nn.modules.sparse.Embedding'):
            weight = builder.parameter('embedding.weight', [config.vocabulary, width], 'matrix')
            value = builder.op('Gather', [weight, ids], 'embedding', origin='aten.embedding.default', axis=0)
        # The values that later layers may take: (value, width).
        earlier = [(value, width)]
        for layer in range(config.layers):
            with builder.scope(f'layers.{layer}', 'windlass_models.IrregularLayer'):
                earlier.append(_layer(builder, earlier, f'layers.{layer}', config, random))
        value, width = earlier[-1]
        value = layers.layer_norm(builder, value, 'norm', width)
        logits = _linear(builder, value, 'lm_head', config, width, config.vocabulary, 'matmul', has_bias=False)
        return builder.model(loss.cross_entropy(builder, logits, loss.shifted(builder, labels, config.tokens), config.vocabulary))


def _pick(random, choices):
    return choices[random.randint(len(choices))]


def _width(random, config, other):
    """Returns a multiple of 4 between 0.5 and 1.5 times the mean, other than `other`."""
    choices = [4 * width for width in range(max(1, config.width // 8), 3 * config.width // 8 + 1) if 4 * width != other]
    return _pick(random, choices)


def _linear(builder, value, name, config, inputs, outputs, form, has_bias=True, kind='matrix'):
    return layers.linear(builder, value, name, (config.batch, config.tokens, inputs, outputs), form, kind, has_bias)


def _layer(builder, earlier, name, config, random):
    value, before = earlier[-1]
    width = _width(random, config, before)
    form = _pick(random, layers.LINEARS)
    value = _norm(builder, value, f'{name}.norm', before, _pick(random, NORMS))
    value = _linear(builder, value, f'{name}.up', config, before, width, form, form == 'conv1d' or random.randint(2) == 1)
    if random.randint(2):
        heads = _pick(random, [heads for heads in (1, 2, 4) if width // heads >= 4])
        own = gpt.GptConfig(width=width, heads=heads, tokens=config.tokens, batch=config.batch, linear=form, mask='trilu',
                            fused_qkv=bool(random.randint(2)), attention=_pick(random, ('sdpa', 'eager')))
        with builder.scope(f'{name}.attn', 'windlass_models.Attention'):
            mixed = attention.self_attention(builder, value, f'{name}.attn', own, None)
        value = builder.op('Add', [mixed, value], 'add')
    value = _activation(builder, value, _pick(random, ACTIVATIONS))
    return _skip(builder, value, width, earlier, name, config, random)


def _norm(builder, value, name, width, kind):
    if kind == 'layer':
        return layers.layer_norm(builder, value, name, width)
    return layers.rms_norm(builder, value, name, width) if kind == 'rms' else value


def _activation(builder, value, kind):
    return layers.silu(builder, value) if kind == 'silu' else layers.activation(builder, value, kind)


def _skip(builder, value, width, earlier, name, config, random):
    """Returns (value, width) with the result of an earlier layer added."""
    kind = _pick(random, SKIPS)
    if kind == 'none':
        return value, width
    source, inputs = earlier[random.randint(len(earlier))]
    if kind == 'concat':
        return builder.op('Concat', [value, source], 'cat', axis=-1), width + inputs
    if inputs != width:
        source = _linear(builder, source, f'{name}.skip', config, inputs, width, 'matmul', has_bias=False, kind='residual')
    if kind == 'gate':
        return builder.op('Mul', [value, builder.op('Sigmoid', [source], 'sigmoid')], 'mul'), width
    return builder.op('Add', [value, source], 'add'), width
