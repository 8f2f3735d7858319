"""The counts that scripts/check prints."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'scripts' / 'summarize-tests'
loader = importlib.machinery.SourceFileLoader('summarize_tests', str(SCRIPT))
summarize_tests = importlib.util.module_from_spec(importlib.util.spec_from_loader('summarize_tests', loader))
loader.exec_module(summarize_tests)


class CountTest(unittest.TestCase):
    def test_lit(self):
        text = 'Total Discovered Tests: 7\n  Unsupported: 1 (14.29%)\n  Passed     : 4 (57.14%)\n  Failed     : 2 (28.57%)\n'
        self.assertEqual(summarize_tests.count(text), [4, 2, 1])

    def test_gtest(self):
        text = '[==========] 7 tests ran.\n[  PASSED  ] 5 tests.\n[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.b\n'
        self.assertEqual(summarize_tests.count(text), [5, 2, 0])

    def test_unittest(self):
        self.assertEqual(summarize_tests.count('Ran 7 tests in 0.1s\n\nOK\n'), [7, 0, 0])
        self.assertEqual(summarize_tests.count('Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n'), [3, 3, 1])

    def test_own_closing_line_wins(self):
        self.assertEqual(summarize_tests.count('Ran 7 tests in 0.1s\nOK\n3 passed, 1 failed\n'), [3, 1, 0])

    def test_nothing_told(self):
        self.assertIsNone(summarize_tests.count('hello\n'))


class SummaryTest(unittest.TestCase):
    def summarize(self, status, output, labels=('unit',)):
        listing = {'tests': [{'name': 'a', 'properties': [{'name': 'LABELS', 'value': list(labels)}]}]}
        text = f'<testsuite><testcase name="a" status="{status}"><system-out>{output}</system-out></testcase></testsuite>'
        return summarize_tests.summarize(listing, xml.etree.ElementTree.parse(io.StringIO(text)))

    def test_crash_after_the_total_is_a_failure(self):
        self.assertEqual(self.summarize('fail', '[  PASSED  ] 5 tests.'), ({'unit': [5, 1, 0]}, ['a']))

    def test_failure_inside_a_passing_entry_counts(self):
        self.assertEqual(self.summarize('run', '2 passed, 1 failed'), ({'unit': [2, 1, 0]}, ['a']))

    def test_unlabelled(self):
        self.assertEqual(self.summarize('run', '', ['mine']), ({'other': [1, 0, 0]}, []))

    def test_several_runs_are_added_up(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for label, status, told in (('unit', 'run', '2 passed, 0 failed'), ('sanitized', 'fail', '3 passed, 1 failed')):
                paths += [pathlib.Path(folder, label + '.json'), pathlib.Path(folder, label + '.xml')]
                paths[-2].write_text(json.dumps({'tests': [{'name': 'a', 'properties': [{'name': 'LABELS', 'value': ['integration', label]}]}]}))
                paths[-1].write_text(f'<testsuite><testcase name="a" status="{status}"><system-out>{told}</system-out></testcase></testsuite>')
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = summarize_tests.main(*paths)
        self.assertEqual(code, 1)
        self.assertIn('sanitized:       3 passed     1 failed\n', out.getvalue())
        self.assertTrue(out.getvalue().endswith('5 passed, 1 failed\n'), out.getvalue())


if __name__ == '__main__':
    unittest.main()
