"""Programs for CUDA devices in bf16, f16 and TF32, where kernels are emulated, against the interpreter in doubles that are rounded
where a program rounds: a value to its type where it is stored, operands of products to 10 bits in TF32. What is left between the
two is the order of sums in f32, and the few values that it carries over the middle of two neighbours.

    test_rounding.py [FAMILY...]     of gpt, opt, llama, moe, bert, vit, resnet-grouped (default all)
"""

import json
import sys

import numpy
import onnx

import common
import equivalence
import rounding
import test_cuda
from windlass_models import files, safetensors_file

# The norm of the difference over the norm of the expected value, for losses, gradient norms and each gradient: less than rounding each value
# once would be off by at most.
BOUNDS = {'bf16': 2**-8, 'f16': 2**-11, 'tf32': 2**-11}


FAMILIES = sys.argv[1:] or (*common.TRANSFORMERS, 'resnet-grouped')
del sys.argv[1:]


class RoundingTest(test_cuda.EmulatedCase):
    def generated(self, family):
        """Returns a folder with a one-layer model, its values and a micro-batch."""
        folder = self.folder / family
        folder.mkdir()
        files.save(common.one_layer(family, vocabulary=64), folder / 'model.onnx', False)
        model = onnx.load(folder / 'model.onnx')
        values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        safetensors_file.write({name: array for name, array in values.items() if array.dtype == numpy.float32}, folder / 'initial.safetensors')
        safetensors_file.write(files.random_batches(model, 1, 0), folder / 'batches.safetensors')
        return folder

    def of_program(self, model, precision):
        """Returns the values of the emitted program's first step, under the interpreter's names."""
        program = self.program(self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp', '--precision', precision))
        run, dump = model / f'run-{precision}', model / f'gradients-{precision}.safetensors'
        self.succeed([program, '--data', model / 'batches.safetensors', '--steps', '1', '--dump-gradients', dump, '-o', run])
        row = json.loads((run / 'metrics.jsonl').read_text())
        values = {'loss.0': row['loss'], 'grad_norm.0': row['grad_norm'], **{f'gradient.0.{name}': array for name, array in safetensors_file.read(dump).items()}}
        file = model / f'program-{precision}.safetensors'
        safetensors_file.write({name: numpy.array(value, numpy.float64) for name, value in values.items()}, file)
        return file

    def deviations(self, judge, l5, program, *flags):
        dump = judge.run(l5, 'L5', 'f64', *flags)
        found = judge.deviations(dump, program)
        self.assertEqual(set(found), {'loss', 'grad_norm', 'gradient'})
        return found

    def test_programs_round_as_the_interpreter(self):
        for family in FAMILIES:
            model = self.generated(family)
            for precision, bound in BOUNDS.items():
                # Convolutions are computed in f32 there, which leaves too little that rounds.
                if precision == 'tf32' and family.startswith('resnet'):
                    continue
                with self.subTest(family=family, precision=precision):
                    judge = equivalence.Equivalence(equivalence.Setup(
                        build=test_cuda.BUILD, input=model / 'model.onnx', work=model / precision, precision=precision, clip=False, steps=1,
                        initial=model / 'initial.safetensors', batches=model / 'batches.safetensors'))
                    l5 = rounding.lower(judge)
                    program = self.of_program(model, precision)
                    rounded, exact = self.deviations(judge, l5, program, '--rounds'), self.deviations(judge, l5, program)
                    print(f'{family} {precision}: rounded', *(f'{kind} {value:.1e}' for kind, value in rounded.items()), f'; exact gradient {exact["gradient"]:.1e}')
                    self.assertLess(max(rounded.values()), bound)
                    # Without the rounding the bound does not hold, so the comparison tests the rounding.
                    self.assertGreater(exact['gradient'], bound)


class ChoicesTest(common.Case):
    def test_experts(self):
        """f16 chooses the experts that doubles choose: another choice is a jump of the gradients, to 0.15."""
        model = common.completed('mixtral-tiny', self.folder)
        found = rounding.deviations(test_cuda.BUILD, model, common.MODELS / 'mixtral-tiny' / 'batches.safetensors', 'f16', self.folder / 'levels')
        print(f'mixtral-tiny f16: gradient {found["gradient"]:.1e}')
        self.assertLess(found['gradient'], 1e-2)


if __name__ == '__main__':
    common.main()
