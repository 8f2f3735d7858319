"""Builds a graph node by node, with the names and the metadata that the exporter gives them."""

import contextlib

import numpy
import onnx
from onnx import TensorProto, helper

OPSET = 20
# The first with attention, rotary embedding and RMS norm as operators.
OPERATORS_OPSET = 23
IR_VERSIONS = {OPSET: 10, OPERATORS_OPSET: 11}


class GraphBuilder:
    """Collects nodes, initializers and inputs.

    Values are named as the exporter names them: the result of a PyTorch operator after the operator (`addmm`, `addmm_1`), what the
    exporter adds around it `val_<n>`. A node's scope is the path of the modules that are open when it is added.
    """

    def __init__(self, parameters, opset=OPSET):
        self.parameters, self.opset = parameters, opset
        self.nodes, self.initializers, self.inputs, self.value_infos = [], [], [], []
        self.scopes = []
        self.counts = {}
        self.clutter = 0

    @contextlib.contextmanager
    def scope(self, name, kind):
        """Opens the module `name` (a full path, such as `transformer.h.0.attn`) of the class `kind`."""
        self.scopes.append((name, kind))
        yield
        self.scopes.pop()

    def unique(self, hint):
        count = self.counts.get(hint, 0)
        self.counts[hint] = count + 1
        return f'{hint}_{count}' if count else hint

    def input(self, name, dtype, shape):
        info = helper.make_tensor_value_info(name, dtype, shape)
        self._mark(info, 'USER_INPUT', name)
        self.inputs.append(info)
        self.counts[name] = 1
        return name

    def parameter(self, name, shape, kind):
        """Returns a trainable initializer, which `Parameters` fills by `kind`. The same name returns the same, tied initializer."""
        if name not in {each.name for each in self.initializers}:
            tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=shape)
            values = self.parameters.values(name, shape, kind)
            if values is not None:
                tensor.raw_data = values.astype('<f4').tobytes()
            self.initializers.append(tensor)
            info = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            self._mark(info, 'PARAMETER', 'p_' + name.replace('.', '_'))
            self.value_infos.append(info)
        return name

    def buffer(self, name, values):
        """Returns an initializer that does not train."""
        self.initializers.append(onnx.numpy_helper.from_array(values, name))
        info = helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape)
        self._mark(info, 'BUFFER', 'b_' + name.replace('.', '_'))
        self.value_infos.append(info)
        return name

    def op(self, op_type, inputs, hint=None, outputs=1, origin=None, **attributes):
        """Adds a node and returns its value, or a list of them. `hint` names a PyTorch operator's own result; `origin` is that operator."""
        if hint:
            names = [self.unique(hint) for _ in range(outputs)]
            node_name = f'node_{names[0]}'
        else:
            names = []
            for _ in range(outputs):
                self.clutter += 1
                names.append(f'val_{self.clutter}')
            node_name = f'node_{op_type}_{self.clutter}'
        node = helper.make_node(op_type, inputs, names, name=node_name, **attributes)
        self._locate(node, origin or hint or op_type.lower())
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def ints(self, values):
        """Returns a Constant vector of int64."""
        return self.op('Constant', [], value_ints=list(values))

    def scalar(self, value, dtype=TensorProto.FLOAT):
        """Returns a Constant of rank 0."""
        array = numpy.array(value, dtype=helper.tensor_dtype_to_np_dtype(dtype))
        return self.op('Constant', [], value=onnx.numpy_helper.from_array(array))

    def vector(self, value):
        """Returns a Constant int64 vector of one element, written as a tensor, as axes and bounds are."""
        return self.op('Constant', [], value=onnx.numpy_helper.from_array(numpy.array([value], dtype=numpy.int64)))

    def dims(self, sizes):
        """Returns a shape: the exporter concatenates one Constant for each dimension."""
        return self.op('Concat', [self.ints([size]) for size in sizes], axis=0)

    def reshape(self, value, sizes, hint='view'):
        return self.op('Reshape', [value, self.dims(sizes)], hint, allowzero=1)

    def bound(self, value):
        """Returns a Slice bound: a scalar that goes through Cast and Reshape."""
        cast = self.op('Cast', [self.scalar(value, TensorProto.INT64)], to=TensorProto.INT64)
        return self.op('Reshape', [cast, self.ints([-1])], allowzero=0)

    def slice(self, value, begin, end, axis, hint='slice'):
        return self.op('Slice', [value, self.bound(begin), self.bound(end), self.bound(axis), self.ints([1])], hint)

    def arange(self, size):
        """Returns 0 … size − 1 as int64."""
        end = self.scalar(size, TensorProto.INT64)
        begin = self.op('CastLike', [self.scalar(0.0), end])
        step = self.op('CastLike', [self.scalar(1.0), end])
        return self.op('Range', [begin, end, step], 'arange')

    def rename_last(self, name):
        """Gives the last node's value the name of the graph's output."""
        self.nodes[-1].output[0] = name
        return name

    def model(self, output):
        graph = helper.make_graph(self.nodes, 'main_graph', self.inputs, [helper.make_tensor_value_info(output, TensorProto.FLOAT, [])],
                                  self.initializers, value_info=self.value_infos)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)],
                                  ir_version=IR_VERSIONS[self.opset], producer_name='windlass_models')
        return model

    def _locate(self, node, origin):
        path = [*self.scopes, (node.name.removeprefix('node_'), origin)]
        self._metadata(node, 'namespace', '/'.join(f'{name}: {kind}' for name, kind in path))
        self._metadata(node, 'pkg.torch.onnx.class_hierarchy', str([kind for _, kind in path]))
        self._metadata(node, 'pkg.torch.onnx.name_scopes', str([name for name, _ in path]))

    def _mark(self, info, kind, original):
        self._metadata(info, 'pkg.torch.export.graph_signature.InputSpec.kind', kind)
        self._metadata(info, 'pkg.torch.export.graph_signature.InputSpec.persistent', 'None')
        self._metadata(info, 'pkg.torch.onnx.original_node_name', original)

    @staticmethod
    def _metadata(proto, key, value):
        proto.metadata_props.add(key=key, value=value)
