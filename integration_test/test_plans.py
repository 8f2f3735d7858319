"""Any legal plan gives the same numbers (design §2): named strategies and random plans, at L3 to L5, against the unplanned graph at L2.

    test_plans.py                      named strategies of a few one-layer models, a few random plans of each
    test_plans.py families             named strategies of each
    test_plans.py --plans N [FAMILY]   N random plans of each, or of one: over 2, 4 and 8 ranks and meshes of one to three axes

What the plans of a family use is printed; 200 of them and more must use all that the family admits: each kind of factor that its operators
have, each way of being unreduced, each collective, each choice of what a block recomputes.
"""

import collections
import concurrent.futures
import dataclasses
import math
import pathlib
import re
import sys

import common
import equivalence
from test_equivalence import InterpreterCase
from windlass_models import files, mlp, safetensors_file

STRATEGIES = (('ddp', 4), ('zero1', 4), ('zero2', 4), ('zero3', 4), ('megatron', 2), ('zero1*megatron=2', 4), ('zero3*megatron=2', 4), ('megatron*zero2=2', 8))
# All named strategies are tried, alone or in a product.
STRATEGIES += tuple((row['name'], 4) for row in common.named_strategies() if row['name'] not in re.findall(r'\w+', str(STRATEGIES)))
# The strategies of layers of experts; in the last one ranks for the data share a micro-batch.
EXPERT_STRATEGIES = (('ep', 2), ('ep', 4), ('zero3*ep=2', 4), ('ddp*ep=2', 16))
RANKS = (2, 4, 8)
PLANS = 3
FAMILIES = ['mlp', 'odd', 'irregular', 'gpt', 'gpt-fused', 'opt', 'bert', 'vit', 'resnet', 'resnet-grouped', 'llama', 'moe', 'mixtral', 'dropout']
# The families whose named strategies are tried, unless all are asked for.
NAMED_FAMILIES = ['mlp', 'irregular', 'gpt', 'resnet-grouped', 'mixtral']
ENOUGH = 200
TO_L3 = ('--plan-apply-random=seed={seed} ranks={R}', '--plan-verify-layouts=materialized=false')


class Coverage:
    """The features that plans have used, read from their text, and those that they may use."""
    COLLECTIVES = ('all_reduce', 'all_gather', 'reduce_scatter', 'all_to_all', 'permute', 'own_part')
    FLAT_COPIES = ('flat gradient', 'flat master')
    # Operators that take the maximum of what they reduce inside.
    WITH_MAXIMUM = ('attention', 'softmax', 'softmax_cross_entropy')

    def __init__(self, opt, l2):
        self.factors, self.inside = self.factors_of_operators(equivalence.execute(opt, '--show-op-table'))
        self.counts = collections.Counter()
        self.admitted = {'unreduced sum', *self.FLAT_COPIES, *self.COLLECTIVES}
        for op, line in self.operators(l2):
            self.admitted.update(self.kind(op, name, line) for name in self.factors.get(op, ()))
            if op in self.WITH_MAXIMUM:
                self.admitted.add('unreduced max')
        for parts in self.segments(l2).values():
            self.admitted.update(f'segments: {label}' for label in ('kept', 'block', *((*parts, 'halves') if len(parts) > 1 else ())))
        self.admitted.discard(None)

    @staticmethod
    def factors_of_operators(table):
        """Returns the marks of each operator's factors, by name without number ('k0+' is summed over, 'flat~' is all elements), and those that a
        rule splits: factors that are reduced inside, or looked up."""
        factors, inside = collections.defaultdict(lambda: collections.defaultdict(set)), {}
        for line in table.splitlines():
            cells = [cell.strip() for cell in line.split('|')]
            if len(cells) > 5 and cells[1].startswith('train.') and not cells[5].startswith('('):
                for name, mark in re.findall(r'([a-z]+)\d*([+*!~]?)', cells[5]):
                    factors[cells[1].removeprefix('train.')][name].add(mark)
                inside[cells[1].removeprefix('train.')] = cells[6]
        return factors, inside

    @staticmethod
    def operators(text):
        for line in text.splitlines():
            if found := re.search(r'= train\.(\w+)', line):
                yield found[1], line

    @classmethod
    def segments(cls, text):
        """Returns the parts of each block, and the number of the segment that recomputes them; '' where they are kept."""
        blocks = collections.defaultdict(dict)
        for _, line in cls.operators(text):
            if part := re.search(r'plan\.segment<"(.*?)", "(.*?)">', line):
                number = re.search(r'plan\.strategy<.*?\] segment = (\d+)>', line)
                blocks[part[1]][part[2]] = number[1] if number else ''
        return blocks

    @staticmethod
    def label(parts):
        """Returns the entry of a block in plan.json."""
        recomputed = [name for name, number in parts.items() if number]
        if len(recomputed) < len(parts):
            return recomputed[0] if recomputed else 'kept'
        return 'block' if len(set(parts.values())) == 1 else 'halves'

    def kind(self, op, name, line):
        """Returns the kind of a split of the factor; None where it depends on the operator's dims or sizes."""
        marks = self.factors[op][name]
        if len(marks) != 1 or '!' in marks:
            return None
        kind = 'inside: ' + name if self.inside[op] == name else {'': 'parallel', '+': 'summed', '~': 'flat'}[min(marks)]
        # The table's gradient of attention is causal.
        return 'summed' if op == 'attention_grad' and name == 'keys' and ' causal' not in line else kind

    def add(self, l3, l3b, l4):
        for op, line in self.operators(l3):
            strategy = re.search(r'plan\.strategy = #plan\.strategy<\[(.*?)\](?: segment = \d+)?>[,}]', line)
            for name in re.findall(r'<"([a-z]+)\d*", \["', strategy[1]) if strategy else ():
                self.counts[self.kind(op, name, line)] += 1
        for parts in self.segments(l3).values():
            self.counts['segments: ' + self.label(parts)] += 1
        for copy in re.findall(r'plan\.(gradient|master)_layout = #plan\.layout<[^=]*flat = ', l3):
            self.counts['flat ' + copy] += 1
        for kind in re.findall(r'<"[xyz]", (sum|max|min)>', l3b):
            self.counts['unreduced ' + kind] += 1
        for kind in re.findall(rf'sched\.({"|".join(self.COLLECTIVES)})', l4):
            self.counts[kind] += 1
        del self.counts[None]

    def missing(self):
        return sorted(self.admitted - set(self.counts))

    def __str__(self):
        return ', '.join(f'{name} {self.counts[name]}' for name in sorted(self.admitted | set(self.counts)))


