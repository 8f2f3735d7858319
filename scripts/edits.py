"""Changes that a script makes to files of the tree, for scripts/new-op and scripts/new-pass."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def fail(text):
    sys.exit(f'{pathlib.Path(sys.argv[0]).name}: {text}')


class Edits:
    """Changes of files, named by their paths in the tree, which are written together at the end, so that a failure changes nothing."""

    def __init__(self):
        self.texts = {}

    def read(self, path):
        return self.texts.get(path) or (ROOT / path).read_text()

    def create(self, path, text):
        """A file that is not there yet."""
        if path in self.texts or (ROOT / path).exists():
            fail(f'{path} exists already')
        self.texts[path] = text

    def insert(self, path, pattern, text):
        """`text` behind the last place where `pattern` matches, which is returned."""
        source = self.read(path)
        found = list(re.finditer(pattern, source, re.M | re.S))
        if not found:
            fail(f'{path}: nothing matches {pattern!r}')
        self.texts[path] = source[:found[-1].end()] + text + source[found[-1].end():]
        return found[-1][0]

    def insert_sorted(self, path, pattern, line):
        """`line` among the lines that group 2 of `pattern` matches, in alphabetic order; group 1 is what stands before them."""
        source = self.read(path)
        found = re.search(pattern, source)
        if not found:
            fail(f'{path}: nothing matches {pattern!r}')
        lines = sorted([*found[2].splitlines(True), line])
        self.texts[path] = source[:found.start(2)] + ''.join(lines) + source[found.end(2):]

    def write(self):
        """Formats C++, then writes all files and prints their paths."""
        for path, text in self.texts.items():
            if path.endswith(('.h', '.cpp')):
                words = ['clang-format-22', f'--assume-filename={ROOT / path}']
                self.texts[path] = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
        for path, text in self.texts.items():
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text)
        print('\n'.join(self.texts))
