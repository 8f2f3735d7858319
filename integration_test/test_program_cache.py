"""The folder of built programs: what is found there is what was built, for these tools and this environment; it stays within its limit,
and two runs do not get in each other's way. The programs here are made by a script that stands for CMake."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import time

import common
import processes

# Makes the files that a build of the runtime or of a program makes. A program says that it ran, and waits for a file where it is told to.
CMAKE = r'''#!/bin/sh
[ "$1" != --version ] || { echo cmake version 3.99; exit 0; }
[ "$1" = --build ] || exit 0
echo "$2" >>"$BUILDS"
while [ -e "$BUILDS.hold" ]; do sleep 0.05; done
mkdir -p "$2"
echo library >"$2/libwindlass_runtime.a"
echo exported >"$2/windlass_runtime.cmake"
cat >"$2/train" <<'EOF'
#!/bin/sh
echo the program ran
echo started >"$BUILDS.started"
while [ -e "$BUILDS.wait" ]; do sleep 0.05; done
EOF
chmod +x "$2/train"
'''


class CacheCase(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(tokens=8, width=16)
        self.tools = self.folder / 'tools'
        self.tools.mkdir()
        self.tool('cmake', CMAKE)
        self.builds = self.folder / 'builds'
        self.root = self.folder / 'cache' / 'windlass'
        self.env = {'PATH': f'{self.tools}:{os.environ["PATH"]}', 'XDG_CACHE_HOME': str(self.root.parent), 'BUILDS': str(self.builds)}

    def tool(self, name, text):
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    def words(self, *flags):
        return ['train', self.model, '--data', self.model, '--bytes', '--steps', 1, *flags]

    def train(self, *flags, **env):
        """Trains; returns the program's folder and the output."""
        outcome = self.succeed(*self.words(*flags), '-v', env=dict(self.env, **env))
        self.assertEqual(outcome.out, 'the program ran\n')
        return common.built_folder(outcome), outcome.err

    def count_builds(self):
        return len(self.builds.read_text().splitlines())

    def cache(self, *words):
        return json.loads(self.succeed('cache', *words, '--json', env=self.env).out)

    def states(self):
        return {pathlib.Path(entry['folder']).name: entry['state'] for entry in self.cache()['entries']}


class DamageTest(CacheCase):
    def test_what_has_changed_is_built_again(self):
        folder, _ = self.train()
        for file, damage in (('build/train', lambda path: path.write_bytes(b'')), ('build/train', lambda path: path.write_bytes(path.read_bytes()[:20])),
                             ('build/train', lambda path: path.write_bytes(path.read_bytes().replace(b'ran', b'RAN'))), ('build/train', pathlib.Path.unlink),
                             ('params.safetensors', lambda path: path.write_bytes(path.read_bytes()[:-1] + b'x')),
                             ('run.sh', lambda path: (path.chmod(0o755), path.write_text('#!/bin/sh\n')))):
            with self.subTest(file):
                before = self.count_builds()
                damage(folder / file)
                folder, said = self.train()
                self.assertIn(f'is damaged ({file} ', said)
                self.assertEqual(self.count_builds(), before + 1, 'the program, and not the runtime')
        before = self.count_builds()
        self.assertNotIn('damaged', self.train()[1])
        self.assertEqual(self.count_builds(), before)

    def test_damage_of_the_runtime(self):
        runtime = next(path for path in (self.train()[0].parent).glob('runtime-*.1'))
        (runtime / 'build' / 'libwindlass_runtime.a').write_bytes(b'')
        said = self.train('--optimizer', 'sgd')[1]
        self.assertIn('is damaged (build/libwindlass_runtime.a ', said)

    def test_a_torn_record_counts_as_none(self):
        folder, _ = self.train()
        record = next(self.root.glob('program-*.record'))
        whole = record.read_bytes()
        for text in (b'', whole[:-2], whole.replace(folder.name.encode(), b'../elsewhere.1'), b'\0' * len(whole), whole.replace(b' build/', b' ../../')):
            record.write_bytes(text)
            self.assertNotIn('damaged', self.train()[1])
            self.assertEqual(len(list(self.root.glob('program-*.record'))), 1)

    def test_a_script_finds_no_program(self):
        self.succeed('emit', self.model, '--cluster', 'cpu:1', '-o', self.folder / 'one')
        self.succeed('emit', self.model, '--cluster', 'cpu:2', '-o', self.folder / 'two')
        for name in ('one', 'two'):
            for makes_file in (False, True):
                program = self.folder / name / 'build' / 'train'
                if makes_file:
                    program.parent.mkdir()
                    program.touch()
                    program.chmod(0o755)
                outcome = common.run([self.folder / name / 'run.sh', '--steps', 1])
                self.assertEqual(outcome.code, 1, outcome.err)
                self.assertIn('build/train is missing or empty', outcome.err)


