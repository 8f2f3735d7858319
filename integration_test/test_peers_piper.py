"""The search of Piper's problem against all plans of small graphs, by the benchmark's own reading of the rules."""

import itertools
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'benchmarks'))
import peer_piper


def make_graph(draw):
    """A random graph of up to five layers, each with up to two variants for each of its degrees."""
    count = draw.randint(2, 5)
    edges = [(a, b) for a, b in itertools.combinations(range(count), 2) if draw.random() < 0.6]
    nodes = []
    for layer in range(count):
        degrees = {}
        for degree in (1, 2) if draw.random() < 0.8 else (1,):
            incoming, outgoing = ({str(other): draw.randint(0, 20) for other in others} for others in
                                  ([a for a, b in edges if b == layer], [b for a, b in edges if a == layer]))
            base = {'parameterSize': draw.randint(0, 40), 'syncTimeFw': incoming, 'syncTimeBw': outgoing}
            degrees[str(degree)] = [{'id': 'vanilla', 'timePerSample': draw.randint(1, 30) / degree, 'memoryUsageA': draw.randint(1, 9),
                                     'memoryUsageB': draw.randint(0, 9), **base},
                                    {'id': 'activation recomp', 'timePerSample': draw.randint(1, 40) / degree, 'memoryUsageA': draw.randint(0, 4),
                                     'memoryUsageB': draw.randint(0, 12), **base}][:draw.randint(1, 2)]
        nodes.append({'id': layer, 'name': 'layer', 'TMPCs': degrees})
    return {'nodes': nodes, 'edges': [{'sourceId': a, 'destId': b, 'communicationCost': draw.randint(0, 30)} for a, b in edges]}


def cuts(graph):
    """All lists of stages, each a set of layers, in which no edge leads back."""
    count = len(graph['nodes'])
    for numbers in itertools.product(range(count), repeat=count):
        stages = max(numbers) + 1
        if set(numbers) == set(range(stages)) and all(numbers[edge['sourceId']] <= numbers[edge['destId']] for edge in graph['edges']):
            yield [[layer for layer in range(count) if numbers[layer] == stage] for stage in range(stages)]


def find_best(graph, question):
    best = None
    for stages in cuts(graph):
        shapes = [(data, tensor) for data in range(1, question['devices'] + 1) for tensor in (1, 2) if data * tensor <= question['devices']]
        for chosen in itertools.product(shapes, repeat=len(stages)):
            if sum(data * tensor for data, tensor in chosen) > question['devices']:
                continue
            for recomputed in itertools.product((False, True), repeat=len(graph['nodes'])):
                plan = [{'nodes': nodes, 'data_parallel': data, 'tensor_parallel': tensor, 'recompute': [node for node in nodes if recomputed[node]]}
                        for nodes, (data, tensor) in zip(stages, chosen)]
                value, wrong = peer_piper.evaluate(graph, question, plan)
                if not wrong and (best is None or value < best):
                    best = value
    return best


class PiperTest(unittest.TestCase):
    def test_stages_are_the_best_of_all(self):
        infeasible = 0
        for seed in range(40):
            draw = random.Random(seed)
            graph = make_graph(draw)
            question = {'devices': draw.randint(1, 4), 'batch': draw.choice((1, 2, 4, 6)), 'memory_bytes': draw.randint(10, 70), 'bandwidth': 10.0}
            best = find_best(graph, question)
            answer = peer_piper.search(graph, question)
            with self.subTest(seed=seed):
                self.assertEqual(answer['feasible'], best is not None)
                infeasible += best is None
                if best is not None:
                    value, wrong = peer_piper.evaluate(graph, question, answer['stages'])
                    self.assertEqual(wrong, [])
                    self.assertAlmostEqual(value, best, delta=1e-8 * best)
        self.assertIn(infeasible, range(2, 20))

    def test_what_is_no_graph_is_refused(self):
        node = {'id': 0, 'name': 'layer', 'TMPCs': {'1': [{'id': 'vanilla', 'timePerSample': 1, 'parameterSize': 0, 'memoryUsageA': 0, 'memoryUsageB': 0,
                                                          'syncTimeFw': {}, 'syncTimeBw': {}}]}}
        edge = {'sourceId': 0, 'destId': 1, 'communicationCost': 1}
        two = [node, {**node, 'id': 1}]
        for said, graph in {
                'has a cycle': {'nodes': two, 'edges': [edge, {**edge, 'sourceId': 1, 'destId': 0}]},
                'two nodes have the id 0': {'nodes': [node, node], 'edges': []},
                'an edge is not between two nodes': {'nodes': [node], 'edges': [edge]},
                "'communicationCost' is no number": {'nodes': two, 'edges': [{**edge, 'communicationCost': -1}]},
                'are no lists of one or two by degree': {'nodes': [{**node, 'TMPCs': {'1': []}}], 'edges': []},
                'more than 40000 ways': {'nodes': [{**node, 'id': id} for id in range(20)], 'edges': []},
                "no lists 'nodes' and 'edges'": {'nodes': []}}.items():
            with self.subTest(said), self.assertRaisesRegex(SystemExit, re.escape(said)):
                peer_piper.search(graph, {'devices': 2, 'batch': 2, 'memory_bytes': 10, 'bandwidth': 10.0})


if __name__ == '__main__':
    unittest.main()
