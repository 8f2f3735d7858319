"""The subcommands around training: settings from a file, what they say before anything is built, a run as a page, a checkpoint's contents."""

import json
import os
import pty
import re
import shutil
import subprocess

import common
from page import read_page
from windlass_models import safetensors_file


class TrainedCase(common.Case):
    """One run of a small model on two ranks, its settings half from a file."""

    @classmethod
    def setUpClass(cls):
        case = cls('setUp')
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.model = case.small_gpt()
        cls.data = case.folder / 'corpus.txt'
        cls.data.write_bytes(bytes(range(32, 127)) * 60)
        cls.config = case.folder / 'train.json'
        cls.config.write_text(json.dumps({'lr': 0.5, 'steps': 6, 'clip-norm': 0.25, 'bytes': True, 'micro-batches': 2, 'data': str(cls.data)}))
        cls.run_folder = case.folder / 'run'
        cls.outcome = common.windlass('train', cls.model, '--config', cls.config, '-n', 2, '--lr', '1e-3', '--eval-data', cls.data,
                                      '--eval-every', 3, '--profile', '-o', cls.run_folder)


class ConfigTest(TrainedCase):
    def test_the_file_gives_settings_and_flags_win(self):
        self.assertEqual(self.outcome.code, 0, self.outcome.err)
        rows = [json.loads(row) for row in (self.run_folder / 'metrics.jsonl').read_text().splitlines()]
        self.assertEqual([row['step'] for row in rows if 'loss' in row], list(range(1, 7)))
        self.assertEqual(rows[0]['lr'], 1e-3)
        record = json.loads((self.run_folder / 'run.json').read_text())
        self.assertEqual(record['settings']['micro_batches'], 2)
        self.assertEqual(record['settings']['clip_norm'], 0.25)
        self.assertEqual({key: record['settings'][key] for key in ('optimizer', 'beta1', 'beta2', 'eps', 'weight_decay')},
                         {'optimizer': 'adamw', 'beta1': 0.9, 'beta2': 0.999, 'eps': 1e-8, 'weight_decay': 0.01})

    def test_the_record_tells_of_the_run(self):
        record = json.loads((self.run_folder / 'run.json').read_text())
        self.assertEqual(record['ranks'], 2)
        self.assertEqual(record['last_step'], 6)
        self.assertEqual(record['settings']['communicator'], 'mpi')
        self.assertEqual(len(record['processes']), 2)
        self.assertTrue(all(process['peak_bytes'] > 0 for process in record['processes']))
        memory = record['device_memory']
        self.assertGreaterEqual(memory['arena'], sum(memory[part] for part in ('parameters', 'gradients', 'optimizer_state', 'inputs')))
        self.assertEqual(memory['optimizer_state'], 2 * memory['parameters'])

    def test_wrong_values_end_before_anything_is_built(self):
        cache = self.folder / 'cache'
        for words, text in ((('--lr', 'fast'), '--lr needs a number'), (('--lr-schedule', 'step'), 'constant|linear|cosine'),
                            (('--stpes', '3'), 'did you mean --steps?')):
            with self.subTest(words):
                outcome = common.windlass('train', self.model, '--data', self.data, *words, env={'XDG_CACHE_HOME': str(cache)})
                self.assertEqual(outcome.code, 2, outcome.err)
                self.assertIn(text, outcome.err)
        self.assertFalse(cache.exists())

    def test_wrong_files_are_named(self):
        for text in ('{"stpes": 3}', '{"lr": "fast"}', '[', '{"config": "x"}'):
            with self.subTest(text):
                config = self.folder / 'wrong.json'
                config.write_text(text)
                outcome = common.windlass('train', self.model, '--config', config)
                self.assertEqual(outcome.code, 1, outcome.err)
                self.assertRegex(outcome.err, r'\Awindlass: error: .*wrong\.json.*\n\Z')

    def test_the_schema_has_every_flag(self):
        schema = json.loads((common.ROOT / 'runtime' / 'train.schema.json').read_text())['properties']
        flags = set(re.findall(r'^  -{1,2}([a-z0-9-]+)', self.succeed('train', '--help').out, re.M))
        # Flags that `train` gives the program itself are settings of programs only.
        self.assertEqual(set(schema), flags - {'config', 'help'} | {'predicted-seconds', 'model-name'})
        self.assertIn('(default run)', self.succeed('train', '--help').out)

    def test_the_file_says_what_is_compiled_too(self):
        config = self.folder / 'train.json'
        config.write_text(json.dumps({'n': 2, 'strategy': 'zero1', 'freeze': ['*wpe*', '*.ln_1.*'], 'micro-batches': 2, 'memory-limit': '2GiB', 'data': [str(self.data)],
                                      'bytes': True, 'steps': 1, 'communicator': 'local'}))

        def trained(*flags):
            run = self.folder / f'run-{len(flags)}'
            self.succeed('train', self.model, '--config', config, '-o', run, *flags)
            self.assertEqual(json.loads((run / 'run.json').read_text())['ranks'], 2)
            manifest = json.loads((run / 'checkpoints' / 'step-000001' / 'manifest.json').read_text())
            return {tensor['name'].rpartition('/')[0] for tensor in manifest['tensors'] if tensor['state']}

        names = trained()
        self.assertFalse([name for name in names if 'wpe' in name or '.ln_1.' in name], 'what is frozen has no state')
        # A list given as a flag replaces the file's.
        names = trained('--freeze', '*.ln_1.*')
        self.assertTrue([name for name in names if 'wpe' in name])
        self.assertFalse([name for name in names if '.ln_1.' in name])

    def test_train_launches_as_the_emitted_script_does(self):
        recorded, launcher = self.folder / 'words', self.folder / 'mpirun'
        # Asked for its version, it is the real one: programs for another MPI would be built.
        launcher.write_text(f'#!/bin/sh\n[ "$1" != --version ] || exec {shutil.which("mpirun")} --version\nprintf "%s\\n" "$@" >"{recorded}"\n')
        launcher.chmod(0o755)
        env = {'PATH': f'{self.folder}:{os.environ["PATH"]}'}
        flags = ('--data', self.data, '--bytes', '-o', self.folder / 'run')
        self.succeed('train', self.model, '-n', 2, *flags, env=env)
        trained = recorded.read_text().splitlines()
        self.succeed('emit', self.model, '--cluster', 'cpu:2', '-o', self.folder / 'project')
        program = self.folder / 'project' / 'build' / 'train'
        program.parent.mkdir()
        program.write_text('built')
        self.assertEqual(common.run([self.folder / 'project' / 'run.sh', *flags], env=env).code, 0)
        emitted = recorded.read_text().splitlines()
        program = next(i for i, word in enumerate(emitted) if word.endswith('/build/train'))
        self.assertEqual(trained[:program], emitted[:program])
        self.assertIn('odls_base_sigkill_timeout', emitted)
        self.assertTrue(trained[program].endswith('/build/train'))
        recorded.unlink()
        self.succeed('train', self.model, '-n', 2, *flags, '--communicator', 'local', env=env)
        self.assertFalse(recorded.exists(), 'threads of one process need no launcher')

    def test_help_lists_the_flags_of_the_program(self):
        text = self.succeed('train', '--help').out
        for flag in ('--config F', '--parameters F', '--resume [DIR]', '--dump-gradients F', '--micro-batches N'):
            self.assertIn(flag, text)

    def test_packed_values_may_lie_elsewhere(self):
        exported = self.folder / 'exported.safetensors'
        self.succeed('checkpoint', 'export', self.run_folder, '-o', exported)
        self.succeed('train', self.model, '--data', self.data, '--bytes', '--steps', 0, '--parameters', exported, '-o', self.folder / 'again')
        again = self.folder / 'again.safetensors'
        self.succeed('checkpoint', 'export', self.folder / 'again', '-o', again)
        self.assertEqual(exported.read_bytes(), again.read_bytes())

    def test_values_are_taken_by_name(self):
        """A run begins with another's parameters, as one file or as several with an index, of the model or of its base; the rest is the model's own."""
        exported = self.folder / 'exported.safetensors'
        self.succeed('checkpoint', 'export', self.run_folder, '-o', exported)
        values = safetensors_file.read(exported)
        base = {name.removeprefix('transformer.'): value for name, value in values.items() if name != 'transformer.wpe.weight'}
        safetensors_file.write(base, self.folder / 'base.safetensors')
        names, index = sorted(values), self.folder / 'model.safetensors.index.json'
        for number, part in enumerate((names[::2], names[1::2])):
            safetensors_file.write({name: values[name] for name in part}, self.folder / f'{number}.safetensors')
        index.write_text(json.dumps({'weight_map': {name: f'{number % 2}.safetensors' for number, name in enumerate(names)}}))

        def begin(name, *flags):
            done = self.succeed('train', self.model, '--data', self.data, '--bytes', '--steps', 0, *flags, '-o', self.folder / name)
            self.succeed('checkpoint', 'export', self.folder / name, '-o', self.folder / f'{name}.safetensors')
            return done.err, safetensors_file.read(self.folder / f'{name}.safetensors')
        _, own = begin('own')
        for name, file, *plan in (('file', exported), ('index', index), ('parts', exported, '-n', 2, '--strategy', 'zero3')):
            said, found = begin(name, '--init-from', file, *plan)
            self.assertIn(f"initial values: {len(values)} of {len(values)} parameters from {'2 files' if name == 'index' else '1 file'}\n", said)
            self.assertTrue(all((found[each] == values[each]).all() for each in values))
        said, found = begin('base', '--init-from', self.folder / 'base.safetensors')
        self.assertIn("whose names lack 'transformer.'; not in them: 'transformer.wpe.weight'\n", said)
        for each in values:
            self.assertTrue((found[each] == (own if each == 'transformer.wpe.weight' else values)[each]).all(), each)
        refused = common.windlass('train', self.model, '--data', self.data, '--bytes', '--init-from', self.folder / 'base.safetensors',
                                  '--init-from', self.folder / 'base.safetensors', '-o', self.folder / 'refused')
        self.assertEqual(refused.code, 1)
        self.assertRegex(refused.err, r"\nwindlass: error: '[^\n]*base.safetensors' holds '[^\n]*, and so does [^\n]*; give each tensor once \[WL0701\]\n$")


