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
    'separate': dict(family='gpt'),
    'fused': dict(family='gpt', fused_qkv=True, tied=False, linear='matmul'),
    'llama': dict(family='llama'),
    'bert': dict(family='bert', attention='eager'),
}
MORE_FORMS = {
    'unshifted': dict(family='gpt', shifted=False),
    'gelu': dict(family='gpt', activation='tanh'),
    'erf': dict(family='gpt', activation='erf', layers=2),
    'trilu': dict(family='gpt', mask='trilu', fused_qkv=True),
    'gpt-eager': dict(family='gpt', attention='eager'),
    'gpt-operator': dict(family='gpt', attention='operator', mask='trilu'),
    'opt': dict(family='opt'),
    'bert-sdpa': dict(family='bert'),
    'bert-operator': dict(family='bert', attention='operator'),
    'llama-eager': dict(family='llama', attention='eager', mask='trilu'),
    'llama-operator': dict(family='llama', attention='operator', mask='trilu'),
    'llama-operator-mask': dict(family='llama', attention='operator'),
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
        path = self.small(**dict(form, width=16, tokens=8))
        data, run, dump = self.batches(path, 1), self.folder / name, self.folder / f'{name}.safetensors'
        self.succeed('train', path, '-n', 2, '--data', data, '--steps', 1, '-o', run, '--dump-gradients', dump)
        got = json.loads((run / 'metrics.jsonl').read_text().splitlines()[0])

        model = onnx.load(str(path))
        batch = {name.removesuffix('.0'): array for name, array in common.safetensors_file.read(data).items()}
        loss = float(ReferenceEvaluator(model).run(None, batch)[0])
        self.assertLess(abs(got['loss'] - loss) / loss, 1e-5)

        gradients = common.safetensors_file.read(dump)
        marks = {info.name: {p.key: p.value for p in info.metadata_props} for info in model.graph.value_info}
        kind = 'pkg.torch.export.graph_signature.InputSpec.kind'
        self.assertEqual(set(gradients), {name for name, mark in marks.items() if mark.get(kind) == 'PARAMETER'})
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
