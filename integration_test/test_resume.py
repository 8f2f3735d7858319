"""A run that stops and resumes ends with the same bytes as one that does not."""

import json
import shutil

import common

FLAGS = ('--optimizer', 'adamw', '--lr', '1e-3', '--weight-decay', '0.1', '--lr-schedule', 'cosine', '--schedule-steps', '20', '--warmup', '3')


class ResumeTest(common.Case):
    def train(self, model, data, run, steps, *extra):
        return self.succeed('train', model, '--data', data, '--steps', steps, '-o', run, *FLAGS, *extra)

    def exported(self, run):
        newest = sorted((run / 'checkpoints').glob('step-*'))[-1]
        target = run / 'merged.safetensors'
        self.succeed('checkpoint', 'export', newest, '--state', '-o', target)
        return newest.name, target.read_bytes()

    def rows(self, run):
        return [json.loads(row) for row in (run / 'metrics.jsonl').read_text().splitlines()]

    def check_resume(self, model, data, ranks, *extra):
        straight, stopped = self.folder / 'straight', self.folder / 'stopped'
        self.train(model, data, straight, 20, '-n', ranks, *extra)
        self.train(model, data, stopped, 10, '-n', ranks, *extra)
        self.train(model, data, stopped, 20, '-n', ranks, '--resume', *extra)
        self.assertEqual(self.exported(straight), self.exported(stopped))
        self.assertEqual([row['loss'] for row in self.rows(straight)], [row['loss'] for row in self.rows(stopped)])
        self.assertEqual(len(self.rows(stopped)), 20)

    def test_mlp(self):
        self.check_resume(common.MODELS / 'mlp' / 'model.onnx', common.MODELS / 'mlp' / 'batches.safetensors', 1)

    def test_gpt2_two_ranks(self):
        self.check_resume(common.MODELS / 'gpt2-tiny' / 'model.onnx', common.MODELS / 'gpt2-tiny' / 'batches.safetensors', 2)

    def test_accumulation_and_clipping(self):
        model = self.small_gpt()
        self.check_resume(model, self.batches(model, 80), 2, '--micro-batches', 4, '--clip-norm', 1)

    def test_in_the_middle_of_an_epoch(self):
        """Seven micro-batches an epoch, four a step: step 10 ends after five of the sixth epoch."""
        model = self.small_gpt()
        tokens = self.folder / 'tokens.txt'
        tokens.write_bytes(bytes(range(256)) * 2)
        for data, flags in ((self.batches(model, 7), ('--epochs', 12)), (self.batches(model, 7), ('--epochs', 12, '--shuffle')), (tokens, ('--bytes',))):
            for ranks in (1, 2):
                with self.subTest(data.name, flags=flags, ranks=ranks):
                    for run in ('straight', 'stopped'):
                        shutil.rmtree(self.folder / run, ignore_errors=True)
                    self.check_resume(model, data, ranks, '--micro-batches', 4, *flags)

    def test_resume_from_a_named_step_cuts_later_rows(self):
        model = self.small_gpt()
        data, run = self.batches(model, 20), self.folder / 'run'
        self.train(model, data, run, 8, '--checkpoint-every', 4)
        first = self.rows(run)
        self.train(model, data, run, 6, '--resume', run / 'checkpoints' / 'step-000004')
        again = self.rows(run)
        self.assertEqual([row['loss'] for row in again], [row['loss'] for row in first[:6]])

    def test_a_run_without_a_step_evaluates(self):
        model = self.small_gpt()
        data, run, none = self.batches(model, 20), self.folder / 'run', self.folder / 'none'
        evaluation = ('--eval-data', data, '--eval-batches', 5)
        self.train(model, data, run, 3, *evaluation)
        trained = [row for row in self.rows(run) if 'eval_loss' in row]
        self.train(model, data, run, 3, '--resume', *evaluation)
        self.assertEqual([row for row in self.rows(run) if 'eval_loss' in row], 2 * trained)
        self.train(model, data, none, 0, *evaluation)
        (row,) = self.rows(none)
        self.assertEqual(row['step'], 0)
        self.assertGreater(row['eval_loss'], trained[0]['eval_loss'])

    def test_state_of_another_optimizer_is_refused(self):
        model = self.small_gpt()
        data, run = self.batches(model, 20), self.folder / 'run'
        self.train(model, data, run, 2)
        outcome = common.windlass('train', model, '--data', data, '--steps', 4, '-o', run, '--resume', '--optimizer', 'lamb', *FLAGS[2:])
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertRegex(outcome.err, "holds the state of --optimizer adamw, this program's is lamb")
        self.assertEqual(len(self.rows(run)), 2)
        # Its weights may begin another run.
        weights = self.folder / 'weights.safetensors'
        self.succeed('checkpoint', 'export', run, '-o', weights)
        self.succeed('train', model, '--data', data, '--steps', 1, '-o', self.folder / 'other', '--optimizer', 'lamb', '--init-from', weights, *FLAGS[2:])

    def test_a_run_that_holds_a_checkpoint_is_not_overwritten(self):
        model = self.small_gpt()
        data, run = self.batches(model, 20), self.folder / 'run'
        self.train(model, data, run, 2)
        outcome = common.windlass('train', model, '--data', data, '--steps', 2, '-o', run, *FLAGS)
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertIn('--resume', outcome.err)


common.main()
