"""The cases that scripts/check-diagnostics finds missing, and the lines that it takes for cases."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'scripts' / 'check-diagnostics'


class CheckDiagnosticsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write('include/windlass/Dialect/Toy/Transforms/Passes.td', 'def P : Pass<"toy-fold-loops", "::mlir::ModuleOp"> {}')
        self.write('test/Dialect/Toy/fold-loops.mlir', '// RUN: windlass-opt %s --toy-fold-loops | FileCheck %s\n')
        self.sources = 0

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def source(self, *statements):
        self.sources += 1
        self.write(f'lib/Dialect/Toy/IR/Ops{self.sources}.cpp', '\n'.join(statements))

    def cases(self, *texts):
        self.write('test/Dialect/Toy/invalid.mlir', '\n'.join(f'// expected-error @below {{{{{text}}}}}' for text in texts))

    def check(self, problems, *said):
        outcome = subprocess.run([sys.executable, '-B', SCRIPT, '--root', self.root], capture_output=True, text=True)
        self.assertEqual(outcome.returncode, 1 if problems else 0, outcome.stderr)
        self.assertIn(f' {problems} problems', outcome.stdout)
        for text in said:
            self.assertIn(text, outcome.stderr)

    def test_a_diagnostic_needs_a_case(self):
        self.source('', '  return emitOpError("has no body at all");')
        self.cases('something else entirely')
        self.check(1, 'lib/Dialect/Toy/IR/Ops1.cpp:2: "has no body at all"')
        self.cases("'toy.loop' op has no body at all")
        self.check(0)

    def test_verify_passes_count_and_others_do_not(self):
        self.source('emitOpError("has no body at all");')
        self.cases('has no body at all')
        self.write('lib/Dialect/Toy/Transforms/FoldLoops.cpp', 'emitOpError("cannot be folded");')
        self.check(0)
        self.write('lib/Dialect/Toy/Transforms/VerifyLoops.cpp', 'emitOpError("is still a loop");')
        self.check(1, '"is still a loop"')

    def test_what_is_unreachable_is_there_and_tested_elsewhere(self):
        loader = importlib.machinery.SourceFileLoader('check_diagnostics', str(SCRIPT))
        script = importlib.util.module_from_spec(importlib.util.spec_from_loader('check_diagnostics', loader))
        loader.exec_module(script)
        root = SCRIPT.parents[1]
        for text, test in script.UNREACHABLE.items():
            self.assertIn(text, script.find_diagnostics(root))
            self.assertTrue((root / test).exists(), test)
        text = next(iter(script.UNREACHABLE))
        self.source(f'emitOpError("{text}");')
        self.check(0)
        self.cases(text)
        self.check(1, 'has a case now')

    def test_all_ways_to_emit(self):
        self.source('emitError() << "the first message";', 'op->emitOpError("the second message");',
                    'parser.emitError(place, "the third message");', 'return emit() << "the fourth message";')
        self.cases()
        self.check(4)

    def test_literals_over_several_lines_are_one_text(self):
        self.source('emitOpError() << "cannot be run "', '                 "more than once; give \\"count\\"";')
        self.cases('cannot be run more than once; give "count"')
        self.check(0)

    def test_both_ends_of_a_choice_need_a_case(self):
        self.source('emitOpError(isLoop ? "is a loop without an end" : "is an end without a loop");')
        self.cases('is a loop without an end')
        self.check(1, '"is an end without a loop"')

    def test_a_short_message_is_told_by_its_longest_text(self):
        self.source('emitOpError("has ") << n << " uses";')
        self.cases('has 3 uses')
        self.check(0)
        self.cases('has 3')
        self.check(1, '"uses"')

    def test_one_text_in_two_statements_needs_two_cases(self):
        self.source('emitOpError("must be positive");', 'emitOpError("must be positive");')
        self.cases('must be positive')
        self.check(1, 'Ops1.cpp:1, lib/Dialect/Toy/IR/Ops1.cpp:2', 'in 1 expected-error of test/, not in 2')
        self.cases('must be positive', 'must be positive')
        self.check(0)

    def test_comments_and_other_strings_count_for_nothing(self):
        self.source('// emitOpError("was an error once");', 'note("a remark; nothing more");', 'emitOpError("is // no comment");')
        self.cases('is // no comment')
        self.check(0)

    def test_a_pass_needs_a_test_of_its_name(self):
        self.source('emitOpError("has no body at all");')
        self.cases('has no body at all')
        fold = self.root / 'test/Dialect/Toy/fold-loops.mlir'
        for name, text, problems in (('other.mlir', '// RUN: windlass-opt --toy-fold-loops', 1),
                                     ('fold-loops-invalid.mlir', '// RUN: windlass-opt -toy-fold-loops=depth=2', 0),
                                     ('toy-fold-loops.test', 'RUN: windlass-opt --toy-fold-loops', 0),
                                     ('fold-loops.mlir', '// RUN: windlass-opt --toy-fold-loops-twice', 1),
                                     ('fold-loops.mlir', '// what --toy-fold-loops does', 1)):
            with self.subTest(name=name, text=text):
                fold.unlink()
                fold = fold.with_name(name)
                fold.write_text(text)
                self.check(problems)

    def test_nothing_to_check_is_a_failure(self):
        self.check(1, 'there is nothing to check')


if __name__ == '__main__':
    unittest.main()
