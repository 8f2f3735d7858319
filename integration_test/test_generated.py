"""Every form that the generator writes trains to the loss and the slope that onnx's own evaluator gives.

    test_generated.py [--all]
"""

import json
import sys

import numpy
import onnx
from onnx.reference import ReferenceEvaluator

import common

FORMS = {
    'separate': dict(),
    'fused': dict(fused_qkv=True, tied=False, linear='matmul'),
}
MORE_FORMS = {
    'unshifted': dict(shifted=False),
    'gelu': dict(gelu='tanh'),
    'erf': dict(gelu='erf', layers=2),
    'trilu': dict(mask='trilu', fused_qkv=True),
}


def moved(model, gradients, step):
    """`model` with its parameters moved by `step` along the gradient."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.name in gradients:
            values = onnx.numpy_helper.to_array(tensor) + numpy.float32(step) * gradients[tensor.name]
            tensor.raw_data = values.astype('<f4').tobytes()
    return copy


class GeneratedTest(common.Case):
    def check_form(self, form, name):
        path = self.small_gpt(**dict(form, width=16, tokens=8))
        data, run, dump = self.batches(path, 1), self.folder / name, self.folder / f'{name}.safetensors'
        self.succeed('train', path, '-n', 2, '--data', data, '--steps', 1, '-o', run, '--dump-gradients', dump)
        got = json.loads((run / 'metrics.jsonl').read_text().splitlines()[0])

        model = onnx.load(str(path))
        batch = {name.removesuffix('.0'): array for name, array in common.safetensors_file.read(data).items()}
        loss = float(ReferenceEvaluator(model).run(None, batch)[0])
        self.assertLess(abs(got['loss'] - loss) / loss, 1e-5)

        gradients = common.safetensors_file.read(dump)
        self.assertEqual(set(gradients), {tensor.name for tensor in model.graph.initializer})
        square = sum(float((array.astype(numpy.float64) ** 2).sum()) for array in gradients.values())
        self.assertLess(abs(got['grad_norm'] ** 2 - square) / square, 1e-4)
        step = 2e-2 / square
        ahead, behind = (float(ReferenceEvaluator(moved(model, gradients, sign * step)).run(None, batch)[0]) for sign in (1, -1))
        slope = (ahead - behind) / (2 * step)
        print(f'loss {got["loss"]:.6f} against {loss:.6f}, slope {square:.6f} against {slope:.6f}')
        self.assertLess(abs(slope - square) / square, 1e-2)

    def test_forms(self):
        forms = dict(FORMS, **MORE_FORMS) if EVERY else FORMS
        for name, form in forms.items():
            with self.subTest(name):
                self.check_form(form, name)


EVERY = '--all' in sys.argv
if EVERY:
    sys.argv.remove('--all')
common.main()
