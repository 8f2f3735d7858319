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

    def refuse(self, code, said, *arguments):
        outcome = common.windlass(*arguments)
        self.assertEqual(outcome.code, code, outcome.err)
        self.assertIn(said, outcome.err)

    def test_no_plan_exceeds_a_device(self):
        """Of devices that a plan fills, or that are too small for it, no plan takes more than there is."""
        preset = json.loads(self.succeed('explain', '--cluster', 'h100:8').out)
        file, codes = self.folder / 'cluster.json', set()
        for strategy in ('ddp', 'zero3', 'zero1*megatron=2', 'auto'):
            roomy = self.plan('h100:8', strategy=strategy)
            for part in (40, 70, 100):
                bytes = roomy['reserve']['total'] + roomy['arena'] * part // 100
                for device in preset['device_types'].values():
                    device['memory_bytes'] = bytes
                file.write_text(json.dumps(preset))
                with self.subTest(strategy=strategy, part=part):
                    outcome = common.windlass('plan', self.model, '--cluster', file, '--strategy', strategy, '--micro-batches', 32, '--json')
                    self.assertIn(outcome.code, (0, 3), outcome.err)
                    codes.add(outcome.code)
                    if outcome.code == 0:
                        memory = json.loads(outcome.out)['bytes_per_device']
                        self.assertEqual(memory['limit'], bytes)
                        self.assertLessEqual(memory['arena'] + memory['reserve']['total'], bytes)
        self.assertEqual(codes, {0, 3})

    def test_each_preset(self):
        said = common.windlass('plan', self.model, '--cluster', 'none:1').err
        presets = [name for name in re.search(r'Presets are (.*), with a number', said)[1].split(', ') if name not in ('cpu', 'emulated')]
        self.assertGreater(len(presets), 5)
        for preset in presets:
            with self.subTest(preset):
                # Each plan has more members, more communicators or more hosts than the one before.
                plans = [(f'{preset}:1', 'ddp'), (f'{preset}:2', 'ddp'), (f'{preset}:8', 'ddp'), (f'{preset}:8', 'ddp*megatron=2'), (f'{preset}:2x8', 'ddp*megatron=2')]
                cluster = json.loads(self.succeed('explain', '--cluster', f'{preset}:1').out)
                limit = min(device['memory_bytes'] for device in cluster['device_types'].values())
                totals = []
                for cluster, strategy in plans:
                    memory = self.plan(cluster, strategy=strategy)
                    reserve = memory['reserve']
                    self.assertEqual(sum(bytes for cause, bytes in reserve.items() if cause != 'total'), reserve['total'])
                    self.assertEqual(memory['limit'], limit)
                    self.assertLessEqual(memory['arena'] + reserve['total'], limit)
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

    def test_it_is_given(self):
        """`--reserve` replaces what the back end declares, in limits, in the plan, in what takes the plan, and in the program."""
        path, given = self.folder / 'plan.json', 3 << 29
        declared = self.plan('h100:8')
        memory = self.plan('h100:8', '--reserve', '1.5GiB', '-o', path)
        self.assertEqual(memory['reserve'], {'given': given, 'total': given})
        self.assertEqual(memory['arena'], declared['arena'])
        self.assertEqual(json.loads(path.read_text())['reserve_bytes'], given)
        flags = ('plan', self.model, '--cluster', 'h100:8', '--strategy', 'ddp', '--micro-batches', 32)
        self.assertRegex(self.succeed(*flags, '--reserve', '1.5GiB').out, r'(?m)^reserve    1536\.0 MiB besides it, given$')
        self.assertEqual(self.plan('h100:8', '--reserve', 0)['reserve']['total'], 0)

        # Limits count it to the byte; the device's memory is one.
        self.assertEqual(self.plan('h100:8', '--reserve', given, '--memory-limit', given + memory['arena'])['arena'], memory['arena'])
        tight, plan = self.folder / 'tight.json', json.loads(path.read_text())
        plan['memory_limit_bytes'] = given + memory['arena'] - 1
        tight.write_text(json.dumps(plan))
        self.refuse(3, f'{given} bytes (1.5 GiB) of them besides its arena', 'simulate', self.model, '--plan', tight)
        self.assertRegex(self.plan('h100:8', '--reserve', '80GiB', code=3), r'\[WL0305\]')

        # A plan keeps it.
        self.succeed('emit', self.model, '--plan', path, '-o', self.folder / 'project', '--reserve', '1536MiB')
        self.assertIn(f'out.reserve_bytes = {given};', (self.folder / 'project' / 'src' / 'tables.cpp').read_text())
        self.refuse(1, f'--reserve is {2 << 30} bytes (2 GiB) but the plan was made for {given} bytes (1.5 GiB)', 'simulate', self.model, '--plan', path, '--reserve', '2GiB')
        other = self.folder / 'declared.json'
        self.plan('h100:8', '-o', other)
        self.assertNotIn('reserve_bytes', json.loads(other.read_text()))
        self.refuse(1, 'the reserve that its back end declares', 'simulate', self.model, '--plan', other, '--reserve', '2GiB')
        self.assertRegex(common.run([common.WINDLASS, 'diff', path, other]).out, rf'reserve_bytes: .*{given}')
        self.refuse(2, '--reserve takes a size such as 1.5GiB, or 0', *flags, '--reserve=-1')

    def test_the_search_counts_what_is_given(self):
        """Plans, their bounds and the check of these count the same; what a smaller reserve leaves is used."""
        path, roomy = self.folder / 'plan.json', self.plan('h100:8', strategy='auto')
        reserve, room = roomy['reserve']['total'], roomy['arena'] * 4 // 5
        little, much = (self.plan('h100:8', '--memory-limit', reserve + room, '--reserve', given, '-o', path, strategy='auto') for given in (reserve, 0))
        self.succeed('plan', self.model, '--verify', path)
        self.assertLessEqual(little['arena'], room)
        self.assertEqual(much['arena'], roomy['arena'])

    def test_a_program_takes_what_was_given(self):
        model, run = self.small_gpt('tiny.onnx', layers=1), self.folder / 'run'
        self.succeed('train', model, '-n', 2, '--strategy', 'ddp', '--micro-batches', 2, '--reserve', '100MiB', '--steps', 1, '--data', self.batches(model, 2), '--communicator', 'local',
                     '--init', 'random', '-o', run)
        self.assertEqual(json.loads((run / 'run.json').read_text())['reserve'], {'given': 100 * MIB, 'total': 100 * MIB})


common.main()
