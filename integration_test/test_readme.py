"""The demo works, and so do the commands of the README, as printed."""

import re
import shlex
import sys

import common


def commands(text, heading):
    """The commands of the code blocks below `heading`, continued lines joined."""
    section = re.search(rf'^## {heading}\n(.*?)(?=^## |\Z)', text, re.M | re.S)[1]
    blocks = re.findall(r'^```\n(.*?)^```', section, re.M | re.S)
    return [line for block in blocks for line in block.replace('\\\n', ' ').splitlines() if line.strip()]


class ReadmeTest(common.Case):
    def test_demo_and_commands(self):
        demo = self.folder / 'demo'
        done = common.run([sys.executable, '-B', 'examples/byte_gpt.py', '--windlass', common.WINDLASS, '-o', demo], cwd=common.ROOT)
        print(done.out[-3000:])
        self.assertEqual(done.code, 0, done.out[-3000:] + done.err[-3000:])
        print(f'demo: {done.seconds:.0f} s')

        found = commands((common.ROOT / 'README.md').read_text(), 'Use')
        self.assertGreaterEqual(len(found), 5)
        for command in found:
            with self.subTest(command):
                words = [word.replace('build/bin/windlass', str(common.WINDLASS)).replace('build/demo', str(demo)) for word in shlex.split(command)]
                done = common.run(words, cwd=common.ROOT)
                self.assertEqual(done.code, 0, f'{command}\n{done.out[-3000:]}{done.err[-3000:]}')
        self.assertTrue((demo / 'parameters.safetensors').exists())


common.main()
