"""`windlass profile`, and what --costs makes of it: predicted times of plans, and of runs. Timelines of runs with --profile.

    test_profile.py [exports]     the timelines of runs of all exports that the tree holds with their values
"""

import json
import shutil
import sys

import onnx

import common

SCHEMA = json.loads((common.ROOT / 'lib' / 'Profile' / 'profile.schema.json').read_text())
KINDS = ('all_gather', 'all_reduce', 'all_to_all', 'permute', 'reduce_scatter')


# The flags of each export's run: two ranks, and strategies that move values in different ways.
EXPORTS = {
    'gpt2-tiny': ('--strategy', 'zero3'),
    'opt-tiny': ('--strategy', 'ddp'),
    'bert-tiny': ('--strategy', 'megatron'),
    'llama-tiny': ('--strategy', 'zero2'),
    'moe-tiny': (),
    'mixtral-tiny': ('--strategy', 'megatron'),
}


def commands(timeline):
    """Returns the commands that ran on each thread in order, and the operator of each."""
    threads = {}
    for event in json.loads(timeline.read_text())['traceEvents']:
        if event['ph'] == 'X':
            threads.setdefault(event['tid'], []).append((event['name'], event['args'].get('operator')))
    return threads


class ExportsTest(common.Case):
    def check(self, name):
        """Checks that every command of a measured step has the operator that it has in the predicted step."""
        source, predicted, run = common.MODELS / name, self.folder / f'{name}.json', self.folder / name
        model = source / 'model.onnx' if (source / 'model.onnx').exists() else common.completed(name, self.folder)
        words = ('--micro-batches', 2, *EXPORTS[name])
        self.succeed('simulate', model, '--cluster', 'cpu:2', *words, '-o', predicted)
        expected = commands(predicted)
        for kernel, operator in (each for thread in expected.values() for each in thread):
            self.assertTrue(operator, f'{name}: {kernel} is of no operator')
        outcome = self.succeed('train', model, '-n', 2, *words, '--data', source / 'batches.safetensors', '--steps', 2, '--threads', 1, '--profile', '-o', run)
        self.assertNotIn('no names of operators', outcome.err)
        for rank in range(2):
            self.assertEqual(commands(run / 'traces' / f'rank_{rank:05}.json'), expected, f'{name}, rank {rank}')

    def test_one(self):
        self.check('bert-tiny')

    def test_all(self):
        for name in EXPORTS:
            with self.subTest(name):
                self.check(name)


