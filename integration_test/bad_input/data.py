"""Training data: token files, arrays, archives and explicit batches."""

import io
import json
import os
import struct
import zipfile

import numpy

from .case import BAD_INPUT, Case, cuts, flips, json_damage, write


def _run(folder, path, label, codes=(BAD_INPUT,), says=None, program='classifier', *flags):
    return Case(label, ['--data', path, '--steps', 2, '-o', folder / 'run', *flags], codes, (path.name,) if says is None else says, program, 'run')


def batches(folder, made):
    path = folder / 'batches.safetensors'
    good = (made / 'classifier.safetensors').read_bytes()
    length = int.from_bytes(good[:8], 'little')
    header, values = json.loads(good[8:8 + length]), good[8 + length:]

    def saved(text, data=values, stated=None):
        text = text.encode() if isinstance(text, str) else text
        return write(path, (len(text) if stated is None else stated).to_bytes(8, 'little') + text + data)

    yield _run(folder, made / 'classifier.safetensors', 'good batches', (0,), ())
    for cut_at, cut in cuts(good):
        yield _run(folder, write(path, cut), f'cut at {cut_at}')
    for i, changed in flips(good[:8 + length], 150, 4):
        yield _run(folder, write(path, changed + values), f'bits turned in the header, {i}', (0, BAD_INPUT), ())
    for stated in (0, 1, 7, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, length - 1, length + 1, 10**8):
        yield _run(folder, saved(json.dumps(header), stated=stated), f'header of {stated} bytes')
    for label, changed in json_damage({'x.0': header['x.0']}, json.dumps):
        yield _run(folder, saved(changed), label)
    other = dict(header)
    for label, change in (('shape', {'shape': [2, 5]}), ('rank', {'shape': [8]}), ('dtype', {'dtype': 'I64'}), ('of strings', {'dtype': 'STR'}),
                          ('beyond 2^63', {'shape': [2**40, 2**40]}), ('behind the end', {'data_offsets': [2**40, 2**40 + 32]}),
                          ('turned round', {'data_offsets': [32, 0]}), ('overlapping', {'data_offsets': [4, 36]}), ('rank 400', {'shape': [1] * 400})):
        other['x.0'] = dict(header['x.0'], **change)
        yield _run(folder, saved(json.dumps(other)), label)
    del other['x.0']
    yield _run(folder, saved(json.dumps(other)), 'no first batch')
    del other['labels.0'], other['x.1'], other['labels.1']
    yield _run(folder, saved(json.dumps(other), b''), 'no batch')
    yield _run(folder, saved('[' * 100000), 'nested')
    yield _run(folder, saved('{' + '"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},' * 200000 + '"b":1}'), 'one name 200,000 times')
    yield _run(folder, saved('{' + ','.join(f'"x.{k}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}' for k in range(200000)) + '}', b''), '200,000 empty batches')
    header['labels.0'] = dict(header['labels.0'])
    begin, end = header['labels.0']['data_offsets']
    for label in (3, 2**31, -1, -2**63):
        changed = values[:begin] + struct.pack('<q', label) * ((end - begin) // 8) + values[end:]
        yield _run(folder, saved(json.dumps(header), changed), f'label {label} of 3 classes', (BAD_INPUT,) if label != -1 else (0, BAD_INPUT, 6), ())


def tokens(folder, made):
    path = folder / 'tokens.bin'

    def run(data, label, codes=(BAD_INPUT,), says=None, *flags):
        return _run(folder, write(path, data), label, codes, says, 'gpt', *flags)

    yield run(b'\3\0' * 100, 'good tokens', (0,), ())
    yield run(b'', 'empty')
    yield run(b'\3', 'one byte', says=('odd',))
    yield run(b'\3\0' * 10 + b'\3', 'odd number of bytes', says=('odd',))
    yield run(b'\3\0', 'one token', says=('too short',))
    yield run(b'\3\0' * 7, 'one token less than a micro-batch', says=('too short',))
    yield run(b'\3\0' * 99 + b'\x10\0', 'an id equal to the vocabulary', (0, BAD_INPUT), ())
    yield run(b'\xff\xff' * 100, 'ids beyond the vocabulary', says=('65535', '16'))
    yield run(b'\xff' * 100, 'bytes beyond the vocabulary', (BAD_INPUT,), ('255', '16'), '--bytes')

    def llmc(magic=20240520, version=1, count=100, held=200):
        return struct.pack('<256i', magic, version, count, *[0] * 253) + b'\3\0' * (held // 2)

    yield run(llmc(), 'good llm.c tokens', (0,), ())
    for version in (0, 2, 7, -1):
        yield run(llmc(version=version), f'llm.c version {version}', says=('version',))
    for count in (0, 99, 101, -1, 2**31 - 1, -2**31):
        yield run(llmc(count=count), f'llm.c with {count} of 100 tokens')
    yield run(llmc()[:500], 'half an llm.c header', (0, BAD_INPUT), ())
    for length, cut in cuts(llmc(), 50):
        yield run(cut, f'llm.c cut at {length}', (0, BAD_INPUT) if length < 1024 and length % 2 == 0 else (BAD_INPUT,), ())
    yield run(struct.pack('<256i', 20240801, 7, 100, *[0] * 253) + b'\xff' * 400, 'wide llm.c ids of 2^32', says=('2^31',))
    for name in ('pipe.bin', 'folder.bin', 'none.bin'):
        if name == 'pipe.bin':
            os.mkfifo(folder / name)
        elif name == 'folder.bin':
            (folder / name).mkdir()
        yield _run(folder, folder / name, name, program='gpt')
    (folder / 'device.bin').symlink_to('/dev/zero')
    yield _run(folder, folder / 'device.bin', 'device', program='gpt')
    yield _run(folder, write(folder / 'odd.xyz', b'\3\0' * 100), 'unknown ending', program='gpt')
    yield Case('no data', ['--steps', 1, '-o', folder / 'run'], (BAD_INPUT, 2), ('--data',), 'gpt', 'run')


def arrays(folder, made):
    def npy(array):
        out = io.BytesIO()
        numpy.save(out, array)
        return out.getvalue()

    good = npy(numpy.full(100, 3, numpy.uint16))
    path = folder / 'tokens.npy'
    yield _run(folder, write(path, good), 'good array', (0,), (), 'gpt')
    for length, cut in cuts(good, 50):
        yield _run(folder, write(path, cut), f'array cut at {length}', program='gpt')
    for i, changed in flips(good[:128], 150, 5):
        yield _run(folder, write(path, changed + good[128:]), f'array with bits turned, {i}', (0, BAD_INPUT), (), 'gpt')
    for label, array in (('floats', numpy.ones(100)), ('no element', numpy.zeros(0, numpy.uint16)), ('scalar', numpy.uint16(3)), ('strings', numpy.array(['a'] * 100)),
                         ('big-endian', numpy.ones(100, '>u2')), ('complex', numpy.ones(100, complex)), ('records', numpy.zeros(9, [('a', 'u2'), ('b', 'f4')])),
                         ('negative', numpy.full(100, -3, numpy.int16)), ('rank 30', numpy.ones([1] * 30 + [100], numpy.uint16))):
        yield _run(folder, write(path, npy(array)), label, (0, BAD_INPUT) if label in ('rank 30', 'big-endian') else (BAD_INPUT, 6), (), 'gpt')
    for shape in ('(-1,)', '(99999999999999999999,)', '(4611686018427387904, 4)', '(,)', '(100', '100', "('a',)", '(' * 10000, '(100,) * 2'):
        head = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
        yield _run(folder, write(path, b'\x93NUMPY\x02\0' + len(head).to_bytes(4, 'little') + head + b'\3\0' * 100), f'shape {shape[:30]}', program='gpt')
    yield _run(folder, write(path, b'\x93NUMPY\x02\0' + b'\xff' * 4 + bytes(100)), 'header of 4 GiB', program='gpt')
    yield _run(folder, write(path, b'\x93NUMPY\x09\0' + good[8:]), 'version 9', program='gpt')

    path = folder / 'batches.npz'

    def npz(entries, **options):
        out = io.BytesIO()
        with zipfile.ZipFile(out, 'w', **options) as archive:
            for name, data in entries.items():
                archive.writestr(name, data)
        return out.getvalue()

    inputs = {f'{name}.{k}.npy': npy(array) for k in range(2) for name, array in (('x', numpy.ones((2, 4), numpy.float32)), ('labels', numpy.ones(2, numpy.int64)))}
    good = npz(inputs)
    yield _run(folder, write(path, good), 'good archive', (0,), ())
    for length, cut in cuts(good):
        yield _run(folder, write(path, cut), f'archive cut at {length}')
    for i, changed in flips(good, 200, 6):
        yield _run(folder, write(path, changed), f'archive with bits turned, {i}', (0, BAD_INPUT, 6), ())
    yield _run(folder, write(path, npz(inputs, compression=zipfile.ZIP_DEFLATED)), 'packed archive')
    yield _run(folder, write(path, npz({})), 'empty archive')
    yield _run(folder, write(path, npz({f'{i}.npy': b'' for i in range(60000)})), '60,000 entries')
    yield _run(folder, write(path, npz({'../x.0.npy': npy(numpy.ones(1))})), 'name above', says=())
    tail = bytearray(good)
    at = tail.rfind(b'PK\5\6')
    for label, begin, end, value in (('entries', 10, 12, 0xffff), ('size of the table', 12, 16, 2**32 - 1), ('place of the table', 16, 20, 2**32 - 1), ('comment', 20, 22, 0xffff)):
        changed = bytearray(good)
        changed[at + begin:at + end] = value.to_bytes(end - begin, 'little')
        yield _run(folder, write(path, bytes(changed)), f'archive whose {label} is {value}', (0, BAD_INPUT), ())
