"""Graphs that are sound as files but not as graphs, or that ask for far more than they weigh."""

import onnx
from onnx import TensorProto, helper

from . import wire
from .case import ANY, BAD_INPUT, UNSUPPORTED, write
from .models import LINEAR, check, graph_text

FAR = 2**60


def names(folder):
    path = folder / 'names.onnx'

    def changed(body, change=None, says=(), label='', codes=(BAD_INPUT,), **options):
        model = graph_text(body, **options)
        if change:
            change(model.graph)
        return check(label, write(path, model.SerializeToString()), codes, says)

    chain = 'a = MatMul (x, w) b = MatMul (a, w) loss = ReduceMean <keepdims = 0> (b)'
    yield changed(chain, lambda graph: graph.node[0].input.__setitem__(0, 'b'), ('in order',), 'cycle')
    yield changed(chain, lambda graph: graph.node[0].input.__setitem__(0, 'a'), ('in order',), 'cycle of one node')

    def swap(graph):
        first, second = onnx.NodeProto(), onnx.NodeProto()
        first.CopyFrom(graph.node[0])
        second.CopyFrom(graph.node[1])
        graph.node[0].CopyFrom(second)
        graph.node[1].CopyFrom(first)

    yield changed(chain, swap, ('in order',), 'not sorted')
    yield changed(chain, lambda graph: graph.node[1].output.__setitem__(0, 'a'), ('twice',), 'value defined twice')
    yield changed(chain, lambda graph: graph.node[0].output.__setitem__(0, 'x'), ('twice',), 'node defines an input')
    yield changed(chain, lambda graph: graph.node[0].output.__setitem__(0, 'w'), ('twice',), 'node defines a weight')
    yield changed(chain, lambda graph: graph.initializer.append(graph.initializer[0]), ('twice',), 'weight twice')
    yield changed(chain, lambda graph: graph.input.append(graph.input[0]), ('twice',), 'input twice')
    yield changed(chain, lambda graph: graph.node[0].input.__setitem__(1, 'nowhere'), ('nowhere',), 'undefined operand')
    yield changed(chain, lambda graph: setattr(graph.output[0], 'name', 'nowhere'), ('nowhere',), 'undefined output')
    yield changed(chain, lambda graph: setattr(graph.output[0], 'name', ''), (), 'output without a name')
    yield changed(chain, lambda graph: setattr(graph.input[0], 'name', ''), ('no name',), 'input without a name')
    yield changed(chain, lambda graph: setattr(graph.initializer[0], 'name', ''), ('no name',), 'weight without a name')
    yield changed(chain, lambda graph: graph.node[2].ClearField('output'), (), 'node without a result')
    yield changed(chain, lambda graph: setattr(graph.node[0], 'name', 'n' * 10_000_000), ('budget',), 'node name of 10 MB')
    yield changed(chain, lambda graph: setattr(graph.node[0], 'op_type', 'N' * 10_000_000), ('budget',), 'operator name of 10 MB')
    yield changed(chain, lambda graph: setattr(graph.input[0], 'name', 'n' * 10_000_000), ('budget',), 'input name of 10 MB')
    yield changed(chain, lambda graph: setattr(graph, 'name', 'n' * 10_000_000), (), 'graph name of 10 MB', (0, BAD_INPUT))

    def describe(graph):
        graph.doc_string = 'd' * 10_000_000
        graph.node[0].metadata_props.add(key='pkg.torch.onnx.name_scopes', value=str(['s' * 1000] * 10000))

    yield changed(chain, describe, (), 'descriptions of 10 MB', (0, BAD_INPUT))

    def scopes(graph):
        graph.node[0].metadata_props.add(key='pkg.torch.onnx.name_scopes', value=str(['', 's' * 10_000_000, 'x']))

    yield changed(chain, scopes, ('budget',), 'scope of 10 MB')