class KeyTest(CacheCase):
    def test_the_environment_of_a_build(self):
        usual, _ = self.train()
        self.assertEqual(self.train()[0], usual)
        seen = {usual}
        for name in ('CXXFLAGS', 'CFLAGS', 'LDFLAGS', 'CPATH', 'LIBRARY_PATH', 'CMAKE_PREFIX_PATH', 'CMAKE_BUILD_TYPE', 'CUDAFLAGS'):
            with self.subTest(name):
                folder, _ = self.train(**{name: str(self.folder / 'other')})
                self.assertNotIn(folder, seen)
                seen.add(folder)
        # A variable that only makes compilations faster changes nothing.
        self.assertEqual(self.train(CMAKE_CXX_COMPILER_LAUNCHER='ccache')[0], usual)

    def test_the_type_of_build_is_that_of_the_program(self):
        self.train()
        self.train(CMAKE_BUILD_TYPE='Debug')
        self.assertEqual([name.split('-')[0] for name in sorted(self.states())], ['program', 'program', 'runtime'])

    def test_versions_of_tools(self):
        usual, _ = self.train()
        seen = {usual}
        for name in ('mpirun', 'nvcc', 'cmake'):
            with self.subTest(name):
                self.tool(name, CMAKE.replace('3.99', '4.00') if name == 'cmake' else '#!/bin/sh\necho 99.9\n')
                folder, _ = self.train()
                self.assertNotIn(folder, seen)
                seen.add(folder)


class PrepareTest(CacheCase):
    def setUp(self):
        super().setUp()
        (self.folder / 'bin').mkdir()
        self.place = self.folder / 'lib' / 'windlass'
        self.place.parent.mkdir()
        self.command = shutil.copy(common.WINDLASS, self.folder / 'bin')

    def prepare(self):
        outcome = common.run([self.command, 'cache', 'prepare', self.place], env=self.env)
        self.assertEqual((outcome.code, outcome.out, outcome.err), (0, '', ''))
        return [path.name for path in self.place.iterdir() if path.is_dir()]

    def test_a_program_links_what_was_built_with_windlass(self):
        prepared = self.prepare()
        self.assertEqual(len(prepared), 1)
        self.assertEqual(self.prepare(), prepared)
        self.assertEqual(self.count_builds(), 1)
        outcome = common.run([self.command, *self.words()], env=self.env)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertEqual(self.count_builds(), 2)
        self.assertEqual([name.split('-')[0] for name in self.states()], ['program'])
        # A program made by other tools is not found, and makes room for those that are.
        self.tool('cmake', CMAKE.replace('3.99', '4.00'))
        self.assertEqual(common.run([self.command, *self.words()], env=self.env).code, 0)
        self.assertEqual(sorted(name.split('-')[0] for name in self.states()), ['program', 'program', 'runtime'])
        self.assertNotEqual(self.prepare(), prepared)
        self.assertEqual(len(self.prepare()), 1)

    def test_damage(self):
        (prepared,) = self.prepare()
        (self.place / prepared / 'build' / 'libwindlass_runtime.a').write_text('changed')
        self.assertEqual(common.run([self.command, *self.words()], env=self.env).code, 0)
        self.assertEqual(sorted(name.split('-')[0] for name in self.states()), ['program', 'runtime'])

    def test_among_the_programs(self):
        self.succeed('cache', 'prepare', env=self.env)
        self.train()
        self.assertEqual(self.count_builds(), 2)


