"""Recomputing segments: the same numbers at every level and from programs, as little recompute as a memory limit needs, and a memory
limit that stays with the plan.

    test_recompute.py            one-layer models, limits, plans
    test_recompute.py programs   programs under a limit against programs without one
    test_recompute.py parity     a reference model under a limit against PyTorch's answers
"""

import json
import re
import shutil
import sys

import common
import equivalence
from test_equivalence import InterpreterCase

SIZES = dict(tokens=16, width=32, vocabulary=64)
STRATEGIES = (('ddp', 1), ('ddp', 2), ('zero1', 4), ('zero3', 4), ('megatron', 2), ('zero3*megatron=2', 4))

PARITY = (('ddp', 1), *((strategy, ranks) for strategy in ('ddp', 'zero1', 'zero3', 'megatron') for ranks in (2, 4)))


class Case(InterpreterCase):
    def plan(self, model, *flags, ranks=1, strategy='ddp', code=0):
        """Returns what `plan --json` prints, or the error of a plan that fails."""
        outcome = common.windlass('plan', model, '--cluster', f'cpu:{ranks}', '--strategy', strategy, '--micro-batches', 2, '--json', *flags)
        self.assertEqual(outcome.code, code, outcome.err)
        return json.loads(outcome.out) if code == 0 else outcome.err

    @staticmethod
    def needs(said):
        """Returns the bytes that the plan needs on a device."""
        return said['bytes_per_device']['arena'] + said['bytes_per_device']['reserve']['total']

    def least(self, model, *flags, **options):
        """Returns the least bytes with which the strategy fits."""
        return int(re.search(r'these would fit: --memory-limit (\d+)', self.plan(model, '--memory-limit', 1, *flags, code=3, **options))[1])


class LevelsTest(Case):
    def test_families(self):
        for family in ('gpt', 'opt', 'llama', 'moe', 'bert', 'irregular'):
            with self.subTest(family):
                layers = 3 if family == 'irregular' else 2
                model = self.small(family, layers=layers, **SIZES)
                self.check(self.setup_of(model, micro_batches=2, ranks=(1, 2, 4), bucket_bytes=1024, recompute=-1))

    def test_strategies(self):
        model = self.small_gpt(layers=2, **SIZES)
        for strategy, ranks in STRATEGIES[2:]:
            for steps in (3, 4, -1):
                with self.subTest(strategy=strategy, steps=steps):
                    self.check(self.setup_of(model, micro_batches=4, ranks=(ranks,), strategy=strategy, recompute=steps))

    def test_dropout(self):
        """Recomputed dropout drops the same elements."""
        model = self.small_gpt(layers=2, dropout=0.1, **SIZES)
        self.check(self.setup_of(model, micro_batches=2, ranks=(1, 2, 4), recompute=-1))


