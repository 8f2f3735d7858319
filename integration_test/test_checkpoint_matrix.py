"""Checkpoints go from any plan to any other: over one to eight ranks, with replicas, shards, split matmuls, experts, stages and state in the
host's memory. A mixture of experts of four layers is trained for two steps by each of twelve plans, and for two more by each of the twelve
from each of these checkpoints.

    test_checkpoint_matrix.py [--plans N]    only the first N of them
"""

import json
import sys

import numpy

import common
from windlass_models import safetensors_file

MICRO_BATCHES, HALF = 8, 2
PLANS = {
    'alone': ('-n', 1),
    'stages': ('-n', 4, '--stages', 2, '--strategy', 'zero1'),
    'experts': ('-n', 2, '--strategy', 'ep'),
    'offload': ('-n', 2, '--strategy', 'zero2', '--offload', 'optimizer'),
    'zero3-megatron': ('-n', 8, '--strategy', 'zero3*megatron=2'),
    'ddp': ('-n', 2, '--strategy', 'ddp'),
    'zero1': ('-n', 4, '--strategy', 'zero1'),
    'zero3': ('-n', 4, '--strategy', 'zero3'),
    'megatron': ('-n', 2, '--strategy', 'megatron'),
    'zero1-experts': ('-n', 4, '--strategy', 'zero1*ep=2'),
    'four-stages': ('-n', 4, '--stages', 4),
    'offload-weights': ('-n', 2, '--strategy', 'zero2', '--offload', 'weights'),
}


class CheckpointMatrixTest(common.Case):
    COUNT = len(PLANS)

    def train(self, name, steps, *flags):
        """Trains up to a step; returns the losses of the steps and the checkpoint's tensors, the optimizer's state among them."""
        run = self.folder / name
        # A large epsilon, so that a gradient that is rounding only does not become a step of full size.
        self.succeed('train', self.model, '--data', self.data, '--micro-batches', MICRO_BATCHES, '--clip', '--eps', '1e-3', '--lr', '1e-2', '--steps',
                     steps, '--communicator', 'local', '--threads', 1, '-o', run, *flags)
        self.succeed('checkpoint', 'export', run, '--state', '-o', run / 'merged')
        losses = [json.loads(row)['loss'] for row in (run / 'metrics.jsonl').read_text().splitlines()]
        return losses, safetensors_file.read(run / 'merged')

    def test_all_pairs(self):
        self.model = self.small('mixtral', layers=4)
        self.data = self.batches(self.model, MICRO_BATCHES * 2 * HALF)
        plans = dict(list(PLANS.items())[:self.COUNT])
        losses, wanted = self.train('straight', 2 * HALF, *PLANS['alone'])
        for name, flags in plans.items():
            self.train(name, HALF, *flags)
        worst = 0
        for first in plans:
            for second, flags in plans.items():
                with self.subTest(first=first, second=second):
                    found, tensors = self.train(f'{first}-to-{second}', 2 * HALF, *flags, '--resume',
                                                self.folder / first / 'checkpoints' / f'step-{HALF:06}')
                    numpy.testing.assert_allclose(found, losses[HALF:], rtol=1e-5)
                    self.assertEqual(tensors.keys(), wanted.keys())
                    for key, array in wanted.items():
                        scale = max(float(abs(array).max()), 1e-6)
                        worst = max(worst, float(abs(tensors[key] - array).max()) / scale)
                        numpy.testing.assert_allclose(tensors[key], array, rtol=0, atol=1e-5 * scale, err_msg=key)
        print(f'{len(plans) ** 2} pairs; worst deviation of a tensor {worst:.1e} of its largest value', flush=True)


if '--plans' in sys.argv:
    at = sys.argv.index('--plans')
    CheckpointMatrixTest.COUNT = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
common.main()
