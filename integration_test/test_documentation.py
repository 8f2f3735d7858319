"""Each command of README.md and docs/ runs as printed, in the order of the pages.

They run in a folder that looks like the clone but has a `build` of its own, so that nothing of the user's is touched.
"""

import os
import pathlib
import re
import sys

import common

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))
# Commands that this test needs or is a part of: set-up and build come before it, and the suite runs it.
INSTEAD = {
    'scripts/demo': f'{sys.executable} -B examples/byte_gpt.py --windlass build/bin/windlass -o $PWD/build/demo',
    'scripts/check': 'true',
}


def blocks(path):
    """Yields (line, commands) of the shell blocks of a page."""
    text = path.read_text()
    for match in re.finditer(r'^```sh\n(.*?)^```', text, re.M | re.S):
        yield text[:match.start()].count('\n') + 2, match[1]


def as_run(commands):
    lines = []
    for line in commands.splitlines():
        words = line.split('#')[0].strip()
        lines.append(INSTEAD.get(words, line))
    return '\n'.join(lines)


class DocumentationTest(common.Case):
    def setUp(self):
        super().setUp()
        self.root = self.folder / 'clone'
        self.root.mkdir()
        for path in common.ROOT.iterdir():
            if not path.name.startswith('build') and path.name != '.git':
                (self.root / path.name).symlink_to(path)
        (self.root / 'build').mkdir()
        (self.root / 'build' / 'bin').symlink_to(BUILD / 'bin')

    def test_every_command(self):
        pages = [common.ROOT / 'README.md', *sorted((common.ROOT / 'docs').rglob('*.md'))]
        found = [(page, line, commands) for page in pages for line, commands in blocks(page)]
        self.assertGreaterEqual(len([page for page, _, _ in found if page.name == 'README.md']), 5)
        self.assertGreaterEqual(len([page for page, _, _ in found if page.name == 'architecture.md']), 8)
        seconds = 0
        for page, line, commands in found:
            with self.subTest(f'{page.relative_to(common.ROOT)}:{line}'):
                done = common.run(['bash', '-euo', 'pipefail', '-c', as_run(commands)], cwd=self.root, timeout=1200)
                seconds += done.seconds
                self.assertEqual(done.code, 0, f'{commands}\n{done.out[-2000:]}{done.err[-3000:]}')
        print(f'{len(found)} blocks in {seconds:.0f} s')
        self.assertTrue((self.root / 'build' / 'demo' / 'parameters.safetensors').exists())

    def test_nothing_is_left_out(self):
        """A block of another kind would not be run: output is marked, and code is not shell."""
        for page in [common.ROOT / 'README.md', *sorted((common.ROOT / 'docs').rglob('*.md'))]:
            text = page.read_text()
            if text.startswith('<!-- Made by'):
                continue
            for kind in re.findall(r'(?:\A|\n\n)```(\w*)\n.*?\n```', text, re.S):
                self.assertIn(kind, ('sh',), f'{page}: a block of kind "{kind}" without a mark')


common.main()
