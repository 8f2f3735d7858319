"""The node cases of the onnx wheel: each is parsed or refused cleanly, and each that is supported gives the stored outputs.

    test_onnx_nodes.py [REGEX]    only the cases with an operator that matches as a whole
    test_onnx_nodes.py --write    all cases; writes docs/operators.md

A case runs as a training graph. Its float inputs are parameters, its other inputs constants. Its loss is the sum of products of its outputs with
random weights, which are parameters too: their gradients are the outputs. The interpreter runs such graphs in f64, several as one. Where the
outputs are right, the gradients are compared with central differences of the loss.
"""

import collections
import dataclasses
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy
import onnx
from onnx import TensorProto, compose, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import common
from windlass_models import safetensors_file

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))
PAGE = common.ROOT / 'docs' / 'operators.md'
WORKERS = 2
# The opsets that the importer knows.
OPSETS = range(17, 28)
# What `windlass check` may end with: the model is fine, is wrong or has no loss, or uses what is not supported.
CODES = (0, 1, 4)
# The cases that run as one graph.
BATCH = 12
# The stored outputs of 16 bits are rounded.
ROUNDING = {numpy.dtype(numpy.float16): 2e-3}
# Gradients are taken beside the stored inputs, because functions have their kinks at round numbers: between SHIFT and 2 * SHIFT above them, at
# another distance for each element, since equal ones make kinks too. They are compared with differences over 2 * STEP in random directions,
# relative to the sum of the terms' magnitudes. Inputs of functions that end at 1 are moved down instead.
END_AT_ONE = {'Acos', 'Asin', 'Atanh'}
SHIFT, STEP, DIRECTIONS, BOUND = 2.0 ** -7, 2.0 ** -24, 2, 1e-5
# Attention in primitives, of which a softmax has rows of -inf. The case replaces the NaN that these give; the gradient keeps it, as in PyTorch.
NAN_GRADIENTS = re.compile('test_attention_.*(fullymasked|nan_robustness|structural_empty|softmax_precision|local_window).*_expanded')
# Cases of which the stored outputs come from random numbers.
RANDOM = re.compile('test_training_dropout(_default)?(_mask)?')

# Why a case is no training graph.
NO_OPSET, NO_NUMBERS, NO_RANDOM = 'is of another opset', 'is not about tensors of numbers with elements', 'draws random numbers'


@dataclasses.dataclass
class Report:
    """What became of a case."""
    name: str
    operators: tuple
    # Why it is no training graph, or why `windlass check` refuses that; empty where it does not.
    refusal: str = ''
    executed: bool = False
    differentiated: bool = False
    # What is wrong with refusals, outputs and gradients.
    crashes: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)
    wrong_gradients: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Graph:
    """A case as a part of a training graph; all names begin with its `prefix`."""
    prefix: str
    nodes: list
    initializers: list
    # The values of the float inputs, of the integers, which may be buffers, and of the weights, by name.
    inputs: dict
    integers: dict
    weights: dict
    # The outputs by the name of their weights, and how far an element may be from them, relative and absolute.
    wanted: dict
    tolerance: tuple


class Crash(Exception):
    """A tool ended as it never may."""


def execute(*command):
    """Returns what a tool prints, which must succeed."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if result.returncode != 0:
        raise Crash(f'{pathlib.Path(command[0]).name} ends with {result.returncode}: {result.stderr[:600]}')
    return result.stdout


def check(model, folder):
    """Returns why `windlass check` refuses a model: a code, and what it is about. Raises Crash where it does not end as it should."""
    path = folder / 'check.onnx'
    path.write_bytes(model.SerializeToString())
    outcome = subprocess.run([common.WINDLASS, 'check', path, '--json'], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    try:
        found = json.loads(outcome.stdout)
        code = found['error']['code'] if outcome.returncode else ''
    except (ValueError, KeyError):
        code = 'no JSON'
    if outcome.returncode not in CODES or code == 'WL0999' or not re.fullmatch(r'|WL\d{4}', code):
        raise Crash(f'windlass check ends with {outcome.returncode} and {code}: {outcome.stderr[:600]}')
    if code == 'WL0107':
        return ', '.join(f"{each['operator']} {each['reason']}".strip() for each in found['unsupported'])
    return code and code + ' ' + re.sub(r'\bc[0-9]+_', '', found['error']['message'])


def find_opset(model):
    """Returns the newest opset of the importer in which each node is what it is in the model's; None where there is none."""
    versions = {each.domain: each.version for each in model.opset_import}
    if set(versions) != {''} or model.functions:
        return None

    def schema(node, version):
        try:
            return onnx.defs.get_schema(node.op_type, version)
        except onnx.defs.SchemaError:
            return None

    def is_alike(node, opset):
        own, other = schema(node, versions['']), schema(node, opset)
        if not own or not other or own.since_version == other.since_version:
            return own is not None and other is not None
        # What is newer than the importer differs in types only, if at all.
        return versions[''] > OPSETS[-1] and set(own.attributes) == set(other.attributes) and own.max_input == other.max_input
    for opset in reversed(OPSETS):
        if all(is_alike(node, opset) for node in model.graph.node):
            return opset
    return None


