"""A ConvNeXt-like image classifier: depthwise convolutions of 7 x 7 between linear layers on channels that are last."""

import dataclasses
import math

from onnx import TensorProto

from . import checks, layers, loss
from .builder import OPSET, GraphBuilder
from .parameters import Parameters


@dataclasses.dataclass(frozen=True)
class ConvnextConfig:
    """The configuration for square images, `side` pixels wide. Stage i has `depths[i]` blocks of `width` times 2 to the i channels."""
    depths: tuple = (1, 1)
    width: int = 16
    classes: int = 10
    channels: int = 3
    side: int = 32
    batch: int = 8

    def __post_init__(self):
        checks.require_positive(self, 'width', 'classes', 'channels', 'side', 'batch')
        if not self.depths or min(self.depths) < 1:
            raise ValueError(f'depths {self.depths}: each stage has at least one block')
        if self.side % (4 * 2 ** (len(self.depths) - 1)):
            raise ValueError(f'the side of {self.side} pixels must be a multiple of {4 * 2 ** (len(self.depths) - 1)} for {len(self.depths)} stages')


def build(config, seed=0, scale=0.05, jitter=0.0, with_values=True):
    """Builds the training graph: `pixel_values` [batch, channels, side, side] and `labels` [batch] to the scalar `loss`."""
    builder = GraphBuilder(Parameters(seed, scale, 1.0 / math.sqrt(2 * sum(config.depths)), jitter, with_values), OPSET)
    value = builder.input('pixel_values', TensorProto.FLOAT, [config.batch, config.channels, config.side, config.side])
    labels = builder.input('labels', TensorProto.INT64, [config.batch])
    with builder.scope('', 'windlass_models.ConvNeXt'):
        inputs, side = config.channels, config.side
        for stage, depth in enumerate(config.depths):
            width, size = config.width * 2 ** stage, 2 if stage else 4
            with builder.scope(f'stages.{stage}.downsample', 'windlass_models.Downsample'):
                if stage:
                    value = _channels_last(builder, value, lambda each, inputs=inputs, stage=stage: layers.layer_norm(builder, each, f'stages.{stage}.norm', inputs))
                value = _convolution(builder, value, f'stages.{stage}.downsample', inputs, width, size, stride=size)
            side //= size
            for index in range(depth):
                value = _block(builder, value, f'stages.{stage}.blocks.{index}', width, side, config)
            inputs = width
        value = builder.op('ReduceMean', [value, builder.ints([-1, -2])], 'mean', keepdims=1, noop_with_empty_axes=0)
        value = layers.layer_norm(builder, builder.reshape(value, [config.batch, inputs]), 'norm', inputs)
        return builder.model(loss.cross_entropy(builder, layers.flat_linear(builder, value, 'head', inputs, config.classes), labels, config.classes))


def _convolution(builder, value, name, inputs, outputs, size, stride=1, groups=1):
    weight = builder.parameter(f'{name}.weight', [outputs, inputs // groups, size, size], 'matrix')
    bias = builder.parameter(f'{name}.bias', [outputs], 'bias')
    pad = 0 if stride > 1 else size // 2
    return builder.op('Conv', [value, weight, bias], 'conv2d', origin='aten.conv2d.default', auto_pad='NOTSET', group=groups, kernel_shape=[size, size],
                      strides=[stride, stride], dilations=[1, 1], pads=[pad] * 4)


def _channels_last(builder, value, apply):
    """Applies a function to [batch, side, side, channels]."""
    turned = builder.op('Transpose', [value], 'permute', perm=[0, 2, 3, 1])
    return builder.op('Transpose', [apply(turned)], 'permute', perm=[0, 3, 1, 2])


def _block(builder, value, name, width, side, config):
    def mix(each):
        def linear(of, part, inputs, outputs, kind='matrix'):
            return layers.linear(builder, of, f'{name}.{part}', (config.batch, side * side, inputs, outputs), 'matmul', kind)

        hidden = layers.activation(builder, linear(layers.layer_norm(builder, each, f'{name}.norm', width), 'fc1', width, 4 * width), 'erf')
        mixed = linear(hidden, 'fc2', 4 * width, width, 'residual')
        return builder.op('Mul', [mixed, builder.parameter(f'{name}.layer_scale', [width], 'norm')], 'mul')

    with builder.scope(name, 'windlass_models.Block'):
        inner = _channels_last(builder, _convolution(builder, value, f'{name}.dwconv', width, width, 7, groups=width), mix)
        return builder.op('Add', [value, inner], 'add')
