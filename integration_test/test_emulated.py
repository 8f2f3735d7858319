"""CPU ranks that emulate devices with memory of their own (`--cluster emulated:N,device=SIZE..`): plans for less and less of it, and programs
whose copies keep to the rates of a link and a disk.

    test_emulated.py             plans of two families for three shares of the memory
    test_emulated.py all         of four families for five shares
    test_emulated.py programs    programs
"""

import json
import sys

import common
import test_offload

RATES = 'h2d=1GB/s,d2h=1GB/s,disk=200MB/s'
SHARES, FAMILIES = (100, 40, 15), ('gpt', 'llama')


class EmulatedCase(test_offload.OffloadCase):
    def blocks(self, family, **change):
        """Returns a model of eight equal blocks."""
        return self.model(family, layers=8, **{'width': 64, 'heads': 2, **change})

    def cluster(self, ranks, device=1 << 30, more=RATES):
        return f'emulated:{ranks},device={device},{more}'

    def plan(self, model, cluster, *flags):
        path = self.folder / 'plan.json'
        outcome = self.succeed('plan', model, '--micro-batches', 4, '--clip', '--json', '-o', path, '--cluster', cluster, *flags)
        return json.loads(outcome.out), path


class PlansTest(EmulatedCase):
    def test_less_and_less_memory(self):
        """Plans fit into shares of what they would need, with more on the host, or are refused with the limit."""
        for family in FAMILIES:
            model = self.blocks(family)
            for ranks in (1, 2):
                need = self.plan(model, self.cluster(ranks))[0]['bytes_per_device']['arena']
                held = []
                for share in SHARES:
                    limit = need * share // 100
                    with self.subTest(family=family, ranks=ranks, share=share):
                        report, path = self.plan(model, self.cluster(ranks, limit), '--offload', 'some')
                        self.assertLessEqual(report['bytes_per_device']['arena'], limit)
                        self.assertEqual(report['bytes_per_device']['reserve']['total'], 0)
                        held.append(report['bytes_per_device']['host'])
                        if share == SHARES[-1]:
                            self.succeed('plan', model, '--verify', path)
                self.assertLess(held[0], held[-1])
                outcome = common.windlass('plan', model, '--micro-batches', 4, '--cluster', self.cluster(ranks, need // 200), '--offload', 'some')
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertIn(f'the limit is {need // 200} bytes', outcome.err)

    def test_the_host_has_a_limit_too(self):
        """Where the host's memory is too small as well, the state is on the disk."""
        model = self.blocks('gpt')
        weights = self.plan(model, self.cluster(1), '--offload', 'weights')[0]['bytes_per_device']
        disk = self.plan(model, self.cluster(1), '--offload', 'disk')[0]['bytes_per_device']
        self.assertLess(disk['host'], weights['host'])
        small = self.cluster(1, weights['arena'], f'host={disk["host"]},{RATES}')
        report, _ = self.plan(model, small, '--strategy', 'ddp', '--offload', 'auto')
        self.assertEqual(report['offload'], 'disk')
        self.assertLessEqual(report['bytes_per_device']['host'], disk['host'])

    def test_costs(self):
        """A step takes longer with a slower link, and at least as long as the link needs to bring the weights once."""
        model = self.blocks('gpt')
        flags = ('--strategy', 'ddp', '--offload', 'weights')
        fast, slow = (self.plan(model, self.cluster(1, more=f'h2d={rate},d2h={rate}'), *flags)[0] for rate in ('100GB/s', '10MB/s'))
        # The host holds each weight with its gradient and two moments.
        self.assertEqual(fast['bytes_per_device']['gradients'], 0)
        weights = fast['bytes_per_device']['host'] / 4
        self.assertGreater(slow['simulated_seconds'], fast['simulated_seconds'])
        self.assertGreater(slow['simulated_seconds'], weights / 10e6)


class ProgramsTest(EmulatedCase):
    def train(self, model, run, cluster, *flags):
        gradients = self.folder / f'{run}.safetensors'
        self.succeed('train', model, '--cluster', cluster, '--data', self.folder / 'data.safetensors', '--steps', 3, '--micro-batches', 4, '--clip-norm', 0.1,
                     '-o', self.folder / run, '--dump-gradients', gradients, *flags)
        newest = sorted((self.folder / run / 'checkpoints').glob('step-*'))[-1]
        self.succeed('checkpoint', 'export', newest, '--state', '-o', self.folder / run / 'merged.safetensors')
        return [json.loads(row) for row in (self.folder / run / 'metrics.jsonl').read_text().splitlines()]

    def merged(self, run):
        return (self.folder / run / 'merged.safetensors').read_bytes()

    def test_trains_within_less_memory(self):
        """The bits are those of the run that has all memory where only the state's memory differs, else values are within rounding."""
        model = self.blocks('gpt')
        self.batches(model, 12).rename(self.folder / 'data.safetensors')
        for ranks in (1, 2):
            report, _ = self.plan(model, self.cluster(ranks), '--strategy', 'zero1')
            need = report['bytes_per_device']['arena']
            self.train(model, f'whole{ranks}', self.cluster(ranks), '--strategy', 'zero1')
            self.train(model, f'moved{ranks}', self.cluster(ranks, need * 3 // 4), '--strategy', 'zero1', '--offload', 'optimizer')
            self.assertEqual(self.merged(f'moved{ranks}'), self.merged(f'whole{ranks}'))
            for share in (40, 15):
                with self.subTest(ranks=ranks, share=share):
                    self.train(model, f'capped{ranks}-{share}', self.cluster(ranks, need * share // 100), '--offload', 'some')
                    test_offload.ProgramsTest.assert_close(self, f'capped{ranks}-{share}', f'whole{ranks}')

    def test_copies_keep_to_the_rates(self):
        """A step takes at least as long as its slowest link or disk needs for what goes over it."""
        model = self.blocks('gpt')
        self.batches(model, 12).rename(self.folder / 'data.safetensors')
        elements = sum(each.nbytes for each in test_offload.safetensors_file.read(self.weights(model)).values()) // 4
        # Each micro-batch copies weights for the forward and the backward pass, at least those of all blocks.
        rows = self.train(model, 'link', self.cluster(1, more='h2d=50MB/s,d2h=50MB/s'), '--strategy', 'ddp', '--offload', 'weights')
        self.assertGreater(min(row['seconds'] for row in rows), 2 * 4 * 0.8 * elements * 4 / 50e6)
        # The disk reads and writes two moments of each parameter.
        rows = self.train(model, 'disk', self.cluster(1, more='disk=40MB/s'), '--strategy', 'ddp', '--offload', 'disk')
        self.assertGreater(min(row['seconds'] for row in rows), 2 * 8 * elements / 40e6)
        self.assertEqual(self.merged('disk'), self.merged('link'))

    def weights(self, model):
        """Returns a file with the model's parameters."""
        self.train(model, 'plain', self.cluster(1), '--strategy', 'ddp')
        exported = self.folder / 'weights.safetensors'
        self.succeed('checkpoint', 'export', self.folder / 'plain', '-o', exported)
        return exported


if __name__ == '__main__':
    part = sys.argv.pop(1) if sys.argv[1:2] in (['programs'], ['all']) else 'plans'
    if part == 'all':
        SHARES, FAMILIES = (100, 60, 40, 25, 15), ('gpt', 'opt', 'llama', 'bert')
    del globals()['PlansTest' if part == 'programs' else 'ProgramsTest']
    common.main()