def functions(folder):
    path = folder / 'functions.onnx'

    def model(bodies, call, inputs=('a',), attributes=()):
        made = graph_text(f'y = local.{call} (x) z = MatMul (y, w) loss = ReduceMean <keepdims = 0> (z)', opset='"" : 20, "local" : 1')
        for name, nodes in bodies:
            made.functions.append(helper.make_function('local', name, list(inputs), ['b'], nodes,
                                                       [helper.make_opsetid('', 20), helper.make_opsetid('local', 1)], list(attributes)))
        return write(path, made.SerializeToString())

    def call(name, operand, result, **attributes):
        return helper.make_node(name, [operand], [result], domain='local', **attributes)

    yield check('calls itself', model([('f', [call('f', 'a', 'b')])], 'f'), says=('nested deeper',))
    yield check('two call each other', model([('f', [call('g', 'a', 'b')]), ('g', [call('f', 'a', 'b')])], 'f'), says=('nested deeper',))
    doubling = [(f'f{i}', [call(f'f{i + 1}', 'a', 'm'), call(f'f{i + 1}', 'm', 'b')]) for i in range(60)]
    yield check('2^60 nodes', model(doubling + [('f60', [helper.make_node('Neg', ['a'], ['b'])])], 'f0'), says=('budget',))
    named = [(name, [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]) for name, nodes in doubling]
    for _, nodes in named:
        for node in nodes:
            node.name = 'n' * 1000
    yield check('2^60 nodes of long names', model(named + [('f60', [helper.make_node('Neg', ['a'], ['b'])])], 'f0'), says=('budget',))
    chain = [(f'f{i}', [call(f'f{i + 1}', 'a', 'b')]) for i in range(200)] + [('f200', [helper.make_node('Neg', ['a'], ['b'])])]
    yield check('200 deep', model(chain, 'f0'), says=('nested deeper',))
    yield check('20,000 functions', model([(f'f{i}', []) for i in range(20000)], 'f0'), says=('budget',))
    yield check('a function twice', model([('f', []), ('f', [])], 'f'), says=('twice',))
    yield check('result that is not defined', model([('f', [])], 'f'), says=("'b'",))
    # Each call of the wide function costs a hundred thousand absent operands, and there are as many calls.
    wide = helper.make_function('local', 'f', [f'a{i}' for i in range(100000)], ['b'], [helper.make_node('Neg', ['a0'], ['b'])],
                                [helper.make_opsetid('', 20)])
    made = graph_text(LINEAR, opset='"" : 20, "local" : 1')
    made.functions.append(wide)
    for i in range(100000):
        made.graph.node.append(helper.make_node('f', ['x'], [f'r{i}'], domain='local'))
    yield check('100,000 calls of 100,000 operands', write(path, made.SerializeToString()), says=('budget',))
    made = graph_text('y = local.f (x) z = MatMul (y, w) loss = ReduceMean <keepdims = 0> (z)', opset='"" : 20, "local" : 1')
    made.functions.append(helper.make_function('local', 'f', ['a'], ['b'], [helper.make_node('Neg', ['a'], ['b'])], [helper.make_opsetid('', 3)]))
    yield check('function of an old opset', write(path, made.SerializeToString()), says=('opset 3',))
    made.functions[0].input.append('c')
    made.functions[0].input.append('c')
    made.functions[0].opset_import[0].version = 20
    yield check('function with an operand twice', write(path, made.SerializeToString()), says=("'c'",))


