"""Finds the processes that a command has started: which run, and whether all of them are gone."""

import ctypes
import os
import pathlib
import signal
import subprocess
import time
import uuid

PR_SET_CHILD_SUBREAPER = 36
SEGMENTS = pathlib.Path('/dev/shm')


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b''


def all_processes():
    return [pathlib.Path('/proc', name) for name in os.listdir('/proc') if name.isdigit()]


class Family:
    """A command and everything that it starts: all of them carry a variable of their own in their environment."""

    def __init__(self, command, env=None, **options):
        # A process that loses its parent becomes a child of this one, which can then see it end.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.mark = f'WINDLASS_TEST_FAMILY={uuid.uuid4().hex}'
        name, value = self.mark.split('=')
        self.segments = set(os.listdir(SEGMENTS))
        self.head = subprocess.Popen([str(word) for word in command], env=dict(os.environ, **(env or {}), **{name: value}), **options)

    def members(self):
        """Returns the folders in /proc of all running members, without the command itself."""
        return [each for each in all_processes() if self.mark.encode() in read(each / 'environ').split(b'\0') and int(each.name) != self.head.pid]

    def programs(self, name):
        """Returns the process ids of the members that run a program of that name."""
        return [int(each.name) for each in self.members() if pathlib.Path(os.fsdecode(read(each / 'cmdline').split(b'\0')[0])).name == name]

    def reap(self):
        for children in pathlib.Path('/proc/self/task').glob('*/children'):
            for pid in map(int, children.read_text().split()):
                if pid != self.head.pid:
                    os.waitpid(pid, os.WNOHANG)

    def zombies(self):
        """Returns the children that this process has adopted and that nobody has reaped."""
        self.reap()
        found = []
        for children in pathlib.Path('/proc/self/task').glob('*/children'):
            found += [pid for pid in map(int, children.read_text().split()) if pid != self.head.pid]
        return found

    def stale_segments(self):
        """Returns the files that came to /dev/shm since the command began and that no process has mapped."""
        fresh = set(os.listdir(SEGMENTS)) - self.segments
        mapped = b'\n'.join(read(each / 'maps') for each in all_processes()) if fresh else b''
        return {name for name in fresh if os.fsencode(SEGMENTS / name) not in mapped}

    def left(self):
        """Returns a description of what is left; empty where nothing is."""
        running = [f'{each.name}: {os.fsdecode(read(each / "cmdline").replace(chr(0).encode(), b" "))[:100]}' for each in self.members()]
        return running + [f'child {pid}' for pid in self.zombies()] + [f'/dev/shm/{name}' for name in self.stale_segments()]

    def wait_until_gone(self, seconds=60):
        """Waits for the command and everything that it has started; returns the seconds that it took and a description of what is left."""
        begin = time.monotonic()
        left = ['the command']
        while left and time.monotonic() < begin + seconds:
            time.sleep(0.05)
            left = ['the command'] if self.head.poll() is None else self.left()
        return time.monotonic() - begin, left

    def kill(self):
        """Kills all members, for tests that have failed."""
        self.head.kill()
        self.head.wait()
        while self.members() or self.zombies():
            for each in self.members():
                try:
                    os.kill(int(each.name), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)


def wait_for(condition, family, seconds=300):
    """Waits until `condition` holds; fails where the command ends before."""
    deadline = time.monotonic() + seconds
    while not condition():
        if family.head.poll() is not None:
            raise AssertionError(f'the command ended with {family.head.returncode} before it came so far')
        if time.monotonic() > deadline:
            raise AssertionError('the command did not come so far')
        time.sleep(0.02)
