"""`windlass train` ended at random moments of planning, building, training and saving, in the ways in which people and systems end it:
nothing runs on, no shared memory is left, the locks are free, the newest checkpoint is valid, and the next run succeeds.

    test_random_kills.py [--draws N] [--seed S] [--seconds S]
"""

import collections
import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import common
import processes

PHASES = ('planning', 'building', 'training', 'saving')
WAYS = ('SIGKILL', 'SIGTERM', 'SIGHUP', 'SIGINT', 'SIGINT twice', 'SIGINT thrice', 'SIGSTOP and SIGKILL', 'SIGSTOP and SIGINT thrice')
STEPS_MORE = 2


def option(name, otherwise):
    if name not in sys.argv:
        return otherwise
    at = sys.argv.index(name)
    value = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    return value


draws, seed, seconds = option('--draws', len(WAYS)), option('--seed', 0), option('--seconds', 10**9)


class RandomKillsTest(common.Case):
    def setUp(self):
        super().setUp()
        self.model = self.small_gpt(tokens=8, width=64)
        self.data = self.folder / 'text.txt'
        self.data.write_bytes(b'a stitch in time saves nine ' * 200)
        # Programs of this test go away with it, and are built again as often as a build is to be interrupted.
        self.env = {'XDG_CACHE_HOME': str(self.folder / 'cache')}
        self.source = random.Random(seed)

    def words(self, run, ranks, steps):
        return ['train', self.model, '-n', ranks, '--data', self.data, '--bytes', '--micro-batches', 2, '--threads', 1, '--steps', steps,
                '--checkpoint-every', 1, '-o', run]

    def forget_programs(self):
        for entry in (self.folder / 'cache' / 'windlass').glob('program-*'):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

    def wait_for_phase(self, phase, family, run):
        """Waits for a moment of the phase; returns false where the command ended before."""
        checkpoints = run / 'checkpoints'

        def is_saving():
            return checkpoints.is_dir() and any(name.endswith('.partial') for name in os.listdir(checkpoints))

        def is_there():
            return {'building': lambda: family.programs('cmake'), 'training': lambda: checkpoints.is_dir(), 'saving': is_saving}[phase]()

        begin = time.monotonic()
        if phase == 'planning':
            time.sleep(self.source.random() * self.planning_seconds)
            return True
        while not is_there():
            if family.head.poll() is not None or time.monotonic() > begin + 300:
                return False
            time.sleep(0 if phase == 'saving' else 0.02)
        if phase != 'saving':
            time.sleep(self.source.random() * (self.building_seconds if phase == 'building' else 2))
        return family.head.poll() is None

    def end(self, way, family):
        if way.startswith('SIGSTOP'):
            members = family.members()
            if members:
                with contextlib.suppress(ProcessLookupError):  # it may have ended since it was listed
                    os.kill(int(self.source.choice(members).name), signal.SIGSTOP)
                time.sleep(self.source.random())
        name = way.split(' and ')[-1]
        times = {'twice': 2, 'thrice': 3}.get(name.split(' ')[-1], 1)
        for _ in range(times):
            family.head.send_signal(signal.Signals[name.split(' ')[0]])
            time.sleep(self.source.random() * 0.5 if times > 1 else 0)

    def check_locks(self, run):
        for path in [run / '.lock', *(self.folder / 'cache' / 'windlass').glob('*.lock')]:
            if path.exists():
                with open(path) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def check_next_run(self, run, ranks):
        step = 0
        if any((run / 'checkpoints').glob('step-*')):
            # Verifies the hashes of all files.
            shown = self.succeed('checkpoint', 'inspect', run, '--json')
            self.assertNotIn('skipping', shown.err)
            step = json.loads(shown.out)['step']
            newest = max((run / 'checkpoints').glob('step-*'))
            self.assertEqual(newest.name, f'step-{step:06d}')
        outcome = self.succeed(*self.words(run, ranks, step + STEPS_MORE), *(['--resume'] if step else []), env=self.env)
        self.assertIn(f'to {step + STEPS_MORE}\n', outcome.out)
        self.assertNotIn('skipping', outcome.err)
        self.assertNotIn('damaged', outcome.err)

    def measure(self):
        """Measures the seconds that planning and a build of the program take here."""
        for ranks in (1, 2):
            self.succeed(*self.words(self.folder / f'first-{ranks}', ranks, 1), env=self.env)
        self.planning_seconds = self.succeed('plan', self.model, '--cluster', 'cpu:2', '--micro-batches', 2).seconds
        self.forget_programs()
        self.building_seconds = self.succeed(*self.words(self.folder / 'third', 1, 1), env=self.env).seconds / 2

    def test_random_kills(self):
        self.measure()
        done, longest, begin = collections.Counter(), 0, time.monotonic()
        cells = [(phase, way, ranks) for phase in PHASES for way in WAYS for ranks in (1, 2)]
        self.source.shuffle(cells)
        number = 0
        while sum(done.values()) < draws and time.monotonic() < begin + seconds:
            phase, way, ranks = cells[number % len(cells)]
            number += 1
            if phase == 'building':
                self.forget_programs()
            run = self.folder / 'run'
            shutil.rmtree(run, ignore_errors=True)
            family = processes.Family([common.WINDLASS, *self.words(run, ranks, 10**8)], env=self.env, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                where = f'draw {number}: {way} while {phase}, {ranks} ranks'
                if not self.wait_for_phase(phase, family, run):
                    self.assertNotIn(phase, ('training', 'saving'), where)
                    continue
                self.end(way, family)
                took, left = family.wait_until_gone()
                self.assertEqual(left, [], f'{where}: left after {took:.0f} s')
            finally:
                family.kill()
            self.check_locks(run)
            self.check_next_run(run, ranks)
            done[phase] += 1
            longest = max(longest, took)
            print(f'{where}: exit code {family.head.returncode}, gone after {took:.1f} s', flush=True)
        print(f'{sum(done.values())} draws of {draws} ({dict(done)}), all gone after {longest:.1f} s at most', flush=True)


common.main()
