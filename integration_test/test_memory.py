"""After the first step a training program calls no allocator, a save gives back what it took, the pages that are written to stay as
many, those of OpenBLAS's buffers apart, and no process takes more than the plan says: its ranks' arenas and their reserve."""

import collections
import json
import math
import os
import re
import tempfile
import unittest

import onnx

import common

STEPS, EVERY = 52, 20
KEPT_BY_MALLOC = 128  # KiB that may stay free at the end of its heap (M_TRIM_THRESHOLD)
Row = collections.namedtuple('Row', 'thread step calls library_calls blocks written buffers')


@unittest.skipIf(os.environ.get('WINDLASS_SANITIZED') == 'ON', 'sanitizers have an allocator of their own')
class MemoryTest(common.Case):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix='windlass-test-'))
        cls.counter = common.preloaded('count_allocations', folder)

    def counted(self, program, *flags):
        """Runs a program; returns the rows of each thread that writes a log, by process."""
        for old in self.folder.glob('counts.*'):
            old.unlink()
        out = self.folder / 'counts'
        done = common.run([*program, '--steps', STEPS, '--checkpoint-every', EVERY, '--keep', 1, '-q', *flags],
                          env={'LD_PRELOAD': str(self.counter), 'COUNT_ALLOCATIONS': str(out), 'OMP_WAIT_POLICY': 'passive'})
        self.assertEqual(done.code, 0, done.err[-2000:])
        processes = []
        for file in sorted(self.folder.glob('counts.*')):
            threads = collections.defaultdict(list)
            for line in file.read_text().splitlines():
                row = Row(*map(int, line.split()))
                threads[row.thread].append(row)
            processes.append(list(threads.values()))
        return processes

    def check_run(self, name, program, processes, threads, *flags):
        found = self.counted(program, '-o', self.folder / name, *flags)
        self.assertEqual((len(found), {len(each) for each in found}), (processes, {threads}))
        at_save, by_libraries = set(), 0
        for rows in (rows for process in found for rows in process):
            self.assertEqual([row.step for row in rows], list(range(1, STEPS + 1)))
            for before, after in zip(rows, rows[1:]):
                calls = after.calls - before.calls
                # A save, and the removal of an older one, come between the lines of two steps.
                if before.step % EVERY == 0:
                    at_save.add(calls)
                else:
                    self.assertEqual(calls, 0, f'{name}: allocator calls between the steps {before.step} and {after.step}')
                    self.assertEqual(after.blocks, before.blocks)
            self.assertEqual(len({row.blocks for row in rows[EVERY:]}), 1, 'a save keeps memory')
            by_libraries += rows[-1].library_calls - rows[0].library_calls
            written = [row.written - row.buffers for row in rows[1:]]
            self.assertGreater(min(written), 0)
            self.assertLessEqual(max(written) - min(written), KEPT_BY_MALLOC, written)
        record = json.loads((self.folder / name / 'run.json').read_text())
        planned = record['device_memory']['arena'] + record['reserve']['total']
        peak = max(each['peak_bytes'] for each in record['processes'])
        self.assertLessEqual(peak, threads * planned, record)
        print(f'{name}: no call in a step, {min(at_save)} to {max(at_save)} in a save, {by_libraries} of them by MPI; '
              f'{peak / 2**20:.1f} MiB resident of {threads * planned / 2**20:.1f} planned', flush=True)
        return record

    def program(self, model, ranks, data, *flags):
        """Returns the folder of the program that `train` builds."""
        outcome = self.succeed('train', model, '-n', ranks, '--strategy', 'ddp', '--data', data, '--steps', 0, '-o', self.folder / 'built', '-v', *flags)
        return common.built_folder(outcome)

    def test_gpt2_one_rank(self):
        data = common.MODELS / 'gpt2-tiny' / 'batches.safetensors'
        folder = self.program(common.MODELS / 'gpt2-tiny' / 'model.onnx', 1, data)
        record = self.check_run('1 rank', [folder / 'build' / 'train', '--data', *self.tokens()], 1, 1)
        self.assertEqual(record['reserve'], self.planned(1)['reserve'], 'the plan foretells what the program declares')

    def planned(self, ranks, *flags):
        model = common.MODELS / 'gpt2-tiny' / 'model.onnx'
        return json.loads(self.succeed('plan', model, '--cluster', f'cpu:{ranks}', '--strategy', 'ddp', '--json', *flags).out)['bytes_per_device']

    def test_the_limit_counts_the_reserve(self):
        memory = self.planned(2)
        needed = memory['arena'] + memory['reserve']['total']
        self.assertEqual(sum(memory['reserve'][part] for part in ('program', 'threads', 'communication')), memory['reserve']['total'])
        self.assertEqual(self.planned(2, '--memory-limit', needed)['limit'], needed)
        # With a byte less, something is recomputed; recomputing everything gives a least limit.
        self.assertLess(self.planned(2, '--memory-limit', needed - 1)['arena'], memory['arena'])
        model = common.MODELS / 'gpt2-tiny' / 'model.onnx'
        outcome = common.windlass('plan', model, '--cluster', 'cpu:2', '--strategy', 'ddp', '--memory-limit', 1)
        least = int(re.search(r'--memory-limit (\d+)', outcome.err)[1])
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertRegex(outcome.err, rf'{least} bytes \(.*?\) per device, {memory["reserve"]["total"]} bytes \(.*?\) of them besides its arena')
        self.assertEqual(self.planned(2, '--memory-limit', least)['arena'], least - memory['reserve']['total'])

    def test_zero3_holds_a_quarter(self):
        """The bytes of parameters, gradients and state on four ranks: as planned, and as the kernel counts the pages of each process."""
        model = self.small_gpt(layers=2, tokens=16, width=512, batch=4, vocabulary=8192)
        weights = sum(4 * math.prod(t.dims) for t in onnx.load(str(model)).graph.initializer if t.data_type == onnx.TensorProto.FLOAT)
        data, arenas, peaks = self.batches(model, 4), {}, {}
        for strategy, held in ('ddp', weights), ('zero3', weights // 4):
            flags = ('--cluster', 'cpu:4', '--strategy', strategy, '--micro-batches', 4)
            memory = json.loads(self.succeed('plan', model, *flags, '--json').out)['bytes_per_device']
            self.assertEqual((memory['parameters'], memory['gradients'], memory['optimizer_state']), (held, held, 2 * held))
            out = self.folder / strategy
            self.succeed('train', model, *flags, '--data', data, '--steps', 1, '-o', out)
            arenas[strategy] = memory['arena']
            peaks[strategy] = [process['peak_bytes'] for process in json.loads((out / 'run.json').read_text())['processes']]
        saved = arenas['ddp'] - arenas['zero3']
        for ddp, zero3 in zip(sorted(peaks['ddp']), sorted(peaks['zero3']), strict=True):
            print(f'zero3: {zero3 / 2**20:.0f} MiB in a process, ddp {ddp / 2**20:.0f}, planned {saved / 2**20:.0f} less', flush=True)
            self.assertAlmostEqual((ddp - zero3) / saved, 1, delta=0.03)

    def tokens(self):
        text = self.folder / 'text.txt'
        text.write_bytes(b'a stitch in time saves nine ' * 500)
        return text, '--bytes', '--eval-data', text, '--eval-every', 10

    def test_gpt2_two_ranks(self):
        data = common.MODELS / 'gpt2-tiny' / 'batches.safetensors'
        folder = self.program(common.MODELS / 'gpt2-tiny' / 'model.onnx', 2, data)
        with self.subTest('processes'):
            record = self.check_run('2 ranks, processes', [folder / 'run.sh', '--data', *self.tokens()], 2, 1)
            self.assertEqual(record['reserve'], self.planned(2)['reserve'])
        with self.subTest('threads'):
            self.check_run('2 ranks, threads', [folder / 'build' / 'train', '--data', *self.tokens()], 1, 2)

    def test_dropout_clipping_and_explicit_batches(self):
        """These allocate nothing either, nor does a team of more threads than most kernels have parts."""
        model = self.small_gpt(dropout=0.1)
        data = self.batches(model, 2 * STEPS)
        folder = self.program(model, 2, data, '--micro-batches', 2, '--clip-norm', 1)
        flags = ('--data', data, '--eval-data', data, '--eval-every', 10, '--clip-norm', 1, '--threads', 3, '--on-nan', 'skip')
        self.check_run('dropout', [folder / 'run.sh', *flags], 2, 1)


common.main()