class ProfileTest(common.Case):
    def plan(self, model, *words):
        return json.loads(self.succeed('plan', model, '--micro-batches', 2, '--json', *words).out)

    def refuse(self, says, *words):
        outcome = common.windlass(*words)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertIn('[WL0311]', outcome.err)
        for each in says:
            self.assertIn(each, outcome.err)

    def test_from_measuring_to_a_run(self):
        model, profile = self.small_gpt(), self.folder / 'profile.json'
        said = json.loads(self.succeed('profile', model, '--cluster', 'cpu:2', '--micro-batches', 2, '--threads', 1, '-o', profile, '--json').out)
        made = json.loads(profile.read_text())
        self.assertTrue(common.conforms(made, SCHEMA))
        self.assertEqual(len(made['commands']), said['measured_commands'])
        self.assertEqual(said['measured_commands'], said['commands'])
        self.assertEqual({(each['kind'], each['members']) for each in made['collectives']}, {(kind, 2) for kind in KINDS})
        for family in ('matmul', 'map', 'attention', 'attention_grad', 'adamw', 'softmax_cross_entropy'):
            self.assertTrue(any(each['family'] == family for each in made['commands'].values()), family)
        self.assertTrue(any(key.startswith('softmax_cross_entropy_with_grad(') for key in made['commands']))
        matmuls = [each for key, each in made['commands'].items() if key.startswith('matmul(f32[')]
        self.assertTrue(all(each['flops'] > 0 and each['bytes'] > 0 for each in matmuls))
        self.assertIn('fit_error_share', said['families'][0])

        # Every command of a measured plan is known; without a profile, none is.
        for strategy in ('ddp', 'zero3', 'megatron'):
            measured = self.plan(model, '--cluster', 'cpu:2', '--strategy', strategy, '--costs', profile)
            self.assertEqual(set(measured['seconds_by_source']), {'measured'}, strategy)
            analytic = self.plan(model, '--cluster', 'cpu:2', '--strategy', strategy)
            self.assertEqual(set(analytic['seconds_by_source']), {'analytic'})
            self.assertNotEqual(measured['predicted_seconds'], analytic['predicted_seconds'])
            self.assertAlmostEqual(measured['predicted_seconds'], sum(measured['seconds_by_family'].values()), delta=1e-9)
        trace = self.folder / 'trace.json'
        said = json.loads(self.succeed('simulate', model, '--cluster', 'cpu:2', '--micro-batches', 2, '--costs', profile, '--json', '-o', trace).out)
        events = [event for event in json.loads(trace.read_text())['traceEvents'] if event['ph'] == 'X']
        self.assertEqual(len(events), said['replayed_commands'])
        self.assertEqual(len(events), sum(each['count'] for each in said['commands']))
        # Ranks share cores: one command after another.
        self.assertAlmostEqual(sum(event['dur'] for event in events) / 1e6, said['predicted_seconds'], delta=1e-9)
        self.assertEqual({event['tid'] for event in events if event['name'] == 'all_reduce'} & {0}, set())
        found = [self.folder / 'first.json', self.folder / 'second.json']
        for path in found:
            self.plan(model, '--cluster', 'cpu:2', '--strategy', 'auto', '--costs', profile, '-o', path)
            self.succeed('plan', model, '--verify', path, '--costs', profile)
            refused = common.windlass('plan', model, '--verify', path)
            self.assertEqual(refused.code, 1)
            self.assertIn('of the profile of hash', refused.err)
        self.assertEqual(found[0].read_bytes(), found[1].read_bytes())

        expected = self.plan(model, '--cluster', 'cpu:2', '--costs', profile)['predicted_seconds']
        run = self.folder / 'run'
        self.succeed('train', model, '-n', 2, '--micro-batches', 2, '--costs', profile, '--data', self.batches(model, 8), '--steps', 2, '--threads', 1,
                     '-o', run, '-q')
        rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertAlmostEqual(row['predicted_seconds'] / expected, 1, delta=1e-6)

        self.refuse(('2 ranks', '4'), 'plan', model, '--cluster', 'cpu:4', '--micro-batches', 4, '--costs', profile)
        self.refuse(("'cpu'", "'cuda'"), 'plan', model, '--cluster', 'h200:2', '--micro-batches', 2, '--costs', profile)
        profile.write_text(json.dumps(dict(made, thread=1)))
        self.refuse(('thread is no known key', "'threads'"), 'plan', model, '--cluster', 'cpu:2', '--micro-batches', 2, '--costs', profile)

    def test_timelines(self):
        """The measured commands of each rank and the predicted ones have the same names and operators, in the same order."""
        model, predicted, run, words = self.small_gpt(), self.folder / 'predicted.json', self.folder / 'run', ('--micro-batches', 4, '--strategy', 'zero1')
        self.succeed('simulate', model, '--cluster', 'cpu:2', *words, '-o', predicted)
        data = self.batches(model, 8)
        outcome = self.succeed('train', model, '-n', 2, *words, '--data', data, '--steps', 2, '--threads', 1, '--profile', '-o', run, '-v')
        expected = commands(predicted)
        self.assertEqual(set(expected), {0, 1})
        names = {name for thread in expected.values() for _, name in thread}
        self.assertGreater(len(names), 50)
        self.assertNotIn(None, names)
        for rank in range(2):
            self.assertEqual(commands(run / 'traces' / f'rank_{rank:05}.json'), expected)
        self.assertNotIn('no names of operators', outcome.err)

        # Names are data beside the program, in no code of it; without them, or with others', the run is the same.
        built, project = common.built_folder(outcome), self.folder / 'project'
        # Tables have the names of parameters, which collectives are shown under.
        parameters = {tensor.name for tensor in onnx.load(model).graph.initializer}
        for source, others in (('step.cpp', set()), ('buffers.h', set()), ('tables.cpp', parameters), ('fused.h', set())):
            code = common.without_comments((built / 'src' / source).read_text())
            self.assertFalse([name for name in names - others if name in code])
        # A person finds the operator of each command in its comment.
        step = (built / 'src' / 'step.cpp').read_text()
        self.assertIn('lm_head.matmul.0', names)
        self.assertRegex(step, r'\n  WINDLASS_TRY\(matmul\(.*\)\); // lm_head\.matmul\.0\n')
        (project / 'build').mkdir(parents=True)
        for file in ('build/train', 'params.safetensors'):
            shutil.copy(built / file, project / file)
        emitted = json.loads((built / 'operators.json').read_text())
        fewer = json.loads(json.dumps(emitted))
        fewer['positions'][0][0]['update'][0].pop()
        for what, text, says in (('none', None, 'operators.json is neither in '), ('fewer', json.dumps(fewer), 'names the operators of'),
                                 ('unknown', json.dumps(dict(emitted, names=[])), 'has a command of a name that it lacks'), ('cut', json.dumps(emitted)[:100], '')):
            with self.subTest(what):
                if text is not None:
                    (project / 'operators.json').write_text(text)
                run = self.folder / what
                done = common.run([project / 'build' / 'train', '--data', data, '--steps', 2, '--threads', 1, '--profile', '-o', run])
                self.assertEqual(done.code, 0, done.err)
                self.assertRegex(done.err, f'the timeline has no names of operators: [^\n]*{says}')
                plain = {thread: [(name, None) for name, _ in ran] for thread, ran in expected.items()}
                self.assertEqual(commands(run / 'traces' / 'rank_00001.json'), plain)

    def test_a_model_larger_than_its_device(self):
        """The plan whose commands are measured keeps some of the model in the host's memory where no other one fits."""
        model, project = self.small_gpt(), self.folder / 'measuring'
        cluster = 'emulated:1,host=1GiB,h2d=1GB/s,d2h=1GB/s,device={}'.format
        plan = json.loads(self.succeed('plan', model, '--cluster', cluster('1GiB'), '--json').out)
        small = cluster(int(0.6 * plan['bytes_per_device']['arena']))
        self.assertEqual(common.windlass('plan', model, '--cluster', small).code, 3)
        self.assertIn('commands', self.succeed('profile', model, '--cluster', small, '--emit', project).out)
        self.assertTrue((project / 'run.sh').exists())

    def test_refuses_other_devices(self):
        outcome = common.windlass('profile', self.small_gpt(), '--cluster', 'h200:2', '-o', self.folder / 'profile.json')
        self.assertEqual(outcome.code, 1)
        self.assertIn("'cuda'", outcome.err)
        self.assertIn('--emit DIR', outcome.err)
        self.assertFalse((self.folder / 'profile.json').exists())


if sys.argv[1:2] == ['exports']:
    del sys.argv[1], ProfileTest, ExportsTest.test_one
else:
    del ExportsTest.test_all
common.main()
