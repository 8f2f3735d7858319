"""Plans with several stages: each level and the programs train like the model in one piece, for any schedule that programs run.

    test_pipelines.py                      every level of the interpreter, plans, refusals
    test_pipelines.py programs             emitted programs
    test_pipelines.py plans [N [FAMILY]]   N random plans (3) for the ranks of each stage, of each family or of one
"""

import dataclasses
import json
import sys

import common
import equivalence
import test_average
import test_plans

# Positions, chunks of each, schedule, strategy, ranks of each position, segments that are recomputed.
PIPELINES = (
    (2, 1, '1f1b', 'zero1', 2, 0),
    (2, 2, 'interleaved', 'megatron', 2, -1),
    (3, 1, 'gpipe', 'zero3', 1, 2),
    (2, 2, 'interleaved', 'zero3*megatron=2', 4, 0),
    (2, 2, 'breadth-first', 'zero2', 2, 0),
)
# Backwards in two parts, and waves, at whose turns two chunks are one.
SPLIT = (
    (2, 1, 'zb1p', 'zero1', 2, 0),
    (2, 2, 'zbv', 'megatron', 2, -1),
    (3, 1, 'zb2p', 'zero3', 1, 2),
    (2, 2, 'interleaved-zero-bubble', 'zero2', 2, 0),
    (2, 2, 'v-min', 'zero3*megatron=2', 4, 0),
    (2, 2, 'dualpipev', 'ddp', 1, 0),
    (2, 4, 'hanayo', 'zero2', 1, 0),
)
SIZES = dict(tokens=8, width=16, vocabulary=32)


class PipelineCase(test_average.AverageCase):
    def model(self, family, **change):
        return self.small(family, **{'layers': 3, **SIZES, **change})

    def setup_of_model(self, model, **change):
        return dataclasses.replace(super().setup_of(model, micro_batches=4, **change), average='micro-batches')

    def batches(self, model, count):
        return common.Case.batches(self, model, count)


class LevelsTest(PipelineCase):
    def check_all(self, family, pipelines, **change):
        model = self.model(family, **change)
        for positions, chunks, schedule, strategy, ranks, recompute in pipelines:
            with self.subTest(family=family, schedule=schedule, strategy=strategy):
                self.check(self.setup_of_model(model, positions=positions, chunks=chunks, schedule=schedule, strategy=strategy,
                                               ranks=(ranks,), recompute=recompute))

    def test_gpt(self):
        """The first and the last position train copies of the tied weight of embedding and head."""
        self.check_all('gpt', PIPELINES)

    def test_backwards_in_two_parts(self):
        self.check_all('gpt', SPLIT, layers=4)

    def test_untied(self):
        self.check_all('gpt', PIPELINES[:1], tied=False)
        # The first chunk's weight gradients read what the norms' gradients would else keep to themselves.
        self.check_all('gpt', ((4, 1, 'zb1p', 'ddp', 1, 0),), tied=False, layers=4, batch=1)

    def test_families(self):
        """Rotations of frozen frequencies, images without a vocabulary."""
        for family in ('llama', 'vit'):
            self.check_all(family, PIPELINES[:2] + SPLIT[:2])

    def test_dropout(self):
        """The keys of dropouts are inputs, of which each chunk makes its masks."""
        self.check_all('gpt', PIPELINES[:2] + SPLIT[:2], dropout=0.1)

    def test_graphs_without_layers(self):
        for structure in range(4):
            self.check_all('irregular', PIPELINES[:1], structure=structure)

    def test_experts(self):
        self.check_all('moe', PIPELINES[1:2])

    def test_precision(self):
        """In 16 bits, for f16 with a loss scale."""
        model = self.model('gpt')
        for precision in ('bf16', 'f16'):
            judge = equivalence.Equivalence(self.setup_of_model(model, positions=2, strategy='zero1', precision=precision))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(l2, 'L2', 'f64')
            for module, level in judge.lower_for(l2, 2):
                with self.subTest(precision=precision, level=level):
                    judge.compare(reference, judge.run(module, level, 'f64', '--ranks', 2 if level == 'L3' else 4), 'f64')

    def test_optimizers(self):
        """Each position makes the steps of its parameters, whatever operators they are of."""
        model = self.model('gpt')
        for optimizer, ema in (('adafactor', False), ('lamb', True), ('muon', False)):
            self.check(self.setup_of_model(model, positions=2, strategy='zero1', ranks=(2,), optimizer=optimizer, ema=ema))

    def test_no_clipping(self):
        model = self.model('gpt')
        self.check(self.setup_of_model(model, positions=2, ranks=(1,), clip=False, optimizer='sgd'))

    def test_tokens(self):
        """Weighted by labels, whose number over all micro-batches is known before the step."""
        model = self.model('gpt')
        self.check(dataclasses.replace(self.setup_of_model(model, positions=2, ranks=(2,)), average='tokens'))


