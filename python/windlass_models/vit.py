"""A ViT-like image classifier: patches cut out by a convolution, a token of the class before them, norms before the sums."""

import dataclasses
import math

from onnx import TensorProto

from . import attention, checks, layers, loss
from .builder import OPERATORS_OPSET, OPSET, GraphBuilder
from .parameters import Parameters


@dataclasses.dataclass(frozen=True)
class VitConfig:
    """The configuration for square images, `side` pixels wide, in square patches of `patch` pixels."""
    layers: int = 2
    width: int = 128
    heads: int = 4
    classes: int = 10
    channels: int = 3
    side: int = 32
    patch: int = 8
    batch: int = 8
    activation: str = 'erf'
    attention: str = 'sdpa'

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'heads', 'classes', 'channels', 'side', 'patch', 'batch')
        if self.width % self.heads:
            raise ValueError(f'the width {self.width} is not a multiple of the {self.heads} heads')
        if self.side % self.patch:
            raise ValueError(f'the side of {self.side} pixels is not a multiple of the patch of {self.patch}')

    @property
    def head_width(self):
        return self.width // self.heads

    @property
    def patches(self):
        return (self.side // self.patch) ** 2

    @property
    def tokens(self):
        """Returns the number of tokens, one of which stands for the class."""
        return self.patches + 1


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True):
    """Builds the training graph: `pixel_values` [batch, channels, side, side] and `labels` [batch] to the scalar `loss`."""
    parameters = Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values)
    builder = GraphBuilder(parameters, OPERATORS_OPSET if config.attention == 'operator' else OPSET)
    pixels = builder.input('pixel_values', TensorProto.FLOAT, [config.batch, config.channels, config.side, config.side])
    labels = builder.input('labels', TensorProto.INT64, [config.batch])
    with builder.scope('', 'windlass_models.ImageClassifier'):
        value = _embeddings(builder, pixels, config)
        pattern = _everything(builder, config)
        for layer in range(config.layers):
            value = _layer(builder, value, f'layers.{layer}', config, pattern)
        value = layers.layer_norm(builder, value, 'layernorm', config.width)
        first = builder.op('Gather', [value, builder.scalar(0, TensorProto.INT64)], 'select', axis=1)
        logits = layers.flat_linear(builder, first, 'classifier', config.width, config.classes)
        return builder.model(loss.cross_entropy(builder, logits, labels, config.classes))


def _embeddings(builder, pixels, config):
    """Returns the embeddings [batch, tokens, width]."""
    patch = [config.patch, config.patch]
    with builder.scope('embeddings', 'windlass_models.PatchEmbeddings'):
        weight = builder.parameter('embeddings.projection.weight', [config.width, config.channels, *patch], 'matrix')
        bias = builder.parameter('embeddings.projection.bias', [config.width], 'bias')
        value = builder.op('Conv', [pixels, weight, bias], 'conv2d', origin='aten.conv2d.default', auto_pad='NOTSET', group=1,
                           kernel_shape=patch, strides=patch, dilations=[1, 1], pads=[0, 0, 0, 0])
        value = builder.reshape(value, [config.batch, config.width, config.patches])
        value = builder.op('Transpose', [value], 'transpose', perm=[0, 2, 1])
        token = builder.parameter('embeddings.cls_token', [1, 1, config.width], 'matrix')
        tokens = builder.op('Expand', [token, builder.dims([config.batch, 1, config.width])], 'expand')
        value = builder.op('Concat', [tokens, value], 'cat', axis=1)
        return builder.op('Add', [value, builder.parameter('embeddings.position_embeddings', [1, config.tokens, config.width], 'matrix')], 'add')


def _everything(builder, config):
    """Returns an attention mask that hides nothing, as transformers makes one."""
    places = layers.positions(builder, config.tokens)
    for axis in (1, 3):
        places = builder.op('Unsqueeze', [places, builder.vector(axis)], 'unsqueeze')
    visible = builder.op('GreaterOrEqual', [places, builder.scalar(0, TensorProto.INT64)], 'ge')
    return builder.op('Expand', [visible, builder.dims([config.batch, 1, config.tokens, config.tokens])], 'expand')


def _layer(builder, value, name, config, pattern):
    batch, tokens, width = config.batch, config.tokens, config.width

    def linear(of, part, inputs, outputs, kind='matrix'):
        return layers.linear(builder, of, f'{name}.{part}', (batch, tokens, inputs, outputs), 'matmul', kind)

    with builder.scope(name, 'windlass_models.Layer'):
        normal = layers.layer_norm(builder, value, f'{name}.layernorm_before', width)
        heads = [attention.split_heads(builder, linear(normal, f'attention.{part}_proj', width, width), config) for part in 'qkv']
        mixed = attention.join_heads(builder, attention.attend(builder, *heads, config, pattern), config)
        value = builder.op('Add', [linear(mixed, 'attention.o_proj', width, width, 'residual'), value], 'add')
        normal = layers.layer_norm(builder, value, f'{name}.layernorm_after', width)
        hidden = layers.activation(builder, linear(normal, 'mlp.fc1', width, 4 * width), config.activation)
        return builder.op('Add', [linear(hidden, 'mlp.fc2', 4 * width, width, 'residual'), value], 'add')
