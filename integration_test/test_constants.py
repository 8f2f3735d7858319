"""What `check` accepts, `train` builds: constants whose elements differ, as many as a shifted window's mask has, or the distances of many tokens."""

import json
import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import common
import equivalence
from windlass_models import files, safetensors_file

BUILD = os.environ.get('WINDLASS_BUILD', common.ROOT / 'build')
BATCH, WIDTH, CLASSES, WINDOW, SIDE, SHIFT = 2, 8, 5, 7, 14, 3


def shifted_window_mask():
    """0 where two tokens of a shifted window were neighbours before the shift, -100 elsewhere (Swin Transformer, section 3.2)."""
    regions = numpy.zeros((SIDE, SIDE), int)
    bands = slice(0, -WINDOW), slice(-WINDOW, -SHIFT), slice(-SHIFT, None)
    for number, (rows, columns) in enumerate((r, c) for r in bands for c in bands):
        regions[rows, columns] = number
    per_side = SIDE // WINDOW
    windows = regions.reshape(per_side, WINDOW, per_side, WINDOW).transpose(0, 2, 1, 3).reshape(-1, WINDOW * WINDOW)
    return numpy.where(windows[:, :, None] == windows[:, None, :], 0, -100).astype(numpy.float32)


class WindowTest(common.Case):
    """Attention inside of windows with a mask of two values and a bias that is another number in each place, neither of which trains."""

    def model(self):
        random = numpy.random.RandomState(0)
        mask, bias = shifted_window_mask(), random.standard_normal((49, 49)).astype(numpy.float32)
        for constant in (mask, bias):
            self.assertGreater(1 + numpy.count_nonzero(numpy.diff(constant.ravel())), 1024, 'runs of equal elements')
        weights = {name: (random.standard_normal(shape) / 3).astype(numpy.float32)
                   for name, shape in (('query', (WIDTH, WIDTH)), ('key', (WIDTH, WIDTH)), ('value', (WIDTH, WIDTH)), ('head', (WIDTH, CLASSES)))}
        node = helper.make_node
        # As attributes, which windlass-opt has without the file.
        nodes = [*(part for name, array in (('mask', mask), ('bias', bias))
                   for part in (node('Constant', [], [f'{name}_values'], value_floats=array.ravel().tolist()), node('Constant', [], [f'{name}_shape'], value_ints=array.shape),
                                node('Reshape', [f'{name}_values', f'{name}_shape'], [name]))),
                 *(node('MatMul', ['x', name], [f'{name}s']) for name in ('query', 'key', 'value')),
                 node('Transpose', ['keys'], ['turned'], perm=[0, 1, 3, 2]), node('MatMul', ['querys', 'turned'], ['products']),
                 node('Add', ['products', 'bias'], ['biased']), node('Add', ['biased', 'mask'], ['scores']), node('Softmax', ['scores'], ['shares'], axis=-1),
                 node('MatMul', ['shares', 'values'], ['mixed']), node('Constant', [], ['tokens'], value_ints=[1, 2]),
                 node('ReduceMean', ['mixed', 'tokens'], ['pooled'], keepdims=0), node('MatMul', ['pooled', 'head'], ['logits']),
                 node('SoftmaxCrossEntropyLoss', ['logits', 'labels'], ['loss'], reduction='mean')]
        inputs = [helper.make_tensor_value_info('x', TensorProto.FLOAT, [BATCH, len(mask), 49, WIDTH]), helper.make_tensor_value_info('labels', TensorProto.INT64, [BATCH])]
        graph = helper.make_graph(nodes, 'main_graph', inputs, [helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])],
                                  [numpy_helper.from_array(array, name) for name, array in weights.items()])
        path = self.folder / 'windows.onnx'
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=9), path)
        batches = {}
        for k in range(4):
            batches[f'x.{k}'] = random.standard_normal((BATCH, len(mask), 49, WIDTH)).astype(numpy.float32)
            batches[f'labels.{k}'] = random.randint(0, CLASSES, BATCH)
        safetensors_file.write(batches, self.folder / 'batches.safetensors')
        safetensors_file.write(weights, self.folder / 'initial.safetensors')
        return path, batches

    def test_levels(self):
        path, _ = self.model()
        setup = equivalence.Setup(build=BUILD, input=path, work=self.folder / 'levels', initial=self.folder / 'initial.safetensors',
                                  batches=self.folder / 'batches.safetensors', micro_batches=2, ranks=(1, 2, 4))
        print(equivalence.Equivalence(setup).check())

    def test_training(self):
        path, batches = self.model()
        trained = {row['name'] for row in json.loads(self.succeed('check', path, '--json').out)['parameters'] if row['trains']}
        self.assertEqual(trained, {'query', 'key', 'value', 'head'})
        [want] = ReferenceEvaluator(onnx.load(path)).run(None, {name: batches[f'{name}.0'] for name in ('x', 'labels')})
        losses = []
        for ranks in (1, 2):
            run = self.folder / f'run-{ranks}'
            outcome = self.succeed('train', path, '-n', ranks, '--strategy', 'ddp', '--data', self.folder / 'batches.safetensors', '--steps', 2, '-o', run)
            self.assertIn("'windows.onnx'", outcome.out)
            rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
            losses.append([row['loss'] for row in rows])
            self.assertAlmostEqual(losses[-1][0], float(want), delta=1e-5)
        self.assertAlmostEqual(losses[0][1], losses[1][1], delta=1e-5)
        # The run bears the name of its file, not that of the graph.
        self.assertEqual(json.loads((run / 'run.json').read_text())['model'], 'windows.onnx')
        self.succeed('report', run, '-o', self.folder / 'report.html')
        self.assertNotIn('main_graph', (self.folder / 'report.html').read_text())
        self.assertNotIn('main_graph', self.succeed('checkpoint', 'inspect', run).out)


