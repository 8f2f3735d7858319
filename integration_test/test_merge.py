"""`--merge K`: K micro-batches that a rank computes at once give the numbers that they give one after another, for any plan.

    test_merge.py            every level of the interpreter and random plans of a few families; what is refused
    test_merge.py programs   emitted programs: losses, gradients, evaluation, checkpoints of other numbers of merged micro-batches
    test_merge.py all        all families, more random plans
"""

import dataclasses
import json
import sys

import common
import equivalence
import test_plans
import test_program
from windlass_models import safetensors_file

# Those whose running statistics follow one micro-batch after another are refused.
WITH_STATISTICS = ('resnet', 'resnet-grouped')
FAMILIES = [family for family in test_plans.FAMILIES if family not in WITH_STATISTICS]
FEW = ('mlp', 'gpt', 'dropout', 'mixtral')
PLANS, MORE_PLANS = 3, 40
PROGRAM_KINDS = ('loss', 'grad_norm', 'gradient', 'parameter', 'state')


class MergeCase(test_program.ProgramCase, test_plans.PlanRunner):
    def apart(self, judge):
        """Returns the dump of the functions that compute one micro-batch after another."""
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'apart.mlir', merge=1)
        return judge.run(l2, 'L2', 'f64')

    def check_levels(self, family, merge, **change):
        setup = dataclasses.replace(self.setup_of_family(family, **change), merge=merge)
        self.check(setup)
        judge = equivalence.Equivalence(setup)
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        judge.compare(self.apart(judge), judge.run(l2, 'L2', 'f64'), 'f64')

    def check_random_plans(self, family, merge, seeds):
        judge = equivalence.Equivalence(dataclasses.replace(self.setup_of_family(family), merge=merge))
        judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        reference = self.apart(judge)
        for seed in range(seeds):
            with self.subTest(family=family, merge=merge, seed=seed):
                self.one_plan(judge, reference, seed)


class LevelsTest(MergeCase):
    def test_families(self):
        for family in FEW:
            for merge in (2, 4):
                with self.subTest(family=family, merge=merge):
                    self.check_levels(family, merge, ranks=(1, 2))

    def test_averages_over_tokens(self):
        self.check_levels('gpt', 2, average='tokens', ranks=(2,))

    def test_strategies(self):
        for strategy, ranks in (('zero3', 2), ('zero1*megatron=2', 4)):
            for recompute in (0, -1):
                with self.subTest(strategy=strategy, recompute=recompute):
                    self.check_levels('gpt', 2, strategy=strategy, recompute=recompute, ranks=(ranks,))

    def test_pipeline(self):
        self.check_levels('gpt', 2, positions=2, ranks=(1,))

    def test_random_plans(self):
        for family in FEW:
            self.check_random_plans(family, 2, PLANS)


class AllTest(MergeCase):
    def test_families(self):
        for family in FAMILIES:
            for merge in (2, 4):
                with self.subTest(family=family, merge=merge):
                    self.check_levels(family, merge, ranks=(1, 2, 4))

    def test_random_plans(self):
        for family in FAMILIES:
            for merge in (2, 4):
                self.check_random_plans(family, merge, MORE_PLANS)


class GraphTest(MergeCase):
    def operators(self, family, merge):
        judge = equivalence.Equivalence(dataclasses.replace(self.setup_of_family(family), merge=merge))
        l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
        return [op for op, line in test_plans.Coverage.operators(l2.read_text())]

    def test_blocks_are_computed_once(self):
        """Each product of a block is one product of all samples; the loss and the product of its logits are not."""
        one, two = self.operators('gpt', 1), self.operators('gpt', 2)
        self.assertEqual(two.count('attention'), one.count('attention'))
        self.assertEqual(two.count('softmax_cross_entropy'), 2 * one.count('softmax_cross_entropy'))
        # In a forward pass, a backward pass and an evaluation: 1, 2 and 1 more.
        self.assertEqual(two.count('matmul') - one.count('matmul'), 4)


class RefusalTest(MergeCase):
    def refuse(self, code, words, *arguments):
        outcome = common.windlass(*arguments)
        self.assertNotEqual(outcome.code, 0)
        errors = [line for line in outcome.err.splitlines() if 'error: ' in line]
        self.assertEqual(len(errors), 1, outcome.err)
        for word in (code, *words):
            self.assertIn(word, errors[0])

    def test_refusals(self):
        resnet, plan = self.setup_of_family('resnet').input, self.folder / 'plan.json'
        self.refuse('WL0003', ('running statistics',), 'plan', resnet, '--cluster', 'cpu:1', '--micro-batches', 2, '--merge', 2)
        gpt = self.small_gpt()
        self.refuse('WL0003', ('--merge is 2', '--micro-batches 3'), 'plan', gpt, '--cluster', 'cpu:1', '--micro-batches', 3, '--merge', 2)
        self.succeed('plan', gpt, '--cluster', 'cpu:1', '--strategy', 'ddp', '--micro-batches', 4, '--merge', 2, '-o', plan)
        self.refuse('WL0303', ('merged micro-batches', '2', '4'), 'emit', gpt, '--plan', plan, '--merge', 4, '-o', self.folder / 'out')
        self.refuse('WL0003', ('--merge is auto', 'merges 2'), 'emit', gpt, '--plan', plan, '--merge', 'auto', '-o', self.folder / 'out')
        edited = json.loads(plan.read_text())
        self.assertEqual((edited['settings']['merge'], edited['mesh']['accumulation_steps']), (2, 2))
        edited['settings']['merge'] = 3
        plan.write_text(json.dumps(edited))
        self.refuse('WL0302', ('settings.merge 3', 'settings.micro_batches 4'), 'emit', gpt, '--plan', plan, '-o', self.folder / 'out')


