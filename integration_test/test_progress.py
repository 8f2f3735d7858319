"""What a person sees of `windlass train`: the build's phases, the line of progress and the summary, and nothing of the launcher's.

The files in `shown` hold what is printed, with `N` for a number, `T` for a duration. A line that begins with `*` may come any number of times,
because how often a run shows itself depends on how long it takes."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import time

import common

# The lines that `train` prints about the model before it builds.
TRAINS = r'windlass: 20 parameters with 21,472 elements train, [^\n]*\n'
SHOWN = pathlib.Path(__file__).resolve().parent / 'shown'
STEPS = 3000
RENEWED = '\r\x1b[K'


def normalized(text, names=()):
    """Returns the text without parts that differ from run to run; `names` are replaced first, as (text, by)."""
    for name, by in names:
        text = text.replace(str(name), by)
    text = re.sub(r'\d+ (d|h|min|s)( \d+ (h|min|s))? left', 'T left', text)
    text = re.sub(r'(?<=loss)( +)[-\d.]+( -> [-\d.]+)?', lambda found: found[1] + ('N -> N' if found[2] else 'N'), text)
    text = re.sub(r'[\d.]+[kM]? tokens/s', 'N tokens/s', text)
    text = re.sub(r'(?<=tokens/s)( +)[\d.]+[kM]?', r'\1N', text)
    text = re.sub(r'[\d.]+ ([KMG]i)?B\b', 'N MiB', text)
    text = re.sub(r': (\d+ of \d+|\d+ %)$', ': N of N', text, flags=re.M)
    return re.sub(rf'step (?!1/|{STEPS}/)\d+/{STEPS}', f'step N/{STEPS}', text)


class ProgressTest(common.Case):
    @classmethod
    def setUpClass(cls):
        case = cls('setUp')
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.shared = case.folder
        cls.model = case.small_gpt('model.onnx')
        cls.text = cls.shared / 'corpus.txt'
        cls.text.write_bytes(bytes(range(32, 127)) * 60)
        # Most tests find the program built; one has a cache of its own, with no program in it.
        case.succeed(*cls.words('first', 1))
        cls.cache = cls.shared / 'cache'

    @classmethod
    def words(cls, run, steps=STEPS):
        return ['train', cls.model, '-n', 2, '--micro-batches', 2, '--data', cls.text, '--bytes', '--steps', steps, '--threads', 1, '-o', cls.shared / run]

    def check(self, said, expected, names):
        """Checks that the lines of `said` are those of the file, whose starred lines may come any number of times; returns how often each came."""
        lines, counts = normalized(said, names).splitlines(), []
        for wanted in (SHOWN / expected).read_text().splitlines():
            is_starred, wanted = wanted.startswith('* '), wanted.removeprefix('* ')
            counts.append(0)
            while lines and lines[0] == wanted and (is_starred or not counts[-1]):
                lines.pop(0)
                counts[-1] += 1
            self.assertTrue(is_starred or counts[-1], f'no line {wanted!r} where it should be; left are {lines[:3]}, in\n{said}')
        self.assertEqual(lines, [], said)
        return counts

    def step_seconds(self, run):
        return sum(json.loads(row)['seconds'] for row in (self.shared / run / 'metrics.jsonl').read_text().splitlines())

    def test_piped(self):
        begin = time.monotonic()
        outcome = self.succeed(*self.words('piped'), env={'XDG_CACHE_HOME': str(self.cache)}, timeout=1800)
        seconds = time.monotonic() - begin
        names = [(self.shared / 'piped', 'RUN')]
        self.check(outcome.out, 'summary.txt', names)
        self.check(outcome.err, 'piped.txt', names)
        between = len(re.findall(rf'^step (?!1/|{STEPS}/)\d+/', outcome.err, re.M))
        # At least 5 s lie between two lines, the last one apart.
        self.assertLessEqual(5 * between, seconds)
        if self.step_seconds('piped') > 6:
            self.assertGreater(between, 0)

    def test_terminal(self):
        master, slave = pty.openpty()
        command = [str(word) for word in (common.WINDLASS, *self.words('terminal'))]
        with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as process:
            os.close(slave)
            said = b''
            while True:
                try:
                    said += os.read(master, 4096)
                except OSError: # the last writer has closed it
                    break
        os.close(master)
        said = said.decode().replace('\r\n', '\n')
        self.assertEqual(process.returncode, 0, said)
        names = [(self.shared / 'terminal', 'RUN')]
        # The line that renews itself, then the lines that stay.
        first, said = said.split('\n', 1)
        self.assertRegex(first + '\n', rf'\A{TRAINS}\Z')
        renewed = [each for line in said.split('\n') for each in line.split(RENEWED)[1:-1] if each]
        self.check('\n'.join(renewed), 'renewed.txt', names)
        self.check('\n'.join(line.split(RENEWED)[-1] for line in said.split('\n')), 'summary.txt', names)

    def test_quiet_and_json(self):
        outcome = self.succeed(*self.words('quiet', 20), '-q')
        self.assertEqual((outcome.out, outcome.err), ('', ''))
        outcome = self.succeed(*self.words('json', 20), '--json', '--progress', 'off')
        self.assertEqual(json.loads(outcome.out)['last_step'], 20)
        self.assertRegex(outcome.err, rf'\A{TRAINS}\Z')

    def test_a_run_under_mpirun_alone(self):
        """A run under mpirun prints the same lines without `windlass train`."""
        built = common.built_folder(self.succeed(*self.words('again', 1), '-v'))
        done = common.run([built / 'run.sh', '--data', self.text, '--bytes', '--steps', 20, '--threads', 1, '-o', self.shared / 'own'])
        self.assertEqual(done.code, 0, done.err)
        self.assertRegex(done.err, r'\Astep 1/20  loss [\d.]+\n(?:step .*left\n)*step 20/20  loss [\d.]+  [\d.]+[kM]? tokens/s\n\Z')


class LauncherTest(ProgressTest):
    """The output of mpirun about a failed job does not come between."""
    test_piped = test_terminal = test_quiet_and_json = test_a_run_under_mpirun_alone = None

    def test_a_rank_that_stops(self):
        outcome = common.windlass(*self.words('nan', 50), '--lr', '1e30')
        self.assertEqual(outcome.code, 6, outcome.err)
        self.assertRegex(outcome.err, rf'\A{TRAINS}step 1/50  loss [\d.]+\nerror: step \d+ gave loss [^\n]*\[WL\d{{4}}\]\n\Z')

    def test_a_rank_that_finds_bad_input(self):
        outcome = common.windlass(*self.words('bad', 5), '--eval-data', self.shared / 'nothing.txt')
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertRegex(outcome.err, rf'\A{TRAINS}[^\n]*nothing.txt[^\n]*\[WL\d{{4}}\]\n\Z')

    def test_interrupted(self):
        command = [str(word) for word in (common.WINDLASS, *self.words('interrupted', 10**6), '-q')]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.addCleanup(process.kill)
            rows = self.shared / 'interrupted' / 'metrics.jsonl'
            while not (rows.exists() and rows.stat().st_size):
                self.assertIsNone(process.poll(), 'the run ended before it had begun')
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 7, err)
        self.assertEqual(out, b'')
        self.assertRegex(err.decode(), r'\Ainterrupted after step \d+; saved [^\n]*\[WL\d{4}\]\n\Z')

    def test_a_launcher_that_fails_is_heard(self):
        rule = '-' * 74
        launcher = self.folder / 'mpirun'
        # Asked for its version, it is the real one: programs for another MPI would be built.
        launcher.write_text(f'#!/bin/sh\n[ "$1" != --version ] || exec {shutil.which("mpirun")} --version\n'
                            f'printf "%s\\n" {rule} "There are not enough" "slots available." {rule} >&2\nexit 1\n')
        launcher.chmod(0o755)
        outcome = common.windlass(*self.words('slots', 5), env={'PATH': f'{self.folder}:{os.environ["PATH"]}'})
        self.assertRegex(outcome.err, rf'\A{TRAINS}windlass: error: mpirun ended with exit code 1 before a rank said anything: '
                                      r'There are not enough slots available\. \[WL0504\]\n\Z')


common.main()
