"""Writes the small models of the import tests into a folder: make_models.py FOLDER."""

import gzip
import os
import pathlib
import sys

import onnx
from onnx import TensorProto, helper, parser

FOLDER = pathlib.Path(sys.argv[1])
FOLDER.mkdir(parents=True, exist_ok=True)

LINEAR = '''
<ir_version: 10, opset_import: ["" : {opset}]>
g (float[batch, 8] x) => (float loss)
<float[8, 4] w>
{{
  y = MatMul (x, w)
  loss = ReduceSum <keepdims = 0> (y)
}}
'''

FUNCTION = '''
<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[2, 8] x) => (float loss)
{
  y = local.scaled <factor = 3.0> (x)
  loss = ReduceSum <keepdims = 0> (y)
}
<domain: "local", opset_import: ["" : 17]>
scaled <factor> (a) => (b)
{
  c = Constant <value_float: float = @factor> ()
  d = Mul (a, c)
  b = ReduceMean <axes = [1], keepdims = 1> (d)
}
'''

RECURSIVE = '''
<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[2] x) => (float[2] loss)
{
  loss = local.again (x)
}
<domain: "local", opset_import: ["" : 20, "local" : 1]>
again (a) => (b)
{
  b = local.again (a)
}
'''


def save(name, model):
    (FOLDER / name).write_bytes(model.SerializeToString())


def linear(opset=20, values=None):
    model = parser.parse_model(LINEAR.format(opset=opset))
    tensor = model.graph.initializer[0] if model.graph.initializer else model.graph.initializer.add()
    data = values if values is not None else [i / 8 for i in range(32)]
    tensor.CopyFrom(helper.make_tensor('w', TensorProto.FLOAT, [8, 4], data))
    return model


def external(location, offset='0', length='128'):
    model = linear()
    tensor = model.graph.initializer[0]
    tensor.ClearField('float_data')
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (('location', location), ('offset', offset), ('length', length)):
        tensor.external_data.add(key=key, value=value)
    return model


save('linear.onnx', linear())
(FOLDER / 'linear.onnx.gz').write_bytes(gzip.compress(linear().SerializeToString(), mtime=0))
save('old.onnx', linear(12))
save('new.onnx', linear(99))
save('function.onnx', parser.parse_model(FUNCTION))
save('recursive.onnx', parser.parse_model(RECURSIVE))

short = linear()
del short.graph.initializer[0].float_data[5:]
save('short.onnx', short)

undefined = linear()
undefined.graph.node[0].input[1] = 'nowhere'
save('undefined.onnx', undefined)

twice = linear()
twice.graph.node[1].output[0] = 'y'
save('twice.onnx', twice)

save('external.onnx', external('weights.bin'))
(FOLDER / 'weights.bin').write_bytes(bytes(128))
save('missing.onnx', external('none.bin'))
save('absolute.onnx', external('/etc/passwd'))
save('parent.onnx', external('../weights.bin'))
save('length.onnx', external('weights.bin', length='127'))
save('number.onnx', external('weights.bin', offset='many'))
link = FOLDER / 'outside.bin'
if not link.is_symlink():
    os.symlink('/etc/passwd', link)
save('link.onnx', external('outside.bin'))

# The layout of the Hugging Face cache: the snapshot holds links into blobs.
cache = FOLDER / 'cache'
(cache / 'blobs').mkdir(parents=True, exist_ok=True)
(cache / 'snapshots' / 'main').mkdir(parents=True, exist_ok=True)
(cache / 'blobs' / 'a1').write_bytes(external('weights.bin').SerializeToString())
(cache / 'blobs' / 'b2').write_bytes(bytes(128))
for name, blob in (('model.onnx', 'a1'), ('weights.bin', 'b2')):
    at = cache / 'snapshots' / 'main' / name
    if not at.is_symlink():
        os.symlink(f'../../blobs/{blob}', at)
