"""`--average tokens`: each label of a step counts alike, however unevenly its micro-batches are filled, for any plan.

    test_average.py            every level of the interpreter, a merged batch, what is refused
    test_average.py programs   emitted programs against PyTorch's token mean: 1, 2 and 4 ranks, 1 to 8 micro-batches a step, named strategies; and
                               those of a merged batch
"""

import dataclasses
import json
import sys

import numpy
import onnx

import common
import equivalence
import test_plans
import test_program
from windlass_models import safetensors_file

IGNORED = -100
# The share of labels that each micro-batch keeps, from the front; some keep none, so that the mean of the micro-batches' means is NaN.
LEFT = (1, 0.05, 0.3, 0, 0.7, 0.02, 0.12, 1)


def leave_few(source, target, left):
    """Ignores all labels of each micro-batch but the first `left(k, label count)`, in the order of memory."""
    batches = safetensors_file.read(source)
    for name, values in batches.items():
        if name.startswith('labels.'):
            labels = values.copy()
            labels.reshape(-1)[left(int(name.rpartition('.')[2]), labels.size):] = IGNORED
            batches[name] = labels
    safetensors_file.write(batches, target)
    return target


class AverageCase(test_program.ProgramCase, test_plans.PlanRunner):
    def batches(self, model, count):
        path = super().batches(model, count)
        return leave_few(path.rename(self.folder / 'full.safetensors'), path, lambda k, size: round(LEFT[k % len(LEFT)] * size))

    def setup_of(self, model, **change):
        return super().setup_of(model, average='tokens', **change)


