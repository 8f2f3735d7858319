"""Damaged schedules and times of chunks: `windlass schedule` refuses those that are none, and times the rest."""

import json

from .case import BAD_INPUT, USAGE, Case, broken_texts, cuts, flips, json_damage, write

NO_SCHEDULE = 3
# Damage may leave a schedule that is legal.
ANY = (0, BAD_INPUT)
# Two ranks with two micro-batches, one of them with split backwards.
ORDERS = {'orders': [[['F', 0, 0], ['F', 0, 1], ['B', 0, 0], ['W', 0, 0], ['BW', 0, 1]], [['F', 1, 0], ['BW', 1, 0], ['F', 1, 1], ['BW', 1, 1]]],
          'chains': [0], 'cap': 2}
ACTIONS = '''positions 2
chunks 0 1
position 0: forward send:0>1 forward receive:0>1 send:0>1 backward receive:0>1 backward reduce update
position 1: 2x(receive:1>0 forward:1 backward:1 send:1>0) reduce:1 update:1
'''
TIMES = {'forward': [1, 2.5], 'input_gradient': 1, 'weight_gradient': [0, 1e9], 'hop': 0.1}


def schedules(folder):
    path, times, answer = folder / 'schedule.json', folder / 'times.json', folder / 'answer.json'

    def check(label, data, codes=ANY, says=(), flags=()):
        write(path, data if isinstance(data, (str, bytes)) else json.dumps(data))
        return Case(label, ['schedule', path, '-o', answer, *flags], codes, says, output='answer.json')

    def make(label, *flags, codes=(USAGE,), says=()):
        limit = () if '--name' in flags else ('--work-limit', 1000)
        return Case(label, ['schedule', '--ranks', 4, '--micro-batches', 8, '-o', answer, *limit, *flags], codes, says, output='answer.json')

    def give_times(label, data, codes=ANY, says=()):
        write(times, data)
        write(path, good)
        return Case(f'{label}, times', ['schedule', path, '--times', times, '-o', answer], codes, says, output='answer.json')

    good = json.dumps(ORDERS).encode()
    yield check('good orders', good, (0,))
    yield check('good actions', ACTIONS, (0,))
    yield give_times('good', json.dumps(TIMES), (0,))
    for label, broken in broken_texts():
        yield check(label, broken, (BAD_INPUT,), ('schedule.json',))
        yield give_times(label, broken, (BAD_INPUT,), ('times.json',))
    for data, seed in ((good, 19), (ACTIONS.encode(), 23)):
        for length, cut in cuts(data, 20):
            yield check(f'cut at {length}', cut, (BAD_INPUT,))
        for i, changed in flips(data, 150, seed):
            yield check(f'bits turned, {i}', changed)
    for label, text in json_damage(ORDERS, json.dumps):
        yield check(label, text)
    for label, text in json_damage(TIMES, json.dumps):
        yield give_times(label, text)
    yield give_times('a list that is too short', json.dumps({**TIMES, 'forward': [1]}), (0,))
    yield give_times('a list that is too long', json.dumps({**TIMES, 'forward': [1, 2, 3]}), (BAD_INPUT,), ('3 times', '2 chunks'))
    yield give_times('a time that is too large', json.dumps({**TIMES, 'forward': 1e10}), (BAD_INPUT,), ('forward', '1e9'))
    yield from illegal(check)
    yield from large(check, folder)
    for flags, words in ((('--ranks', 0), ('1 to 65536', "'0'")), (('--micro-batches', 1 << 21), ('1 to 1048576',)), (('--chunks', 70000), ('1 to 65536',)),
                         (('--ranks', 300, '--chunks', 300), ('300', '65536')), (('--cap', 0), ('--cap', "'0'")), (('--cap', 'nan'), ('--cap',)),
                         (('--hop', -1), ('--hop', "'-1'")), (('--placement', 'zigzag'), ('zigzag',)), (('--name', '2f2b'), ('2f2b',)),
                         (('--name', 'zbv', '--chunks', 4), ('zbv has 2 chunks', '--chunks 4')), (('--name', 'zbv', '--placement', 'looped'), ('wave', 'looped')),
                         (('--name', '1f1b', '--split'), ('--split', '1f1b')), (('--name', 'dualpipev', '--micro-batches', 7), ('7 micro-batches', '8')),
                         (('--placement', 'bidirectional', '--micro-batches', 3), ('--micro-batches 3', 'even')),
                         (('--micro-batches', 100000, '--split'), ('100000 micro-batches', '21845')), (('--ranks', 1, '--chunks', 600), ('600 chunks', '512'))):
        yield make(' '.join(map(str, flags)), *flags, says=words)
    yield make('a cap below one micro-batch', '--cap', 0.5, codes=(NO_SCHEDULE,), says=('--cap 0.5', '--cap 1'))
    yield make('a cap below a published one', '--cap', 3, '--name', 'zb1p', codes=(NO_SCHEDULE,), says=('position 0', '--cap 4'))


