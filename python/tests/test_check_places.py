"""What scripts/check-places finds, and which lines each of its rules leaves alone."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'scripts' / 'check-places'
# For each rule, in its order: a file, a line that breaks it there, and one that does not.
CASES = (
    ('lib/Interpreter/A.cpp', 'if (kernel == "matmul")', 'if (optimizer == "adam")'),
    ('lib/Simulator/A.cpp', 'lookupSymbol<func::FuncOp>("forward");', 'getStepFunction(program, StepRole::forward);'),
    ('lib/Target/A.cpp', 'for (int64_t turn = 0; turn < item.count; ++turn)', 'for (int64_t i = 0; i < count; ++i)'),
    ('runtime/src/program/a.cpp', 'for (int turn = 0; turn < row.count; ++turn)', 'for (int i = 0; i < counts[0]; ++i)'),
    ('lib/Pipeline/A.cpp', 'names = {"ddp", "zero1*megatron=2"};', 'strategy = "ddp";'),
    ('lib/Commands/A.cpp', 'manager.addPass(sched::createFuseLosses());', 'manager.addPass(sched::createVerifyCommands());'),
    ('lib/Dialect/Sched/A.cpp', 'return a.getOffset() == b.getOffset();', 'return Place::of(a) == Place::of(b);'),
)
# The files that rules name, each with what no other file may do.
PLACES = {
    'include/windlass/Dialect/Sched/IR/Kernels.def': 'KERNEL(matmul, lowering)\nKERNEL(adamw, op)\n',
    'lib/Dialect/Plan/Transforms/NamedStrategies.cpp': '      {"ddp", "text"},\n      {"zero1", "text"},\nauto all = {"ddp", "zero1"};\n',
    'lib/Schedule/Pipeline.cpp': CASES[2][1],
    'runtime/src/program/expand_actions.h': CASES[3][1],
    'lib/Pipeline/Phases.cpp': CASES[5][1],
}


class CheckPlacesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in PLACES.items():
            self.write(path, text)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def counts(self, code):
        """How many lines break each rule."""
        outcome = subprocess.run([sys.executable, '-B', SCRIPT, self.root], capture_output=True, text=True)
        self.assertEqual(outcome.returncode, code, outcome.stdout + outcome.stderr)
        return [int(line.split()[0]) for line in outcome.stdout.splitlines() if not line.startswith(' ')]

    def test_every_rule_finds_its_line_and_no_other(self):
        for i, (path, line, other) in enumerate(CASES):
            with self.subTest(line=line):
                self.write(path, f'{other}\n// {line}\n')
                self.assertEqual(self.counts(0), [0] * len(CASES))
                self.write(path, f'{other}\n{line}\n')
                self.assertEqual(self.counts(1), [int(k == i) for k in range(len(CASES))])
                (self.root / path).unlink()

    def test_nothing_to_check_is_a_failure(self):
        self.write('include/windlass/Dialect/Sched/IR/Kernels.def', '')
        outcome = subprocess.run([sys.executable, '-B', SCRIPT, self.root], capture_output=True, text=True)
        self.assertEqual(outcome.returncode, 1)
        self.assertIn('there is nothing to check', outcome.stderr)


if __name__ == '__main__':
    unittest.main()