class LimitTest(Case):
    def arenas(self, model, ranks, strategy):
        """Returns the arena and the stash for each step, by hand: first no weight is gathered ahead, then segments are recomputed."""
        judge = equivalence.Equivalence(self.setup_of(model, micro_batches=2, strategy=strategy, clip=False))
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        found, prefetch = [], r' attributes {plan.prefetch_bytes = \d+ : i64, plan.unit_bytes = \d+ : i64}'

        def lower(steps, gathers_ahead):
            judge.setup.recompute = steps
            l4 = judge.lower(judge.lower(l2, equivalence.TO_L3, 'l3.mlir', R=ranks, S=strategy), equivalence.TO_L4, 'l4.mlir')
            text = l4.read_text()
            if not gathers_ahead:
                l4.write_text(re.sub(prefetch, '', text))
            l5 = judge.lower(l4, equivalence.TO_FUSED + equivalence.TO_L5, 'l5.mlir').read_text()
            numbers = re.search(r'sched.arena .* bytes (\d+) .*sched.stash_bytes = (\d+)', l5)
            found.append((int(numbers[1]), int(numbers[2])))
            return bool(re.search(prefetch, text))

        self.assertEqual(lower(0, True), 'zero3' in strategy)
        steps = 0 if 'zero3' in strategy else 1
        lower(steps, False)
        while found[-1] != found[-2] or steps == 0:
            lower(steps := steps + 1, False)
        return found[:-1]

    def test_as_little_is_recomputed_as_does(self):
        model = self.small_gpt(layers=3, **SIZES)
        for strategy, ranks in STRATEGIES:
            arenas = self.arenas(model, ranks, strategy)
            self.assertGreater(len(arenas), 6)
            reserve = self.needs(self.plan(model, ranks=ranks, strategy=strategy)) - arenas[0][0]
            for arena in sorted({arena for arena, stash in arenas}):
                with self.subTest(strategy=strategy, ranks=ranks, arena=arena):
                    said = self.plan(model, '--memory-limit', arena + reserve, ranks=ranks, strategy=strategy)
                    self.assertEqual(said['bytes_per_device']['arena'], next(each for each, stash in arenas if each <= arena))
            with self.subTest(strategy=strategy, ranks=ranks, arena='none'):
                least = min(arena for arena, stash in arenas)
                error = self.plan(model, '--memory-limit', least + reserve - 1, ranks=ranks, strategy=strategy, code=3)
                self.assertRegex(error, rf'the plan needs {least + reserve} bytes( \(.*?\))? per device')
                self.assertIn('it is 1 byte too much', error)

    def test_what_is_gathered_ahead_goes_first(self):
        model = self.small_gpt(layers=3, **SIZES)
        file = self.folder / 'plan.json'
        free = self.plan(model, '-o', file, ranks=2, strategy='zero3')
        self.assertFalse(free['dropped_prefetch'])
        self.assertGreater(json.loads(file.read_text())['prefetch_bytes'], 0)
        said = self.plan(model, '--memory-limit', self.needs(free) - 1, '-o', file, ranks=2, strategy='zero3')
        self.assertTrue(said['dropped_prefetch'])
        self.assertEqual(said['recompute']['flops'], 0)
        self.assertEqual(json.loads(file.read_text())['prefetch_bytes'], 0)
        words = ('plan', model, '--cluster', 'cpu:2', '--strategy', 'zero3', '--micro-batches', 2)
        self.assertIn('\nprefetch   none: ', self.succeed(*words, '--memory-limit', self.needs(free) - 1).out)
        self.assertNotIn('prefetch', self.succeed(*words).out)
        self.assertTrue(self.plan(model, '--memory-limit', self.needs(said) - 1, ranks=2, strategy='zero3')['recompute']['flops'] > 0)
        error = self.plan(model, '--memory-limit', self.least(model, ranks=2, strategy='zero3') - 1, ranks=2, strategy='zero3', code=3)
        self.assertIn('with no weight gathered ahead, 3 of 3 blocks recomputed', error)
        self.assertFalse(self.plan(model, '--memory-limit', self.least(model, ranks=2), ranks=2)['dropped_prefetch'])

    def test_gathering_ahead_stays_where_it_hides_more_than_recompute_takes(self):
        """Where GPUs would wait for weights, blocks are recomputed first; where that does not suffice, weights are not gathered ahead either."""
        model = self.small_gpt(layers=3, **SIZES)

        def plan(*flags):
            outcome = common.windlass('plan', model, '--cluster', 'h100:2x1', '--strategy', 'zero3', '--micro-batches', 2, '--json', *flags)
            self.assertIn(outcome.code, (0, 3), outcome.err)
            return json.loads(outcome.out) if outcome.code == 0 else None

        free = plan()
        self.assertEqual((free['dropped_prefetch'], free['recompute']['flops']), (False, 0))
        said, ways = free, []
        while said := plan('--memory-limit', self.needs(said) - 1):
            ways.append((said['dropped_prefetch'], said['recompute']['flops'] > 0))
            self.assertGreaterEqual(said['predicted_seconds'], free['predicted_seconds'])
        # Units that are smaller cost no arithmetic.
        ways = ways[next(i for i, way in enumerate(ways) if way != (False, False)):]
        self.assertEqual(ways[0], (False, True))
        self.assertEqual(ways[-1], (True, True))

    def test_the_stash_falls_by_what_the_plan_says(self):
        model = self.small_gpt(layers=3, **SIZES)
        arenas = self.arenas(model, 1, 'ddp')
        seen = set()
        for arena, _ in arenas:
            said = self.plan(model, '--memory-limit', arena + self.needs(self.plan(model)) - arenas[0][0])
            stash = next(stash for each, stash in arenas if each == said['bytes_per_device']['arena'])
            recompute = said['recompute']
            # Each value begins where a vector load is aligned.
            self.assertAlmostEqual(recompute['stash_bytes_before'] - recompute['stash_bytes'], arenas[0][1] - stash, delta=64 * 100)
            self.assertEqual(recompute['flops'] > 0, any(label != 'kept' for label in recompute['segments'].values()))
            seen.add(recompute['stash_bytes'])
        self.assertGreater(len(seen), 3)

    def test_repeated_layers_are_taken_in_their_order(self):
        model = self.small_gpt(layers=3, **SIZES)
        said = self.plan(model)
        self.assertEqual(set(said['recompute']['segments'].values()), {'kept'})
        one = self.plan(model, '--memory-limit', self.needs(said) - 1)['recompute']['segments']
        self.assertEqual(one, {'transformer.h.0': 'mlp', 'transformer.h.1': 'kept', 'transformer.h.2': 'kept'})

    def test_what_would_fit_does(self):
        model = self.small_gpt(layers=2, batch=8, **dict(SIZES, width=64))
        error = self.plan(model, '--memory-limit', self.least(model, ranks=2) - 1, ranks=2, code=3)
        options = error[error.index('these would fit: ') + 17:].rsplit(' [', 1)[0].split('; ')
        self.assertGreater(len(options), 1, error)
        limit = re.search(r'the limit is (\d+)', error)[1]
        for option in options:
            with self.subTest(option):
                if given := re.match(r'--memory-limit (\d+)', option):
                    self.plan(model, '--memory-limit', given[1], ranks=2)
                    continue
                ranks = re.match(r'1 host of (\d+) x cpu with ', option)
                strategy, needed = re.search(r'--strategy (\S+) \((\d+) bytes', option).groups()
                offload = option.split(' --strategy')[0].split() if option.startswith('--offload') else []
                said = self.plan(model, '--memory-limit', limit, *offload, ranks=int(ranks[1]) if ranks else 2, strategy=strategy)
                self.assertEqual(self.needs(said), int(needed))

    def test_models_without_blocks(self):
        error = self.plan(common.MODELS / 'mlp' / 'model.onnx', '--memory-limit', '1KiB', code=3)
        self.assertIn('nothing recomputed', error)


