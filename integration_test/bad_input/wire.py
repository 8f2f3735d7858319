"""Protobuf messages byte by byte, for models that the onnx package refuses to write."""


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def nested(fields, depth, inside=b''):
    """`inside` in `depth` messages; the field numbers of `fields` take turns, the first being the outermost."""
    # Lengths are known from the inside out, so the prefixes are collected and reversed.
    prefixes, length = [], len(inside)
    for level in reversed(range(depth)):
        prefix = varint(fields[level % len(fields)] << 3 | 2) + varint(length)
        prefixes.append(prefix)
        length += len(prefix)
    return b''.join(reversed(prefixes)) + inside


# Field numbers of onnx-ml.proto.
MODEL_IR_VERSION, MODEL_GRAPH, MODEL_OPSET = 1, 7, 8
OPSET_DOMAIN, OPSET_VERSION = 1, 2
GRAPH_NODE, GRAPH_NAME, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT = 1, 2, 5, 11, 12
NODE_INPUT, NODE_OUTPUT, NODE_NAME, NODE_OP, NODE_ATTRIBUTE = 1, 2, 3, 4, 5
ATTRIBUTE_NAME, ATTRIBUTE_GRAPH, ATTRIBUTE_TYPE = 1, 6, 20
TYPE_SEQUENCE, SEQUENCE_ELEMENT = 4, 1
VALUE_NAME, VALUE_TYPE = 1, 2


def node(op, inputs, outputs, extra=b''):
    return text(GRAPH_NODE, b''.join([text(NODE_INPUT, each) for each in inputs] + [text(NODE_OUTPUT, each) for each in outputs]) +
                text(NODE_OP, op) + extra)


def model(graph, opset=20):
    return number(MODEL_IR_VERSION, 10) + text(MODEL_OPSET, number(OPSET_VERSION, opset)) + text(MODEL_GRAPH, graph)
