"""The differences between two builds' programs, and their classes."""

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

# Plans and emits as its options in the environment say.
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
        self.assertEqual(self.class_of(('// The step.', '// The first step.'), name='plan.json'), 'other')
        self.assertEqual(self.class_of(('// The step.', '// The first step.'), name='README.md'), 'readme')

    def test_tables_and_runtime(self):
        value = ('fill(v3, v2, 0)', 'fill(v3, v2, 1)')
        self.assertEqual(self.class_of(value, name='src/tables.cpp'), 'tables')
        self.assertEqual(self.class_of(('// The step.', '// The first step.'), name='src/tables.cpp'), 'labels')
        self.assertEqual(self.class_of(value, name='runtime/src/stream.cpp'), 'runtime')

    def test_one_name_for_two_things(self):
        self.assertEqual(self.class_of(('v3', 'v2')), 'other')


# A step whose views are declared where they are used, and one with a table of buffers: the same commands.
INLINE = """static status block_0(context & v1, row v2, bool v3) {
  static_cast<void>(v2);
  static_cast<void>(v3);
  stream & v4 = stream_of(v1, 0);
  view v5 = row_view(v1, v2, 1, element_type::f32, {4});
  view v6 = device_view(v1, 64, element_type::f32, {4}, {0});
  status v7 = map_views_adding<fused_0>(v4, v3, v5, v6);
  WINDLASS_TRY(v7);
  status v8 = ok_status();
  return v8;
}
status backward(context & v1, std::int64_t v2, bool v3) {
  bool v4 = adds_to_earlier(v2);
  status v5 = block_0(v1, block_0_rows[0], v4);
  WINDLASS_TRY(v5);
  status v6 = block_0(v1, block_0_rows[1], v4);
  WINDLASS_TRY(v6);
  stream & v7 = stream_of(v1, 0);
  if (v3) {
    view v8 = device_view(v1, 64, element_type::f32, {4});
    updated_parameters v9 = device_parameters(v1, element_type::f32, {{4, 0, 64, 128, 192, -1},
      {8, 256, 320, 384, 448, -1}});
    status v10 = adamw_list(v7, v9, v8);
    WINDLASS_TRY(v10);
  }
  status v11 = ok_status();
  return v11;
}
"""
BUFFERS = """constexpr row_buffer r0({0, 1}, element_type::f32, {4}); // layer.0
constexpr buffer v0({0, 64}, element_type::f32, {4}, {0}); // rate
constexpr buffer v1({0, 64}, element_type::f32, {4});
constexpr parameter_places p0[] = {
    {4, {0, 0}, {0, 64}, {0, 128}, {0, 192}, {-1, 0}}, // layer.0.weight
    {8, {0, 256}, {0, 320}, {0, 384}, {0, 448}, {-1, 0}},
};
"""
TABLED = """static status block_0(context &c, row r, bool adds) {
  const buffer_views at(c, r);
  stream &compute = stream_of(c, 0);
  WINDLASS_TRY(map_views_adding<fused_0>(compute, adds, at(r0), at(v0))); // layer.0.scale
  return ok_status();
}

status backward(context &c, std::int64_t index, bool is_last) {
  const bool adds = adds_to_earlier(index);
  const buffer_views at(c);
  stream &compute = stream_of(c, 0);
  for (int i = 0; i <= 1; ++i) WINDLASS_TRY(block_0(c, block_0_rows[i], adds)); // layer.0 to layer.1
  if (is_last) {
    WINDLASS_TRY(adamw_list(compute, parameters_at(at, element_type::f32, p0), at(v1)));
  }
  return ok_status();
}
"""


class FormTest(unittest.TestCase):
    def commands(self, step=TABLED, buffers=BUFFERS):
        return compare_emission.commands_of({'src/step.cpp': step.encode(), 'src/buffers.h': buffers.encode()})

    def test_same_commands(self):
        self.assertEqual(self.commands(INLINE, ''), self.commands())
        self.assertEqual(len(self.commands().splitlines()), 10, self.commands())

    def test_other_commands(self):
        for place, old, new in (('step', 'at(r0), at(v0)', 'at(v0), at(r0)'), ('step', 'i <= 1', 'i <= 2'), ('step', 'adds, at', 'true, at'), ('step', 'if (is_last)', 'if (adds)'),
                                ('step', 'stream_of(c, 0);\n  for', 'stream_of(c, 1);\n  for'), ('step', 'rows[i], adds', 'rows[i], is_last'),
                                ('step', '    WINDLASS_TRY(adamw', '  }\n  {\n    WINDLASS_TRY(adamw'), ('step', 'f32, p0), at(v1)', 'bf16, p0), at(v1)'), ('buffers', '{0, 1}', '{0, 2}'),
                                ('buffers', 'v1({0, 64}', 'v1({1, 64}'), ('buffers', '{4}, {0})', '{4})'), ('buffers', 'r0({0, 1}, element_type::f32', 'r0({0, 1}, element_type::f16'),
                                ('buffers', '{0, 192}', '{0, 196}'), ('buffers', '{0, 448}, {-1, 0}', '{0, 448}, {0, 512}'), ('buffers', 'row_buffer r0', 'buffer r0')):
            texts = {'step': TABLED, 'buffers': BUFFERS}
            self.assertIn(old, texts[place])
            texts[place] = texts[place].replace(old, new, 1)
            with self.subTest(old=old, new=new):
                self.assertNotEqual(self.commands(**texts), self.commands())

    def test_gradients_of_a_table(self):
        step = TABLED.replace('adamw_list(compute, parameters_at(at, element_type::f32, p0), at(v1))', 'square_sum_list(compute, at(v1), gradients_at(at, g0), false)')
        table = BUFFERS + 'constexpr gradient_places g0[] = {\n    {4, {0, 448}}, // layer.0.weight\n    {8, {0, 512}},\n};\n'
        commands = self.commands(step, table)
        self.assertEqual(self.commands(step.replace('g0', 'g7'), table.replace('g0', 'g7')), commands)
        self.assertNotEqual(self.commands(step, table.replace('{0, 512}', '{0, 576}')), commands)
        self.assertNotEqual(self.commands(step, table.replace('{4, {0, 448}}', '{5, {0, 448}}')), commands)

    def test_text_of_no_known_form(self):
        self.assertIsNone(self.commands('int main() {}'))
        self.assertIsNone(self.commands(TABLED, 'constexpr buffer v0({0, 64'))


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
