"""The gradients and the final weight of step.mlir."""

import json
import struct
import sys

data = open(sys.argv[1], 'rb').read()
(length,) = struct.unpack_from('<Q', data)
header = json.loads(data[8:8 + length])


def values(name):
    begin, end = header[name]['data_offsets']
    return struct.unpack(f'<{(end - begin) // 8}d', data[8 + length + begin:8 + length + end])


for name, expected in {
    'gradient.0.w': (2, -4),
    'gradient.1.w': (1.6, -3.2),
    'parameter.w': (0.8 - 0.26, 1.4 + 0.52),
    'state.w/momentum_buffer': (2.6, -5.2),
}.items():
    if any(abs(a - b) > 1e-12 for a, b in zip(values(name), expected, strict=True)):
        sys.exit(f'{name} is {values(name)}, not {expected}')
