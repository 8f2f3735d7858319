"""Finds how far rounding alone takes a model's first step in 16 bits from the step in doubles: the interpreter runs it in doubles, once as they are and
once rounded where a program for devices rounds.

    rounding.py BUILD MODEL PRECISION     MODEL: a folder with model.onnx and batches.safetensors; prints the deviations as JSON
"""

import json
import pathlib
import sys
import tempfile

import numpy
import onnx

import common  # noqa: F401, which knows where our packages are
import equivalence
from windlass_models import safetensors_file

TO_EPILOGUES = ('--pass-pipeline=builtin.module(sched.program(sched-fuse-epilogues))',)


def lower(judge):
    """Returns the module of one rank at L5, with the commands of a program for devices."""
    l5, _ = judge.lower_for(judge.lower(judge.graph(), equivalence.TO_L2, 'l2.mlir'), 1)[-1]
    return judge.lower(l5, TO_EPILOGUES, 'l5-epilogues.mlir')


def deviations(build, model, stored, precision, work):
    """Returns, by kind of value, the largest norm of a difference over the norm of the exact value. `stored` is a file of batches, of which the first
    is used."""
    work.mkdir(parents=True, exist_ok=True)
    values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(model).graph.initializer}
    initial, batches = work / 'initial.safetensors', work / 'batches.safetensors'
    safetensors_file.write({name: array for name, array in values.items() if array.dtype in (numpy.float32, numpy.bool_)}, initial)
    safetensors_file.write({name: array for name, array in safetensors_file.read(stored).items() if name.endswith('.0')}, batches)
    judge = equivalence.Equivalence(equivalence.Setup(build=build, input=model, work=work, precision=precision, clip=False, steps=1, initial=initial,
                                                      batches=batches))
    return judge.deviations_by_rounding(lower(judge))


def main():
    build, model, precision = sys.argv[1:]
    model = pathlib.Path(model)
    with tempfile.TemporaryDirectory(prefix='windlass-rounding-') as scratch:
        print(json.dumps(deviations(build, model / 'model.onnx', model / 'batches.safetensors', precision, pathlib.Path(scratch))))


if __name__ == '__main__':
    main()
