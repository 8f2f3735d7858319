"""Weights in files beside the model: paths that are not allowed, and files that do not hold them."""

import os

import numpy
from onnx import TensorProto, helper

from windlass_models import safetensors_file

from .case import ANY, BAD_INPUT, Case, write
from .models import LINEAR, check, graph_text

BYTES = 64


def external(path, **entries):
    model = graph_text(LINEAR)
    tensor = model.graph.initializer[0]
    tensor.ClearField('float_data')
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {'location': 'weights.bin', 'offset': '0', 'length': str(BYTES), **entries}.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    return write(path, model.SerializeToString())


def places(folder):
    inside = folder / 'model'
    inside.mkdir()
    path = inside / 'external.onnx'
    write(inside / 'weights.bin', bytes(BYTES))
    write(folder / 'outside.bin', bytes(BYTES))
    (inside / 'link.bin').symlink_to('../outside.bin')
    (inside / 'device.bin').symlink_to('/dev/zero')
    (inside / 'nothing.bin').symlink_to('none.bin')
    (inside / 'loop.bin').symlink_to('loop.bin')
    (inside / 'up').symlink_to('..')
    os.mkfifo(inside / 'pipe.bin')
    (inside / 'blobs').mkdir()
    write(inside / 'short.bin', bytes(BYTES - 1))
    for label, location in (('above', '../outside.bin'), ('above through a folder', 'blobs/../../outside.bin'), ('absolute', str(folder / 'outside.bin')),
                            ('/etc/passwd', '/etc/passwd'), ('/dev/zero', '/dev/zero'), ('link outside', 'link.bin'), ('link to a device', 'device.bin'),
                            ('link to nothing', 'nothing.bin'), ('link to itself', 'loop.bin'), ('folder link', 'up/outside.bin'), ('named pipe', 'pipe.bin'),
                            ('folder', 'blobs'), ('itself', '.'), ('empty', ''), ('backslash', '..\\outside.bin'), ('newline', 'a\nb'),
                            ('home', '~/weights.bin'), ('long', 'n' * 5000), ('address', 'file:///etc/passwd')):
        yield check(f'location: {label}', external(path, location=location), (0, BAD_INPUT) if label in ('newline', 'address', 'home') else (BAD_INPUT,),
                    () if label in ('newline', 'address', 'home', 'long') else ("'w'",))
    yield check('location: NUL', external(path, location='weights.bin\0x'), says=('NUL',))
    yield check('no location', external(path, location=None), says=("'w'",))
    for key in ('offset', 'length'):
        for value in ('-1', str(2**63), str(2**64), 'many', '', '1e3', '0x10', '9' * 1000):
            yield check(f'{key}: {value[:20]!r}', external(path, **{key: value}), says=(key,))
    yield check('shorter than its shape', external(path, length=str(BYTES - 4)), says=('needs 64',))
    yield check('longer than its shape', external(path, length=str(2**62)), says=('needs 64',))
    batches = folder / 'x.safetensors'
    safetensors_file.write({'x.0': numpy.ones((2, 4), numpy.float32)}, batches)
    # The values are read when a program is made or started; planning does not need them.
    for label, entries in (('offset past the end', {'offset': str(2**40)}), ('greatest offset', {'offset': str(2**63 - 1)}),
                           ('end past the end', {'offset': '1'}), ('short file', {'location': 'short.bin'})):
        path = inside / f'{label.replace(" ", "_")}.onnx'
        external(path, **entries)
        yield check(label, path, (0, BAD_INPUT))
        yield Case(f'{label}, trained', ['train', path, '--data', batches, '--steps', 1, '-o', folder / 'run'],
                   says=('offset',) if 'greatest' in label else ('weights',), output='run')


def constants(folder):
    model = graph_text('y = MatMul (x, w) c = Constant () z = Add (y, c) loss = ReduceMean <keepdims = 0> (z)')
    tensor = helper.make_tensor('t', TensorProto.FLOAT, [1], [1.0])
    tensor.ClearField('float_data')
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key='location', value='/etc/passwd')
    model.graph.node[1].attribute.append(helper.make_attribute('value', tensor))
    yield check('attribute that refers to a file', write(folder / 'constant.onnx', model.SerializeToString()), ANY[1:], ('external',))
