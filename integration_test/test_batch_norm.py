"""Running statistics of batch norms: what steps of several micro-batches make of them, on any number of ranks, and that evaluation takes them. The judge
is the reference implementation of ONNX."""

import json

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

import common
from windlass_models import safetensors_file

STEPS, MICRO_BATCHES, MOMENTUM = 3, 2, 0.9


def norms_of(model):
    return [node for node in model.graph.node if node.op_type == 'BatchNormalization']


class BatchNormTest(common.Case):
    def setUp(self):
        super().setUp()
        self.path = self.small('resnet')
        self.model = onnx.load(self.path)
        self.data = safetensors_file.read(self.batches(self.path, STEPS * MICRO_BATCHES))

    def feeds(self, k):
        return {entry.name: self.data[f'{entry.name}.{k}'] for entry in self.model.graph.input}

    def train(self, name, *flags):
        """Returns the rows of a run and its parameters after the last step."""
        run, exported = self.folder / name, self.folder / f'{name}.safetensors'
        self.succeed('train', self.path, '--data', self.folder / 'batches.safetensors', '--steps', STEPS, '--micro-batches', MICRO_BATCHES, '-o', run, *flags)
        self.succeed('checkpoint', 'export', run, '-o', exported)
        return [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()], safetensors_file.read(exported)

    def statistics(self):
        """The mean and the unbiased variance that each norm finds in each micro-batch, with the values of the file."""
        model, norms = onnx.ModelProto(), norms_of(self.model)
        model.CopyFrom(self.model)
        del model.graph.output[:]
        model.graph.output.extend(onnx.helper.make_tensor_value_info(node.input[0], onnx.TensorProto.FLOAT, None) for node in norms)
        evaluator, found = ReferenceEvaluator(model), []
        for k in range(STEPS * MICRO_BATCHES):
            of_batch = {}
            for node, x in zip(norms, evaluator.run(None, self.feeds(k))):
                x = numpy.asarray(x, numpy.float64)
                axes = tuple(axis for axis in range(x.ndim) if axis != 1)
                of_batch[node.input[3]], of_batch[node.input[4]] = x.mean(axes), x.var(axes, ddof=1)
            found.append(of_batch)
        return found

    def test_averages(self):
        """Weights that stay as they are, so that each micro-batch's statistics are known: one rank, two replicas with sharded copies, one micro-batch over two ranks."""
        found = self.statistics()
        held = {tensor.name: onnx.numpy_helper.to_array(tensor).astype(numpy.float64) for tensor in self.model.graph.initializer}
        expected = {name: held[name] for name in found[0]}
        kept = MOMENTUM ** MICRO_BATCHES
        for step in range(STEPS):
            batches = found[step * MICRO_BATCHES:(step + 1) * MICRO_BATCHES]
            for name, before in expected.items():
                expected[name] = kept * before + (1 - kept) * numpy.mean([batch[name] for batch in batches], axis=0)
        for name, flags in (('one', ()), ('replicas', ('-n', 2, '--strategy', 'zero3')), ('split', ('-n', 4, '--strategy', 'ddp'))):
            _, values = self.train(name, '--lr', 0, '--weight-decay', 0, *flags)
            for each, wanted in expected.items():
                numpy.testing.assert_allclose(values[each], wanted, rtol=2e-6, atol=2e-6, err_msg=f'{each} of {name}')
                self.assertGreater(numpy.abs(wanted - held[each]).max(), 1e-3)

    def test_evaluation(self):
        """An evaluation gives what the model gives in inference form with the values of the checkpoint."""
        rows, values = self.train('run', '--lr', '1e-2', '--eval-data', self.folder / 'batches.safetensors', '--eval-batches', 2)
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        for node in norms_of(model):
            del node.output[1:]
            for attribute in node.attribute:
                if attribute.name == 'training_mode':
                    attribute.i = 0
        for tensor in model.graph.initializer:
            if tensor.name in values:
                tensor.CopyFrom(onnx.numpy_helper.from_array(values[tensor.name], tensor.name))
        evaluator = ReferenceEvaluator(model)
        expected = numpy.mean([evaluator.run(None, self.feeds(k))[0] for k in range(2)])
        found = [row['eval_loss'] for row in rows if 'eval_loss' in row]
        self.assertEqual(len(found), 1)
        self.assertAlmostEqual(found[0], float(expected), delta=1e-5)

    def test_frozen_statistics(self):
        """They stay as they are, and nothing else changes."""
        rows, values = self.train('frozen', '--freeze', '*running*', '--lr', '1e-2')
        free, _ = self.train('free', '--lr', '1e-2')
        self.assertEqual([row['loss'] for row in rows], [row['loss'] for row in free])
        for tensor in self.model.graph.initializer:
            if 'running' in tensor.name:
                self.assertTrue((values[tensor.name] == onnx.numpy_helper.to_array(tensor)).all(), tensor.name)


common.main()