class LevelsTest(AverageCase):
    def test_families(self):
        """L1 to L5; P and batch splits of 1 to 4."""
        for family in ('mlp', 'gpt', 'llama', 'bert', 'vit', 'dropout'):
            with self.subTest(family):
                self.check(dataclasses.replace(self.setup_of_family(family), ranks=(1, 2, 4, 8)))

    def test_named_strategies(self):
        for strategy, ranks in test_plans.STRATEGIES:
            with self.subTest(strategy):
                self.check(self.setup_of_family('gpt', strategy=strategy, ranks=(ranks,)))

    def test_recompute_and_one_micro_batch(self):
        setup = self.setup_of_family('gpt', ranks=(1, 4), recompute=-1, clip=False)
        # Each step has labels.
        few = leave_few(self.folder / 'full.safetensors', self.folder / 'few.safetensors', lambda k, size: size // 2 + k)
        self.check(dataclasses.replace(setup, micro_batches=1, batches=few))

    def test_random_plans(self):
        for family in ('mlp', 'gpt', 'bert'):
            judge = equivalence.Equivalence(self.setup_of_family(family))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(l2, 'L2', 'f64')
            for seed in range(6):
                with self.subTest(family=family, seed=seed):
                    self.one_plan(judge, reference, seed)

    def test_precision(self):
        """In 16 bits, with and without a loss scale."""
        for precision in ('bf16', 'f16'):
            judge = equivalence.Equivalence(self.setup_of_family('gpt', precision=precision))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(l2, 'L2', 'f64')
            for judge.setup.strategy, ranks in (('ddp', 2), ('zero1*megatron=2', 4)):
                for module, level in judge.lower_for(l2, ranks):
                    with self.subTest(precision=precision, strategy=judge.setup.strategy, level=level):
                        judge.compare(reference, judge.run(module, level, 'f64', '--ranks', ranks), 'f64')

    def test_losses_are_still_fused(self):
        """A step writes gradients where its logits were, as it does for a mean of means, and reduces no count."""
        for precision in ('f32', 'f16'):
            judge = equivalence.Equivalence(self.setup_of_family('gpt', precision=precision))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            judge.setup.strategy = 'ddp'
            text = judge.lower_for(l2, 8)[-1][0].read_text()
            self.assertIn('launch softmax_cross_entropy_with_grad ', text)
            self.assertNotIn('launch count_labels ', text)
            self.assertNotIn('launch softmax_cross_entropy_grad ', text)


class MergedCase(AverageCase):
    """G micro-batches of B rows give the same step as one micro-batch of G·B rows, which has one mean."""
    COUNT = 4

    def merged(self, setup):
        model = self.small_gpt('merged.onnx', tokens=8, width=16, vocabulary=32, batch=4 * self.COUNT)
        apart = safetensors_file.read(setup.batches)
        steps = setup.steps
        together = {f'{name}.{step}': numpy.concatenate([apart[f'{name}.{step * self.COUNT + i}'] for i in range(self.COUNT)])
                    for name in ('input_ids', 'labels') for step in range(steps)}
        path = self.folder / 'merged.safetensors'
        safetensors_file.write(together, path)
        return dataclasses.replace(setup, input=model, batches=path, micro_batches=1, average='micro-batches', work=self.folder / 'merged')


class MergedTest(MergedCase):
    def dump(self, setup):
        """Returns the values at L2, without the losses of evaluation, which are those of single micro-batches."""
        run = equivalence.Equivalence(setup)
        dump = run.run(run.lower(run.graph(), equivalence.TO_L2, 'l2.mlir'), 'L2', 'f64')
        safetensors_file.write({name: value for name, value in safetensors_file.read(dump).items() if not name.startswith('evaluate.')}, dump)
        return run, dump

    def test_levels(self):
        setup = self.setup_of_family('gpt')
        run, apart = self.dump(setup)
        _, merged = self.dump(self.merged(setup))
        found = run.deviations(merged, apart)
        for kind in ('loss', 'grad_norm', 'gradient', 'parameter', 'state'):
            self.assertLess(found[kind], 1e-10, kind)
        # The mean of means gives another step: NaN where a micro-batch has no label, and another number where each has some.
        few = leave_few(self.folder / 'full.safetensors', self.folder / 'few.safetensors', lambda k, size: (size, 3)[k % 2])
        losses = [safetensors_file.read(self.dump(dataclasses.replace(setup, batches=batches, average='micro-batches'))[1])['loss.0']
                  for batches in (setup.batches, few)]
        tokens = safetensors_file.read(self.dump(dataclasses.replace(setup, batches=few))[1])['loss.0']
        self.assertTrue(numpy.isnan(losses[0]))
        self.assertGreater(abs(losses[1] - tokens), 1e-4)


class MergedProgramsTest(MergedCase):
    def test_programs(self):
        """Programs, and their evaluation, which is the mean over all labels of its micro-batches."""
        setup = self.setup_of_family('gpt')
        merged = self.merged(setup)
        judge = equivalence.Equivalence(merged)
        reference = self.dump_of_program(merged, 1)
        for plan in (('-n', 2), ('-n', 4, '--strategy', 'zero3*megatron=2'), ('-n', 8, '--strategy', 'ddp')):
            with self.subTest(plan=plan):
                judge.compare(reference, self.dump_of_program(setup, plan[1], *plan), 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))
        losses = []
        for each, count in ((merged, 1), (setup, self.COUNT)):
            run = self.folder / f'evaluated-{count}'
            self.succeed('train', each.input, '-n', 2, '--strategy', 'ddp', '--micro-batches', each.micro_batches, '--average', each.average,
                         '--data', each.batches, '--eval-data', each.batches, '--eval-batches', count, '--steps', 1, '--lr', 0, '-o', run)
            rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
            losses += [row['eval_loss'] for row in rows if 'eval_loss' in row]
        self.assertEqual(len(losses), 2)
        self.assertAlmostEqual(losses[0], losses[1], delta=2e-6 * losses[0])

    def test_random_programs(self):
        setup = self.setup_of_family('gpt')
        judge = equivalence.Equivalence(setup)
        reference = self.reference(judge)
        for seed, ranks in ((1, 2), (2, 4)):
            plan = self.folder / f'{seed}.json'
            equivalence.execute(judge.opt, '--random-plan', setup.input, '--cluster', f'cpu:{ranks}', '--seed', seed,
                                '--micro-batches', setup.micro_batches, '--average', 'tokens', '--clip', '-o', plan)
            with self.subTest(seed=seed):
                judge.compare(reference, self.dump_of_program(setup, ranks, '--plan', plan), 'f32', ('loss', 'grad_norm', 'gradient', 'parameter', 'state'))


