"""One input of a user, and what must come of it."""

import dataclasses
import pathlib
import random

BAD_INPUT, USAGE, UNSUPPORTED = 1, 2, 4
# The exit codes of damage that may leave a file valid, or make it name an operator that does not exist.
ANY = (0, BAD_INPUT, UNSUPPORTED)


@dataclasses.dataclass
class Case:
    name: str
    # The words behind the program's name.
    words: list
    # The exit codes that are right.
    codes: tuple = (BAD_INPUT,)
    # The words that the diagnostic must contain, in upper or lower case.
    says: tuple = ()
    # The program that is run: windlass, windlass-solve ('solve'), or the training program that was built for the small classifier.
    program: str = 'windlass'
    # The only place below the scratch folder that may change.
    output: str = ''


def cuts(data, steps=100):
    """Yields `data` cut at each of `steps` parts; never whole."""
    lengths = sorted({len(data) * i // steps for i in range(1, steps)})
    return [(length, data[:length]) for length in lengths if 0 < length < len(data)]


def flips(data, count, seed):
    """Yields `data` with one to three bits flipped, the same ones in every run."""
    source = random.Random(seed)
    for i in range(count):
        changed = bytearray(data)
        for _ in range(1 + i % 3):
            changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
        yield i, bytes(changed)


# The texts that replace a value of a JSON document.
_STRANGE = ('null', 'true', '"text"', '-1', '0', '0.5', '1e999', '4611686018427387904', '99999999999999999999999', '[]', '{}', '[[[[]]]]')


def json_damage(document, dump):
    """Yields texts of `document` with one value replaced or one key left out. Only the first element of a list is changed, and the first of the
    values of a map of names, because the same code reads the others."""
    marker = 'windlass-replaced-value'

    def places(value, path):
        yield path
        if isinstance(value, dict):
            keys = list(value)
            kinds = {tuple(item) if isinstance(item, dict) else key for key, item in value.items()}
            for key in keys[:1] if len(kinds) == 1 or len(keys) > 24 else keys:
                yield from places(value[key], path + (key,))
        elif isinstance(value, list) and value:
            yield from places(value[0], path + (0,))

    def rebuilt(value, path, change):
        if not path:
            return change
        if isinstance(value, dict):
            return {key: rebuilt(item, path[1:], change) if key == path[0] else item for key, item in value.items()}
        return [rebuilt(item, path[1:], change) if i == path[0] else item for i, item in enumerate(value)]

    def without(value, path):
        if isinstance(value, list):
            return [without(item, path[1:]) if i == path[0] else item for i, item in enumerate(value)]
        return {key: without(item, path[1:]) if key == path[0] and path[1:] else item
                for key, item in value.items() if len(path) > 1 or key != path[0]}

    for path in places(document, ()):
        label = '.'.join(map(str, path)) or 'document'
        whole = dump(rebuilt(document, path, marker))
        for strange in _STRANGE:
            yield f'{label} = {strange}', whole.replace(f'"{marker}"', strange)
        if path and isinstance(path[-1], str):
            yield f'{label} left out', dump(without(document, path))
            key = f'"{path[-1]}"'
            yield f'{label} twice', whole.replace(f'"{marker}"', f'0,{key}:0')


def broken_texts():
    """Yields texts that are no JSON, or too much of it."""
    yield 'empty', ''
    yield 'half an object', '{'
    yield 'a list', '[]'
    yield 'a number', '7'
    yield 'NUL', '{"a\0b": 1}'
    yield 'invalid UTF-8', b'{"\xff\xfe": 1}'
    yield 'lone surrogate', '{"\\ud800": 1}'
    yield 'nested lists', '[' * 1000000
    yield 'nested objects', '{"a":' * 200000
    yield 'a long key', '{"' + 'k' * 10000000 + '": 1}'
    yield 'a long number', '{"version": ' + '9' * 1000000 + '}'
    yield 'trailing text', '{} and more'


def write(path, data):
    path = pathlib.Path(path)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
