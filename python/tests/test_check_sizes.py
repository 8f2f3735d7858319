"""What scripts/check-sizes counts as a function, and what it finds too long."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / 'scripts' / 'check-sizes'


def load_script():
    loader = importlib.machinery.SourceFileLoader('check_sizes', str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader('check_sizes', loader))
    loader.exec_module(module)
    return module


def long_function(name, lines):
    return f'void {name}() {{\n' + '  work();\n' * (lines - 2) + '}\n'


class CheckSizesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(textwrap.dedent(text))

    def functions(self, text):
        """(line, name, lines) of each function of a source."""
        self.write('lib/A.cpp', text)
        found = load_script().read_functions(self.root / 'lib/A.cpp', 'lib/A.cpp')
        return [(function.line, function.name, function.lines) for function in found]

    def check(self, *said):
        """Runs the script, which must say these lines, or succeed where there are none."""
        outcome = subprocess.run([sys.executable, '-B', SCRIPT, self.root], capture_output=True, text=True)
        self.assertEqual(outcome.returncode, 1 if said else 0, outcome.stderr)
        self.assertEqual(outcome.stderr.splitlines(), [f'check-sizes: {line}' for line in said])

    def test_functions_of_80_lines_and_sources_of_700_are_not_too_long(self):
        self.write('lib/A.cpp', long_function('most', 80))
        self.write('include/B.h', '\n' * 700)
        self.check()

    def test_longer_ones_are(self):
        self.write('lib/A.cpp', '// first\n' + long_function('Box::open', 81))
        self.write('runtime/b.cu', long_function('grow', 90))
        self.write('tools/C.td', '\n' * 701)
        self.write('test/D.cpp', long_function('elsewhere', 200))
        self.check('tools/C.td:1 the whole file 701', 'runtime/b.cu:1 grow 90', 'lib/A.cpp:2 Box::open 81')

    def test_nothing_to_check_is_a_failure(self):
        self.check(f'{self.root} has no functions: there is nothing to check')

    def test_texts_and_comments_hold_no_braces(self):
        self.assertEqual(self.functions(r'''
            void texts() {
              emit(R"cpp(
            void inner() {
            )" {{{ )cpp", "}", "\"}", '}', '\'', 1'000);
              // }
              /* }
               } */
            }
            int after() { return 0; }
            '''), [(2, 'texts', 8), (10, 'after', 1)])

    def test_lambdas_and_local_classes_count_for_their_function(self):
        self.assertEqual(self.functions('''
            void walk() {
              struct Visitor {
                void visit() {}
              };
              each([&](int i) {
                use(i);
              });
            }
            '''), [(2, 'walk', 8)])

    def test_scopes_are_no_functions(self):
        self.assertEqual(self.functions('''
            namespace windlass::plan {
            extern "C" {
            template <class T, int (*F)(int)> class Box final : public Base<T> {
            public:
              explicit Box(int n) : size{n}, rest(n) {
              }
              [[nodiscard]] bool operator()(int a = f({1, 2})) const noexcept(true) {
                return a;
              }
              operator bool() const { return true; }
              enum class Kind { one, two };
              Values values{};
            private:
              int size{0};
            };
            }
            }
            '''), [(6, 'Box', 2), (8, 'operator()', 3), (11, 'operator bool', 1)])

    def test_names(self):
        self.assertEqual([name for _, name, _ in self.functions('''
            std::function<void(int)> plan::Box<T>::get() const { return {}; }
            bool operator<(A a, B b) { return true; }
            auto last(int n) -> std::pair<int, int> { return {}; }
            __global__ void __launch_bounds__(256) add(float *a) { }
            TEST_F(Search, FindsThePlan) { }
            Box::~Box() { }
            ''')], ['plan::Box<T>::get', 'operator<', 'last', 'add', 'TEST_F(Search, FindsThePlan)', 'Box::~Box'])

    def test_values_are_no_functions_but_their_lambdas_are(self):
        self.assertEqual(self.functions('''
            const Row rows[] = {
                {"a", 1},
                {"b", 2},
            };
            const auto twice = [](int n) -> int {
              return 2 * n;
            };
            '''), [(6, 'twice', 3)])

    def test_the_first_alternative_counts(self):
        self.assertEqual(self.functions('''
            #ifdef FAST
            void run() {
              fast();
            #else
            void run(int slow) {
            #endif
            }
            '''), [(3, 'run', 6)])

    def test_a_table_may_be_longer_but_must_be(self):
        self.write('lib/A.cpp', long_function('rows', 100))
        script = load_script()
        script.TABLES = {('lib/A.cpp', 'rows'): 'a row for each operator'}
        sys.argv = ['check-sizes', str(self.root)]
        script.main()
        self.write('lib/A.cpp', long_function('rows', 80))
        with self.assertRaisesRegex(SystemExit, 'lib/A.cpp rows is no table of more than 80 lines'):
            script.main()

    def test_there_are_few_tables(self):
        self.write('lib/A.cpp', long_function('rows', 10))
        script = load_script()
        script.TABLES = {('lib/B.cpp', str(n)): '' for n in range(6)}
        sys.argv = ['check-sizes', str(self.root)]
        with self.assertRaisesRegex(SystemExit, '6 functions are listed as tables: at most 5'):
            script.main()


if __name__ == '__main__':
    unittest.main()
