"""Writes small good inputs for each fuzzer: seeds.py FOLDER."""

import io
import json
import pathlib
import struct
import sys

import numpy

from bad_input import models
from windlass_models import safetensors_file

folder = pathlib.Path(sys.argv[1])
seeds = {'onnx': {}, 'plan': {}, 'json': {}, 'safetensors': {}, 'tokens': {}}
seeds['onnx'] = {'classifier': models.classifier().SerializeToString(), 'gpt': models.small_gpt().SerializeToString()}
seeds['json'] = {'all': json.dumps({'a': [1, -2.5e3, True, None, 'x\u00e9\n'], 'b': {'c': []}}).encode()}
seeds['plan'] = seeds['json']
safetensors_file.write({'x.0': numpy.ones((2, 4), numpy.float32), 'y.0': numpy.ones(3, numpy.int64)}, folder.parent / 'seed.safetensors')
seeds['safetensors'] = {'two': (folder.parent / 'seed.safetensors').read_bytes()}
array, archive = io.BytesIO(), io.BytesIO()
numpy.save(array, numpy.ones(100, numpy.uint16))
numpy.savez(archive, a=numpy.ones(3, numpy.float32), b=numpy.ones((2, 2), numpy.int64))
seeds['tokens'] = {'npy': array.getvalue(), 'npz': archive.getvalue(), 'llmc': struct.pack('<256i', 20240520, 1, 4, *[0] * 253) + bytes(8),
                   'safetensors': seeds['safetensors']['two']}
for name, inputs in seeds.items():
    (folder / name).mkdir(parents=True, exist_ok=True)
    for each, data in inputs.items():
        (folder / name / each).write_bytes(data)