class ProgramsTest(MergeCase):
    def compare(self, setup, merge, ranks, *plan):
        judge = equivalence.Equivalence(setup)
        judge.compare(self.reference(judge), self.dump_of_program(setup, ranks, '-n', ranks, '--merge', merge, *plan), 'f32', PROGRAM_KINDS)

    def test_programs(self):
        for family, merge, ranks, *plan in (('gpt', 2, 1), ('gpt', 4, 1), ('gpt', 2, 2, '--strategy', 'zero3'), ('dropout', 2, 2, '--strategy', 'ddp'),
                                            ('gpt', 2, 4, '--strategy', 'zero1*megatron=2')):
            with self.subTest(family=family, merge=merge, ranks=ranks):
                self.compare(self.setup_of_family(family), merge, ranks, *plan)

    def test_stages_and_memories(self):
        """Inputs and labels of the stages that read them; weights that are copied from the host once for all micro-batches."""
        setup = self.setup_of_family('gpt')
        self.compare(setup, 2, 2, '--stages', 2, '--strategy', 'ddp')
        judge = equivalence.Equivalence(setup)
        moved = self.dump_of_program(setup, 1, '--cluster', 'emulated:1', '--merge', 2, '--strategy', 'ddp', '--offload', 'weights')
        judge.compare(self.reference(judge), moved, 'f32', PROGRAM_KINDS)

    def test_split_batches(self):
        """Ranks that share a merged micro-batch read the rows of different ones."""
        self.compare(self.setup_of_family('gpt'), 4, 8, '--strategy', 'ddp')

    def test_evaluation(self):
        """Each micro-batch of the evaluation counts once, and those that fill up the last merged one do not."""
        setup = self.setup_of_family('gpt')
        losses = []
        for merge, ranks, stages in ((1, 1, 1), (2, 1, 1), (4, 1, 1), (2, 2, 1), (2, 2, 2)):
            run = self.folder / f'evaluated-{merge}-{ranks}-{stages}'
            self.succeed('train', setup.input, '-n', ranks, '--stages', stages, '--strategy', 'ddp', '--micro-batches', 4, '--merge', merge, '--data', setup.batches,
                         '--eval-data', setup.batches, '--eval-batches', 5, '--steps', 1, '--lr', 0, '-o', run)
            rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
            losses += [row['eval_loss'] for row in rows if 'eval_loss' in row]
        self.assertEqual(len(losses), 5)
        for loss in losses[1:]:
            self.assertAlmostEqual(loss, losses[0], delta=2e-6 * losses[0])

    def test_resume(self):
        """A checkpoint counts micro-batches of the data, however many were computed at once."""
        setup = self.setup_of_family('gpt')
        common_flags = ('-n', 1, '--strategy', 'ddp', '--micro-batches', 4, '--lr', '1e-2', '--data', setup.batches)
        for first, then in ((2, 1), (1, 4)):
            run, whole = self.folder / f'resumed-{first}', self.folder / f'whole-{first}'
            self.succeed('train', setup.input, *common_flags, '--steps', 1, '--merge', first, '-o', run)
            self.succeed('train', setup.input, *common_flags, '--steps', 2, '--merge', then, '--resume', run, '-o', run)
            self.succeed('train', setup.input, *common_flags, '--steps', 2, '-o', whole)
            losses = [[json.loads(row)['loss'] for row in (each / 'metrics.jsonl').read_text().splitlines()] for each in (run, whole)]
            for a, b in zip(*losses, strict=True):
                self.assertAlmostEqual(a, b, delta=1e-5 * b)

    def test_auto(self):
        """What is searched is what is emitted, and the report says what was tried."""
        setup = self.setup_of_family('gpt')
        plan = self.folder / 'plan.json'
        facts = json.loads(self.succeed('plan', setup.input, '--cluster', 'h100:1x1', '--micro-batches', 4, '--merge', 'auto', '--json', '-o', plan).out)
        tried = {row['merge']: row['step_seconds'] for row in facts['tried_merges']}
        self.assertEqual(facts['merge'], min((merge for merge in tried if tried[merge]), key=tried.get))
        self.assertEqual(json.loads(plan.read_text())['settings'].get('merge', 1), facts['merge'])
        # Launches take most of the time of such a small model.
        self.assertEqual(facts['merge'], 4)
        self.succeed('plan', setup.input, '--verify', plan)


if __name__ == '__main__':
    suites = {'programs': ['ProgramsTest'], 'all': ['AllTest']}
    kept = suites.get(''.join(sys.argv[1:2]), ['LevelsTest', 'GraphTest', 'RefusalTest'])
    sys.argv[1:] = [word for word in sys.argv[1:] if word not in suites]
    for name in ('LevelsTest', 'GraphTest', 'RefusalTest', 'ProgramsTest', 'AllTest'):
        if name not in kept:
            del globals()[name]
    common.main()
