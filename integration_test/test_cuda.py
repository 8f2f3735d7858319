"""Programs for CUDA devices where no device is: nvcc compiles them, and the same kernels run on the processor.

The emulation (runtime/backends/cuda/emulation) runs every kernel of the back end but those of cuBLASLt, so that what it
trains is compared with PyTorch's stored losses, gradients and parameters. What nvcc builds is linked, and refuses to start without
a device. Tests that need nvcc are skipped, with the reason, where there is none.

    test_cuda.py                    compiles for one architecture
    test_cuda.py architectures      only compiles, for all that are supported
"""

import collections
import glob
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import unittest

import onnx

import common
from windlass_models import files, safetensors_file

BUILD = pathlib.Path(os.environ.get('WINDLASS_BUILD', common.ROOT / 'build'))
NVCC = shutil.which('nvcc') or next((str(p) for p in [pathlib.Path('/usr/local/cuda/bin/nvcc')] if p.exists()), None)
CUDNN = next((f for f in ('/usr/include/cudnn.h', '/usr/local/cuda/include/cudnn.h') if pathlib.Path(f).exists()), None)
EMULATED = ['-DWINDLASS_CUDA_EMULATED=ON']
RUNTIME = ['-DCMAKE_BUILD_TYPE=Release', '-DWINDLASS_RUNTIME_TESTS=ON']
ARCHITECTURES = '80-real;90' if sys.argv[1:2] == ['architectures'] else '90'
COMPILED = [f'-DCMAKE_CUDA_COMPILER={NVCC}', f'-DCMAKE_CUDA_ARCHITECTURES={ARCHITECTURES}']


class CudaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix='windlass-test-')
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)

    def succeed(self, command, **options):
        done = common.run(command, timeout=1800, **options)
        self.assertEqual(done.code, 0, (done.out + done.err)[-4000:])
        return done

    def build(self, source, build, flags):
        if shutil.which('ccache'):
            flags = [*flags, *(f'-DCMAKE_{language}_COMPILER_LAUNCHER=ccache' for language in ('CXX', 'CUDA'))]
        self.succeed(['cmake', '-S', source, '-B', build, '-G', 'Ninja', '-DWINDLASS_BACKEND=cuda', '-DWINDLASS_MPI=OFF', *flags])
        self.succeed(['cmake', '--build', build, '-j', str(os.cpu_count())])

    def emit(self, model, *flags):
        project = self.folder / '-'.join([model.name, *(os.path.basename(str(f)).strip('-').replace(':', '') for f in flags)])
        outcome = common.windlass('emit', model / 'model.onnx', *flags, '-o', project)
        self.assertEqual(outcome.code, 0, outcome.err)
        return project

    def digests(self, run, step):
        """Returns a digest of each file of a checkpoint's values."""
        files = sorted((run / 'checkpoints' / f'step-{step:06}').glob('*.safetensors'))
        self.assertTrue(files)
        return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]

    def compare(self, program, model, *flags):
        done = self.succeed([sys.executable, common.ROOT / 'integration_test' / 'parity.py', '--program', program, '--model', model, *flags])
        print(done.out, end='')


