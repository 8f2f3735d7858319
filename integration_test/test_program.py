"""The emitted program against the interpreter (design §2): two steps of the same model, values and micro-batches must give
the same losses, gradient norms, gradients of the first step, parameters and optimizer state, within the bound of f32.

    test_program.py          one-layer models
    test_program.py models   the reference models
"""

import json
import shutil
import sys

import numpy

import common
import equivalence
import test_equivalence
from windlass_models import files, mlp, safetensors_file

STEPS = 2


class ProgramCase(test_equivalence.InterpreterCase):
    def dump_of_program(self, setup, ranks, *plan):
        """Returns what a run of the program leaves, under the names of the interpreter's dumps; `plan` are further flags."""
        out = self.folder / f'program-{ranks}'
        shutil.rmtree(out, ignore_errors=True)
        flags = ['--micro-batches', setup.micro_batches, '--average', setup.average, '--eps', '1e-3', '--lr', '1e-2', '--weight-decay', '0', '--steps', STEPS]
        if setup.clip:
            flags += ['--clip-norm', setup.clip_norm]
        self.succeed('train', setup.input, *(plan or ('-n', ranks)), '--data', setup.batches, '--dump-gradients', f'{out}.gradients', '-o', out, *flags)
        self.succeed('checkpoint', 'export', out, '--state', '-o', f'{out}.final')
        rows = [json.loads(row) for row in (out / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual(len(rows), STEPS)
        values = {}
        for step, row in enumerate(rows):
            values[f'loss.{step}'], values[f'grad_norm.{step}'] = row['loss'], row['grad_norm']
        values.update((f'gradient.0.{name}', array) for name, array in safetensors_file.read(f'{out}.gradients').items())
        final = safetensors_file.read(f'{out}.final')
        for name, array in final.items():
            kind = 'state' if name.rpartition('/')[0] in final else 'parameter'
            values[f'{kind}.{name}'] = array
        target = self.folder / f'program-{ranks}.safetensors'
        safetensors_file.write({name: numpy.array(value, numpy.float64) for name, value in values.items()}, target)
        return target

    def reference(self, run, *flags):
        """Returns the interpreter's dump of L2 without values that a program does not write: later gradients, evaluation."""
        l2 = run.lower(run.graph(), equivalence.TO_L2, 'l2.mlir')
        dump = run.run(l2, 'L2', 'f32', '--weight-decay', '0', *flags)
        kept = {name: array for name, array in safetensors_file.read(dump).items()
                if name.startswith(('loss.', 'grad_norm.', 'gradient.0.', 'parameter.', 'state.'))}
        safetensors_file.write(kept, dump)
        return dump

    def check_program(self, setup):
        run = equivalence.Equivalence(setup)
        reference = self.reference(run)
        for ranks in setup.ranks:
            with self.subTest(ranks=ranks):
                try:
                    run.compare(reference, self.dump_of_program(setup, ranks), 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
                except equivalence.Failure as failure:
                    self.fail(str(failure))
        print(f'worst deviation {run.worst["f32"]:.1e} of {equivalence.BOUNDS["f32"]:.0e}', file=sys.stderr)


class OneLayerTest(ProgramCase):
    def test_gpt(self):
        model = self.small_gpt(tokens=8, width=16, vocabulary=32)
        self.check_program(self.setup_of(model, micro_batches=2, ranks=(1, 2, 4)))

    def test_dropout(self):
        """The program drops what the interpreter drops, however the samples are divided."""
        model = self.small_gpt(tokens=8, width=16, vocabulary=32, dropout=0.1)
        self.check_program(self.setup_of(model, micro_batches=2, ranks=(1, 4)))

    def test_llama(self):
        model = self.small('llama', tokens=8, width=16, vocabulary=32)
        self.check_program(self.setup_of(model, micro_batches=1, ranks=(2,)))

    def test_gpt_batch_splits(self):
        model = self.small_gpt(tokens=8, width=16, vocabulary=32)
        self.check_program(self.setup_of(model, micro_batches=1, ranks=(4,), clip=False))

    def test_mlp(self):
        model = self.folder / 'mlp.onnx'
        files.save(mlp.build(mlp.MlpConfig((12, 16, 16, 5), ('relu', 'gelu'), 8), jitter=0.05), model, False)
        self.check_program(self.setup_of(model, micro_batches=2, ranks=(1, 4)))

    def test_another_learning_rate_is_found(self):
        """The comparison can fail: a program that took other steps differs."""
        setup = self.setup_of(self.small_gpt(tokens=8, width=16, vocabulary=32), micro_batches=1)
        run = equivalence.Equivalence(setup)
        reference = self.reference(run, '--lr', '2e-2')
        with self.assertRaisesRegex(equivalence.Failure, 'above|deviat'):
            run.compare(reference, self.dump_of_program(setup, 1), 'f32', ('parameter',))


class ReferenceModelTest(ProgramCase):
    def check_reference(self, name):
        _, setup = self.reference_setup(name, micro_batches=4, ranks=(1, 2, 4, 8))
        self.check_program(setup)

    def test_mlp(self):
        self.check_reference('mlp')

    def test_gpt2_tiny(self):
        self.check_reference('gpt2-tiny')


if __name__ == '__main__':
    if sys.argv[1:] == ['models']:
        del OneLayerTest
        sys.argv.pop()
    elif not sys.argv[1:]:
        del ReferenceModelTest
    common.main()
