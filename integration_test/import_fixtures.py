"""Copies reference models into the tree: whole ones for training tests, graphs without their values for import tests.

    import_fixtures.py FROM TO

A whole model is model.onnx, its micro-batches, PyTorch's losses, gradients and final parameters. `initial.safetensors` holds what
model.onnx holds and is not copied (`common.prepared` writes it again); the keys of reference.json that no test reads are dropped.
A graph is gzipped, with the values of large parameters turned into references to a file that does not exist.
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
}
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
        if (source / name).exists():
            reference = json.loads((source / name).read_text())
            kept = {key: value for key, value in reference.items() if key not in UNUSED_KEYS}
            (target / name).write_text(json.dumps(kept, indent=1) + '\n')


def check_initial(source):
    """Refuses a model whose initial.safetensors is not what its graph holds."""
    initial = safetensors_file.read(source / 'initial.safetensors')
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(source / 'model.onnx').graph.initializer}
    for name, array in initial.items():
        if name not in held or held[name].tobytes() != array.tobytes():
            raise ValueError(f'{source}: {name} of initial.safetensors is not what model.onnx holds')


def copy_graph(source, target):
    model = onnx.load(source, load_external_data=False)
    offset = 0
    for tensor in model.graph.initializer:
        size = len(tensor.raw_data)
        if size > KEPT_BYTES:
            tensor.ClearField('raw_data')
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (('location', f'{target.parent.name}.weights'), ('offset', offset), ('length', size)):
                tensor.external_data.add(key=key, value=str(value))
            offset += size
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), 9, mtime=0))


def main(source, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    for folder in sorted(each.parent for each in source.glob('*/model.onnx')):
        if folder.name in WHOLE:
            copy_whole(folder, target / folder.name, WHOLE[folder.name])
        else:
            copy_graph(folder / 'model.onnx', target / folder.name / 'graph.onnx.gz')
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
