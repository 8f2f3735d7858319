"""windlass-solve: what it answers, checked by arithmetic of this test's own; its exit codes; what bad input gets."""

import gzip
import itertools
import json
import os
import pathlib
import random
import re
import resource

import common

SOLVE = pathlib.Path(os.environ.get('WINDLASS', common.ROOT / 'build' / 'bin' / 'windlass')).resolve().with_name('windlass-solve')
FORBIDDEN = 10 ** 16


def evaluate(problem, labels):
    """Returns the cost of a solution in the contest's format, and whether it fits."""
    nodes, edges = problem['nodes'], problem['edges']
    cost = sum(costs[label] for costs, label in zip(nodes['costs'], labels))
    for (a, b), table in zip(edges['nodes'], edges['costs']):
        cost += table[labels[a] * len(nodes['costs'][b]) + labels[b]]
    times = {begin for begin, _ in nodes['intervals']}
    peak = max(sum(usage[label] for (begin, end), usage, label in zip(nodes['intervals'], nodes['usages'], labels) if begin <= time < end)
               for time in times)
    return cost, cost < FORBIDDEN and peak <= problem['usage_limit']


def chain(seed, nodes, labels, limit):
    """Returns a problem of nodes in a row, some with an edge further ahead."""
    draw = random.Random(seed)
    pairs = [(i, i + 1) for i in range(nodes - 1)] + [(i, i + 3) for i in range(0, nodes - 3, 2)]
    return {'name': 'chain', 'usage_limit': limit,
            'nodes': {'costs': [[draw.randrange(100) for _ in range(labels)] for _ in range(nodes)],
                      'usages': [[draw.randrange(20) for _ in range(labels)] for _ in range(nodes)],
                      'intervals': [[i, i + draw.randrange(5)] for i in range(nodes)]},
            'edges': {'nodes': [list(pair) for pair in pairs],
                      'costs': [[draw.choice((draw.randrange(90), 0, 10 ** 18)) for _ in range(labels * labels)] for _ in pairs]}}