class HelpTest(common.Case):
    def test_each_has_an_example_and_a_page(self):
        pages = self.folder / 'man1'
        done = common.run([common.ROOT / 'scripts' / 'make-man', common.WINDLASS, pages])
        self.assertEqual(done.code, 0, done.err)
        names = re.findall(r'^  ([a-z-]+) {2,}', self.succeed('--help').out, re.M)
        self.assertGreater(len(names), 12)
        self.assertEqual({page.name for page in pages.iterdir()}, {'windlass.1', *(f'windlass-{name}.1' for name in names)})
        for name in names:
            with self.subTest(name):
                help_text = self.succeed(name, '--help').out
                self.assertIn(f'\nFor example: windlass {name}', help_text)
                page = (pages / f'windlass-{name}.1').read_text().replace('\\-', '-')
                flags = re.findall(r'^  (-{1,2}[a-z-]+)', help_text, re.M)
                self.assertIn('--help', flags)
                self.assertEqual([flag for flag in flags if f'\n.B {flag}' not in page], [])
        if shutil.which('groff'):
            for page in pages.iterdir():
                done = common.run(['groff', '-man', '-Tutf8', '-ww', '-z', page])
                self.assertEqual((done.code, done.err), (0, ''))


class PlanPageTest(common.Case):
    def test_page(self):
        model = self.small_gpt(layers=2, width=64, tokens=32)
        page = self.folder / 'plan.html'
        for flags, lanes, functions in ((('--cluster', 'cpu:1'), ('compute',), ('forward', 'backward', 'update')),
                                        (('--cluster', 'cpu:4', '--strategy', 'zero3*megatron=2'), ('compute', 'over batch', 'over model'), ('reduce',)),
                                        (('--cluster', 'cpu:4', '--stages', 2, '--micro-batches', 4), ('position 1, compute', 'position 0, messages'), ('forward', 'backward'))):
            with self.subTest(flags=flags):
                said = json.loads(self.succeed('plan', model, *flags, '--html', page, '--json').out)
                parsed = read_page(page)
                self.assertEqual(parsed.tags.count('svg'), 3)
                self.assertNotIn('script', parsed.tags)
                self.assertNotIn('src', parsed.attributes)
                for text in (*lanes, *functions, 'small.onnx', 'optimizer state', 'activations and scratch'):
                    self.assertIn(text, parsed.text)
                # The highest moment of the picture is at most the largest live set, which counts init and evaluation too, and values
                # that are held for longer than commands name them.
                number, unit = re.search(r'At most ([\d.]+) (KiB|MiB) of', parsed.text).groups()
                most = float(number) * {'KiB': 2**10, 'MiB': 2**20}[unit] / said['bytes_per_device']['largest_live_set']
                self.assertTrue(0.9 < most < 1.02, most)
        self.assertIn(f'page       {page}\n', self.succeed('plan', model, '--cluster', 'cpu:2', '--html', page).out)
        outcome = common.windlass('plan', model, '--cluster', 'cpu:2', '--html', self.folder / 'none' / 'plan.html')
        self.assertEqual(outcome.code, 1)
        self.assertIn('plan.html', outcome.err)


