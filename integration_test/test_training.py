"""What the flags of a run promise: what is frozen stays, the learning rate follows its formula, a run that is told to stop saves."""

import json
import math
import os
import re
import signal
import subprocess
import time

import numpy
import onnx

import common
from windlass_models import safetensors_file


class TrainingCase(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(tokens=8, width=16, vocabulary=256)
        self.data = self.folder / 'text.txt'
        self.data.write_bytes(b'a stitch in time saves nine ' * 200)

    def train(self, run, *flags):
        return self.succeed('train', self.model, '--data', self.data, '--bytes', '-o', run, *flags)

    def rows(self, run):
        return [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]


class FreezeTest(TrainingCase):
    def check_freeze(self, ranks, optimizer, *flags):
        run, exported = self.folder / f'run-{ranks}', self.folder / f'final-{ranks}.safetensors'
        self.train(run, '-n', ranks, '--steps', 5, '--freeze', '*wpe*', '--freeze', '*.ln_1.*', '--optimizer', optimizer, '--weight-decay', 0.1, *flags)
        self.succeed('checkpoint', 'export', run, '--state', '-o', exported)
        final = safetensors_file.read(exported)
        initial = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(str(self.model)).graph.initializer}
        frozen = {name for name in initial if 'wpe' in name or '.ln_1.' in name}
        self.assertEqual(len(frozen), 3)
        for name in frozen:
            self.assertEqual(final[name].tobytes(), initial[name].tobytes(), name)
        trained = {name for name in final if name in initial} - frozen
        self.assertGreater(len(trained), 10)
        for name in trained:
            # A bias that all keys share does not change the softmax: its gradient is zero but for rounding.
            if optimizer == 'sgd' and name.endswith('k_proj.bias'):
                continue
            self.assertNotEqual(final[name].tobytes(), initial[name].tobytes(), name)
        state = {name.rpartition('/')[0] for name in final if '/' in name}
        self.assertEqual(state, trained, 'what is frozen has no optimizer state')

    def test_adamw(self):
        self.check_freeze(2, 'adamw', '--clip-norm', 1)

    def test_sgd_with_momentum(self):
        self.check_freeze(1, 'sgd', '--momentum', 0.9)


class RandomStartTest(TrainingCase):
    """--init random takes no weights of the model, but what is not trained keeps its values."""

    def test_what_is_not_trained_keeps_its_values(self):
        sizes = dict(tokens=8, width=16, vocabulary=256)
        for name, flags in (('frozen', ('--freeze', '*wpe*')), ('buffers', ())):
            with self.subTest(name):
                model = self.model = self.small_gpt(**sizes) if name == 'frozen' else self.small('llama', **sizes)
                run, exported = self.folder / f'random-{name}', self.folder / f'random-{name}.safetensors'
                self.train(run, '-n', 1, '--steps', 1, '--init', 'random', *flags)
                self.succeed('checkpoint', 'export', run, '-o', exported)
                final = safetensors_file.read(exported)
                initial = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(str(model)).graph.initializer}
                kept = {key for key in final if key in initial and final[key].tobytes() == initial[key].tobytes()}
                if name == 'frozen':
                    self.assertEqual(kept, {key for key in initial if 'wpe' in key})
                else:
                    self.assertFalse([key for key in kept if initial[key].ndim > 1], 'no matrix is what the model has')


class SamplesTest(TrainingCase):
    def test_images_of_bytes(self):
        """Images as cameras give them, in two files, train as the batch that a program of one's own would make of them."""
        model, batch = self.small('vit'), 4
        pixels, labels = (entry.name for entry in onnx.load(model).graph.input)
        random = numpy.random.default_rng(3)
        images, classes = random.integers(0, 256, (batch, 12, 12, 3), numpy.uint8), random.integers(0, 8, batch)
        means, deviations = numpy.float32([0.5, 0.4, 0.3]), numpy.float32([0.2, 0.25, 0.3])
        floats = (images.transpose(0, 3, 1, 2) / numpy.float32(255) - means.reshape(-1, 1, 1)) / deviations.reshape(-1, 1, 1)
        safetensors_file.write({f'{pixels}.0': floats, f'{labels}.0': classes}, self.folder / 'batch.safetensors')
        for part in range(2):
            numpy.savez(self.folder / f'{part}.npz', **{pixels: images[2 * part:2 * part + 2], labels: classes[2 * part:2 * part + 2]})
        self.succeed('train', model, '--data', self.folder / 'batch.safetensors', '--epochs', 5, '-o', self.folder / 'explicit')
        expected = [row['loss'] for row in self.rows(self.folder / 'explicit')]
        self.assertEqual(len(expected), 5)
        for ranks in (1, 2):
            run = self.folder / f'samples-{ranks}'
            # One micro-batch is the whole set, in whatever order.
            self.succeed('train', model, '-n', ranks, '--data', self.folder / '[0-9].npz', '--epochs', 5,
                         '--normalize', f'{pixels}=0.5,0.4,0.3:0.2,0.25,0.3', '-o', run)
            rows = self.rows(run)
            numpy.testing.assert_allclose([row['loss'] for row in rows], expected, rtol=1e-5)
            for row in rows:
                self.assertIsNone(row['tokens_per_s'])
                self.assertAlmostEqual(row['samples_per_s'] * row['seconds'], batch)