class CausalMaskTest(common.Case):
    """Attention is known to be causal however large its mask is, over a batch and over tokens."""

    def test_flops(self):
        width = 8
        for mask in ('range', 'trilu'):
            for batch, tokens in ((2, 32768), (4096, 512)):
                with self.subTest(mask=mask, batch=batch, tokens=tokens):
                    path = self.folder / f'{mask}-{tokens}.onnx'
                    onnx.save(common.one_layer('gpt', width=width, heads=1, vocabulary=4, batch=batch, tokens=tokens, mask=mask), path)
                    commands = json.loads(self.succeed('simulate', path, '--cluster', 'h200:1', '--precision', 'bf16', '--json', '-q').out)['commands']
                    [attention] = [each for each in commands if each['family'].split('.')[0] == 'attention']
                    # Two products of tokens, tokens and width, of which a causal mask leaves one half.
                    self.assertEqual(attention['flops'], 2 * batch * tokens * tokens * width)


class BandsTest(common.Case):
    """Matrices whose elements depend on their column minus their row: one band, what is outside of it, two bands, and more values than two."""

    def test_training(self):
        size = 100
        random = numpy.random.default_rng(3)
        nodes = [helper.make_node('Range', ['zero', 'size', 'one'], ['places']), helper.make_node('Unsqueeze', ['places', 'last'], ['rows']),
                 helper.make_node('LessOrEqual', ['places', 'rows'], ['causal']), helper.make_node('Sub', ['rows', 'eight'], ['before']),
                 helper.make_node('Greater', ['places', 'before'], ['near']), helper.make_node('And', ['causal', 'near'], ['window']),
                 helper.make_node('Not', ['window'], ['outside']), helper.make_node('Where', ['window', 'half', 'tenth'], ['weak']),
                 helper.make_node('Where', ['near', 'weak', 'fifth'], ['three']), helper.make_node('Where', ['outside', 'weight', 'three'], ['chosen']),
                 helper.make_node('Sub', ['rows', 'fifty'], ['distant']), helper.make_node('LessOrEqual', ['places', 'distant'], ['far']),
                 helper.make_node('Or', ['window', 'far'], ['bands']), helper.make_node('Where', ['bands', 'weight', 'tenth'], ['other']), helper.make_node('Mul', ['chosen', 'other'], ['matrix']),
                 helper.make_node('MatMul', ['x', 'matrix'], ['y']), helper.make_node('Mul', ['y', 'y'], ['squares']),
                 helper.make_node('ReduceMean', ['squares'], ['loss'], keepdims=0)]
        integers = {'zero': 0, 'size': size, 'one': 1, 'eight': 8, 'fifty': 50}
        values = {name: numpy.array(value, numpy.int64) for name, value in integers.items()} | {'last': numpy.array([1], numpy.int64)}
        values |= {name: numpy.array(value, numpy.float32) for name, value in (('half', 0.5), ('tenth', 0.1), ('fifth', 0.2))}
        values['weight'] = random.standard_normal((size, size)).astype(numpy.float32)
        graph = helper.make_graph(nodes, 'bands', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, size])],
                                  [helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])],
                                  [numpy_helper.from_array(value, name) for name, value in values.items()])
        path, data = self.folder / 'bands.onnx', self.folder / 'batches.safetensors'
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)]), path)
        x = random.standard_normal((4, size)).astype(numpy.float32)
        safetensors_file.write({'x.0': x}, data)
        [want] = ReferenceEvaluator(onnx.load(path)).run(None, {'x': x})
        self.succeed('train', path, '--train', 'weight', '--data', data, '--steps', 1, '-o', self.folder / 'run')
        row = json.loads((self.folder / 'run' / 'metrics.jsonl').read_text().splitlines()[0])
        self.assertAlmostEqual(row['loss'] / float(want), 1, delta=1e-5)


class RelativePositionsTest(common.Case):
    """The buckets of an encoder-decoder's relative positions, more of them than a constant may have elements."""

    def test_training(self):
        graph = common.one_layer('t5', width=8, source=300, tokens=270, vocabulary=16, batch=1)
        path, data = self.folder / 't5.onnx', self.folder / 'batches.safetensors'
        onnx.save(graph, path)
        batches = files.random_batches(graph, 2, 0)
        safetensors_file.write(batches, data)
        evaluator = ReferenceEvaluator(graph)
        want = [float(evaluator.run(None, {each.name: batches[f'{each.name}.{k}'] for each in graph.graph.input})[0]) for k in range(2)]
        for ranks in (1, 2):
            run = self.folder / f'run-{ranks}'
            self.succeed('train', path, '-n', ranks, '--strategy', 'ddp', '--micro-batches', 2, '--data', data, '--steps', 1, '-o', run)
            self.assertAlmostEqual(json.loads((run / 'metrics.jsonl').read_text().splitlines()[0])['loss'], sum(want) / 2, delta=1e-5)


common.main()
