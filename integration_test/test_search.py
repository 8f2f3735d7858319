"""Plans that the search finds give the same numbers as the unplanned graph (design §2), at L3 and L5: on machines of several kinds, so that
it finds plans of several kinds, and on meshes beside the best.

    test_search.py [--precision bf16] [FAMILY...]     of all one-layer models where none is named; and programs under limits of memory
"""

import concurrent.futures
import json
import re
import sys

import common
import equivalence
import test_plans
import test_program

FAMILIES = test_plans.FAMILIES
PRECISION = 'f32'
# FLOP/s and bytes/s of a device, bytes/s and seconds of the link between two.
MACHINES = {'even': (1e9, 1e9, 1e8, 1e-6), 'slow devices': (1e6, 1e7, 1e10, 1e-9), 'slow links': (1e12, 1e11, 1e6, 1e-4),
            'beside': (1e9, 1e9, 1e8, 1e-6)}
# Collectives run concurrently with operators there.
OVERLAPPING = ('beside',)
RANKS = (2, 4, 8)
TO_L3B = ('--plan-verify-layouts=materialized=false', *equivalence.TO_L3B)


def cluster(machine, ranks):
    flops, memory, link, latency = MACHINES[machine]
    own = {'backend': 'cuda', 'memory_bytes': 1 << 40} if machine in OVERLAPPING else {'backend': 'cpu'}
    return json.dumps({
        'version': 1, 'device_types': {'d': {**own, 'memory_bandwidth_bytes_per_s': int(memory), 'peak_flops_per_s': {'f32': int(flops)}}},
        'hosts': [{'count': 1, 'devices': ranks, 'device_type': 'd', 'memory_bytes': 1 << 40}],
        'link_tiers': [{'name': 'link', 'devices': ranks, 'bandwidth_bytes_per_s': int(link), 'latency_s': latency}]})


class SearchTest(test_plans.PlansCase):
    def one_plan(self, judge, reference, machine, ranks, candidate):
        """Lowers and runs one plan; returns its L3, or None where the search has no such candidate."""
        name = f'{machine}-{ranks}-{candidate}'.replace(' ', '-')
        file = judge.work / f'{name}.json'
        file.write_text(cluster(machine, ranks))
        options = f'cluster={file} candidate={candidate} bucket-bytes=1024'
        try:
            planned = judge.lower(judge.work / 'l2.mlir', [f'--plan-choose-strategies={options}'], f'plan-{name}.mlir')
        except equivalence.Failure as failure:
            if re.search(r'has plans that fit on \d+ of \d+ meshes', str(failure)):
                return None
            raise
        l3 = judge.lower(planned, TO_L3B, f'l3-{name}.mlir')
        l5 = judge.lower(l3, equivalence.TO_L4 + equivalence.TO_FUSED + equivalence.TO_L5, f'l5-{name}.mlir')
        for module, level in ((l3, 'L3'), (l5, 'L5')):
            judge.compare(reference, judge.run(module, level, 'f64', '--ranks', ranks), 'f64')
        return planned.read_text()

    def test_families(self):
        """Where there are many families, each is on two kinds of machines."""
        names = list(MACHINES)
        for number, family in enumerate(FAMILIES):
            judge = equivalence.Equivalence(self.setup_of_family(family, precision=PRECISION))
            judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(judge.work / 'l2.mlir', 'L2', 'f64')
            machines = names if len(FAMILIES) == 1 else [names[(number + k) % len(names)] for k in (0, 2)]
            keys = [(machine, ranks, candidate) for machine in machines for ranks in RANKS for candidate in range(3)]
            split = made = 0
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                plans = {key: pool.submit(self.one_plan, judge, reference, *key) for key in keys}
                for key, plan in plans.items():
                    with self.subTest(family=family, plan=key):
                        try:
                            text = plan.result()
                        except equivalence.Failure as failure:
                            self.fail(str(failure))
                        made += text is not None
                        split += bool(text) and re.search(r'plan\.strategy<\[.*"model"', text) is not None
            print(f"{family}: {made} plans, {split} split operators over the axis model, worst {judge.worst['f64']:.1e}", file=sys.stderr)
            self.assertGreater(split, 0)
            self.assertGreater(made, split)