def to_array(value):
    """Returns a tensor of a case as an array; what is no tensor as it is."""
    if isinstance(value, numpy.generic):
        return numpy.asarray(value)
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


def make_graph(case, model, prefix):
    """Returns the case as a part of a training graph; None where an input or output is no tensor of numbers with elements."""
    names, outputs = ([each.name for each in part if each.name] for part in (model.graph.input, model.graph.output))
    arrays, results = ([to_array(each) for each in part] for part in case.data_sets[0])
    if not all(isinstance(each, numpy.ndarray) and each.dtype.kind in 'fiub' and each.size > 0 for each in (*arrays, *results)):
        return None
    random = numpy.random.default_rng(zlib.crc32(case.name.encode()))
    graph = Graph(prefix, list(model.graph.node), list(model.graph.initializer), {}, {}, {}, {}, (case.rtol, case.atol))

    def hold(name, array):
        graph.initializers.append(numpy_helper.from_array(numpy.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def add(operator, operands, name, **attributes):
        graph.nodes.append(helper.make_node(operator, operands, [name], **attributes))
        return name
    # Sizes that are floats: an initializer of floats would be a parameter.
    sizes = {name for node in model.graph.node if node.op_type == 'Resize' for name in node.input[1:] if name}
    for name, array in zip(names, arrays):
        if name in sizes:
            graph.nodes.insert(0, helper.make_node('Constant', [], [name], value=numpy_helper.from_array(array)))
            continue
        if array.dtype == numpy.float64:
            # All parameters have one type.
            array = array.astype(numpy.float32)
            graph.nodes.insert(0, helper.make_node('Cast', [name + '_narrow'], [name], to=TensorProto.DOUBLE))
            name += '_narrow'
        hold(name, array)
        if array.dtype.kind == 'f':
            graph.inputs[name] = array.astype(numpy.float64)
        elif array.dtype in (numpy.int64, numpy.int32):
            graph.integers[name] = array
    sums = []
    for value, array in zip(outputs, results):
        name = value + '_weights'
        if array.dtype != numpy.float32:
            value = add('Cast', [value], value + '_float', to=TensorProto.FLOAT)
        # A product with an infinity or NaN would say nothing.
        is_finite = numpy.isfinite(array)
        if not is_finite.all():
            value = add('Where', [hold(value + '_mask', is_finite), value, hold(value + '_zero', numpy.zeros((), numpy.float32))], value + '_finite')
        # Two weights for a scalar, because one number would be a constant.
        weights = random.integers(-1000, 1000, array.shape if array.size > 1 else (2, *array.shape)).astype(numpy.float32) / 512
        graph.weights[hold(name, weights)] = weights.astype(numpy.float64)
        graph.wanted[name] = numpy.where(is_finite, array, 0)
        sums.append(add('ReduceSum', [add('Mul', [value, name], value + '_weighed')], value + '_sum', keepdims=0))
    add('Sum', sums, prefix + 'sum_of_products')
    return graph


def join(graphs, opset):
    """Returns a training graph of which the loss is the sum of all losses. It has a batch of two, as every training graph has one."""
    nodes = [node for graph in graphs for node in graph.nodes]
    nodes.append(helper.make_node('Sum', [graph.prefix + 'sum_of_products' for graph in graphs], ['loss']))
    made = helper.make_graph(nodes, 'cases', [helper.make_tensor_value_info('batch', TensorProto.INT64, [2])],
                             [helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])],
                             [tensor for graph in graphs for tensor in graph.initializers])
    return helper.make_model(made, opset_imports=[helper.make_opsetid('', opset)], ir_version=10)


class Runs:
    """Runs of the interpreter on a training graph."""

    def __init__(self, model, folder):
        self.folder = folder
        (folder / 'model.onnx').write_bytes(model.SerializeToString())
        safetensors_file.write({'batch.0': numpy.zeros(2, numpy.int64)}, folder / 'batches.safetensors')
        tool = BUILD / 'bin' / 'windlass-opt'
        (folder / 'l0.mlir').write_text(execute(tool, '--import-onnx', folder / 'model.onnx'))
        execute(tool, '--mlir-print-op-on-diagnostic=false', '--onnx-to-train-pipeline', '--train-graph-pipeline',
                '--train-functions-pipeline=optimizer=sgd clip=false', folder / 'l0.mlir', '-o', folder / 'l2.mlir')

    def run(self, values):
        """Returns the gradients by name."""
        files = [self.folder / f'{name}.safetensors' for name in ('initial', 'batches', 'dump')]
        safetensors_file.write(values, files[0])
        execute(BUILD / 'bin' / 'windlass-run', self.folder / 'l2.mlir', '--level', 'L2', '--precision', 'f64',
                '--steps', '1', '--initial', files[0], '--batches', files[1], '-o', files[2])
        return {name.split('.', 2)[2]: array for name, array in safetensors_file.read(files[2]).items() if name.startswith('gradient.0.')}


