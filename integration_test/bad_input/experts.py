"""Damaged loads of experts and answers: `windlass place-experts` refuses those that are none, and places the rest."""

import json

from .case import BAD_INPUT, Case, broken_texts, cuts, flips, json_damage, write

# Damage may leave loads that can be placed.
ANY = (0, BAD_INPUT)
# Two layers, and an answer of which experts move.
EXPERTS = {'weight': [[90, 132.5, 40, 61], [0, 7, 7, 1]], 'replicas': 6, 'groups': 2, 'nodes': 2, 'gpus': 2,
           'phy2log': [[0, 1, 1, 2, 3, 3], [2, 3, 3, 0, 1, 1]]}


def experts(folder):
    path, other, answer = folder / 'experts.json', folder / 'other.json', folder / 'answer.json'

    def place(label, data, codes=ANY, says=()):
        write(path, data)
        return Case(label, ['place-experts', path, '-o', answer], codes, says, output='answer.json')

    def move(label, data, codes=ANY, says=()):
        write(path, data)
        write(other, good)
        return Case(f'{label}, to move from', ['place-experts', other, '--from', path, '-o', answer], codes, says, output='answer.json')

    good = json.dumps(EXPERTS).encode()
    for run in (place, move):
        yield run('good loads', good, (0,))
        for label, broken in broken_texts():
            yield run(label, broken, (BAD_INPUT,), ('experts.json',))
        for length, cut in cuts(good, 20):
            yield run(f'cut at {length}', cut, (BAD_INPUT,), ('experts.json',))
        for i, changed in flips(good, 100, 17):
            yield run(f'bits turned, {i}', changed)
        for label, text in json_damage(EXPERTS, json.dumps):
            yield run(label, text)
    # As large as a file may ask for, and one more.
    row = [1 + i % 97 for i in range(1 << 14)]
    for layers, codes, says in ((16, (0,), ()), (17, (BAD_INPUT,), ('17 layers of 65536 replicas',))):
        large = {'weight': [row] * layers, 'replicas': 1 << 16, 'groups': 1 << 10, 'nodes': 1 << 5, 'gpus': 1 << 10}
        yield place(f'{layers} large layers', json.dumps(large), codes, says)
    small = {'weight': [[1 + (7 * i) % 11 for i in range(22)]], 'replicas': 24, 'groups': 1, 'nodes': 1, 'gpus': 8}
    yield place('many small cases', json.dumps([small] * 10000), (0,))
