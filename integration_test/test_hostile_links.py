"""Links that somebody put into the folders that windlass writes: whatever they lead to stays as it is, byte for byte. A folder that the
user names may be reached by a link."""

import hashlib
import os
import pathlib
import shutil

import common

MODEL, DATA = common.MODELS / 'mlp' / 'model.onnx', common.MODELS / 'mlp' / 'batches.safetensors'


def contents(folder):
    """Returns everything below `folder`: kinds, times of change, hashes."""
    found = {}
    for path in sorted(folder.rglob('*')):
        info = path.lstat()
        what = os.readlink(path) if path.is_symlink() else hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ''
        found[str(path)] = (info.st_mode, 0 if path.is_dir() else info.st_mtime_ns, what)
    return found


class LinksCase(common.Case):
    def setUp(self):
        super().setUp()
        self.outside = self.folder / 'outside'
        self.outside.mkdir()
        self.targets = 0

    def target(self, text='kept'):
        """Returns a file outside."""
        self.targets += 1
        path = self.outside / f'file-{self.targets}'
        path.write_text(text)
        return path

    def target_folder(self):
        """Returns a folder outside that holds files."""
        self.targets += 1
        path = self.outside / f'folder-{self.targets}'
        path.mkdir()
        for name in ('one', 'manifest.json', 'parameters-00000.safetensors'):
            (path / name).write_text(name)
        return path

    def plant(self, path, hard=False):
        """Replaces a file by a link to a file outside, which gets its content."""
        target = self.target()
        if path.is_file():
            shutil.copyfile(path, target)
        path.unlink(missing_ok=True)
        os.link(target, path) if hard else path.symlink_to(target)

    def plant_folder(self, path):
        if path.is_dir():
            path.rename(self.folder / f'was-{self.targets}')
        path.symlink_to(self.target_folder())

    def unchanged(self, *words, code=0, says='', env=None):
        """Runs windlass; nothing outside may change."""
        before = contents(self.outside)
        outcome = common.windlass(*words, timeout=1800, env=env)
        self.assertIn(outcome.code, code if isinstance(code, tuple) else (code,), outcome.err)
        self.assertNotIn('Sanitizer', outcome.err)
        self.assertIn(says, outcome.err)
        after = contents(self.outside)
        self.assertEqual([path for path in sorted({*before, *after}) if before.get(path) != after.get(path)], [])
        return outcome


class RunTest(LinksCase):
    def words(self, run, steps, *more):
        return ('train', MODEL, '--data', DATA, '-n', 2, '--steps', steps, '-o', run, '-q', *more)

    def plant_names(self, run, step, hard):
        """Links under all names that a run writes or wrote, but for its newest checkpoint."""
        newest = sorted((run / 'checkpoints').glob('step-*'))[-1:]
        for path in sorted(run.rglob('*')):
            if path.is_file() and path.parent not in newest:
                self.plant(path, hard)
        for name in ('metrics.jsonl', 'run.json', 'profile.json', 'kernels.json', 'report.html'):
            for form in ('{}', '.{}.partial', '{}.tmp', '.{}.tmp'):
                self.plant(run / form.format(name), hard)
        for rank in range(2):
            self.plant(run / 'logs' / f'rank_0000{rank}.log', hard)
        for form in ('.step-{:06}.partial', '.step-{:06}.old', '.step-{:06}.aside'):
            for each in range(1, step + 3):
                self.plant_folder(run / 'checkpoints' / form.format(each))
        self.plant_folder(run / 'checkpoints' / f'step-{step:06}')
        self.plant_folder(run / 'checkpoints' / f'step-{step + 9:06}')

    def check_resume(self, hard):
        run = self.folder / 'run'
        self.succeed(*self.words(run, 2))
        self.plant_names(run, 4, hard)
        if not hard:
            (run / '.lock').unlink() # a link there is refused
        self.unchanged(*self.words(run, 4, '--resume', '--profile', '--checkpoint-every', 1, '--keep', 1))
        self.assertTrue((run / 'checkpoints' / 'step-000004' / 'manifest.json').is_file())
        self.assertEqual([path for path in run.rglob('*') if path.is_symlink() and path.parent == run / 'logs'], [])
        self.unchanged('report', run, '-q')
        self.assertFalse((run / 'report.html').is_symlink())
        self.succeed('checkpoint', 'inspect', run)

    def test_symbolic_links(self):
        self.check_resume(False)

    def test_hard_links(self):
        self.check_resume(True)

    def test_a_new_run(self):
        run = self.folder / 'run'
        for name in ('checkpoints', 'logs'):
            (run / name).mkdir(parents=True)
        self.plant_names(run, 2, False)
        self.unchanged(*self.words(run, 2))
        self.assertTrue((run / 'checkpoints' / 'step-000002' / 'manifest.json').is_file())

    def test_the_lock(self):
        run = self.folder / 'run'
        run.mkdir()
        self.plant(run / '.lock')
        self.unchanged(*self.words(run, 2), code=1, says='.lock')

    def test_folders(self):
        self.succeed(*self.words(self.folder / 'run', 2))
        for name, more in (('checkpoints', ()), ('logs', ()), ('traces', ('--profile',))):
            run = self.folder / f'run-{name}'
            shutil.copytree(self.folder / 'run', run)
            self.plant_folder(run / name)
            for extra in ((), ('--resume',)):
                with self.subTest(name, extra=extra):
                    resumes = name == 'traces' or name == 'logs'
                    if not extra and resumes:
                        shutil.rmtree(run / 'checkpoints', ignore_errors=True)
                    elif extra and resumes:
                        shutil.rmtree(run / 'checkpoints', ignore_errors=True)
                        shutil.copytree(self.folder / 'run' / 'checkpoints', run / 'checkpoints')
                    self.unchanged(*self.words(run, 4, *extra, *more), code=1, says='is a symbolic link')

    def test_files_of_a_checkpoint(self):
        run = self.folder / 'run'
        self.succeed(*self.words(run, 2))
        for path in sorted((run / 'checkpoints' / 'step-000002').iterdir()):
            with self.subTest(path.name):
                good = path.read_bytes()
                self.plant(path)
                self.unchanged(*self.words(run, 4, '--resume'), code=1, says='holds no valid checkpoint')
                path.unlink()
                path.write_bytes(good)
        self.succeed(*self.words(run, 4, '--resume'))

    def test_the_folder_itself(self):
        self.target_folder()
        real, run = self.folder / 'real', self.folder / 'run'
        real.mkdir()
        run.symlink_to(real)
        self.unchanged(*self.words(run, 2))
        self.unchanged(*self.words(run, 4, '--resume'))
        self.assertTrue(run.is_symlink())
        self.assertTrue((real / 'checkpoints' / 'step-000004').is_dir())