class PlanTest(Case):
    def test_the_limit_stays_with_the_plan(self):
        model = self.small_gpt(layers=2, **SIZES)
        file, project = self.folder / 'plan.json', self.folder / 'project'
        limit = self.needs(self.plan(model)) - 1
        self.plan(model, '--memory-limit', limit, '-o', file)
        plan = json.loads(file.read_text())
        self.assertEqual(plan['memory_limit_bytes'], limit)
        self.assertEqual(plan['segments'], {'transformer.h.0': 'mlp', 'transformer.h.1': 'kept'})
        self.succeed('emit', model, '--plan', file, '-o', project)
        self.succeed('emit', model, '--plan', file, '--memory-limit', limit, '-o', project)
        shutil.rmtree(project)

        outcome = common.windlass('emit', model, '--plan', file, '--memory-limit', limit + 1, '-o', project)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertRegex(outcome.err, rf'--memory-limit is {limit + 1} bytes( \(.*?\))? but the plan was made for {limit} bytes')
        plan['segments']['transformer.h.0'] = 'kept'
        file.write_text(json.dumps(plan))
        for words in (('emit', model, '--plan', file, '-o', project), ('explain', 'lm_head.matmul.0', model, '--plan', file),
                      ('train', model, '--plan', file, '--data', self.batches(model, 2), '--steps', 1, '-o', project)):
            outcome = common.windlass(*words)
            self.assertEqual(outcome.code, 3, outcome.err)
            self.assertIn('it is 1 byte too much', outcome.err)
            self.assertFalse(project.exists())

    def test_the_same_bytes_twice(self):
        model = self.small_gpt(layers=3, **SIZES)
        least = self.least(model)
        texts = []
        for name in ('one', 'two'):
            self.plan(model, '--memory-limit', least, '-o', self.folder / name)
            texts.append((self.folder / name).read_bytes())
        self.assertEqual(*texts)


