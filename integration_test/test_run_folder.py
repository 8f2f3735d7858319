"""The folder of a run: one run at a time writes it; a disk that is full and a folder that cannot be written end a run with a sentence, and
what was saved before stays whole."""

import os
import signal
import subprocess
import time
import unittest

import common


def can_mount():
    return subprocess.run(['unshare', '-rm', 'mount', '-t', 'tmpfs', 'none', '/mnt'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class RunFolderCase(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt()
        self.data = self.folder / 'text.txt'
        self.data.write_bytes(b'a stitch in time saves nine ' * 200)

    def words(self, run, *flags):
        return [str(word) for word in ('train', self.model, '--data', self.data, '--bytes', '-o', run, *flags)]

    def wait_for_steps(self, run, process):
        deadline = time.monotonic() + 300
        while not (run / 'metrics.jsonl').exists() or not (run / 'metrics.jsonl').stat().st_size:
            self.assertIsNone(process.poll(), 'the run ended before it had begun')
            self.assertLess(time.monotonic(), deadline, 'no step was made')
            time.sleep(0.05)


class OneAtATimeTest(RunFolderCase):
    def check_second(self, ranks):
        run = self.folder / 'run'
        first = subprocess.Popen([str(common.WINDLASS), *self.words(run, '-n', ranks, '--steps', 10**8, '-q')], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(first.wait)
        self.addCleanup(first.kill)
        self.wait_for_steps(run, first)
        holder = (run / '.lock').read_text().strip()
        for extra in ((), ('--resume',)):
            second = common.windlass(*self.words(run, '-n', ranks, '--steps', 2, *extra))
            self.assertEqual(second.code, 1, second.err)
            self.assertIn(f"'{run}' is in use by '{holder}'", second.err)
            self.assertRegex(second.err, r'\[WL0801\]')
        # The rank that holds the lock is killed; nobody has to remove anything.
        os.kill(int(holder.split()[1]), signal.SIGKILL)
        first.wait(timeout=60)
        third = common.windlass(*self.words(run, '-n', ranks, '--steps', 2))
        self.assertEqual(third.code, 0, third.err)

    def test_one_rank(self):
        self.check_second(1)

    def test_two_ranks(self):
        self.check_second(2)


@unittest.skipUnless(can_mount(), 'this machine lets nobody mount a file system of his own')
class MountedTest(RunFolderCase):
    def mounted(self, options, script, *words):
        """Runs `script` in a shell whose $run is a file system of its own; `words` are its arguments."""
        run = self.folder / 'run'
        run.mkdir(exist_ok=True)
        lines = f'run={run}; mount -t tmpfs -o {options} none "$run" && {script}'
        return common.run(['unshare', '-rm', 'sh', '-c', lines, 'sh', *words])

    def check_full(self, ranks):
        run = self.folder / 'run'
        # The program is built before, so that only the run's folder is short of room.
        self.succeed(*self.words(self.folder / 'built', '-n', ranks, '--steps', 0))
        size = sum(each.stat().st_size for each in (self.folder / 'built' / 'checkpoints' / 'step-000000').iterdir())
        # Room for one checkpoint and the half of another, without logs and events.
        script = ('"$@"; echo "exit code $?" >&2; ls -A "$run/checkpoints" >&2; '
                  f'{common.WINDLASS} checkpoint inspect "$run" >&2; {common.WINDLASS} checkpoint export "$run" -o {self.folder}/out.safetensors >&2')
        done = self.mounted(f'size={(size + size // 2) // 1024 + 64}k', script, common.WINDLASS,
                            *self.words(run, '-n', ranks, '--steps', 3, '--checkpoint-every', 1))
        self.assertIn('No space left on device', done.err)
        self.assertRegex(done.err, r'(?m)^exit code 1$')
        self.assertRegex(done.err, r'(?m)^exit code 1\nstep-000001\n', 'half a checkpoint is left')
        self.assertEqual(done.code, 0, done.err)
        self.assertTrue((self.folder / 'out.safetensors').exists())

    def test_full_disk(self):
        self.check_full(1)

    def test_full_disk_of_two_ranks(self):
        self.check_full(2)

    def test_folder_that_cannot_be_written(self):
        run = self.folder / 'run'
        done = self.mounted('ro', '"$@"', common.WINDLASS, *self.words(run, '--steps', 2))
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, rf"error: cannot create '{run}/.lock': Read-only file system \[WL\d{{4}}\]\n\Z")
        done = self.mounted('ro', '"$@"', common.WINDLASS, *self.words(run / 'deeper', '--steps', 2))
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, rf"error: cannot create the folder '{run}/deeper': Read-only file system \[WL\d{{4}}\]\n\Z")

    def test_other_verbs_on_a_full_disk(self):
        run = self.folder / 'run'
        for words in (('plan', self.model, '--cluster', 'cpu:1', '-o', f'{run}/plan.json'), ('emit', self.model, '-o', f'{run}/project')):
            with self.subTest(words[0]):
                done = self.mounted('size=8k', '"$@"', common.WINDLASS, *words)
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, r"windlass: error: .*No space left on device \[WL\d{4}\]\n\Z")


common.main()
