"""Plans that claim something, and the certificates beside them, that are damaged: `windlass plan --verify` refuses each."""

import json

from .case import BAD_INPUT, Case, broken_texts, cuts, flips, json_damage, write


def prepare(folder, made):
    """Returns the paths of a plan and its certificates, and their contents."""
    path, certificate = folder / 'searched.json', folder / 'searched.cert'
    write(path, (made / 'searched.json').read_text())
    return path, certificate, json.loads(path.read_text()), (made / 'searched.cert').read_bytes()


def verify(label, made, path, codes=(BAD_INPUT,), says=()):
    return Case(label, ['plan', made / 'gpt.onnx', '--verify', path], codes, says)


def claims(folder, made):
    path, certificate, plan, good = prepare(folder, made)
    write(certificate, good)
    yield verify('a good plan', made, path, (0,))
    for label, text in json_damage(plan['claims'], json.dumps):
        write(path, json.dumps({**plan, 'claims': 'here'}).replace('"here"', text))
        yield verify(f'claims, {label}', made, path, says=() if label.endswith('twice') else ('claims',))


def certificates(folder, made):
    path, certificate, _, good = prepare(folder, made)
    document = json.loads(good)
    one = document['certificates'][0]

    def damaged(label, data, says=()):
        write(certificate, data)
        return verify(label, made, path, says=('certificate', *says))

    for label, broken in broken_texts():
        yield damaged(label, broken)
    for length, cut in cuts(good, 40):
        yield damaged(f'cut at {length}', cut)
    for i, changed in flips(good, 60, 11):
        yield damaged(f'bits turned, {i}', changed)
    for label, text in json_damage(document, json.dumps):
        yield damaged(label, text)
    for label, entry, says in (
            ('a million prices', {'prices': [0] * 1000000}, ('1000000 prices',)),
            ('a price below nothing', {'prices': [-1] + one['prices'][1:]}, ('price -1',)),
            ('prices beyond 2^62', {'prices': [1 << 62 | 1] * len(one['prices'])}, ('2^62',)),
            ('messages of a million edges', {'messages': [[[], []]] * 1000000}, ('1000000 edges',)),
            ('a million messages of an edge', {'messages': [[[0] * 1000000, []]]}, ()),
            ('messages to a million nodes', {'messages': [[[]] * 1000000]}, ('1000000 nodes',)),
            ('a bound beyond 2^63', {'bound': 1 << 63}, ('2^63',)),
            ('a name of a million', {'name': [1] * 1000000}, ('mesh',))):
        yield damaged(label, json.dumps({'version': 1, 'certificates': [{**one, **entry}] + document['certificates'][1:]}), says)
    yield damaged('100,000 certificates', json.dumps({'version': 1, 'certificates': [{'name': [], 'bound': 0, 'prices': [], 'messages': []}] * 100000}), ('100000 meshes',))
    yield damaged('no certificates', '{"version": 1, "certificates": []}', ('0 meshes',))
    yield damaged('nesting', '[' * 1000000)
