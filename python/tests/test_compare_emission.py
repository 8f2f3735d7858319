"""The differences between two builds' programs, and what they are called."""

import importlib.machinery
import importlib.util
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'scripts' / 'compare-emission'
loader = importlib.machinery.SourceFileLoader('compare_emission', str(SCRIPT))
compare_emission = importlib.util.module_from_spec(importlib.util.spec_from_loader('compare_emission', loader))
loader.exec_module(compare_emission)

STEP = """// The step.
status forward(context & v1) {
  view v2 = device_view(v1, 0, element_type::f32, {4});
  stream & v3 = stream_of(v1, 0);
  status v4 = fill(v3, v2, 0); // "zero"
  WINDLASS_TRY(v4);
  return ok_status("// no comment");
}
"""

# Plans and emits what its options in the environment say.
BINARY = """#!/bin/sh
name=$1; shift
while [ $# -gt 0 ]; do case $1 in -o) out=$2;; esac; shift; done
case $name in
  plan) [ "$REFUSES" = "$0" ] && { echo refused >&2; exit 3; }; echo '{"search_seconds": '$$'}'; echo '{"version": 1}' > "$out" ;;
  simulate) echo '{"predicted_seconds": 1}' ;;
  emit) mkdir -p "$out/src"; size=64; [ "$GROWS" = "$0" ] && size=128
        echo "program{/*device_bytes=*/$size};" > "$out/src/tables.cpp" ;;
esac
"""


class ClassTest(unittest.TestCase):
    def class_of(self, *replacements, name='src/step.cpp'):
        changed = STEP
        for old, new in replacements:
            self.assertIn(old, changed)
            changed = changed.replace(old, new)
        return compare_emission.class_of(name, STEP, changed)

    def test_labels(self):
        self.assertEqual(self.class_of(('// The step.', '// The first step.'), (' // "zero"', '')), 'labels')

    def test_names(self):
        self.assertEqual(self.class_of(('v2', 'weight')), 'names')

    def test_declarations(self):
        view, stream = STEP.splitlines(keepends=True)[2:4]
        self.assertEqual(self.class_of((view + stream, stream + view)), 'declarations')
        self.assertEqual(self.class_of(('view v2', 'view v9'), ('fill(v3, v2', 'fill(v3, v9')), 'names')

    def test_other(self):
        self.assertEqual(self.class_of(('device_view(v1, 0', 'device_view(v1, 64')), 'other')
        self.assertEqual(self.class_of(('fill(v3, v2, 0)', 'fill(v3, v2, 1)')), 'other')
        self.assertEqual(self.class_of(('fill(', 'clear(')), 'other', 'another function of the runtime')
        self.assertEqual(self.class_of(('::f32', '::f16')), 'other')
        self.assertEqual(self.class_of(('// no comment', '// another text')), 'other', 'it is in a string')
        self.assertEqual(self.class_of(('// The step.', '// The first step.'), name='README.md'), 'other')

    def test_tables_and_runtime(self):
        value = ('fill(v3, v2, 0)', 'fill(v3, v2, 1)')
        self.assertEqual(self.class_of(value, name='src/tables.cpp'), 'tables')
        self.assertEqual(self.class_of(('// The step.', '// The first step.'), name='src/tables.cpp'), 'labels')
        self.assertEqual(self.class_of(value, name='runtime/src/stream.cpp'), 'runtime')

    def test_one_name_for_two_things(self):
        self.assertEqual(self.class_of(('v3', 'v2')), 'other')


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.binaries = [pathlib.Path(folder.name).resolve() / name for name in ('base', 'new')]
        for binary in self.binaries:
            binary.write_text(BINARY)
            binary.chmod(0o755)

    def compare(self, *flags, **environment):
        done = subprocess.run([str(SCRIPT), *map(str, self.binaries), '--models', 'mlp', '--strategies', 'ddp', *flags],
                              capture_output=True, text=True, env={**os.environ, **environment})
        self.assertEqual(done.stderr, '')
        return done.returncode, done.stdout

    def test_equal(self):
        code, text = self.compare()
        self.assertEqual(code, 0, text)
        self.assertEqual(text, 'compare-emission: 2 programs of 2 files, 2 equal, 0 not\n')

    def test_arenas(self):
        code, text = self.compare(GROWS=str(self.binaries[1]))
        self.assertEqual(code, 1)
        self.assertIn("arenas: 2; first in mlp ddp cpu:4 f32, src/tables.cpp: {'device': 64} | {'device': 128}", text)
        self.assertIn('0 equal, 2 not', text)

    def test_outcome(self):
        code, text = self.compare(REFUSES=str(self.binaries[1]))
        self.assertEqual(code, 1)
        self.assertIn('outcome: 2', text)

    def test_allowed_classes(self):
        self.assertEqual(self.compare('--allow', 'arenas,labels', GROWS=str(self.binaries[1]))[0], 0)


if __name__ == '__main__':
    unittest.main()
