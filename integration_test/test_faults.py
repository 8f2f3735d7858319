"""What a run of two ranks does when something goes wrong at a certain place: how it ends, what it says, which checkpoint is left. Whatever that
is, what is left is whole, and a run that goes on from there ends with the bytes of one to which nothing happened.

    test_faults.py            compares with the table of docs/faults.md
    test_faults.py --write    writes the table
"""

import dataclasses
import errno
import os
import re
import shutil
import signal
import sys
import time
import unittest

import common

PAGE = common.ROOT / 'docs' / 'faults.md'
BEGIN, END = '<!-- made by integration_test/test_faults.py --write -->\n', '<!-- end of the table -->\n'
STEPS, EVERY = 8, 2
WRITES = '--write' in sys.argv


@dataclasses.dataclass
class Fault:
    when: str
    what: str
    # See cause_fault.c; or flags of the run.
    cause: str = ''
    flags: tuple = ()
    continues: bool = True


SAVE, STEP, START = 'saving step 4', 'between two steps', 'starting'
DISK, ON_DISK = 'updating state on the disk', ('--offload', 'disk')
BESIDE, ASYNC = 'saving step 4 with `--async-save`', ('--async-save',)
FAULTS = [
    Fault(START, 'rank 1 has no memory left', 'open text.txt 1 memory 400 1'),
    Fault(START, 'the run\'s folder cannot be written', f'open run/.run.json 1 fail {errno.EROFS} 0'),
    Fault(START, 'rank 1 is killed', f'open params.safetensors 1 signal {signal.SIGKILL} 1'),
    Fault(SAVE, 'the disk is full', f'write .step-000004 2 fail {errno.ENOSPC} 1'),
    Fault(SAVE, 'the disk takes half of a write', 'write .step-000004 2 half 0 1'),
    Fault(SAVE, 'a file cannot be made durable', f'sync .step-000004 1 fail {errno.EIO} 0'),
    Fault(SAVE, 'the checkpoint cannot get its name', f'rename checkpoints/step-000004 1 fail {errno.EIO} 0'),
    Fault(SAVE, 'the file system has become read-only', f'open .step-000004 1 fail {errno.EROFS} 1'),
    Fault(SAVE, 'rank 1 is killed', f'write .step-000004 2 signal {signal.SIGKILL} 1'),
    Fault(SAVE, 'rank 0 stands still', f'write .step-000004 2 signal {signal.SIGSTOP} 0'),
    Fault(SAVE, 'rank 1 crashes', f'write .step-000004 2 signal {signal.SIGSEGV} 1'),
    Fault(SAVE, 'the run is asked to end', f'write .step-000004 2 signal {signal.SIGUSR1} 0'),
    Fault(BESIDE, 'the disk is full', f'write .step-000004 2 fail {errno.ENOSPC} 1', ASYNC),
    Fault(BESIDE, 'the checkpoint cannot get its name', f'rename checkpoints/step-000004 1 fail {errno.EIO} 0', ASYNC),
    Fault(BESIDE, 'rank 1 is killed', f'write .step-000004 2 signal {signal.SIGKILL} 1', ASYNC),
    Fault(BESIDE, 'a rank takes a second longer to write', 'sync .step-000004 1 wait 1000 1', ASYNC),
    Fault(STEP, 'rank 0 is killed', f'write metrics.jsonl 5 signal {signal.SIGKILL} 0'),
    Fault(STEP, 'rank 1 takes a second longer, each time', 'write logs/ 4 wait 1000 1'),
    Fault(STEP, 'the disk is full for the metrics', f'write metrics.jsonl 5 fail {errno.ENOSPC} 0'),
    Fault(STEP, 'the disk is full for the log', f'write logs/ 6 fail {errno.ENOSPC} 1'),
    Fault(STEP, 'the clock is set back by a day', 'write metrics.jsonl 5 clock -86400 0'),
    Fault(START, 'the disk has no room for the state', f'reserve .windlass-disk 1 fail {errno.ENOSPC} 1', ON_DISK),
    Fault(START, 'no file can be made on the disk', f'open .windlass-disk 1 fail {errno.EROFS} 0', ON_DISK),
    Fault(DISK, 'the disk takes half of a write', 'pwrite .windlass-disk 300 half 0 1', ON_DISK),
    Fault(DISK, 'the disk gives half of a read', 'pread .windlass-disk 300 half 0 1', ON_DISK),
    Fault(DISK, 'the disk is gone', f'pread .windlass-disk 300 fail {errno.EIO} 1', ON_DISK),
    Fault(DISK, 'the file is cut short', 'pread .windlass-disk 300 end 0 0', ON_DISK),
    Fault(DISK, 'a write fails', f'pwrite .windlass-disk 300 fail {errno.ENOSPC} 0', ON_DISK),
    Fault(DISK, 'rank 1 is killed', f'pwrite .windlass-disk 300 signal {signal.SIGKILL} 1', ON_DISK),
    Fault('computing step 2', 'the loss is not a number', flags=('--lr', '1e30'), continues=False),
    Fault('computing step 2', 'the same, with `--on-nan skip`', flags=('--lr', '1e30', '--on-nan', 'skip'), continues=False),
]


