"""Small modules as PyTorch exports them: by the README's recipe each trains like PyTorch, or ends with what the file lacks; by the
exporter's defaults it trains alike or ends with how the file differs from the module. make_exports.py made the files."""

import gzip
import json
import re

import onnx

import common

EXPORTS = common.MODELS / 'exports'
REFERENCE = json.loads((EXPORTS / 'reference.json').read_text())['models']
SIGNATURE = 'pkg.torch.export.ExportedProgram.graph_signature'
# Facts that ONNX's operators cannot express, so that no export holds them; the import is refused and names the fact.
LACKS = {'batchnorm': 'lacks training statistics of a batch norm', 'smoothed': 'lacks label smoothing 0.1'}
# What the exporter's defaults did to a parameter that is missing: one of them, as it is named.
ALTERED = {
    'gpt': r"'blocks\.0\.ln2\.weight' \(merged with 'blocks\.0\.ln1\.weight'\)",
    'zeroinit': r"'blocks\.0\.proj\.weight' \(transposed, now '\w+'\)",
    'lora': r"'blocks\.0\.qkv\.base\.weight' \(transposed, now '\w+'\)",
    'tables': r"'b\.qkv\.weight' \(transposed, now '\w+'\)",
    'batchnorm': r"'net\.1\.weight' \(folded into a constant\)",
    'tied': r"'blocks\.0\.qkv\.weight' \(transposed, now '\w+'\)",
    'scales': r"'gate' \(folded into a constant\)",
    'bf16': r"'blocks\.0\.qkv\.weight' \(transposed, now '\w+'\)",
    'logits': r"'blocks\.0\.qkv\.weight' \(transposed, now '\w+'\)",
}


def load(name, form):
    return onnx.load_from_string(gzip.decompress((EXPORTS / f'{name}.{form}.onnx.gz').read_bytes()))


def missing(model):
    """Returns the number of parameters of the signature that no initializer is named after."""
    text = next(entry.value for entry in model.graph.metadata_props if entry.key == SIGNATURE)
    held = {tensor.name for tensor in model.graph.initializer}
    targets = re.findall(r"^\w+: PARAMETER target='(.*)'$", text, re.M)
    return sum(target not in held for target in targets), len(targets)


