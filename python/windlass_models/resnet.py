"""A ResNet-like image classifier: convolutions with batch norm around skips, pooling behind the first and before the last layer."""

import dataclasses
import math

import numpy
from onnx import TensorProto

from . import checks, layers, loss
from .builder import OPSET, GraphBuilder
from .parameters import Parameters


@dataclasses.dataclass(frozen=True)
class ResnetConfig:
    """The configuration for square images, `side` pixels wide. The first block keeps `width` channels, each further one doubles them and
    halves the image. The second convolution of a block has `groups` groups, with `depthwise` one for each channel. With `depths`, stage i has
    that many blocks of three convolutions, the second of `width` times 2 to the i channels and the last of four times as many."""
    layers: int = 2
    width: int = 16
    classes: int = 10
    channels: int = 3
    side: int = 32
    batch: int = 8
    groups: int = 1
    depthwise: bool = False
    depths: tuple = ()

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'classes', 'channels', 'side', 'batch', 'groups')
        if self.width % self.groups:
            raise ValueError(f'the width {self.width} is not a multiple of the {self.groups} groups')
        if self.side < 2 ** self.layers:
            raise ValueError(f'the side of {self.side} pixels is halved {self.layers} times: it must be at least {2 ** self.layers}')


def build(config, seed=0, scale=0.1, jitter=0.0, with_values=True):
    """Builds the training graph: `pixel_values` [batch, channels, side, side] and `labels` [batch] to the scalar `loss`."""
    builder = GraphBuilder(Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values), OPSET)
    pixels = builder.input('pixel_values', TensorProto.FLOAT, [config.batch, config.channels, config.side, config.side])
    labels = builder.input('labels', TensorProto.INT64, [config.batch])
    with builder.scope('', 'windlass_models.ResidualNetwork'):
        with builder.scope('stem', 'windlass_models.Stem'):
            value = _convolution(builder, pixels, 'stem.conv', config.channels, config.width, 3)
            value = builder.op('Relu', [_batch_norm(builder, value, 'stem.bn', config.width)], 'relu')
            value = builder.op('MaxPool', [value], 'max_pool2d', origin='aten.max_pool2d.default', auto_pad='NOTSET', ceil_mode=0, dilations=[1, 1],
                               kernel_shape=[3, 3], pads=[1, 1, 1, 1], storage_order=0, strides=[2, 2])
        width = config.width
        for layer in range(0 if config.depths else config.layers):
            inputs, width = width, width * (2 if layer else 1)
            value = _block(builder, value, f'layers.{layer}', inputs, width, config)
        for stage, depth in enumerate(config.depths):
            for index in range(depth):
                inner = config.width * 2 ** stage
                value = _bottleneck(builder, value, f'layers.{stage}.{index}', width, inner, 2 if stage and not index else 1)
                width = 4 * inner
        value = builder.op('ReduceMean', [value, builder.ints([-1, -2])], 'mean', keepdims=1, noop_with_empty_axes=0)
        logits = layers.flat_linear(builder, builder.reshape(value, [config.batch, width]), 'classifier', width, config.classes)
        return builder.model(loss.cross_entropy(builder, logits, labels, config.classes))


def _convolution(builder, value, name, inputs, outputs, size, stride=1, groups=1, kind='matrix'):
    weight = builder.parameter(f'{name}.weight', [outputs, inputs // groups, size, size], kind)
    return builder.op('Conv', [value, weight], 'conv2d', origin='aten.conv2d.default', auto_pad='NOTSET', group=groups, kernel_shape=[size, size],
                      strides=[stride, stride], dilations=[1, 1], pads=[size // 2] * 4)


def _batch_norm(builder, value, name, width):
    scale, bias = builder.parameter(f'{name}.weight', [width], 'norm'), builder.parameter(f'{name}.bias', [width], 'bias')
    mean = builder.buffer(f'{name}.running_mean', numpy.zeros(width, numpy.float32))
    variance = builder.buffer(f'{name}.running_var', numpy.ones(width, numpy.float32))
    return builder.op('BatchNormalization', [value, scale, bias, mean, variance], 'batch_norm', outputs=3, origin='aten.batch_norm.default',
                      epsilon=1e-5, momentum=0.9, training_mode=1)[0]


def _block(builder, value, name, inputs, width, config):
    stride, groups = (1 if inputs == width else 2), width if config.depthwise else config.groups
    with builder.scope(name, 'windlass_models.Block'):
        inner = _convolution(builder, value, f'{name}.conv1', inputs, width, 3, stride)
        inner = builder.op('Relu', [_batch_norm(builder, inner, f'{name}.bn1', width)], 'relu')
        inner = _convolution(builder, inner, f'{name}.conv2', width, width, 3, groups=groups, kind='residual')
        inner = _batch_norm(builder, inner, f'{name}.bn2', width)
        if stride > 1:
            value = _convolution(builder, value, f'{name}.downsample.0', inputs, width, 1, stride)
            value = _batch_norm(builder, value, f'{name}.downsample.1', width)
        return builder.op('Relu', [builder.op('Add', [inner, value], 'add')], 'relu')


def _bottleneck(builder, value, name, inputs, width, stride):
    with builder.scope(name, 'windlass_models.Bottleneck'):
        inner = value
        for index, (before, after, size, step) in enumerate(((inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)), start=1):
            inner = _convolution(builder, inner, f'{name}.conv{index}', before, after, size, step, kind='residual' if index == 3 else 'matrix')
            inner = _batch_norm(builder, inner, f'{name}.bn{index}', after)
            if index < 3:
                inner = builder.op('Relu', [inner], 'relu')
        if stride > 1 or inputs != 4 * width:
            value = _convolution(builder, value, f'{name}.downsample.0', inputs, 4 * width, 1, stride)
            value = _batch_norm(builder, value, f'{name}.downsample.1', 4 * width)
        return builder.op('Relu', [builder.op('Add', [inner, value], 'add')], 'relu')
