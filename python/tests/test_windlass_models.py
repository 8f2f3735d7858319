"""Builds models of every form and runs them with onnx's own checker and evaluator."""

import math
import pathlib
import sys
import tempfile
import unittest

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from windlass_models import __main__ as command, bert, files, gpt, irregular, llama, mlp, moe, resnet, vit  # noqa: E402

TINY = dict(layers=1, width=16, heads=2, vocabulary=40, tokens=8, batch=2)


def loss_of(model, seed=1):
    batch = {name[:-2]: array for name, array in files.random_batches(model, 1, seed).items()}
    return float(ReferenceEvaluator(model).run(None, batch)[0])


def checked(model):
    onnx.checker.check_model(model, full_check=True)
    return model


class GptTest(unittest.TestCase):
    def expect_near_uniform(self, **change):
        config = gpt.GptConfig(**dict(TINY, **change))
        loss = loss_of(checked(gpt.build(config)))
        self.assertLess(abs(loss - math.log(config.vocabulary)), 0.1)

    def test_default(self):
        self.expect_near_uniform()

    def test_two_layers(self):
        self.expect_near_uniform(layers=2)

    def test_untied(self):
        self.expect_near_uniform(tied=False)

    def test_without_biases(self):
        self.expect_near_uniform(bias=False, linear='matmul')
        model = gpt.build(gpt.GptConfig(**TINY, bias=False, linear='matmul'))
        self.assertFalse([each.name for each in model.graph.initializer if each.name.endswith('.bias')])
        with self.assertRaisesRegex(ValueError, '--linear matmul'):
            gpt.GptConfig(**TINY, bias=False)

    def test_unshifted(self):
        self.expect_near_uniform(shifted=False, tied=False)  # tied, a token predicts itself

    def test_fused_qkv(self):
        self.expect_near_uniform(fused_qkv=True)

    def test_gelu_operators(self):
        self.expect_near_uniform(activation='tanh')
        self.expect_near_uniform(activation='erf')

    def test_matmul_linear(self):
        self.expect_near_uniform(linear='matmul')

    def test_trilu_mask(self):
        self.expect_near_uniform(mask='trilu')

    def test_forms_agree(self):
        """The spellings of one model give one loss."""
        def loss(**change):
            return loss_of(gpt.build(gpt.GptConfig(**dict(TINY, **change)), scale=0.5, jitter=0.3))
        self.assertAlmostEqual(loss(), loss(mask='trilu'), places=5)
        self.assertAlmostEqual(loss(), loss(activation='tanh'), places=4)

    def test_shift(self):
        """Labels shifted by the graph or before it give the same loss."""
        random = numpy.random.RandomState(3)
        ids = random.randint(0, 40, (2, 8)).astype(numpy.int64)
        following = numpy.concatenate([ids[:, 1:], numpy.full((2, 1), -100)], axis=1)
        inside = ReferenceEvaluator(gpt.build(gpt.GptConfig(**TINY), scale=0.5)).run(None, {'input_ids': ids, 'labels': ids})[0]
        outside = ReferenceEvaluator(gpt.build(gpt.GptConfig(**TINY, shifted=False), scale=0.5)).run(
            None, {'input_ids': ids, 'labels': following})[0]
        self.assertEqual(float(inside), float(outside))

    def test_causal(self):
        """The loss at a position does not depend on later ids."""
        for mask in ('range', 'trilu'):
            evaluator = ReferenceEvaluator(gpt.build(gpt.GptConfig(**TINY, shifted=False, mask=mask), scale=0.5))
            ids = numpy.arange(16, dtype=numpy.int64).reshape(2, 8)
            labels = numpy.full((2, 8), -100, dtype=numpy.int64)
            labels[:, :5] = 7
            changed = ids.copy()
            changed[:, 5:] = 30
            first = evaluator.run(None, {'input_ids': ids, 'labels': labels})[0]
            second = evaluator.run(None, {'input_ids': changed, 'labels': labels})[0]
            self.assertEqual(float(first), float(second))
            changed[:, 4] = 31
            self.assertNotEqual(float(first), float(evaluator.run(None, {'input_ids': changed, 'labels': labels})[0]))

    def test_metadata(self):
        model = gpt.build(gpt.GptConfig(**TINY))
        marks = {info.name: {p.key: p.value for p in info.metadata_props} for info in model.graph.value_info}
        for tensor in model.graph.initializer:
            self.assertEqual(marks[tensor.name]['pkg.torch.export.graph_signature.InputSpec.kind'], 'PARAMETER')
        scopes = [p.value for node in model.graph.node for p in node.metadata_props if p.key == 'pkg.torch.onnx.name_scopes']
        self.assertEqual(len(scopes), len(model.graph.node))
        self.assertTrue(any("'transformer.h.0.attn'" in scope for scope in scopes))
        names = [node.name for node in model.graph.node]
        self.assertEqual(len(names), len(set(names)))

    def test_bad_config(self):
        with self.assertRaisesRegex(ValueError, 'width 15 is not a multiple of the 2 heads'):
            gpt.GptConfig(**dict(TINY, width=15))


