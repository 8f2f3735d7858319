"""The memory of GPUs besides arenas (docs/memory.md): each preset has it, it grows with the communicators, and every limit counts it."""

import json
import re

import common

MIB = 1 << 20


class ReserveTest(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(layers=2)

    def plan(self, cluster, *flags, strategy='ddp', code=0):
        outcome = common.windlass('plan', self.model, '--cluster', cluster, '--strategy', strategy, '--micro-batches', 32, '--json', *flags)
        self.assertEqual(outcome.code, code, outcome.err)
        return json.loads(outcome.out)['bytes_per_device'] if code == 0 else outcome.err

    def test_each_preset(self):
        said = common.windlass('plan', self.model, '--cluster', 'none:1').err
        presets = [name for name in re.search(r'Presets are (.*), with a number', said)[1].split(', ') if name != 'cpu']
        self.assertGreater(len(presets), 5)
        for preset in presets:
            with self.subTest(preset):
                # Each plan has more members, more communicators or more hosts than the one before.
                plans = [(f'{preset}:1', 'ddp'), (f'{preset}:2', 'ddp'), (f'{preset}:8', 'ddp'), (f'{preset}:8', 'ddp*megatron=2'), (f'{preset}:2x8', 'ddp*megatron=2')]
                totals = []
                for cluster, strategy in plans:
                    memory = self.plan(cluster, strategy=strategy)
                    reserve = memory['reserve']
                    self.assertEqual(sum(bytes for cause, bytes in reserve.items() if cause != 'total'), reserve['total'])
                    self.assertLessEqual(memory['arena'] + reserve['total'], memory['limit'])
                    totals.append(reserve['total'])
                self.assertGreaterEqual(totals[0], 600 * MIB)
                self.assertEqual(totals, sorted(set(totals)))

    def test_every_limit_counts_it(self):
        """Named strategies, the search, a plan that is read, and `--verify` count it, to the byte."""
        path = self.folder / 'plan.json'
        for strategy in ('ddp', 'zero1*megatron=2', 'auto'):
            with self.subTest(strategy):
                memory = self.plan('h100:8', strategy=strategy)
                needed = memory['arena'] + memory['reserve']['total']
                fits = self.plan('h100:8', '--memory-limit', needed, '-o', path, strategy=strategy)
                self.assertLessEqual(fits['arena'] + fits['reserve']['total'], needed)
                if strategy == 'auto':
                    self.succeed('plan', self.model, '--verify', path)
                plan = json.loads(path.read_text())
                plan['memory_limit_bytes'] = fits['arena'] + fits['reserve']['total'] - 1
                path.write_text(json.dumps(plan))
                outcome = common.windlass('emit', self.model, '--plan', path, '-o', self.folder / 'project')
                self.assertEqual(outcome.code, 3, outcome.err)
                self.assertRegex(outcome.err, rf'{fits["reserve"]["total"]} bytes \([^)]*\) of them besides its arena')
                # With less than the reserve nothing fits.
                error = self.plan('h100:8', '--memory-limit', '600MiB', strategy=strategy, code=3)
                self.assertRegex(error, r'\[WL0305\]')

    def test_exchanges_take_more(self):
        """A communicator on which ranks send to each other takes buffers for each of them; the program knows of it too."""
        model, project = self.small_gpt(layers=2, tokens=16, width=32, vocabulary=64), self.folder / 'project'
        flags, taken = ('--cluster', 'h100:4', '--strategy', 'megatron'), {}
        # A value that is made in columns and read in rows.
        for exchanges, pins in (('false', ()), ('true', ('--pin', 'transformer.h.0.mlp.matmul.0=[4, 16:model, 128]'))):
            self.succeed('emit', model, *flags, *pins, '-o', project)
            self.assertRegex((project / 'src' / 'tables.cpp').read_text(), r'communicators\[\] = \{\n.*out\.axes = \{communicator_axes_\d+, 1\}; out\.stream = 1; out\.exchanges = ' + exchanges + r';.*\n\};')
            said = json.loads(self.succeed('plan', model, *flags, *pins, '--json').out)
            taken[exchanges] = said['bytes_per_device']['reserve']['communication']
        self.assertGreater(taken['true'], taken['false'] + 3 * 400 * MIB)


common.main()
