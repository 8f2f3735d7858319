"""scripts/new-pass and scripts/new-op on a copy of the tree: what they write compiles, links and passes the tests that come with it.

Only what changes is compiled; everything else is the build's own. An operator or pass more does not change how the others are called.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import common

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build')).resolve()
LLVM = pathlib.Path('/usr/lib/llvm-22')


class TemplateCase(common.Case):
    def setUp(self):
        super().setUp()
        self.clone, self.made = self.folder / 'clone', self.folder / 'made'
        names = subprocess.run(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], cwd=common.ROOT, capture_output=True, text=True)
        # A tree without git, such as a release, is copied whole.
        paths = names.stdout.splitlines() or [str(path.relative_to(common.ROOT)) for path in common.ROOT.rglob('*') if path.is_file() and 'build' not in path.parts[0]]
        for name in paths:
            if (common.ROOT / name).is_file() and not name.startswith('integration_test/models/'):
                (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(common.ROOT / name, self.clone / name)
        shutil.copymode(common.ROOT / 'scripts/new-op', self.clone / 'scripts/new-op')

    def run_well(self, *words, **options):
        done = common.run(words, **options)
        self.assertEqual(done.code, 0, f'{shlex.join(map(str, words))}\n{done.out[-3000:]}{done.err[-3000:]}')
        return done.out

    def write(self, script, *words):
        out = self.run_well(sys.executable, '-B', self.clone / 'scripts' / script, *words)
        # Steps that are left to do may follow behind an empty line.
        changed = out.split('\n\n')[0].splitlines()
        sources = [path for path in changed if path.endswith(('.cpp', '.h'))]
        self.run_well('clang-format-22', '--dry-run', '-Werror', *sources, cwd=self.clone)
        return changed

    def tablegen(self, td, output, *flags):
        target = self.made / 'windlass' / output
        target.parent.mkdir(parents=True, exist_ok=True)
        self.run_well(LLVM / 'bin/mlir-tblgen', *flags, '-I', self.clone / 'include', '-I', LLVM / 'include', self.clone / 'include/windlass' / td, '-o', target)

    def compile(self, source, like=None):
        """Compiles a file of the copy as the build compiles `like` (default: the same file)."""
        wanted = str(common.ROOT / (like or source))
        command = next(entry['command'] for entry in json.loads((BUILD / 'compile_commands.json').read_text()) if entry['file'] == wanted)
        words = [word for word in shlex.split(command)[:-4]]
        if 'ccache' in command:
            words = words[next(i for i, word in enumerate(words) if 'clang' in word or 'g++' in word):]
        words = [word.replace(f'{common.ROOT}/include', f'{self.clone}/include').replace(f'{common.ROOT}/runtime/', f'{self.clone}/runtime/') for word in words]
        target = self.folder / f'{source.replace("/", "-")}.o'
        self.run_well(words[0], f'-I{self.made}', *words[1:], '-o', target, '-c', self.clone / source, cwd=BUILD)
        return target

    def link(self, program, replaced):
        """Links a program of the build with other objects: {end of the object's name in the build, or a new key: file}."""
        commands = self.run_well('ninja', '-C', BUILD, '-t', 'commands', program).splitlines()
        words = shlex.split(next(line for line in reversed(commands) if f'-o {program}' in line))
        words = words[next(i for i, word in enumerate(words) if 'clang' in word or 'g++' in word):]
        target, objects, rest = self.folder / pathlib.Path(program).name, dict(replaced), []
        for word in words:
            if word == '&&':
                break
            match = next((end for end in objects if word.endswith(end)), None)
            rest.append(str(target) if word == program else str(objects.pop(match)) if match else word)
        # New objects stand before the libraries, whose own of the same symbols are then not taken.
        at = next(i for i, word in enumerate(rest) if word.endswith('.o'))
        rest[at:at] = [str(path) for path in objects.values()]
        self.run_well(*rest, cwd=BUILD)
        return target


class NewPassTest(TemplateCase):
    def write_pass(self, argument, folder, record, *flags):
        """Writes a pass with the script and builds windlass-opt with it. Returns source, test and windlass-opt."""
        words = (argument, '--summary', 'Counts things', '--after', 'Nothing changes.', *flags)
        changed = self.write('new-pass', *words)
        name = ''.join(word.capitalize() for word in argument.split('-')[1:])
        source, test = f'lib/Dialect/{folder}/Transforms/{name}.cpp', f'test/Dialect/{folder}/Transforms/{argument.split("-", 1)[1]}.mlir'
        self.assertLessEqual({source, test}, set(changed))
        self.assertIn(f'def {record} :', (self.clone / f'include/windlass/Dialect/{folder}/Transforms/Passes.td').read_text())
        self.assertIn(f'  {name}.cpp\n', (self.clone / f'lib/Dialect/{folder}/Transforms/CMakeLists.txt').read_text())
        self.tablegen(f'Dialect/{folder}/Transforms/Passes.td', f'Dialect/{folder}/Transforms/Passes.h.inc', '-gen-pass-decls', '-name', folder)
        self.assertNotEqual(common.run([sys.executable, '-B', self.clone / 'scripts/new-pass', *words]).code, 0, 'twice')
        tool = self.link_tool(source, changed)
        line = re.match(r'// RUN: windlass-opt ([^|]*) %s( \| FileCheck %s)?\n', (self.clone / test).read_text())
        out = self.run_well(tool, *line[1].split(), self.clone / test)
        if line[2]:
            (self.folder / 'out.mlir').write_text(out)
            self.run_well(LLVM / 'bin/FileCheck', self.clone / test, '--input-file', self.folder / 'out.mlir')
        self.assertIn(argument, self.run_well(tool, '--help'))
        return source, changed, tool

    def link_tool(self, source, changed):
        like = next((common.ROOT / source).parent.glob('Verify*.cpp')).relative_to(common.ROOT)
        phases = [path for path in changed if path == 'lib/Pipeline/Phases.cpp']
        return self.link('bin/windlass-opt', {'windlass-opt.cpp.o': self.compile('tools/windlass-opt/windlass-opt.cpp'), 'new': self.compile(source, str(like)),
                                              **{path: self.compile(path) for path in phases}})

    def test_plan(self):
        _, changed, _ = self.write_pass('plan-count-axes', 'Plan', 'CountAxes')
        self.assertNotIn('lib/Pipeline/Phases.cpp', changed)

    def test_train(self):
        self.write_pass('train-count-operators', 'Train', 'CountOperatorsPass')

    def test_commands(self):
        """A pass of the compilation: it stands in the pipeline to L5 and in the tool's documentation, and the equivalence of the levels
        runs it."""
        source, changed, tool = self.write_pass('sched-count-copies', 'Sched', 'CountCopies', '--level', 'L5')
        self.assertEqual(len(changed), 5, changed)
        module = self.folder / 'empty.mlir'
        module.write_text('module {}\n')
        pipeline = common.run([tool, module, '--sched-to-commands-pipeline', '--dump-pass-pipeline']).err
        self.assertRegex(pipeline, r'(?s)sched-join-updates.*sched-count-copies.*sched-verify-commands')
        records = (self.clone / 'include/windlass/Dialect/Sched/Transforms/Passes.td').read_text()
        self.assertLess(records.index('"sched-join-updates"'), records.index('"sched-count-copies"'))
        self.assertLess(records.index('"sched-count-copies"'), records.index('"sched-verify-commands"'))

        bin_folder, model = self.folder / 'bin', self.small_gpt(tokens=8, width=16, vocabulary=32)
        bin_folder.mkdir()
        (bin_folder / 'windlass-run').symlink_to(BUILD / 'bin/windlass-run')
        (bin_folder / 'windlass-opt').symlink_to(tool)
        compare = [sys.executable, '-B', self.clone / 'integration_test/equivalence.py', '--build', self.folder, '--input', model,
                   '--work', self.folder / 'levels', '--micro-batches', '2', '--ranks', '2']
        self.assertIn('equivalent: ', self.run_well(*compare))
        text = (self.clone / source).read_text()
        (self.clone / source).write_text(text.replace('markAllAnalysesPreserved();', 'getOperation().emitError("it ran"), signalPassFailure();'))
        self.link_tool(source, changed)
        failed = common.run(compare)
        self.assertEqual(failed.code, 1, failed.out)
        self.assertIn('error: it ran', failed.err)

    def test_every_level(self):
        """Each has a place of its own in the phases, and is of one dialect."""
        phases = self.clone / 'lib/Pipeline/Phases.cpp'
        before, places = phases.read_text(), set()
        for level, dialect in (('L1', 'train'), ('L2', 'train'), ('L3', 'plan'), ('L3b', 'plan'), ('L4', 'sched'), ('L5', 'sched')):
            for other in ('train', 'plan', 'sched'):
                words = [sys.executable, '-B', self.clone / 'scripts/new-pass', f'{other}-count-{level.lower()}', '--level', level, '--summary', 'x', '--after', 'y']
                done = common.run(words)
                self.assertEqual(done.code, int(other != dialect), done.err)
                if other != dialect:
                    self.assertEqual(done.err, f'new-pass: a pass on {level} is one of {dialect}, not of {other}\n')
            lines = phases.read_text().splitlines()
            places.add(lines[next(i for i, line in enumerate(lines) if f'createCount{level.capitalize()}' in line) - 1].strip())
            phases.write_text(before)
        self.assertEqual(len(places), 6, places)

    def test_failure_changes_nothing(self):
        """In a tree of another form, the script fails and changes nothing."""
        sources = self.clone / 'lib/Dialect/Sched/Transforms/CMakeLists.txt'
        sources.write_text(sources.read_text().replace('windlass_library(', 'add_library('))
        texts = {path: path.read_bytes() for path in self.clone.rglob('*') if path.is_file()}
        done = common.run([sys.executable, '-B', self.clone / 'scripts/new-pass', 'sched-count-copies', '--level', 'L5', '--summary', 'x', '--after', 'y'])
        self.assertEqual(done.code, 1)
        self.assertIn('lib/Dialect/Sched/Transforms/CMakeLists.txt: nothing matches', done.err)
        self.assertEqual({path: path.read_bytes() for path in self.clone.rglob('*') if path.is_file()}, texts)

    def test_wrong_names(self):
        for name in ('count-axes', 'plan', 'plan-count', 'Plan-Count-Axes', 'plan-count-axes;', 'other-count-axes'):
            done = common.run([sys.executable, '-B', self.clone / 'scripts/new-pass', name, '--summary', 'x', '--after', 'y'])
            self.assertEqual(done.code, 1, name)
            self.assertIn('is not <dialect>-<verb>-<object>', done.err)


class NewOpTest(TemplateCase):
    def test_new_functions(self):
        """Two functions: one with a gradient, which is checked, and one that is an ONNX operator, which is imported."""
        changed = self.write('new-op', 'log_cosh', '--formula', 'log(cosh(x))', '--value', 'std::log(std::cosh(x))', '--gradient', 'dy * std::tanh(x)')
        self.assertEqual(len(changed), 4, changed)
        # All of ONNX's are there, so that one is forgotten first.
        for file in ('include/windlass/Dialect/Train/IR/RealFunctions.def', 'include/windlass/Dialect/Train/IR/TrainElementwiseOps.td'):
            lines = (self.clone / file).read_text().splitlines(keepends=True)
            kept = [line for line in lines if not re.match(r'(WINDLASS_REAL_FUNCTION\(Round,|def RoundOp )', line)]
            self.assertEqual(len(kept), len(lines) - 1)
            (self.clone / file).write_text(''.join(kept))
        changed = self.write('new-op', 'round_even', '--onnx', 'Round', '--formula', 'the nearest integer', '--value', 'std::nearbyint(x)', '--gradient', 'T(0) * (x + dy)')
        self.assertEqual(len(changed), 5, changed)
        for output, flag in (('TrainOps.h.inc', '-gen-op-decls'), ('TrainOps.cpp.inc', '-gen-op-defs')):
            self.tablegen('Dialect/Train/IR/TrainOps.td', f'Dialect/Train/IR/{output}', flag)
        operator = ('lib/Dialect/Train/IR/Elementwise.cpp', 'lib/Dialect/Train/IR/TrainDialect.cpp', 'lib/Interpreter/ElementwiseKernels.cpp')
        conversion = [f'lib/Conversion/OnnxToTrain/{name}.cpp' for name in ('KnownArithmetic', 'LegalizeElementwise', 'PartialEvaluator')]
        objects = {f'{pathlib.Path(source).name}.o': self.compile(source) for source in operator}
        imports = {f'{pathlib.Path(source).name}.o': self.compile(source) for source in conversion}
        (self.folder / 'bin').mkdir()
        tool = self.link('bin/windlass-opt', {**objects, **imports, 'OpTable.cpp.o': self.compile('tools/windlass-opt/OpTable.cpp')})
        # Fails where a cell of the operator is empty.
        table = self.run_well(tool, '--show-op-table')
        for name in ('log_cosh', 'round_even'):
            row = next(line for line in table.splitlines() if line.startswith(f'| train.{name} '))
            for cell in ('inferred', 'yes', 'd0 d1', f'scalar::{name}'):
                self.assertIn(cell, row)
        self.assertIn('{1}', next(line for line in table.splitlines() if line.startswith('| train.round_even_grad ')))

        test = self.link('bin/WindlassAutodiffTests', {**objects, 'FiniteDifferencesTest.cpp.o': self.compile('unittests/Autodiff/FiniteDifferencesTest.cpp')})
        self.assertRegex(self.run_well(test, '--gtest_filter=*log_cosh*'), r'(?s)OK \] Operators/FiniteDifferences.*log_cosh.*PASSED  \] 1 test')
        scalars = self.compile('runtime/conformance/scalars.cpp')
        program = self.folder / 'scalars'
        self.run_well('clang++-22', scalars, '-o', program, '-lgtest_main', '-lgtest', '-lpthread')
        self.assertIn('[       OK ] Scalar.GradientOfLogCosh', self.run_well(program))

        # The test that it writes: an ONNX graph with the operator against onnx's own evaluator.
        for built in (tool, self.link('bin/windlass-run', objects)):
            built.rename(self.folder / 'bin' / built.name)
        self.run_well(sys.executable, '-B', self.clone / 'integration_test/test_operators.py', 'OperatorTest.test_round_even', env={**os.environ, 'WINDLASS_BUILD': str(self.folder)})

    def test_wrong_names(self):
        for name in ('relu', 'Relu', 'x-y', '2x', 'a;b'):
            done = common.run([sys.executable, '-B', self.clone / 'scripts/new-op', name, '--formula', 'x', '--value', 'x', '--gradient', 'dy'])
            self.assertEqual(done.code, 1, name)
            self.assertTrue(done.err.startswith('new-op: '), done.err)

    def test_operator_that_is_imported(self):
        for operator, place in (('Tanh', 'include/windlass/Dialect/Train/IR/RealFunctions.def has a row of'), ('Softsign', 'lib/Conversion/OnnxToTrain/LegalizeActivations.cpp imports'),
                                ('Cast', 'lib/Conversion/OnnxToTrain/LegalizeElementwise.cpp imports')):
            done = common.run([sys.executable, '-B', self.clone / 'scripts/new-op', 'other', '--onnx', operator, '--formula', 'x', '--value', 'x', '--gradient', 'dy'])
            self.assertEqual((done.code, done.err), (1, f'new-op: {place} the ONNX operator {operator}\n'))


common.main()
