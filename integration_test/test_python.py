"""The Python package `windlass` without torch: plans, training on values, runs, and errors."""

import json
import pathlib
import sys

import numpy

import common
from windlass_models import safetensors_file

sys.path.insert(0, str(common.ROOT / 'python'))
import windlass  # noqa: E402
from windlass.command import to_flags  # noqa: E402


# Writes what it is told to a file beside the name of the run.
WANDB = """
import json

class init:
    def __init__(self, project, name, id, resume, config):
        self.path = '{PATH}/wandb-id.jsonl'
        assert id == open('{PATH}/wandb-id').read() and resume == 'allow'
        try:
            self.step = sum(line.startswith('[') for line in open(self.path)) + 1
        except OSError:
            self.step = 0
        self.write(dict(project=project, name=name, model=config['model']))

    def write(self, value):
        with open(self.path, 'a') as file:
            file.write(json.dumps(value) + chr(10))

    def log(self, row, step):
        self.write([step, row['loss']])

    __enter__ = lambda self: self
    __exit__ = lambda self, *_: None
"""


class PythonTest(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt()
        values = safetensors_file.read(self.batches(self.model, 4))
        names = sorted({name.rpartition('.')[0] for name in values})
        self.values = [{name: values[f'{name}.{k}'] for name in names} for k in range(4)]

    def test_flags(self):
        self.assertEqual(to_flags(dict(n=2, micro_batches=4, clip=True, json=False, freeze=['a', 'b'], plan=None)),
                         ['-n', '2', '--micro-batches', '4', '--clip', '--freeze', 'a', '--freeze', 'b'])

    def test_check_and_plan(self):
        self.assertEqual(windlass.check(self.model)['unsupported'], [])
        found = windlass.plan(self.model, 'h100:4', self.folder / 'plan.json', strategy='zero1*megatron=2', micro_batches=2)
        self.assertEqual(found.ranks, 4)
        self.assertGreater(found.seconds, 0)
        self.assertGreater(found.bytes_per_device, 0)
        self.assertEqual([axis['size'] for axis in found.read()['mesh']['axes']], [2, 2])

    def test_training(self):
        seen = []
        run = windlass.train(self.model, self.values, self.folder / 'run', steps=3, n=2, on_metrics=seen.append)
        self.assertEqual([row['step'] for row in seen], [1, 2, 3])
        self.assertEqual(run.losses, [row['loss'] for row in seen])
        self.assertEqual(run.record['ranks'], 2)
        self.assertEqual(run.record['settings']['data'], '4 explicit batches')
        values, state = run.parameters(), run.parameters(state=True)
        self.assertTrue(set(values) < set(state))
        self.assertTrue(all(numpy.isfinite(value).all() for value in values.values()))
        # A resumed run shows new rows only.
        longer = windlass.train(self.model, self.values, self.folder / 'run', steps=4, n=2, resume=True, on_metrics=seen.append)
        self.assertEqual([row['step'] for row in seen], [1, 2, 3, 4])
        self.assertEqual(len(longer.metrics), 4)

    def test_samples_and_files(self):
        stacked = {name: numpy.concatenate([batch[name] for batch in self.values]) for name in self.values[0]}
        samples = windlass.train(self.model, stacked, self.folder / 'samples', steps=2)
        files = windlass.train(self.model, samples.path / 'data.safetensors', self.folder / 'files', steps=2)
        self.assertEqual(samples.losses, files.losses)

    def test_example_for_weights_and_biases(self):
        """With a stand-in for the package, which keeps what it gets."""
        (self.folder / 'wandb.py').write_text(WANDB.replace('{PATH}', str(self.folder / 'run')))
        run = windlass.train(self.model, self.values, self.folder / 'run', steps=3)
        example = [sys.executable, '-B', common.ROOT / 'examples' / 'wandb_run.py', run.path]
        for steps in (3, 4):
            if steps == 4:
                windlass.train(self.model, self.values, run.path, steps=4, resume=True)
            done = common.run(example, env=dict(PYTHONPATH=str(self.folder)), timeout=60)
            self.assertEqual(done.code, 0, done.err)
        started, *rows = [json.loads(line) for line in (run.path / 'wandb-id.jsonl').read_text().splitlines()]
        self.assertEqual(started, {'project': 'windlass', 'name': 'run', 'model': run.record['model']})
        self.assertEqual(rows[:3], [[row['step'], row['loss']] for row in run.metrics[:3]])
        self.assertEqual(rows[3]['name'], 'run')
        self.assertEqual(rows[4:], [[4, run.losses[3]]])

    def test_errors(self):
        with self.assertRaises(windlass.WindlassError) as caught:
            windlass.plan(self.model, 'cpu:3', self.folder / 'plan.json', strategy='zero1*megatron=2')
        self.assertEqual((caught.exception.code, caught.exception.diagnostic), (1, 'WL0304'))
        self.assertIn('does not fit 3 ranks', str(caught.exception))
        with self.assertRaises(windlass.WindlassError) as caught:
            windlass.check(self.folder / 'absent.onnx')
        self.assertIn('absent.onnx', str(caught.exception))
        self.assertEqual(windlass.Run(pathlib.Path('absent')).metrics, [])


if __name__ == '__main__':
    common.main()