class EmulatedCase(CudaTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.runtime = BUILD / 'cuda-emulated'

    def build_runtime(self):
        self.build(common.ROOT / 'runtime', self.runtime, [*EMULATED, *RUNTIME, '-DWINDLASS_WERROR=ON'])

    def program(self, project):
        self.build_runtime()
        self.build(project, project / 'build', [*EMULATED, f'-DWINDLASS_RUNTIME_BUILD={self.runtime}', '-DCMAKE_CXX_FLAGS=-Werror'])
        return project / 'build' / 'train'


class Emulated(EmulatedCase):
    def model(self, name):
        ready = self.folder / name  # by another test
        return ready if ready.exists() else pathlib.Path(common.prepared(name, self.folder))

    def test_kernels(self):
        self.build_runtime()
        self.succeed([self.runtime / 'conformance' / 'windlass_runtime_conformance', '--gtest_brief=1'])
        self.assertGreater(float(self.succeed([self.runtime / 'benchmarks' / 'windlass_matmul_rate', '32', '2']).out), 0)

    def test_transformer(self):
        model = self.model('gpt2-tiny')
        self.compare(self.program(self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp')), model)

    def test_experts(self):
        """Rows of tokens go to the ranks with their experts only, and are counted."""
        model, batches, losses = self.folder / 'mixture.onnx', self.folder / 'mixture.safetensors', {}
        files.save(common.one_layer('mixtral', batch=8, tokens=128, width=128, hidden=64, experts=8, chosen=2), model, False)
        safetensors_file.write(files.random_batches(onnx.load(str(model)), 2, 0), batches)
        for ranks, strategy in ((1, 'ddp'), (8, 'ep')):
            project, run = self.folder / f'mixture-{ranks}', self.folder / f'mixture-{ranks}-run'
            outcome = common.windlass('emit', model, '--cluster', f'h200:{ranks}', '--strategy', strategy, '-o', project)
            self.assertEqual(outcome.code, 0, outcome.err)
            self.succeed([self.program(project), '--data', batches, '--steps', '2', '-o', run])
            rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
            losses[ranks] = [row['loss'] for row in rows]
            self.assertEqual(rows[0]['collective_bytes']['rows'] > 0, ranks > 1)
        self.assert_close(losses[8], losses[1], 1e-5)

    def test_convolutions(self):
        model = self.model('resnet-tiny')
        self.compare(self.program(self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp')), model)

    def test_graphs(self):
        """Steps from recorded graphs give the same bits as issued ones, and a run takes what it has measured to be faster."""
        model = self.model('mlp')
        program = self.program(self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp', '--micro-batches', '2', '--clip'))
        rows, said = {}, {}
        for graphs in ('off', 'on', 'auto'):
            run = self.folder / f'graphs-{graphs}'
            said[graphs] = self.succeed([program, '--data', model / 'batches.safetensors', '--micro-batches', '2', '--steps', '9', '--graphs', graphs, '-o', run]).err
            rows[graphs] = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
            rows[graphs] = [{key: value for key, value in row.items() if 'second' not in key and '_per_s' not in key} for row in rows[graphs]]
            rows[graphs] += self.digests(run, 9)
        self.assertEqual(rows['on'], rows['off'])
        self.assertEqual(rows['auto'], rows['off'])
        self.check_reserve(program, model, run)
        self.assertNotIn('graphs:', said['off'] + said['on'])
        self.assertRegex(said['auto'], r'graphs: a step takes \S+ s issued and \S+ s from graphs; steps are (run from graphs|issued) from here on\n')
        shared = self.program(self.emit(model, '--cluster', 'h200:2', '--strategy', 'ddp'))
        done = common.run([shared, '--data', model / 'batches.safetensors', '--steps', '1', '--graphs', 'on', '-o', self.folder / 'shared'])
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(done.err, r'^error: --graphs on needs ranks that are processes; [^\n]* \[WL\d+\]\n$')

    def check_reserve(self, program, model, run):
        """The program declares what was planned, and starts where all of it is free that is not the context's."""
        planned = common.windlass('plan', model / 'model.onnx', '--cluster', 'h200:1', '--strategy', 'ddp', '--micro-batches', '2', '--clip', '--json')
        memory, record = json.loads(planned.out)['bytes_per_device'], json.loads((run / 'run.json').read_text())
        self.assertEqual(record['reserve'], memory['reserve'])
        needed = memory['arena'] + memory['reserve']['total'] - memory['reserve']['context']
        for free, code in ((needed - 1, 1), (needed, 0)):
            done = common.run([program, '--data', model / 'batches.safetensors', '--micro-batches', '2', '--steps', '1', '-o', self.folder / f'free-{code}'],
                              env=dict(WINDLASS_EMULATED_FREE=str(free)))
            self.assertEqual(done.code, code, done.err)
            self.assertIs(f'the plan needs {needed} for rank 0' in done.err, code == 1)

    def test_token_mean(self):
        """Labels that are counted before a step whose graphs are recorded, also of micro-batches that are computed at once: PyTorch's losses."""
        model = self.model('gpt2-tiny')
        few = self.folder / 'few.safetensors'
        stored = common.few_labels(model, few)
        optimizer = json.loads((model / 'reference.json').read_text())['optimizer']
        flags = ('--cluster', 'h200:1', '--strategy', 'ddp', '--micro-batches', '4', '--average', 'tokens')
        apart, merged = (self.program(self.emit(model, *flags, *more)) for more in ((), ('--merge', '2')))
        for program, graphs in ((apart, 'off'), (apart, 'on'), (merged, 'on')):
            run = self.folder / f'tokens-{program.parent.parent.name}-{graphs}'
            self.succeed([program, '--data', few, '--graphs', graphs, '--steps', stored['steps'], '--lr', optimizer['lr'], '--betas', ','.join(map(str, optimizer['betas'])),
                          '--eps', optimizer['eps'], '--weight-decay', optimizer['weight_decay'], '-o', run])
            rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
            for row, loss in zip(rows, stored['micro_batches']['4']['losses'], strict=True):
                self.assertAlmostEqual(row['loss'], loss, delta=1e-5 * loss)

    def test_profile(self):
        """A program that measures for a cluster of GPUs writes a profile that plans for these take."""
        model, project, profile = self.model('mlp'), self.folder / 'measuring', self.folder / 'profile.json'
        outcome = common.windlass('profile', model / 'model.onnx', '--cluster', 'h200:1', '--precision', 'tf32', '--emit', project)
        self.assertEqual(outcome.code, 0, outcome.err)
        self.build_runtime()
        self.build(project, project / 'build', [*EMULATED, f'-DWINDLASS_RUNTIME_BUILD={self.runtime}', '-DCMAKE_CXX_FLAGS=-Werror'])
        self.succeed([project / 'run.sh', '-o', profile, '--threads', 1])
        made = json.loads(profile.read_text())
        self.assertTrue(common.conforms(made, json.loads((common.ROOT / 'lib' / 'Profile' / 'profile.schema.json').read_text())))
        self.assertEqual(len(made['rates']), 8)
        self.assertEqual(made['machine'], 'emulated on the processor')
        self.assertTrue(all(rate > 0 for rate in made['rates'].values()), made['rates'])
        self.assertTrue(all(each['loaded']['median_seconds'] > 0 for each in made['commands'].values()))
        self.assertTrue(any(key.startswith('tf32 matmul(') and each['family'] == 'matmul.tf32' for key, each in made['commands'].items()))
        planned = {}
        for cluster, precision in (('h200:1', 'tf32'), ('h200:1', 'f32'), ('h100:1', 'tf32')):
            outcome = common.windlass('plan', model / 'model.onnx', '--cluster', cluster, '--precision', precision, '--strategy', 'ddp', '--costs', profile, '--json')
            planned[cluster, precision] = outcome
        self.assertEqual(planned['h100:1', 'tf32'].code, 1)  # it says nothing of other devices
        self.assertIn("'h200'", planned['h100:1', 'tf32'].err)
        self.assertEqual(set(json.loads(planned['h200:1', 'tf32'].out)['seconds_by_source']), {'measured'})
        self.assertIn('analytic', json.loads(planned['h200:1', 'f32'].out)['seconds_by_source'])  # nor of products in f32
        self.check_chosen_products(model, made)
        self.check_killed_measurements(project, model, made)

    def check_killed_measurements(self, project, model, whole):
        """A measuring program that is killed leaves no file, or one that plans take, whenever that happens."""
        left, begin = self.folder / 'left.json', time.monotonic()
        words = [project / 'run.sh', '-o', left, '--threads', 1]
        self.succeed(words)
        taken, counts = time.monotonic() - begin, []
        for part in range(1, 9):
            left.unlink(missing_ok=True)
            process = subprocess.Popen([str(word) for word in words], stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(taken * part / 9)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if left.exists():
                counts.append(len(json.loads(left.read_text())['commands']))
                outcome = common.windlass('plan', model / 'model.onnx', '--cluster', 'h200:1', '--precision', 'tf32', '--strategy', 'ddp', '--costs', left)
                self.assertEqual(outcome.code, 0, outcome.err)
        print(f'measuring programs that were killed left {counts} of {len(whole["commands"])} commands')
        self.assertTrue(any(0 < count < len(whole['commands']) for count in counts), counts)

    def check_chosen_products(self, model, profile):
        """A program computes products as a profile says, where it is of the same device and library, and says so."""
        usable, not_known = 'f32 NN f32 256x32x10 leading 256,10,256 tf32 aligned 64', 'f32 TN f32 10x32x256 leading 256,256,10 tf32 aligned 64'
        choices = {name: {'algorithm': [number] + 8 * [0], 'seconds': 1e-5, 'first_seconds': 2e-5} for name, number in ((usable, 2), (not_known, 99))}
        for library, said, taken in (('plain loops', 'products: 2 algorithms of the profile, of plain loops on emulated on the processor', 1),
                                     ('others', "products: the profile's algorithms are those of others on emulated on the processor, this is plain loops on "
                                      'emulated on the processor, which chooses itself', 0)):
            costs = self.folder / f'{taken}-chosen.json'
            costs.write_text(json.dumps({**profile, 'products': {'device': 'emulated on the processor', 'library': library, 'choices': choices}}))
            project = self.emit(model, '--cluster', 'h200:1', '--precision', 'tf32', '--costs', costs)
            run = self.folder / f'{taken}-chosen'
            done = self.succeed([self.program(project), '--data', model / 'batches.safetensors', '--steps', '2', '-o', run])
            self.assertIn(said + '\n', done.err)
            self.assertRegex((run / 'logs' / 'rank_00000.log').read_text(), rf"products: {taken} of \d+ shapes by the profile's algorithms, [1-9]\d* with epilogues\n")

    def measured(self, model, *flags):
        """Returns the profile that a model's measuring program writes, made once for all tests."""
        project, file = self.folder / 'measuring-model', self.folder / 'measured.json'
        if not file.exists():
            outcome = common.windlass('profile', model / 'model.onnx', *flags, '--micro-batches', '2', '--emit', project)  # gradients are added up
            self.assertEqual(outcome.code, 0, outcome.err)
            self.build_runtime()
            self.build(project, project / 'build', [*EMULATED, f'-DWINDLASS_RUNTIME_BUILD={self.runtime}', '-DCMAKE_CXX_FLAGS=-Werror'])
            done = self.succeed([project / 'run.sh', '-o', file, '--threads', 1])
            self.assertIn('windlass: attention: plain loops is measured beside the own kernels\n', done.err)
        measured = json.loads(file.read_text())
        self.assertTrue(common.conforms(measured, json.loads((common.ROOT / 'lib' / 'Profile' / 'profile.schema.json').read_text())))
        return measured

    def test_epilogues_by_the_library(self):
        """Products are computed with their bias, GELU and bias gradient, but where a profile says that it takes more time, and train alike."""
        model, flags = self.model('gpt2-tiny'), ('--cluster', 'h200:1', '--precision', 'bf16')
        measured = self.measured(model, *flags)
        del measured['attention']
        here = measured.pop('products')
        self.assertEqual({key.split('(')[0] for key in here['epilogues']}, {'matmul_bias', 'matmul_bias_gelu', 'matmul_gelu_grad', 'matmul_bias_grad'})
        self.assertTrue(any(key.endswith('adds') for key in here['epilogues']))
        self.assertLessEqual(set(here['epilogues']), set(measured['commands']))
        # Which of the two is faster under emulation says nothing.
        slower = {key: {'seconds': 2e-5, 'apart_seconds': 2e-5} for key in here['epilogues']}
        steps, rows = {}, {}
        for name, products in (('apart', {**here, 'choices': {}, 'epilogues': slower}), ('fused', {}), ('others', {**here, 'library': 'others', 'epilogues': {}})):
            costs = self.folder / f'epilogues-{name}.json'
            costs.write_text(json.dumps({**measured, **({'products': products} if products else {})}))
            project = self.emit(model, *flags, '--strategy', 'ddp', '--micro-batches', '2', '--costs', costs)
            steps[name] = (project / 'src' / 'step.cpp').read_text()
            run = self.folder / f'run-epilogues-{name}'
            done = self.succeed([self.program(project), '--data', model / 'batches.safetensors', '--micro-batches', '2', '--steps', '2', '-o', run])
            self.assertEqual('products:' in done.err, name == 'others')
            self.assertEqual(bool(re.search(r'products: 0 of \d+ shapes .*, [1-9]\d* with epilogues\n', (run / 'logs' / 'rank_00000.log').read_text())), name != 'apart')
            rows[name] = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
            rows[name] = [(row['loss'], row['grad_norm']) for row in rows[name]]
        self.assertEqual(steps['others'], steps['fused'])
        calls = {name: collections.Counter(re.findall(r'WINDLASS_TRY\((matmul\w*|map_views|reduce)[(<]', text)) for name, text in steps.items()}
        for kernel in ('matmul_bias', 'matmul_bias_gelu', 'matmul_gelu_grad', 'matmul_bias_grad'):
            self.assertGreater(calls['fused'][kernel], calls['apart'][kernel], kernel)  # commands of evaluation only are not measured
        products = {name: sum(n for kernel, n in its.items() if kernel.startswith('matmul')) for name, its in calls.items()}
        self.assertEqual(products['fused'], products['apart'])
        self.assertEqual(calls['apart']['reduce'] - calls['fused']['reduce'], calls['fused']['matmul_bias_grad'] - calls['apart']['matmul_bias_grad'])
        self.assertEqual(rows['others'], rows['fused'])
        self.assertNotEqual(rows['fused'], rows['apart'])  # other roundings
        for (loss, norm), (apart_loss, apart_norm) in zip(rows['fused'], rows['apart']):
            self.assertAlmostEqual(loss / apart_loss, 1, delta=1e-3)
            self.assertAlmostEqual(norm / apart_norm, 1, delta=1e-2)

    def test_padded_rows(self):
        """The scores of an odd vocabulary lie in rows at multiples of 16 bytes in bf16, dense in f32, and train alike."""
        model, losses = self.folder / 'odd', {}
        model.mkdir()
        build, config, settings = common.FAMILIES['gpt']
        onnx.save(build(config(layers=1, width=48, heads=4, vocabulary=259, tokens=16, batch=2, **settings)), model / 'model.onnx')
        for precision, rows in (('bf16', '{2, 16, 259}, {4224, 264, 1}'), ('f32', '{2, 16, 259})')):
            project, run = self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp', '--precision', precision), self.folder / f'odd-{precision}'
            self.assertIn(f'element_type::{precision}, {rows}', (project / 'src' / 'buffers.h').read_text())
            self.succeed([self.program(project), '--data', common.ROOT / 'README.md', '--bytes', '--steps', '3', '-o', run])
            losses[precision] = [json.loads(line)['loss'] for line in (run / 'metrics.jsonl').read_text().splitlines()]
        for half, full in zip(losses['bf16'], losses['f32'], strict=True):
            self.assertAlmostEqual(half / full, 1, delta=1e-3)

    def test_attention_by_the_library(self):
        """The library computes attention, but what a profile says our kernels compute faster, in a workspace that is planned, and trains alike."""
        model, flags = self.model('gpt2-tiny'), ('--cluster', 'h200:1', '--precision', 'bf16')
        measured = self.measured(model, *flags)
        measured.pop('products', None)
        own = measured.pop('attention')
        self.assertEqual(sorted(key.split('(')[0] for key in own['choices']), ['attention', 'attention_grad'])
        self.assertLessEqual(set(own['choices']), set(measured['commands']))
        self.assertTrue(all(each['workspace_bytes'] > 0 for each in own['choices'].values()))
        needed = max(each['workspace_bytes'] for each in own['choices'].values())
        here, rows = 'plain loops on emulated on the processor', {}

        def choices(seconds, workspace=None):
            """Which of the two is faster under emulation says nothing."""
            return {key: {**each, 'seconds': seconds, 'own_seconds': 2e-5, 'workspace_bytes': workspace or each['workspace_bytes']} for key, each in own['choices'].items()}

        def emit(name, its_choices, *limit):
            costs = self.folder / f'{name}.json'
            costs.write_text(json.dumps({**measured, 'attention': {**own, 'choices': its_choices}}))
            return common.windlass('emit', model / 'model.onnx', *flags, '--strategy', 'ddp', '--costs', costs, '-o', self.folder / f'attention-{name}', *limit)

        for name, its_choices, said in (
                ('own', choices(2e-5), None), ('library', choices(1e-5), f'attention: 2 of 2 shapes by {here}\n'), ('unmeasured', {}, f'attention: 2 of 2 shapes by {here}\n'),
                ('little', choices(1e-5, needed - 1), rf'attention: 0 of 2 shapes by {here}(; own kernels for bf16 [^;]* causal, '
                                                      rf'as it needs {needed} bytes of workspace, {needed - 1} are planned){{2}}\n')):
            self.assertEqual(emit(name, its_choices).code, 0)
            run = self.folder / f'run-{name}'
            done = self.succeed([self.program(self.folder / f'attention-{name}'), '--data', model / 'batches.safetensors', '--steps', '2', '-o', run])
            if said:
                self.assertRegex(done.err, said)
            self.assertEqual('attention:' in done.err, said is not None)
            steps = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
            rows[name] = [(row['loss'], row['grad_norm']) for row in steps]
        much = emit('much', choices(1e-5, 1 << 34), '--memory-limit', '1GiB')
        self.assertEqual(much.code, 0, much.err)
        self.assertRegex(much.err, r"attention bf16 [^\n]* stays with Windlass's kernels, which are several times slower: cuDNN needs 16 GiB of workspace, the plan leaves")
        self.assertIn('out.attentions = {nullptr, 0};', (self.folder / 'attention-much' / 'src' / 'tables.cpp').read_text())
        self.assertEqual(rows['unmeasured'], rows['library'])
        self.assertEqual(rows['little'], rows['own'])
        self.assertNotEqual(rows['library'], rows['own'])  # other roundings
        for (loss, norm), (own_loss, own_norm) in zip(rows['library'], rows['own']):
            self.assertAlmostEqual(loss / own_loss, 1, delta=1e-3)
            self.assertAlmostEqual(norm / own_norm, 1, delta=1e-2)
        scratch = {name: int(re.search(r'out\.scratch_bytes = (\d+)', (self.folder / f'attention-{name}' / 'src' / 'tables.cpp').read_text())[1])
                   for name in (*rows, 'much')}
        self.assertEqual(scratch['much'], scratch['own'])
        self.assertEqual(scratch['library'], max(needed, scratch['own']))
        self.assertEqual(scratch['little'], max(needed - 1, scratch['own']))
        self.assertGreaterEqual(scratch['unmeasured'], scratch['library'])

    def check_timelines(self, program, model, *flags):
        """The commands that each rank measured have the names, operators and threads of the predicted ones, in the same order."""
        predicted, timed_run = self.folder / 'predicted.json', program.parent / 'timed'
        self.assertEqual(common.windlass('simulate', model / 'model.onnx', *flags, '-o', predicted).code, 0)
        self.succeed([program, '--data', model / 'batches.safetensors', '--steps', '2', '--profile', '-o', timed_run])
        def read(file):
            events = json.loads(file.read_text())['traceEvents']
            threads = {e['tid']: e['args']['name'] for e in events if e['name'] == 'thread_name'}
            return threads, [e for e in events if e['ph'] == 'X'], {e['pid'] for e in events}
        threads, commands, processes = read(predicted)
        def named(events, thread):
            return [(e['name'], e['args'].get('operator')) for e in events if e['tid'] == thread]
        self.assertEqual(processes, {0})
        self.assertEqual(sorted(threads.values()), ['compute', 'over batch'])
        for rank in range(2):
            measured, timed, processes = read(timed_run / 'traces' / f'rank_{rank:05}.json')
            self.assertEqual(measured, threads)
            self.assertEqual(processes, {rank + 1})
            self.assertTrue(all(operator for name, operator in named(timed, 0) if name in ('matmul', 'adamw')))
            for thread in threads:
                self.assertEqual(named(timed, thread), named(commands, thread))
                ends = 0.0
                for event in (e for e in timed if e['tid'] == thread):
                    self.assertGreaterEqual(event['ts'], ends - 1)  # microseconds; events have that resolution
                    ends = event['ts'] + event['dur']

    @unittest.skipUnless(pathlib.Path('/usr/local/cuda/include/nvtx3').exists(), 'the headers of NVTX are not installed')
    def test_ranges(self):
        """Tools that watch programs for devices are told of actions and, with --profile, of commands."""
        tool = self.folder / 'tool.so'
        self.succeed(['cc', '-shared', '-fPIC', '-I', '/usr/local/cuda/include', '-o', tool, common.ROOT / 'integration_test' / 'nvtx_tool.c'])
        model = self.model('mlp')
        program = self.program(self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp'))
        for flags, said in (((), {'step', 'forward', 'backward', 'reduce', 'update'}), (('--profile',), {'step', 'update', 'matmul', 'adamw'})):
            log = self.folder / 'ranges.txt'
            self.succeed([program, '--data', model / 'batches.safetensors', '--steps', '1', '-o', self.folder / f'ranges{len(flags)}', *flags],
                         env={'NVTX_INJECTION64_PATH': str(tool), 'WINDLASS_RANGES': str(log)})
            words = log.read_text().split('\n')
            self.assertLessEqual(said, set(words))
            self.assertEqual(words.count('end'), sum(word not in ('end', '') for word in words))

    def test_tf32(self):
        """Products round their operands, nothing else does, and plan, rows and the run's record say so."""
        model, losses = self.model('mlp'), {}
        for precision in ('f32', 'tf32'):
            project = self.emit(model, '--cluster', 'h200:1', '--strategy', 'ddp', '--precision', precision)
            self.assertEqual(json.loads((project / 'plan.json').read_text())['settings']['precision'], precision)
            run = self.folder / f'run-{precision}'
            self.succeed([self.program(project), '--data', model / 'batches.safetensors', '--steps', '3', '-o', run])
            rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
            self.assertEqual({row['precision'] for row in rows}, {precision})
            self.assertEqual(json.loads((run / 'run.json').read_text())['settings']['precision'], precision)
            losses[precision] = [row['loss'] for row in rows]
        off = max(abs(a - b) / b for a, b in zip(losses['tf32'], losses['f32']))
        self.assertLess(off, 2e-2)
        self.assertGreater(off, 1e-7)

    def test_f16(self):
        """Training with a loss scale: against PyTorch, where every step overflows, resumed, and stopped at the floor."""
        model = self.model('gpt2-tiny')
        plan = ('--cluster', 'h200:2', '--strategy', 'zero1', '--precision', 'f16')
        program = self.program(self.emit(model, *plan))
        self.check_timelines(program, model, *plan)
        self.compare(program, model, '--loss-bound', '2e-2', '--gradient-bound', '1e-1', '--movement-bound', '1')
        flags = (program, '--data', model / 'batches.safetensors', '--steps', '4', '--checkpoint-every', '1', '--checkpoint-initial', '--loss-scale', 2 ** 32)
        rows = {}
        for name, words in (('whole', ((),)), ('parts', (('--steps', '2'), ('--resume',)))):
            for more in words:
                self.succeed([*flags, '-o', self.folder / name, *more])
            rows[name] = [json.loads(line) for line in (self.folder / name / 'metrics.jsonl').read_text().splitlines()]
            self.assertEqual([row['grad_norm'] for row in rows[name]], [None] * 4)
            self.assertEqual([row['loss_scale'] for row in rows[name]], [2 ** 32, 2 ** 32, 2 ** 31, 2 ** 30])
        values = [[file.read_bytes() for file in sorted((self.folder / 'whole' / 'checkpoints' / step).glob('*.safetensors'))] for step in ('step-000000', 'step-000004')]
        self.assertEqual(values[0], values[1])  # weights and state
        manifest = json.loads((self.folder / 'parts' / 'checkpoints' / 'step-000004' / 'manifest.json').read_text())
        self.assertEqual((manifest['skipped_updates'], manifest['loss_scale']), (4, {'value': 2 ** 29, 'clean_steps': 0, 'overflows': 4}))
        done = common.run([*flags, '--loss-scale-floor', 2 ** 32, '-o', self.folder / 'floor'])
        self.assertEqual(done.code, 6, done.err)
        self.assertRegex(done.err, r'error: step 2 gave a gradient that is not finite with the loss scale 4294967296, which --loss-scale-floor ')

    def test_state_on_the_host(self):
        """In 16 bits, with steps that overflow in f16: the bits of a run whose state is on the device. The host's sums of squares, of which a step without
        clipping uses only whether they are finite, have other last bits. Where passes wait for weights, other products have epilogues, which round less."""
        model = self.model('gpt2-tiny')
        for precision, strategy, places in (('bf16', 'zero2', ('optimizer',)), ('bf16', 'zero3', ('weights',)), ('f16', 'zero2', ('optimizer', 'gradients'))):
            losses, norms, bits = {}, {}, {}
            for place in ('none', *places):
                program = self.program(self.emit(model, '--cluster', 'h200:2', '--strategy', strategy, '--precision', precision, '--offload', place))
                run = self.folder / f'{precision}-{strategy}-{place}'
                self.succeed([program, '--data', model / 'batches.safetensors', '--steps', '4', *(('--loss-scale', 2 ** 17) if precision == 'f16' else ()), '-o', run])
                rows = [json.loads(line) for line in (run / 'metrics.jsonl').read_text().splitlines()]
                losses[place], norms[place] = [row['loss'] for row in rows], [row['grad_norm'] for row in rows]
                bits[place] = self.digests(run, 4)
            self.assertEqual(len(losses['none']), 4)
            for place in places:
                if place == 'weights':
                    self.assert_close(losses[place], losses['none'], 1e-4)
                    self.assert_close(norms[place], norms['none'], 1e-3)
                    continue
                self.assertEqual((losses[place], bits[place]), (losses['none'], bits['none']))
                self.assert_close(norms[place], norms['none'], 1e-6 if place == 'gradients' else 0)

    def test_bf16_gradients(self):
        """Gradients that travel in bf16 are those in f32 but for the rounding, over ranks, to the host, of one micro-batch and of several."""
        model = self.model('gpt2-tiny')
        for strategy, offload, precision, micro_batches in (('ddp', 'none', 'bf16', 2), ('zero1', 'none', 'f32', 4), ('zero3', 'none', 'bf16', 2),
                                                            ('zero2', 'gradients', 'bf16', 4), ('zero2', 'optimizer', 'f16', 2)):
            found = {}
            for name, flags in (('f32', ()), ('bf16', ('--bf16-gradients',))):
                program = self.program(self.emit(model, '--cluster', 'h200:2', '--strategy', strategy, '--precision', precision, '--offload', offload,
                                                 '--micro-batches', str(micro_batches), *flags))
                run, dump = self.folder / f'gradients-{name}', self.folder / f'gradients-{name}.safetensors'
                self.succeed([program, '--data', model / 'batches.safetensors', '--micro-batches', str(micro_batches), '--steps', '2', '--dump-gradients', dump, '-o', run])
                found[name] = [json.loads(line)['loss'] for line in (run / 'metrics.jsonl').read_text().splitlines()], safetensors_file.read(dump)
                shutil.rmtree(run)
            (losses, gradients), (rounded_losses, rounded) = found['f32'], found['bf16']
            with self.subTest(strategy=strategy, offload=offload, precision=precision):
                self.assertEqual(rounded_losses[0], losses[0])
                self.assertNotEqual(rounded_losses[1], losses[1])
                self.assert_close(rounded_losses, losses, 1e-3)
                for name, gradient in gradients.items():
                    largest = abs(gradient).max()
                    self.assertLessEqual(abs(rounded[name] - gradient).max(), 0.01 * largest, name)
                    if micro_batches == 2 and precision == 'bf16':  # what one micro-batch of a rank makes stays as it was sent
                        self.assertFalse((rounded[name].view('u4') & 0xffff).any(), name)

    def assert_close(self, found, expected, bound):
        """Whether numbers, or None for those that are not finite, are the same within a relative bound."""
        for one, other in zip(found, expected, strict=True):
            self.assertTrue(one == other or math.isclose(one, other, rel_tol=bound), (one, other))

    def test_ranks_that_share_a_device(self):
        model = self.model('mlp')
        program = self.program(self.emit(model, '--cluster', 'h200:2', '--strategy', 'ddp'))
        self.compare(program, model)
        self.check_timelines(program, model, '--cluster', 'h200:2', '--strategy', 'ddp')
        # What a machine can lack ends the run before it begins.
        for environment, message in (
                (dict(DRIVER='0'), 'this machine has no driver for CUDA devices; '),
                (dict(DRIVER='12040'), 'the driver is for CUDA 12.4, the program was built with CUDA 13.0; update the driver'),
                (dict(DEVICES='0'), 'this machine has no CUDA device; '),
                (dict(DEVICES='0', CUDA_VISIBLE_DEVICES='7'), "no CUDA device is visible: CUDA_VISIBLE_DEVICES is '7', which names none "),
                (dict(CUDA_VISIBLE_DEVICES='0,0'), "CUDA_VISIBLE_DEVICES is '0,0' and names 2 devices, of which the driver shows 1; "),
                (dict(KERNELS='0'), 'the program was not compiled for device 0, emulated on the processor of architecture sm_90; build with '
                                    '-DCMAKE_CUDA_ARCHITECTURES=90'),
                (dict(FREE='1000'), r'device 0 has 1000 of 1099511627776 bytes free, the plan needs \d+ for rank [01]; end what else runs there')):
            with self.subTest(environment):
                environment = {key if key.startswith('CUDA') else f'WINDLASS_EMULATED_{key}': value for key, value in environment.items()}
                done = common.run([program, '--data', model / 'batches.safetensors', '--steps', '1', '-o', self.folder / 'refused'], env=environment)
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, rf'^error: [^\n]*{message}[^\n]* \[WL\d+\]\n$')
                self.assertFalse((self.folder / 'refused' / 'metrics.jsonl').exists())


@unittest.skipUnless(NVCC, 'nvcc is not installed: programs for CUDA devices are not compiled')
class Compiled(CudaTest):
    def emit_for_library(self, model):
        """A project whose attentions the library computes."""
        flags = ('--cluster', 'h200:1', '--strategy', 'ddp')
        plain, project = self.emit(model, *flags), self.emit(model, *flags, '--precision', 'bf16')
        # The large headers are for those that call the library.
        for folder, wanted in ((plain, 'OFF'), (project, 'ON')):
            self.assertIn(f'set(WINDLASS_CUDNN {wanted} CACHE', (folder / 'CMakeLists.txt').read_text())
        self.assertIn('constexpr attention_choice attentions[] = {', (project / 'src' / 'tables.cpp').read_text())
        return project

    def test_headers_of_python_packages(self):
        """Where the toolkit has no cuDNN, CMake finds its headers where pip installs them; what is in neither place is asked for by its name."""
        base = self.folder / 'user-base'
        packages = pathlib.Path(sysconfig.get_path('purelib', 'posix_user', {'userbase': str(base)}))
        # What the system and its toolkit have is hidden.
        hidden = {str(folder) for path in ('/usr/include', '/usr/local/include', *glob.glob('/usr/local/cuda*/include'))
                  for folder in (pathlib.Path(path), pathlib.Path(path).resolve())}
        words = ['cmake', '-S', common.ROOT / 'runtime', '-G', 'Ninja', '-DWINDLASS_BACKEND=cuda', '-DWINDLASS_MPI=OFF', *COMPILED,
                 f'-DCMAKE_IGNORE_PATH={";".join(sorted(hidden))}', '-DWINDLASS_CUDNN=ON']
        tools = self.folder / 'tools'
        tools.mkdir()
        (tools / 'python3').symlink_to(pathlib.Path(sys.executable).resolve())  # outside of the environment that tests run in
        environment = {'PYTHONUSERBASE': str(base), 'PATH': f'{tools}:{os.environ["PATH"]}'}
        refused = common.run([*words, '-B', self.folder / 'without'], env=environment)
        self.assertNotEqual(refused.code, 0)
        self.assertRegex(' '.join(refused.err.split()), 'install the Python packages nvidia-cudnn-cu13 and nvidia-cudnn-frontend, or name')
        for header in (packages / 'nvidia' / 'cudnn' / 'include' / 'cudnn.h', packages / 'include' / 'cudnn_frontend.h'):
            header.parent.mkdir(parents=True)
            header.touch()
        self.succeed([*words, '-B', self.folder / 'with'], env=environment)
        cache = (self.folder / 'with' / 'CMakeCache.txt').read_text()
        self.assertIn(f'\nWINDLASS_CUDNN_INCLUDE:PATH={packages}/nvidia/cudnn/include\n', cache)
        self.assertIn(f'\nWINDLASS_CUDNN_FRONTEND_INCLUDE:PATH={packages}/include\n', cache)

    def test_programs_link_and_want_a_device(self):
        runtime, headers = BUILD / 'cuda', pathlib.Path(sysconfig.get_paths()['purelib']) / 'include'
        model = pathlib.Path(common.prepared('gpt2-tiny', self.folder))
        projects = [self.emit(model, '--cluster', 'h200:1'), self.emit_for_library(model)]
        ways = [(['-DWINDLASS_CUDNN=OFF'], projects[-1:]), (['-DWINDLASS_CUDNN=ON', f'-DWINDLASS_CUDNN_FRONTEND_INCLUDE={headers}'], projects)]
        if not (headers / 'cudnn_frontend.h').exists() or not CUDNN:
            print('cuDNN or its frontend is not installed: attention by it is not compiled')
            ways[1][0][:] = ['-DWINDLASS_CUDNN=OFF']
        for library, linked in ways:
            self.build(common.ROOT / 'runtime', runtime, [*COMPILED, '-DWINDLASS_WERROR=ON', '-DCMAKE_BUILD_TYPE=Release', *library])
            for project in linked:
                self.build(project, project / 'build', [*COMPILED, f'-DWINDLASS_RUNTIME_BUILD={runtime}', '-DCMAKE_CUDA_FLAGS=-Werror=all-warnings -Xcompiler=-Werror', '-DCMAKE_CXX_FLAGS=-Werror'])
                if shutil.which('nvidia-smi') and common.run(['nvidia-smi']).code == 0:
                    continue  # a device is there, and scripts/gpu-check runs this on it
                done = common.run([project / 'build' / 'train', '--data', model / 'batches.safetensors', '--steps', '1', '-o', self.folder / 'run'])
                self.assertEqual(done.code, 1, done.err)
                self.assertRegex(done.err, r'^error: .*(driver|device).* \[WL0505\]\n$')


if __name__ == '__main__':
    if sys.argv[1:2] == ['architectures']:
        del sys.argv[1], Emulated
    common.main()