def amplified(folder):
    """Graphs in which two bytes of the file become hundreds in memory, and ones in which many calls each read much again."""
    path = folder / 'amplified.onnx'
    graph = graph_text(LINEAR).graph.SerializeToString()
    many = 20_000_000

    def model(more):
        return wire.model(graph + more)

    for label, more in (('nodes', wire.text(wire.GRAPH_NODE, b'') * many), ('weights', wire.text(wire.GRAPH_INITIALIZER, b'') * many),
                        ('inputs', wire.text(wire.GRAPH_INPUT, b'') * many), ('attributes', wire.text(wire.GRAPH_NODE, wire.text(wire.NODE_ATTRIBUTE, b'') * many)),
                        ('operands', wire.text(wire.GRAPH_NODE, b'\x0a\0' * many))):
        yield check(f'20 million empty {label}', write(path, model(more)), says=('budget',))

    wide = onnx.NodeProto(op_type='Neg', input=['a'], output=['b'])
    wide.metadata_props.add(key='pkg.torch.onnx.name_scopes', value=str(['s'] * 1_000_000))
    values = helper.make_tensor('t', TensorProto.FLOAT, [4_000_000], bytes(16_000_000), raw=True)
    for label, calls, nodes in (('operands', 20000, [helper.make_node('Max', ['a'] * 100000, ['b'])]),
                                ('results', 5000, [helper.make_node('Split', ['a'], ['b'] + [f's{i}' for i in range(100000)])]),
                                ('numbers', 1000, [helper.make_node('Constant', [], ['c'], value_ints=list(range(1_000_000))), helper.make_node('Neg', ['a'], ['b'])]),
                                ('values', 1000, [helper.make_node('Constant', [], ['c'], value=values), helper.make_node('Neg', ['a'], ['b'])]),
                                ('scopes', 20000, [wide])):
        made = graph_text(LINEAR, opset='"" : 20, "local" : 1')
        made.functions.append(helper.make_function('local', 'f', ['a'], ['b'], nodes, [helper.make_opsetid('', 20)]))
        for i in range(calls):
            made.graph.node.append(helper.make_node('f', ['x'], [f'r{i}'], domain='local'))
        yield check(f'many {label} in a function that is called {calls} times', write(path, made.SerializeToString()), says=('budget',))


def nesting(folder):
    path = folder / 'nested.onnx'
    bodies = {
        'subgraphs': wire.nested([wire.NODE_ATTRIBUTE, wire.ATTRIBUTE_GRAPH, wire.GRAPH_NODE], 300000),
        'types': wire.text(wire.NODE_OP, 'Neg'),
    }
    yield check('100,000 subgraphs in each other', write(path, wire.model(wire.text(wire.GRAPH_NODE, bodies['subgraphs']))), says=('nested',))
    sequence = wire.nested([wire.VALUE_TYPE] + [wire.TYPE_SEQUENCE, wire.SEQUENCE_ELEMENT] * 100000, 200001)
    yield check('100,000 sequences in each other', write(path, wire.model(wire.text(wire.GRAPH_INPUT, wire.text(wire.VALUE_NAME, 'x') + sequence))),
                says=('nested',))
    for depth in (10, 30, 60, 90, 99, 101):
        data = wire.text(wire.GRAPH_NODE, wire.nested([wire.NODE_ATTRIBUTE, wire.ATTRIBUTE_GRAPH, wire.GRAPH_NODE], depth))
        yield check(f'{depth} messages in each other', write(path, wire.model(data)), (BAD_INPUT, UNSUPPORTED))
    groups = b'\x0b' * 100000
    yield check('groups', write(path, wire.model(groups)), says=('onnx',))
    yield check('groups that nobody knows', write(path, wire.model(wire.text(wire.GRAPH_NODE, b'\xfb\x7f' * 100000))), says=('nested',))
    yield check('lengths of 2^64', write(path, wire.number(1, 10) + b'\x3a' + wire.varint(2**64 - 1) + bytes(100)), says=('onnx',))


