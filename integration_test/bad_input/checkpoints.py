"""Checkpoints that are damaged, of another model, or not checkpoints."""

import json
import os
import shutil

from .case import BAD_INPUT, Case, broken_texts, cuts, flips, json_damage, write


def _newest(made):
    return made / 'run' / 'checkpoints' / 'step-000002'


def _resume(folder, made, step, label, codes=(BAD_INPUT,), says=()):
    return Case(label, ['--data', made / 'classifier.safetensors', '--steps', 3, '-o', folder / 'run', '--resume', step], codes, says, 'classifier', 'run')


def _export(folder, step, label, codes=(BAD_INPUT,), says=()):
    return Case(f'{label}, exported', ['checkpoint', 'export', step, '--state', '-o', folder / 'merged.safetensors'], codes, says, output='merged.safetensors')


def damaged(folder, made):
    step = folder / 'step-000002'
    yield _export(folder, _newest(made), 'good', (0,))
    for name in sorted(each.name for each in _newest(made).iterdir()):
        shutil.copytree(_newest(made), step)
        good = (step / name).read_bytes()
        for length, cut in cuts(good, 34):
            write(step / name, cut)
            # A manifest without its last line break is whole.
            yield _export(folder, step, f'{name} cut at {length}', (BAD_INPUT,) if good[length:].strip() else (0, BAD_INPUT))
        for i, changed in flips(good, 60, 7):
            write(step / name, changed)
            yield _export(folder, step, f'{name} with bits turned, {i}', (BAD_INPUT,) if name != 'manifest.json' else (0, BAD_INPUT))
        write(step / name, good + b'\0')
        yield _export(folder, step, f'{name} with a byte more')
        write(step / name, good[:-1])
        yield _resume(folder, made, step, f'{name} a byte short, resumed', (0, BAD_INPUT) if name == 'manifest.json' else (BAD_INPUT,))
        (step / name).unlink()
        yield _export(folder, step, f'without {name}')
        yield _resume(folder, made, step, f'without {name}, resumed')
        (step / name).mkdir()
        yield _export(folder, step, f'{name} a folder')
        (step / name).rmdir()
        os.mkfifo(step / name)
        yield _export(folder, step, f'{name} a named pipe')
        (step / name).unlink()
        (step / name).symlink_to('/dev/zero')
        yield _export(folder, step, f'{name} a device')
        shutil.rmtree(step)


def manifests(folder, made):
    step = folder / 'step-000002'
    shutil.copytree(_newest(made), step)
    good = json.loads((step / 'manifest.json').read_text())
    for label, broken in broken_texts():
        write(step / 'manifest.json', broken)
        yield _export(folder, step, label, says=('manifest.json',))
    for label, changed in json_damage(good, json.dumps):
        write(step / 'manifest.json', changed)
        yield _export(folder, step, label, (0, BAD_INPUT))
        yield _resume(folder, made, step, f'{label}, resumed', (0, BAD_INPUT))
        shutil.rmtree(folder / 'run', ignore_errors=True)
    write(folder / 'outside.safetensors', (step / 'parameters-00000.safetensors').read_bytes())
    text = json.dumps(good)
    for label, name in (('above', '../outside.safetensors'), ('absolute', str(folder / 'outside.safetensors')), ('device', '/dev/zero'), ('empty', ''), ('itself', '.'),
                        ('newline', 'a\nb')):
        write(step / 'manifest.json', text.replace('parameters-00000.safetensors', json.dumps(name)[1:-1]))
        yield _export(folder, step, f'file {label}')


def others(folder, made):
    yield _export(folder, folder / 'none', 'missing')
    yield _export(folder, folder, 'empty folder')
    yield _export(folder, made / 'classifier.onnx', 'file')
    yield _export(folder, '/dev/zero', 'device')
    yield _resume(folder, made, made / 'gpt-run' / 'checkpoints' / 'step-000002', 'of another model', says=('model',))
    yield _resume(folder, made, folder / 'none', 'resume from nothing')
    yield _resume(folder, made, folder, 'resume from an empty folder')
    yield Case('resume without a run', ['--data', made / 'classifier.safetensors', '--steps', 3, '-o', folder / 'run', '--resume'], (BAD_INPUT,), ('checkpoint',), 'classifier', 'run')
    yield Case('resume past the last step', ['--data', made / 'classifier.safetensors', '--steps', 1, '-o', folder / 'run', '--resume', _newest(made)], (BAD_INPUT,), ('--steps',),
               'classifier', 'run')
    yield Case('another seed', ['--data', made / 'classifier.safetensors', '--steps', 3, '--seed', 9, '-o', folder / 'run', '--resume', _newest(made)], (BAD_INPUT,), ('--seed',),
               'classifier', 'run')
