"""`windlass check` gives a clear answer on every model of the tree, in little memory."""

import json

import onnx

import common
from windlass_models import attention

BYTES = 1 << 30
TRAINED = ('mlp', 'gpt2-tiny', 'resnet-tiny')
# Layers of the exporter's graphs, and the norms and activations that are in none of them.
LAYERS = {'gpt2-124m-256': (12, 1, 0), 'gpt2-tiny-default': (2, 1, 0), 'gpt2-tiny-dropout': (2, 1, 0), 'opt-tiny': (2, 1, 0),
          'llama-tiny': (3, 1, 0), 'bert-tiny': (2, 2, 1), 'moe-tiny': (2, 1, 0), 'mixtral-tiny': (2, 1, 0)}
WITH_EXPERTS = ('moe-tiny', 'mixtral-tiny', 'moe', 'mixtral')


class CheckTest(common.Case):
    def check(self, path, codes, *flags):
        outcome = common.windlass('check', path, *flags)
        self.assertIn(outcome.code, codes, outcome.err[-2000:])
        self.assertLess(outcome.peak_bytes, BYTES)
        if outcome.code == 4:
            self.assertRegex(outcome.out + outcome.err, 'unsupported|not supported')
        return outcome

    def test_trained_models(self):
        for name in TRAINED:
            with self.subTest(name):
                outcome = self.check(common.MODELS / name / 'model.onnx', (0,))
                self.assertIn('loss', outcome.out)

    def test_running_statistics(self):
        """What batch norms in training form keep for evaluation is named; it does not train."""
        model = common.MODELS / 'resnet-tiny' / 'model.onnx'
        self.assertRegex(self.succeed('check', model).out, r'29 parameters with .* train, 0 are frozen, 0 buffers, 18 running statistics')
        rows = json.loads(self.succeed('check', model, '--json').out)['parameters']
        running = [row for row in rows if 'running' in row['name']]
        self.assertEqual(len(running), 18)
        self.assertEqual({(row['role'], row['trains']) for row in running}, {('running statistic', False)})

    def test_graphs(self):
        graphs = sorted(common.MODELS.glob('*/graph.onnx.gz'))
        self.assertGreaterEqual(len(graphs), 9)
        for path in graphs:
            with self.subTest(path.parent.name):
                symbolic = path.parent.name.endswith('-dynamic')
                self.check(path, (0, 4), *(('--dim', 'batch=4', '--dim', 'tokens=64') if symbolic else ()))
                if symbolic:
                    self.check(path, (1,))

    def expect_layers(self, path, name, count, norms, activations):
        """Every attention, norm and activation is recognised, and `check` says so. Activations of experts are theirs."""
        found = json.loads(self.succeed('check', path, '--json').out)['layers']
        experts = count if name in WITH_EXPERTS else 0
        self.assertEqual(found, {'attentions': count, 'missed_attentions': [], 'expert_layers': experts, 'missed_experts': [],
                                 'norms': 2 * count + norms, 'activations': count + activations - experts})

    def test_layers_of_graphs(self):
        for name, (count, norms, activations) in LAYERS.items():
            with self.subTest(name):
                self.expect_layers(common.MODELS / name / 'graph.onnx.gz', name, count, norms, activations)
        self.expect_layers(common.MODELS / 'gpt2-tiny' / 'model.onnx', 'gpt2-tiny', 2, 1, 0)

    def test_layers_of_generated_forms(self):
        for family in common.TRANSFORMERS:
            for form in attention.FORMS:
                for layers in (1, 3):
                    with self.subTest(family=family, form=form, layers=layers):
                        path = self.small(family, attention=form, layers=layers)
                        self.expect_layers(path, family, layers, *((2, 1) if family == 'bert' else (1, 0)))

    def test_layers_of_folded_forms(self):
        """Masks and rotary tables that the exporter has computed are neither trained nor in the way."""
        for family in common.TRANSFORMERS:
            for form in attention.FORMS:
                with self.subTest(family=family, form=form):
                    path = common.folded(self.small(family, attention=form))
                    self.expect_layers(path, family, 1, *((2, 1) if family == 'bert' else (1, 0)))
                    parameters = json.loads(self.succeed('check', path, '--json').out)['parameters']
                    plain = json.loads(self.succeed('check', self.folder / 'small.onnx', '--json').out)['parameters']
                    self.assertEqual([each['name'] for each in parameters if each['trains']], [each['name'] for each in plain if each['trains']])

    def with_tanh_before(self, op_type, path):
        """Puts a tanh in front of the first operand of each such operator of a model; returns its path."""
        model = onnx.load(path)
        for index, node in reversed(list(enumerate(model.graph.node))):
            if node.op_type == op_type:
                model.graph.node.insert(index, onnx.helper.make_node('Tanh', [node.input[0]], [f'capped_{index}']))
                node.input[0] = f'capped_{index}'
        onnx.save(model, path)
        return path

    def test_missed_attentions(self):
        """A softmax between two products that is no attention is named, with what does not match."""
        path = self.with_tanh_before('Softmax', self.small('gpt', attention='eager', layers=2))
        found = json.loads(self.succeed('check', path, '--json').out)['layers']
        self.assertEqual(found['attentions'], 0)
        self.assertEqual([each['reason'] for each in found['missed_attentions']], ["its scores pass 'tanh' on the way from the first product"] * 2)
        self.assertRegex(self.succeed('check', path).out,
                         r"attentions: 0\n  no attention: 2 softmaxes between products, the first '.*softmax\.0': its scores pass 'tanh' on")

    def test_missed_experts(self):
        """A product by matrices that are gathered for each choice, and that is no part of a layer of experts, is named, with what stands in the way."""
        path = self.with_tanh_before('SplitToSequence', self.small('mixtral', layers=2))
        found = json.loads(self.succeed('check', path, '--json').out)['layers']
        self.assertEqual(found['expert_layers'], 0)
        self.assertEqual([each['reason'] for each in found['missed_experts']], ["what it gives passes 'tanh'"] * 2)
        self.assertRegex(self.succeed('check', path).out,
                         r"layers of experts: 0\n  no experts: 2 products by gathered matrices, the first '.*gather\.0': what it gives passes 'tanh'\n")

    def test_layers_in_text(self):
        out = self.succeed('check', self.small('llama')).out
        self.assertRegex(out, r'layers\n  attentions: 1\n  layers of experts: 0\n  norms: 3\n  activations: 1\n')
        self.assertRegex(out, r'  rms_norm: 3\n  rotary: 2\n  silu: 1\n')

    def test_generated_forms(self):
        forms = (dict(), dict(tied=False), dict(shifted=False), dict(fused_qkv=True), dict(activation='tanh'), dict(activation='erf'),
                 dict(linear='matmul'), dict(mask='trilu'))
        for index, form in enumerate(forms):
            with self.subTest(form):
                self.check(self.small_gpt(f'{index}.onnx', **form), (0,))

    def test_external_data(self):
        self.check(self.small_gpt(external=True), (0,))

    def test_json(self):
        outcome = self.succeed('check', common.MODELS / 'gpt2-tiny' / 'model.onnx', '--json')
        self.assertIsInstance(json.loads(outcome.out), dict)


common.main()
