"""Plans whose optimizer state is in the host's memory, where it is updated too.

    test_offload.py             every level of the interpreter, plans, refusals
    test_offload.py programs    emitted programs, which train bit for bit as those with all state on the device, by three plans
    test_offload.py all         by six
"""

import dataclasses
import json
import math
import re
import sys

import numpy

import common
import equivalence
import test_average
from windlass_models import safetensors_file

SIZES = dict(tokens=8, width=16, vocabulary=32)
STRATEGIES = ('ddp', 'zero1', 'zero2', 'zero3', 'megatron', 'zero1*megatron=2')


class OffloadCase(test_average.AverageCase):
    def model(self, family, **change):
        return self.small(family, **{'layers': 2, **SIZES, **change})

    def setup_of_model(self, model, offload='optimizer', **change):
        return dataclasses.replace(super().setup_of(model, micro_batches=4, **change), average='micro-batches', offload=offload)

    def batches(self, model, count):
        return common.Case.batches(self, model, count)

    def refuse(self, code, words, *arguments):
        outcome = common.windlass(*arguments)
        self.assertEqual(outcome.code, code, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)


class LevelsTest(OffloadCase):
    def test_strategies(self):
        model = self.model('gpt')
        for strategy in STRATEGIES:
            with self.subTest(strategy):
                self.check(self.setup_of_model(model, strategy=strategy, ranks=(4,)))

    def test_families(self):
        for family in ('llama', 'vit', 'moe'):
            with self.subTest(family):
                self.check(self.setup_of_model(self.model(family), strategy='zero1', ranks=(2,)))

    def test_precision(self):
        """In 16 bits, for f16 with a loss scale: the host rounds the weights that go back."""
        model = self.model('gpt')
        for precision, offload, strategy in (('bf16', 'optimizer', 'zero1'), ('f16', 'optimizer', 'zero1'), ('bf16', 'disk', 'zero1'), ('bf16', 'none', 'dos=1')):
            judge = equivalence.Equivalence(self.setup_of_model(model, strategy=strategy, precision=precision, offload=offload))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(l2, 'L2', 'f64')
            for module, level in judge.lower_for(l2, 2):
                with self.subTest(precision=precision, offload=offload, strategy=strategy, level=level):
                    judge.compare(reference, judge.run(module, level, 'f64', '--ranks', 2), 'f64')

    def test_sgd_without_clipping(self):
        self.check(self.setup_of_model(self.model('gpt'), ranks=(2,), clip=False, optimizer='sgd'))

    def test_moving_average(self):
        """It is kept and moved where the weight is updated."""
        self.check(self.setup_of_model(self.model('gpt'), ranks=(2,), strategy='zero1', ema=True))

    def test_stages(self):
        """Each position keeps its own state; the first and the last one have copies of the tied weight."""
        self.check(self.setup_of_model(self.model('gpt', layers=3), positions=2, strategy='zero1', ranks=(2,)))

    def test_gradients(self):
        """Gradients that ranks accumulate as they are updated are on the host too, and others stay on the device."""
        model = self.model('gpt', layers=3)
        for strategy, ranks, positions in (('ddp', 1, 1), ('zero2', 4, 1), ('zero3', 2, 1), ('zero3*megatron=2', 4, 1), ('zero1', 2, 1), ('zero2', 2, 2)):
            with self.subTest(strategy=strategy, ranks=ranks, positions=positions):
                self.check(self.setup_of_model(model, offload='gradients', strategy=strategy, ranks=(ranks,), positions=positions))

    def test_weights(self):
        """Weights of which ranks keep just what they update are copied to the device by each pass, tied and frozen ones too."""
        model = self.model('gpt', layers=3)
        for strategy, ranks, positions in (('ddp', 1, 1), ('zero3', 4, 1), ('megatron', 2, 1), ('zero3*megatron=2', 4, 1), ('zero2', 2, 1), ('zero3', 2, 2)):
            with self.subTest(strategy=strategy, ranks=ranks, positions=positions):
                self.check(self.setup_of_model(model, offload='weights', strategy=strategy, ranks=(ranks,), positions=positions))

    def test_disk(self):
        """State and master copies on the disk, gradients and weights on the host where their layouts allow it."""
        model = self.model('gpt', layers=3)
        for strategy, ranks, positions in (('ddp', 1, 1), ('zero1', 2, 1), ('zero3', 4, 1), ('zero3*megatron=2', 4, 1), ('zero2', 2, 2)):
            with self.subTest(strategy=strategy, ranks=ranks, positions=positions):
                self.check(self.setup_of_model(model, offload='disk', strategy=strategy, ranks=(ranks,), positions=positions))
        self.check(self.setup_of_model(model, offload='disk', ranks=(2,), strategy='zero1', ema=True))
        self.check(self.setup_of_model(model, offload='disk', ranks=(2,), clip=False, optimizer='sgd'))

    def test_updates_on_the_device(self):
        """States that the host, or its disk, holds come to the device for their update, with clipping and without."""
        model = self.model('gpt', layers=3)
        for ranks, positions, clip in ((1, 1, True), (2, 1, True), (4, 1, False), (2, 2, False)):
            with self.subTest(ranks=ranks, positions=positions, clip=clip):
                self.check(self.setup_of_model(model, offload='none', strategy='dos=1', ranks=(ranks,), positions=positions, clip=clip))
        self.check(self.setup_of_model(model, offload='none', strategy='dos=1', ranks=(2,), ema=True))
        self.check(self.setup_of_model(model, offload='none', strategy='dos=1', ranks=(2,), optimizer='sgd'))

    def test_early_updates(self):
        """Without clipping the host updates beside the last backward pass; LAMB, whose ranks sum norms up, behind it."""
        model = self.model('gpt', layers=3)
        for strategy, ranks, positions in (('ddp', 1, 1), ('zero1', 2, 1), ('zero3*megatron=2', 4, 1), ('zero2', 2, 2)):
            for offload in ('optimizer', 'gradients', 'weights', 'disk'):
                with self.subTest(strategy=strategy, positions=positions, offload=offload):
                    self.check(self.setup_of_model(model, offload=offload, strategy=strategy, ranks=(ranks,), positions=positions, clip=False))
        self.check(self.setup_of_model(model, ranks=(2,), clip=False, optimizer='lamb', strategy='zero1'))
        self.check(self.setup_of_model(model, ranks=(2,), clip=False, ema=True, offload='weights', strategy='zero3', recompute=-1))
        self.check(self.setup_of_model(model, positions=2, schedule='zb1p', ranks=(1,), clip=False))
        self.check(self.setup_of_model(self.model('gpt', layers=4), positions=2, schedule='interleaved', chunks=4, ranks=(1,), clip=False))