class FamilyTest(unittest.TestCase):
    """LLaMA-like and BERT-like models: near the loss of a uniform guess, and one loss for all spellings."""
    LLAMA = dict(TINY, key_heads=1, hidden=24)

    def loss(self, module, config, **change):
        return loss_of(checked(module.build(config, **change)))

    def test_llama(self):
        self.assertLess(abs(self.loss(llama, llama.LlamaConfig(**self.LLAMA)) - math.log(40)), 0.1)
        losses = [self.loss(llama, llama.LlamaConfig(**self.LLAMA, attention=form, mask=mask), scale=0.5, jitter=0.3)
                  for form in ('sdpa', 'eager', 'operator') for mask in ('range', 'trilu')]
        self.assertLess(max(losses) - min(losses), 1e-4)

    def test_qwen(self):
        config = llama.LlamaConfig(**self.LLAMA, qkv_bias=True, tied=True)
        self.assertLess(abs(self.loss(llama, config) - math.log(40)), 0.2)
        names = {each.name for each in llama.build(config).graph.initializer}
        self.assertEqual(sum(name.endswith('_proj.bias') for name in names), 3 * config.layers)
        self.assertIn('lm_head.weight', names)
        self.assertNotIn('model.embed_tokens.weight', names)

    def test_bert(self):
        self.assertLess(abs(self.loss(bert, bert.BertConfig(**TINY)) - math.log(40)), 0.2)
        losses = [self.loss(bert, bert.BertConfig(**TINY, attention=form), scale=0.5, jitter=0.3) for form in ('sdpa', 'eager', 'operator')]
        self.assertLess(max(losses) - min(losses), 1e-4)

    def test_gpt(self):
        losses = [self.loss(gpt, gpt.GptConfig(**TINY, attention=form), scale=0.5, jitter=0.3) for form in ('sdpa', 'eager', 'operator')]
        self.assertLess(max(losses) - min(losses), 1e-4)

    def test_dropout(self):
        model = checked(gpt.build(gpt.GptConfig(**TINY, dropout=0.1)))
        self.assertEqual([node.op_type for node in model.graph.node].count('Dropout'), 3)

    def test_experts(self):
        tiny = dict(self.LLAMA, experts=4, chosen=2)
        self.assertLess(abs(self.loss(moe, moe.MoeConfig(**tiny)) - math.log(40)), 0.1)
        losses = [self.loss(moe, moe.MoeConfig(**tiny, router=router), scale=0.5, jitter=0.3) for router in ('topk', 'threshold')]
        self.assertLess(max(losses) - min(losses), 1e-5)
        # With all experts chosen the router still weighs them; with one, its share is 1.
        self.assertNotAlmostEqual(losses[0], self.loss(moe, moe.MoeConfig(**dict(tiny, chosen=4)), scale=0.5, jitter=0.3), places=4)
        with self.assertRaisesRegex(ValueError, '5 of 4 experts'):
            moe.MoeConfig(**dict(tiny, chosen=5))

    def test_copies_of_experts(self):
        """Each token's products with copies of its experts' weights equal the results of all experts, weighed by their shares."""
        tiny = dict(self.LLAMA, experts=4, chosen=2)
        dense, gathered = (checked(moe.build(moe.MoeConfig(**tiny, router=router), scale=0.5, jitter=0.3)) for router in ('topk', 'gather'))
        values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in dense.graph.initializer}
        block = 'model.layers.0.moe'
        gate, up, down = (values.pop(f'{block}.{part}_proj').transpose(0, 2, 1) for part in ('gate', 'up', 'down'))
        values.update({f'{block}.experts.gate_up_proj': numpy.concatenate([gate, up], axis=1), f'{block}.experts.down_proj': down})
        self.assertEqual({tensor.name: tuple(tensor.dims) for tensor in gathered.graph.initializer}, {name: array.shape for name, array in values.items()})
        for tensor in gathered.graph.initializer:
            tensor.CopyFrom(onnx.numpy_helper.from_array(values[tensor.name], tensor.name))
        self.assertLess(abs(loss_of(dense) - loss_of(gathered)), 1e-5)

    def test_vit(self):
        tiny = dict(layers=1, width=16, heads=2, classes=5, side=8, patch=4, batch=2)
        self.assertLess(abs(self.loss(vit, vit.VitConfig(**tiny)) - math.log(5)), 0.1)
        losses = [self.loss(vit, vit.VitConfig(**tiny, attention=form), scale=0.5, jitter=0.3) for form in ('sdpa', 'eager', 'operator')]
        self.assertLess(max(losses) - min(losses), 1e-4)
        self.assertEqual(vit.VitConfig(**tiny).tokens, 5)

    def test_resnet(self):
        tiny = dict(layers=3, width=4, classes=5, side=16, batch=4)
        for form in (dict(), dict(groups=2), dict(depthwise=True)):
            self.assertLess(abs(self.loss(resnet, resnet.ResnetConfig(**tiny, **form)) - math.log(5)), 0.5)
        with self.assertRaisesRegex(ValueError, 'width 4 is not a multiple of the 3 groups'):
            resnet.ResnetConfig(**tiny, groups=3)
        with self.assertRaisesRegex(ValueError, 'must be at least 8'):
            resnet.ResnetConfig(**dict(tiny, side=7))

    def test_irregular(self):
        shapes, kinds = set(), set()
        for structure in range(8):
            config = irregular.IrregularConfig(layers=4, width=16, vocabulary=40, tokens=8, batch=2, structure=structure)
            self.assertLess(abs(self.loss(irregular, config) - math.log(40)), 0.3)
            model = irregular.build(config)
            shapes.add(tuple(tuple(tensor.dims) for tensor in model.graph.initializer))
            kinds |= {node.op_type for node in model.graph.node}
        self.assertEqual(len(shapes), 8)
        self.assertLessEqual({'Concat', 'Sigmoid', 'Relu', 'Tanh', 'Gelu', 'LayerNormalization', 'Reciprocal', 'Softmax', 'Gemm', 'MatMul'}, kinds)

    def test_bad_config(self):
        with self.assertRaisesRegex(ValueError, '4 heads are not a multiple of the 3 key heads'):
            llama.LlamaConfig(heads=4, key_heads=3)
        with self.assertRaisesRegex(ValueError, 'side of 10 pixels is not a multiple of the patch of 4'):
            vit.VitConfig(side=10, patch=4)


