"""Every level of a module, executed by the interpreter, against L2: losses, gradients, parameters, optimizer state.

    equivalence.py --build BUILD --input L1.mlir --micro-batches G --ranks 1,2,4 [--initial F --batches F] --work DIR

L1 is compared with the parameters that L2 had before each step. Bounds and deviation are those of the design's
equivalence rule; AdamW runs with eps 1e-3, because with a small eps it turns rounding into steps.
"""

import argparse
import json
import pathlib
import subprocess
import sys

BOUNDS = {'f64': 1e-10, 'f32': 1e-5}
TO_L2 = ('--train-verify-graph', '--train-differentiate=micro-batches={G}', '--train-add-optimizer=clip={clip}', '--train-verify-functions')
TO_L3 = ('--plan-apply-strategy=strategy=ddp ranks={R} bucket-bytes={bucket}', '--plan-materialize-layouts', '--plan-verify-layouts')
TO_L4 = ('--plan-to-sched',)
TO_FUSED = ('--sched-fuse-elementwise',)
TO_L5 = ('--sched-lower-to-commands', '--sched-verify-commands')


class Failure(Exception):
    pass


def execute(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        raise Failure(f"{' '.join(str(part) for part in command)}\nexit {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class Equivalence:
    def __init__(self, args):
        self.args = args
        self.bin = pathlib.Path(args.build) / 'bin'
        self.work = pathlib.Path(args.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.comparisons = 0
        self.worst = {precision: 0.0 for precision in BOUNDS}

    def lower(self, source, passes, name, **values):
        target = self.work / name
        values.update(G=self.args.micro_batches, bucket=self.args.bucket_bytes, clip=str(self.args.clip).lower())
        execute(self.bin / 'windlass-opt', source, *(text.format(**values) for text in passes), '-o', target)
        return target

    def run(self, source, level, precision, *flags):
        target = self.work / f'{source.name}.{precision}.safetensors'
        files = [part for flag, file in (('--initial', self.args.initial), ('--batches', self.args.batches)) if file for part in (flag, file)]
        execute(self.bin / 'windlass-run', source, '--level', level, '--precision', precision, '--steps', self.args.steps, '--eps', '1e-3',
                '--lr', '1e-2', '--clip-norm', self.args.clip_norm, *files, *flags, '-o', target)
        return target

    def compare(self, reference, other, precision, kinds):
        found = json.loads(execute(self.bin / 'windlass-run', '--compare', reference, other, '--json', '--bound', BOUNDS[precision]))['deviations']
        missing = set(kinds) - set(found)
        if missing:
            raise Failure(f'{reference} and {other} have no {sorted(missing)} in common')
        self.comparisons += 1
        self.worst[precision] = max(self.worst[precision], *found.values())
        if self.args.verbose:
            print(f'{other.name}: ' + ', '.join(f'{kind} {value:.1e}' for kind, value in found.items()))

    def check(self):
        args, every = self.args, ('loss', 'grad_norm', 'gradient', 'parameter', 'state')
        source = pathlib.Path(args.input)
        l1 = self.work / 'l1.mlir'
        l1.write_bytes(source.read_bytes())
        l2 = self.lower(l1, TO_L2, 'l2.mlir')
        reference = {}
        for precision in BOUNDS:
            reference[precision] = self.run(l2, 'L2', precision, '--keep-trajectory')
            dump = self.run(l1, 'L1', precision, '--micro-batches', args.micro_batches, '--trajectory', reference[precision])
            self.compare(reference[precision], dump, precision, ('loss',))
        for ranks in args.ranks:
            l3 = self.lower(l2, TO_L3, f'l3-{ranks}.mlir', R=ranks)
            l4 = self.lower(l3, TO_L4, f'l4-{ranks}.mlir')
            fused = self.lower(l4, TO_FUSED, f'l4-fused-{ranks}.mlir')
            l5 = self.lower(fused, TO_L5, f'l5-{ranks}.mlir')
            for precision in BOUNDS:
                for module, level in ((l3, 'L3'), (l4, 'L4'), (fused, 'L4'), (l5, 'L5')):
                    dump = self.run(module, level, precision, '--ranks', ranks)
                    self.compare(reference[precision], dump, precision, every)
                    dump.unlink()
        print(f'equivalent: {self.comparisons} comparisons, '
              + ', '.join(f'worst {precision} {self.worst[precision]:.1e} of {bound:.0e}' for precision, bound in BOUNDS.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True)
    parser.add_argument('--input', required=True)
    parser.add_argument('--micro-batches', type=int, default=1)
    parser.add_argument('--ranks', type=lambda text: [int(part) for part in text.split(',')], default=[1])
    parser.add_argument('--bucket-bytes', type=int, default=4 << 20)
    parser.add_argument('--no-clip', dest='clip', action='store_false')
    parser.add_argument('--clip-norm', type=float, default=0.1)
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--initial')
    parser.add_argument('--batches')
    parser.add_argument('--work', required=True)
    parser.add_argument('-v', '--verbose', action='store_true')
    try:
        Equivalence(parser.parse_args()).check()
    except Failure as failure:
        sys.exit(f'equivalence: {failure}')


if __name__ == '__main__':
    main()
