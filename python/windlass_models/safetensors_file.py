"""Reads and writes safetensors files."""

import json
import pathlib
import struct

import numpy

KINDS = {'F32': numpy.dtype('<f4'), 'F64': numpy.dtype('<f8'), 'I64': numpy.dtype('<i8'), 'I32': numpy.dtype('<i4'), 'U8': numpy.dtype('u1'), 'BOOL': numpy.dtype('?')}


def read(path):
    """Returns {name: array}."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from('<Q', data)
    arrays = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != '__metadata__':
            begin, end = entry['data_offsets']
            arrays[name] = numpy.frombuffer(data[8 + length + begin:8 + length + end], KINDS[entry['dtype']]).reshape(entry['shape'])
    return arrays


def write(arrays, path):
    kinds = {dtype: kind for kind, dtype in KINDS.items()}
    header, offset = {}, 0
    for name, array in arrays.items():
        header[name] = {'dtype': kinds[array.dtype], 'shape': list(array.shape), 'data_offsets': [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack('<Q', len(text)) + text + b''.join(array.tobytes() for array in arrays.values()))