class ReportTest(TrainedCase):
    def test_page(self):
        page = self.folder / 'page.html'
        summary = json.loads(self.succeed('report', self.run_folder, '-o', page, '--json').out)
        self.assertEqual(summary['steps'], 6)
        self.assertTrue(summary['finished'])
        parsed = read_page(page)
        # Four charts, the bar of the arena, memory over a step, the roofline, and the last step.
        self.assertEqual(parsed.tags.count('svg'), 8)
        self.assertNotIn('script', parsed.tags)
        self.assertNotIn('src', parsed.attributes)
        for text in (str(self.run_folder), 'Tokens per second', 'optimizer state', 'rank 1 on', 'step-000006', 'backend', 'clip norm', 'matmul', 'GB/s of memory', 'Planned over a step', 'kept for the backward pass', 'rank 1, compute'):
            self.assertIn(text, parsed.text)

    def test_several_runs(self):
        page, other = self.folder / 'both.html', self.folder / 'other'
        shutil.copytree(self.run_folder, other)
        record = json.loads((other / 'run.json').read_text())
        record['settings']['lr'] = 0.5
        (other / 'run.json').write_text(json.dumps(record))
        said = json.loads(self.succeed('report', self.run_folder, other, '-o', page, '--json').out)
        self.assertEqual([(run['folder'], run['steps']) for run in said['runs']], [(str(self.run_folder), 6), (str(other), 6)])
        parsed = read_page(page)
        self.assertNotIn('script', parsed.tags)
        self.assertGreaterEqual(parsed.tags.count('svg'), 4)
        for text in ('2 runs', str(other), 'lr0.0010.5', 'Tokens per second'):
            self.assertIn(text, parsed.text)
        outcome = common.windlass('report', self.run_folder, other)
        self.assertEqual(outcome.code, 2)
        self.assertIn('needs -o FILE', outcome.err)

    def test_default_place(self):
        run = self.folder / 'copy'
        shutil.copytree(self.run_folder, run)
        self.assertEqual(self.succeed('report', run).out, f'wrote {run}/report.html\n')

    def test_a_run_that_was_cut_is_shown(self):
        run = self.folder / 'cut'
        run.mkdir()
        (run / 'metrics.jsonl').write_bytes((self.run_folder / 'metrics.jsonl').read_bytes()[:-20])
        summary = json.loads(self.succeed('report', run, '--json').out)
        self.assertEqual((summary['steps'], summary['unreadable_rows'], summary['finished']), (6, 1, False))

    def test_what_is_no_run(self):
        outcome = common.windlass('report', self.folder)
        self.assertEqual(outcome.code, 1)
        self.assertIn('neither metrics.jsonl nor run.json', outcome.err)
        self.assertEqual(list(self.folder.iterdir()), [])


