"""Runs on two hosts, which are networks of this machine: started over SSH and in a job of Slurm's, they have the losses of one host; a host
that is lost ends the run, which goes on on the other; what cannot work is refused before anything is built, or before the first step."""

import json
import os
import shutil
import subprocess
import time
import unittest

import common
import two_hosts

ANY_TWO = ','.join(f'{address}:2' for address in two_hosts.TwoHosts.ADDRESSES)


@unittest.skipUnless(two_hosts.are_possible(), 'needs root, namespaces and tap devices')
class HostsTest(common.Case):
    def setUp(self):
        super().setUp()
        self.hosts = two_hosts.TwoHosts(self.folder)
        self.addCleanup(self.hosts.close)
        self.model = self.small_gpt()
        self.text = self.folder / 'text.txt'
        self.text.write_bytes(b'many hands make light work ' * 200)

    def words(self, run, *flags, ranks=ANY_TWO, steps=6):
        """Returns the words of a training run, on these hosts."""
        return [common.WINDLASS, 'train', self.model, '--hosts', ranks, '--strategy', 'zero3', '--data', self.text, '--bytes', '--steps', steps,
                '-o', self.folder / run, *flags]

    def on_host(self, path, words, **more):
        """Runs a command on host0 with that PATH."""
        return common.run(self.hosts.enter(0, *words), env=dict(PATH=path, **more))

    def rows(self, run):
        return [json.loads(line) for line in (self.folder / run / 'metrics.jsonl').read_text().splitlines()]

    def losses(self, run):
        return [row['loss'] for row in self.rows(run)]

    def check_run(self, run):
        """Compares a run on both hosts with one on this machine."""
        record = json.loads((self.folder / run / 'run.json').read_text())
        self.assertEqual([process['host'] for process in record['processes']], ['host0', 'host0', 'host1', 'host1'])
        self.succeed('train', self.model, '-n', 4, '--strategy', 'zero3', '--data', self.text, '--bytes', '--steps', 6, '-o', self.folder / 'alone')
        self.assertEqual(self.losses(run), self.losses('alone'))

    def train_by(self, path):
        done = self.on_host(path, self.words('run'))
        self.assertEqual(done.code, 0, done.err)
        self.check_run('run')

    @unittest.skipUnless(two_hosts.SSHD, 'needs sshd, of the package openssh-server')
    def test_over_ssh(self):
        self.train_by(self.hosts.start_ssh())

    def test_over_a_stand_in_for_ssh(self):
        self.train_by(self.hosts.imitate_ssh())

    def test_in_a_slurm_job(self):
        project = self.built_program()
        job = self.hosts.imitate_slurm(ranks_per_host=2)
        done = self.on_host(job.pop('PATH'), ['sh', project / 'run.slurm', '--data', self.text, '--bytes', '--steps', 6, '-o', self.folder / 'run'],
                            SLURM_SUBMIT_DIR=str(project), **job)
        self.assertEqual(done.code, 0, done.err)
        self.check_run('run')

    def built_program(self):
        """Builds a program of four ranks, on hosts of two; returns its folder."""
        return common.built_folder(self.succeed('train', self.model, '--hosts', 'localhost:4', '--cluster', 'cpu:2x2', '--strategy', 'zero3', '--data', self.text,
                                                '--bytes', '--steps', 1, '-o', self.folder / 'built', '-v'))

    def start_by_variables(self, program, run, *flags):
        """Starts a rank's process on a host, four times, in the way of torchrun."""
        variables = dict(os.environ, WORLD_SIZE='4', MASTER_ADDR=self.hosts.ADDRESSES[0], MASTER_PORT='29500')
        started = []
        for rank in range(4):
            words = [program / 'build' / 'train', '--data', self.text, '--bytes', '-o', self.folder / run, *map(str, flags)]
            started.append(subprocess.Popen(self.hosts.enter(rank // 2, *words), env=dict(variables, RANK=str(rank)), stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, text=True))
            self.addCleanup(started[-1].kill)
        return started

    def test_by_variables(self):
        for process in self.start_by_variables(self.built_program(), 'run', '--steps', 6):
            said = process.communicate(timeout=120)[1]
            self.assertEqual(process.returncode, 0, said)
        self.check_run('run')

    def test_cut_cable_of_a_run_by_variables(self):
        ranks = self.start_by_variables(self.built_program(), 'run', '--steps', 10**6, '-q', '--checkpoint-every', 5)
        while not (self.folder / 'run' / 'checkpoints' / 'step-000010').exists():
            self.assertIsNone(ranks[0].poll(), 'the run ended before it had begun')
            time.sleep(0.05)
        begin = time.monotonic()
        self.hosts.cut()
        for process in ranks:
            said = process.communicate(timeout=90)[1]
            self.assertEqual(process.returncode, 6, said)
            self.assertIn('[WL0902]', said)
        print(f'cable cut: all ranks have ended after {time.monotonic() - begin:.1f} s', flush=True)

    def lose(self, how):
        """Loses host1 in the middle of a run; returns what the run says then."""
        path = self.hosts.imitate_ssh()
        run = self.folder / 'lost'
        words = self.hosts.enter(0, *self.words('lost', '--checkpoint-every', 5, '-q', steps=10**6))
        with subprocess.Popen(words, env=dict(os.environ, PATH=path), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            while not (run / 'checkpoints' / 'step-000010').exists():
                self.assertIsNone(process.poll(), 'the run ended before it had begun')
                time.sleep(0.05)
            begin = time.monotonic()
            how()
            said = process.communicate(timeout=60)[1].decode(errors='replace')
        print(f'host1 lost ({how.__name__}): the run ends after {time.monotonic() - begin:.1f} s', flush=True)
        self.assertEqual(process.returncode, 6, said)
        self.assertIn('is gone, or the network to it; continue from the last checkpoint with --resume', said)
        self.assertIn('[WL0902]', said)
        return said

    def go_on(self):
        """Continues the lost run on the host that is left, with two ranks."""
        before = self.losses('lost')
        begin = max(int(each.name[-6:]) for each in (self.folder / 'lost' / 'checkpoints').iterdir())
        self.assertEqual(common.run(self.hosts.enter(0, common.WINDLASS, 'train', self.model, '-n', 2, '--micro-batches', 2, '--resume', '--data',
                                                     self.text, '--bytes', '--steps', begin + 2, '-o', self.folder / 'lost')).code, 0)
        after = self.losses('lost')
        self.assertEqual(len(after), begin + 2)
        self.assertEqual(after[:begin], before[:begin])

    def test_cut_cable(self):
        said = self.lose(self.hosts.cut)
        self.assertIn("the host '10.77.0.2' is gone", said)
        self.go_on()

    def test_crashed_host(self):
        def crash():
            self.hosts.kill_all_of(1)
        self.lose(crash)

    def test_folders_of_their_own(self):
        """A host where the run's folder is another one."""
        own = self.folder / 'own'
        own.mkdir()
        self.hosts.run(1, 'mount', '-t', 'tmpfs', 'none', own)
        path = self.hosts.imitate_ssh()
        begin = time.monotonic()
        done = self.on_host(path, self.words('own/run'))
        self.assertLess(time.monotonic() - begin, 120)
        self.assertEqual(done.code, 1, done.err)
        self.assertIn(f"-o '{own}/run' on the host 'host1' is not the folder that rank 0 writes; name one that all hosts share", done.err)
        self.assertFalse((own / 'run' / 'metrics.jsonl').read_text())
        # The program itself lies in a folder of this host.
        caches = self.folder / 'caches'
        caches.mkdir()
        self.hosts.run(1, 'mount', '-t', 'tmpfs', 'none', caches)
        done = self.on_host(path, self.words('other'), XDG_CACHE_HOME=str(caches))
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("the host '10.77.0.2' of --hosts does not have the program", done.err)

    def test_refused(self):
        """What cannot be started is said before anything is built."""
        path = self.hosts.imitate_ssh()
        for ranks, flags, expected in (
                ('10.77.0.1:2,10.77.0.9:2', [], "no command can be run on the host '10.77.0.9' of --hosts: ssh: connect to host 10.77.0.9 port 22: "
                                                "No route to host; 'ssh 10.77.0.9 true' must succeed without a question"),
                (ANY_TWO, ['-n', 2], '-n is 2 but --hosts starts 4 ranks; give one of them'),
                (ANY_TWO, ['--cluster', 'cpu:2'], '--hosts starts 4 ranks, but the plan is for 2; let them agree'),
                (ANY_TWO, ['--communicator', 'local'], '--hosts is for several ranks that are processes; leave --communicator local out'),
                ('10.77.0.2:1', [], '--hosts is for several ranks that are processes; train one rank on its host itself'),
                ('10.77.0.1:2,10.77.0.2:1', [], "--hosts has 2 ranks on '10.77.0.1' and 1 on '10.77.0.2'; describe hosts that differ"),
                ('a;reboot', [], "--hosts: 'a;reboot' is no name or IPv4 address of a host"),
                ('./none', [], "--hosts: cannot read the host file './none'")):
            with self.subTest(ranks):
                # A strategy for more ranks than one would be refused first.
                words = [word for word in self.words('refused', *flags, ranks=ranks) if word not in ('--strategy', 'zero3')]
                done = self.on_host(path, words)
                self.assertIn(expected, done.err)
                self.assertEqual(done.code, 1)
                self.assertNotIn('compiling', done.err)
        # A host with another Open MPI.
        other = self.folder / 'mpirun'
        other.write_text('#!/bin/sh\necho "mpirun (Open MPI) 3.1.2"\n')
        other.chmod(0o755)
        self.hosts.run(1, 'mount', '--bind', other, os.path.realpath(shutil.which('mpirun')))
        done = self.on_host(path, self.words('refused'))
        self.assertRegex(done.err, "the host '10.77.0.2' of --hosts answers 'mpirun --version' by 'mpirun .Open MPI. 3.1.2', "
                                   "where this machine says 'mpirun .Open MPI. ")


common.main()
