"""windlass-peers aceso: its plans against all plans of small cases whose stages run all operators alike, and what bad input gets.

The program also tries stages whose operators run in different ways. So its plan may be faster than the best of these, and must never be more than 0.02 %
slower.
"""

import itertools
import json
import math
import random
import sys

import common

sys.path.insert(0, str(common.ROOT / 'benchmarks'))
import peer_aceso  # noqa: E402

PEERS = common.WINDLASS.with_name('windlass-peers')
NAMES = ('encoder-embedding', 'enc-1st-layernorm', 'enc-attention-qkv', 'enc-attention-score', 'enc-attention-softmax', 'enc-attention-dropout',
         'enc-MLP-GEMM-1', 'enc-MLP-gelu', 'final-layernorm', 'gpt-post-process')
PRECISION = 2e-4


def make_case(folder, seed):
    """Writes a random case of 6 to 8 operators on 2 or 4 GPUs, on one node or two. Some of its rows are missing."""
    draw = random.Random(seed)
    middle = sorted(draw.sample(range(1, 8), draw.randrange(2, 4)))
    names = [NAMES[0], *(NAMES[i] for i in middle), *NAMES[-2:]]
    layers = 2 if len(middle) == 2 else 1
    nodes, per_node = draw.choice(((1, 2), (2, 1), (1, 4), (2, 2)))
    facts = {'model': {'layers': layers, 'op_order': f'the first op of ops.csv, then ops 2-{1 + len(middle)} once per layer, then the last two',
                       'precision': draw.choice(('fp16', 'fp32'))},
             'nodes': nodes, 'gpus_per_node': per_node, 'memory_limit_mb': draw.uniform(150, 500), 'global_batch': draw.choice((4, 8, 32)),
             'micro_batches': [1, 2, 4], 'max_tensor_parallel': draw.choice((1, 1, 2, 4)),
             'results': {'published': {'predicted_iteration_ms': 1000.0, 'search_seconds': {'aceso': 1.0}}}}
    (folder / 'case.json').write_text(json.dumps(facts))
    rows = ['micro_batch,tensor_parallel,algorithm,op,forward_us,backward_us,input_mb,output_mb,weights_mb,activations_mb,forward_reserved_mb,'
            'backward_reserved_mb']
    # Where there is one algorithm and no tensor parallelism, nothing can be mixed: then the best plan must be found.
    algorithms = draw.choice(((0,), (0,), (0, 1)))
    for batch, tensor, algorithm, name in itertools.product((1, 2, 4), (1, 2, 4), algorithms, names):
        if tensor == 4 and draw.random() < 0.02:
            continue
        numbers = [draw.uniform(5, 100) * batch / tensor, draw.uniform(10, 1000) * batch / tensor, draw.choice((0.01, 2, 7, 40)),
                   draw.choice((0, 2, 7, 40)), draw.uniform(0, 2) / tensor, draw.uniform(0, 80) * batch / tensor, draw.uniform(0, 20), draw.uniform(0, 20)]
        rows.append(f'{batch},{tensor},{algorithm},{name},' + ','.join(f'{number:.3f}' for number in numbers))
    (folder / 'ops.csv').write_text('\n'.join(rows) + '\n')
    groups = itertools.product(('all_gather', 'all_to_all'), (2, 4), (2, 7, 39)) if draw.random() < 0.7 else ()
    lines = ['collective,gpus,mb,ms', *(f'{name},{gpus},{size},{draw.uniform(0.01, 1):.3f}' for name, gpus, size in groups)]
    (folder / 'collectives.csv').write_text('\n'.join(lines) + '\n')
    links = ('intra_node', 'inter_node') if nodes > 1 else ('intra_node',)
    lines = ['link,mb,gb_per_s', *(f'{link},{2 ** i},{draw.uniform(1, 20):.2f}' for link in links for i in range(5))]
    (folder / 'p2p.csv').write_text('\n'.join(lines) + '\n')


