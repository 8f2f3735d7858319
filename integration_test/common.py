"""Shared helpers of the whole-program tests: running the program, models to run it on, and the closing line."""

import dataclasses
import functools
import gzip
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ROOT / 'integration_test' / 'models'
sys.path.insert(0, str(ROOT / 'python'))
from windlass_models import bert, convnext, encoder_decoder, files, gpt, irregular, llama, moe, resnet, safetensors_file, unet, vit  # noqa: E402

# Small one-layer models: the function that builds one, and the configuration that can be changed.
FAMILIES = {
    'gpt': (gpt.build, gpt.GptConfig, dict()),
    'opt': (gpt.build, gpt.GptConfig, dict(activation='relu', linear='matmul')),
    'llama': (llama.build, llama.LlamaConfig, dict(heads=4, hidden=48)),
    'moe': (moe.build, moe.MoeConfig, dict(heads=4, hidden=24)),
    'mixtral': (moe.build, moe.MoeConfig, dict(heads=4, hidden=24, router='gather')),
    'bert': (bert.build, bert.BertConfig, dict()),
    'vit': (vit.build, vit.VitConfig, dict(side=12, patch=4)),
    'resnet': (resnet.build, resnet.ResnetConfig, dict(layers=2, width=4, classes=8, side=8)),
    'resnet-grouped': (resnet.build, resnet.ResnetConfig, dict(width=8, classes=8, side=8, groups=4)),
    't5': (encoder_decoder.build, encoder_decoder.EncoderDecoderConfig, dict(kind='t5', heads=2, head_width=8, hidden=48, source=8, tokens=16)),
    'whisper': (encoder_decoder.build, encoder_decoder.EncoderDecoderConfig, dict(kind='whisper', heads=2, head_width=8, hidden=48, source=8, channels=4)),
    'convnext': (convnext.build, convnext.ConvnextConfig, dict(width=4, classes=8, side=16)),
    'unet': (unet.build, unet.UnetConfig, dict(width=2, classes=3, side=16, dims=2, batch=2)),
    'irregular': (irregular.build, irregular.IrregularConfig, dict(layers=3)),
}
# The families whose layers are alike, each with an attention, norms and an activation.
TRANSFORMERS = ('gpt', 'opt', 'llama', 'moe', 'mixtral', 'bert', 'vit')

WINDLASS = pathlib.Path(os.environ.get('WINDLASS', ROOT / 'build' / 'bin' / 'windlass')).resolve()


@dataclasses.dataclass
class Outcome:
    code: int
    out: str
    err: str
    seconds: float
    # The processor time in seconds, which other work on the machine does not change.
    processor_seconds: float
    peak_bytes: int