def compare_outputs(graph, gradients, report):
    """Compares the outputs, and with them the loss, with the stored ones."""
    report.executed = True
    relative, absolute = graph.tolerance
    for name, wanted in graph.wanted.items():
        exact = wanted.astype(numpy.float64)
        allowed = absolute + max(relative, ROUNDING.get(wanted.dtype, 0)) * abs(exact)
        if not (abs(gradients[name] - exact) <= allowed).all():
            report.failures.append(f'{name}: {gradients[name].ravel()[:8]} is not {exact.ravel()[:8]}')


def compute_loss(graph, gradients):
    return sum(float((weights * gradients[name]).sum()) for name, weights in graph.weights.items())


def compare_slopes(graph, gradients, ends, direction, report):
    """Compares the gradients along `direction` with the difference of losses at both ends, whose gradients hold the outputs."""
    terms = [gradients[name] * each for name, each in direction.items() if name in graph.inputs]
    if not terms:
        return
    found, size = sum(float(term.sum()) for term in terms), sum(float(abs(term).sum()) for term in terms)
    losses = [compute_loss(graph, each) for each in ends]
    difference = (losses[0] - losses[1]) / (2 * STEP)
    if numpy.isnan(found) and NAN_GRADIENTS.fullmatch(report.name):
        return
    report.differentiated = True
    if not abs(found - difference) <= BOUND * max(1, size, *map(abs, losses)):
        report.wrong_gradients.append(f'the gradients give {found} along a direction in which the loss changes by {difference}')


def run_batch(graphs, reports, opset, folder):
    runs = Runs(join(graphs, opset), folder)
    inputs, integers, weights = ({name: array for graph in graphs for name, array in getattr(graph, part).items()}
                                 for part in ('inputs', 'integers', 'weights'))
    fixed = {**integers, **weights}
    gradients = runs.run({**inputs, **fixed})
    for graph, report in zip(graphs, reports):
        compare_outputs(graph, gradients, report)
    random = numpy.random.default_rng(0)
    ending = {name for graph, report in zip(graphs, reports) if END_AT_ONE.intersection(report.operators) for name in graph.inputs}
    near = {name: array + (-SHIFT if name in ending else SHIFT) * (1 + random.permutation(array.size).reshape(array.shape) / array.size)
            for name, array in inputs.items()}
    gradients = runs.run({**near, **fixed})
    for _ in range(DIRECTIONS):
        direction = {name: random.integers(-1, 2, array.shape) for name, array in near.items() if name in gradients}
        ends = [runs.run({**near, **fixed, **{name: near[name] + step * each for name, each in direction.items()}}) for step in (STEP, -STEP)]
        for graph, report in zip(graphs, reports):
            compare_slopes(graph, gradients, ends, direction, report)


def run_or_halve(graphs, reports, opset, folder):
    """Runs the cases as one graph, and where a tool fails on it as two, so that the case at fault is found."""
    try:
        run_batch(graphs, reports, opset, folder)
    except (Crash, subprocess.TimeoutExpired) as error:
        if len(graphs) == 1:
            reports[0].failures.append(str(error))
            return
        half = len(graphs) // 2
        for part in (slice(half), slice(half, None)):
            run_or_halve(graphs[part], reports[part], opset, folder)


def examine(indices):
    """Returns the reports of some cases, all of one opset of the importer or of none."""
    reports, graphs = [], []
    with tempfile.TemporaryDirectory(prefix='windlass-test-') as name:
        folder = pathlib.Path(name)
        for index in indices:
            case, opset = CASES[index]
            report = Report(case.name, tuple(sorted({node.op_type for node in case.model.graph.node})))
            reports.append(report)
            model = onnx.ModelProto.FromString(case.model.SerializeToString())
            if opset:
                del model.opset_import[:]
                model.opset_import.append(helper.make_opsetid('', opset))
            is_random = RANDOM.fullmatch(case.name)
            graph = opset and not is_random and make_graph(case, compose.add_prefix(model, f'c{index}_'), f'c{index}_')
            if not graph:
                report.refusal = NO_RANDOM if is_random else NO_NUMBERS if opset else NO_OPSET
            try:
                check(model, folder)
                if graph:
                    report.refusal = check(join([graph], opset), folder)
            except (Crash, subprocess.TimeoutExpired) as error:
                report.crashes.append(str(error))
            if not report.crashes and not report.refusal:
                graphs.append((graph, report))
        if graphs:
            run_or_halve(*map(list, zip(*graphs)), CASES[indices[0]][1], folder)
    return reports