class AutoTest(test_program.ProgramCase):
    """`--strategy auto`, from the command line to programs."""
    SIZES = dict(layers=2, tokens=16, width=32, vocabulary=64)

    def plan(self, model, *flags, ranks=2, code=0):
        file = self.folder / 'auto.json'
        outcome = common.windlass('plan', model, '--cluster', f'cpu:{ranks}', '--strategy', 'auto', '--micro-batches', 2, '--clip', '--json', '-o', file, *flags)
        self.assertEqual(outcome.code, code, outcome.err)
        return (json.loads(outcome.out), file.read_text()) if code == 0 else outcome.err

    def test_claims(self):
        model = self.small_gpt(**self.SIZES)
        said, text = self.plan(model)
        self.assertGreater(said['bound_seconds'], 0)
        self.assertLessEqual(said['bound_seconds'], said['simulated_seconds'])
        self.assertAlmostEqual(said['step_over_bound'], said['simulated_seconds'] / said['bound_seconds'])
        self.assertLessEqual({row['name'] for row in common.named_strategies() if row['is_compared']}, {row['strategy'] for row in said['named']})
        self.assertEqual(said['simulated_seconds'], said['predicted_seconds'])
        self.assertEqual([window['name'] for window in said['windows']], ['forward', 'last backward', 'update'])
        self.assertAlmostEqual(sum(window['seconds'] for window in said['windows']), said['simulated_seconds'], places=12)
        busy = [(stream, seconds) for window in said['windows'] for stream, seconds in window['busy_seconds'].items()]
        self.assertAlmostEqual(sum(seconds for _, seconds in busy), sum(said['seconds_by_family'].values()), places=12)
        self.assertEqual({stream for stream, _ in busy}, {'compute', 'over data'})
        self.assertEqual(said['bottleneck'], 'compute')
        self.assertEqual(said['peak_bytes'], said['bytes_per_device']['largest_live_set'])
        self.assertEqual(self.plan(model)[1], text, 'the same plan twice')
        for row in said['named']:
            strategy = row['strategy'] + ('=2' if row['strategy'] == 'megatron' else '')
            named, _ = self.plan(model, '--strategy', strategy)
            self.assertIsNone(named['cost_seconds'])
            self.assertLessEqual(said['simulated_seconds'], named['simulated_seconds'], row)
            self.assertLessEqual(said['bound_seconds'], named['simulated_seconds'], row)

    def test_memory_of_named_strategies(self):
        """Under as much memory as a named strategy takes, the search counts it among those that fit, but for a little: with more micro-batches
        than replicas, gradients are accumulated, and those of a micro-batch live no longer than that takes."""
        model = self.small_gpt(layers=4, tokens=16, width=256, vocabulary=64)
        flags = ('--cluster', 'h100:2', '--micro-batches', 8, '--json')
        for strategy in (row['name'] for row in common.named_strategies()):
            named = common.windlass('plan', model, *flags, '--strategy', strategy)
            self.assertEqual(named.code, 0, named.err)
            its, peak = (json.loads(named.out)[key] for key in ('bytes_per_device', 'peak'))
            # The peak is no larger than that, and is in the backward pass, while the stash is still whole.
            kept = sum(its[key] for key in ('parameters', 'gradients', 'optimizer_state', 'inputs'))
            at_peak = sum(group['bytes'] for group in peak['live'])
            self.assertLessEqual(at_peak, its['largest_live_set'] - kept)
            self.assertGreater(at_peak, (its['largest_live_set'] - kept) // 2)
            self.assertIn('.grad', peak['at'])
            auto = common.windlass('plan', model, *flags, '--strategy', 'auto', '--memory-limit', its['arena'] + its['reserve']['total'])
            self.assertEqual(auto.code, 0, auto.err)
            excess = {row['strategy']: row['excess_bytes'] for row in json.loads(auto.out)['named']}[strategy]
            self.assertLess(excess, 0.05 * its['arena'], strategy)

    def test_shadow_price_of_memory(self):
        """On one device, where only recompute makes room, the bound falls by no more than its prices of memory say."""
        model, flags = self.small_gpt(layers=8, tokens=128, width=64, vocabulary=64), ('--cluster', 'h100:1', '--micro-batches', 8)

        def plan(*limit):
            outcome = common.windlass('plan', model, *flags, '--strategy', 'auto', '--json', *limit)
            self.assertEqual(outcome.code, 0, outcome.err)
            return json.loads(outcome.out)

        free = plan()
        self.assertEqual(free['seconds_per_gib'], 0)
        arena, reserve = free['bytes_per_device']['arena'], free['bytes_per_device']['reserve']['total']
        less, more = (plan('--memory-limit', reserve + arena * part // 100) for part in (60, 75))
        self.assertGreater(less['seconds_per_gib'], 0)
        saved = less['bound_seconds'] - more['bound_seconds']
        self.assertGreater(saved, 0)
        # The bound is taken with a thirty-second more memory than there is.
        self.assertLess(saved, 33 / 32 * 1.001 * less['seconds_per_gib'] * (arena * 15 / 100) / 2**30)

    def test_gradients_share_buckets(self):
        """On many hosts the latency of a ring counts for each bucket, not for each gradient."""
        for sizes in ({'layers': 4}, {'layers': 4, 'width': 256, 'vocabulary': 512}):
            with self.subTest(**sizes):
                model, flags = self.small_gpt(**sizes), ('--cluster', 'h100:16x8', '--micro-batches', 128, '--json')
                named = common.windlass('plan', model, *flags, '--strategy', 'ddp')
                auto = common.windlass('plan', model, *flags, '--strategy', 'auto')
                self.assertEqual((named.code, auto.code), (0, 0), named.err + auto.err)
                seconds, cost = json.loads(named.out)['predicted_seconds'], {row['strategy']: row['cost_seconds'] for row in json.loads(auto.out)['named']}['ddp']
                self.assertLess(abs(cost - seconds), 0.5 * seconds)

    def test_sizes_of_buckets(self):
        """The search chooses the size of the shortest step: a small model is reduced among many hosts at once."""
        model, file, other = self.small_gpt(layers=2, width=512, tokens=256, vocabulary=8192), self.folder / 'auto.json', self.folder / 'other.json'
        chosen = {}
        for cluster in ('h100:8', 'h100:16x8'):
            with self.subTest(cluster):
                self.succeed('plan', model, '--cluster', cluster, '--micro-batches', 128, '--strategy', 'auto', '-o', file)
                plan = json.loads(file.read_text())
                chosen[cluster] = plan['bucket_bytes']

                def seconds(bucket_bytes):
                    other.write_text(json.dumps(dict(plan, bucket_bytes=bucket_bytes)))
                    return json.loads(self.succeed('simulate', model, '--plan', other, '--json').out)['predicted_seconds']

                least = seconds(plan['bucket_bytes'])
                for size in (1 << 20, 4 << 20, 25 << 20, 100 << 20):
                    self.assertLessEqual(least, seconds(size), size)
        self.assertGreater(chosen['h100:16x8'], 25 << 20)

    def test_no_named_strategy_is_shorter(self):
        """Larger units and kept gathers make steps shorter: the search tries them for its plans and for named strategies."""
        model = self.folder / 'wide.onnx'
        made = common.run([sys.executable, '-B', '-m', 'windlass_models', 'gpt', '--no-values', '--layers', 4, '--width', 1600, '--heads', 25,
                           '--vocabulary', 50257, '--tokens', 1024, '--batch', 4, '-o', model], cwd=common.ROOT / 'python')
        self.assertEqual(made.code, 0, made.err)
        file = self.folder / 'wide.json'
        # On 128 ranks the latency of a collective counts more, for buckets as for units.
        for cluster in ('h100:16x8', 'h100:8x8'):
            steps, plans = {}, {}
            for strategy in ('ddp', 'zero1', 'zero2', 'zero3', 'auto'):
                flags = ('--cluster', cluster, '--micro-batches', 64, '--precision', 'bf16', '--strategy', strategy)
                steps[strategy] = json.loads(self.succeed('plan', model, *flags, '--json', '-o', file).out)['simulated_seconds']
                plans[strategy] = json.loads(file.read_text())
            self.assertLessEqual(steps['auto'], min(steps.values()), steps)
            self.assertGreater(plans['ddp']['bucket_bytes'], 25 << 20)
            self.assertGreater(plans['zero1']['unit_bytes'], 25 << 20)
        # With one micro-batch for each rank, weights that the forward pass gathers are kept; the plan's file says so.
        self.assertTrue(json.loads(file.read_text())['keeps_gathers'])
        again = json.loads(self.succeed('simulate', model, '--plan', file, '--json').out)
        self.assertEqual(again['predicted_seconds'], steps['auto'])

    def test_kept_gathers(self):
        """A program whose backward pass has the weights that the forward pass gathered trains as one that gathers them again."""
        setup = self.setup_of(self.small_gpt(**self.SIZES), micro_batches=2)
        judge = equivalence.Equivalence(setup)
        reference, file, gathered = self.reference(judge), self.folder / 'kept.json', {}
        self.succeed('plan', setup.input, '--cluster', 'cpu:2', '--strategy', 'zero3', '--micro-batches', 2, '--clip', '-o', file)
        for keeps in (False, True):
            file.write_text(json.dumps({**json.loads(file.read_text()), 'keeps_gathers': keeps}))
            judge.compare(reference, self.dump_of_program(setup, 2, '--plan', file), 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
            row = json.loads((self.folder / 'program-2' / 'metrics.jsonl').read_text().splitlines()[0])
            gathered[keeps] = row['collective_bytes']['all_gather']
        # Nearly all weights were gathered twice, those that one pass reads once.
        self.assertLess(gathered[True], 0.6 * gathered[False])

    def test_spatial_splits(self):
        """Convolutions of a volume whose depth is split train as on one rank: parts get the edges of their neighbours. The search
        splits those with few channels in that way."""
        model = self.small('unet', dims=3, side=16, width=4)
        setup = self.setup_of(model, micro_batches=2)
        judge = equivalence.Equivalence(setup)
        reference, file = self.reference(judge), self.folder / 'spatial.json'
        pins = [text for end in ('', '.grad.input', '.grad.weight') for text in ('--pin', f'*.convolution.?{end}=space:model')]
        for ranks in (2, 4):
            self.succeed('plan', setup.input, '--cluster', f'cpu:{ranks}', '--strategy', 'megatron', *pins, '--micro-batches', 2, '--clip', '-o', file)
            judge.compare(reference, self.dump_of_program(setup, ranks, '--plan', file), 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
        volume = self.folder / 'volume.onnx'
        made = common.run([sys.executable, '-B', '-m', 'windlass_models', 'unet', '--no-values', '--side', 128, '--width', 16, '--layers', 3, '-o', volume],
                          cwd=common.ROOT / 'python')
        self.assertEqual(made.code, 0, made.err)
        def arena(devices, *flags):
            said = self.succeed('plan', volume, '--cluster', f'h100:1x{devices}', '--precision', 'bf16', '--reserve', 0, *flags, '--json', '-o', file).out
            return json.loads(said)['bytes_per_device']['arena']

        self.assertLess(arena(8), 0.2 * arena(1))
        arena(8, '--memory-limit', arena(8))
        operators = json.loads(file.read_text())['functions']['microbatch']['operators']
        self.assertTrue([name for name, each in operators.items() if 'space' in each.get('split', {})], 'operators that are split along the depth')

    def test_experts(self):
        """Rows that go to some ranks only are priced as such: no plan of the search is longer than one by name, and the bound holds for those."""
        model, file = self.small('mixtral', tokens=64, width=64, batch=8, experts=8, chosen=2), self.folder / 'cluster.json'
        for machine in ('slow links', 'beside'):
            file.write_text(cluster(machine, 8))
            auto, _ = self.plan(model, '--cluster', file)
            for strategy in ('ep', 'ddp*ep=4', 'megatron*zero1=2'):
                named = common.windlass('plan', model, '--cluster', file, '--strategy', strategy, '--micro-batches', 2, '--clip', '--json')
                self.assertEqual(named.code, 0, named.err)
                said = json.loads(named.out)
                seconds = said['simulated_seconds']
                if strategy == 'ep':
                    self.assertIn('scatter_rows', said['seconds_by_family'])
                self.assertLessEqual(auto['simulated_seconds'], seconds * 1.0001, (machine, strategy))
                self.assertLessEqual(auto['bound_seconds'], seconds, (machine, strategy))

    def test_parts_are_made_as_such(self):
        """A bias is spread over the parts to which it is added: nothing is made whole to keep a part of it."""
        plan, trace = self.folder / 'parts.json', self.folder / 'trace.json'
        model = self.small_gpt(**self.SIZES)
        planned = common.windlass('plan', model, '--cluster', 'h100:8', '--micro-batches', 4, '--strategy', 'auto', '-o', plan, '--json')
        self.assertEqual(planned.code, 0, planned.err)
        self.assertEqual(json.loads(planned.out)['mesh'], {'data': 4, 'model': 2})
        self.assertEqual(common.windlass('simulate', model, '--plan', plan, '-o', trace).code, 0)
        names = [event['name'] for event in json.loads(trace.read_text())['traceEvents']]
        self.assertIn('matmul', names)
        self.assertNotIn('own_part', names)

    def test_its_problem_is_what_it_solves(self):
        model, problem = self.small_gpt(**self.SIZES), self.folder / 'problem.json'
        for cluster, is_cheapest in (('h100:2', True), ('cpu:2', False)):
            said, _ = self.plan(model, '--cluster', cluster, '--dump-problem', problem)
            solved = common.run([common.WINDLASS.parent / 'windlass-solve', problem, '--json', '-o', self.folder / 'answer.txt'])
            self.assertEqual(solved.code, 0, solved.err)
            least = json.loads(solved.out)['cost'] / 1e9
            # The plan with the shortest simulated step may cost more than another.
            for cost in (said['cost_seconds'], *(row['cost_seconds'] for row in said['named'])):
                self.assertLessEqual(least, cost + 1e-9)
            if is_cheapest:
                self.assertAlmostEqual(least, said['cost_seconds'], places=9)

    def test_long_steps(self):
        """A step of days is searched like one of seconds."""
        file = self.folder / 'slow.json'
        file.write_text(cluster('slow devices', 2))
        outcome = common.windlass('plan', self.small_gpt(**self.SIZES), '--cluster', file, '--strategy', 'auto', '--micro-batches', 1 << 20, '--json')
        self.assertEqual(outcome.code, 0, outcome.err)
        said = json.loads(outcome.out)
        self.assertGreater(said['cost_seconds'], 86400)
        self.assertLess(said['step_over_bound'], 1.5)

    def test_precision(self):
        """In 16 bits operators read weights of half the bytes next to those that are trained, and gradients are as large as before."""
        model, held = self.small_gpt(**self.SIZES), {}
        for precision in ('f32', 'bf16', 'f16'):
            outcome = common.windlass('plan', model, '--cluster', 'h100:2', '--strategy', 'zero1', '--precision', precision, '--json')
            self.assertEqual(outcome.code, 0, outcome.err)
            held[precision] = json.loads(outcome.out)['bytes_per_device']
        weights = held['f32']['gradients'] * 2 // 3
        for what in ('gradients', 'optimizer_state', 'parameters'):
            self.assertEqual(held['f16'][what], held['bf16'][what])
        self.assertEqual(held['bf16']['gradients'], held['f32']['gradients'])
        self.assertEqual(held['bf16']['optimizer_state'], held['f32']['optimizer_state'])
        self.assertEqual(held['f32']['parameters'] - held['bf16']['parameters'], weights // 2)
        file = self.folder / 'bf16.json'
        flags = ('--cluster', 'cpu:2', '--strategy', 'auto', '--precision', 'bf16')
        outcome = common.windlass('plan', model, *flags, '-o', file)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(json.loads(file.read_text())['settings']['precision'], 'bf16')
        for given in (flags, ('--plan', file)):
            outcome = common.windlass('emit', model, *given, '-o', self.folder / 'program')
            self.assertEqual(outcome.code, 1)
            self.assertIn("programs for back end 'cpu' compute in f32, but the plan is of --precision bf16", outcome.err)
        outcome = common.windlass('emit', model, '--plan', file, '--precision', 'f32', '-o', self.folder / 'program')
        self.assertEqual(outcome.code, 1)
        self.assertIn("the plan was made for precision 'bf16', but it is 'f32' now", outcome.err)

    def test_table(self):
        """Repeats are one row of the table; a plan for one device has none."""
        model = self.small_gpt(**self.SIZES)
        said = common.windlass('plan', model, '--cluster', 'cpu:2', '--strategy', 'megatron').out
        self.assertRegex(said, r"'transformer\.h\.\*\.mlp\.[a-z_.]*matmul\.0' +2 x  n0:model +weight \[32, 128:model\]\n")
        self.assertRegex(said, r"'transformer\.h\.\*\.mlp\.[a-z_.]*matmul\.1' +2 x  k0:model +weight \[128:model, 32\]\n")
        self.assertNotIn('operators, how often', common.windlass('plan', model, '--cluster', 'cpu:1').out)

    def test_pins(self):
        """Pins hold in the plan for the layers that a glob matches and no others; the rest is chosen, and programs agree."""
        setup = self.setup_of(self.small_gpt(**dict(self.SIZES, layers=3)), micro_batches=2)
        judge = equivalence.Equivalence(setup)
        reference, (free, _) = self.reference(judge), self.plan(setup.input)
        wide, thin = {'n0': ['model']}, 'transformer.h.{}.mlp.c_fc.weight'
        for pins, mesh, splits, copies in (
                (['*.h.1.*.matmul.0=whole'], None, {1: {}}, {}),
                (['*.h.0.mlp.matmul.0=n0:model', '*.h.1.mlp.matmul.0=n0:model'], {'model': 2}, {0: wide, 1: wide}, {}),
                (['*.h.2.mlp.c_fc.weight=master:[32, 128:data]'], {'data': 2}, {}, {2: ('master', '[32, 128:data]')}),
                (['*.c_fc.weight=compute:[32, 128:data]'], {'data': 2}, {}, {i: ('compute', '[32, 128:data]') for i in range(3)}),
                (['*.h.1.mlp.matmul.0=[4, 16, 128:model]'], {'model': 2}, {}, {})):
            with self.subTest(pins=pins):
                said, text = self.plan(setup.input, *(word for pin in pins for word in ('--pin', pin)))
                self.assertEqual(said['mesh'], mesh or said['mesh'])
                self.assertGreaterEqual(said['cost_seconds'], free['bound_seconds'])
                plan = json.loads(text)
                self.assertEqual(plan['settings']['pins'], sorted(pins))
                for layer, split in splits.items():
                    name, microbatch = f'transformer.h.{layer}.mlp.matmul.0', plan['functions']['microbatch']
                    self.assertEqual(microbatch['operators'].get(name, {'split': {}})['split'], split)
                for layer, (copy, layout) in copies.items():
                    self.assertEqual(plan['parameters'][thin.format(layer)][copy], layout)
                if len(copies) == 1:
                    self.assertNotEqual(plan['parameters'][thin.format(0)]['master'], '[32, 128:data]')
                verified = common.windlass('plan', setup.input, '--verify', self.folder / 'auto.json')
                self.assertEqual(verified.code, 0, verified.err)
                judge.compare(reference, self.dump_of_program(setup, 2, '--plan', self.folder / 'auto.json'), 'f32',
                              ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))

    def test_freeze(self):
        """Where some parameters of a layer do not train, it chooses for itself; other layers choose alike."""
        setup = self.setup_of(self.small_gpt(**dict(self.SIZES, layers=3)), micro_batches=2)
        for frozen in ('transformer.h.1.mlp.c_fc.bias', '*.h.0.*', '*.ln_1.*', '*wpe*'):
            with self.subTest(frozen=frozen):
                said, _ = self.plan(setup.input, '--freeze', frozen)
                self.assertLessEqual(said['bound_seconds'], said['cost_seconds'])
                verified = common.windlass('plan', setup.input, '--verify', self.folder / 'auto.json')
                self.assertEqual(verified.code, 0, verified.err)

    def test_pins_that_leave_nothing(self):
        for pin, said in (('*.c_fc.weight=gradient:[32, 128:data]', 'leaves nothing that is searched'), ('*.matmul.0=n0:modal', "axis 'modal'"),
                          ('nothing=whole', 'matches nothing')):
            self.assertIn(said, self.plan(self.small_gpt(**self.SIZES), '--pin', pin, code=1))

    def test_start(self):
        """The search begins with an older plan of the same model, ranks and settings, whose cost it names."""
        model, older = self.small_gpt(**self.SIZES), self.folder / 'older.json'
        megatron = common.windlass('plan', model, '--cluster', 'cpu:2', '--strategy', 'megatron', '--micro-batches', 2, '--clip', '-o', older)
        self.assertEqual(megatron.code, 0, megatron.err)
        said, _ = self.plan(model, '--start', older)
        costs = {row['strategy']: row['cost_seconds'] for row in said['named']}
        self.assertEqual(costs['the older plan'], costs['megatron'])
        self.assertIn('but --cluster has 4', self.plan(model, '--start', older, ranks=4, code=1))
        self.assertIn('does not fit', self.plan(self.small_gpt(**dict(self.SIZES, layers=1)), '--start', older, code=1))
        self.assertIn('does not fit', self.plan(model, '--start', older, '--optimizer', 'sgd', code=1))

    def test_start_from_other_copies(self):
        """A master in a layout that no label of the search has is not taken for one, even if it takes as much memory."""
        model, older = self.small_gpt(**self.SIZES), self.folder / 'older.json'
        zero1 = common.windlass('plan', model, '--cluster', 'cpu:2', '--strategy', 'zero1', '--micro-batches', 2, '--clip', '-o', older)
        self.assertEqual(zero1.code, 0, zero1.err)
        plan = json.loads(older.read_text())
        edited = [row for name, row in plan['parameters'].items() if name.endswith('mlp.c_fc.weight')]
        for row in edited:
            self.assertEqual(row['master'], '[32:data, 128]')
            row['master'] = '[32, 128:data]'
        older.write_text(json.dumps(plan))
        started = common.windlass('plan', model, '--cluster', 'cpu:2', '--micro-batches', 2, '--clip', '--start', older)
        self.assertEqual(started.code, 0, started.err)
        self.assertIn('has something that is not searched: it is left out', started.err)

    def test_limits(self):
        """Plans fit in any limit down to the least memory that the message names, and their programs agree with the unplanned graph."""
        setup = self.setup_of(self.small_gpt(**self.SIZES), micro_batches=2)
        judge = equivalence.Equivalence(setup)
        reference = self.reference(judge)
        error = self.plan(setup.input, '--memory-limit', 1, code=3)
        least = int(re.search(r'these would fit: --memory-limit (\d+)', error)[1])
        roomy, _ = self.plan(setup.input)
        most = roomy['bytes_per_device']['arena'] + roomy['bytes_per_device']['reserve']['total']
        self.assertLess(least, most)
        for limit in ((least + most) // 2, least):
            said, _ = self.plan(setup.input, '--memory-limit', limit)
            self.assertLessEqual(said['bytes_per_device']['arena'] + said['bytes_per_device']['reserve']['total'], limit)
            self.assertGreaterEqual(said['cost_seconds'], roomy['bound_seconds'])
            judge.compare(reference, self.dump_of_program(setup, 2, '--plan', self.folder / 'auto.json'), 'f32',
                          ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))

    def test_what_would_fit_does(self):
        """The options of the message fit, even where the search's own model finds nothing that fits, and where the batch is too small for zero3."""
        for family, batch in (('gpt', 8), ('bert', 8), ('gpt', 2)):
            with self.subTest(family=family, batch=batch):
                sizes = dict(self.SIZES, layers=3, batch=batch)
                model = self.small_gpt(**sizes) if family == 'gpt' else self.small(family, **sizes)
                error = self.plan(model, '--memory-limit', 1, ranks=8, code=3)
                limit = int(re.search(r'these would fit: --memory-limit (\d+)', error)[1])
                said, _ = self.plan(model, '--memory-limit', limit, ranks=8)
                self.assertLessEqual(said['bytes_per_device']['arena'] + said['bytes_per_device']['reserve']['total'], limit)
                if said['bound_seconds'] is not None:
                    self.assertLessEqual(said['bound_seconds'], said['simulated_seconds'])

    def test_no_bound_where_nothing_is_admitted(self):
        """In the least memory that a named strategy fits into, the model's rows, which count more than a schedule takes, admit no plan: there is
        no bound to be near."""
        model, path = self.small_gpt(layers=4, tokens=64, width=128, vocabulary=256), self.folder / 'plan.json'
        flags = ('plan', model, '--cluster', 'h100:1', '--memory-limit')
        least = re.search(r'these would fit: --memory-limit (\d+)', common.windlass(*flags, 1).err)[1]
        said = json.loads(self.succeed(*flags, least, '--json', '-o', path).out)
        memory = said['bytes_per_device']
        self.assertLessEqual(memory['arena'] + memory['reserve']['total'], int(least))
        self.assertEqual([said[key] for key in ('bound_seconds', 'step_over_bound', 'seconds_per_gib')], [None] * 3)
        self.assertGreater(said['cost_seconds'], 0)
        self.assertIsNone(json.loads(path.read_text())['claims']['bound_nanoseconds'])
        told = self.succeed(*flags, least, '-v').out
        self.assertRegex(told, r"\nsearch .* no lower bound of the step: no plan that the model's rows of memory admit fits into [0-9.]+ MiB\n")
        self.assertNotRegex(told, r'\n(bound|price) |times its lower bound')
        proven = common.windlass(*flags, least, '--max-ratio', '1.5')
        self.assertEqual(proven.code, 5, proven.err)
        self.assertIn("the step has no lower bound, but --max-ratio is 1.5000", proven.err)
        self.assertIn('bound      none claimed\n', self.succeed('plan', model, '--verify', path).out)
        # A bound without a proof is no claim.
        plan = json.loads(path.read_text())
        plan['claims']['bound_nanoseconds'] = plan['claims']['cost_nanoseconds']
        path.write_text(json.dumps(plan))
        refused = common.windlass('plan', model, '--verify', path)
        self.assertEqual(refused.code, 1, refused.out)
        self.assertIn('the certificate is of 0 meshes, but 1 can be chosen', refused.err)

if __name__ == '__main__':
    if '--precision' in sys.argv:
        at = sys.argv.index('--precision')
        PRECISION = sys.argv[at + 1]
        # Programs compute in f32.
        del sys.argv[at:at + 2], AutoTest
    FAMILIES = sys.argv[1:] or FAMILIES
    del sys.argv[1:]
    common.main()
