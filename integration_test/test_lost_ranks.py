"""A rank that is killed, or stands still, in the middle of a step ends the job with exit code 6 and its name; one that crashes does with
exit code 70 and the name of the signal. How long that takes is printed."""

import os
import pathlib
import signal
import subprocess
import time

import common


class LostRankTest(common.Case):
    def ranks_of(self, run):
        """Returns the process ids of a run's ranks, by rank."""
        found = {}
        for entry in os.listdir('/proc'):
            if not entry.isdigit():
                continue
            try:
                words, variables = (pathlib.Path('/proc', entry, name).read_bytes().split(b'\0') for name in ('cmdline', 'environ'))
            except OSError:
                continue
            environment = dict(each.split(b'=', 1) for each in variables if b'=' in each)
            if str(run).encode() in words and words[0].endswith(b'/build/train') and b'OMPI_COMM_WORLD_RANK' in environment:
                found[int(environment[b'OMPI_COMM_WORLD_RANK'])] = int(entry)
        return found

    def lose(self, rank, how, code=6):
        model = self.small_gpt()
        text = self.folder / 'text.txt'
        text.write_bytes(b'a stitch in time saves nine ' * 200)
        run = self.folder / f'run-{rank}'
        command = [common.WINDLASS, 'train', model, '-n', 2, '--data', text, '--bytes', '--steps', 10**6, '-o', run, '-q']
        with subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            rows = run / 'metrics.jsonl'
            while not (rows.exists() and rows.stat().st_size):
                self.assertIsNone(process.poll(), 'the run ended before it had begun')
                time.sleep(0.05)
            time.sleep(1)
            ranks = self.ranks_of(run)
            self.assertEqual(sorted(ranks), [0, 1])
            begin = time.monotonic()
            os.kill(ranks[rank], how)
            said = process.communicate(timeout=60)[1].decode(errors='replace')
        seconds = time.monotonic() - begin
        self.assertEqual(process.returncode, code, said)
        self.assertRegex(said, rf'rank {rank} \(process {ranks[rank]}\) ')
        if code == 70:
            self.assertIn(f'crashed with {how.name}', said)
        # No process is left behind.
        self.assertEqual(self.ranks_of(run), {})
        return seconds

    def test_killed(self):
        for rank in (0, 1):
            with self.subTest(rank):
                print(f'rank {rank} killed: the job ends after {self.lose(rank, signal.SIGKILL):.1f} s', flush=True)

    def test_crashed(self):
        print(f'rank 1 crashed: the job ends after {self.lose(1, signal.SIGSEGV, 70):.1f} s', flush=True)

    def test_standing_still(self):
        print(f'rank 1 stopped: the job ends after {self.lose(1, signal.SIGSTOP):.1f} s', flush=True)


common.main()
