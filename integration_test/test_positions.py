"""Models of level L4 in several positions, with several chunks and micro-batches in flight on each: the interpreter at L4
and at L5, and the emitted program with threads, with processes and on an emulated device, give the losses, gradients,
parameters and state of the unsplit model.
"""

import json
import shutil

import numpy

import chains
import common
import hand_written
from windlass_models import safetensors_file

STEPS, MICRO_BATCHES = 3, 4
SETTINGS = ['--lr', '0.1', '--momentum', '0.9', '--weight-decay', '0.1']
# Two positions whose messages alternate; two and three that run chunk by chunk, the first of them two chunks each.
PIPELINES = {
    'alternating': ((0, 1), chains.one_forward_one_backward(MICRO_BATCHES)),
    'looped': ((0, 1, 0, 1), chains.chunk_by_chunk((0, 1, 0, 1), MICRO_BATCHES)),
    'long': ((0, 1, 2), chains.chunk_by_chunk((0, 1, 2), MICRO_BATCHES)),
}


class Positions(hand_written.HandWrittenCase):
    def prepare(self, name):
        """Writes the model, its initial values and its batches, and returns the reference's results."""
        self.chunks = len(PIPELINES[name][0])
        random = numpy.random.default_rng(0)
        sizes = [(chains.WIDTH, chains.WIDTH)] * (self.chunks - 1) + [(chains.WIDTH, chains.CLASSES)]
        self.initial, self.batches = self.folder / f'{name}-initial.safetensors', self.folder / f'{name}-batches.safetensors'
        safetensors_file.write({f'fc{k}.weight': random.normal(size=size).astype(numpy.float32) for k, size in enumerate(sizes)}, self.initial)
        batches = {}
        for k in range(STEPS * MICRO_BATCHES):
            batches[f'x.{k}'] = random.normal(size=(chains.BATCH, chains.WIDTH)).astype(numpy.float32)
            batches[f'y.{k}'] = random.integers(0, chains.CLASSES, size=chains.BATCH)
        safetensors_file.write(batches, self.batches)
        graph, l2 = self.folder / f'{name}.mlir', self.folder / f'{name}-l2.mlir'
        graph.write_text(chains.whole(self.chunks))
        self.tool('windlass-opt', graph, f'--train-differentiate=micro-batches={MICRO_BATCHES}', f'--train-add-optimizer=optimizer=sgd micro-batches={MICRO_BATCHES}',
                  '-o', l2)
        return self.interpret(f'{name}-l2', l2)

    def lowered(self, name):
        """Returns the pipeline at L4 and at L5."""
        position_of, tables = PIPELINES[name]
        l4, l5 = self.folder / f'{name}-l4.mlir', self.folder / f'{name}-l5.mlir'
        l4.write_text(chains.split(position_of, tables, MICRO_BATCHES))
        self.tool('windlass-opt', l4, '--sched-verify-async', '--sched-fuse-pipeline', '--sched-to-commands-pipeline', '-o', l5)
        return l4, l5

    def interpret(self, name, module, precision='f64'):
        """Returns what the interpreter computes, less what a program does not write: later gradients, and evaluation batch by batch."""
        target = self.folder / f'{name}.safetensors'
        self.tool('windlass-run', module, '--initial', self.initial, '--batches', self.batches, '--steps', STEPS, '--precision', precision, *SETTINGS, '-o', target)
        kept = ('loss.', 'grad_norm.', 'gradient.0.', 'parameter.', 'state.')
        values = safetensors_file.read(target)
        # The mean over the evaluation's batches; each has as many labels.
        loss = numpy.mean([value for key, value in values.items() if key.startswith('evaluate.')])
        values = {key: value for key, value in values.items() if key.startswith(kept)}
        safetensors_file.write({**values, 'evaluate': numpy.array(loss)}, target)
        return target

    def run_program(self, name, command):
        """Returns what a run of the program leaves; it evaluates the first step's batches with the parameters at the end."""
        evaluated = self.folder / 'evaluated.safetensors'
        batches = safetensors_file.read(self.batches)
        safetensors_file.write({key: value for key, value in batches.items() if int(key.partition('.')[2]) < MICRO_BATCHES}, evaluated)
        return self.train(name, command, STEPS, '--eval-data', evaluated, *SETTINGS)

    def compare(self, one, other, bound):
        counts = {'loss': STEPS, 'grad_norm': STEPS, 'gradient': self.chunks, 'parameter': self.chunks, 'state': self.chunks, 'evaluate': 1}
        self.check(one, other, bound, counts)

    def emitted(self, name, backend):
        project = self.folder / f'{name}-{backend}'
        self.tool('windlass-opt', '--emit-schedule', self.lowered(name)[1], project, '--backend', backend)
        shutil.copy(self.initial, project / 'params.safetensors')
        return project

    def built(self, name):
        project = self.emitted(name, 'cpu')
        self.build_for_processors(project)
        return project

    def test_interpreter(self):
        for name in PIPELINES:
            with self.subTest(name):
                reference = self.prepare(name)
                for level, module in zip(('l4', 'l5'), self.lowered(name)):
                    self.compare(reference, self.interpret(f'{name}-{level}', module), '1e-10')

    def test_threads_and_processes(self):
        for name in PIPELINES:
            with self.subTest(name):
                reference = self.prepare(name)
                project = self.built(name)
                self.compare(reference, self.run_program(f'{name}-threads', [project / 'build' / 'train']), '1e-5')
                self.compare(reference, self.run_program(f'{name}-processes', [project / 'run.sh']), '1e-5')

    def test_profile_names_the_commands(self):
        self.prepare('looped')
        run = self.folder / 'profiled'
        project = self.built('looped')
        outcome = self.succeed([project / 'build' / 'train', '--data', self.batches, '--steps', 2, *SETTINGS, '--profile', '-o', run])
        self.assertNotIn('no names of operators', outcome.err)
        for rank in range(2):
            events = json.loads((run / 'traces' / f'rank_{rank:05}.json').read_text())['traceEvents']
            threads = [event['args']['name'] for event in events if event['name'] == 'thread_name']
            self.assertEqual(threads, ['compute', 'over positions', f'messages with position {1 - rank}'])

    def test_emulated_device(self):
        reference = self.prepare('alternating')
        self.compare(reference, self.run_program('cuda', [self.program(self.emitted('alternating', 'cuda'))]), '1e-5')


if __name__ == '__main__':
    common.main()