class RandomPlansTest(test_plans.PlansCase):
    COUNT, FAMILIES = 3, [family for family in test_plans.FAMILIES if family not in ('mlp', 'odd')]
    # Positions, chunks of each, schedule, ranks of each position.
    SHAPES = ((2, 1, '1f1b', 2), (2, 1, 'gpipe', 4), (2, 2, 'interleaved', 2), (3, 1, '1f1b', 2), (2, 1, 'zb1p', 2), (2, 2, 'zbv', 2), (2, 2, 'breadth-first', 2))

    def test_any_plan(self):
        for family in self.FAMILIES:
            for number, (positions, chunks, schedule, ranks) in enumerate(self.SHAPES):
                setup = self.setup_of_family(family, positions=positions, chunks=chunks, schedule=schedule, clip=number % 2 == 0)
                judge = equivalence.Equivalence(setup)
                l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
                reference = judge.run(l2, 'L2', 'f64')
                cut = judge.lower(l2, equivalence.TO_CHUNKS, 'cut.mlir', devices=positions * ranks)
                for seed in range(number, self.COUNT, len(self.SHAPES)):
                    with self.subTest(family=family, positions=positions, schedule=schedule, seed=seed):
                        l3 = judge.lower(cut, test_plans.TO_L3 + equivalence.TO_L3B, 'l3.mlir', seed=seed, R=ranks)
                        l4 = judge.lower(l3, equivalence.TO_L4, 'l4.mlir')
                        l5 = judge.lower(l4, equivalence.TO_FUSED + equivalence.TO_L5, 'l5.mlir')
                        for module, level in ((l4, 'L4'), (l5, 'L5')):
                            judge.compare(reference, judge.run(module, level, 'f64', '--ranks', positions * ranks), 'f64')


class SeedsTest(test_plans.PlansCase):
    """Random plans that were refused once."""

    def check_seed(self, family, seed):
        judge = equivalence.Equivalence(self.setup_of_family(family, positions=2, schedule='gpipe'))
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        cut = judge.lower(l2, equivalence.TO_CHUNKS, 'cut.mlir', devices=8)
        l3 = judge.lower(cut, test_plans.TO_L3 + equivalence.TO_L3B, 'l3.mlir', seed=seed, R=4)
        l4 = judge.lower(l3, equivalence.TO_L4, 'l4.mlir')
        l5 = judge.lower(l4, equivalence.TO_FUSED + equivalence.TO_L5, 'l5.mlir')
        reference = judge.run(l2, 'L2', 'f64')
        for module, level in ((l4, 'L4'), (l5, 'L5')):
            judge.compare(reference, judge.run(module, level, 'f64', '--ranks', 8), 'f64')

    def test_values_of_a_later_forward(self):
        """The first chunk's backward reads a slice that the second one's forward has made: it comes back with the gradients."""
        self.check_seed('moe', 153)

    def test_a_copy_in_the_place_of_what_a_collective_read(self):
        """State comes from the host into bytes that are free because the compute stream has waited for a collective."""
        self.check_seed('irregular', 185)


