"""Forms that the generator writes train to the loss and the slope that onnx's own evaluator gives.

    test_generated.py          every second of the families' usual forms
    test_generated.py --all    every form
"""

import json
import sys

import numpy
import onnx
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

import common

FORMS = {
    'separate': dict(family='gpt'),
    'fused': dict(family='gpt', fused_qkv=True, tied=False, linear='matmul'),
    'llama': dict(family='llama'),
    'moe': dict(family='moe'),
    'mixtral': dict(family='mixtral'),
    'bert': dict(family='bert', attention='eager'),
    'vit': dict(family='vit', layers=2),
    'resnet': dict(family='resnet'),
    'irregular': dict(family='irregular', layers=5),
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
    'moe-threshold': dict(family='moe', router='threshold', experts=6, chosen=3),
    'moe-one': dict(family='moe', chosen=1),
    'mixtral-one': dict(family='mixtral', chosen=1),
    'vit-eager': dict(family='vit', attention='eager', activation='tanh'),
    'resnet-grouped': dict(family='resnet-grouped'),
    'resnet-depthwise': dict(family='resnet', depthwise=True, layers=1),
    'vit-operator': dict(family='vit', attention='operator', channels=1, side=8, patch=8),
    **{f'irregular-{structure}': dict(family='irregular', layers=4, structure=structure) for structure in range(1, 7)},
}


def in_f64(model):
    """`model` with its values and arithmetic in f64: differences of losses in f32 are mostly rounding."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    del wide.graph.value_info[:]

    def widen(tensor):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(numpy.float64), tensor.name))

    for tensor in wide.graph.initializer:
        widen(tensor)
    for attribute in (attribute for node in wide.graph.node for attribute in node.attribute):
        if attribute.type == onnx.AttributeProto.TENSOR:
            widen(attribute.t)
        elif attribute.name == 'value_float':
            attribute.CopyFrom(onnx.helper.make_attribute('value', onnx.numpy_helper.from_array(numpy.array(attribute.f, numpy.float64))))
        elif attribute.name == 'to' and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
    for value in (*wide.graph.input, *wide.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return wide


def moved(model, gradients, step):
    """`model` with its parameters moved by `step` along the gradient."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in copy.graph.initializer:
        if tensor.name in gradients:
            values = onnx.numpy_helper.to_array(tensor) + step * gradients[tensor.name].astype(numpy.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
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
        if form['family'].startswith('resnet'):
            return  # the evaluator computes some of their operators in f32 even for f64: the difference of two losses is noise
        step, wide = 1e-4 / square, in_f64(model)
        ahead, behind = (float(ReferenceEvaluator(moved(wide, gradients, sign * step)).run(None, batch)[0]) for sign in (1, -1))
        slope = (ahead - behind) / (2 * step)
        print(f'loss {got["loss"]:.6f} against {loss:.6f}, slope {square:.6f} against {slope:.6f}')
        self.assertLess(abs(slope - square) / square, 1e-4)

    def test_forms(self):
        forms = dict(FORMS, **MORE_FORMS) if EVERY else dict(list(FORMS.items())[::2])
        for name, form in forms.items():
            with self.subTest(name):
                self.check_form(form, name)


EVERY = '--all' in sys.argv
if EVERY:
    sys.argv.remove('--all')
common.main()