class WatchTest(TrainedCase):
    def test_once(self):
        """Where nobody watches, the state is printed and nothing moves."""
        lines = self.succeed('watch', self.run_folder).out.splitlines()
        self.assertEqual([line[:10].strip() for line in lines], ['\'small.onn', 'step', 'loss', '', 'norm', 'speed', 'eval loss', 'saved'])
        self.assertEqual(lines[1], 'step      6 of 6, 100 %, ended')
        self.assertRegex(lines[5], r'^speed     [\d.]+ tokens/s, [\d.]+ s a step$')
        self.assertEqual(lines[7], 'saved     step-000006')
        said = json.loads(self.succeed('watch', self.run_folder, '--json').out)
        self.assertEqual((said['step'], said['steps'], said['finished'], said['seconds_left']), (6, 6, True, None))

    def test_terminal(self):
        """The lines of a run that goes on are written anew in their place until it ends."""
        run = self.folder / 'going'
        shutil.copytree(self.run_folder, run)
        ended = (run / 'run.json').read_text()
        record = json.loads(ended)
        del record['last_step'], record['processes']
        (run / 'run.json').write_text(json.dumps(record))
        master, terminal = pty.openpty()
        watch = subprocess.Popen([common.WINDLASS, 'watch', run, '--every', '1'], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
        os.close(terminal)
        self.addCleanup(watch.kill)
        shown = b''
        while b'saved' not in shown:
            shown += os.read(master, 4096)
        self.assertIn(b'6 of 6, 100 %\r\n', shown)
        (run / 'run.json').write_text(ended)
        self.assertEqual(watch.wait(60), 0)
        try:
            while part := os.read(master, 4096):
                shown += part
        except OSError:
            pass  # the terminal's other end is closed
        os.close(master)
        self.assertRegex(shown, rb'\x1b\[8A\r\x1b\[K\'small')
        self.assertIn(b'6 of 6, 100 %, ended\r\n', shown)


class InspectTest(TrainedCase):
    def test_contents(self):
        shown = json.loads(self.succeed('checkpoint', 'inspect', self.run_folder, '--json').out)
        self.assertEqual(shown['step'], 6)
        self.assertEqual(shown['next_micro_batch'], 12)
        exported = self.folder / 'all.safetensors'
        self.succeed('checkpoint', 'export', self.run_folder, '--state', '-o', exported)
        arrays = safetensors_file.read(exported)
        self.assertEqual({tensor['name']: tensor['shape'] for tensor in shown['tensors']}, {name: list(array.shape) for name, array in arrays.items()})
        self.assertEqual({tensor['name'] for tensor in shown['tensors'] if tensor['kind'] == 'state'}, {name for name in arrays if '/exp_avg' in name})
        text = self.succeed('checkpoint', 'inspect', self.run_folder / 'checkpoints' / 'step-000006').out
        self.assertIn('step        6, next micro-batch 12', text)
        for name in arrays:
            self.assertIn(name, text)

    def test_damage_is_named(self):
        copy = self.folder / 'step-000006'
        shutil.copytree(self.run_folder / 'checkpoints' / 'step-000006', copy)
        damaged = next(copy.glob('*.safetensors'))
        damaged.write_bytes(damaged.read_bytes()[:-1] + b'?')
        outcome = common.windlass('checkpoint', 'inspect', copy)
        self.assertEqual(outcome.code, 1)
        self.assertIn('hash', outcome.err)

    def test_usage(self):
        for words in (('inspect', self.run_folder, '-o', 'x'), ('list', self.run_folder), ('inspect',)):
            self.assertEqual(common.windlass('checkpoint', *words).code, 2)


class QuietTest(common.Case):
    def test_subcommands_say_only_errors(self):
        model, plan, timeline = self.small_gpt(), self.folder / 'plan.json', self.folder / 'timeline.json'
        for words in (('check', model), ('plan', model, '--cluster', 'cpu:2', '-o', plan), ('simulate', model, '--plan', plan, '-o', timeline)):
            with self.subTest(words[0]):
                self.assertNotEqual(self.succeed(*words).out, '')
                outcome = self.succeed(*words, '-q')
                self.assertEqual((outcome.out, outcome.err), ('', ''))
                json.loads(self.succeed(*words, '-q', '--json').out)
        self.assertIn('WL0305', common.windlass('plan', model, '--cluster', 'cpu:2', '--memory-limit', 1, '-q').err)


class CompletionTest(common.Case):
    def complete(self, *words):
        """What bash would offer for the last word."""
        script = ('source "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$(($# - 2)); _windlass; printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(['bash', '-c', script, 'bash', common.ROOT / 'completions' / 'windlass.bash', common.WINDLASS, *words],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout.split()

    def test_bash(self):
        self.assertIn('train', self.complete(''))
        self.assertEqual(self.complete('pl'), ['plan', 'place-experts'])
        self.assertEqual(self.complete('train', 'model.onnx', '--opt'), ['--optimizer'])
        self.assertEqual(self.complete('train', 'model.onnx', '--optimizer', ''), ['adamw', 'adafactor', 'adam', 'lamb', 'lion', 'muon', 'sgd'])
        # Files, which are the shell's own answer.
        for words in (('train', ''), ('train', 'model.onnx', '--data', ''), ('nothing', '')):
            self.assertEqual(self.complete(*words), [])


class StreamsTest(common.Case):
    """Standard output that is closed or full."""

    def test_a_reader_that_closes_early_is_no_error(self):
        model, plan = self.small_gpt(), self.folder / 'plan.json'
        for words in (('plan', model, '--cluster', 'cpu:2', '--micro-batches', 2, '--strategy', 'ddp', '-o', plan), ('plan', '--help'), ('--help',),
                      ('check', model, '--json')):
            with self.subTest(words):
                read, write = os.pipe()
                os.close(read)
                with open(write, 'wb') as closed:
                    done = subprocess.run([str(word) for word in (common.WINDLASS, *words)], stdout=closed, stderr=subprocess.PIPE, timeout=600)
                self.assertEqual((done.returncode, done.stderr), (0, b''))
        self.assertTrue(plan.exists())

    def test_output_that_is_lost_is_an_error(self):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([str(common.WINDLASS), '--help'], stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r'\Awindlass: error: cannot write to standard output: No space left on device \[WL\d{4}\]\n\Z')

    def test_ranks_that_would_work(self):
        """The numbers of ranks and micro-batches that a message names are those that work."""
        model = self.small_gpt(batch=4)
        for ranks, strategy, wanted, batches in ((3, 'ddp', (1, 2, 4), 3), (6, 'zero3*megatron=2', (2, 4, 8), 3), (8, 'zero1', (1, 2, 4), 2)):
            with self.subTest(strategy):
                refused = common.windlass('plan', model, '--cluster', f'cpu:{ranks}', '--strategy', strategy)
                self.assertEqual(refused.code, 1)
                *first, last = wanted
                self.assertIn(f'{ranks} ranks cannot share 1 micro-batch of batch 4 evenly: use {", ".join(map(str, first))} or {last} ranks, '
                              f'or --micro-batches {batches} [', refused.err)
                for other in wanted:
                    self.succeed('plan', model, '--cluster', f'cpu:{other}', '--strategy', strategy, '-q')
                self.succeed('plan', model, '--cluster', f'cpu:{ranks}', '--strategy', strategy, '--micro-batches', batches, '-q')
        refused = common.windlass('plan', model, '--cluster', 'cpu:6', '--strategy', 'zero1*megatron=4')
        self.assertIn("strategy 'zero1*megatron=4' does not fit 6 ranks: use 4 or 8 ranks, or other numbers in it", refused.err)


common.main()