class RoomTest(CacheCase):
    def test_equal_values_are_held_once(self):
        first, second = (self.train('--optimizer', name)[0] / 'params.safetensors' for name in ('sgd', 'adamw'))
        self.assertNotEqual(first, second)
        self.assertTrue(first.samefile(second))
        listed = self.cache()
        self.assertLess(listed['bytes'], sum(entry['bytes'] for entry in listed['entries']) + 2 * first.stat().st_size)
        self.cache('clean')
        self.assertEqual([path.name for path in self.root.iterdir()], [])

    def test_the_least_recently_used_go(self):
        folders = [self.train('--micro-batches', i)[0] for i in (1, 2, 3)]
        # The least recently used program goes: the first one was used last.
        now = time.time()
        for age, folder in ((10, folders[1]), (5, folders[2])):
            record = folder.with_suffix('.record')
            os.utime(record, (now - age, now - age))
        runtime = next(self.root.glob('runtime-*.record'))
        os.utime(runtime)
        self.train('--micro-batches', 1)
        size = self.cache()['bytes']
        removed = self.cache('clean', '--keep', str(size - 1))['removed']
        self.assertEqual(removed, [folders[1].name])
        limited = self.cache('limit', str(size - 1))
        self.assertEqual(limited['limit_bytes'], size - 1)
        self.assertEqual(limited['removed'], [])
        # A build makes room for itself, and does not remove itself.
        self.cache('limit', '1KiB')
        folder, _ = self.train('--micro-batches', 4)
        self.assertEqual([entry['folder'] for entry in self.cache()['entries']], [str(folder)])

    def test_what_is_in_use_stays(self):
        wait, started = self.folder / 'builds.wait', self.folder / 'builds.started'
        wait.touch()
        family = processes.Family([common.WINDLASS, *self.words()], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(family.head.stdout.close)
        self.addCleanup(family.kill)
        processes.wait_for(started.exists, family)
        states = self.states()
        self.assertEqual(sorted(states.values()), ['in use', 'kept'])
        self.cache('clean')
        self.assertEqual(list(self.states().values()), ['in use'])
        # Where windlass is killed, the folder stays locked until the program is gone.
        family.head.send_signal(signal.SIGKILL)
        self.assertEqual(family.wait_until_gone()[1], [])
        self.assertEqual(list(self.states().values()), ['kept'])
        wait.unlink()
        self.train()

    def test_list(self):
        text = self.succeed('cache', env=self.env).out
        self.assertIn(f'{self.root}', text)
        self.train()
        text = self.succeed('cache', env=self.env).out
        for name in ('program-', 'runtime-'):
            self.assertRegex(text, rf'(?m)^\'?{name}[0-9a-f]+.* MiB  kept, used \d{{4}}-\d\d-\d\d \d\d:\d\d$')
        self.assertEqual(stat.S_IMODE(self.root.stat().st_mode), 0o700)

    def test_wrong_words(self):
        for words in (('purge',), ('clean', 'all'), ('limit',), ('limit', 'much'), ('clean', '--keep', '-3'), ('list', '--keep', '1GiB')):
            with self.subTest(words):
                outcome = common.windlass('cache', *words, env=self.env)
                self.assertEqual(outcome.code, 2, outcome.err)


class LockTest(CacheCase):
    def test_the_wait_is_said(self):
        self.train()
        name = next(self.root.glob('program-*.record')).stem
        (self.root / f'{name}.record').unlink()
        with open(self.root / f'{name}.lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write('4711\n')
            lock.flush()
            process = subprocess.Popen([str(word) for word in [common.WINDLASS, *self.words()]], env=dict(os.environ, **self.env), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            line = ''
            while 'waiting' not in line:
                line = process.stderr.readline()
                self.assertTrue(line, 'it ended without waiting')
            self.assertEqual(line, 'windlass: waiting for process 4711, which builds the same program\n')
            self.assertIsNone(process.poll())
        out, said = process.communicate()
        self.assertEqual((process.returncode, out), (0, 'the program ran\n'), said)

    def test_an_interrupted_build_is_made_again(self):
        hold = self.folder / 'builds.hold'
        hold.touch()
        family = processes.Family([common.WINDLASS, *self.words()], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(family.kill)
        processes.wait_for(self.builds.exists, family)
        self.assertEqual(set(self.states().values()), {'in use'})
        family.head.kill()
        self.assertEqual(family.wait_until_gone()[1], [])
        self.assertEqual(set(self.states().values()), {'leftover'})
        hold.unlink()
        folder, _ = self.train()
        states = self.states()
        self.assertEqual(set(states.values()), {'kept'}, states)
        self.assertEqual(folder.suffix, '.2')


common.main()