class LearningRateTest(TrainingCase):
    LR, STEPS = 0.02, 12

    def expected(self, schedule, s, end, warmup):
        """Returns the rate of step s, counted from 0."""
        if s < warmup:
            return self.LR * (s + 1) / warmup
        x = min(1, (s - warmup) / max(1, end - warmup))
        return {'constant': self.LR, 'linear': self.LR * (1 - x), 'cosine': self.LR * (1 + math.cos(math.pi * x)) / 2}[schedule]

    def test_formulas(self):
        for schedule in ('constant', 'linear', 'cosine'):
            # Without a length the schedule ends with the run; with one, the run may go on beyond it.
            for end, warmup in ((None, 0), (8, 3), (5, 5), (2, 6)):
                with self.subTest(schedule, end=end, warmup=warmup):
                    run = self.folder / f'{schedule}-{end}'
                    flags = ['--lr', self.LR, '--lr-schedule', schedule, '--warmup', warmup] + (['--schedule-steps', end] if end else [])
                    self.train(run, '--steps', 7 if end else self.STEPS, *flags)
                    if end:
                        self.train(run, '--steps', self.STEPS, '--resume', *flags)
                    rows = self.rows(run)
                    self.assertEqual([row['step'] for row in rows], list(range(1, self.STEPS + 1)))
                    for row in rows:
                        self.assertAlmostEqual(row['lr'], self.expected(schedule, row['step'] - 1, end or self.STEPS, warmup), delta=1e-15)

    def test_the_rate_is_the_one_that_the_step_takes(self):
        """Without momentum and decay a step of SGD moves parameters by the rate times the gradient."""
        run = self.folder / 'sgd'
        self.train(run, '--optimizer', 'sgd', '--lr', self.LR, '--warmup', 4, '--steps', 2, '--checkpoint-every', 1, '--dump-gradients', self.folder / 'gradients')
        first = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(str(self.model)).graph.initializer}
        after = safetensors_file.read(run / 'checkpoints' / 'step-000001' / 'parameters-00000.safetensors')
        for name, gradient in safetensors_file.read(self.folder / 'gradients').items():
            moved = first[name].astype('f8') - after[name]
            self.assertLess(abs(moved - self.LR / 4 * gradient).max(), 1e-7 * max(1, abs(first[name]).max()), name)


class StopTest(TrainingCase):
    def stop(self, ranks, how, to_group):
        run = self.folder / f'run-{ranks}-{how.name}-{to_group}'
        words = ['train', self.model, '-n', ranks, '--data', self.data, '--bytes', '-o', run]
        process = subprocess.Popen([str(word) for word in [common.WINDLASS, *words, '--steps', 10**8]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   text=True, start_new_session=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 300
        while not (run / 'metrics.jsonl').exists() or not (run / 'metrics.jsonl').stat().st_size:
            self.assertIsNone(process.poll(), 'the run ended before it had begun')
            self.assertLess(time.monotonic(), deadline, 'no step was made')
            time.sleep(0.05)
        # A terminal's Ctrl-C reaches every process of the group.
        os.killpg(process.pid, how) if to_group else process.send_signal(how)
        said = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 7, said)
        self.assertRegex(said, r'interrupted after step \d+; saved .* continue with --resume \[WL0903\]')
        last = int(re.search(r'interrupted after step (\d+)', said)[1])
        self.assertEqual(sorted(os.listdir(run / 'checkpoints')), [f'step-{last:06d}'])
        self.assertEqual(self.rows(run)[-1]['step'], last)
        self.succeed(*words, '--steps', last + 2, '--resume')
        self.assertEqual(self.rows(run)[-1]['step'], last + 2)

    def test_two_ranks(self):
        for how, to_group in ((signal.SIGINT, True), (signal.SIGINT, False), (signal.SIGUSR1, False), (signal.SIGTERM, False)):
            with self.subTest(how.name, to_group=to_group):
                self.stop(2, how, to_group)

    def test_one_rank(self):
        for how in (signal.SIGINT, signal.SIGUSR1):
            with self.subTest(how.name):
                self.stop(1, how, True)


common.main()
