"""Model files: files that are no model, files that break off, and graphs that contradict themselves."""

import gzip
import os
import socket

import onnx
from onnx import TensorProto, helper, parser

from windlass_models import gpt, mlp

from . import wire
from .case import ANY, BAD_INPUT, UNSUPPORTED, Case, cuts, flips, write

CLASSIFIER = mlp.MlpConfig(sizes=(4, 8, 3), activations=('relu',), batch=2)
GPT = gpt.GptConfig(layers=1, width=8, heads=2, vocabulary=16, tokens=4, batch=2)


def classifier():
    return mlp.build(CLASSIFIER)


def small_gpt():
    return gpt.build(GPT)


def check(name, path, codes=(BAD_INPUT,), says=(), *flags):
    return Case(name, ['check', path, *flags], codes, says)


def graph_text(body, inputs='float[2, 4] x', weights='float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}', opset='"" : 20'):
    """Returns the text form of an ONNX model whose last value is `loss`."""
    return parser.parse_model(f'<ir_version: 10, opset_import: [{opset}]> g ({inputs}) => (float loss) <{weights}> {{ {body} }}')


LINEAR = 'y = MatMul (x, w) loss = ReduceMean <keepdims = 0> (y)'


def files(folder):
    yield check('missing', folder / 'none.onnx', says=('none.onnx', 'no such file'))
    yield check('folder', folder, says=('is a folder',))
    os.mkfifo(folder / 'pipe.onnx')
    yield check('named pipe', folder / 'pipe.onnx', says=('regular file',))
    yield check('device', '/dev/zero', says=('regular file',))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / 'socket.onnx'))
    yield check('socket', folder / 'socket.onnx', says=('regular file',))
    listener.close()
    (folder / 'loop.onnx').symlink_to('loop.onnx')
    yield check('link to itself', folder / 'loop.onnx', says=('loop.onnx',))
    yield check('name with a newline', folder / 'two\nlines.onnx', says=('no such file',))
    yield check('name of 5000 bytes', folder / ('n' * 5000), says=('too long',))
    yield check('empty name', '', says=('no such file',))
    kinds = {'empty': b'', 'text': b'This is a text and no model.\n' * 50, 'zeros': bytes(4096), 'ones': b'\xff' * 4096,
             'picture': b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 8, 'program': b'\x7fELF' + bytes(range(256)) * 100,
             'weights': b'\x40' + bytes(7) + b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' + bytes(12)}
    for kind, data in kinds.items():
        yield check(kind, write(folder / f'{kind}.onnx', data), says=('is empty' if not data else 'onnx',))


def damaged(folder):
    path = folder / 'damaged.onnx'
    for label, model in (('classifier', classifier()), ('gpt', small_gpt())):
        data = model.SerializeToString()
        for length, cut in cuts(data):
            yield check(f'{label} cut at {length} of {len(data)}', write(path, cut), says=('damaged.onnx',))
        for i, changed in flips(data, 150, 1):
            yield check(f'{label} with bits turned, {i}', write(path, changed), ANY)


def packed(folder):
    path = folder / 'packed.onnx.gz'
    data = gzip.compress(small_gpt().SerializeToString(), mtime=0)
    for length, cut in cuts(data, 25):
        yield check(f'gzip cut at {length}', write(path, cut), says=('gzip' if length > 2 else 'onnx',))
    for i, changed in flips(data, 50, 2):
        yield check(f'gzip with bits turned, {i}', write(path, changed), ANY)
    yield check('gzip twice', write(path, gzip.compress(data)), says=('onnx',))
    yield check('gzip with text behind it', write(path, data + b'and more'), says=('gzip',))
    member = gzip.compress(bytes(1 << 27), 1)
    yield check('gzip of 2 GiB of zeros', write(path, member * 16), says=('budget',))


def versions(folder):
    path = folder / 'version.onnx'
    for opset in (0, 1, 16, 28, 999, -1, 2**62, -2**63):
        model = classifier()
        model.opset_import[0].version = opset
        yield check(f'opset {opset}', write(path, model.SerializeToString()), says=(f'opset {opset}', '17 to 27'))
    model = classifier()
    del model.opset_import[:]
    yield check('no opset', write(path, model.SerializeToString()), says=('opset',))
    model.opset_import.add(domain='other', version=1)
    yield check('an opset of another domain only', write(path, model.SerializeToString()), says=('opset',))
    model = classifier()
    model.opset_import.add(domain='', version=18)
    yield check('two opsets', write(path, model.SerializeToString()), says=('opset',))
    for label, version in (('missing', None), ('0', 0), ('-1', -1), ('999', 999)):
        model = classifier()
        model.ClearField('ir_version')
        if version is not None:
            model.ir_version = version
        yield check(f'IR version {label}', write(path, model.SerializeToString()), ANY)
    graph = classifier().graph.SerializeToString()
    yield check('two graphs', write(path, wire.model(graph) + wire.text(wire.MODEL_GRAPH, graph)), says=('two graphs',))
    yield check('no graph', write(path, wire.number(wire.MODEL_IR_VERSION, 10)), says=('no graph',))
    yield check('empty graph', write(path, wire.model(b'')), says=('no nodes',))


def operators(folder):
    path = folder / 'operator.onnx'
    for label, body, codes in (
            ('unknown operator', 'y = Frobnicate (x) loss = ReduceMean <keepdims = 0> (y)', (UNSUPPORTED,)),
            ('known and unknown', 'y = MatMul (x, w) z = Frobnicate (y) loss = ReduceMean <keepdims = 0> (z)', (UNSUPPORTED,)),
            ('operator without a domain', 'y = other.thing (x) loss = ReduceMean <keepdims = 0> (y)', (BAD_INPUT,)),
            ('too few operands', 'y = MatMul (x) loss = ReduceMean <keepdims = 0> (y)', (BAD_INPUT, UNSUPPORTED)),
            ('no operand', 'y = MatMul () loss = ReduceMean <keepdims = 0> (y)', (BAD_INPUT, UNSUPPORTED)),
            ('too many operands', 'y = MatMul (x, w, w, w) loss = ReduceMean <keepdims = 0> (y)', ANY),
            ('too many results', 'y, z, a, b = MatMul (x, w) loss = ReduceMean <keepdims = 0> (y)', ANY),
            ('results of the wrong kind', 'y = MatMul (x, w) loss = ReduceMean <keepdims = 7> (y)', ANY)):
        yield check(label, write(path, graph_text(body).SerializeToString()), codes)
    model = graph_text('y = other.thing (x) loss = ReduceMean <keepdims = 0> (y)', opset='"" : 20, "other" : 1')
    yield check('unknown domain', write(path, model.SerializeToString()), (UNSUPPORTED,), ('other', 'thing'))
    model = graph_text(LINEAR)
    model.graph.node[0].op_type = ''
    yield check('no operator name', write(path, model.SerializeToString()), says=('names no operator',))
    for op in ('If', 'Loop', 'Scan'):
        model = graph_text(LINEAR)
        model.graph.node[0].op_type = op
        model.graph.node[0].attribute.append(helper.make_attribute('body', model.graph))
        yield check(op, write(path, model.SerializeToString()), (UNSUPPORTED,), (op,))


def attributes(folder):
    """Every attribute of every kind of node: of another type, extreme, left out; and every operand moved or left out."""
    path = folder / 'attribute.onnx'
    strange = (2**63 - 1, -2**63, 1.0, float('nan'), 'text', [], [2**62] * 3, [1.5], list(range(1000)),
               helper.make_tensor('t', TensorProto.INT64, [0], []), helper.make_tensor('t', TensorProto.FLOAT, [2, 2], [0.0] * 4))
    seen = set()
    for label, make in (('classifier', classifier), ('gpt', small_gpt)):
        for index, node in enumerate(make().graph.node):
            if node.op_type in seen:
                continue
            seen.add(node.op_type)
            for place, attribute in enumerate(node.attribute):
                for value in strange:
                    model = make()
                    changed = helper.make_attribute(attribute.name, value, attr_type=onnx.AttributeProto.INTS if value == [] else None)
                    model.graph.node[index].attribute[place].CopyFrom(changed)
                    yield check(f'{node.op_type} with {attribute.name} {str(value)[:24]!r}', write(path, model.SerializeToString()), ANY)
                model = make()
                del model.graph.node[index].attribute[place]
                yield check(f'{node.op_type} without {attribute.name}', write(path, model.SerializeToString()), ANY)
            for place in range(len(node.input)):
                for label, other in (('left empty', ''), ('taken from elsewhere', make().graph.input[-1].name),
                                     ('a weight', make().graph.initializer[0].name)):
                    model = make()
                    model.graph.node[index].input[place] = other
                    yield check(f'{node.op_type} with operand {place} {label}', write(path, model.SerializeToString()), ANY)
            model = make()
            del model.graph.node[index].input[:]
            yield check(f'{node.op_type} without operands', write(path, model.SerializeToString()), ANY)


def shapes(folder):
    path = folder / 'shape.onnx'
    for label, dims in (('product beyond 2^63', [2**40, 2**40]), ('dimension of 2^62', [2**62, 4]), ('negative', [-1, 4]),
                        ('least number', [-2**63, 4]), ('zero', [0, 4]), ('rank 400', [1] * 400), ('rank 100000', [1] * 100000),
                        ('rank 400 of twos', [2] * 400), ('other size', [2, 5]), ('scalar', [])):
        model = graph_text(LINEAR)
        model.graph.input[0].CopyFrom(helper.make_tensor_value_info('x', TensorProto.FLOAT, dims))
        yield check(f'input: {label}', write(path, model.SerializeToString()), (BAD_INPUT, UNSUPPORTED))
        model = graph_text(LINEAR)
        tensor = model.graph.initializer[0]
        del tensor.dims[:]
        tensor.dims.extend(dims)
        yield check(f'weight: {label}', write(path, model.SerializeToString()), says=("'w'",))
        model = graph_text(LINEAR)
        model.graph.value_info.append(helper.make_tensor_value_info('y', TensorProto.FLOAT, dims))
        yield check(f'stated for a value: {label}', write(path, model.SerializeToString()), ANY)
    model = graph_text(LINEAR)
    model.graph.input[0].type.tensor_type.ClearField('shape')
    yield check('input of unknown rank', write(path, model.SerializeToString()), says=('known rank',))
    model.graph.input[0].ClearField('type')
    yield check('input without a type', write(path, model.SerializeToString()), says=("'x'",))
    model = graph_text(LINEAR, 'float[batch, 4] x')
    yield check('dimension that is not bound', write(path, model.SerializeToString()), says=('--dim', 'batch'))


def values(folder):
    path = folder / 'values.onnx'

    def changed(change):
        model = classifier()
        change(model.graph.initializer[0])
        return write(path, model.SerializeToString())

    name = classifier().graph.initializer[0].name
    size = len(classifier().graph.initializer[0].raw_data)
    for length in (0, 1, size - 1, size + 1, 2 * size, 10 * size):
        yield check(f'{length} of {size} bytes', changed(lambda tensor, n=length: setattr(tensor, 'raw_data', bytes(n))), says=(name,))
    for dtype in (0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 99, -1, 2**31 - 1):
        yield check(f'data type {dtype}', changed(lambda tensor, n=dtype: setattr(tensor, 'data_type', n)), (BAD_INPUT, UNSUPPORTED), (name,) if dtype not in (6, 12) else ('Gemm',))
    yield check('values twice', changed(lambda tensor: tensor.float_data.extend([1.0] * 32)), ANY)
    yield check('no values', changed(lambda tensor: tensor.ClearField('raw_data')), says=(name,))
    yield check('strings', changed(lambda tensor: tensor.string_data.append(b'text')), ANY)
    yield check('segment', changed(lambda tensor: setattr(tensor.segment, 'begin', 2**62)), ANY)
    model = classifier()
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(helper.make_tensor('s', TensorProto.FLOAT, [1], [1.0]))
    yield check('sparse weight', write(path, model.SerializeToString()), says=('sparse',))
    for label, dtype in (('input of strings', TensorProto.STRING), ('input of type 99', 99), ('input of type 0', 0)):
        model = graph_text(LINEAR)
        model.graph.input[0].type.tensor_type.elem_type = dtype
        yield check(label, write(path, model.SerializeToString()), (BAD_INPUT, UNSUPPORTED), ("'x'",))


def losses(folder):
    path = folder / 'loss.onnx'
    model = graph_text('y = MatMul (x, w) loss = ReduceMean <keepdims = 0> (y)')
    del model.graph.output[:]
    yield check('no output', write(path, model.SerializeToString()), says=('output',))
    model = graph_text('y = MatMul (x, w) loss = ReduceMean <keepdims = 0> (y)')
    model.graph.output[0].name = 'y'
    yield check('loss of rank 2', write(path, model.SerializeToString()), says=('scalar',))
    yield check('loss without a parameter', write(path, graph_text('y = Mul (x, x) loss = ReduceMean <keepdims = 0> (y)').SerializeToString()),
                says=('loss',))
    model = graph_text('y = Cast <to = 7> (x) loss = ReduceSum <keepdims = 0> (y)')
    yield check('loss of integers', write(path, model.SerializeToString()), (BAD_INPUT, UNSUPPORTED), ('loss',))
    model = graph_text(LINEAR, 'float[2, 4] x, float loss2')
    model.graph.output[0].name = 'loss2'
    yield check('loss that is an input', write(path, model.SerializeToString()), says=('loss2',))
    model = graph_text(LINEAR, weights='float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, float v = {1}')
    model.graph.output[0].name = 'v'
    yield check('loss that is a weight', write(path, model.SerializeToString()), says=('v',))
    model = graph_text(LINEAR)
    model.graph.output.append(model.graph.output[0])
    yield check('an output twice', write(path, model.SerializeToString()), ANY)
    model = graph_text('y = MatMul (x, w) loss = ReduceMean <keepdims = 0> (y) other = ReduceSum <keepdims = 0> (y)')
    model.graph.output[0].name = 'other'
    model.graph.output.append(helper.make_tensor_value_info('another', TensorProto.FLOAT, []))
    model.graph.node[1].output[0] = 'another'
    yield check('two scalar outputs', write(path, model.SerializeToString()), says=('--loss',))
    yield check('a named loss that is none', path, (BAD_INPUT,), ('elsewhere',), '--loss', 'elsewhere')
    yield check('a named loss that is an input', path, (BAD_INPUT,), ("'x'",), '--loss', 'x')
    yield check('a named loss with a newline', path, (BAD_INPUT,), (), '--loss', 'a\nb')


def dimensions(folder):
    path = folder / 'dynamic.onnx'
    write(path, graph_text(LINEAR, 'float[batch, 4] x').SerializeToString())
    for value in ('0', '-1', str(2**63), str(2**62), 'many', '', '1.5', '4 ', '0x4'):
        yield check(f'batch={value}', path, (1, 2), ('batch',) if value != str(2**62) else (), '--dim', f'batch={value}')
    for text in ('batch', '=4', '', '==', 'bach=4', 'a\nb=4', 'n' * 10000 + '=4'):
        yield check(f'--dim {text[:20]!r}', path, (1, 2), (), '--dim', text)
    yield check('a batch of 2^40', path, ANY, (), '--dim', f'batch={2**40}')
