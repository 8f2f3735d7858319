"""Errors of a run are found before it is planned and built: one line, and nothing made."""

import numpy

import common
from windlass_models import safetensors_file

BAD_INPUT, USAGE = 1, 2


class ChecksCase(common.Case):
    def refuse(self, code, words, *arguments):
        """`windlass train` must end with `code` and one line of error that says each of `words`; it builds nothing and makes no run."""
        before = sorted(self.folder.rglob('*'))
        cache = self.folder / 'cache'
        outcome = common.windlass('train', *arguments, env={'XDG_CACHE_HOME': cache}, cwd=self.folder)
        self.assertEqual(outcome.code, code, outcome.err[-2000:])
        errors = [line for line in outcome.err.splitlines() if 'error: ' in line]
        self.assertEqual(len(errors), 1, outcome.err[-2000:])
        for word in words:
            self.assertIn(word, errors[0])
        self.assertFalse(cache.exists(), 'a program was built')
        made = [path for path in sorted(self.folder.rglob('*')) if path not in before and path.name != '.lock']
        self.assertEqual(made, [])


class DataTest(ChecksCase):
    def test_files(self):
        model = self.small_gpt(vocabulary=100)
        text = self.folder / 'text.txt'
        text.write_bytes(bytes(9000) + b'\xfa' + bytes(200))
        words = self.folder / 'words.bin'
        words.write_bytes(b'odd')
        for data, said, *flags in (('none.txt', ['none.txt'], '--bytes'), (self.folder, [self.folder.name]), (model, ['small.onnx']), (words, ['words.bin', 'odd']),
                                   (text, ['text.txt', 'id 250 at position 9000', 'below 100'], '--bytes'), (text, ['text.txt', '--bytes'])):
            with self.subTest(str(data), flags=flags):
                self.refuse(BAD_INPUT, said, model, '--data', data, '--steps', 2, *flags)

    def test_too_few_windows(self):
        model, text = self.small_gpt(), self.folder / 'text.txt'
        text.write_bytes(bytes(60))
        self.refuse(BAD_INPUT, ['text.txt', '60 tokens give 3 windows of 16', 'takes 4'], model, '--data', text, '--bytes', '--steps', 2)
        text.write_bytes(bytes(70))
        self.refuse(BAD_INPUT, ['1 micro-batches an epoch', '--epochs 3 gives 3', 'takes 4'], model, '--data', text, '--bytes', '--steps', 4, '--epochs', 3)
        self.refuse(BAD_INPUT, ['--epochs 3 gives 3', 'one step takes 4'], model, '--data', text, '--bytes', '--epochs', 3, '--micro-batches', 4)

    def test_explicit_batches(self):
        model = self.small_gpt()
        good = safetensors_file.read(self.batches(model, 3))
        data = self.folder / 'changed.npz'
        ids = good['input_ids.1']
        for change, said, *flags in (({}, ["lacks 'input_ids.3'", '0 to 2'], '--steps', 4),
                                     ({}, ["lacks 'input_ids.3'"], '--steps', 2, '--micro-batches', 2),
                                     ({'input_ids.1': None}, ["lacks 'input_ids.1'"], '--steps', 2),
                                     ({'input_ids.1': None}, ["lacks 'input_ids.1'"], '--steps', 1, '--epochs', 2),
                                     ({'input_ids.1': None}, ["lacks 'input_ids.1'"], '--steps', 1, '--shuffle'),
                                     ({}, ['3 micro-batches an epoch', '--epochs 2 gives 6', 'takes 7'], '--steps', 7, '--epochs', 2),
                                     ({'input_ids.2': ids[:, :-1]}, ["'input_ids.2'", '[4, 15]', '[4, 16]'], '--steps', 1),
                                     ({'input_ids.2': ids.astype('f4')}, ["'input_ids.2'", 'F32', 'I64'], '--steps', 1),
                                     ({'input_ids.2': ids + 256}, ['changed.npz', 'ids below 256'], '--steps', 1)):
            with self.subTest(said):
                arrays = {name: change.get(name, array) for name, array in good.items()}
                numpy.savez(data, **{name: array for name, array in arrays.items() if array is not None})
                self.refuse(BAD_INPUT, said, model, '--data', data, *flags)

    def test_evaluation(self):
        model = self.small_gpt()
        flags = (model, '--data', self.batches(model, 3), '--steps', 2)
        self.refuse(BAD_INPUT, ['none.txt'], *flags, '--eval-data', 'none.txt')
        self.refuse(USAGE, ['--eval-data'], *flags, '--eval-every', 2)

    def test_inputs_that_are_no_tokens(self):
        model, text = self.small('vit'), self.folder / 'text.txt'
        text.write_bytes(bytes(1000))
        self.refuse(BAD_INPUT, ['explicit batches'], model, '--data', text, '--bytes', '--steps', 1)