class OutputTest(LinksCase):
    def test_an_emitted_project(self):
        emit = ('emit', MODEL, '--cluster', 'cpu:2', '-q', '-o')
        self.succeed(*emit, self.folder / 'good')
        good = contents(self.folder / 'good')
        for hard in (False, True):
            project = self.folder / f'project-{hard}'
            shutil.copytree(self.folder / 'good', project)
            for path in sorted(project.rglob('*')):
                if path.is_file():
                    self.plant(path, hard)
                    path.write_text('changed')
                    self.plant(path.with_name(path.name + '.tmp'), hard)
            self.unchanged(*emit, project)
            for path, (mode, _, what) in good.items():
                path = project / pathlib.Path(path).relative_to(self.folder / 'good')
                with self.subTest(str(path)):
                    self.assertEqual(path.lstat().st_mode, mode)
                    self.assertTrue(not what or hashlib.sha256(path.read_bytes()).hexdigest() == what)
        for name in ('src', 'runtime', 'runtime/src'):
            project = self.folder / f'project-{name.replace("/", "-")}'
            shutil.copytree(self.folder / 'good', project)
            shutil.rmtree(project / name)
            self.plant_folder(project / name)
            self.unchanged(*emit, project, code=1, says='is a symbolic link')

    def test_single_files(self):
        run = self.folder / 'run'
        self.succeed('train', MODEL, '--data', DATA, '--steps', 1, '-o', run, '-q')
        for name, words in (('plan.json', ('plan', MODEL, '--cluster', 'cpu:2', '-o')), ('all.safetensors', ('checkpoint', 'export', run, '-o')),
                            ('trace.json', ('simulate', MODEL, '--cluster', 'cpu:2', '-o')), ('page.html', ('report', run, '-o')),
                            ('plan.html', ('plan', MODEL, '--cluster', 'cpu:2', '--html'))):
            with self.subTest(name):
                for form in ('{}', '{}.tmp', '.{}.partial'):
                    self.plant(self.folder / form.format(name))
                self.unchanged(*words, self.folder / name, '-q')
                self.assertFalse((self.folder / name).is_symlink())


# In the place of CMake: a build that takes no time.
CMAKE = """#!/bin/sh
[ "$1" = --build ] || { [ "$1" = --version ] && echo none; exit 0; }
mkdir -p "$2"
touch "$2/libwindlass_runtime.a" "$2/windlass_runtime.cmake"
printf '#!/bin/sh\nexit 0\n' > "$2/train"
chmod +x "$2/train"
"""


class CacheTest(LinksCase):
    def test_built_programs(self):
        tools, cache = self.folder / 'tools', self.folder / 'cache'
        tools.mkdir()
        (tools / 'cmake').write_text(CMAKE)
        (tools / 'cmake').chmod(0o755)
        env = {'PATH': f'{tools}:{os.environ["PATH"]}', 'XDG_CACHE_HOME': str(cache)}
        words = ('train', MODEL, '--data', DATA, '--steps', 1, '-q', '-o', self.folder / 'run')
        self.succeed(*words, env=env)
        good = self.folder / 'good'
        cache.rename(good)
        for name in sorted(path.relative_to(good) for path in (good / 'windlass').iterdir()):
            with self.subTest(str(name)):
                shutil.copytree(good, cache, symlinks=True)
                path = cache / name
                self.plant_folder(path) if path.is_dir() else self.plant(path)
                self.unchanged(*words, code=(0, 1), env=env)
                shutil.rmtree(cache)


common.main()
