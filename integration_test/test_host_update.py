"""A program that is written by hand at level L5 and keeps master copies and optimizer state in the host's memory
(test/Programs/host-update.mlir): emitted, built and run, it gives the losses, gradients, parameters and state of the same
model at L2, on CPUs and on an emulated device, whose memory no kernel of the host can reach.
"""

import shutil

import numpy

import common
import hand_written
from windlass_models import safetensors_file

PROGRAMS = common.ROOT / 'test' / 'Programs'
STEPS, MICRO_BATCHES, BATCH, WIDTH, CLASSES = 3, 2, 4, 8, 4
SETTINGS = ['--lr', '1e-2', '--eps', '1e-3', '--weight-decay', '0.1']


class HostUpdate(hand_written.HandWrittenCase):
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

    def compare(self, result):
        self.check(self.reference(), result, '1e-5', {'loss': STEPS, 'grad_norm': STEPS, 'gradient': 2, 'parameter': 2, 'state': 4})

    def test_interpreter(self):
        self.compare(self.interpret('l5', PROGRAMS / 'host-update.mlir'))

    def test_processor(self):
        project = self.emitted('cpu')
        self.build_for_processors(project)
        self.compare(self.train('cpu', [project / 'build' / 'train'], STEPS, *SETTINGS))

    def test_emulated_device(self):
        self.compare(self.train('cuda', [self.program(self.emitted('cuda'))], STEPS, *SETTINGS))


if __name__ == '__main__':
    common.main()
