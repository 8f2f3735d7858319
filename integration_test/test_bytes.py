"""Bytes that a rank sends in a step under each named strategy, counted by the program, against the textbook's formulas (design §7).

W: bytes of all weights; B: of those that the backward pass reads (all but biases and position embeddings); A: of one layer's output, for
a micro-batch; T: of one number for each of its tokens; L: layers. A ring of n sends 2(n-1)/n of what is all-reduced, (n-1)/n of what is
gathered or scattered.

megatron reduces a layer's output behind attention and MLP, and on the way back before them (Shoeybi et al., arXiv:1909.08053, section 3).
The table of tokens is split by rows, and its output reduced; the output layer is split by classes, whether that is its weight or not: the
gradient of its operand is reduced, and of the loss a maximum and a sum for each token (the same section; sum and count of the loss are
scalars). A vocabulary that the ranks do not divide leaves table, layer and loss whole.
"""

import json
import sys

import numpy
import onnx

import common

LAYERS, TOKENS, WIDTH, BATCH, RANKS = 2, 16, 32, 4, 2
FORMULAS = {
    'ddp': ('2(n-1)/n W', lambda w: dict(all_reduce=2 * w.W)),
    'zero1': ('(n-1)/n (W + W)', lambda w: dict(reduce_scatter=w.W, all_gather=w.W)),
    'zero2': ('(n-1)/n (m W + W)', lambda w: dict(reduce_scatter=w.m * w.W, all_gather=w.W)),
    'zero3': ('(n-1)/n (m W + m W + m B)', lambda w: dict(reduce_scatter=w.m * w.W, all_gather=w.m * (w.W + w.B))),
    'megatron': ('2(n-1)/n m ((4 L + 2) A + 2 T)', lambda w: dict(all_reduce=2 * w.m * ((4 * w.L + 2) * w.A + 2 * w.T))),
    'megatron, untied': ('2(n-1)/n m ((4 L + 2) A + 2 T)', lambda w: dict(all_reduce=2 * w.m * ((4 * w.L + 2) * w.A + 2 * w.T))),
    'megatron, odd': ('2(n-1)/n 4 L m A', lambda w: dict(all_reduce=2 * 4 * w.L * w.m * w.A)),
}


class Work:
    """The quantities of the formulas."""

    def __init__(self, model, m):
        weights = {t.name: 4 * int(numpy.prod(t.dims)) for t in onnx.load(str(model)).graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
        self.W = sum(weights.values())
        self.B = sum(size for name, size in weights.items() if not name.endswith('bias') and 'wpe' not in name)
        self.T = 4 * BATCH * TOKENS
        self.A = self.T * WIDTH
        self.L, self.m = LAYERS, m


class BytesTest(common.Case):
    def count(self, model, data, strategy, micro_batches):
        out = self.folder / f'{model.stem}-{strategy}-{micro_batches}'
        self.succeed('train', model, '--cluster', f'cpu:{RANKS}', '--strategy', strategy, '--micro-batches', micro_batches, '--data', data,
                     '--steps', 2, '--clip-norm', '1', '-o', out)
        rows = [json.loads(row) for row in (out / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual(rows[0]['collective_bytes'], rows[1]['collective_bytes'])
        return rows[0]['collective_bytes']

    def test_gpt2(self):
        sizes = dict(layers=LAYERS, tokens=TOKENS, width=WIDTH, batch=BATCH, vocabulary=64)
        models = {'': self.small_gpt('tied.onnx', **sizes), 'untied': self.small_gpt('untied.onnx', tied=False, **sizes),
                  'odd': self.small_gpt('odd.onnx', **(sizes | dict(vocabulary=63)))}
        data = self.batches(models['odd'], 16)
        print(f"\n{'strategy':16} {'m':>2} {'formula':30} {'expected':>10} {'counted':>10} {'scalars':>8}", file=sys.stderr)
        for name, (text, formula) in FORMULAS.items():
            strategy, _, kind = name.partition(', ')
            model = models[kind]
            for m in (1, 4):
                # One replica runs m micro-batches; strategies that split the data run as many on each rank, but for G = 1.
                groups = 1 if m == 1 or strategy == 'megatron' else RANKS
                with self.subTest(strategy=name, m=m):
                    counted = self.count(model, data, strategy, m * groups)
                    expected = {kind: size * (RANKS - 1) // RANKS for kind, size in formula(Work(model, m)).items()}
                    scalars = counted.pop('scalars')
                    total = sum(counted.values())
                    print(f'{name:16} {m:2} {text:30} {sum(expected.values()):10} {total:10} {scalars:8}', file=sys.stderr)
                    self.assertEqual({kind: size for kind, size in counted.items() if size}, expected)


if __name__ == '__main__':
    common.main()
