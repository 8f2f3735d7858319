"""Writes models, makes batches."""

import pathlib

import numpy
from onnx import TensorProto, helper

from . import loss


def save(model, path, external=False):
    """Writes `model`. `external` moves the values to `<path>.data`. Parameters without values refer to `<stem>.weights`, which is not
    written; buffers keep theirs."""
    path = pathlib.Path(path)
    valueless = any(not tensor.raw_data for tensor in model.graph.initializer)
    if external or valueless:
        location = f'{path.stem}.weights' if valueless else f'{path.name}.data'
        values = _move_values_out([tensor for tensor in model.graph.initializer if not valueless or not tensor.raw_data], location)
        if not valueless:
            path.with_name(location).write_bytes(values)
    path.write_bytes(model.SerializeToString(deterministic=True))


def _move_values_out(tensors, location):
    pieces, offset = [], 0
    for tensor in tensors:
        length = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * int(numpy.prod(tensor.dims, dtype=numpy.int64))
        pieces.append(tensor.raw_data)
        tensor.ClearField('raw_data')
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (('location', location), ('offset', offset), ('length', length)):
            tensor.external_data.add(key=key, value=str(value))
        offset += length
    return b''.join(pieces)


def random_batches(model, count, seed):
    """Returns `count` micro-batches as {`<input>.<k>`: array}. Integers are below the class count of the loss or the rows of the embedding,
    floats N(0, 1). Where a graph has labels of the shape of its token ids, they are the same ids; with an `attention_mask`, which keeps
    the first tokens of each row, most labels are ignored, in some rows more than in others."""
    random = numpy.random.RandomState(seed)
    classes = _classes(model)
    batches = {}
    for k in range(count):
        ids = {}
        for each in model.graph.input:
            shape = tuple(dim.dim_value for dim in each.type.tensor_type.shape.dim)
            if each.type.tensor_type.elem_type == TensorProto.FLOAT:
                batches[f'{each.name}.{k}'] = random.standard_normal(shape).astype(numpy.float32)
            else:
                if shape not in ids:
                    ids[shape] = random.randint(0, classes, shape).astype(numpy.int64)
                batches[f'{each.name}.{k}'] = ids[shape]
        if f'attention_mask.{k}' in batches:
            rows, tokens = batches[f'attention_mask.{k}'].shape
            kept = numpy.arange(tokens) < random.randint(tokens // 2, tokens + 1, (rows, 1))
            batches[f'attention_mask.{k}'] = kept.astype(numpy.int64)
            chosen = kept & (random.random_sample((rows, tokens)) < numpy.linspace(0.1, 0.9, rows)[:, None])
            batches[f'labels.{k}'] = numpy.where(chosen, batches[f'labels.{k}'], loss.IGNORED)
    return batches


def _classes(model):
    """Returns the class count: the last dimension of the logits, which the parameter of the last linear layer or the tied embedding gives."""
    shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for name in ('lm_head.weight', 'predictions.decoder.weight', 'shared.weight', 'decoder.embed_tokens.weight', *reversed([each for each in shapes if each.endswith('.weight')])):
        if name in shapes:
            return shapes[name][0]
    raise ValueError('the graph has no weight that tells the number of classes')