class MlpTest(unittest.TestCase):
    def test_loss(self):
        model = checked(mlp.build(mlp.MlpConfig((8, 16, 16, 5), ('relu', 'gelu'), 4)))
        self.assertLess(abs(loss_of(model) - math.log(5)), 0.2)

    def test_bad_config(self):
        with self.assertRaisesRegex(ValueError, '1 hidden layers but 2 activations'):
            mlp.MlpConfig((8, 16, 5), ('relu', 'gelu'))


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, name, *extra):
        path = self.folder / name
        flags = [f'--{key}={value}' for key, value in TINY.items()]
        self.assertEqual(command.main(['gpt', *flags, '-o', str(path), *extra]), 0)
        return path

    def test_same_bytes(self):
        self.assertEqual(self.make('a.onnx').read_bytes(), self.make('b.onnx').read_bytes())
        self.assertNotEqual(self.make('a.onnx').read_bytes(), self.make('c.onnx', '--seed', '1').read_bytes())

    def test_external(self):
        inside, outside = self.make('inside.onnx'), self.make('outside.onnx', '--external')
        self.assertTrue((self.folder / 'outside.onnx.data').exists())
        self.assertEqual(loss_of(onnx.load(str(inside))), loss_of(onnx.load(str(outside))))

    def test_no_values(self):
        path = self.make('large.onnx', '--no-values', '--layers=48', '--width=1600', '--heads=25')
        model = onnx.load(str(path), load_external_data=False)
        self.assertEqual(list(self.folder.iterdir()), [path])
        self.assertTrue(all(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer))

    def test_batches(self):
        path, batches = self.make('a.onnx'), self.folder / 'batches.safetensors'
        self.assertEqual(command.main(['batches', str(path), '--count=3', '-o', str(batches)]), 0)
        self.assertIn(b'"labels.2"', batches.read_bytes())

    def test_bad_input(self):
        self.assertEqual(command.main(['batches', str(self.folder / 'none.onnx'), '-o', str(self.folder / 'b')]), 1)


if __name__ == '__main__':
    unittest.main()