def illegal(check):
    """Schedules that break one rule each; the message names the action and the rule."""
    def orders(*ranks, **more):
        return {'orders': [[action.split('.') for action in rank.split()] for rank in ranks], **more}

    def numbers(document):
        return {**document, 'orders': [[[word, int(chunk), int(batch)] for word, chunk, batch in rank] for rank in document['orders']]}

    for label, ranks, words in (
            ('a missing action', ('F.0.0 F.0.1 BW.0.0', 'F.1.0 BW.1.0 F.1.1 BW.1.1'), ('rank 0 runs no BW or B of micro-batch 1 of chunk 0',)),
            ('a missing micro-batch', ('F.0.0 BW.0.0', 'F.1.0 BW.1.0 F.1.1 BW.1.1'), ('chunk 1 has 2 micro-batches', 'chunk 0 has 1')),
            ('a doubled action', ('F.0.0 F.0.0 BW.0.0', 'F.1.0 BW.1.0'), ('rank 0, action 1', 'F of micro-batch 0 of chunk 0 runs twice')),
            ('an unordered action', ('F.0.0 W.0.0 B.0.0', 'F.1.0 BW.1.0'), ('rank 0, action 1', 'W of micro-batch 0 of chunk 0 runs before its B')),
            ('a chunk on two ranks', ('F.0.0 BW.0.0', 'F.0.0 F.1.0 BW.1.0'), ('rank 1, action 0', 'chunk 0, which rank 0 runs')),
            ('a deadlock', ('F.0.0 BW.0.0 F.0.1 BW.0.1', 'F.1.0 F.1.1 BW.1.0 BW.1.1'),
             ('never ends: position 0 waits at action 1', 'for position 1 to run the backward of micro-batch 0 of chunk 1',
              'position 1 waits at action 1', 'for position 0 to run the forward of micro-batch 1 of chunk 0'))):
        yield check(label, numbers(orders(*ranks)), (BAD_INPUT,), words)
    full = numbers(orders('F.0.0 F.0.1 F.0.2 BW.0.0 BW.0.1 BW.0.2', 'F.1.0 BW.1.0 F.1.1 BW.1.1 F.1.2 BW.1.2', cap=2))
    yield check('more than the cap of the file', full, (BAD_INPUT,), ('position 0 keeps 3', 'forward of micro-batch 2 of chunk 0', 'cap is 2'))
    yield check('more than --cap', {**full, 'cap': 3}, (BAD_INPUT,), ('position 0 keeps 2', 'forward of micro-batch 1', 'cap is 1'), ('--cap', 1))
    yield check('as many as --cap', {**full, 'cap': 1}, (0,), (), ('--cap', 3))
    for label, old, new, words in (
            ('a wrong peer', 'forward send:0>1 forward', 'forward send:0>0 forward', ('position 0', 'chunk 0 to chunk 0', 'at action 1')),
            ('a peer that is no chunk', 'forward send:0>1 forward', 'forward send:0>7 forward', ('position 0', 'chunk 7')),
            ('a peer that is no neighbour', 'receive:1>0 forward:1', 'receive:1>1 forward:1', ('position 1', 'chunk 1')),
            ('messages that nobody sends', '2x(receive:1>0 forward:1 backward:1 send:1>0)', 'receive:1>0 forward:1 backward:1 send:1>0', ('position', 'micro-batch')),
            ('a send before its forward', 'forward send:0>1 forward', 'send:0>1 forward forward', ('position 0', 'before it is computed', 'at action 0')),
            ('a forward before its receive', 'receive:1>0 forward:1', 'forward:1 receive:1>0', ('position 1', 'before it receives', 'at action 0')),
            ('a reduction before the last backward', 'backward reduce', 'reduce backward', ('position 0', 'before the backward of micro-batch 1')),
            ('an update before its reduction', 'reduce update', 'update reduce', ('position 0', 'updates chunk 0 before')),
            ('no update', 'reduce update', 'reduce', ('position 0 does not update chunk 0',)),
            ('a chunk of another rank', 'forward send:0>1 forward', 'forward:1 send:0>1 forward', ('position 0', 'chunk 1')),
            ('more positions than lines', 'positions 2', 'positions 3', ('position',)),
            ('positions that are too many', 'positions 2', 'positions 99999999', ('99999999 positions', '65536'))):
        assert old in ACTIONS
        yield check(label, ACTIONS.replace(old, new), (BAD_INPUT,), words)
    stuck = ACTIONS.replace('forward send:0>1 forward receive:0>1 send:0>1', '2x(forward send:0>1) receive:0>1')
    yield check('a deadlock of messages', stuck, (BAD_INPUT,), ('never ends: position 0 waits for position 1', 'position 1 waits for position 0'))


def large(check, folder):
    """As large as a file may be, and more."""
    many = 250_000
    rank = [['F', 0, n] for n in range(many)] + [['BW', 0, n] for n in range(many)]
    yield check('many micro-batches', {'orders': [rank]}, (0,))
    yield check('too many actions', {'orders': [rank * 3]}, (BAD_INPUT,))
    yield check('many ranks', {'orders': [[['F', n, 0], ['BW', n, 0]] for n in range(1 << 16)]}, (0,))
    yield check('many chunks', {'orders': [[['F', n, 0] for n in range(1 << 16)] + [['BW', n, 0] for n in reversed(range(1 << 16))]]}, (0,))
    yield check('more ranks than there may be', {'orders': [[['F', n, 0], ['BW', n, 0]] for n in range((1 << 16) + 1)]}, (BAD_INPUT,))
    yield check('a table that unfolds', 'positions 1\nchunks 0\nposition 0: 1000000x(forward backward) reduce update\n', (0,))
    yield check('a table that unfolds too far', 'positions 1\nchunks 0\nposition 0: ' + '9999x(' * 5 + 'forward' + ')' * 5 + '\n', (BAD_INPUT,))
    yield check('a drawing that is too large', {'orders': [rank]}, (BAD_INPUT,), ('500000', '65536'), ('-o', folder / 'answer.svg'))
