"""Every level of a module, executed by the interpreter, against L2: losses, gradients, parameters, optimizer state,
losses of evaluation.

    equivalence.py --build BUILD --input L1.mlir|MODEL.onnx --micro-batches G --ranks 1,2,4 [--initial F --batches F] --work DIR

L1 is compared with the parameters that L2 had before each step. Bounds and deviation are those of the design's
equivalence rule; AdamW runs with eps 1e-3, because with a small eps it turns rounding into steps.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys

BOUNDS = {'f64': 1e-10, 'f32': 1e-5}
KINDS = ('loss', 'grad_norm', 'gradient', 'parameter', 'state', 'evaluate')
TO_L1 = ('--onnx-to-train-pipeline',)
TO_L2 = ('--train-graph-pipeline',
         '--train-functions-pipeline=average={average} micro-batches={G} merge={merge} optimizer={optimizer} clip={clip} ema={ema} precision={precision} bf16-gradients={bf16_gradients}')
TO_CHUNKS = ('--plan-cut-model=positions={positions} schedule={schedule} chunks={chunks} cluster=cpu:{devices}',)
TO_PLAN = ('--plan-apply-strategy=strategy={S} ranks={R} bucket-bytes={bucket} offload={offload}', '--plan-choose-segments=steps={recompute}')
TO_L3B = ('--plan-materialize-pipeline',)
TO_L3 = TO_PLAN + TO_L3B
TO_L4 = ('--plan-to-sched-pipeline',)
TO_FUSED = ('--sched-fuse-pipeline',)
TO_L5 = ('--sched-to-commands-pipeline',)


class Failure(Exception):
    pass


def execute(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise Failure(f"{' '.join(str(part) for part in command)}\nexit {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-4000:]}")
    return result.stdout


@dataclasses.dataclass
class Setup:
    """The graph that is lowered and run, and its values (random ones where no file is given)."""
    build: str
    input: str
    work: str
    micro_batches: int = 1
    # How many micro-batches are computed as one.
    merge: int = 1
    average: str = 'micro-batches'
    # Ranks of each position of a pipeline.
    ranks: tuple = (1,)
    positions: int = 1
    schedule: str = '1f1b'
    chunks: int = 1
    strategy: str = 'ddp'
    bucket_bytes: int = 4 << 20
    recompute: int = 0
    optimizer: str = 'adamw'
    precision: str = 'f32'
    # Whether gradients travel in bf16.
    bf16_gradients: bool = False
    # Whether the host holds and updates the optimizer's state.
    offload: str = 'none'
    clip: bool = True
    clip_norm: float = 0.1
    # Whether a moving average of each weight is kept.
    ema: bool = False
    steps: int = 2
    initial: str = None
    batches: str = None
    verbose: bool = False


class Equivalence:
    def __init__(self, setup):
        self.setup = setup
        self.opt, self.run_tool = (pathlib.Path(setup.build) / 'bin' / name for name in ('windlass-opt', 'windlass-run'))
        self.work = pathlib.Path(setup.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.comparisons = 0
        self.worst = {precision: 0.0 for precision in BOUNDS}

    def graph(self):
        """The input at L1."""
        if not str(self.setup.input).endswith('.onnx'):
            return pathlib.Path(self.setup.input)
        l0 = self.work / 'l0.mlir'
        l0.write_text(execute(self.opt, '--import-onnx', self.setup.input))
        return self.lower(l0, TO_L1, 'l1.mlir')

    def lower(self, source, passes, name, **values):
        target = self.work / name
        values.update(G=self.setup.micro_batches, merge=values.get('merge', self.setup.merge), average=self.setup.average, optimizer=self.setup.optimizer, precision=self.setup.precision,
                      bucket=self.setup.bucket_bytes, recompute=self.setup.recompute, clip=str(self.setup.clip).lower(), ema=str(self.setup.ema).lower(), bf16_gradients=str(self.setup.bf16_gradients).lower(), offload=self.setup.offload,
                      positions=self.setup.positions, schedule=self.setup.schedule, chunks=self.setup.chunks)
        # Errors are printed without the module, which would be longer than the part that is kept.
        execute(self.opt, '--mlir-print-op-on-diagnostic=false', source, *(text.format(**values) if '{' in text else text for text in passes), '-o', target)
        return target

    def lower_for(self, l2, ranks):
        """(module, level) of L3, L4, L4 with fused operators, and L5."""
        cut = TO_CHUNKS if self.setup.positions > 1 else ()
        l3 = self.lower(l2, cut + TO_L3, f'l3-{ranks}.mlir', R=ranks, S=self.setup.strategy, devices=ranks * self.setup.positions)
        l4 = self.lower(l3, TO_L4, f'l4-{ranks}.mlir')
        fused = self.lower(l4, TO_FUSED, f'l4-fused-{ranks}.mlir')
        l5 = self.lower(fused, TO_L5, f'l5-{ranks}.mlir')
        return (l3, 'L3'), (l4, 'L4'), (fused, 'L4'), (l5, 'L5')

    def run(self, source, level, precision, *flags):
        """Returns the dump of a run of two steps; `flags` override the common ones."""
        target = self.work / f'{source.name}.{precision}.safetensors'
        files = [part for flag, file in (('--initial', self.setup.initial), ('--batches', self.setup.batches)) if file for part in (flag, file)]
        execute(self.run_tool, source, '--level', level, '--precision', precision, '--steps', self.setup.steps, '--eps', '1e-3',
                '--lr', '1e-2', '--clip-norm', self.setup.clip_norm, *files, *flags, '-o', target)
        return target

    def deviations(self, reference, other):
        """Returns the largest deviation of each kind of value, however large."""
        return json.loads(execute(self.run_tool, '--compare', reference, other, '--json', '--bound', '1e9'))['deviations']

    def deviations_by_rounding(self, l5):
        """Returns the deviations of a module at L5 in doubles rounded where a program rounds from one in unrounded doubles."""
        exact, rounded = (self.run(l5, 'L5', 'f64', *flags).rename(self.work / f'dump{len(flags)}') for flags in ((), ('--rounds',)))
        return self.deviations(exact, rounded)

    def compare(self, reference, other, precision, kinds=KINDS):
        found = json.loads(execute(self.run_tool, '--compare', reference, other, '--json', '--bound', BOUNDS[precision]))['deviations']
        missing = set(kinds) - set(found)
        if missing:
            raise Failure(f'{reference} and {other} have no {sorted(missing)} in common')
        self.comparisons += 1
        self.worst[precision] = max(self.worst[precision], *found.values())
        if self.setup.verbose:
            print(f'{other.name}: ' + ', '.join(f'{kind} {value:.1e}' for kind, value in found.items()))

    def check(self):
        """Compares all values; raises Failure at the first that is beyond its bound."""
        l1 = self.graph()
        l2 = self.lower(l1, TO_L2, 'l2.mlir')
        if self.setup.average == 'tokens':
            l1 = self.lower(l1, ('--train-average-tokens',), 'l1-average.mlir')
        reference = {}
        for precision in BOUNDS:
            reference[precision] = self.run(l2, 'L2', precision, '--keep-trajectory')
            dump = self.run(l1, 'L1', precision, '--micro-batches', self.setup.micro_batches, '--trajectory', reference[precision])
            self.compare(reference[precision], dump, precision, ('loss',))
        for ranks in self.setup.ranks:
            modules = self.lower_for(l2, ranks)
            for precision in BOUNDS:
                for module, level in modules:
                    programs = 1 if level == 'L3' else self.setup.positions
                    dump = self.run(module, level, precision, '--ranks', ranks * programs)
                    self.compare(reference[precision], dump, precision)
                    dump.unlink()
        return (f'equivalent: {self.comparisons} comparisons, '
                + ', '.join(f'worst {precision} {self.worst[precision]:.1e} of {bound:.0e}' for precision, bound in BOUNDS.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', required=True)
    parser.add_argument('--input', required=True)
    parser.add_argument('--work', required=True)
    parser.add_argument('--micro-batches', type=int, default=1)
    parser.add_argument('--average', default='micro-batches', choices=('micro-batches', 'tokens'))
    parser.add_argument('--merge', type=int, default=1, metavar='K', help='micro-batches that are computed as one')
    parser.add_argument('--ranks', type=lambda text: tuple(int(part) for part in text.split(',')), default=(1,))
    parser.add_argument('--strategy', default='ddp')
    parser.add_argument('--positions', type=int, default=1, help='of a pipeline, with as many ranks each')
    parser.add_argument('--schedule', default='1f1b')
    parser.add_argument('--chunks', type=int, default=1, help='of each position')
    parser.add_argument('--bucket-bytes', type=int, default=4 << 20)
    parser.add_argument('--recompute', type=int, default=0, metavar='STEPS', help='segments that are recomputed (-1: all)')
    parser.add_argument('--precision', default='f32', help='of the program: f32, bf16 or f16')
    parser.add_argument('--no-clip', dest='clip', action='store_false')
    parser.add_argument('--clip-norm', type=float, default=0.1)
    parser.add_argument('--bf16-gradients', action='store_true')
    parser.add_argument('--ema', action='store_true')
    parser.add_argument('--steps', type=int, default=2)
    parser.add_argument('--initial')
    parser.add_argument('--batches')
    parser.add_argument('-v', '--verbose', action='store_true')
    try:
        print(Equivalence(Setup(**vars(parser.parse_args()))).check())
    except Failure as failure:
        sys.exit(f'equivalence: {failure}')


if __name__ == '__main__':
    main()
