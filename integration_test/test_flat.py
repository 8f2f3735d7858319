"""Flat shards: gradients, master copies and optimizer state of tensors whose sizes the ranks do not divide, sharded in ranges that zeros
fill up. At every level and in the program they give what the unplanned graph gives, and checkpoints of one layout resume another.
"""

import json
import sys

import numpy

import common
import equivalence
import test_program
from windlass_models import files, mlp, safetensors_file

SIZES = (13, 17, 11, 6)
RANKS = 4


class FlatCase(test_program.ProgramCase):
    def odd(self, **change):
        model = self.folder / 'odd.onnx'
        files.save(mlp.build(mlp.MlpConfig(SIZES, ('relu', 'gelu'), 8), jitter=0.05), model, False)
        return self.setup_of(model, **{'micro_batches': 4, **change})


class LevelsTest(FlatCase):
    """The interpreter refuses parts whose filling is not zero any more, so weight decay and momentum keep it."""

    def test_optimizers(self):
        for optimizer in 'adamw', 'adafactor', 'adam', 'lamb', 'lion', 'muon', 'sgd':
            for strategy in 'zero1', 'zero2', 'zero3':
                with self.subTest(optimizer=optimizer, strategy=strategy):
                    # Replicas only, and replicas that each split their batch.
                    self.check(self.odd(optimizer=optimizer, strategy=strategy, ranks=(RANKS, 8)))


class ProgramsTest(FlatCase):
    def test_strategies(self):
        setup = self.odd()
        run = equivalence.Equivalence(setup)
        reference = self.reference(run)
        for strategy in 'zero1', 'zero2', 'zero3':
            with self.subTest(strategy):
                try:
                    dump = self.dump_of_program(setup, RANKS, '-n', RANKS, '--strategy', strategy)
                    run.compare(reference, dump, 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
                except equivalence.Failure as failure:
                    self.fail(str(failure))
        print(f'worst deviation {run.worst["f32"]:.1e}', file=sys.stderr)

    def train(self, setup, name, steps, *flags):
        """Runs up to `step` and returns the results by name."""
        out = self.folder / name
        self.succeed('train', setup.input, '--data', setup.batches, '--micro-batches', setup.micro_batches, '--clip', '--optimizer', 'adamw',
                     '--eps', '1e-3', '--lr', '1e-2', '--weight-decay', '0.1', '--steps', steps, '-o', out, *flags)
        self.succeed('checkpoint', 'export', out, '--state', '-o', out / 'merged')
        return safetensors_file.read(out / 'merged')

    def test_checkpoints_go_from_any_layout_to_any_other(self):
        setup = self.odd(batches=24)
        layouts = {'ddp': ('-n', 2, '--strategy', 'ddp'), 'zero1': ('-n', RANKS, '--strategy', 'zero1'), 'zero2': ('-n', 2, '--strategy', 'zero2')}
        expected = self.train(setup, 'straight', 4, '-n', 1)
        for name, flags in layouts.items():
            self.train(setup, name, 2, *flags)
        for first in layouts:
            for second, flags in layouts.items():
                if first == second:
                    continue
                with self.subTest(first=first, second=second):
                    found = self.train(setup, f'{first}-{second}', 4, *flags, '--resume', self.folder / first / 'checkpoints' / 'step-000002')
                    self.assertEqual(found.keys(), expected.keys())
                    for key, array in expected.items():
                        # One ulp of a sum in another order, over four steps.
                        numpy.testing.assert_allclose(found[key], array, rtol=1e-4, atol=1e-6, err_msg=key)

    def test_state_takes_a_rank_only_its_ranges(self):
        weights = [n * m for n, m in zip(SIZES, SIZES[1:])] + list(SIZES[1:])
        setup = self.odd()
        outcome = self.succeed('plan', setup.input, '--cluster', f'cpu:{RANKS}', '--strategy', 'zero1', '--micro-batches', 4, '-o',
                               self.folder / 'plan.json', '--json')
        self.assertEqual(json.loads(outcome.out)['bytes_per_device']['optimizer_state'], 2 * 4 * sum(-(-size // RANKS) for size in weights))


common.main()