def far_shapes(folder):
    """Shape operands of 2^60, in every place where an operator takes one."""
    path = folder / 'far.onnx'
    far = {'far': f'int64[1] far = {{{FAR}}}', 'two': f'int64[2] two = {{{FAR}, {FAR}}}', 'least': f'int64[1] least = {{{-2**63 + 1}}}',
           'zero': 'int64[1] zero = {0}', 'one': 'int64[1] one = {1}', 'single': f'int64 single = {{{FAR}}}', 'start': 'int64 start = {0}',
           'step': 'int64 step = {1}', 'million': 'int64[1] million = {1000000}', 'pads': f'int64[4] pads = {{{FAR}, 0, {FAR}, 0}}',
           'sixteen': 'int64[1] sixteen = {16777216}'}
    weights = 'float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, ' + ', '.join(far.values())
    bodies = {
        'Reshape': 'y = Reshape (x, two)', 'Expand': 'y = Expand (x, two)', 'ConstantOfShape': 'c = ConstantOfShape (far) y = Mul (x, c)',
        'Tile': 'y = Tile (x, two)', 'Pad': 'y = Pad (x, pads)', 'Range': 'r = Range (start, single, step) f = Cast <to = 1> (r) y = Mul (x, f)',
        'Range without a step': 'r = Range (start, single, start) f = Cast <to = 1> (r) y = Mul (x, f)',
        'Slice': 'y = Slice (x, far, far, zero)', 'Slice to the end': 'y = Slice (x, least, far, one)',
        'Slice along no axis': 'y = Slice (x, zero, one, far)', 'Slice with a far step': 'y = Slice (x, zero, far, zero, far)',
        'Slice with step 0': 'y = Slice (x, zero, one, zero, zero)', 'Slice backwards': 'y = Slice (x, far, least, zero, least)',
        'Gather': 'y = Gather (x, far)', 'Gather below': 'y = Gather (x, least)', 'GatherND': 'y = GatherND (x, two)',
        'Split': 'y, v = Split (x, two)', 'Unsqueeze': 'y = Unsqueeze (x, far)', 'Squeeze': 'y = Squeeze (x, far)',
        'ReduceSum': 'y = ReduceSum (x, far)', 'ReduceMean': 'y = ReduceMean (x, two)', 'CumSum': 'y = CumSum (x, single)',
        'TopK': 'y, i = TopK (x, far)', 'OneHot': f'i = Cast <to = 7> (x) y = OneHot (i, single, two)',
        'Transpose': f'y = Transpose <perm = [{FAR}, 0]> (x)', 'Concat': f'y = Concat <axis = {FAR}> (x, x)', 'Flatten': f'y = Flatten <axis = {FAR}> (x)',
        'Softmax': f'y = Softmax <axis = {-2**63 + 1}> (x)', 'Split into 2^60': f'y, v = Split <num_outputs = {FAR}> (x)',
        'LayerNormalization': f'y = LayerNormalization <axis = {FAR}> (x, w)', 'EyeLike': f'y = EyeLike <k = {FAR}> (x)',
        'Trilu': 'y = Trilu (x, single)', 'Shape': f's = Shape <start = {FAR}, end = {-2**63 + 1}> (x) y = Expand (x, s)',
        'ScatterND': 'y = ScatterND (x, two, x)', 'ScatterElements': f'y = ScatterElements <axis = {FAR}> (x, two, x)',
        'Einsum': 'y = Einsum <equation = "' + 'a' * 5000 + '->b"> (x)', 'Resize': 'y = Resize (x, , , two)',
        'ConvTranspose': f'c = Unsqueeze (x, zero) k = Unsqueeze (x, one) y = ConvTranspose <strides = [{FAR}]> (c, k)',
        'padded ConvTranspose': f'c = Unsqueeze (x, zero) k = Unsqueeze (x, one) y = ConvTranspose <output_padding = [{FAR}]> (c, k)',
        'Resize by 2^60': 's = Cast <to = 1> (two) y = Resize (x, , s)', 'ArgMax': f'i = ArgMax <axis = {FAR}> (x) y = Cast <to = 1> (i)',
        'DepthToSpace': f'c = Unsqueeze (x, zero) d = Unsqueeze (c, zero) y = DepthToSpace <blocksize = {FAR}> (d)',
        'GatherND of a batch': f'y = GatherND <batch_dims = {FAR}> (x, two)',
        'Dropout': f'y = Dropout <seed = {FAR}> (x)', 'Mod of 0': 'm = Mod (far, zero) c = ConstantOfShape (m) y = Mul (x, c)',
        'Div by 0': 'm = Div (far, zero) c = ConstantOfShape (m) y = Mul (x, c)', 'least / -1': 'n = Neg (one) l = Sub (least, one) m = Div (l, n) y = Expand (x, m)',
        'least mod -1': 'n = Neg (one) l = Sub (least, one) m = Mod (l, n) y = Expand (x, m)',
        'product beyond 2^63': 'm = Mul (far, far) c = ConstantOfShape (m) y = Mul (x, c)', 'sum beyond 2^63': 's = Add (far, far) t = Add (s, s) u = Add (t, t) v = Add (u, u) y = Expand (x, v)',
        'power beyond 2^63': 'm = Pow (far, far) y = Expand (x, m)', 'abs of the least': 'l = Sub (least, one) m = Abs (l) y = Expand (x, m)',
        'shift': 'm = BitShift <direction = "LEFT"> (far, far) y = Expand (x, m)',
        'a million masks': ' '.join(f'c{i} = ConstantOfShape (million)' for i in range(300)) + ' y = Mul (x, x)',
        'masks of 16 million': ' '.join(f'c{i} = ConstantOfShape (sixteen) d{i} = Add (c{i}, c{i})' for i in range(50)) + ' y = Mul (x, x)',
        'triangle of 2^40': 'c = Expand (one, far) y = Mul (x, x)',
    }
    for label, body in bodies.items():
        model = graph_text(f'{body} z = MatMul (x, w) k = ReduceMean <keepdims = 0> (y) q = ReduceMean <keepdims = 0> (z) loss = Add (k, q)', weights=weights)
        unused = label in ('a million masks', 'masks of 16 million', 'triangle of 2^40')
        yield check(label, write(path, model.SerializeToString()), ANY if unused else (0, BAD_INPUT, UNSUPPORTED))
    # Each takes little memory, but all of them together take much.
    split = 'r0 = Range (start, single, step) ' + ' '.join(
        f's{i} = SplitToSequence <keepdims = 0> (r{i}) r{i + 1} = ConcatFromSequence <axis = 0, new_axis = 1> (s{i})' for i in range(300))
    body = f'{split} k = ReduceMax <keepdims = 0> (r300) f = Cast <to = 1> (k) m = MatMul (x, w) y = Mul (m, f) loss = ReduceMean <keepdims = 0> (y)'
    yield check('300 times 60,000 parts', write(path, graph_text(body, weights=weights.replace(f'single = {{{FAR}}}', 'single = {60000}')).SerializeToString()), ANY)
    huge = f'float[{FAR}, 4] x'
    yield check('input of 2^62 elements', write(path, graph_text(LINEAR, huge).SerializeToString()), says=('2^48',))
    yield check('input of 2^42 elements', write(path, graph_text(LINEAR, f'float[{2**40}, 4] x').SerializeToString()), ANY)


