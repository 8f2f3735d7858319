"""Two hosts on one machine, for tests of what runs on several: each has its own network, name and mounts, and a cable of our own joins
them, which can be cut. The way from one into the other is SSH, or a stand-in for Slurm's `srun` that starts what the real one is asked to
start. Needs root and a kernel with tap devices."""

import ctypes
import fcntl
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
MTU = 16000
SSHD = shutil.which('sshd', path='/usr/sbin:/usr/local/sbin')

# Both look up a host by the names that are written into them.
SSH = '''#!{python}
import os, sys
words = sys.argv[1:]
while words[0].startswith('-'):
    del words[:2 if words[0] == '-o' else 1]
hosts = {hosts}
if words[0] not in hosts:
    sys.exit('ssh: connect to host ' + words[0] + ' port 22: No route to host')
os.execvp('nsenter', ['nsenter', '-t', str(hosts[words[0]]), '--net', '--uts', '--mount', 'sh', '-c', ' '.join(words[1:])])
'''
SRUN = '''#!{python}
import os, subprocess, sys
hosts = {hosts}
words, nodes = sys.argv[1:], list(hosts)
while words[0].startswith('-'):
    name, _, value = words.pop(0).partition('=')
    if name == '--nodelist':
        nodes = value.split(',')
started = [subprocess.Popen(['nsenter', '-t', str(hosts[node]), '--net', '--uts', '--mount', *words],
                            env=dict(os.environ, SLURM_NODEID=str(number), SLURM_PROCID=str(number), SLURM_LOCALID='0'))
           for number, node in enumerate(nodes)]
sys.exit(max(each.wait() for each in started))
'''
SSHD_SETTINGS = '''ListenAddress {address}
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
StrictModes no
PidFile none
'''


def are_possible():
    return os.geteuid() == 0 and os.path.exists('/dev/net/tun') and not subprocess.run(
        ['unshare', '--net', '--uts', '--mount', 'true'], stderr=subprocess.DEVNULL).returncode


def open_tap(process):
    """Makes the device `tap0` in the network of a process; returns the descriptor of its frames."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f'/proc/{process}/ns/net') as network:
        if libc.setns(network.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'cannot enter the network of a host')
    tap = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack('16sH22x', b'tap0', IFF_TAP | IFF_NO_PI))
    return tap


def carry_frames(processes):
    """Is the cable: hands each frame of one host to the other, until it is killed."""
    taps = [open_tap(process) for process in processes]
    print('ready', flush=True)
    while True:
        for tap in select.select(taps, [], [])[0]:
            try:
                os.write(taps[1 - taps.index(tap)], os.read(tap, MTU + 64))
            except OSError:
                pass  # the other device is full, or not up yet: TCP sends the frame again


class TwoHosts:
    """The hosts `host0` and `host1`, at 10.77.0.1 and 10.77.0.2."""

    ADDRESSES = ('10.77.0.1', '10.77.0.2')

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.daemons = []
        self.hosts = [subprocess.Popen(['unshare', '--net', '--uts', '--mount', 'sh', '-c', f'hostname host{i} && echo ready && exec sleep infinity'],
                                       stdout=subprocess.PIPE) for i in range(2)]
        for host in self.hosts:
            host.stdout.readline()
        self.cable = subprocess.Popen([sys.executable, '-B', __file__, *(str(host.pid) for host in self.hosts)], stdout=subprocess.PIPE)
        self.cable.stdout.readline()
        for i, address in enumerate(self.ADDRESSES):
            self.run(i, 'sh', '-c', f'ip link set lo up && ip addr add {address}/24 dev tap0 && ip link set tap0 mtu {MTU} up')

    def enter(self, host, *words):
        """Returns the words of a command that runs `words` on a host."""
        return ['nsenter', '-t', str(self.hosts[host].pid), '--net', '--uts', '--mount', *map(str, words)]

    def run(self, host, *words):
        subprocess.run(self.enter(host, *words), check=True)

    def add_program(self, name, text):
        """Writes a program; returns PATH with its folder first."""
        folder = self.folder / f'bin-{name}'
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
        return f'{folder}:{os.environ["PATH"]}'

    def imitate_ssh(self):
        """Returns PATH with an `ssh` that enters the hosts by their addresses, without a daemon there."""
        return self.add_program('ssh', SSH.format(python=sys.executable, hosts=dict(zip(self.ADDRESSES, (host.pid for host in self.hosts)))))

    def start_ssh(self):
        """Starts an SSH daemon on each host; returns PATH with an `ssh` that has the key."""
        key = self.folder / 'key'
        subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key], check=True)
        pathlib.Path('/run/sshd').mkdir(exist_ok=True)
        for i, address in enumerate(self.ADDRESSES):
            settings = self.folder / f'sshd{i}'
            settings.write_text(SSHD_SETTINGS.format(address=address, folder=self.folder))
            self.daemons.append(subprocess.Popen(self.enter(i, SSHD, '-D', '-e', '-f', settings), stderr=subprocess.DEVNULL))
        path = self.add_program('ssh', f'#!/bin/sh\nexec {shutil.which("ssh")} -i {key} -o StrictHostKeyChecking=no '
                                       f'-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "$@"\n')
        words = ['env', f'PATH={path}', 'ssh', '-o', 'BatchMode=yes', self.ADDRESSES[1], 'true']
        deadline = time.monotonic() + 20
        while subprocess.run(self.enter(0, *words), stderr=subprocess.DEVNULL).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError('no SSH daemon answers')
            time.sleep(0.1)
        return path

    def imitate_slurm(self, ranks_per_host):
        """Returns the environment of a job that Slurm has given both hosts."""
        path = self.add_program('srun', SRUN.format(python=sys.executable, hosts={f'host{i}': host.pid for i, host in enumerate(self.hosts)}))
        return dict(PATH=path, SLURM_JOBID='7', SLURM_JOB_ID='7', SLURM_NODELIST='host[0-1]', SLURM_JOB_NODELIST='host[0-1]', SLURM_NNODES='2',
                    SLURM_JOB_NUM_NODES='2', SLURM_TASKS_PER_NODE=f'{ranks_per_host}(x2)', SLURM_NTASKS=str(2 * ranks_per_host))

    def cut(self):
        """From here on the hosts do not reach each other, and neither is told."""
        self.cable.kill()

    def kill_all_of(self, host):
        network = os.readlink(f'/proc/{self.hosts[host].pid}/ns/net')
        for entry in os.listdir('/proc'):
            try:
                if entry.isdigit() and int(entry) != self.cable.pid and os.readlink(f'/proc/{entry}/ns/net') == network:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:
                pass  # it has ended

    def close(self):
        for i, host in enumerate(self.hosts):
            if host.poll() is None:
                self.kill_all_of(i)
        self.cable.kill()
        for process in (*self.daemons, *self.hosts, self.cable):
            process.wait()
        for process in (*self.hosts, self.cable):
            process.stdout.close()


if __name__ == '__main__':
    carry_frames(sys.argv[1:])