class PlanTest(PipelineCase):
    def plan(self, model, *flags):
        path = self.folder / 'plan.json'
        outcome = self.succeed('plan', model, '--cluster', 'cpu:4', '--micro-batches', 8, '-o', path, *flags)
        return path, json.loads(path.read_text()), outcome.out

    def test_plan(self):
        model = self.model('llama', layers=4)
        path, plan, said = self.plan(model, '--strategy', 'zero1', '--stages', 2, '--schedule', 'interleaved')
        self.assertEqual({**plan['pipeline'], 'begins': None}, {'positions': 2, 'schedule': 'interleaved', 'begins': None})
        # Each of the four chunks has one of the four layers.
        self.assertEqual([name.rpartition('.layers.')[2].partition('.')[0] for name in plan['pipeline']['begins']], ['1', '2', '3'])
        self.assertIn('4 in 2 stages by interleaved (data=2)', said)
        self.assertIn('position 1 busy', said)
        program = self.folder / 'program'
        self.succeed('emit', model, '--plan', path, '-o', program)
        self.assertEqual((program / 'plan.json').read_text(), path.read_text())
        straight = self.folder / 'straight.json'
        path.rename(straight)
        path, _, _ = self.plan(model, '--strategy', 'zero1', '--stages', 2)
        outcome = common.run([common.WINDLASS, 'diff', straight, path])
        self.assertIn('2 positions by interleaved -> 2 positions by 1f1b', outcome.out)

    def machine(self, ranks, link):
        path = self.folder / f'machine-{link}.json'
        path.write_text(json.dumps({
            'version': 1, 'device_types': {'d': {'backend': 'cuda', 'memory_bytes': 1 << 40, 'memory_bandwidth_bytes_per_s': 10**11, 'peak_flops_per_s': {'f32': 10**10}}},
            'hosts': [{'count': 1, 'devices': ranks, 'device_type': 'd', 'memory_bytes': 1 << 40}],
            'link_tiers': [{'name': 'link', 'devices': ranks, 'bandwidth_bytes_per_s': link, 'latency_s': 1e-6}]}))
        return path

    def search(self, model, machine, *flags):
        path = self.folder / 'searched.json'
        said = json.loads(self.succeed('plan', model, '--cluster', machine, '--micro-batches', 16, '--json', '-o', path, *flags).out)
        return said, path

    def test_search(self):
        """A searched plan for the ranks of each stage takes no longer than a named one, and its claims hold."""
        model, machine = self.model('llama', layers=4), self.machine(8, 10**9)
        found, path = self.search(model, machine, '--stages', 2)
        self.assertEqual((found['pipeline']['stages'], found['bound_stages']), (2, [2]))
        self.assertAlmostEqual(found['step_over_bound'], found['simulated_seconds'] / found['bound_seconds'])
        self.assertGreaterEqual(found['step_over_bound'], 1)
        verified = json.loads(self.succeed('plan', model, '--verify', path, '--json').out)
        self.assertEqual((verified['verified'], verified['bound_stages']), (True, [2]))
        self.assertEqual(verified['bound_nanoseconds'], round(found['bound_seconds'] * 1e9))
        for strategy in ('ddp', 'zero1', 'zero2', 'zero3', 'megatron', 'zero1*megatron=2'):
            named, _ = self.search(model, machine, '--stages', 2, '--strategy', strategy)
            self.assertLessEqual(found['simulated_seconds'], named['simulated_seconds'])

    def test_no_step_is_below_the_bound(self):
        """The bound of a searched plan holds for named strategies by the same schedule. Where operators decide and micro-batches are many, it is near."""
        machine = self.machine(4, 10**11)
        for family in ('gpt', 'llama'):
            model = self.model(family, layers=4, width=64)
            for schedule in ('1f1b', 'gpipe', 'interleaved', 'interleaved=2', 'zb1p', 'zbv'):
                found, path = self.search(model, machine, '--stages', 2, '--schedule', schedule)
                self.assertLess(found['step_over_bound'], 1.5)
                self.succeed('plan', model, '--verify', path)
                for strategy in ('ddp', 'zero2', 'zero3', 'megatron'):
                    with self.subTest(family=family, schedule=schedule, strategy=strategy):
                        named, _ = self.search(model, machine, '--stages', 2, '--schedule', schedule, '--strategy', strategy)
                        self.assertGreaterEqual(named['simulated_seconds'], found['bound_seconds'])

    def test_memory_bounds_the_step(self):
        """With less memory the bound of the same pipelines is no lower, and holds for the plan that is found."""
        model, bounds = self.model('gpt', layers=4, width=64, tokens=64), []
        machine = self.machine(4, 10**9)
        flags = ('--stages', 2, '--reserve', 0)
        roomy, _ = self.search(model, machine, *flags)
        for share in (1, 0.8, 0.6):
            found, path = self.search(model, machine, *flags, '--memory-limit', int(share * roomy['bytes_per_device']['arena']))
            self.assertLessEqual(found['bound_seconds'], found['simulated_seconds'])
            self.succeed('plan', model, '--verify', path)
            bounds.append(found['bound_seconds'])
        # Prices are searched, so that bounds which memory hardly changes differ a little.
        for before, after in zip(bounds, bounds[1:]):
            self.assertGreaterEqual(after, 0.999 * before)

    def test_false_bounds(self):
        """A bound that the certificates do not prove, or of other plans than they are of, is refused."""
        model, machine = self.model('llama', layers=4), self.machine(4, 10**9)
        _, path = self.search(model, machine, '--stages', 2)
        proof = path.with_suffix('.cert')
        plan, certificate = json.loads(path.read_text()), json.loads(proof.read_text())
        self.assertEqual([row['name'][3:] for row in certificate['certificates']], [[2]] * len(certificate['certificates']))
        bound = plan['claims']['bound_nanoseconds']
        self.assertEqual(bound, min(row['bound'] for row in certificate['certificates']) // 2)

        def refuse(words):
            outcome = common.windlass('plan', model, '--verify', path)
            self.assertEqual(outcome.code, 1, outcome.out)
            self.assertIn(words, outcome.err)
        for change, words in (({'bound_nanoseconds': bound + 1}, f'bound_nanoseconds {bound + 1}, but it is {bound}'),
                              ({'bound_stages': [1]}, 'other numbers of stages than its own, which has 2 stages'),
                              ({'bound_stages': [2, 3]}, 'plans of 3 stages, which cannot share 4 devices evenly'),
                              ({'bound_schedule': 'gpipe'}, 'cut and scheduled as the search does, but it is not one'),
                              ({'bound_chunks': 2}, 'cut and scheduled as the search does, but it is not one'), ({'bound_chunks': 0}, 'claims.bound_chunks'),
                              ({'bound_stages': [1, 2]}, 'meshes, but'), ({'bound_stages': [2, 2]}, 'claims.bound_stages must be'),
                              ({'bound_stages': []}, 'claims.bound_stages must be')):
            path.write_text(json.dumps({**plan, 'claims': {**plan['claims'], **change}}))
            refuse(words)
        path.write_text(json.dumps(plan))
        certificate['certificates'][0]['bound'] += 1
        proof.write_text(json.dumps(certificate))
        refuse('of 2 stages claims the bound')
        certificate['certificates'][0]['name'].pop()
        proof.write_text(json.dumps(certificate))
        refuse('of 2 stages is wanted')

    def test_stages_are_searched(self):
        """Over slow links stages send less than gradients take; over fast ones no rank waits for others without."""
        model = self.model('llama', layers=4, width=64)
        for link, has_stages in ((3 * 10**7, True), (10**11, False)):
            plans = []
            for threads in (1, 2, 3):
                found, path = self.search(model, self.machine(4, link), '--stages', 'auto', '--threads', threads)
                plans.append((path.read_bytes(), path.with_suffix('.cert').read_bytes()))
            self.assertTrue(plans[0] == plans[1] == plans[2], 'plans of different numbers of threads')
            tried = {row['stages']: row['step_seconds'] for row in found['tried_stages']}
            stages = found['pipeline']['stages'] if 'pipeline' in found else 1
            self.assertEqual(stages > 1, has_stages)
            self.assertEqual(sorted(tried), [1, 2, 4])
            self.assertEqual(tried[stages], min(seconds for seconds in tried.values() if seconds is not None))
            self.assertAlmostEqual(tried[stages], found['simulated_seconds'])
            # One bound of all of them, which each alone is not below.
            self.assertEqual(found['bound_stages'], [1, 2, 4])
            self.assertLessEqual(found['bound_seconds'], found['simulated_seconds'])
            self.succeed('plan', model, '--verify', path)
            for count in (2, 4):
                given, _ = self.search(model, self.machine(4, link), '--stages', count)
                self.assertLessEqual(found['simulated_seconds'], given['simulated_seconds'])

    def test_simulate_and_explain(self):
        """The timeline has a process for each position, whose streams run one command at a time; operators know their chunk."""
        model = self.model('llama', layers=4)
        path, _, _ = self.plan(model, '--strategy', 'zero1', '--stages', 2)
        trace = self.folder / 'trace.json'
        self.succeed('simulate', model, '--plan', path, '-o', trace)
        events = json.loads(trace.read_text())['traceEvents']
        names = {event['pid']: event['args']['name'] for event in events if event['name'] == 'process_name'}
        self.assertEqual(sorted(names.values()), ['predicted, position 0', 'predicted, position 1'])
        threads = [(names[event['pid']][-1], event['args']['name']) for event in events if event['name'] == 'thread_name']
        self.assertIn(('0', 'messages with position 1'), threads)
        self.assertIn(('1', 'messages with position 0'), threads)
        runs = {}
        for event in events:
            if event['ph'] == 'X':
                runs.setdefault((event['pid'], event['tid']), []).append((event['ts'], event['ts'] + event['dur']))
        self.assertEqual({pid for pid, _ in runs}, set(names))
        for of_stream in runs.values():
            of_stream.sort()
            for one, following in zip(of_stream, of_stream[1:]):
                self.assertLessEqual(one[1], following[0] + 1e-6)
        for layer, chunk in ((0, 0), (3, 1)):
            for adjoint in ('', '.grad.lhs'):
                said = json.loads(self.succeed('explain', f'model.layers.{layer}.mlp.matmul.0{adjoint}', model, '--plan', path, '--json').out)
                self.assertEqual(said['operators'][0]['chunk'], chunk)

    def test_edited_plans(self):
        model = self.model('llama', layers=4)
        path, plan, _ = self.plan(model, '--strategy', 'zero1', '--stages', 2, '--schedule', 'interleaved')
        begins = plan['pipeline']['begins']
        edited, out = self.folder / 'edited.json', self.folder / 'out'
        for change, words in (({'begins': begins[::-1]}, 'with which chunk 2 could begin behind chunk 1'), ({'begins': ['x'] * 3}, 'has no operator "x"'),
                              ({'positions': 4}, '2 ranks of each of 4 positions'), ({'positions': 1}, 'from 2 to'), ({'schedule': 'a\0b'}, "'a\\x00b'"),
                              ({'schedule': 'dualpipe'}, 'runs the model in two directions'), ({'begins': begins[:2]}, '2 positions cannot share 3 evenly'), ({'more': 1}, 'pipeline.more'),
                              ({'schedule': 'own'}, "are missing, but the schedule is 'own'"), ({'orders': ['positions 2']}, "are given, but the schedule is 'interleaved'"),
                              ({'schedule': 'own', 'orders': ['positions 2', 'chunks 0 1 0 1', 'position 0: 9x(fly)']}, 'fly')):
            edited.write_text(json.dumps({**plan, 'pipeline': {**plan['pipeline'], **change}}))
            outcome = common.windlass('emit', model, '--plan', edited, '-o', out)
            self.assertEqual(outcome.code, 1, outcome.err)
            self.assertIn(words, outcome.err)
        edited.write_text(json.dumps({**plan, 'pipeline': {**plan['pipeline'], 'schedule': 'gpipe'}}))
        self.succeed('emit', model, '--plan', edited, '-o', out)

    def write_schedule(self, *flags):
        """Writes the file of a schedule of 2 ranks."""
        path = self.folder / 'schedule.json'
        self.succeed('schedule', '--ranks', 2, *flags, '-o', path)
        return path

    def test_own_schedule(self):
        """A plan by a schedule of a file holds its orders. Each replica runs as many micro-batches as the file has."""
        model = self.model('llama', layers=4)
        path, plan, said = self.plan(model, '--schedule', self.write_schedule('--micro-batches', 4, '--split', '--cap', 2))
        self.assertEqual((plan['pipeline']['schedule'], plan['pipeline']['positions'], plan['mesh']['replicas']), ('own', 2, 2))
        self.assertIn('input_gradient', ' '.join(plan['pipeline']['orders']))
        self.succeed('plan', model, '--verify', path)
        self.plan(model, '--strategy', 'ddp', '--stages', 2, '--schedule', self.write_schedule('--micro-batches', 4, '--name', '1f1b'))
        named = self.folder / 'named.json'
        self.succeed('plan', model, '--cluster', 'cpu:4', '--micro-batches', 8, '-o', named, '--strategy', 'ddp', '--stages', 2)
        step = [json.loads(self.succeed('simulate', model, '--plan', each, '--json').out)['predicted_seconds'] for each in (path, named)]
        self.assertEqual(step[0], step[1])
        self.assertIn('2 positions by own', common.run([common.WINDLASS, 'diff', named, path]).out)

    def refuse(self, code, words, *flags):
        outcome = common.windlass('plan', *flags)
        self.assertEqual(outcome.code, code, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)

    def test_refusals(self):
        model = self.model('gpt')
        flags = (model, '--cluster', 'cpu:4')
        self.refuse(2, ('--stages auto', '--strategy auto'), *flags, '--stages', 'auto', '--strategy', 'zero1')
        self.refuse(2, ('--stages takes a number from 1 to', "'many'"), *flags, '--stages', 'many')
        self.refuse(2, ('--stages takes a number from 1 to', "'0'"), *flags, '--stages', 0)
        self.refuse(5, ('times its lower bound, but --max-ratio is 1.0000',), *flags, '--stages', 2, '--max-ratio', 1)
        self.succeed('plan', *flags, '--stages', 2, '--max-ratio', 10)
        self.refuse(3, ('no plan of 2 stages', '1000000 bytes'), *flags, '--stages', 2, '--memory-limit', 1000000)
        self.refuse(1, ('--stages is 3', '4 devices'), *flags, '--stages', 3, '--strategy', 'ddp')
        self.refuse(2, ('--schedule takes the name', 'zigzag'), *flags, '--stages', 2, '--strategy', 'ddp', '--schedule', 'zigzag')
        self.refuse(1, ('it runs the model in two directions',), *flags, '--stages', 2, '--strategy', 'ddp', '--schedule', 'chimera')
        self.refuse(1, ('places where chunks could begin', 'use fewer stages'), *flags, '--stages', 4, '--strategy', 'ddp', '--schedule', 'interleaved=99')
        self.refuse(2, ('hanayo has 2 chunks of each stage', 'not 1'), *flags, '--stages', 2, '--strategy', 'ddp', '--schedule', 'hanayo=1')
        own = self.write_schedule('--micro-batches', 4)
        self.refuse(1, ('--stages is 4', 'has 2 ranks'), *flags, '--stages', 4, '--schedule', own)
        self.refuse(1, ('orders are of 4 micro-batches', 'each rank runs 3'), *flags, '--strategy', 'ddp', '--micro-batches', 6, '--schedule', own)
        self.refuse(1, ('no mesh with which its schedule can run', 'orders are of 4 micro-batches'), *flags, '--micro-batches', 6, '--schedule', own)
        own.write_text(json.dumps({'orders': [[['F', 0, 0]], [['F', 1, 0], ['BW', 1, 0]]]}))
        self.refuse(1, ('rank 0 runs no BW or B of micro-batch 0 of chunk 0',), *flags, '--schedule', own)


class ProgramsTest(PipelineCase):
    KINDS = ('loss', 'grad_norm', 'gradient', 'parameter', 'state')

    def check_program(self, family, *flags, **change):
        setup = self.setup_of_model(self.model(family, **change))
        judge = equivalence.Equivalence(setup)
        reference = self.reference(judge)
        judge.compare(reference, self.dump_of_program(setup, 4, '--cluster', 'cpu:4', *flags), 'f32', self.KINDS)

    def test_gpt(self):
        self.check_program('gpt', '--stages', 2, '--strategy', 'zero1')

    def test_interleaved(self):
        self.check_program('llama', '--stages', 2, '--schedule', 'interleaved', '--strategy', 'zero3', layers=4)

    def test_backwards_in_two_parts(self):
        self.check_program('llama', '--stages', 2, '--schedule', 'zb1p', '--strategy', 'zero3', layers=4)

    def test_waves(self):
        """The first and the last chunk, which share a weight, are on one position."""
        self.check_program('gpt', '--stages', 2, '--schedule', 'zbv', '--strategy', 'zero1', layers=4, dropout=0.1)

    def test_searched(self):
        self.check_program('gpt', '--stages', 2)

    def test_own_schedule(self):
        """One rank's backwards are in two parts, with other actions between them; the other's are whole in the file."""
        own = self.folder / 'own.json'
        own.write_text(json.dumps({'orders': [
            [['F', 0, 0], ['F', 0, 1], ['BW', 0, 0], ['BW', 0, 1]],
            [['F', 1, 0], ['F', 1, 1], ['B', 1, 0], ['B', 1, 1], ['W', 1, 0], ['W', 1, 1]]]}))
        self.check_program('llama', '--strategy', 'zero1', '--schedule', own, layers=4)

    def test_every_rank_a_stage(self):
        self.check_program('gpt', '--stages', 4, '--schedule', 'gpipe', '--strategy', 'ddp', dropout=0.1)

    def train(self, model, run, steps, *flags):
        self.succeed('train', model, '--data', self.folder / 'data.safetensors', '--steps', steps, '--micro-batches', 8, '-o', self.folder / run, *flags)
        newest = sorted((self.folder / run / 'checkpoints').glob('step-*'))[-1]
        self.succeed('checkpoint', 'export', newest, '--state', '-o', self.folder / run / 'merged.safetensors')
        losses = [json.loads(row)['loss'] for row in (self.folder / run / 'metrics.jsonl').read_text().splitlines()]
        return losses, (self.folder / run / 'merged.safetensors').read_bytes()

    def test_checkpoints(self):
        """A run of stages goes on as if it had not stopped; its checkpoints load into one without, and the other way round."""
        model = self.model('gpt', layers=2)
        self.batches(model, 48).rename(self.folder / 'data.safetensors')
        stages = ('-n', 4, '--stages', 2, '--strategy', 'zero1')
        plain = ('-n', 2, '--strategy', 'ddp')
        straight = self.train(model, 'straight', 6, *stages)
        self.train(model, 'stopped', 3, *stages)
        self.assertEqual(self.train(model, 'stopped', 6, *stages, '--resume'), straight)
        for first, second in ((stages, plain), (plain, stages)):
            run = f'first with {len(first)} flags'
            self.train(model, run, 3, *first)
            losses, _ = self.train(model, run, 6, *second, '--resume')
            self.assertEqual(len(losses), 6)
            for loss, wanted in zip(losses, straight[0]):
                self.assertAlmostEqual(loss, wanted, delta=1e-5 * wanted)

    def test_processes(self):
        self.check_program('gpt', '--stages', 2, '--strategy', 'megatron', '--communicator', 'mpi')


if __name__ == '__main__':
    suites = {'programs': ['ProgramsTest'], 'plans': ['RandomPlansTest']}
    kept = suites.get(''.join(sys.argv[1:2]), ['LevelsTest', 'SeedsTest', 'PlanTest'])
    words = [sys.argv.pop(1) for word in sys.argv[1:] if word in suites or 'RandomPlansTest' in kept]
    if words[1:]:
        RandomPlansTest.COUNT = int(words[1])
    if words[2:]:
        RandomPlansTest.FAMILIES = words[2:]
    for name in ('LevelsTest', 'SeedsTest', 'PlanTest', 'ProgramsTest', 'RandomPlansTest'):
        if name not in kept:
            del globals()[name]
    common.main()
