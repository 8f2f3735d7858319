"""Each fuzzer on its seeds and on the same mutations of them every time. scripts/fuzz looks for new ones."""

import os
import pathlib
import re
import sys
import tempfile

import common

BUILD = pathlib.Path(os.environ['WINDLASS_BUILD'])
# The runs that take a few seconds.
RUNS = {'onnx': 3000, 'plan': 5000, 'cluster': 20000, 'experts': 5000, 'certificate': 50000, 'problem': 5000, 'profile': 5000, 'schedule': 5000, 'json': 50000, 'manifest': 20000, 'safetensors': 50000, 'tokens': 50000}


class Fuzzers(common.Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='windlass-seeds-')
        cls.addClassCleanup(folder.cleanup)
        cls.seeds = pathlib.Path(folder.name)
        made = common.run([sys.executable, '-B', common.ROOT / 'fuzz' / 'seeds.py', cls.seeds],
                          env={'PYTHONPATH': os.pathsep.join(str(common.ROOT / part) for part in ('integration_test', 'python'))})
        assert made.code == 0, made.err

    def test_every_fuzzer_is_run(self):
        self.assertEqual({path.name for path in (BUILD / 'bin').glob('fuzz-*')}, {f'fuzz-{name}' for name in RUNS})


def add(name, runs):
    def test(self):
        outcome = common.run([BUILD / 'bin' / f'fuzz-{name}', f'-runs={runs}', '-seed=1', '-timeout=30', '-rss_limit_mb=4096', '-max_len=131072', '-len_control=0',
                              '-print_final_stats=1', self.seeds / name], cwd=self.folder, timeout=900)
        self.assertEqual(outcome.code, 0, outcome.err[-4000:])
        done = re.search(r'number_of_executed_units: (\d+)', outcome.err)
        self.assertIsNotNone(done, outcome.err[-2000:])
        self.assertGreaterEqual(int(done[1]), runs)
        print(f'{name}: {done[1]} inputs in {outcome.processor_seconds:.1f} s', flush=True)
    setattr(Fuzzers, f'test_{name}', test)


for each, count in RUNS.items():
    add(each, count)
common.main()
