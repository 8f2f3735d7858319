"""The exporter's graphs of the transformer families trained against what PyTorch's run left: the loss and gradient norm of every
step, and the norm of every parameter's first gradient; and what the exporter's own optimisation changes in the imported graph.

    test_families.py [MODEL...] [-n RANKS...] [-- FLAGS...]     of opt-tiny, bert-tiny, llama-tiny, moe-tiny, mixtral-tiny,
                                                                gpt2-tiny-default, dynamic, external; flags are of `windlass train`
"""

import argparse
import json
import sys

import numpy
import onnx

import common
from windlass_models import safetensors_file

MODELS = ('opt-tiny', 'bert-tiny', 'llama-tiny', 'moe-tiny', 'mixtral-tiny', 'gpt2-tiny-default', 'dynamic', 'external')
LOSS_BOUND, NORM_BOUND = 1e-4, 1e-3
# The name that constant folding gives the positions' embedding.
FOLDED = {'model.transformer.wpe.weight': 'embedding_1'}


class FamilyTest(common.Case):
    def model_of(self, name):
        """Returns the graph, the folder of its reference, and the flags that it needs."""
        if name == 'dynamic':
            return common.completed('gpt2-tiny-dynamic', self.folder), 'gpt2-tiny', ['--dim', 'batch=4', '--dim', 'tokens=64']
        if name == 'external':
            path = self.folder / 'model.onnx'
            onnx.save(onnx.load(common.MODELS / 'gpt2-tiny' / 'model.onnx'), path, save_as_external_data=True, location='model.onnx.data', size_threshold=256)
            self.assertTrue(path.with_name('model.onnx.data').exists())
            return path, 'gpt2-tiny', []
        return common.completed(name, self.folder), name, []

    def check(self, name, ranks):
        model, source, flags = self.model_of(name)
        flags += FLAGS
        folder = common.MODELS / source
        reference = json.loads((folder / 'reference.json').read_text())
        optimizer, trained = reference['optimizer'], [each for each in reference['initializers'] if each['trainable']]
        for each in trained:
            if each['onnx'] not in optimizer['decay']:
                flags += ['--no-decay', each['onnx']]
        data = folder if (folder / 'batches.safetensors').exists() else common.MODELS / 'gpt2-tiny'
        run, dump = self.folder / 'run', self.folder / 'gradients.safetensors'
        self.succeed('train', model, '-n', ranks, '--data', data / 'batches.safetensors', '--steps', reference['steps'], '-o', run,
                     '--dump-gradients', dump, '--lr', optimizer['lr'], '--betas', ','.join(map(str, optimizer['betas'])),
                     '--eps', optimizer['eps'], '--weight-decay', optimizer['weight_decay'], *flags)
        rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
        numpy.testing.assert_allclose([row['loss'] for row in rows], reference['losses'], rtol=LOSS_BOUND)
        numpy.testing.assert_allclose([row['grad_norm'] for row in rows], reference['grad_norms'], rtol=NORM_BOUND)
        gradients = safetensors_file.read(dump)
        self.assertEqual(set(gradients), {each['onnx'] for each in trained})
        for each in trained:
            got, want = numpy.linalg.norm(gradients[each['onnx']].astype(numpy.float64)), each['grad0_norm']
            self.assertEqual(list(gradients[each['onnx']].shape), each['shape'])
            # A gradient that is exactly zero is stored as rounding noise.
            self.assertLess(abs(got - want), NORM_BOUND * max(want, 1e-5), each['onnx'])

    def test_training(self):
        for name in ARGS.models:
            for ranks in ARGS.ranks:
                with self.subTest(name, ranks=ranks):
                    self.setUp()
                    self.check(name, ranks)

    def test_optimised_export(self):
        """The exporter's own optimisation gives the same graph but for what it folds away: an embedding at fixed positions becomes a
        parameter of its result, with the batch in front, and has to be reshaped."""
        def imported(path):
            return json.loads(self.succeed('check', path, '--json', '-v').out)
        plain = imported(common.MODELS / 'gpt2-tiny' / 'model.onnx')
        optimised = imported(common.completed('gpt2-tiny-default', self.folder))
        parameters = [{each['name']: each for each in found['parameters']} for found in (plain, optimised)]
        differences = {name for name in set(parameters[0]) | set(parameters[1]) if parameters[0].get(name) != parameters[1].get(name)}
        self.assertEqual(differences, {*FOLDED, *FOLDED.values()})
        self.assertEqual(parameters[0]['model.transformer.wpe.weight']['shape'], '64x96')
        self.assertEqual(parameters[1]['embedding_1']['shape'], '1x64x96')
        counts = dict(optimised['operators'])
        counts['reshape'] -= 1
        self.assertEqual(counts, plain['operators'])
        # An id is the scope, the kind and an ordinal.
        kinds = [[each.rsplit('.', 2)[-2] for each in found['ids']] for found in (plain, optimised)]
        extra = [i for i, kind in enumerate(kinds[1]) if kinds[1][:i] + kinds[1][i + 1:] == kinds[0]]
        self.assertTrue(extra and kinds[1][extra[0]] == 'reshape', 'the operators are in another order')


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('models', nargs='*', default=MODELS)
parser.add_argument('-n', '--ranks', nargs='+', type=int, default=(1, 2, 4))
end = sys.argv.index('--') if '--' in sys.argv else len(sys.argv)
ARGS, FLAGS = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
if not set(ARGS.models) <= set(MODELS):
    parser.error(f'models are {", ".join(MODELS)}')
del sys.argv[1:]
common.main()
