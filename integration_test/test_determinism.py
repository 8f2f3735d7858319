"""Two runs of a program with the same ranks and threads give the same bits: losses, norms and every byte of the checkpoint. Initial values do not
depend on either."""

import json

import common

STEPS = 4


class DeterminismTest(common.Case):
    def outcome(self, run, model, data, ranks, threads):
        self.succeed('train', model, '--data', data, '--steps', STEPS, '-o', run, '-n', ranks, '--micro-batches', 2, '--threads', threads,
                     '--optimizer', 'adamw', '--lr', '1e-2', '--weight-decay', '0.1', '--clip-norm', '0.5')
        rows = [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual(len(rows), STEPS)
        checkpoint = sorted((run / 'checkpoints').glob('step-*'))[-1]
        files = {path.name: path.read_bytes() for path in checkpoint.iterdir() if path.suffix == '.safetensors'}
        self.assertTrue(files)
        return [(row['loss'], row['grad_norm']) for row in rows], files

    def check(self, ranks, threads, family='gpt'):
        # Large enough that kernels divide their work between two threads, and that ranks exchange more than one piece.
        model = self.small(family, width=64, tokens=64, batch=4, vocabulary=2048)
        data = self.batches(model, 2 * STEPS)
        first, again = (self.outcome(self.folder / f'{family}-{name}', model, data, ranks, threads) for name in ('first', 'again'))
        self.assertEqual(first[0], again[0])
        self.assertEqual(sorted(first[1]), sorted(again[1]))
        for name, held in first[1].items():
            self.assertTrue(held == again[1][name], f'{name} differs between two runs')

    def test_one_thread(self):
        self.check(ranks=1, threads=1)

    def test_two_threads(self):
        for family in ('gpt', 'llama'):
            with self.subTest(family):
                self.check(ranks=1, threads=2, family=family)

    def test_two_ranks(self):
        self.check(ranks=2, threads=1)

    def test_initial_values(self):
        """Random initial values are the same for any number of threads and ranks."""
        model, values = self.small('gpt', width=64, tokens=64, batch=4, vocabulary=2048), []
        for ranks, threads in ((1, 1), (1, 2), (2, 1)):
            run = self.folder / f'initial-{ranks}-{threads}'
            self.succeed('train', model, '--init', 'random', '--steps', 0, '-o', run, '-n', ranks, '--threads', threads, '--strategy', 'ddp')
            values.append((run / 'checkpoints' / 'step-000000' / 'parameters-00000.safetensors').read_bytes())
        self.assertTrue(values[0] == values[1] == values[2])


common.main()