class PlansCase(InterpreterCase):
    def setup_of_family(self, family, **change):
        sizes = dict(tokens=8, width=16, vocabulary=32)
        if family == 'mlp':
            model = self.folder / 'mlp.onnx'
            files.save(mlp.build(mlp.MlpConfig((12, 16, 16, 6), ('relu', 'gelu'), 8), jitter=0.05), model, False)
        elif family == 'odd':
            model = self.folder / 'odd.onnx'
            files.save(mlp.build(mlp.MlpConfig((13, 17, 11, 6), ('relu', 'gelu'), 8), jitter=0.05), model, False)
        elif family == 'gpt-fused':
            model = self.small_gpt(fused_qkv=True, **sizes)
        elif family == 'dropout':
            model = self.small_gpt(dropout=0.1, **sizes)
        else:
            model = self.small_gpt(**sizes) if family == 'gpt' else self.small(family, **sizes)
        return self.setup_of(model, micro_batches=4, bucket_bytes=1024, **change)


class NamedStrategiesTest(PlansCase):
    def test_families(self):
        for family in NAMED_FAMILIES:
            for strategy, ranks in STRATEGIES:
                with self.subTest(family=family, strategy=strategy):
                    self.check(self.setup_of_family(family, strategy=strategy, ranks=(ranks,)))

    def test_experts(self):
        for family in ('mixtral', 'moe'):
            for strategy, ranks in EXPERT_STRATEGIES:
                with self.subTest(family=family, strategy=strategy):
                    self.check(self.setup_of_family(family, strategy=strategy, ranks=(ranks,)))