class SettingTest(AverageCase):
    """The setting is compiled in: a plan and a program hold it."""

    def refuse(self, code, words, *arguments):
        outcome = common.windlass(*arguments)
        self.assertEqual(outcome.code, 1, outcome.err)
        errors = [line for line in outcome.err.splitlines() if 'error: ' in line]
        self.assertEqual(len(errors), 1, outcome.err)
        self.assertIn(code, errors[0])
        for word in words:
            self.assertIn(word, errors[0])

    def test_contradictions(self):
        model, plan, out = self.small_gpt(), self.folder / 'plan.json', self.folder / 'out'
        self.succeed('plan', model, '--cluster', 'cpu:2', '--strategy', 'ddp', '--micro-batches', 2, '--average', 'tokens', '-o', plan)
        self.assertEqual(json.loads(plan.read_text())['settings']['average'], 'tokens')
        self.refuse('WL0303', ("average 'tokens'", "it is 'micro-batches' now"), 'emit', model, '--plan', plan, '--average', 'micro-batches', '-o', out)
        edited = json.loads(plan.read_text())
        del edited['settings']['average']
        plan.write_text(json.dumps(edited))
        self.refuse('WL0302', ('settings.average is missing',), 'emit', model, '--plan', plan, '-o', out)
        edited['settings']['average'] = 'words'
        plan.write_text(json.dumps(edited))
        self.refuse('WL0302', ("settings.average is 'words'",), 'emit', model, '--plan', plan, '-o', out)

    def test_configuration(self):
        config = self.folder / 'train.json'
        model = self.small_gpt()
        batches = self.batches(model, 4)
        for average in ('tokens', 'micro-batches'):
            config.write_text(json.dumps({'average': average, 'micro-batches': 4, 'steps': 1, 'on-nan': 'skip', 'data': str(batches)}))
            run = self.folder / average
            self.succeed('train', model, '--config', config, '-o', run)
            self.assertEqual(json.loads((run / 'run.json').read_text())['settings']['average'], average)
            row = json.loads((run / 'metrics.jsonl').read_text().splitlines()[0])
            self.assertEqual(numpy.isfinite(float(row['loss'] if row['loss'] is not None else 'nan')), average == 'tokens')

    def test_no_label_at_all(self):
        """A step without labels has no mean: it stops, or leaves its update out, as everywhere."""
        model = self.small_gpt()
        batches = self.batches(model, 2)
        leave_few(batches, batches, lambda k, size: 0)
        words = ('train', model, '--average', 'tokens', '--micro-batches', 2, '--steps', 1, '--data', batches)
        outcome = common.windlass(*words, '-o', self.folder / 'stopped')
        self.assertEqual(outcome.code, 6, outcome.err)
        self.assertIn('[WL0901]', outcome.err)
        self.succeed(*words, '--on-nan', 'skip', '-o', self.folder / 'skipped')

    def test_losses_without_labels(self):
        x = onnx.helper.make_tensor_value_info('x', onnx.TensorProto.FLOAT, [4, 4])
        loss = onnx.helper.make_tensor_value_info('loss', onnx.TensorProto.FLOAT, [])
        weight = onnx.helper.make_tensor('w', onnx.TensorProto.FLOAT, (4, 4), [0.1 * i for i in range(16)])
        nodes = [onnx.helper.make_node('MatMul', ['x', 'w'], ['y']), onnx.helper.make_node('ReduceMean', ['y'], ['loss'], keepdims=0)]
        model = self.folder / 'mean.onnx'
        graph = onnx.helper.make_graph(nodes, 'g', [x], [loss], [weight])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 20)], ir_version=10), str(model))
        self.refuse('WL0203', ('--average tokens counts the labels of the loss', 'not the mean of one cross entropy'),
                    'plan', model, '--cluster', 'cpu:1', '--average', 'tokens')


class TokenMeanTest(AverageCase):
    """The losses and norms that PyTorch stored for the token mean of whole steps (integration_test/models/token_mean.py)."""

    def check_program(self, micro_batches, *plan):
        model = common.prepared('gpt2-tiny', self.folder) if not (self.folder / 'gpt2-tiny').exists() else self.folder / 'gpt2-tiny'
        few = self.folder / 'few.safetensors'
        stored = common.few_labels(model, few)
        optimizer = json.loads((model / 'reference.json').read_text())['optimizer']
        run = self.folder / '-'.join(map(str, ('run', micro_batches, *plan))).replace('*', '-')
        self.succeed('train', model / 'model.onnx', *plan, '--micro-batches', micro_batches, '--average', 'tokens', '--data', few, '--steps', stored['steps'],
                     '--lr', optimizer['lr'], '--betas', ','.join(map(str, optimizer['betas'])), '--eps', optimizer['eps'],
                     '--weight-decay', optimizer['weight_decay'], '-o', run)
        rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
        want = stored['micro_batches'][str(micro_batches)]
        numpy.testing.assert_allclose([row['loss'] for row in rows], want['losses'], rtol=2e-6)
        numpy.testing.assert_allclose([row['grad_norm'] for row in rows], want['grad_norms'], rtol=1e-4)

    def test_accumulation(self):
        for ranks in (1, 2, 4):
            for micro_batches in (1, 2, 4, 8):
                with self.subTest(ranks=ranks, micro_batches=micro_batches):
                    self.check_program(micro_batches, '-n', ranks, '--strategy', 'ddp')

    def test_named_strategies(self):
        for strategy in ('auto', 'zero1', 'zero2', 'zero3', 'megatron', 'zero1*megatron=2', 'zero3*megatron=2'):
            with self.subTest(strategy=strategy):
                self.check_program(4, '-n', 4, '--strategy', strategy)


if __name__ == '__main__':
    if sys.argv[1:] == ['programs']:
        del LevelsTest, MergedTest, SettingTest
        sys.argv.pop()
    elif not sys.argv[1:]:
        del MergedProgramsTest, TokenMeanTest
    common.main()