class RandomPlansTest(OffloadCase):
    def test_commands_are_ordered(self):
        """Random plans, of which half have some states elsewhere, updated there or on the device: no command begins before what it needs (sched-verify-commands)."""
        model = self.model('gpt', layers=3)
        opt = common.WINDLASS.parent / 'windlass-opt'
        for ranks, flags in ((4, ('--optimizer', 'sgd')), (2, ('--optimizer', 'adamw', '--clip')), (1, ('--optimizer', 'adamw'))):
            for seed in range(1, 41):
                with self.subTest(ranks=ranks, flags=flags, seed=seed):
                    outcome = common.run([opt, '--random-plan', model, '--cluster', f'cpu:{ranks}', '--seed', seed, '--micro-batches', 4, *flags, '-o', self.folder / 'random.json'])
                    self.assertEqual(outcome.code, 0, outcome.err)


class PlanTest(OffloadCase):
    def plan(self, model, *flags):
        path = self.folder / 'plan.json'
        outcome = self.succeed('plan', model, '--micro-batches', 4, '--clip', '--json', '-o', path, *flags)
        return json.loads(outcome.out), json.loads(path.read_text()), path

    def test_bytes(self):
        """What the plan says of either memory: 12 bytes of each parameter are with the host, a weight and a gradient with the device."""
        model = self.model('gpt', layers=3)
        for precision, weight in (('f32', 4), ('bf16', 2)):
            kept, _, _ = self.plan(model, '--cluster', 'cpu:2', '--strategy', 'ddp', '--precision', precision)
            moved, plan, _ = self.plan(model, '--cluster', 'cpu:2', '--strategy', 'ddp', '--precision', precision, '--offload', 'optimizer')
            held, now = kept['bytes_per_device'], moved['bytes_per_device']
            parameters = held['gradients'] // 4
            self.assertEqual((held['host'], held['optimizer_state']), (0, 8 * parameters))
            self.assertEqual((now['parameters'], now['gradients'], now['optimizer_state']), (weight * parameters, 4 * parameters, 0))
            self.assertGreaterEqual(now['host'], 12 * parameters)
            # Two gradients and two weights of a kilobyte at most are on their way, and each buffer begins at a multiple of 64 bytes.
            largest = 3 * SIZES['width'] ** 2 * 4 * 4
            self.assertLess(now['host'], 12 * parameters + 4 * largest + 64 * 8 * len(plan['parameters']))
            self.assertLess(now['arena'], held['arena'])
            self.assertTrue(all(row['master'].endswith(' on host') for row in plan['parameters'].values()))

    def check_bytes(self, model, cluster, strategy, are_moved, offloads, kind, copy):
        """The second of two offloads takes the copies of one kind from the device, or leaves all of them there."""
        flags = ('--cluster', cluster, '--strategy', strategy, '--precision', 'bf16')
        held, _, _ = self.plan(model, *flags, '--offload', offloads[0])
        moved, plan, path = self.plan(model, *flags, '--offload', offloads[1])
        was, now = held['bytes_per_device'], moved['bytes_per_device']
        self.assertEqual({row[copy].endswith(' on host') for row in plan['parameters'].values()}, {are_moved})
        self.assertEqual(now[kind], 0 if are_moved else was[kind])
        if are_moved:
            self.assertGreaterEqual(now['host'], was['host'] + was[kind] // 2)
            self.assertLess(now['arena'], was['arena'])
        self.succeed('simulate', model, '--plan', path)

    def test_bytes_of_gradients(self):
        """With the gradients, the device keeps a weight of each parameter, and what is on its way."""
        for strategy, are_moved in (('zero2', True), ('ddp', False)):
            self.check_bytes(self.model('gpt', layers=3), 'cpu:2', strategy, are_moved, ('optimizer', 'gradients'), 'gradients', 'gradient')

    def test_bytes_of_weights(self):
        """With the weights, the device keeps what is on its way, and the host the weights in the type of the device."""
        for strategy, are_moved in (('zero3', True), ('zero2', False)):
            self.check_bytes(self.model('gpt', layers=6), 'h200:2', strategy, are_moved, ('gradients', 'weights'), 'parameters', 'compute')

    def test_search(self):
        """The search knows where the state is, and its bound holds for such plans."""
        model = self.model('gpt', layers=3)
        flags = ('--cluster', 'h200:2', '--precision', 'bf16')
        kept, _, _ = self.plan(model, *flags)
        moved, _, _ = self.plan(model, *flags, '--offload', 'optimizer')
        self.assertLess(moved['bytes_per_device']['arena'], kept['bytes_per_device']['arena'])
        self.assertTrue(0 < moved['bound_seconds'] <= moved['simulated_seconds'])

    def test_fits(self):
        """With the host's memory a plan fits that does not without."""
        model = self.model('gpt', layers=3)
        flags = ('--cluster', 'h200:2', '--strategy', 'ddp')
        moved, _, _ = self.plan(model, *flags, '--offload', 'optimizer')
        limit = moved['bytes_per_device']['arena'] + moved['bytes_per_device']['reserve']['total']
        self.plan(model, *flags, '--offload', 'optimizer', '--memory-limit', limit)
        self.refuse(3, ('the plan needs', f'the limit is {limit} bytes'), 'plan', model, '--micro-batches', 4, '--clip', *flags, '--memory-limit', limit)

    def test_auto(self):
        """The shortest step of the plans that fit is taken, and what does not fit any more is said."""
        model = self.model('gpt', layers=3)
        for strategy in ('zero2', 'auto'):
            flags = ('--cluster', 'h200:2', '--precision', 'bf16', '--strategy', strategy)
            offloads = ('none', *(('some',) if strategy == 'auto' else ()), 'optimizer', 'gradients', 'weights')
            given = {offload: self.plan(model, *flags, '--offload', offload)[0] for offload in offloads}
            needs = {offload: report['bytes_per_device']['arena'] + report['bytes_per_device']['reserve']['total'] for offload, report in given.items()}
            if strategy == 'zero2':
                self.assertGreater(needs['optimizer'], needs['gradients'])
            for least in ('none', 'gradients'):
                with self.subTest(strategy=strategy, least=least):
                    taken, plan, path = self.plan(model, *flags, '--offload', 'auto', '--memory-limit', needs[least])
                    tried = {row['offload']: row['step_seconds'] for row in taken['tried_offloads']}
                    self.assertEqual(list(tried), list(offloads))
                    self.assertEqual(taken['simulated_seconds'], tried[taken['offload']])
                    self.assertEqual(min(seconds for seconds in tried.values() if seconds), tried[taken['offload']])
                    self.assertEqual(any(row['master'].endswith(' on host') for row in plan['parameters'].values()), taken['offload'] != 'none')
                    if strategy == 'zero2' and least == 'none':
                        self.assertEqual(tried, {offload: report['simulated_seconds'] for offload, report in given.items()})
                    if strategy == 'auto':
                        self.succeed('plan', model, '--verify', path)
            lines = self.succeed('plan', model, '--micro-batches', 4, '--clip', *flags, '--offload', 'auto').out
            # A search looks for shorter steps only than those which it has.
            said = '(gave nothing shorter|takes [^;]*)' if strategy == 'auto' else r'takes [^;]*'
            taken = re.search(r'^offload +(\w+);', lines, re.MULTILINE).group(1)
            self.assertRegex(lines, f'offload +{taken}; {"; ".join(f"{offload} {said}" for offload in offloads if offload != taken)}\n')
        self.refuse(3, ('--offload optimizer',), 'plan', model, '--micro-batches', 4, '--clip', '--cluster', 'h200:2', '--strategy', 'ddp',
                    '--offload', 'none', '--memory-limit', needs['gradients'])
        self.refuse(3, ('too much', 'these would fit'), 'plan', model, '--micro-batches', 4, '--clip', '--cluster', 'h200:2', '--strategy', 'ddp',
                    '--offload', 'auto', '--memory-limit', needs['gradients'] // 2)

    def test_some(self):
        """The search keeps the state of as many parameters with the host as have to be there, and bounds all such plans."""
        model = self.model('gpt', layers=3)
        flags = ('--cluster', 'h200:1', '--precision', 'bf16', '--strategy', 'auto')
        given = {offload: self.plan(model, *flags, '--offload', offload)[0] for offload in ('none', 'some', 'optimizer')}
        most, least = ({offload: report['bytes_per_device']['arena'] + report['bytes_per_device']['reserve']['total']
                        for offload, report in given.items()}[offload] for offload in ('none', 'optimizer'))
        self.assertEqual(given['some']['simulated_seconds'], given['none']['simulated_seconds'])
        all_of_it, _, _ = self.plan(model, *flags, '--offload', 'optimizer', '--memory-limit', (most + least) // 2)
        report, plan, path = self.plan(model, *flags, '--offload', 'some', '--memory-limit', (most + least) // 2)
        held = {row['master'].endswith(' on host') for row in plan['parameters'].values()}
        self.assertEqual(held, {False, True})
        self.assertLess(report['bytes_per_device']['host'], all_of_it['bytes_per_device']['host'])
        self.assertLess(report['simulated_seconds'], all_of_it['simulated_seconds'])
        self.assertTrue(0 < report['bound_seconds'] <= report['simulated_seconds'])
        self.assertEqual(plan['claims']['bound_offload'], 'some')
        self.succeed('plan', model, '--verify', path)
        self.refuse(2, ('--offload some needs --strategy auto',), 'plan', model, '--cluster', 'h200:1', '--strategy', 'ddp', '--offload', 'some')

    def places(self, plan):
        """Where the copies of each weight are: a letter for the weight, its gradient and its master copy (K: the disk); U where the device updates it nevertheless."""
        letter = {'device': 'D', 'host': 'H', 'disk': 'K'}
        return [''.join(letter[(row[copy].split(' on ') + ['device'])[1]] for copy in ('compute', 'gradient', 'master')) + ('U' if row.get('updates_on_device') else '')
                for row in plan['parameters'].values()]

    def test_named(self):
        """Strategies that say what the host holds: the labels of their plans, which other subcommands take."""
        model = self.model('gpt', layers=3)
        for strategy, places in (('zero-offload', {'DHH'}), ('zero-infinity', {'HHH'}), ('zero-infinity-disk', {'HHK'}), ('twinflow=0', {'DHH'}), ('twinflow=0.5', {'DDD', 'DHH'}), ('twinflow=1', {'DDD'}),
                                 ('dos=1', {'DDHU'}), ('dos=2', {'DHH'}), ('gemini', {'DDD'}), ('elixir', {'DDD'})):
            with self.subTest(strategy):
                _, plan, path = self.plan(model, '--cluster', 'a100-40g:1x2', '--precision', 'bf16', '--strategy', strategy)
                self.assertEqual(set(self.places(plan)), places)
                self.succeed('simulate', model, '--plan', path)
                self.assertEqual(set(plan['segments'].values()), {'block'} if strategy in ('gemini', 'elixir') else {'kept'})

    def test_named_that_fill_the_device(self):
        """With less memory, the state of the parameters that are used last goes to the host first, then their weights."""
        model = self.model('gpt', layers=6)
        flags = ('--cluster', 'a100-40g:1x2', '--precision', 'bf16', '--strategy', 'gemini')
        most, _, _ = self.plan(model, *flags)
        least, _, _ = self.plan(model, *flags[:-1], 'zero-infinity')
        high, low = (report['bytes_per_device']['arena'] + report['bytes_per_device']['reserve']['total'] for report in (most, least))
        self.assertLess(low, high)
        report, plan, _ = self.plan(model, *flags, '--memory-limit', (low + high) // 2)
        self.assertTrue({'DDD', 'DHH'} <= set(self.places(plan)), set(self.places(plan)))
        self.assertGreater(report['bytes_per_device']['host'], 0)
        self.assertLessEqual(report['bytes_per_device']['arena'] + report['bytes_per_device']['reserve']['total'], (low + high) // 2)

    def test_bad_names(self):
        model = self.model('gpt')
        gpus = ('--cluster', 'a100-40g:1x2', '--micro-batches', 4)
        for strategy, words in (('twinflow=2', ("gives 'twinflow' the share '2': use a number from 0 to 1",)), ('twinflow', ('write twinflow=0.5',)),
                                ('twinflow=half', ("the share 'half'",)), ('dos', ('write dos=2',)), ('dos=0', ("the stride '0'",)), ('zero2*elixir', ('splits the data twice',)),
                                ('elixir*megatron=2', ('packs whole weights into chunks, but megatron splits them',))):
            with self.subTest(strategy):
                self.refuse(1, words, 'plan', model, *gpus, '--strategy', strategy)
        for offload in ('none', 'gradients', 'auto'):
            self.refuse(1, ('--strategy zero-offload says what the host', '--offload; leave one of them out'), 'plan', model, *gpus, '--strategy', 'zero-offload', '--offload', offload)
        self.refuse(1, ("strategy 'elixir' divides the memory of a device", 'take zero-infinity'), 'plan', model, '--cluster', 'cpu:2', '--strategy', 'elixir')
        self.refuse(1, ("strategy 'gemini' measures the memory of one stage", '--stages is 2'), 'plan', model, *gpus, '--strategy', 'gemini', '--stages', 2)
        self.refuse(3, ("strategy 'elixir' has no room for chunks",), 'plan', model, *gpus, '--strategy', 'elixir', '--memory-limit', '2GiB')
        self.refuse(3, ('the plan needs', 'these would fit'), 'plan', model, *gpus, '--strategy', 'zero-offload', '--memory-limit', '1MiB')

    def test_claims(self):
        model = self.model('gpt')
        _, plan, path = self.plan(model, '--cluster', 'cpu:2', '--offload', 'optimizer')
        self.succeed('plan', model, '--verify', path)
        self.assertIn('on host', self.succeed('explain', next(iter(plan['parameters'])), '--plan', path).out)
        self.succeed('simulate', model, '--plan', path)

    def test_bound_of_the_offload(self):
        """The bound is of plans with the same offload, also where the plan itself then leaves every gradient on the device."""
        model = self.model('gpt', layers=3)
        flags = ('--cluster', 'h200:2', '--precision', 'bf16', '--offload', 'gradients')
        text = self.succeed('plan', model, '--micro-batches', 4, '--clip', *flags).out
        self.assertIn('times its lower bound over plans with --offload gradients', text)
        _, plan, path = self.plan(model, *flags)
        self.assertEqual(plan['claims']['bound_offload'], 'gradients')
        self.assertEqual(json.loads(self.succeed('plan', model, '--verify', path, '--json').out)['bound_offload'], 'gradients')
        for other, words in (('none', ('the certificate of mesh',)), ('tape', ('claims.bound_offload must be one of none, some, optimizer, gradients, weights, disk',))):
            path.write_text(json.dumps({**plan, 'claims': {**plan['claims'], 'bound_offload': other}}))
            outcome = common.windlass('plan', model, '--verify', path)
            self.assertNotEqual(outcome.code, 0)
            for word in words:
                self.assertIn(word, outcome.err)

    def test_bad_words(self):
        model = self.model('gpt')
        _, plan, path = self.plan(model, '--cluster', 'cpu:2', '--strategy', 'ddp')
        self.refuse(2, ('--offload takes none, some, optimizer, gradients, weights, disk or auto', "'tape'"), 'plan', model, '--cluster', 'cpu:2', '--offload', 'tape')
        self.refuse(1, ('--offload', '--plan'), 'emit', model, '--plan', path, '--offload', 'optimizer', '-o', self.folder / 'out')
        name = next(iter(plan['parameters']))
        for copies, words in ((('compute',), ('the weight that operators read on the host', 'its master copy', 'is on the device')),
                              (('gradient',), ('its gradient on the host', 'its master copy', 'is on the device')),
                              (('gradient', 'master'), ('only gradients that each micro-batch brings',))):
            edited = json.loads(path.read_text())
            for copy in copies:
                edited['parameters'][name][copy] += ' on host'
            path.with_name('edited.json').write_text(json.dumps(edited))
            self.refuse(1, words, 'emit', model, '--plan', path.with_name('edited.json'), '-o', self.folder / 'out')

    def test_edits(self):
        """A plan may keep the state of some parameters on the host."""
        model = self.model('gpt')
        _, plan, path = self.plan(model, '--cluster', 'cpu:2', '--strategy', 'ddp')
        parameters = [name for name in plan['parameters'] if name.endswith('weight')]
        for name in parameters[::2]:
            plan['parameters'][name]['master'] += ' on host'
        path.write_text(json.dumps(plan))
        self.succeed('emit', model, '--plan', path, '-o', self.folder / 'project')
        steps = (self.folder / 'project' / 'src' / 'step.cpp').read_text()
        self.assertEqual(len(set(re.findall(r'\b(?:d2h|h2d|host)_\d', steps))), 3)

    def test_disk(self):
        """State and master copies are on the disk, and the host holds gradients, weights and what is on its way."""
        model = self.model('gpt', layers=3, width=128)
        flags = ('--cluster', 'a100-40g:1x1', '--precision', 'bf16', '--strategy', 'ddp')
        weights, _, _ = self.plan(model, *flags, '--offload', 'weights')
        report, plan, path = self.plan(model, *flags, '--offload', 'disk')
        was, now = weights['bytes_per_device'], report['bytes_per_device']
        self.assertEqual(was['disk'], 0)
        self.assertLessEqual(now['largest_live_set'], was['largest_live_set'])
        # A master copy and two moments of each parameter, each of which begins with a page.
        elements = sum(math.prod(map(int, re.findall(r'\d+', row['master']))) for row in plan['parameters'].values())
        self.assertTrue(12 * elements <= now['disk'] < 12 * elements + 3 * 4096 * len(plan['parameters']), (now['disk'], elements))
        self.assertLess(now['host'], was['host'])
        self.assertTrue(all(row['master'].endswith(' on disk') and row['gradient'].endswith(' on host') for row in plan['parameters'].values()))
        self.assertGreater(report['simulated_seconds'], weights['simulated_seconds'])
        self.succeed('simulate', model, '--plan', path)
        self.refuse(1, ('only what parameters keep from step to step',), 'emit', model, '--plan', self.edited(path, 'compute', ' on disk'), '-o', self.folder / 'out')
        # In f32 a weight on the host is its own master copy.
        held = self.plan(model, '--cluster', 'cpu:1', '--strategy', 'ddp', '--offload', 'disk')[0]['bytes_per_device']
        self.assertTrue(8 * elements <= held['disk'] < 8 * elements + 2 * 4096 * len(plan['parameters']), held)

    def edited(self, path, copy, suffix):
        """Returns a plan in which one parameter's copy is elsewhere."""
        plan = json.loads(path.read_text())
        row = next(iter(plan['parameters'].values()))
        row[copy] = row[copy].removesuffix(' on host') + suffix
        path.with_name('edited.json').write_text(json.dumps(plan))
        return path.with_name('edited.json')

    def test_searched_for_the_disk(self):
        """The bound is of plans with the state on the disk, and `auto` takes it where the host's memory is too small for it."""
        model = self.model('gpt', layers=3, width=128)
        report, plan, path = self.plan(model, '--cluster', 'h200:1', '--offload', 'disk')
        self.assertTrue(0 < report['bound_seconds'] <= report['simulated_seconds'])
        self.assertEqual(plan['claims']['bound_offload'], 'disk')
        self.succeed('plan', model, '--verify', path)
        machine = json.loads(self.succeed('explain', '--cluster', 'h200:1').out)
        held = report['bytes_per_device']
        least, _, _ = self.plan(model, '--cluster', 'h200:1', '--offload', 'weights')
        machine['hosts'][0]['memory_bytes'] = held['host'] + 64 * 1024
        self.assertLess(machine['hosts'][0]['memory_bytes'], least['bytes_per_device']['host'])
        cluster = self.folder / 'cluster.json'
        cluster.write_text(json.dumps(machine))
        limit = held['arena'] + held['reserve']['total']
        taken, _, _ = self.plan(model, '--cluster', cluster, '--offload', 'auto', '--memory-limit', limit)
        self.assertEqual((taken['offload'], [row['offload'] for row in taken['tried_offloads']][-1]), ('disk', 'disk'))
        machine['hosts'][0]['disk_bytes'] = 4096
        cluster.write_text(json.dumps(machine))
        self.refuse(3, ("of the host's disk per device", '4096 bytes', '--offload weights'), 'plan', model, '--micro-batches', 4, '--clip', '--cluster', cluster,
                    '--offload', 'disk')

    def test_host_without_room(self):
        """The memory of the host is a limit of its own."""
        model = self.model('gpt')
        _, plan, _ = self.plan(model, '--cluster', 'h200:2')
        machine = plan['cluster']
        machine['hosts'][0]['memory_bytes'] = 2048
        path = self.folder / 'cluster.json'
        path.write_text(json.dumps(machine))
        self.refuse(3, ("of the host's memory per device", '1024 bytes', 'leave --offload out'), 'plan', model, '--micro-batches', 4,
                    '--cluster', path, '--offload', 'optimizer')


class ProgramsTest(OffloadCase):
    def train(self, model, run, steps, *flags, ranks=2):
        gradients = self.folder / f'{run}.safetensors'
        data = self.folder / 'data.safetensors'
        self.succeed('train', model, '-n', ranks, '--data', data, '--steps', steps, '--micro-batches', 4, '-o', self.folder / run, '--eval-data', data,
                     '--eval-every', 1, '--eval-batches', 2, '--dump-gradients', gradients, *flags)
        newest = sorted((self.folder / run / 'checkpoints').glob('step-*'))[-1]
        self.succeed('checkpoint', 'export', newest, '--state', '-o', self.folder / run / 'merged.safetensors')
        rows = [json.loads(row) for row in (self.folder / run / 'metrics.jsonl').read_text().splitlines()]
        return [[row.get(name) for name in ('loss', 'grad_norm', 'eval_loss')] for row in rows], (self.folder / run / 'merged.safetensors').read_bytes()

    def assert_same_run(self, run, other):
        """All but the norms to the bit: the host adds up the squares of gradients as they arrive, the device in the order of its update."""
        (rows, values), (other_rows, other_values) = run, other
        self.assertEqual([[row[0], row[2]] for row in rows], [[row[0], row[2]] for row in other_rows])
        norms = [numpy.array([row[1] for row in which], float) for which in (rows, other_rows)]
        numpy.testing.assert_allclose(*norms, rtol=1e-6)
        self.assertTrue(values == other_values)

    def assert_same_gradients(self, run, other):
        self.assertEqual((self.folder / f'{run}.safetensors').read_bytes(), (self.folder / f'{other}.safetensors').read_bytes())

    def assert_close(self, run, other):
        """Gradients of the first step within rounding, and parameters where AdamW has moved them by 1e-3 and more."""
        for path, bound in (('{}.safetensors', 1e-6), ('{}/merged.safetensors', 1e-5)):
            ours, theirs = (safetensors_file.read(self.folder / path.format(name)) for name in (run, other))
            self.assertEqual(set(ours), set(theirs))
            for name, values in ours.items():
                numpy.testing.assert_allclose(values, theirs[name], rtol=0, atol=bound, err_msg=name)

    def test_same_bits(self):
        """Losses, norms, evaluations, gradients, parameters and state of a run, and of one that goes on from the other's checkpoint."""
        model = self.model('gpt')
        self.batches(model, 32).rename(self.folder / 'data.safetensors')
        runs = (('--strategy', 'ddp'), ('--strategy', 'zero1'), ('--strategy', 'megatron'), ('--strategy', 'zero3'), ('--stages', 2, '--strategy', 'ddp'),
                ('--strategy', 'zero2', '--communicator', 'mpi'))
        # In the others each rank accumulates gradients of which it updates a part at most: these stay on the device.
        with_gradients = runs[3:]
        if not ALL:
            runs = runs[1], runs[3], runs[4]
        for number, flags in enumerate(runs):
            with self.subTest(flags=flags):
                kept = self.train(model, f'kept{number}', 4, *flags)
                moved = self.train(model, f'moved{number}', 2, *flags, '--offload', 'optimizer')
                self.assertEqual(moved[0], kept[0][:len(moved[0])])
                self.assert_same_gradients(f'moved{number}', f'kept{number}')
                self.assertEqual(self.train(model, f'moved{number}', 4, *flags, '--offload', 'optimizer', '--resume'), kept)
                if flags not in with_gradients:
                    continue
                added = self.train(model, f'gradients{number}', 4, *flags, '--offload', 'gradients')
                if '--stages' in flags:
                    # The device adds up in the kernels of products, the host what these give.
                    self.assert_close(f'gradients{number}', f'kept{number}')
                else:
                    self.assert_same_run(added, kept)
                    self.assert_same_gradients(f'gradients{number}', f'kept{number}')
                self.train(model, f'weights{number}', 2, *flags, '--offload', 'weights')
                self.assert_same_gradients(f'weights{number}', f'gradients{number}')
                self.assertEqual(self.train(model, f'weights{number}', 4, *flags, '--offload', 'weights', '--resume'), added)
                self.train(model, f'disk{number}', 2, *flags, '--offload', 'disk')
                self.assertEqual(self.train(model, f'disk{number}', 4, *flags, '--offload', 'disk', '--disk', self.folder, '--resume'), added)
        self.train(model, 'changing', 2, '--strategy', 'ddp', '--offload', 'optimizer')
        self.assertEqual(self.train(model, 'changing', 4, '--strategy', 'ddp', '--resume'),
                         self.train(model, 'kept', 4, '--strategy', 'ddp'))

    def test_named(self):
        """Strategies that say what the host holds train as those do that shard alike and keep all on the device."""
        model = self.model('gpt')
        self.batches(model, 32).rename(self.folder / 'data.safetensors')
        for strategy, sharded in (('twinflow=0.5', 'zero2'), ('dos=1', 'zero3'), ('zero-infinity', 'zero3'), *((('zero-offload', 'zero2'), ('gemini', 'zero3')) if ALL else ())):
            for ranks in (1, 2):
                with self.subTest(strategy=strategy, ranks=ranks):
                    kept = self.train(model, f'kept-{strategy}-{ranks}', 2, '--strategy', sharded, ranks=ranks)
                    moved = self.train(model, f'moved-{strategy}-{ranks}', 2, '--strategy', strategy, ranks=ranks)
                    if ranks == 2:
                        self.assert_same_run(moved, kept)
                    else:
                        # A single rank adds gradients up in the kernels of products where they stay on the device.
                        numpy.testing.assert_allclose(numpy.array(moved[0], float), numpy.array(kept[0], float), rtol=1e-5)

    def test_a_part_updated_on_the_device(self):
        """Of one plan, the host updates what the device does not, with clipping and without; to the bit as where it updates everything."""
        model = self.model('gpt', layers=3)
        self.batches(model, 32).rename(self.folder / 'data.safetensors')
        for clip in (('--clip',), ()):
            path, mixed = self.folder / 'plan.json', self.folder / 'mixed.json'
            self.succeed('plan', model, '--cluster', 'cpu:2', '--micro-batches', 4, *clip, '--strategy', 'zero3', '--offload', 'gradients', '-o', path)
            plan = json.loads(path.read_text())
            for number, row in enumerate(plan['parameters'].values()):
                if number % 2 == 0:
                    row['updates_on_device'] = True
                    row['gradient'] = row['gradient'].removesuffix(' on host') if number % 4 == 0 else row['gradient']
            mixed.write_text(json.dumps(plan))
            with self.subTest(clip=clip):
                runs = [self.train(model, name, 2, '--plan', file, ranks=2) for name, file in ((f'host{clip}', path), (f'mixed{clip}', mixed))]
                self.assertEqual(*runs)


if __name__ == '__main__':
    part = sys.argv.pop(1) if sys.argv[1:2] in (['programs'], ['all']) else 'levels'
    ALL = part == 'all'
    kept = ('LevelsTest', 'RandomPlansTest', 'PlanTest') if part == 'levels' else ('ProgramsTest',)
    for name in ('LevelsTest', 'RandomPlansTest', 'PlanTest', 'ProgramsTest'):
        if name not in kept:
            del globals()[name]
    common.main()