def run(command, env=None, cwd=None, timeout=600, limit=None):
    """Runs `command`; `env` is added to the environment, `limit` is called in the process before it. Peak memory is that of the
    largest process."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=dict(os.environ, **(env or {})), cwd=cwd, preexec_fn=limit)
        deadline = begin + timeout
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                raise TimeoutError(f'still running after {timeout} s: {" ".join(map(str, command))}')
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Outcome(process.returncode, out.read().decode(errors='replace'), err.read().decode(errors='replace'),
                       time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def windlass(*arguments, **options):
    """Runs windlass. Checks that every refusal has a code that `windlass explain` knows."""
    outcome = run([WINDLASS, *arguments], **options)
    if outcome.code != 0 and not re.search(r' \[WL\d{4}\]$', outcome.err, re.M):
        raise AssertionError(f'exit code {outcome.code} without a code in the message: {outcome.err[-2000:]}')
    return outcome


@functools.cache
def named_strategies():
    """Returns the rows of the registry of named strategies that any model suits, without those that decide what the host holds."""
    return [row for row in json.loads(windlass('explain', '--strategies', '--json').out) if row['suits_all_models'] and not row['decides_memory']]


def conforms(value, schema, root=None):
    """Whether a value conforms to a schema; knows the words that our schemas use. `root` is the schema that this one is a part of."""
    root = root or schema
    known = {'$schema', 'title', 'description', '$defs', 'type', 'properties', 'additionalProperties', 'required', 'propertyNames', 'minProperties',
             'items', 'minItems', 'minimum', 'exclusiveMinimum', 'maximum', 'const', 'oneOf', 'pattern', '$ref'}
    assert set(schema) <= known, set(schema) - known
    kinds = {'object': dict, 'array': list, 'boolean': bool, 'string': str, 'null': type(None)}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)

    def is_kind(kind):
        if kind in kinds:
            return isinstance(value, kinds[kind])
        return is_number and (kind == 'number' or value == int(value))

    if '$ref' in schema and not conforms(value, root['$defs'][schema['$ref'].rsplit('/', 1)[1]], root):
        return False
    types = schema.get('type', [])
    if types and not any(is_kind(kind) for kind in ([types] if isinstance(types, str) else types)):
        return False
    if 'const' in schema and (value != schema['const'] or isinstance(value, bool)):
        return False
    if 'oneOf' in schema and sum(conforms(value, each, root) for each in schema['oneOf']) != 1:
        return False
    if isinstance(value, dict):
        rest = schema.get('additionalProperties', True)
        for key, member in value.items():
            own = schema.get('properties', {}).get(key, rest)
            if own is False or isinstance(own, dict) and not conforms(member, own, root):
                return False
        return (set(schema.get('required', [])) <= set(value) and len(value) >= schema.get('minProperties', 0)
                and all(conforms(key, schema.get('propertyNames', {}), root) for key in value))
    if isinstance(value, list):
        return len(value) >= schema.get('minItems', 0) and all(conforms(each, schema.get('items', {}), root) for each in value)
    if isinstance(value, str):
        return re.search(schema.get('pattern', ''), value) is not None
    if is_number:
        return schema.get('minimum', value) <= value <= schema.get('maximum', value) and value > schema.get('exclusiveMinimum', value - 1)
    return True


def built_folder(outcome):
    """Returns the folder of the program that a `train -v` has built, with `run.sh` and `build/train`."""
    return pathlib.Path(re.findall(r"(?:building|built before) in '(.*)'", outcome.err)[-1])


def preloaded(name, folder):
    """Builds the C source of that name beside this file into a library of `folder` that programs can preload; returns its path."""
    library = pathlib.Path(folder) / f'{name}.so'
    source = ROOT / 'integration_test' / f'{name}.c'
    subprocess.run(['cc', '-O1', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', library, source, '-ldl'], check=True)
    return library


def long_run(folder):
    """Writes the metrics of a run of 100,000 steps; returns the run's folder."""
    run = pathlib.Path(folder) / 'long'
    run.mkdir()
    with (run / 'metrics.jsonl').open('w') as file:
        for step in range(1, 100001):
            file.write(json.dumps(dict(step=step, loss=10 / step, grad_norm=1.5, lr=1e-3, seconds=0.25, tokens_per_s=4096 + step % 7)) + '\n')
    return run


def without_comments(source):
    """Returns the text of an emitted C++ source without comments behind `//`."""
    return re.sub(r'//[^\n]*', '', source)


class Case(unittest.TestCase):
    """A test with a scratch folder of its own, outside the repository."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='windlass-test-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def succeed(self, *arguments, **options):
        """Runs windlass and returns its outcome; any exit code but 0 fails the test with what the program said."""
        outcome = windlass(*arguments, **options)
        if outcome.code != 0:
            self.fail(f'exit code {outcome.code} of windlass {" ".join(map(str, arguments))}\n{outcome.out[-2000:]}\n{outcome.err[-4000:]}')
        return outcome

    def small_gpt(self, name='small.onnx', external=False, **change):
        """Returns the path of a generated one-layer GPT in the scratch folder."""
        return self.small('gpt', name, external, **change)

    def small(self, family, name='small.onnx', external=False, **change):
        """A generated one-layer model of the family."""
        path = self.folder / name
        files.save(one_layer(family, **change), path, external)
        return path

    def batches(self, model, count):
        """Random micro-batches for a generated model."""
        path = self.folder / 'batches.safetensors'
        safetensors_file.write(files.random_batches(onnx.load(str(model), load_external_data=False), count, 0), path)
        return path


def one_layer(family, **change):
    """Returns the graph of the family's one-layer model. Sizes that its configuration does not have change nothing."""
    build, kind, own = FAMILIES[family]
    size = dict(layers=1, width=32, vocabulary=256, tokens=16, batch=4)
    if family in TRANSFORMERS:
        size['heads'] = 2
    size.update(own, **change)
    return build(kind(**{field.name: size[field.name] for field in dataclasses.fields(kind) if field.name in size}), jitter=0.05)