def counts(folder):
    path = folder / 'many.onnx'
    many = 100000

    def base(inputs=b'', nodes=b'', result='x', weights=b''):
        value = wire.text(wire.VALUE_TYPE, helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 4]).SerializeToString())
        scalar = wire.text(wire.VALUE_TYPE, helper.make_tensor_type_proto(TensorProto.FLOAT, []).SerializeToString())
        weight = helper.make_tensor('w', TensorProto.FLOAT, [4, 4], [i / 16 for i in range(16)]).SerializeToString()
        tail = wire.node('MatMul', [result, 'w'], ['m']) + wire.node('ReduceMean', ['m'], ['loss'],
                                                                    wire.text(wire.NODE_ATTRIBUTE, helper.make_attribute('keepdims', 0).SerializeToString()))
        return wire.model(wire.text(wire.GRAPH_NAME, 'g') + wire.text(wire.GRAPH_INPUT, wire.text(wire.VALUE_NAME, 'x') + value) + inputs + nodes + tail +
                          wire.text(wire.GRAPH_INITIALIZER, weight) + weights + wire.text(wire.GRAPH_OUTPUT, wire.text(wire.VALUE_NAME, 'loss') + scalar)), value

    def chain(count, op='Relu'):
        return b''.join(wire.node(op, [f'v{i - 1}' if i else 'x'], [f'v{i}']) for i in range(count))

    plain, value = base()
    yield check('few of everything', write(path, plain), (0,))
    yield check('100,000 nodes in a chain', write(path, base(nodes=chain(many), result=f'v{many - 1}')[0]), (0, BAD_INPUT))
    yield check('100,000 nodes beside each other', write(path, base(nodes=b''.join(wire.node('Relu', ['x'], [f'v{i}']) for i in range(many)))[0]), (0, BAD_INPUT))
    yield check('100,000 additions of one value', write(path, base(nodes=b''.join(
        wire.node('Add', [f'v{i - 1}' if i else 'x', 'x'], [f'v{i}']) for i in range(many)), result=f'v{many - 1}')[0]), (0, BAD_INPUT))
    # Long chains of operators that passes look through, from an input and from a weight.
    vector = wire.text(wire.GRAPH_INITIALIZER, helper.make_tensor('perm', TensorProto.INT64, [2], [-1, 4]).SerializeToString())
    extra = {'Transpose': helper.make_attribute('perm', [0, 1]), 'Cast': helper.make_attribute('to', 1), 'Softmax': helper.make_attribute('axis', 1)}
    for op, more in (('Identity', []), ('Transpose', []), ('Cast', []), ('Neg', []), ('Sqrt', []), ('Softmax', []), ('Reshape', ['perm']), ('MatMul', ['w']), ('Mul', ['w2']),
                     ('Sub', ['w2'])):
        attribute = wire.text(wire.NODE_ATTRIBUTE, extra[op].SerializeToString()) if op in extra else b''
        scale = wire.text(wire.GRAPH_INITIALIZER, helper.make_tensor('w2', TensorProto.FLOAT, [4], [0.5, 1, 2, 3]).SerializeToString())
        for start in ('x', 'w'):
            nodes = b''.join(wire.node(op, [f'v{i - 1}' if i else start, *more], [f'v{i}'], attribute) for i in range(20000))
            if start == 'w':
                nodes += wire.node('MatMul', ['x', 'v19999'], ['last'])
            yield check(f'20,000 times {op} of {start}', write(path, base(nodes=nodes, result='last' if start == 'w' else 'v19999', weights=vector + scale)[0]), (0, BAD_INPUT))
    yield check('1,100,000 nodes', write(path, base(nodes=chain(1_100_000))[0]), says=('budget',))
    yield check('100,000 unknown operators', write(path, base(nodes=chain(many, 'Odd'), result=f'v{many - 1}')[0]), (BAD_INPUT, UNSUPPORTED))
    yield check('100,000 kinds of unknown operators', write(path, base(nodes=b''.join(
        wire.node(f'Odd{i}', [f'v{i - 1}' if i else 'x'], [f'v{i}']) for i in range(many)), result=f'v{many - 1}')[0]), (BAD_INPUT, UNSUPPORTED))
    inputs = b''.join(wire.text(wire.GRAPH_INPUT, wire.text(wire.VALUE_NAME, f'i{i}') + value) for i in range(many))
    yield check('100,000 inputs', write(path, base(inputs)[0]), (0, BAD_INPUT))
    small = b''.join(wire.text(wire.GRAPH_INITIALIZER, helper.make_tensor(f'w{i}', TensorProto.FLOAT, [1], [0.5]).SerializeToString()) for i in range(many))
    yield check('100,000 weights', write(path, base(weights=small)[0]), (0, BAD_INPUT))
    outputs = b''.join(wire.text(wire.GRAPH_OUTPUT, wire.text(wire.VALUE_NAME, 'm')) for _ in range(many))
    yield check('100,000 outputs', write(path, base(inputs=outputs)[0]), (0, BAD_INPUT, UNSUPPORTED))
    for op in ('Sum', 'Concat', 'Add', 'Max'):
        node = wire.node(op, ['x'] * many, ['s'], wire.text(wire.NODE_ATTRIBUTE, helper.make_attribute('axis', 0).SerializeToString()))
        yield check(f'{op} of 100,000 operands', write(path, base(nodes=node, result='s')[0]), ANY)
    results = wire.node('Split', ['x'], [f's{i}' for i in range(many)])
    yield check('100,000 results', write(path, base(nodes=results)[0]), ANY)
    extra = b''.join(wire.text(wire.NODE_ATTRIBUTE, helper.make_attribute(f'a{i}', 1).SerializeToString()) for i in range(many))
    yield check('100,000 attributes', write(path, base(nodes=wire.node('Relu', ['x'], ['s'], extra), result='s')[0]), ANY)
    ints = wire.text(wire.NODE_ATTRIBUTE, helper.make_attribute('value_ints', list(range(1_000_000))).SerializeToString())
    yield check('constant of 1,000,000 numbers', write(path, base(nodes=wire.node('Constant', [], ['s'], ints))[0]), ANY)
    imports = b''.join(wire.text(wire.MODEL_OPSET, helper.make_opsetid(f'd{i}', 1).SerializeToString()) for i in range(many))
    yield check('100,000 domains', write(path, plain + imports), (0, BAD_INPUT))