def least_stage_ms(case, batch, first, end, gpus, before, after):
    """Returns the least time of a stage over all ways to run its operators alike and all sets of operators to recompute."""
    count, best = end - first, math.inf
    for tensor, algorithm in itertools.product((1, 2, 4), (0, 1)):
        if gpus % tensor or tensor > case.facts['max_tensor_parallel'] or batch % (gpus // tensor):
            continue
        for chosen in itertools.product((False, True), repeat=count):
            stage = peer_aceso.Stage(first, count, gpus, [tensor] * count, [gpus // tensor] * count, [algorithm] * count,
                                     frozenset(i for i in range(count) if chosen[i]))
            if any(case.row(stage, i, batch) is None for i in range(count)):
                break
            if sum(peer_aceso.stage_mb(case, stage, batch, after)) <= case.facts['memory_limit_mb']:
                best = min(best, peer_aceso.stage_ms(case, stage, batch, before))
    return best


def splits(count, gpus):
    """Yields the operators and GPUs of the stages of each pipeline."""
    if count == 0 and gpus == 0:
        yield []
    for ops in range(1, count + 1):
        for own in (1, 2, 4):
            if own <= gpus:
                yield from ([(ops, own), *rest] for rest in splits(count - ops, gpus - own))


def least_ms(case):
    """Returns the least time of an iteration. A stage is on one node or on whole nodes."""
    best, known, per_node = math.inf, {}, case.facts['gpus_per_node']
    for batch, split in itertools.product(case.facts['micro_batches'], splits(len(case.ops), per_node * case.facts['nodes'])):
        times, first, before = [], 0, 0
        for i, (ops, gpus) in enumerate(split):
            if before % per_node and before // per_node != (before + gpus - 1) // per_node:
                break
            key = (batch, first, first + ops, gpus, before, len(split) - 1 - i)
            if key not in known:
                known[key] = least_stage_ms(case, *key)
            times.append(known[key])
            first, before = first + ops, before + gpus
        else:
            best = min(best, max(times) * (case.facts['global_batch'] // batch - 1) + sum(times))
    return best


class AcesoTest(common.Case):
    def test_small_cases(self):
        fitting = 0
        for seed in range(40):
            with self.subTest(seed):
                make_case(self.folder, seed)
                least = least_ms(peer_aceso.Case(self.folder))
                outcome = common.run([PEERS, 'aceso', self.folder])
                if outcome.code != 0:
                    self.assertRegex(outcome.err, r'\Awindlass-peers: error: no plan fits into the memory \[WL0990\]\n\Z')
                    self.assertEqual(least, math.inf)
                    continue
                fitting += 1
                answer = json.loads(outcome.out)
                value, problems = peer_aceso.evaluate(self.folder, answer)
                self.assertEqual(problems, [])
                self.assertAlmostEqual(value, answer['iteration_ms'], delta=1e-9 * value)
                self.assertLessEqual(value, least * (1 + PRECISION))
        self.assertGreater(fitting, 20)

    def test_comparison(self):
        make_case(self.folder, 3)
        row, = peer_aceso.compare(self.folder)
        self.assertEqual((row['case'], row['theirs'], row['their_seconds']), (self.folder.name, 1000, 1))
        self.assertEqual(row['gain'], row['theirs'] / row['ours'])
        self.assertEqual(row['wrong'], ['ours is slower'] if row['ours'] > 1000 else [])
        self.assertGreater(row['seconds'], 0)

    def test_illegal_plans(self):
        make_case(self.folder, 3)
        good = json.loads(common.run([PEERS, 'aceso', self.folder]).out)
        for key, value, problem in (('gpus', 3, 'power of two'), ('first_op', 1, 'follow each other'), ('ops', 100, 'no operators of the model'),
                                    ('tensor_parallel', [1, 1], 'how each operator'), ('recomputed', [99], 'does not run'), ('algorithm', 7, 'not measured')):
            bad = json.loads(json.dumps(good))
            bad['stages'][0][key] = value
            value, problems = peer_aceso.evaluate(self.folder, bad)
            self.assertEqual(value, math.inf)
            self.assertRegex('; '.join(problems), problem)
        facts = json.loads((self.folder / 'case.json').read_text())
        (self.folder / 'case.json').write_text(json.dumps(dict(facts, memory_limit_mb=1)))
        self.assertRegex(peer_aceso.evaluate(self.folder, good)[1][0], 'stage 0 needs .* MB of 1')

    def test_bad_input(self):
        make_case(self.folder, 3)
        files = ('case.json', 'ops.csv', 'collectives.csv', 'p2p.csv')
        good = {name: (self.folder / name).read_text() for name in files}
        bad = [(name, text) for name in files for text in ('', 'x', '\0' * 50, '[' * 100_000, good[name][:len(good[name]) // 2].rstrip('0123456789.,\n') + ',x')]
        bad += [('case.json', good['case.json'].replace('"nodes": ', '"nodes": -')), ('case.json', good['case.json'].replace('"layers": ', '"layers": 99999')),
                ('case.json', good['case.json'].replace('ops 2-', 'ops 9-')), ('case.json', good['case.json'].replace('[1, 2, 4]', '[0]')),
                ('ops.csv', good['ops.csv'].replace('\n1,1,0', '\n1,-1,0', 1)), ('ops.csv', good['ops.csv'].replace('\n1,1,0', '\n1,1,9', 1)),
                ('ops.csv', good['ops.csv'].replace('.', 'e999', 1)), ('p2p.csv', good['p2p.csv'].replace(',1,', ',1,nan,'))]
        for name, text in bad:
            with self.subTest((name, text[:20])):
                for each in files:
                    (self.folder / each).write_text(text if each == name else good[each])
                outcome = common.run([PEERS, 'aceso', self.folder])
                self.assertEqual(outcome.code, 1)
                self.assertRegex(outcome.err, r'\Awindlass-peers: error: [^\n]{8,400} \[WL0990\]\n\Z')
        self.assertEqual(common.run([PEERS, 'aceso', self.folder / 'nothing']).code, 1)
        for words in ([], ['aceso'], ['unknown', self.folder], ['aceso', self.folder, '--quick']):
            self.assertEqual(common.run([PEERS, *words]).code, 2)


if __name__ == '__main__':
    common.main()