class FlagsTest(ChecksCase):
    def test_flags(self):
        model = self.small_gpt()
        data = self.batches(model, 3)
        file = self.folder / 'file'
        file.write_text('')
        for code, said, *flags in ((BAD_INPUT, ['--loss-scale', 'f32'], '--loss-scale', 4), (BAD_INPUT, ["'file'"], '-o', 'file'), (BAD_INPUT, ["'file/run'"], '-o', 'file/run'),
                                   (BAD_INPUT, ['/proc/none'], '-o', '/proc/none'), (BAD_INPUT, ['--dump-gradients', "'none'"], '--dump-gradients', 'none/gradients'),
                                   (BAD_INPUT, ["'none'", 'no input'], '--inputs', 'none=tokens'),
                                   (BAD_INPUT, ['--precision bf16'], '--precision', 'bf16'), (BAD_INPUT, ['h200'], '--cluster', 'h200:2'),
                                   (BAD_INPUT, ['--communicator tcp', 'mpirun'], '--communicator', 'tcp'),
                                   (BAD_INPUT, ['gone.safetensors'], '--parameters', 'gone.safetensors'), (BAD_INPUT, ["'run'", '--resume'], '--resume')):
            with self.subTest(flags):
                self.refuse(code, said, model, '--data', data, '--steps', 2, *flags)
        self.refuse(USAGE, ['--data'], model, '--steps', 2)

    def test_initial_values(self):
        model = self.small_gpt(external=True)
        data = self.batches(model, 3)
        for file in self.folder.glob('*.data'):
            file.unlink()
        self.refuse(BAD_INPUT, ['.data'], model, '--data', data, '--steps', 2)


class CheckpointTest(ChecksCase):
    def test_resume(self):
        model, other = self.small_gpt(), self.small_gpt('other.onnx', width=64)
        data, run = self.batches(model, 4), self.folder / 'run'
        self.succeed('train', model, '--data', data, '--steps', 2, '-o', run)
        flags = ('--data', data, '-o', run)
        self.refuse(BAD_INPUT, ['already holds a checkpoint', '--resume'], model, *flags, '--steps', 3)
        self.refuse(BAD_INPUT, ['--seed is 7', 'made with 0'], model, *flags, '--steps', 3, '--resume', '--seed', 7)
        self.refuse(BAD_INPUT, ['of step 2', '--steps is 1'], model, *flags, '--steps', 1, '--resume')
        self.refuse(BAD_INPUT, ['--shuffle', 'was made without'], model, *flags, '--steps', 3, '--resume', '--shuffle')
        self.refuse(BAD_INPUT, ["lacks 'input_ids.4'"], model, *flags, '--steps', 5, '--resume')
        self.refuse(BAD_INPUT, ['[256, 32]', 'this program has'], other, *flags, '--steps', 3, '--resume')
        self.refuse(BAD_INPUT, ['holds the state of --optimizer adamw', "this program's is sgd"], model, *flags, '--steps', 3, '--resume', '--optimizer', 'sgd')
        held = next((run / 'checkpoints' / 'step-000002').glob('state-*'))
        held.write_bytes(held.read_bytes()[:-1] + b'\1')
        self.refuse(BAD_INPUT, ['no valid checkpoint'], model, *flags, '--steps', 3, '--resume')


common.main()
