"""Micro-batches `x.<k>` of four rows k + 1 .. k + 4, equal in both columns, as safetensors."""

import json
import struct
import sys

header, data = {}, b''
for k in range(8):
    values = struct.pack('<8f', *(k + 1 + row for row in range(4) for _ in range(2)))
    header[f'x.{k}'] = {'dtype': 'F32', 'shape': [4, 2], 'data_offsets': [len(data), len(data) + len(values)]}
    data += values
text = json.dumps(header).encode()
with open(sys.argv[1], 'wb') as file:
    file.write(struct.pack('<Q', len(text)) + text + data)
