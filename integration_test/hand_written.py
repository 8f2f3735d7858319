"""What tests of programs that are written by hand at level L4 or L5 have in common."""

import json
import sys

import numpy

import common
import test_cuda
from windlass_models import safetensors_file


class HandWrittenCase(test_cuda.EmulatedCase):
    """A test sets `batches`, the file of micro-batches that runs train on."""

    def tool(self, name, *arguments):
        return self.succeed([test_cuda.BUILD / 'bin' / name, *arguments])

    def build_for_processors(self, project):
        self.succeed(['cmake', '-S', project, '-B', project / 'build', '-G', 'Ninja', f'-DWINDLASS_RUNTIME_BUILD={test_cuda.BUILD / "runtime"}'])
        self.succeed(['cmake', '--build', project / 'build'])

    def train(self, name, command, steps, *flags):
        """Returns what a run leaves, under the names of the interpreter's dumps. A run that is resumed after its first step leaves the same bits."""
        finals = []
        for run, parts in ((self.folder / f'{name}-run', ([steps],)), (self.folder / f'{name}-resumed', ([1], [steps, '--resume']))):
            for count, *more in parts:
                self.succeed([*command, '--data', self.batches, '--steps', count, *flags, '-o', run, '--dump-gradients', f'{run}.gradients', *more])
            outcome = common.windlass('checkpoint', 'export', run, '--state', '-o', f'{run}.final')
            self.assertEqual(outcome.code, 0, outcome.err)
            finals.append(([row['loss'] for row in self.metrics(run) if 'loss' in row],
                           {key: value.tobytes() for key, value in safetensors_file.read(f'{run}.final').items()}))
        self.assertEqual(finals[0], finals[1])
        run = self.folder / f'{name}-run'
        trained = [row for row in self.metrics(run) if 'loss' in row]
        self.assertEqual(len(trained), steps)
        values = {'evaluate': row['eval_loss'] for row in self.metrics(run) if 'eval_loss' in row}
        for step, row in enumerate(trained):
            values[f'loss.{step}'], values[f'grad_norm.{step}'] = row['loss'], row['grad_norm']
        values.update((f'gradient.0.{key}', value) for key, value in safetensors_file.read(f'{run}.gradients').items())
        final = safetensors_file.read(f'{run}.final')
        for key, value in final.items():
            values[f'{"state" if key.rpartition("/")[0] in final else "parameter"}.{key}'] = value
        target = self.folder / f'{name}.safetensors'
        safetensors_file.write({key: numpy.array(value, numpy.float64) for key, value in values.items()}, target)
        return target

    @staticmethod
    def metrics(run):
        return [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]

    def check(self, one, other, bound, counts):
        """Checks that two files of results differ by at most `bound`, and that they have as many tensors of each kind as `counts` says."""
        said = self.tool('windlass-run', '--compare', one, other, '--bound', bound).out
        print(said, file=sys.stderr)
        for kind, count in counts.items():
            self.assertRegex(said, rf'(?m)^{kind} .* of {count} tensors$')
