"""Copies reference models into the tree: whole ones for training tests, graphs without their values for import tests.

    import_fixtures.py FROM TO

A whole model is model.onnx, its micro-batches, PyTorch's losses, gradients and final parameters. `initial.safetensors` holds what
model.onnx holds and is not copied (`common.prepared` writes it again); the keys of reference.json that no test reads are dropped.
A graph is gzipped, with the values of large parameters turned into references to a file that does not exist. Of the trained ones the
values are in values.safetensors, or, where they are those of a whole model, values.json says under which names; micro-batches and
PyTorch's losses and norms come with them (`common.completed` puts such a model together).
"""

import gzip
import json
import pathlib
import shutil
import sys

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'python'))
from windlass_models import safetensors_file  # noqa: E402

WHOLE = {
    'mlp': ('grads', 'final'),
    'gpt2-tiny': ('grads', 'final', 'final_accum'),
    'resnet-tiny': ('grads', 'final', 'buffers'),
}
# Graphs with values, micro-batches, and PyTorch's losses and norms.
TRAINED = ('opt-tiny', 'bert-tiny', 'llama-tiny', 'moe-tiny', 'mixtral-tiny')
# Graphs with the values of another model: folder, file and target.
SHARED = (('gpt2-tiny-default', 'model.onnx', 'gpt2-tiny-default'), ('gpt2-tiny', 'dynamic.onnx', 'gpt2-tiny-dynamic'))
VALUES_OF = 'gpt2-tiny'
UNUSED_KEYS = ('losses_fp64', 'grad_norms_fp64', 'onnx_check', 'missing')
KEPT_BYTES = 256
# From the folder `graphs` beside FROM: a model of real size as it is exported, without values.
GRAPHS = ('gpt2-124m-256',)


def copy_whole(source, target, parts):
    target.mkdir(parents=True, exist_ok=True)
    check_initial(source)
    shutil.copyfile(source / 'model.onnx', target / 'model.onnx')
    for part in ('batches', *parts):
        shutil.copyfile(source / f'{part}.safetensors', target / f'{part}.safetensors')
    for name in ('reference.json', 'reference_accum.json'):
        copy_reference(source / name, target / name)


def copy_reference(source, target):
    if source.exists():
        kept = {key: value for key, value in json.loads(source.read_text()).items() if key not in UNUSED_KEYS}
        target.write_text(json.dumps(kept, indent=1) + '\n')


def check_initial(source):
    """Refuses a model whose initial.safetensors differs from the values of its graph."""
    initial = safetensors_file.read(source / 'initial.safetensors')
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(source / 'model.onnx').graph.initializer}
    for name, array in initial.items():
        if name not in held or held[name].tobytes() != array.tobytes():
            raise ValueError(f'{source}: {name} of initial.safetensors is not what model.onnx holds')


def copy_graph(source, target):
    """Copies a graph without its large values and returns these."""
    values = {}
    model = onnx.load(source, load_external_data=False)
    offset = 0
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        if size > KEPT_BYTES and tensor.data_type == onnx.TensorProto.FLOAT:
            values[tensor.name] = onnx.numpy_helper.to_array(tensor)
            tensor.ClearField('raw_data')
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (('location', f'{target.parent.name}.weights'), ('offset', offset), ('length', size)):
                tensor.external_data.add(key=key, value=str(value))
            offset += size
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), 9, mtime=0))
    return values


def copy_shared(source, name, target):
    """A graph whose values are, perhaps under other names and shapes, those of the whole model."""
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(source / VALUES_OF / 'model.onnx').graph.initializer}
    names = {}
    for key, array in copy_graph(source / name, target / 'graph.onnx.gz').items():
        same = [other for other in (key, *held) if other in held and held[other].tobytes() == array.tobytes()]
        if not same:
            raise ValueError(f'{source / name}: the values of {key} are none of {VALUES_OF}')
        names[key] = same[0]
    (target / 'values.json').write_text(json.dumps({'model': VALUES_OF, 'names': names}, indent=1) + '\n')
    copy_reference(source / pathlib.Path(name).parent / 'reference.json', target / 'reference.json')


def main(source, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    for folder in sorted(each.parent for each in source.glob('*/model.onnx')):
        if folder.name in WHOLE:
            copy_whole(folder, target / folder.name, WHOLE[folder.name])
            continue
        values = copy_graph(folder / 'model.onnx', target / folder.name / 'graph.onnx.gz')
        if folder.name in TRAINED:
            safetensors_file.write(values, target / folder.name / 'values.safetensors')
            shutil.copyfile(folder / 'batches.safetensors', target / folder.name / 'batches.safetensors')
            copy_reference(folder / 'reference.json', target / folder.name / 'reference.json')
    for folder, file, name in SHARED:
        if (source / folder / file).exists():
            (target / name).mkdir(exist_ok=True)
            copy_shared(source, f'{folder}/{file}', target / name)
    for name in GRAPHS:
        graph = source.parent / 'graphs' / f'{name}.onnx.gz'
        if graph.exists():
            (target / name).mkdir(exist_ok=True)
            shutil.copyfile(graph, target / name / 'graph.onnx.gz')
    absent = [name for name in WHOLE if not (target / name / 'model.onnx').exists()]
    if absent:
        raise ValueError(f'{source} has no {" and no ".join(absent)}')
    for folder in sorted(target.iterdir()):
        print(f'{folder.name}: {sum(each.stat().st_size for each in folder.iterdir()):,} bytes')
    print(f'together: {sum(each.stat().st_size for each in target.rglob("*") if each.is_file()):,} bytes')


if __name__ == '__main__':
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError) as error:
        sys.exit(f'import_fixtures: {error}')