def prepared(name, folder):
    """A reference model with `initial.safetensors`, which the tree leaves out because model.onnx holds the same values."""
    target = pathlib.Path(folder) / name
    target.mkdir()
    for each in (MODELS / name).iterdir():
        (target / each.name).symlink_to(each)
    reference = safetensors_file.read(target / 'grads.safetensors')
    held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(target / 'model.onnx').graph.initializer}
    names = [*reference]
    if (target / 'buffers.safetensors').exists():
        # PyTorch also counts batches, which no graph reads.
        buffers = {name.removesuffix('.0') for name in safetensors_file.read(target / 'buffers.safetensors') if name.endswith('.0')}
        names += sorted(buffers & set(held))
    safetensors_file.write({each: held[each] for each in names}, target / 'initial.safetensors')
    return target


def few_labels(model, target):
    """Returns the micro-batches of gpt2-tiny's folder with only the labels that reference_tokens.json counts, and that reference."""
    stored = json.loads((model / 'reference_tokens.json').read_text())
    batches = safetensors_file.read(model / 'batches.safetensors')
    for name, values in batches.items():
        if name.startswith('labels.'):
            labels = values.copy()
            labels[:, stored['kept'][int(name.rpartition('.')[2]) % len(stored['kept'])]:] = stored['ignored']
            batches[name] = labels
    safetensors_file.write(batches, target)
    return stored


def folded(path):
    """Returns the model with values that depend on neither an input nor a parameter computed, as the exporter's optimisation does."""
    model = onnx.load(str(path))
    key = 'pkg.torch.export.graph_signature.InputSpec.kind'
    trained = {info.name for info in model.graph.value_info for mark in info.metadata_props if (mark.key, mark.value) == (key, 'PARAMETER')}
    known = {tensor.name for tensor in model.graph.initializer} - trained
    constant = []
    for node in model.graph.node:
        if known.issuperset(node.input):
            constant.append(node)
            known.update(node.output)
    names = [name for node in constant for name in node.output]
    graph = onnx.helper.make_graph(constant, 'constants', [], [onnx.helper.make_empty_tensor_value_info(name) for name in names], model.graph.initializer)
    values = dict(zip(names, ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=model.opset_import)).run(None, {})))
    rest = [node for node in model.graph.node if node not in constant]
    used = {name for node in rest for name in node.input}
    held = [tensor for tensor in model.graph.initializer if tensor.name in used]
    held += [onnx.numpy_helper.from_array(numpy.asarray(values[name]), name) for name in names if name in used]
    for field, items in ((model.graph.node, rest), (model.graph.initializer, held)):
        del field[:]
        field.extend(items)
    path = path.with_name('folded.onnx')
    onnx.save(model, path)
    return path


def completed(name, folder):
    """A reference model of which the tree holds the graph and its values apart: `model.onnx` in `folder`."""
    source = MODELS / name
    if (source / 'values.json').exists():
        shared = json.loads((source / 'values.json').read_text())
        held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(MODELS / shared['model'] / 'model.onnx').graph.initializer}
        values = {key: held[other] for key, other in shared['names'].items()}
    else:
        values = safetensors_file.read(source / 'values.safetensors')
    model = onnx.load_model_from_string(gzip.decompress((source / 'graph.onnx.gz').read_bytes()))
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.ClearField('external_data')
            tensor.ClearField('data_location')
            tensor.raw_data = values[tensor.name].tobytes()
    path = pathlib.Path(folder) / 'model.onnx'
    onnx.save(model, path)
    return path


def main():
    """Runs the tests of the calling module; the last line counts them."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result = unittest.main(module='__main__', exit=False, verbosity=2).result
    bad = [test for test, _ in result.failures + result.errors] + result.unexpectedSuccesses
    # Sub-tests and class set-ups count as the test that they belong to.
    failed = len({getattr(test, 'test_case', test).id() for test in bad})
    print(f'{max(0, result.testsRun - failed - len(result.skipped))} passed, {failed} failed', flush=True)
    sys.exit(1 if failed or not result.testsRun else 0)
