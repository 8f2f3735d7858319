"""Operators in forms that no model of the tree has: the loss of L1 and its recognised form against onnx's own evaluator."""

import os
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import common
import equivalence
from windlass_models import safetensors_file

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))
RANDOM = numpy.random.RandomState(0)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(numpy.float32)


class OperatorTest(common.Case):
    def check(self, op_type, operands, recognised=None, nodes=None, **attributes):
        """`operands`: arrays are initializers, a name is a graph input of [2, 3] below 4. The loss is a weighed sum of the result `y` of
        the operator, or of `nodes` on operands p0, p1, …"""
        names, initializers, inputs, marks = [], [], [], []
        for i, operand in enumerate(operands):
            if isinstance(operand, str):
                names.append(operand)
                inputs.append(helper.make_tensor_value_info(operand, TensorProto.INT64, [2, 3]))
                continue
            names.append(f'p{i}')
            initializers.append(onnx.numpy_helper.from_array(operand, names[-1]))
        nodes = list(nodes or [helper.make_node(op_type, names, ['y'], **attributes)])
        graph = helper.make_graph(nodes, 'g', inputs, [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)], initializers)
        opsets = [helper.make_opsetid('', 24)]
        feeds = {'ids': numpy.array([[0, 3, 1], [2, 2, 0]])} if inputs else {}
        result = ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets)).run(None, feeds)[0]
        weights = floats(*result.shape)
        # A batch of two, as every training graph has one.
        inputs = inputs or [helper.make_tensor_value_info('ids', TensorProto.INT64, [2, 3])]
        nodes += [helper.make_node('Mul', ['y', 'weights'], ['weighed']), helper.make_node('ReduceSum', ['weighed'], ['loss'], keepdims=0)]
        graph = helper.make_graph(nodes, 'g', inputs, [helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])],
                                  [*initializers, onnx.numpy_helper.from_array(weights, 'weights')])
        path, batches, dump = (self.folder / name for name in ('model.onnx', 'batches.safetensors', 'dump.safetensors'))
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=11), path)
        safetensors_file.write({'ids.0': feeds.get('ids', numpy.zeros((2, 3), numpy.int64))}, batches)
        held = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in [*initializers, graph.initializer[-1]]}
        safetensors_file.write({name: array for name, array in held.items() if array.dtype == numpy.float32}, self.folder / 'initial.safetensors')
        for passes in (('--onnx-to-train-pipeline',), ('--onnx-to-train-pipeline=recognize=false',)):
            run = equivalence.Equivalence(equivalence.Setup(build=BUILD, input=path, work=self.folder, initial=self.folder / 'initial.safetensors', batches=batches))
            l0 = self.folder / 'l0.mlir'
            l0.write_text(equivalence.execute(run.opt, '--import-onnx', path))
            l1 = run.lower(l0, passes, 'l1.mlir')
            if recognised and 'false' not in passes[0]:
                self.assertIn(f'train.{recognised} ', l1.read_text())
            l2 = run.lower(l1, equivalence.TO_L2, 'l2.mlir')
            dump = run.run(l2, 'L2', 'f64', '--steps', '1')
            found = float(safetensors_file.read(dump)['loss.0'])
            want = float((result.astype(numpy.float64) * weights).sum())
            self.assertLess(abs(found - want), 1e-5 * max(1, abs(want)), (op_type, attributes, passes))

    def test_attention(self):
        query, key, value = floats(2, 4, 3, 6), floats(2, 2, 3, 6), floats(2, 2, 3, 5)
        self.check('Attention', [query, key, value], 'attention', is_causal=1)
        self.check('Attention', [query, key, value], 'attention', scale=0.3)
        self.check('Attention', [query, key, value], softcap=2.0)
        self.check('Attention', [query, key, value, numpy.tril(numpy.ones((3, 3), bool))], 'attention')
        self.check('Attention', [floats(2, 3, 8), floats(2, 3, 4), floats(2, 3, 4)], 'attention', q_num_heads=4, kv_num_heads=2)

    def test_rotary_embedding(self):
        x, cosine, sine = floats(2, 4, 3, 6), floats(2, 3, 3), floats(2, 3, 3)
        self.check('RotaryEmbedding', [x, cosine, sine])
        self.check('RotaryEmbedding', [x, cosine, sine], interleaved=1)
        self.check('RotaryEmbedding', [floats(2, 3, 24), cosine, sine], num_heads=4)
        self.check('RotaryEmbedding', [x, cosine[:, :, :2], sine[:, :, :2]], rotary_embedding_dim=4)
        table = floats(4, 3), floats(4, 3)
        self.check('RotaryEmbedding', [x, *table, 'ids'])
        self.check('RotaryEmbedding', [x, *table, numpy.array([[0, 1, 3], [0, 1, 3]])], 'rotary')

    def test_swish(self):
        self.check('Swish', [floats(2, 5)], 'silu')
        self.check('Swish', [floats(2, 5)], alpha=0.7)

    def test_functions_of_angles(self):
        for name in ('Tan', 'Asin', 'Acos', 'Atan', 'Sinh', 'Cosh', 'Asinh', 'Atanh'):
            self.check(name, [0.3 * numpy.tanh(floats(2, 5))], name.lower())
        self.check('Acosh', [2 + numpy.tanh(floats(2, 5))], 'acosh')

    def test_steps(self):
        halves = numpy.float32([[-2.5, -1.5, -0.5, 0, 0.5], [1.5, 2.5, 3.2, -3.7, 1e9]])
        for name in ('Floor', 'Ceil', 'Round', 'Sign'):
            self.check(name, [halves], name.lower())
        nodes = [helper.make_node('Constant', [], ['one'], value_int=1), helper.make_node('Sub', ['ids', 'one'], ['less']),
                 helper.make_node('Sign', ['less'], ['signs']), helper.make_node('Cast', ['signs'], ['y'], to=TensorProto.FLOAT)]
        self.check('Sign', ['ids'], 'sign', nodes=nodes)

    def test_rms_norm(self):
        self.check('RMSNormalization', [floats(2, 5), floats(5)], 'rms_norm')
        self.check('RMSNormalization', [floats(2, 5, 4), floats(5, 4)], axis=1)

    def test_gather_elements(self):
        self.check('GatherElements', [floats(2, 4), 'ids'], 'gather_elements', axis=1)
        self.check('GatherElements', [floats(4, 3), 'ids'], 'gather_elements', axis=0)

    def test_gather_nd(self):
        """Indexes the first dim, as the gathers of a router's experts do."""
        for x, places in ((floats(4, 3, 5), 'ids'), (floats(4, 5), 'ids'), (floats(4), 'ids'), (floats(4, 2, 3), 'negative')):
            nodes = [helper.make_node('Constant', [], ['four'], value_int=4), helper.make_node('Sub', ['ids', 'four'], ['negative']),
                     helper.make_node('Constant', [], ['last'], value_ints=[-1]), helper.make_node('Unsqueeze', [places, 'last'], ['places']),
                     helper.make_node('GatherND', ['p0', 'places'], ['y'])]
            self.check('GatherND', [x, 'ids'], 'embedding' if x.ndim == 2 else 'gather', nodes=nodes)

    def test_top_k(self):
        ties = numpy.array([[1, 3, 3, 2], [-numpy.inf, 5, -numpy.inf, -numpy.inf]], numpy.float32)
        for x, count, attributes in ((floats(3, 7), 1, {}), (floats(2, 3, 5), 3, {}), (floats(4, 6), 2, {'axis': 0}), (floats(4, 6), 2, {'largest': 0}),
                                     (floats(2, 3, 4), 2, {'axis': 1, 'largest': 0}), (floats(3, 4), 4, {}), (ties[:1], 3, {})):
            taken = helper.make_node('TopK', ['p0', 'p1'], ['values', 'places'], **attributes)
            operands = [x, numpy.array([count])]
            self.check('TopK', operands, nodes=[taken, helper.make_node('Identity', ['values'], ['y'])])
            # Places are right among equals too.
            other = floats(*x.shape)
            read = helper.make_node('GatherElements', ['p2', 'places'], ['y'], axis=attributes.get('axis', x.ndim - 1))
            self.check('TopK', [*operands, other], nodes=[taken, read])
        # Equal elements come in order, each once.
        taken = helper.make_node('TopK', ['p0', 'p1'], ['values', 'places'])
        self.check('TopK', [ties, numpy.array([3]), floats(2, 4)], nodes=[taken, helper.make_node('GatherElements', ['p2', 'places'], ['y'], axis=1)])

    def test_einsum(self):
        for equation, *shapes in (('bij,jk,kl->bil', (2, 3, 4), (4, 5), (5, 2)), ('...ij,...jk', (2, 1, 3, 4), (5, 4, 6)), ('abc,cb->ca', (2, 3, 4), (4, 3)),
                                  ('ij,kj->', (2, 3), (4, 3)), ('iij->j', (3, 3, 2)), ('i,j->ji', (2,), (3,)), ('b a', (2, 3)), ('...a->...', (2, 3, 4)),
                                  ('ab,ab,ac->bc', (2, 3), (2, 3), (2, 4)), ('iji,ji->ij', (2, 3, 2), (3, 2))):
            self.check('Einsum', [floats(*shape) for shape in shapes], equation=equation)


common.main()