class ExportsTest(common.Case):
    def train(self, name, form, *flags):
        run = self.folder / f'{name}-{form}-{len(flags)}'
        reference = REFERENCE[name]
        freeze = [word for frozen in reference['frozen'] for word in ('--freeze', frozen)]
        outcome = common.windlass('train', EXPORTS / f'{name}.{form}.onnx.gz', '--data', EXPORTS / f'{name}.safetensors', '--steps',
                                  len(reference['losses']), '--lr', '1e-3', '--weight-decay', 0, '-o', run, *freeze, *flags)
        losses = [json.loads(row)['loss'] for row in (run / 'metrics.jsonl').read_text().splitlines()] if outcome.code == 0 else []
        return outcome, losses

    def expect_losses(self, name, losses, bound=2e-6):
        wanted = REFERENCE[name]['losses']
        self.assertEqual(len(losses), len(wanted))
        worst = max(abs(got - want) / abs(want) for got, want in zip(losses, wanted))
        print(f'{name}: worst deviation {worst:.1e}')
        self.assertLessEqual(worst, bound)

    def test_recipe(self):
        for name in REFERENCE:
            with self.subTest(name):
                outcome, losses = self.train(name, 'recipe')
                if name in LACKS:
                    self.assertEqual(outcome.code, 1)
                    self.assertIn(LACKS[name], outcome.err)
                    continue
                self.assertEqual(outcome.code, 0, outcome.err)
                self.expect_losses(name, losses)

    def test_defaults(self):
        for name in REFERENCE:
            with self.subTest(name):
                outcome = common.windlass('check', EXPORTS / f'{name}.default.onnx.gz')
                self.assertEqual(outcome.code, 1, outcome.out)
                self.assertIn('[WL0110]', outcome.err)
                count, parameters = missing(load(name, 'default'))
                # A tied weight may lack one name, but has a transposed copy: the count is the same.
                if count:
                    self.assertIn(f'{count} of {parameters} parameters', outcome.err)
                self.assertRegex(outcome.err, ALTERED.get(name, LACKS.get(name)))

    def test_accepted(self):
        """The first line says how the model differs from the exported one."""
        for name in ('gpt', 'smoothed'):
            outcome, losses = self.train(name, 'default', '--accept-altered-parameters')
            self.assertEqual(outcome.code, 0, outcome.err)
            self.assertEqual(len(losses), len(REFERENCE[name]['losses']))
            self.assertRegex(outcome.err.splitlines()[0], 'trains another model than was exported: .*' + ALTERED.get(name, LACKS.get(name)))
            self.assertRegex(outcome.err.splitlines()[1], r'^windlass: \d+ parameters with [\d,]+ elements train, 0 are frozen, \d+ buffers$')

    def test_signatures_that_cannot_be_used(self):
        def refused(text, message, *flags, kind=None):
            model = load('scales', 'recipe')
            for entry in model.graph.metadata_props:
                if entry.key == SIGNATURE:
                    entry.value = text(entry.value)
            path = self.folder / 'changed.onnx'
            path.write_bytes(model.SerializeToString())
            outcome = common.windlass('check', path, *flags)
            self.assertEqual(outcome.code, 1, outcome.out)
            self.assertEqual(len(outcome.err.splitlines()), 1, outcome.err)
            self.assertRegex(outcome.err, message)

        refused(lambda text: text.replace('# inputs', 'inputs'), r"begins with 'inputs' instead of its inputs \[WL0109\]")
        refused(lambda text: text.replace(': PARAMETER', ' PARAMETER', 1), r"is no 'NAME: KIND' \[WL0109\]")
        refused(lambda text: text.replace("target='gate'", 'gate'), r"lacks target='...' \[WL0109\]")
        refused(lambda text: text.replace("'gate'", "'scale'"), r"gives the target 'scale' to two inputs \[WL0109\]")
        refused(lambda text: text.replace('p_gate', 'p_scale'), r"names the input 'p_scale' twice \[WL0109\]")
        refused(lambda text: text.replace("PARAMETER target='gate'", "BUFFER target='gate'"), r"calls 'gate' a buffer, but its own metadata a parameter")
        refused(lambda text: text.replace('PARAMETER', 'USER_INPUT'), r'names no parameter \[WL0109\]')
        refused(lambda text: text + '#' * 10_000_000, r'bytes; the limit is 8388608 \[WL0109\]')
        refused(lambda text: text, r"--train: no initializer of floats is called 'nothing\*' \[WL0202\]", '--train', 'nothing*')
        refused(lambda text: text, r"'nothing\*'.* \[WL0202\]", '--freeze', 'nothing*')
        refused(lambda text: text, r"--train 'gat\*' and --freeze 'gate' both match 'gate'; leave one of them out \[WL0003\]", '--train', 'gat*', '--freeze', 'gate')

    def test_without_a_signature(self):
        """Floats train whatever their values, and each guess is named; --train and --freeze decide otherwise."""
        model = load('scales', 'recipe')
        del model.graph.metadata_props[:]
        for info in model.graph.value_info:
            del info.metadata_props[:]
        path = self.folder / 'unsigned.onnx'
        path.write_bytes(model.SerializeToString())

        def trained(*flags):
            rows = json.loads(self.succeed('check', path, '--json', *flags).out)['parameters']
            return {row['name'] for row in rows if row['trains']}

        self.assertEqual(trained(), {'scale', 'shift', 'l.weight', 'l.bias'})
        self.assertEqual(trained('--train', 'gate', '--freeze', 'l.*'), {'scale', 'shift', 'gate'})
        text = self.succeed('check', path).out
        self.assertRegex(text, r"^4 parameters with 152 elements train, 0 are frozen, 0 buffers\nguesses\n")
        self.assertIn("'scale' trains: unmarked; a float on a differentiable path", text)

    def test_strict(self):
        folded = common.MODELS / 'gpt2-tiny-default' / 'graph.onnx.gz'
        self.assertIn('warnings\n  parameter', self.succeed('check', folded).out)
        outcome = common.windlass('check', folded, '--strict')
        self.assertEqual(outcome.code, 1)
        self.assertRegex(outcome.err, r"train as 'embedding_1'.*\[WL0111\]")

    def test_padding_rows(self):
        """A row that does not train in PyTorch, but does here, is named."""
        model = load('gpt', 'recipe')
        for node in model.graph.node:
            for entry in node.metadata_props:
                entry.value = entry.value.replace('(%p_tok_weight, %tokens)', '(%p_tok_weight, %tokens, 3)')
        path = self.folder / 'padded.onnx'
        path.write_bytes(model.SerializeToString())
        self.assertIn("warnings\n  row 3 of 'tok.weight' is padding_idx in the module", self.succeed('check', path).out)
        self.assertNotIn('padding_idx', self.succeed('check', EXPORTS / 'gpt.recipe.onnx.gz').out)


common.main()
