"""A U-Net-like segmentation of images or volumes: each level halves the sides and doubles the channels, and its values are read again on the way up."""

import dataclasses
import math

from onnx import TensorProto

from . import checks, loss
from .builder import OPSET, GraphBuilder
from .parameters import Parameters


@dataclasses.dataclass(frozen=True)
class UnetConfig:
    """The configuration for squares (`dims` 2) or cubes (3), `side` elements wide, with `layers` levels below the first one."""
    layers: int = 2
    width: int = 16
    classes: int = 4
    channels: int = 1
    side: int = 32
    dims: int = 3
    batch: int = 1

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'classes', 'channels', 'side', 'batch')
        if self.dims not in (2, 3):
            raise ValueError(f'{self.dims} dims: an image has 2 and a volume 3')
        if self.side % 2 ** self.layers or self.side == 2 ** self.layers:
            raise ValueError(f'the side of {self.side} elements is halved {self.layers} times: it must be a multiple of {2 ** self.layers}, and more than that')


def build(config, seed=0, scale=0.1, jitter=0.0, with_values=True):
    """Builds the training graph: `pixel_values` [batch, channels, side..] and `labels` [batch, side..] to the scalar `loss`."""
    builder = GraphBuilder(Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values), OPSET)
    sides = [config.side] * config.dims
    value = builder.input('pixel_values', TensorProto.FLOAT, [config.batch, config.channels, *sides])
    labels = builder.input('labels', TensorProto.INT64, [config.batch, *sides])
    with builder.scope('', 'windlass_models.UNet'):
        skips, inputs = [], config.channels
        for level in range(config.layers + 1):
            width = config.width * 2 ** level
            value = _block(builder, value, f'down.{level}', inputs, width, config.dims, stride=2 if level else 1)
            skips.append(value)
            inputs = width
        for level in reversed(range(config.layers)):
            width = config.width * 2 ** level
            value = _enlarge(builder, value, f'up.{level}.enlarge', inputs, width, config.dims)
            value = builder.op('Concat', [value, skips[level]], 'cat', axis=1)
            value = _block(builder, value, f'up.{level}', 2 * width, width, config.dims)
            inputs = width
        logits = _convolution(builder, value, 'head', inputs, config.classes, 1, config.dims, has_bias=True)
        builder.op('SoftmaxCrossEntropyLoss', [logits, labels], 'cross_entropy_loss', origin='aten.cross_entropy_loss.default',
                   ignore_index=loss.IGNORED, reduction='mean')
        return builder.model(builder.rename_last('loss'))


def _convolution(builder, value, name, inputs, outputs, size, dims, stride=1, has_bias=False):
    weight = builder.parameter(f'{name}.weight', [outputs, inputs] + [size] * dims, 'matrix')
    bias = [builder.parameter(f'{name}.bias', [outputs], 'bias')] if has_bias else []
    return builder.op('Conv', [value, weight, *bias], f'conv{dims}d', origin=f'aten.conv{dims}d.default', auto_pad='NOTSET', group=1,
                      kernel_shape=[size] * dims, strides=[stride] * dims, dilations=[1] * dims, pads=[size // 2] * 2 * dims)


def _enlarge(builder, value, name, inputs, outputs, dims):
    weight = builder.parameter(f'{name}.weight', [inputs, outputs] + [2] * dims, 'matrix')
    bias = builder.parameter(f'{name}.bias', [outputs], 'bias')
    return builder.op('ConvTranspose', [value, weight, bias], f'conv_transpose{dims}d', origin=f'aten.conv_transpose{dims}d.input', auto_pad='NOTSET',
                      group=1, kernel_shape=[2] * dims, strides=[2] * dims, dilations=[1] * dims, pads=[0] * 2 * dims)


def _block(builder, value, name, inputs, width, dims, stride=1):
    with builder.scope(name, 'windlass_models.Block'):
        for index in range(2):
            value = _convolution(builder, value, f'{name}.conv{index + 1}', inputs if index == 0 else width, width, 3, dims, stride if index == 0 else 1)
            scale, bias = builder.parameter(f'{name}.norm{index + 1}.weight', [width], 'norm'), builder.parameter(f'{name}.norm{index + 1}.bias', [width], 'bias')
            value = builder.op('InstanceNormalization', [value, scale, bias], 'instance_norm', origin='aten.instance_norm.default', epsilon=1e-5)
            value = builder.op('LeakyRelu', [value], 'leaky_relu', alpha=0.01)
        return value
