"""A classifier of linear layers."""

import dataclasses

from onnx import TensorProto

from . import layers, loss
from .builder import GraphBuilder
from .parameters import Parameters

ACTIVATIONS = ('relu', 'gelu')


@dataclasses.dataclass(frozen=True)
class MlpConfig:
    """`sizes` holds the width of the input, of each hidden layer and of the classes; `activations` one name for each hidden layer."""
    sizes: tuple = (64, 256, 256, 10)
    activations: tuple = ('relu', 'gelu')
    batch: int = 32

    def __post_init__(self):
        if len(self.sizes) < 2 or min(self.sizes) < 1 or self.batch < 1:
            raise ValueError(f'the sizes {self.sizes} with a batch of {self.batch}: give at least two sizes, all of them 1 or more')
        if len(self.activations) != len(self.sizes) - 2:
            raise ValueError(f'{len(self.sizes) - 2} hidden layers but {len(self.activations)} activations: give one for each')


def build(config, seed=0, scale=0.05, jitter=0.0, with_values=True):
    """Builds the training graph: `x` [batch, sizes[0]] and `labels` [batch] to the scalar `loss`."""
    builder = GraphBuilder(Parameters(seed, scale, 1.0, jitter, with_values))
    value = builder.input('x', TensorProto.FLOAT, [config.batch, config.sizes[0]])
    labels = builder.input('labels', TensorProto.INT64, [config.batch])
    with builder.scope('', 'windlass_models.Classifier'), builder.scope('model', 'torch.nn.modules.container.Sequential'):
        for layer, (inputs, outputs) in enumerate(zip(config.sizes, config.sizes[1:])):
            name = f'model.{2 * layer}'
            with builder.scope(name, 'torch.nn.modules.linear.Linear'):
                value = layers.flat_linear(builder, value, name, inputs, outputs)
            if layer < len(config.activations):
                with builder.scope(f'model.{2 * layer + 1}', 'torch.nn.modules.activation'):
                    value = layers.activation(builder, value, {'relu': 'relu', 'gelu': 'erf'}[config.activations[layer]])
        return builder.model(loss.cross_entropy(builder, value, labels, config.sizes[-1]))
