"""Writes small good inputs for each fuzzer: seeds.py FOLDER. Plans are made by the windlass that WINDLASS names."""

import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy
from onnx import parser

import common
from bad_input import annotations, models, problems, schedules, settings as settings_files
from windlass_models import safetensors_file

# Attributes of several kinds, a symbolic dimension, and a function with a parameter.
FUNCTIONS = '''<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[batch, 4] x) => (float loss) <float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}> {
  shape = Constant <value = int64[2] {-1, 4}> ()
  ones = Constant <value_ints = [1, 4]> ()
  half = Constant <value_float = 0.5> ()
  r = Reshape (x, shape)
  y = local.f <form = "tanh"> (r, w)
  z = Mul (y, half)
  loss = ReduceMean <keepdims = 0> (z)
}
<domain: "local", opset_import: ["" : 20]>
f <form> (a, b) => (c) { m = MatMul (a, b) c = Gelu <approximate : string = @form> (m) }
'''


def planned(model, *words):
    """What `plan` writes, by the ends of the files' names: json, and of a searched plan cert and problem too."""
    with tempfile.TemporaryDirectory(prefix='windlass-seeds-') as folder:
        path = pathlib.Path(folder)
        (path / 'model.onnx').write_bytes(model.SerializeToString())
        if 'auto' in words:
            words += ('--dump-problem', path / 'plan.problem')
        subprocess.run([common.WINDLASS, 'plan', path / 'model.onnx', '-o', path / 'plan.json', '-q', *words], check=True, stdout=subprocess.DEVNULL)
        return {file.suffix[1:]: file.read_bytes() for file in path.glob('plan.*')}


# Of the problem that fuzz/certificate.cpp has.
CERTIFICATE = {'version': 1, 'certificates': [{'name': [2, 1, 1], 'bound': 115, 'prices': [2 << 40, 1 << 38, 3 << 38], 'messages': [[[0, 256], [0, 0]]]}]}


# Of two layers, with an answer that another placement begins from.
EXPERTS = {'weight': [[90, 132.5, 40, 61], [0, 7, 7, 1]], 'replicas': 6, 'groups': 2, 'nodes': 2, 'gpus': 2,
           'phy2log': [[0, 1, 1, 2, 3, 3], [2, 3, 3, 0, 1, 1]], 'logcnt': [[1, 2, 1, 2]] * 2, 'gpu_max_mean_bal': [[222.5, 161.75, 0.727], [8, 7.5, 0.9375]]}


# Of two ranks that hold halves of a weight, and whose loss is scaled.
PIECES = [{'file': f'parameters-{rank:05}.safetensors', 'key': f'w@[{2 * rank}, 0]', 'begin': [2 * rank, 0], 'sizes': [2, 3]} for rank in range(2)]
MANIFEST = {'version': 1, 'step': 7, 'next_micro_batch': 14, 'seed': 1, 'shuffle': True, 'skipped_updates': 1,
            'loss_scale': {'value': 1024, 'clean_steps': 3, 'overflows': 1}, 'model': 'm', 'plan_hash': '0' * 64,
            'files': [{'name': piece['file'], 'bytes': 128, 'sha256': '0' * 64} for piece in PIECES],
            'tensors': [{'name': 'w', 'state': False, 'dtype': 'F32', 'shape': [4, 3], 'pieces': PIECES}]}


def safetensors(arrays):
    with tempfile.NamedTemporaryFile(prefix='windlass-seeds-') as file:
        safetensors_file.write(arrays, file.name)
        return pathlib.Path(file.name).read_bytes()


def seeds():
    """By fuzzer, then by name."""
    classifier, gpt = models.classifier(), models.small_gpt()
    settings = {'a': [1, -2.5e3, True, None, 'x\u00e9\n'], 'b': {'c': []}}
    tensors = safetensors({'x.0': numpy.ones((2, 4), numpy.float32), 'y.0': numpy.ones(3, numpy.int64)})
    array, archive = io.BytesIO(), io.BytesIO()
    numpy.save(array, numpy.ones(100, numpy.uint16))
    numpy.savez(archive, a=numpy.ones(3, numpy.float32), b=numpy.ones((2, 2), numpy.int64))
    clusters = {name: subprocess.run([common.WINDLASS, 'explain', '--cluster', name], check=True, stdout=subprocess.PIPE).stdout
                for name in ('cpu:2', 'v100-16g:2x8', 'rtx4090:1')}
    plan = planned(classifier, '--cluster', 'cpu:4', '--micro-batches', '2')['json']
    searched, small = (planned(model, '--cluster', f'cpu:{ranks}', '--strategy', 'auto') for model, ranks in ((gpt, 4), (classifier, 2)))
    return {
        'onnx': {'classifier': classifier.SerializeToString(), 'gpt': gpt.SerializeToString(),
                 'functions': parser.parse_model(FUNCTIONS).SerializeToString(),
                 'annotated': annotations.annotated(lambda *_: None)},
        'plan': {'classifier': plan, 'gpt': planned(gpt, '--cluster', 'cpu:2', '--strategy', 'ddp', '--clip')['json']},
        'certificate': {'proves': json.dumps(CERTIFICATE).encode(), 'gpt': searched['cert']},
        'cluster': {**clusters, 'mixed': json.dumps(settings_files.CLUSTER).encode()},
        'experts': {'one': json.dumps(EXPERTS).encode(), 'list': json.dumps([EXPERTS] * 2).encode()},
        'problem': {'all': json.dumps(problems.PROBLEM).encode(), 'classifier': small['problem']},
        'profile': {'small': json.dumps(settings_files.PROFILE).encode()},
        'schedule': {'orders': json.dumps(schedules.ORDERS).encode(), 'actions': schedules.ACTIONS.encode()},
        'json': {'all': json.dumps(settings).encode(), 'plan': plan},
        'manifest': {'two': json.dumps(MANIFEST).encode()},
        'safetensors': {'two': tensors},
        'tokens': {'npy': array.getvalue(), 'npz': archive.getvalue(), 'llmc': struct.pack('<256i', 20240520, 1, 4, *[0] * 253) + bytes(8),
                   'safetensors': tensors},
    }


folder = pathlib.Path(sys.argv[1])
for name, inputs in seeds().items():
    (folder / name).mkdir(parents=True, exist_ok=True)
    for each, data in inputs.items():
        (folder / name / each).write_bytes(data)