class PinsTest(PlansCase):
    """Pins under named strategies."""
    BLOCK = 'transformer.h.0.'
    SETS = (
        ('megatron', 2, (BLOCK + 'mlp.matmul.0=whole',)),
        ('zero1*megatron=2', 4, (BLOCK + 'attn.matmul.0=m0:model', BLOCK + 'mlp.c_fc.weight=master:[16, 64:data]')),
        ('zero3', 4, (BLOCK + 'mlp.matmul.1=k0:batch', BLOCK + 'mlp.c_fc.weight=compute:[16, 64]')),
        ('ddp', 8, (BLOCK + 'mlp.gelu_tanh.0=[4, 8:batch, 64]', BLOCK + 'mlp.c_proj.weight=gradient:[64:data, 16] sum(batch)')),
        ('ddp', 4, (BLOCK + 'mlp.c_fc.weight=compute:[16, 64:data]',)),
    )

    def test_they_change_no_number(self):
        for strategy, ranks, pins in self.SETS:
            with self.subTest(strategy=strategy, pins=pins):
                micro_batches = 2 if 'batch' in str(pins) else 4
                judge = equivalence.Equivalence(dataclasses.replace(self.setup_of_family('gpt'), micro_batches=micro_batches))
                l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
                reference = judge.run(l2, 'L2', 'f64')
                passes = [f'--plan-apply-strategy=strategy={strategy} ranks={ranks} bucket-bytes=1024 pins={",".join(pins).replace(" ", "")}', *TO_L3[1:], *equivalence.TO_L3B]
                l3 = judge.lower(l2, passes, 'l3.mlir')
                l5 = judge.lower(judge.lower(l3, equivalence.TO_L4, 'l4.mlir'), equivalence.TO_FUSED + equivalence.TO_L5, 'l5.mlir')
                for module, level in ((l3, 'L3'), (l5, 'L5')):
                    judge.compare(reference, judge.run(module, level, 'f64', '--ranks', ranks), 'f64')


class PlanRunner(PlansCase):
    def one_plan(self, judge, reference, seed):
        """Lowers and runs one plan; returns its texts."""
        ranks = RANKS[seed % len(RANKS)]
        planned = judge.lower(pathlib.Path(judge.work / 'l2.mlir'), [text.format(seed=seed, R=ranks) for text in TO_L3], f'plan-{seed}.mlir')
        l3 = judge.lower(planned, equivalence.TO_L3B, f'l3-{seed}.mlir')
        l4 = judge.lower(l3, equivalence.TO_L4, f'l4-{seed}.mlir')
        l5 = judge.lower(l4, equivalence.TO_FUSED + equivalence.TO_L5, f'l5-{seed}.mlir')
        for module, level in ((l3, 'L3'), (l4, 'L4'), (l5, 'L5')):
            dump = judge.run(module, level, 'f64', '--ranks', ranks)
            judge.compare(reference, dump, 'f64')
            dump.unlink()
        texts = planned.read_text(), l3.read_text(), l4.read_text()
        for file in (planned, l3, l4, l5):
            file.unlink()
        return texts


class OptimizersTest(PlanRunner):
    """Optimizers whose steps are several operators, and the moving average; without clipping the host updates early."""

    def test_random_plans(self):
        for optimizer, ema, clip in (('adamw', True, True), ('adamw', False, False), ('adafactor', False, True), ('lamb', True, False), ('muon', False, True)):
            judge = equivalence.Equivalence(self.setup_of_family('gpt', optimizer=optimizer, ema=ema, clip=clip))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(l2, 'L2', 'f64')
            for seed in range(PLANS):
                with self.subTest(optimizer=optimizer, clip=clip, seed=seed):
                    self.one_plan(judge, reference, seed)