class ProgramsTest(Case):
    def losses(self, model, data, plan):
        out = self.folder / 'run'
        shutil.rmtree(out, ignore_errors=True)
        self.succeed('train', model, '--plan', plan, '--data', data, '--steps', 5, '--lr', '1e-2', '-o', out)
        return [(row['loss'], row['grad_norm']) for row in map(json.loads, (out / 'metrics.jsonl').read_text().splitlines())]

    def test_programs_lose_alike(self):
        """The losses are equal to the bit: recomputed values have the same bits, and nothing else has changed its order."""
        for dropout in (0.0, 0.1):
            model = self.small_gpt(layers=3, dropout=dropout, **SIZES)
            data = self.batches(model, 10)
            for strategy, ranks in (('ddp', 1), ('zero3', 2), ('megatron', 2)):
                with self.subTest(dropout=dropout, strategy=strategy):
                    free, tight = self.folder / 'free.json', self.folder / 'tight.json'
                    for file, limit in ((free, ()), (tight, ('--memory-limit', self.least(model, ranks=ranks, strategy=strategy)))):
                        self.succeed('plan', model, '--cluster', f'cpu:{ranks}', '--strategy', strategy, '--micro-batches', 2, *limit, '-q', '-o', file)
                    # Units let a norm's gradient add another one in its kernel, which rounds once less (docs/rfcs/0034-units.md).
                    plan, tight_plan = (json.loads(file.read_text()) for file in (free, tight))
                    self.assertNotEqual(plan['segments'], tight_plan['segments'])
                    free.write_text(json.dumps({**plan, **{name: tight_plan[name] for name in ('prefetch_bytes', 'unit_bytes')}}))
                    losses = self.losses(model, data, free)
                    self.assertEqual(self.losses(model, data, tight), losses)
                    self.assertEqual(len(losses), 5)


class ParityTest(Case):
    def test_under_a_limit(self):
        """Training under the least limit with which each strategy fits."""
        model = common.prepared('gpt2-tiny', self.folder)
        for strategy, ranks in PARITY:
            with self.subTest(strategy=strategy, ranks=ranks):
                limit = self.least(model / 'model.onnx', '--micro-batches', 1, ranks=ranks, strategy=strategy)
                outcome = common.run([sys.executable, '-B', common.ROOT / 'integration_test' / 'parity.py', '--windlass', common.WINDLASS, '--model', model,
                                      '-n', ranks, '--', '--strategy', strategy, '--memory-limit', limit])
                self.assertEqual(outcome.code, 0, outcome.out[-2000:] + outcome.err[-2000:])


if __name__ == '__main__':
    kept = {'programs': ['ProgramsTest'], 'parity': ['ParityTest']}.get(sys.argv[-1], ['LevelsTest', 'LimitTest', 'PlanTest'])
    if sys.argv[-1] in ('programs', 'parity'):
        sys.argv.pop()
    for name in ('LevelsTest', 'LimitTest', 'PlanTest', 'ProgramsTest', 'ParityTest'):
        if name not in kept:
            del globals()[name]
    common.main()
