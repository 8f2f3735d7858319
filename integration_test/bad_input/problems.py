"""Damaged problems of labels: `windlass-solve` refuses those that are none, and solves the rest."""

import json

from .case import BAD_INPUT, Case, broken_texts, cuts, flips, json_damage, write

NO_SOLUTION = 3
# Damage may leave a problem, with a solution or without one.
ANY = (0, BAD_INPUT, NO_SOLUTION)
# Each kind of entry.
PROBLEM = {'version': 1, 'problem': {
    'name': 'each kind of entry',
    'nodes': {'costs': [[15, 10], [40, 10, 5], [3]], 'usages': [[10, 5], [5, 0, 12], [1]], 'intervals': [[0, 3], [2, 5], [9, 9]], 'counts': [1, 3, 2],
              'pieces': [[[4, 6, [3, 4]]], [], []], 'loads': [[[1, 0, [5, 6]]], [[0, 0, [9, 1, 2]], [1, 1, [2, 0, 0]]], []]},
    'edges': {'nodes': [[0, 1], [2, 0]], 'costs': [[30, 15, 10, 55, 20, 0], [1, 2]], 'counts': [100, 1]},
    'windows': [[0], [1, 2]], 'usage_limit': 15}}


def problems(folder):
    path, answer = folder / 'problem.json', folder / 'answer.txt'

    def solve(label, data, codes=ANY, says=()):
        write(path, data)
        return Case(label, [path, '--work-limit', 1000000, '-o', answer], codes, says, program='solve', output='answer.txt')

    good = json.dumps(PROBLEM).encode()
    yield solve('a good problem', good, (0,))
    for label, broken in broken_texts():
        yield solve(label, broken, (BAD_INPUT,), ('problem',))
    for length, cut in cuts(good):
        yield solve(f'cut at {length}', cut, (BAD_INPUT,), ('problem',))
    for i, changed in flips(good, 200, 13):
        yield solve(f'bits turned, {i}', changed)
    for label, text in json_damage(PROBLEM, json.dumps):
        yield solve(label, text)
    one = {'costs': [[1]], 'usages': [[0]], 'intervals': [[0, 0]]}

    def nodes(**changes):
        return json.dumps({'problem': {'nodes': {**one, **changes}, 'edges': {'nodes': [], 'costs': []}, 'usage_limit': 9}})

    many = 300000
    for label, text in (
            ('many labels', nodes(costs=[[1] * many], usages=[[0] * many])),
            ('many nodes', nodes(costs=[[1]] * many, usages=[[0]] * many, intervals=[[0, 0]] * many)),
            ('many times', nodes(costs=[[1]] * many, usages=[[1]] * many, intervals=[[2 * i, 2 * i + 1] for i in range(many)])),
            ('all at all times', nodes(costs=[[1]] * many, usages=[[1]] * many, intervals=[[i, many + i] for i in range(many)])),
            ('an edge of many pairs', json.dumps({'problem': {'nodes': {'costs': [[1] * 2000] * 2, 'usages': [[0] * 2000] * 2, 'intervals': [[0, 0]] * 2},
                                                              'edges': {'nodes': [[0, 1]], 'costs': [[3] * 4000000]}, 'usage_limit': 9}})),
            ('a window of many streams', json.dumps({'problem': {'nodes': one, 'edges': {'nodes': [], 'costs': []}, 'windows': [[1] * many], 'usage_limit': 9}})),
            ('costs that sum to more than 2^63', nodes(costs=[[(1 << 63) - 1]] * 3, usages=[[(1 << 63) - 1]] * 3, intervals=[[0, 1]] * 3))):
        yield solve(label, text)
