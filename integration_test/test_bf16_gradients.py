"""`--bf16-gradients`: what travels between ranks, or to the host, is rounded, and nothing else changes, for any plan.

    test_bf16_gradients.py       every level of the interpreter, random plans; what is refused
    test_bf16_gradients.py all   all families, more random plans
"""

import dataclasses
import json
import sys

import common
import equivalence
import test_plans

FEW = ('mlp', 'gpt', 'mixtral')
PLANS, MORE_PLANS = 4, 40
# A gradient is rounded to 8 bits before its parts are added up, and their sum is rounded once more on each way.
BOUNDS = {'loss': 1e-3, 'gradient': 2e-2, 'grad_norm': 1e-2}
# Less than a rounding to 8 bits changes, more than one to 24 does.
LEAST = 1e-4


class GradientsCase(test_plans.PlanRunner):
    def judge(self, family, **change):
        """Returns what lowers a family's model with gradients in bf16, its functions, and their dump in doubles, which are not rounded."""
        judge = equivalence.Equivalence(self.setup_of_family(family, bf16_gradients=True, steps=1, **change))
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        return judge, l2, judge.run(l2, 'L2', 'f64')

    def check_levels(self, judge, l2, reference, ranks):
        for module, level in judge.lower_for(l2, ranks):
            judge.compare(reference, judge.run(module, level, 'f64', '--ranks', ranks * (1 if level == 'L3' else judge.setup.positions)), 'f64')
        return module

    def check_random_plans(self, family, seeds):
        judge, _, reference = self.judge(family)
        for seed in range(seeds):
            with self.subTest(family=family, seed=seed):
                self.one_plan(judge, reference, seed)


class LevelsTest(GradientsCase):
    def test_they_are_rounded_where_they_travel(self):
        for family in FEW:
            for precision in ('f32', 'bf16', 'f16'):
                judge, l2, reference = self.judge(family, precision=precision)
                whole = equivalence.Equivalence(dataclasses.replace(self.setup_of_family(family, steps=1, precision=precision), work=self.folder / 'whole'))
                whole_l2 = whole.lower(whole.graph(), equivalence.TO_L2, 'whole.mlir')
                for strategy, ranks, offload in (('ddp', 1, 'none'), ('ddp', 4, 'none'), ('zero1', 2, 'none'), ('zero3', 4, 'none'), ('ddp', 1, 'gradients'), ('zero2', 2, 'optimizer')):
                    with self.subTest(family=family, precision=precision, strategy=strategy, ranks=ranks, offload=offload):
                        for one in (judge, whole):
                            one.setup.strategy, one.setup.offload = strategy, offload
                        rounded = judge.run(self.check_levels(judge, l2, reference, ranks), 'L5', 'f32', '--ranks', ranks)
                        exact = whole.run(whole.lower_for(whole_l2, ranks)[-1][0], 'L5', 'f32', '--ranks', ranks)
                        found = judge.deviations(exact, rounded)
                        for kind, bound in BOUNDS.items():
                            self.assertLess(found[kind], bound, kind)
                        if ranks == 1 and offload == 'none':
                            self.assertEqual(set(found.values()), {0.0})
                        else:
                            self.assertGreater(found['gradient'], LEAST)

    def test_stages(self):
        judge, l2, reference = self.judge('gpt', positions=2, schedule='1f1b')
        for judge.setup.strategy, ranks in (('ddp', 1), ('zero1', 2), ('zero3', 2)):
            with self.subTest(strategy=judge.setup.strategy, ranks=ranks):
                self.check_levels(judge, l2, reference, ranks)

    def test_random_plans(self):
        for family in FEW:
            self.check_random_plans(family, PLANS)


class AllTest(GradientsCase):
    def test_random_plans(self):
        for family in test_plans.FAMILIES:
            self.check_random_plans(family, MORE_PLANS)


class FlagTest(GradientsCase):
    def test_a_plan_says_so(self):
        model, plan = self.small_gpt(), self.folder / 'plan.json'
        flags = ('--cluster', 'h200:2', '--precision', 'bf16', '--strategy', 'zero3')
        self.succeed('plan', model, *flags, '--bf16-gradients', '-o', plan)
        self.assertTrue(json.loads(plan.read_text())['settings']['bf16_gradients'])
        self.succeed('simulate', model, '--plan', plan)
        without = self.folder / 'without.json'
        self.succeed('plan', model, *flags, '-o', without)
        self.assertNotIn('bf16_gradients', json.loads(without.read_text())['settings'])
        self.assertIn('bf16_gradients', common.run([common.WINDLASS, 'diff', without, plan]).out)
        outcome = common.windlass('simulate', model, '--plan', without, '--bf16-gradients')
        self.assertIn('the plan was made for bf16 gradients false, but it is true now', outcome.err)

    def test_processors_refuse_it(self):
        for words in (('emit', '-o', self.folder / 'out'), ('train', '--data', 'random', '-o', self.folder / 'run')):
            outcome = common.windlass(words[0], self.small_gpt(), '--cluster', 'cpu:2', '--bf16-gradients', *words[1:])
            self.assertIn("programs for back end 'cpu' have f32 only, but the plan has --bf16-gradients", outcome.err)


if __name__ == '__main__':
    for name in ('LevelsTest', 'FlagTest') if 'all' in sys.argv[1:2] else ('AllTest',):
        del globals()[name]
    sys.argv[1:] = [word for word in sys.argv[1:] if word != 'all']
    common.main()
