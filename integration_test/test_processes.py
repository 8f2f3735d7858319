"""However `windlass train` ends, nothing that it has started goes on, and nobody has to clean up after it."""

import json
import os
import signal
import subprocess
import time

import common
import processes


class ProcessCase(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(tokens=8, width=16)
        self.data = self.folder / 'text.txt'
        self.data.write_bytes(b'a stitch in time saves nine ' * 200)

    def words(self, run, ranks, steps=10**8):
        return ['train', self.model, '-n', ranks, '--data', self.data, '--bytes', '--steps', steps, '-o', run]

    def start(self, run, ranks, **options):
        family = processes.Family([common.WINDLASS, *self.words(run, ranks)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  start_new_session=True, **options)
        self.addCleanup(family.head.stderr.close)
        self.addCleanup(family.kill)
        return family

    def start_training(self, run, ranks):
        family = self.start(run, ranks)
        rows = run / 'metrics.jsonl'
        processes.wait_for(lambda: rows.exists() and rows.stat().st_size, family)
        return family

    def check_gone(self, family):
        seconds, left = family.wait_until_gone()
        self.assertEqual(left, [], f'{seconds:.0f} s after windlass was told to end')
        print(f'nothing left after {seconds:.1f} s', flush=True)

    def check_next_run(self, run, ranks):
        """The run's lock is free, and its newest checkpoint, where there is one, is valid."""
        steps = 3
        if any((run / 'checkpoints').glob('step-*')):
            steps += json.loads(self.succeed('checkpoint', 'inspect', run, '--json').out)['step']
        outcome = self.succeed(*self.words(run, ranks, steps), *(['--resume'] if steps > 3 else []))
        self.assertIn(f'to {steps}\n', outcome.out)


class TrainingTest(ProcessCase):
    def test_signals(self):
        for ranks in (1, 2):
            for how in (signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL):
                with self.subTest(ranks=ranks, how=how.name):
                    run = self.folder / f'run-{ranks}-{how.name}'
                    family = self.start_training(run, ranks)
                    family.head.send_signal(how)
                    self.check_gone(family)
                    if how == signal.SIGHUP:
                        self.assertEqual(family.head.returncode, 7)
                        self.assertRegex(family.head.stderr.read(), r'interrupted after step \d+; saved .* \[WL0903\]')
                    self.check_next_run(run, ranks)

    def interrupt(self, ranks, times, run):
        family = self.start_training(run, ranks)
        # A program that stands still cannot save. Its partner on another rank would see it, if it did not stand still too.
        for pid in family.programs('train'):
            os.kill(pid, signal.SIGSTOP)
        for _ in range(times):
            family.head.send_signal(signal.SIGINT)
            time.sleep(0.5)
        self.check_gone(family)
        return family

    def test_ctrl_c_where_the_program_stands_still(self):
        for ranks in (1, 2):
            for times in (2, 3):
                with self.subTest(ranks=ranks, times=times):
                    run = self.folder / f'run-{ranks}-{times}'
                    family = self.interrupt(ranks, times, run)
                    self.assertIn(family.head.returncode, (6, 7))
                    self.check_next_run(run, ranks)

    def test_a_guard_that_stands_still_does_its_work(self):
        for times in (0, 3):
            with self.subTest(times):
                family = self.start_training(self.folder / f'run-{times}', 2)
                for each in family.members():
                    os.kill(int(each.name), signal.SIGSTOP)
                for _ in range(times):
                    family.head.send_signal(signal.SIGINT)
                    time.sleep(0.1)
                if times == 0:
                    family.head.kill()
                self.check_gone(family)

    def test_a_guard_that_is_killed_takes_the_run_with_it(self):
        family = self.start_training(self.folder / 'run', 2)
        for pid in family.programs('windlass'):
            os.kill(pid, signal.SIGKILL)
        self.check_gone(family)
        self.assertEqual(family.head.returncode, 6)


class BuildTest(ProcessCase):
    def test_no_compiler_goes_on(self):
        cache = {'XDG_CACHE_HOME': str(self.folder / 'cache')}
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(how.name):
                family = self.start(self.folder / how.name, 1, env=cache)
                processes.wait_for(lambda: family.programs('cc1plus'), family)
                family.head.send_signal(how)
                self.check_gone(family)
                self.assertEqual(family.head.returncode, -how)


class LauncherTest(ProcessCase):
    """Windlass starts its ranks itself, even inside another job, or with the environment that a job has left."""

    def test_inside_of_another_job(self):
        outcome = common.run(['mpirun', '-n', 1, '--allow-run-as-root', common.WINDLASS, *self.words(self.folder / 'run', 2, 3)])
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn('on 2 ranks, steps 1 to 3', outcome.out)

    def test_a_program_started_by_hand_speaks(self):
        """A rank number that no job of that size has silences no output."""
        built = common.built_folder(self.succeed(*self.words(self.folder / 'run', 1, 3), '-v'))
        outcome = common.run([built / 'build' / 'train', '--stpes', 3], env={'PMIX_RANK': '3'})
        self.assertEqual(outcome.code, 2)
        self.assertIn('did you mean --steps?', outcome.err)
        outcome = common.run([built / 'build' / 'train', '--data', self.folder / 'none', '--steps', 3, '-o', self.folder / 'other'], env={'PMIX_RANK': '3'})
        self.assertNotEqual(outcome.code, 0)
        self.assertRegex(outcome.err, r'error: .* \[WL\d+\]')


common.main()
