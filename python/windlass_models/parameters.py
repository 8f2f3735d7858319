"""Initial values of parameters."""

import zlib

import numpy


class Parameters:
    """Fills each parameter from its name and the seed alone, so that the order of the graph does not matter.

    Kinds: `matrix` N(0, scale), `residual` N(0, scale · residual_factor), `bias` 0, `norm` 1. `jitter` moves biases and norm weights
    off 0 and 1, so that in a test every element of every parameter has its own value.
    """

    def __init__(self, seed=0, scale=0.02, residual_factor=1.0, jitter=0.0, with_values=True):
        self.seed, self.scale, self.residual_factor, self.jitter, self.with_values = seed, scale, residual_factor, jitter, with_values

    def values(self, name, shape, kind):
        """Returns the values as f32, or None where the graph is to have none."""
        if not self.with_values:
            return None
        # RandomState's stream is frozen across versions of numpy; that of the newer generators is not.
        random = numpy.random.RandomState([zlib.crc32(name.encode()), self.seed & 0xFFFFFFFF])
        if kind in ('matrix', 'residual'):
            factor = self.residual_factor if kind == 'residual' else 1.0
            return (random.standard_normal(shape) * (self.scale * factor)).astype(numpy.float32)
        base = numpy.full(shape, 1.0 if kind == 'norm' else 0.0)
        if self.jitter:
            base = base + random.standard_normal(shape) * self.jitter
        return base.astype(numpy.float32)
