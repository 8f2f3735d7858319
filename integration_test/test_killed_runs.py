"""`kill -9` at random moments, half of them while a checkpoint is written: the newest valid checkpoint loads and continues to the
same bytes as a run that nobody killed, and nothing half-written is taken.

    test_killed_runs.py [--kills N] [--disk]

With --disk the optimizer's state is on the disk, from where it is read and written in each step.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import common
from windlass_models import files, mlp

STEPS = 12
kills = 200
if '--kills' in sys.argv:
    at = sys.argv.index('--kills')
    kills = int(sys.argv[at + 1])
    del sys.argv[at:at + 2]
offload = ['--offload', 'disk'] if '--disk' in sys.argv else []
if offload:
    sys.argv.remove('--disk')


class KilledRunTest(common.Case):
    def start(self, run, *flags):
        return subprocess.Popen([*self.command, '-o', str(run), *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def held(self, run):
        """Returns the bytes of the last step's checkpoint without its manifest, which holds no values."""
        folder = run / 'checkpoints' / f'step-{STEPS:06d}'
        return {each.name: each.read_bytes() for each in folder.iterdir() if each.suffix == '.safetensors'}

    def partial(self, run):
        folder = run / 'checkpoints'
        return folder.is_dir() and any(name.endswith('.partial') for name in os.listdir(folder))

    def test_kills(self):
        model = self.folder / 'model.onnx'
        files.save(mlp.build(mlp.MlpConfig(sizes=(64, 256, 256, 10), batch=8)), model)
        data = self.batches(model, STEPS)
        whole = self.folder / 'whole'
        disk = self.folder / 'disk'
        disk.mkdir()
        outcome = self.succeed('train', model, '--data', data, '--steps', STEPS, '--checkpoint-every', 1, '--threads', 1, '-o', whole, '-v', '--disk', disk, *offload)
        program = str(common.built_folder(outcome) / 'build' / 'train')
        self.command = [program, '--data', str(data), '--steps', str(STEPS), '--checkpoint-every', '1', '--threads', '1', '-q', '--disk', str(disk)]
        expected = self.held(whole)
        process = self.start(self.folder / 'timed')
        begin = time.monotonic()
        process.communicate()
        seconds = time.monotonic() - begin
        self.assertEqual(self.held(self.folder / 'timed'), expected)

        source = random.Random(0)
        wanted, done, in_save, resumed, skipped = kills, 0, 0, 0, 0
        run = self.folder / 'run'
        while done < wanted:
            shutil.rmtree(run, ignore_errors=True)
            process = self.start(run)
            waits_for_save = in_save < wanted // 2
            if waits_for_save:
                for _ in range(source.randrange(1, STEPS)):
                    while process.poll() is None and not self.partial(run):
                        pass
                time.sleep(source.random() * 0.004)
            else:
                time.sleep(source.random() * seconds)
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if process.returncode != -signal.SIGKILL:
                continue # it had ended before
            was_saving = self.partial(run)
            if waits_for_save and not was_saving:
                continue # the save was over before the signal came
            done += 1
            in_save += was_saving
            taken = sorted(each.name for each in (run / 'checkpoints').glob('step-*')) if (run / 'checkpoints').is_dir() else []
            resumed += bool(taken)
            process = self.start(run, *(['--resume'] if taken else []))
            said = process.communicate()[1].decode(errors='replace')
            skipped += said.count('skipping')
            self.assertEqual(process.returncode, 0, f'after kill {done}, with {taken}: {said}')
            self.assertEqual(self.held(run), expected, f'after kill {done}, with {taken}')
            self.assertFalse(self.partial(run), 'half a checkpoint is left')
            self.assertEqual(list(disk.iterdir()), [], 'a file of state is left')
        print(f'{done} kills, {in_save} of them during a save; {resumed} runs resumed, {done - resumed} had no checkpoint yet; '
              f'{skipped} checkpoints were skipped as damaged', flush=True)
        self.assertGreaterEqual(in_save, wanted // 2)
        self.assertEqual(skipped, 0, 'a killed run left a checkpoint that is not valid')


common.main()
