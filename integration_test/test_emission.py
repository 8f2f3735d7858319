"""The emitted project: the same bytes wherever and however it is made; compiles without a warning; has no part of LLVM in it."""

import json
import os
import pathlib
import re
import shutil
import sys

import common

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))
WARNINGS = '-Wall -Wextra -Werror'


def tree(folder):
    """Returns {path: bytes} of all files below `folder`."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob('*')) if path.is_file()}


def names_path(data, folder):
    """Whether bytes hold the absolute path of a folder, which is not the end of a longer path."""
    return re.search(rb'(?<![\w.)}/])(-I)?' + re.escape(os.fsencode(str(folder))) + rb'(?![\w.-])', data) is not None


class EmissionCase(common.Case):
    def plan_and_emit(self, model, target, *flags, ranks=2, strategy='ddp', **options):
        plan = target.with_name(f'{target.name}.json')
        self.succeed('plan', model, '--cluster', f'cpu:{ranks}', '--micro-batches', ranks, '--strategy', strategy, '-o', plan, *flags, **options)
        self.succeed('emit', model, '--plan', plan, '-o', target, **options)
        return tree(target)

    def step_lines(self, emitted):
        """Returns the number of lines of the step program: all sources of the model, without the tables and the runtime."""
        names = [name for name in emitted if name.startswith('src/') and pathlib.Path(name).suffix in ('.cpp', '.h')]
        step = [name for name in names if 'step' in pathlib.Path(name).name]
        self.assertTrue(step, f'no step program among {names}')
        return sum(len(emitted[name].splitlines()) for name in step)


class DeterminismTest(EmissionCase):
    def test_same_bytes(self):
        model = self.small_gpt()
        first = self.plan_and_emit(model, self.folder / 'first')
        self.assertIn('CMakeLists.txt', first)
        self.assertIn('src/main.cpp', first)
        self.assertEqual([name for name in first if name.endswith('/CMakeLists.txt')], ['runtime/CMakeLists.txt'],
                         'the tests of the runtime are no part of a program')
        self.assertEqual(first, self.plan_and_emit(model, self.folder / 'second'), 'a second run differs')

    def on_one_processor(self, make, *arguments, **options):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            return make(*arguments, **options, env={'OMP_NUM_THREADS': '1'})
        finally:
            os.sched_setaffinity(0, allowed)

    def test_threads(self):
        """One processor or all of them give the same bytes."""
        model = self.small_gpt()
        first = self.plan_and_emit(model, self.folder / 'all')
        self.assertEqual(first, self.on_one_processor(self.plan_and_emit, model, self.folder / 'one'))

    def test_threads_of_plans_that_run_again(self):
        """A named strategy under a limit, and random plans, do so too."""
        model, strategy = self.small_gpt(layers=2), 'zero3*megatron=2'
        refused = common.windlass('plan', model, '--cluster', 'cpu:4', '--micro-batches', 4, '--strategy', strategy, '--memory-limit', 1)
        limit = ('--memory-limit', re.search(r'these would fit: --memory-limit (\d+)', refused.err)[1])
        first = self.plan_and_emit(model, self.folder / 'all', *limit, ranks=4, strategy=strategy)
        self.assertEqual(first, self.on_one_processor(self.plan_and_emit, model, self.folder / 'one', *limit, ranks=4, strategy=strategy))
        self.assertNotIn('kept', json.loads(first['plan.json'])['segments'].values())
        segments = set()
        for seed in range(3):
            first = self.random_plan_and_emit(model, self.folder / f'all{seed}', seed)
            self.assertEqual(first, self.on_one_processor(self.random_plan_and_emit, model, self.folder / f'one{seed}', seed), seed)
            segments.update(json.loads(first['plan.json'])['segments'].values())
        self.assertGreater(len(segments), 1)

    def random_plan_and_emit(self, model, target, seed, **options):
        plan = target.with_name(f'{target.name}.json')
        outcome = common.run([BUILD / 'bin' / 'windlass-opt', '--random-plan', model, '--cluster', 'cpu:4', '--seed', seed, '--micro-batches', 4, '-o', plan], **options)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.succeed('emit', model, '--plan', plan, '-o', target, **options)
        return tree(target)

    def test_locale_time_zone_and_user(self):
        model = self.small_gpt()
        first = self.plan_and_emit(model, self.folder / 'plain', env={'LC_ALL': 'C'})
        for index, locale in enumerate(('C.UTF-8', 'de_DE.UTF-8', 'tr_TR.UTF-8')):
            env = {'LC_ALL': locale, 'LANG': locale, 'TZ': 'Asia/Tokyo', 'USER': 'someone', 'HOME': str(self.folder)}
            self.assertEqual(first, self.plan_and_emit(model, self.folder / f'local{index}', env=env), locale)

    def test_folders(self):
        model = self.small_gpt()
        first = self.plan_and_emit(model, self.folder / 'here')
        elsewhere = self.folder / 'a folder with spaces' / 'deeper'
        elsewhere.mkdir(parents=True)
        shutil.copyfile(model, elsewhere / 'renamed.onnx')
        second = self.plan_and_emit(pathlib.Path('renamed.onnx'), elsewhere / 'there', cwd=elsewhere)
        self.assertEqual(first, second)
        for name, data in first.items():
            for folder in (self.folder, common.ROOT):
                self.assertFalse(names_path(data, folder), f'{name} holds a path of this machine')

    def test_what_names_a_path(self):
        """The check of the test above works where a clone has the name of a folder inside the project."""
        for text, expected in ((b'include /src/lib', True), (b'"/src"', True), (b'-I/src/include', True), (b'runtime/src/lib', False),
                               (b'${here}/src/lib', False), (b'/srcs', False), (b'/elsewhere/src/lib', False)):
            self.assertEqual(names_path(text, pathlib.Path('/src')), expected, text)


class SizeTest(EmissionCase):
    def test_layers_are_written_once(self):
        """With more layers the program grows by calls of the layer's function, not by copies of that function."""
        small, large = self.small_gpt('four.onnx', layers=4), self.small_gpt('twelve.onnx', layers=12)
        print()
        for strategy in (*(row['name'] for row in common.named_strategies()), 'zero1*megatron=2'):
            with self.subTest(strategy):
                lines = [self.step_lines(self.plan_and_emit(model, self.folder / f'{strategy}-{model.stem}', ranks=4, strategy=strategy))
                         for model in (small, large)]
                # Sixteen weights of a layer are updated and reduced by a call each, of a line or two.
                print(f'{strategy}: {lines[0]} lines for 4 layers, {lines[1]} for 12')
                self.assertLessEqual(lines[1] - lines[0], 8 * 16 * 2)
                self.assertLessEqual(lines[1], 700)


