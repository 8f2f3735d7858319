"""`windlass check` gives a clear answer on every model of the tree, quickly and in little memory."""

import json

import common

SECONDS = 5
BYTES = 1 << 30
TRAINED = ('mlp', 'gpt2-tiny')


class CheckTest(common.Case):
    def check(self, path, codes):
        outcome = common.windlass('check', path)
        self.assertIn(outcome.code, codes, outcome.err[-2000:])
        self.assertLess(outcome.seconds, SECONDS)
        self.assertLess(outcome.peak_bytes, BYTES)
        if outcome.code == 4:
            self.assertRegex(outcome.out + outcome.err, 'unsupported|not supported')
        return outcome

    def test_trained_models(self):
        for name in TRAINED:
            with self.subTest(name):
                outcome = self.check(common.MODELS / name / 'model.onnx', (0,))
                self.assertIn('loss', outcome.out)

    def test_graphs(self):
        graphs = sorted(common.MODELS.glob('*/graph.onnx.gz'))
        self.assertGreaterEqual(len(graphs), 9)
        for path in graphs:
            with self.subTest(path.parent.name):
                self.check(path, (0, 4))

    def test_generated_forms(self):
        forms = (dict(), dict(tied=False), dict(shifted=False), dict(fused_qkv=True), dict(gelu='tanh'), dict(gelu='erf'),
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