class SolverTest(common.Case):
    def solve(self, problem, *words, packed=False, code=0):
        path = self.folder / 'problem.json'
        text = problem if isinstance(problem, (str, bytes)) else json.dumps({'problem': problem})
        data = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(data) if packed else data)
        answer = self.folder / 'answer.txt'
        answer.unlink(missing_ok=True)
        outcome = common.run([SOLVE, path, '--json', '-o', answer, *words], timeout=120,
                             limit=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        if code is not None:
            self.assertEqual(outcome.code, code, outcome.err)
        labels = [int(line) for line in answer.read_text().split()] if answer.exists() else None
        return (json.loads(outcome.out) if outcome.out else None), labels, outcome

    def test_small_problems_are_solved(self):
        for seed in range(20):
            problem = chain(seed, 9, 3, 45)
            found = [cost for cost, fits in (evaluate(problem, labels) for labels in itertools.product(range(3), repeat=9)) if fits]
            result, labels, _ = self.solve(problem, packed=seed % 2 == 0, code=0 if found else 3)
            self.assertEqual(result['feasible'], bool(found))
            if found:
                self.assertEqual(evaluate(problem, labels), (min(found), True))
                self.assertEqual(result['cost'], min(found))
                self.assertEqual(result['bound'], min(found))
            else:
                self.assertIsNone(labels)
                self.assertIsNone(result['cost'])

    def test_larger_problem(self):
        """A problem too large to try everything: the cost is that of the labels, and is not below the bound."""
        problem = chain(7, 400, 9, 40)
        result, labels, _ = self.solve(problem, '--work-limit', '300000000')
        cost, fits = evaluate(problem, labels)
        self.assertTrue(fits)
        self.assertEqual(result['cost'], cost)
        self.assertLessEqual(result['bound'], cost)
        self.assertGreater(result['bound'], 0.8 * cost)
        # A second does not become more. On a machine that does other work it may be over before there is a solution.
        result, labels, outcome = self.solve(problem, '--time-limit', '1', '--threads', '2', code=None)
        self.assertIn(outcome.code, (0, 3), outcome.err)
        if outcome.code == 0:
            self.assertEqual(evaluate(problem, labels), (result['cost'], True))
        self.assertLessEqual(result['bound'], cost)
        self.assertLess(outcome.processor_seconds, 8)

    def test_certificates(self):
        file, proof = self.folder / 'problem.json', self.folder / 'proof.cert'
        solve = [common.WINDLASS.parent / 'windlass-solve', file]
        for seed in range(10):
            problem = chain(seed, 9, 3, 45)
            file.write_text(json.dumps({'problem': problem}))
            least = min([cost for cost, fits in (evaluate(problem, labels) for labels in itertools.product(range(3), repeat=9)) if fits], default=FORBIDDEN)
            common.run([*solve, '--certificate', proof])
            outcome = common.run([*solve, '--verify', proof, '--json'])
            self.assertEqual(outcome.code, 0, outcome.err)
            bound = json.loads(outcome.out)['bound']
            self.assertLessEqual(bound, least)
            text = json.loads(proof.read_text())
            text['certificates'][0]['bound'] += 1
            proof.write_text(json.dumps(text))
            outcome = common.run([*solve, '--verify', proof])
            self.assertEqual(outcome.code, 1)
            self.assertRegex(outcome.err, rf'claims the bound {bound + 1}, but proves {bound} \[WL0309\]')

    def test_same_answer_with_any_threads(self):
        problem = chain(3, 300, 8, 38)
        answers = [self.solve(problem, '--work-limit', '100000000', '--threads', threads)[:2] for threads in (1, 2, 2, 3)]
        for result, labels in answers:
            self.assertEqual(labels, answers[0][1])
            self.assertEqual(result['bound'], answers[0][0]['bound'])

    def test_example_of_the_documentation(self):
        text = (common.ROOT / 'docs' / 'solver.md').read_text()
        example = re.search(r'```json\n(.*?)```', text, re.S)[1]
        result, labels, _ = self.solve(example)
        # The streams of the window: 2 + 9 and 9, or 2 + 1 with more memory than there is, or both on the second.
        self.assertEqual(labels, [0, 1])
        self.assertEqual((result['cost'], result['bound']), (11, 11))

    def test_bad_input(self):
        good = json.dumps({'problem': chain(1, 5, 3, 40)})
        packed = gzip.compress(good.encode())
        bad = {'no JSON': 'x', 'empty': '', 'cut': good[:-30], 'tail': good + '1', 'NUL': good[:50] + '\0' + good[50:],
               'cut gzip': packed[:-20], 'damaged gzip': packed[:40] + b'\xff' * 20 + packed[60:], 'deep': '[' * 1_000_000,
               'bomb': gzip.compress(b'[' * (600 << 20), 1), 'float': good.replace('"usage_limit": 40', '"usage_limit": 4e1'),
               'negative': good.replace('"usage_limit": 40', '"usage_limit": -4'), 'unknown': good.replace('usage_limit', 'usage_limits'),
               'large': good.replace('"usage_limit": 40', f'"usage_limit": {10 ** 30}')}
        for name, text in bad.items():
            with self.subTest(name):
                _, labels, outcome = self.solve(text, code=1)
                self.assertIsNone(labels)
                self.assertRegex(outcome.err, r"\Awindlass-solve: error: [^\n]{8,400} \[WL0990\]\n\Z")
                self.assertLess(outcome.peak_bytes, 3 << 30)
        self.assertEqual(common.run([SOLVE, self.folder / 'nothing.json']).code, 1)
        self.assertEqual(common.run([SOLVE, self.folder]).code, 1)
        for words in ([], ['a', 'b'], ['a', '--time-limit', '0'], ['a', '--time-limit', 'nan'], ['a', '--threads', '0'], ['a', '--quick']):
            self.assertEqual(common.run([SOLVE, *words]).code, 2)


if __name__ == '__main__':
    common.main()