class CompileTest(EmissionCase):
    def check_compiler(self, compiler):
        model = self.small_gpt()
        project = self.folder / 'project'
        self.plan_and_emit(model, project)
        # Moved after emission: nothing in it may depend on where it was made.
        moved = project.rename(self.folder / 'moved')
        build = moved / 'build'
        done = common.run(['cmake', '-S', moved, '-B', build, '-G', 'Ninja', '-DWINDLASS_BACKEND=cpu', '-DCMAKE_BUILD_TYPE=Release',
                           f'-DCMAKE_CXX_COMPILER={compiler}', f'-DCMAKE_CXX_FLAGS={WARNINGS}'])
        self.assertEqual(done.code, 0, done.out + done.err)
        done = common.run(['cmake', '--build', build], timeout=900)
        self.assertEqual(done.code, 0, done.out[-4000:] + done.err[-4000:])
        program = build / 'train'
        libraries = common.run(['ldd', program]).out
        self.assertNotIn('LLVM', libraries)
        self.assertNotIn('MLIR', libraries)
        data = self.folder / 'corpus.txt'
        data.write_bytes(bytes(range(32, 127)) * 40)
        done = common.run([program, '--data', data, '--bytes', '--steps', 2, '-o', self.folder / 'run'])
        self.assertEqual(done.code, 0, done.out[-2000:] + done.err[-2000:])
        self.assertEqual(len((self.folder / 'run' / 'metrics.jsonl').read_text().splitlines()), 2)

    def test_gcc(self):
        self.check_compiler('g++')

    def test_clang(self):
        self.check_compiler('clang++-22')


if len(sys.argv) > 1 and sys.argv[1] == '--compile':
    del sys.argv[1]
    del DeterminismTest, SizeTest
else:
    del CompileTest
common.main()
