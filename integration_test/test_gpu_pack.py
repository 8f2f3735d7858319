"""The folder that goes to a machine with a GPU, tested without one: what scripts/gpu-pack puts into it, and that its gpu-check, which
builds all of it for the emulated device here, fails when anything in it does.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import common


class PackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix='windlass-test-')
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.pack = cls.folder / 'pack'
        models = cls.folder / 'models'
        models.mkdir()
        common.prepared('mlp', models)
        cls.write_profile(models / 'mlp' / 'model.onnx')
        cls.made = common.run([common.ROOT / 'scripts' / 'gpu-pack', cls.pack, models, cls.folder / 'profiles'], env={'WINDLASS': str(common.WINDLASS)})
        cls.bytes = sum(file.stat().st_size for file in cls.pack.rglob('*'))  # before anything is built there

    @classmethod
    def write_profile(cls, model):
        """Writes a profile by which the library computes the attention of one model faster."""
        common.windlass('emit', model, '--cluster', 'h200:1', '-o', cls.folder / 'planned')
        cluster = json.loads((cls.folder / 'planned' / 'plan.json').read_text())['cluster']
        heads, out = 'bf16[16x12x1024x64]{2359296,64,2304,1}', 'bf16[16x12x1024x64]{786432,64,768,1}'
        key = f'attention({heads}, {heads}, {heads}) -> {out}, f32[16x12x1024] {{causal, scale = 0.12499999572143228 : f64}}'
        (cls.folder / 'profiles').mkdir()
        (cls.folder / 'profiles' / '124m-batch16.json').write_text(json.dumps({
            'version': 1, 'machine': 'a device', 'threads': 1, 'cluster': cluster, 'commands': {}, 'collectives': [], 'attention': {
                'device': 'a device', 'library': 'a library', 'choices': {key: {'seconds': 1e-4, 'own_seconds': 1e-3, 'workspace_bytes': 1 << 30}}}}))

    def check(self, *flags, **environment):
        """Runs gpu-check without this session's environment."""
        done = subprocess.run([sys.executable, self.pack / 'gpu-check', *flags], capture_output=True, text=True, env=environment, timeout=3000)
        rows = dict(re.findall(r'^(\S.*?)  +\d+\.\d s  (.*)$', done.stdout, re.M))
        written = json.loads((self.pack / 'results.json').read_text())
        self.assertEqual(rows, {row['name']: row['result'] for row in written['rows']})
        self.assertEqual({name for name, result in rows.items() if result.startswith('ok')} - set(written['passed']), set())
        stages = re.findall(r'^-- (\w+): \d+ s$', done.stdout, re.M)
        self.assertEqual(stages, list(written['stage_seconds']))
        return done, rows

    def test_what_it_holds(self):
        self.assertEqual(self.made.code, 0, self.made.err)
        self.assertIn('has no answers for gpt2-tiny, ', self.made.out)
        self.assertEqual({p.name for p in (self.pack / 'projects').iterdir()}, {'mlp-f32', 'mlp-bf16', 'mlp-f16', 'mlp-f32-ranks2'})
        rounded = {p.parent.name: json.loads(p.read_text())['gradient'] for p in (self.pack / 'projects').glob('*/rounding.json')}
        self.assertEqual(set(rounded), {'mlp-bf16', 'mlp-f16'})
        self.assertTrue(0 < 4 * rounded['mlp-f16'] < rounded['mlp-bf16'] < 0.1, rounded)
        self.assertEqual({p.name for p in (self.pack / 'benchmarks' / 'gpt2_gpu').iterdir() if p.is_dir()},
                         {f'{kind}{name}' for kind in ('', 'profile-') for name in ('124m-batch16', '124m-batch64', '1558m-batch8', '1558m-batch16')})
        tables = {name: (self.pack / 'benchmarks' / 'gpt2_gpu' / name / 'src' / 'tables.cpp').read_text() for name in ('124m-batch16', '124m-batch64')}
        self.assertIn('auto out = attention_shape{}; out.type = element_type::bf16; out.is_gradient = false; out.is_causal = true; ', tables['124m-batch16'])
        self.assertIn('out.scratch_bytes = 1073741824;', tables['124m-batch16'])  # the profile's
        self.assertIn(f'out.scratch_bytes = {(64 * 12 * 1024 * 1024 * 2) + (64 * 12 * 1024 * 4) + (1 << 20)};', tables['124m-batch64'])
        if list(common.ROOT.glob('.venv/lib/python3*/site-packages/include/cudnn_frontend.h')):
            self.assertTrue((self.pack / 'cudnn_frontend' / 'include' / 'cudnn_frontend.h').exists())
        for file in self.pack.rglob('*'):
            self.assertFalse(file.is_symlink(), file)  # the folder is whole by itself
        self.assertLess(self.bytes, 60 << 20)

    def test_what_is_not_there(self):
        """Nothing passes without CMake, or where a program has to run and there is no device; nothing is said to have failed either."""
        (self.pack / 'empty').mkdir()
        done, rows = self.check('--emulated', PATH=str(self.pack / 'empty'))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(rows['configure runtime'], 'not run (cmake is not there)')
        self.assertEqual(rows['parity mlp-f32'], 'not run (it was not built)')
        self.assertIn('\ncmake                not found\n', done.stdout)
        self.assertIn('\n0 passed, 0 failed', done.stdout)
        self.assertRegex(done.stdout, r'; \S.*, \d+ cores, emulated: no device; outputs are in ')
        done, rows = self.check('--run-only', PATH=str(self.pack / 'empty'))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(rows, {stage: 'not run (it needs a device)' for stage in ('conformance', 'checker', 'parity', 'profile', 'benchmarks')})

    def test_measure(self):
        """Checks the script's evaluation of programs' figures; stand-ins take the programs' place, which cannot run here."""
        def program(path, text):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'#!{sys.executable}\nimport json, pathlib, sys\n{text}\n')
            path.chmod(0o755)
        gpt2 = self.pack / 'benchmarks' / 'gpt2_gpu'
        program(self.pack / 'build-cuda' / 'runtime' / 'benchmarks' / 'windlass_matmul_rate', 'print(7e14)')
        program(self.pack / 'build-cuda' / '124m-batch16' / 'train',
                'run = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])\nrun.mkdir(parents=True)\n'
                'rows = [json.dumps({"seconds": s}) for s in (9, 9, 0.04, 0.05, 0.06)]\n'
                '(run / "metrics.jsonl").write_text("\\n".join(rows))\nprint(json.dumps({"arena_bytes": 3 << 30, "reserve_bytes": 1 << 30}))')
        program(self.pack / 'build-cuda' / '1558m-batch8' / 'train', 'sys.exit("no device")')
        self.addCleanup(shutil.rmtree, gpt2 / 'runs')
        done = common.run([sys.executable, gpt2 / 'measure', '--steps', '4', '124m-batch16', '1558m-batch8'])
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.out, r'1558m-batch8 +windlass +failed: no device\n')
        (row,) = [row for row in json.loads((gpt2 / 'results.json').read_text()) if row['way'] == 'windlass']
        self.assertEqual((row['model'], row['step_seconds'], row['own_bytes']), ('124m-batch16', 0.05, 4 << 30))
        self.assertAlmostEqual(row['tokens_per_s'], 16 * 1024 / 0.05)
        # Six operations for each of 124M parameters and token, and a tenth more for attention, of 7e14 a second.
        self.assertAlmostEqual(row['of_product_rate'], 16 * 1024 * (6 * 123.65e6 + 6 * 12 * 768 * 1024) / 0.05 / 7e14, delta=0.002)

    def test_emulated(self):
        path = self.pack / 'models' / 'mlp' / 'reference.json'
        # Nothing is found but CMake, a compiler with what it calls, and Python.
        tools = self.folder / 'tools'
        tools.mkdir()
        for name in ('cmake', 'make', 'sh', 'cc', 'c++', 'as', 'ld', 'ar', 'ranlib', 'ccache'):
            if shutil.which(name):
                (tools / name).symlink_to(shutil.which(name))
        # Of the conformance suite, which test_cuda.py runs whole, a part is enough to see that it is run.
        environment = dict(PATH=str(tools), HOME=str(self.folder), GTEST_FILTER='Map.*:Reduce.*:Softmax.*')
        if shutil.which('ccache'):
            environment.update(CMAKE_CXX_COMPILER_LAUNCHER='ccache', CCACHE_BASEDIR=str(self.folder), CCACHE_NOHASHDIR='1',
                               CCACHE_DIR=os.environ.get('CCACHE_DIR', str(pathlib.Path.home() / '.cache' / 'ccache')))
        done, rows = self.check('--emulated', **environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual({name for name in rows if name.startswith('parity')}, {'parity mlp-f32', 'parity mlp-bf16', 'parity mlp-f16', 'parity mlp-f32-ranks2'})
        self.assertEqual(rows['conformance'], 'ok')
        # Another answer than PyTorch's, and only what is compared with it, fails.
        whole = path.read_text()
        reference = json.loads(whole)
        reference['losses'][-1] *= 1.5
        path.write_text(json.dumps(reference))
        done, rows = self.check('--emulated', 'mlp-f32', **environment)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual({name for name, result in rows.items() if result.startswith('FAIL')}, {'parity mlp-f32', 'parity mlp-f32-ranks2'})
        # A row that passed in an earlier call is not run again.
        self.assertEqual(rows['conformance'], 'ok (in an earlier call)')
        path.write_text(whole)
        done, rows = self.check('--emulated', 'mlp', **environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual({name: result for name, result in rows.items() if name.startswith('parity')},
                         {f'parity mlp-{name}': 'ok' for name in ('f32', 'bf16', 'f16', 'f32-ranks2')})  # their reference is newer


if __name__ == '__main__':
    common.main()