class PrecisionTest(PlanRunner):
    """16 bits round, and do nothing else; and every plan rounds the same values but for the order of sums."""
    # The differences of the program in bf16 or f16 from that in f32, as for parity of reduced precision.
    BOUNDS = {'loss': 2e-2, 'evaluate': 2e-2, 'gradient': 1e-1, 'grad_norm': 1e-1}
    STRATEGIES = (('zero1', 4), ('zero3', 4), ('zero1*megatron=2', 4))

    def test_bf16(self):
        self.check('bf16', 1e-4)

    def test_f16(self):
        self.check('f16', 1e-5)

    def check(self, precision, least):
        # Rounding the weights of two residual blocks moves their gradients by more than the bound.
        for family in [each for each in NAMED_FAMILIES if each != 'resnet']:
            judge = equivalence.Equivalence(self.setup_of_family(family, precision=precision, steps=1))
            whole = equivalence.Equivalence(self.setup_of_family(family, steps=1))
            l1 = judge.graph()
            l2, whole_l2 = judge.lower(l1, equivalence.TO_L2, 'l2.mlir'), whole.lower(l1, equivalence.TO_L2, 'whole.mlir')
            self.assertIn(f'x{precision}>', l2.read_text())
            reference = judge.run(l2, 'L2', 'f64')
            judge.compare(whole.run(whole_l2, 'L2', 'f64'), reference, 'f64')
            rounded = judge.run(l2, 'L2', 'f32')
            found = judge.deviations(whole.run(whole_l2, 'L2', 'f32'), rounded)
            for kind, bound in self.BOUNDS.items():
                self.assertLess(found[kind], bound, (family, kind))
            self.assertGreater(found['gradient'], least, family)
            for judge.setup.strategy, ranks in self.STRATEGIES:
                with self.subTest(family=family, strategy=judge.setup.strategy):
                    for module, level in judge.lower_for(l2, ranks):
                        judge.compare(reference, judge.run(module, level, 'f64', '--ranks', ranks), 'f64')
                        found = judge.deviations(rounded, judge.run(module, level, 'f32', '--ranks', ranks))
                        for kind, bound in self.BOUNDS.items():
                            self.assertLess(found[kind], bound, (family, kind))
            for seed in range(2):
                with self.subTest(family=family, seed=seed):
                    self.one_plan(judge, reference, seed)

    def test_overflow(self):
        """Where gradients overflow f16, every level leaves out the same updates, and lowers the scale alike."""
        for optimizer in ('adamw', 'adafactor', 'lamb', 'muon', 'sgd'):
            judge = equivalence.Equivalence(dataclasses.replace(self.setup_of_family('gpt', precision='f16', optimizer=optimizer), micro_batches=2, steps=4))
            l2 = judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            scale = ('--loss-scale', 2 ** 24, '--loss-scale-hysteresis', 1, '--loss-scale-window', 1)
            norms = self.norms(judge, l2, scale)
            self.assertIn(True, norms)
            self.assertIn(False, norms)
            values = safetensors_file.read(judge.run(l2, 'L2', 'f32', *scale, '--keep-trajectory'))
            weights = [{name: array for name, array in values.items() if name.startswith(f'before.{step}.')} for step in range(4)]
            for step, is_finite in enumerate(norms[:-1]):
                moves = [(array != weights[step + 1][name.replace(f'before.{step}.', f'before.{step + 1}.')]).any() for name, array in weights[step].items()]
                self.assertGreater(len(moves), 10)
                self.assertEqual(any(moves), is_finite, (optimizer, step))
            reference = judge.run(l2, 'L2', 'f32', *scale)
            for module, level in judge.lower_for(l2, 2):
                self.assertEqual(self.norms(judge, module, scale), norms)
                found = judge.deviations(reference, judge.run(module, level, 'f32', *scale))
                for kind in ('loss', 'parameter'):
                    self.assertLess(found[kind], self.BOUNDS['loss'], (level, kind))
            # One overflow at the floor ends the run; where all steps overflow, nothing has moved.
            with self.assertRaisesRegex(equivalence.Failure, 'the gradient of step 0 is not finite, and the loss scale is 2.24 and may not fall below 2.24'):
                judge.run(l2, 'L2', 'f32', *scale, '--loss-scale-floor', 2 ** 24)

    def norms(self, judge, module, flags):
        """Returns, for each step, whether its gradient norm is finite."""
        printed = equivalence.execute(judge.run_tool, module, '--precision', 'f32', '--steps', judge.setup.steps,
                                      '--initial', judge.setup.initial, '--batches', judge.setup.batches, *flags)
        return [math.isfinite(float(line.split()[-1])) for line in printed.splitlines()]


class RandomPlansTest(PlanRunner):
    def test_families(self):
        for family in FAMILIES:
            judge = equivalence.Equivalence(self.setup_of_family(family))
            judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir')
            reference = judge.run(judge.work / 'l2.mlir', 'L2', 'f64')
            coverage = Coverage(judge.opt, (judge.work / 'l2.mlir').read_text())
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                plans = {seed: pool.submit(self.one_plan, judge, reference, seed) for seed in range(PLANS)}
                for seed, plan in plans.items():
                    with self.subTest(family=family, seed=seed):
                        try:
                            coverage.add(*plan.result())
                        except equivalence.Failure as failure:
                            self.fail(str(failure))
            print(f"{family}: {PLANS} plans, worst {judge.worst['f64']:.1e}; {coverage}", file=sys.stderr)
            if PLANS >= ENOUGH:
                with self.subTest(family=family, coverage=PLANS):
                    self.assertEqual(coverage.missing(), [], f'of what {family} admits {PLANS} plans use nothing of this')


if __name__ == '__main__':
    if '--plans' in sys.argv:
        at = sys.argv.index('--plans')
        PLANS = int(sys.argv[at + 1])
        FAMILIES = sys.argv[at + 2:] or FAMILIES
        del sys.argv[at:], NamedStrategiesTest, PinsTest, OptimizersTest, PrecisionTest
    elif sys.argv[1:2] == ['families']:
        NAMED_FAMILIES = FAMILIES
        del sys.argv[1], PinsTest, OptimizersTest, RandomPlansTest
    common.main()