def collect(pattern):
    """Returns the cases that have an operator that `pattern` matches, and their opsets of the importer."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        cases = collect_testcases(None)
    return [(case, find_opset(case.model)) for case in cases if any(re.fullmatch(pattern, node.op_type) for node in case.model.graph.node)]


def make_batches():
    """Returns the indices of cases in batches of one opset."""
    by_opset = collections.defaultdict(list)
    for index, (_, opset) in enumerate(CASES):
        by_opset[opset].append(index)
    return [part[at:at + BATCH] for part in by_opset.values() for at in range(0, len(part), BATCH)]


def summarize(reports):
    """Returns the counts of all cases as a line."""
    def name_kind(refusal):
        return refusal if refusal in (NO_OPSET, NO_NUMBERS, NO_RANDOM) else refusal[:6] if refusal.startswith('WL') else 'is not supported'
    kinds = collections.Counter(name_kind(report.refusal) for report in reports if report.refusal)
    counts = {'parsed or refused cleanly': lambda report: not report.crashes, 'executed': lambda report: report.executed,
              'with gradients': lambda report: report.differentiated, 'failed': lambda report: report.failures or report.wrong_gradients,
              'crashed': lambda report: report.crashes}
    parts = [f'{sum(bool(test(report)) for report in reports)} {name}' for name, test in counts.items()]
    parts.insert(1, f'{sum(kinds.values())} refused ({", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))})')
    return f'{len(reports)} cases: ' + ', '.join(parts)


def make_rows(reports):
    """Returns the rows of a table by operator, of the cases that have one operator only."""
    by_operator = collections.defaultdict(list)
    for report in reports:
        if len(report.operators) == 1:
            by_operator[report.operators[0]].append(report)
    rows = []
    for operator, cases in sorted(by_operator.items()):
        reasons = collections.Counter(re.sub(rf'^(WL[0-9]+ )?{operator} ', '', report.refusal) if report.refusal != operator else 'is not supported'
                                      for report in cases if report.refusal)
        why = '; '.join(f'{count} × {reason}' for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0])))
        executed, differentiated = (sum(getattr(report, kind) for report in cases) for kind in ('executed', 'differentiated'))
        rows.append(f'| `{operator}` | {len(cases)} | {executed} | {differentiated} | {why} |')
    return rows


def make_page(reports):
    return '\n'.join([
        '<!-- Made by scripts/make-operators; edit integration_test/test_onnx_nodes.py instead. -->', '', '# ONNX operators', '',
        f'The onnx wheel {onnx.__version__} has {len(reports)} cases of nodes with stored outputs, of which {sum(report.executed for report in reports)} run as '
        f'training graphs in the', 'interpreter, in f64. Their outputs are as stored. Where an input of floats is a parameter, its gradient is compared with differences. All',
        'other cases are refused cleanly. Below are the cases of one operator.', '',
        '| operator | cases | run | gradient compared | why the others do not run |', '|---|---|---|---|---|', *make_rows(reports), ''])


class NodeTest(common.Case):
    @classmethod
    def setUpClass(cls):
        with multiprocessing.get_context('fork').Pool(WORKERS) as pool:
            cls.reports = [report for part in pool.imap_unordered(examine, make_batches()) for report in part]
        print(summarize(cls.reports), file=sys.stderr)

    def expect_none(self, kind):
        wrong = [f'{report.name}: {text}' for report in self.reports for text in getattr(report, kind)]
        self.assertFalse(wrong, f'{len(wrong)} lines\n' + '\n'.join(wrong[:100]))

    def test_refusals(self):
        self.expect_none('crashes')

    def test_outputs(self):
        self.expect_none('failures')
        self.assertTrue(any(report.executed for report in self.reports))

    def test_page(self):
        """docs/operators.md has the rows of these operators as they are."""
        if WRITES:
            PAGE.write_text(make_page(self.reports))
        lines = PAGE.read_text().splitlines()
        stale = [row for row in make_rows(self.reports) if row not in lines]
        self.assertFalse(stale, 'scripts/make-operators writes the page anew')

    def test_gradients(self):
        self.expect_none('wrong_gradients')
        self.assertTrue(any(report.differentiated for report in self.reports))


if __name__ == '__main__':
    WRITES = '--write' in sys.argv
    CASES = collect(sys.argv[1] if len(sys.argv) > 1 and not WRITES else '.*')
    del sys.argv[1:]
    common.main()
