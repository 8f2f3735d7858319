"""A program that is written by hand at level L5 and keeps master copies and optimizer state in the host's memory
(test/Programs/host-update.mlir): emitted, built and run, it gives the losses, gradients, parameters and state of the same
model at L2, on CPUs and on an emulated device, whose memory no kernel of the host can reach.
"""

import json
import shutil
import sys

import numpy

import common
import test_cuda
from windlass_models import safetensors_file

PROGRAMS = common.ROOT / 'test' / 'Programs'
STEPS, MICRO_BATCHES, BATCH, WIDTH, CLASSES = 3, 2, 4, 8, 4
SETTINGS = ['--lr', '1e-2', '--eps', '1e-3', '--weight-decay', '0.1']


class HostUpdate(test_cuda.EmulatedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        random = numpy.random.default_rng(0)
        cls.values = {'model.0.weight': random.normal(size=(CLASSES, WIDTH)), 'model.0.bias': random.normal(size=CLASSES)}
        cls.initial, cls.batches = cls.folder / 'initial.safetensors', cls.folder / 'batches.safetensors'
        safetensors_file.write({name: value.astype(numpy.float32) for name, value in cls.values.items()}, cls.initial)
        batches = {}
        for k in range(STEPS * MICRO_BATCHES):
            batches[f'x.{k}'] = random.normal(size=(BATCH, WIDTH)).astype(numpy.float32)
            batches[f'labels.{k}'] = random.integers(0, CLASSES, size=BATCH)
        safetensors_file.write(batches, cls.batches)

    def tool(self, name, *arguments):
        return self.succeed([test_cuda.BUILD / 'bin' / name, *arguments])

    def interpret(self, name, module):
        """Returns what the interpreter computes from a module, less later gradients and evaluation, which a program does not write."""
        target = self.folder / f'{name}.safetensors'
        self.tool('windlass-run', module, '--initial', self.initial, '--batches', self.batches, '--steps', STEPS,
                  '--precision', 'f32', *SETTINGS, '-o', target)
        kept = ('loss.', 'grad_norm.', 'gradient.0.', 'parameter.', 'state.')
        safetensors_file.write({name: value for name, value in safetensors_file.read(target).items() if name.startswith(kept)}, target)
        return target

    def reference(self):
        l2 = self.folder / 'l2.mlir'
        l2.write_text(self.tool('windlass-opt', '--train-graph-pipeline', f'--train-functions-pipeline=micro-batches={MICRO_BATCHES} optimizer=adamw',
                                PROGRAMS / 'Inputs' / 'linear.mlir').out)
        return self.interpret('l2', l2)

    def emitted(self, backend):
        project = self.folder / backend
        self.tool('windlass-opt', '--emit-schedule', PROGRAMS / 'host-update.mlir', project, '--backend', backend, '--memory-limit', 1024,
                  '--host-memory-limit', 1408)
        shutil.copy(self.initial, project / 'params.safetensors')
        return project

    def train(self, name, program):
        """Returns what a run leaves, under the names of the interpreter's dumps. A run that is resumed after its first step leaves the same bits."""
        finals = []
        for run, parts in ((self.folder / f'{name}-run', ([STEPS],)), (self.folder / f'{name}-resumed', ([1], [STEPS, '--resume']))):
            for steps, *flags in parts:
                self.succeed([program, '--data', self.batches, '--steps', steps, *SETTINGS, '-o', run, '--dump-gradients', f'{run}.gradients', *flags])
            outcome = common.windlass('checkpoint', 'export', run, '--state', '-o', f'{run}.final')
            self.assertEqual(outcome.code, 0, outcome.err)
            rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
            finals.append(([row['loss'] for row in rows], {key: value.tobytes() for key, value in safetensors_file.read(f'{run}.final').items()}))
        self.assertEqual(finals[0], finals[1])
        run = self.folder / f'{name}-run'
        rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual(len(rows), STEPS)
        values = {}
        for step, row in enumerate(rows):
            values[f'loss.{step}'], values[f'grad_norm.{step}'] = row['loss'], row['grad_norm']
        values.update((f'gradient.0.{key}', value) for key, value in safetensors_file.read(f'{run}.gradients').items())
        final = safetensors_file.read(f'{run}.final')
        for key, value in final.items():
            values[f'{"state" if key.rpartition("/")[0] in final else "parameter"}.{key}'] = value
        target = self.folder / f'{name}.safetensors'
        safetensors_file.write({key: numpy.array(value, numpy.float64) for key, value in values.items()}, target)
        return target

    def check(self, one, other):
        said = self.tool('windlass-run', '--compare', one, other, '--bound', '1e-5').out
        print(said, file=sys.stderr)
        for kind, count in (('loss', STEPS), ('grad_norm', STEPS), ('gradient', 2), ('parameter', 2), ('state', 4)):
            self.assertRegex(said, rf'(?m)^{kind} .* of {count} tensors$')

    def test_interpreter(self):
        self.check(self.reference(), self.interpret('l5', PROGRAMS / 'host-update.mlir'))

    def test_processor(self):
        project = self.emitted('cpu')
        self.succeed(['cmake', '-S', project, '-B', project / 'build', '-G', 'Ninja', f'-DWINDLASS_RUNTIME_BUILD={test_cuda.BUILD / "runtime"}'])
        self.succeed(['cmake', '--build', project / 'build'])
        self.check(self.reference(), self.train('cpu', project / 'build' / 'train'))

    def test_emulated_device(self):
        self.check(self.reference(), self.train('cuda', self.program(self.emitted('cuda'))))


if __name__ == '__main__':
    common.main()