def last_words(text):
    """Returns the line that says why a run ended, without what differs from run to run."""
    lines = [line for line in text.splitlines() if re.search(r'error: |^interrupted|ends the job: ', line)]
    errors = [line for line in lines if 'error: ' in line]
    line = (errors or lines or [''])[0].removeprefix('windlass: ')
    return re.sub(r'\(process \d+\)', '(process N)', line)


@unittest.skipIf(os.environ.get('WINDLASS_SANITIZED') == 'ON', 'sanitizers replace the calls themselves')
class FaultsTest(common.Case):
    def setUp(self):
        super().setUp()
        self.library = common.preloaded('cause_fault', self.folder)
        self.model = self.small_gpt()
        self.text = self.folder / 'text.txt'
        self.text.write_bytes(b'a stitch in time saves nine ' * 200)

    def train(self, run, *flags, **options):
        return common.windlass('train', self.model, '-n', 2, '--strategy', 'zero1', '--data', self.text, '--bytes', '--steps', STEPS,
                               '--checkpoint-every', EVERY, '-o', run, '-q', *flags, **options)

    def bytes_of(self, run):
        """Returns the parameters of a run's newest checkpoint. Its hashes are verified."""
        exported = self.folder / 'exported.safetensors'
        self.succeed('checkpoint', 'export', run, '-o', exported)
        return exported.read_bytes()

    def row_of(self, fault):
        """Causes a fault; returns a row of the table."""
        run = self.folder / 'fault' / 'run'
        begin = time.monotonic()
        done = self.train(run, *fault.flags, env=dict(LD_PRELOAD=str(self.library), CAUSE_FAULT=fault.cause) if fault.cause else {}, timeout=60)
        seconds = time.monotonic() - begin
        saved = sorted(each.name for each in (run / 'checkpoints').glob('step-*'))
        print(f'{fault.when}: {fault.what}: {seconds:.1f} s, exit code {done.code}', flush=True)
        if saved:
            self.succeed('checkpoint', 'inspect', run)
        if fault.continues:
            resumed = self.train(run, *(['--resume'] if saved else []))
            self.assertEqual(resumed.code, 0, resumed.err)
            self.assertEqual(self.bytes_of(run), self.whole)
        said = last_words(done.err).replace(str(run), 'RUN').replace('|', '\\|')
        return f'| {fault.when} | {fault.what} | {done.code} | {said} | {int(saved[-1][5:]) if saved else "none"} |'

    def test_table(self):
        whole = self.folder / 'whole'
        self.assertEqual(self.train(whole).code, 0)
        self.whole = self.bytes_of(whole)
        rows = []
        for fault in FAULTS:
            with self.subTest(f'{fault.when}: {fault.what}'):
                rows.append(self.row_of(fault))
                shutil.rmtree(self.folder / 'fault')
        table = '\n'.join(['| while | what happens | exit code | what is said | newest checkpoint |', '|---|---|---|---|---|', *rows]) + '\n'
        text = PAGE.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        if WRITES:
            PAGE.write_text(text[:begin] + '\n' + table + '\n' + text[end:])
        else:
            self.assertEqual(text[begin:end].strip().splitlines(), table.strip().splitlines())

    def test_steps_go_on_during_an_asynchronous_save(self):
        run = self.folder / 'run'
        done = self.train(run, *ASYNC, env=dict(LD_PRELOAD=str(self.library), CAUSE_FAULT='sync .step-000004 1 wait 1000 0'))
        self.assertEqual(done.code, 0, done.err)
        events = re.findall(r'(?m)(step \d+|saved \S+step-\d+)', (run / 'logs' / 'rank_00000.log').read_text())
        self.assertEqual([re.sub(r'\S+step-0*', '', event) for event in events if event.startswith('saved') or event in ('step 5', 'step 6')],
                         ['saved 2', 'step 5', 'step 6', 'saved 4', 'saved 6', 'saved 8'])

    def test_newest_checkpoint_is_damaged(self):
        """A run goes on from the one before, and says why."""
        run = self.folder / 'run'
        self.assertEqual(self.train(run).code, 0)
        whole = self.bytes_of(run)
        damaged = run / 'checkpoints' / f'step-{STEPS:06}' / 'parameters-00000.safetensors'
        content = bytearray(damaged.read_bytes())
        content[-1] ^= 1
        damaged.write_bytes(content)
        resumed = common.windlass('train', self.model, '-n', 2, '--strategy', 'zero1', '--data', self.text, '--bytes', '--steps', STEPS,
                                  '--checkpoint-every', EVERY, '-o', run, '--resume')
        self.assertEqual(resumed.code, 0, resumed.err)
        self.assertIn(f"resuming from '{run}/checkpoints/step-{STEPS - EVERY:06}'", resumed.err)
        self.assertEqual(self.bytes_of(run), whole)


if WRITES:
    sys.argv.remove('--write')
common.main()
