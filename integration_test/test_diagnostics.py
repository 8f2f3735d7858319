"""Every code in the table of diagnostics can be met, is printed at the end of its one line with its exit code, and is explained."""

import json
import signal
import subprocess
import time

import numpy
import onnx
from onnx import TensorProto, helper

import common

# The codes that a test cannot bring about with the tools as they are.
NOT_MET = {
    'WL0401': 'needs a plan that legality checks accept and a pass refuses',
    'WL0505': 'needs a machine without OpenBLAS',
    'WL0506': 'tested by the runtime itself: Diagnostics.AnArenaThatCannotBe',
    'WL0902': 'needs a rank that dies; tests of kills',
    'WL0999': 'needs an error of Windlass',
}


class DiagnosticsTest(common.Case):
    def tiny(self, nodes, weight=(4, 4), **names):
        x = helper.make_tensor_value_info(names.get('input', 'x'), TensorProto.FLOAT, [4, 4])
        loss = helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])
        w = helper.make_tensor('w', TensorProto.FLOAT, weight, [0.5] * (weight[0] * weight[1]))
        path = self.folder / 'tiny.onnx'
        graph = helper.make_graph([helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes], 'g', [x], [loss], [w])
        if 'signature' in names:
            graph.metadata_props.add(key='pkg.torch.export.ExportedProgram.graph_signature', value=names['signature'])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=10), str(path))
        return path

    def meet(self, code, *words, **options):
        outcome = common.windlass(*words, **options)
        errors = [line for line in outcome.err.splitlines() if 'error: ' in line or 'interrupted' in line]
        self.assertEqual(len(errors), 1, outcome.err)
        self.assertTrue(errors[0].endswith(f' [{code}]'), f'{code} expected: {errors[0]}')
        self.assertEqual(outcome.code, self.table[code]['exit_code'], outcome.err)
        self.met.add(code)

    def test_every_code(self):
        self.met = set()
        self.table = {row['code']: row for row in json.loads(self.succeed('explain', '--json').out)}
        model, missing = self.small_gpt(), self.folder / 'missing'
        text = self.folder / 'text.json'
        text.write_text('{"unknown": 1}')
        data = self.folder / 'data.bin'
        data.write_bytes(bytes(range(256)) * 20)

        self.meet('WL0001', 'frobnicate')
        self.meet('WL0001', 'check', model, '--frobnicate')
        self.meet('WL0002', 'train', model, '--config', text)
        plan = self.folder / 'plan.json'
        self.succeed('plan', model, '--cluster', 'cpu:2', '--strategy', 'ddp', '-o', plan)
        self.meet('WL0003', 'train', model, '--plan', plan, '-n', 4, '--data', data, '--bytes')
        full = self.folder / 'full'
        full.mkdir()
        (full / 'file').write_text('of another')
        self.meet('WL0004', 'emit', model, '-o', full)

        self.meet('WL0101', 'check', missing)
        self.meet('WL0102', 'check', text)
        self.meet('WL0103', 'check', self.tiny([('MatMul', ['a' * 5000, 'w'], ['loss'])], input='a' * 5000))
        external = self.small_gpt('external.onnx', external=True)
        held = onnx.load(str(external), load_external_data=False)
        held.graph.initializer[0].external_data[0].value = '../../etc/passwd'
        outside = self.folder / 'outside.onnx'
        outside.write_bytes(held.SerializeToString())
        self.meet('WL0104', 'check', outside)
        self.meet('WL0105', 'check', model, '--dim', 'nothing=3')
        self.meet('WL0106', 'check', model, '--loss', 'nothing')
        self.meet('WL0107', 'check', self.tiny([('Frobnicate', ['x', 'w'], ['loss'])]))
        self.meet('WL0108', 'check', self.tiny([('MatMul', ['x', 'w'], ['y']), ('ReduceMean', ['y'], ['loss'], {'keepdims': 0})], weight=(3, 4)))
        self.meet('WL0109', 'check', self.tiny([('MatMul', ['x', 'w'], ['y']), ('ReduceMean', ['y'], ['loss'], {'keepdims': 0})], signature='nothing'))
        self.meet('WL0110', 'check', common.MODELS / 'exports' / 'gpt.default.onnx.gz')
        self.meet('WL0111', 'check', common.MODELS / 'gpt2-tiny-default' / 'graph.onnx.gz', '--strict')
        self.meet('WL0201', 'plan', model, '--cluster', 'cpu:1', '--freeze', '*')
        self.meet('WL0202', 'plan', model, '--cluster', 'cpu:1', '--freeze', 'nothing*')
        mean = self.tiny([('MatMul', ['x', 'w'], ['y']), ('ReduceMean', ['y'], ['loss'], {'keepdims': 0})])
        self.meet('WL0203', 'plan', mean, '--cluster', 'cpu:1', '--average', 'tokens')
        self.meet('WL0301', 'plan', model, '--cluster', 'tpu:1')
        self.meet('WL0302', 'emit', model, '--plan', text, '-o', missing)
        self.meet('WL0303', 'emit', self.small_gpt('other.onnx', width=16), '--plan', plan, '-o', missing)
        self.meet('WL0304', 'plan', model, '--cluster', 'cpu:3', '--strategy', 'ddp')
        self.meet('WL0305', 'plan', model, '--cluster', 'cpu:1', '--memory-limit', '1KiB')
        self.meet('WL0307', 'plan', model, '--cluster', 'cpu:2', '--pin', 'nothing=whole')
        self.meet('WL0308', 'plan', model, '--cluster', 'cpu:2', '--strategy', 'ddp', '--onnx-pins', 'nothing')
        self.meet('WL0311', 'plan', model, '--cluster', 'cpu:2', '--costs', text)
        self.meet('WL0312', 'schedule', text)
        self.meet('WL0313', 'schedule', '--ranks', 2, '--micro-batches', 2, '--cap', 0.5)
        self.meet('WL0306', 'emit', model, '--cluster', 'cpu:1', '--precision', 'bf16', '-o', missing)
        self.meet('WL0309', 'plan', model, '--verify', plan)
        self.meet('WL0310', 'plan', model, '--cluster', 'h200:8', '--strategy', 'auto', '--max-ratio', 1)

        train = ('train', model, '--bytes', '--steps', 2, '-o', self.folder / 'run', '--data')
        self.meet('WL0501', *train, data, env={'PATH': str(missing)})
        self.meet('WL0502', *train, data, env={'CXX': '/bin/false', 'XDG_CACHE_HOME': str(self.folder / 'cache')})
        self.meet('WL0503', *train, data, env={'XDG_CACHE_HOME': str(text)})
        self.succeed(*train, data)
        self.succeed('train', model, '-n', 2, '--bytes', '--steps', 1, '--data', data, '-o', self.folder / 'two')
        self.meet('WL0504', *train, data, '-n', 2, env={'PATH': str(missing), 'CXX': '/usr/bin/c++'})
        held_run = train
        train = ('train', model, '--bytes', '--steps', 2, '-o', missing, '--data')
        self.meet('WL0601', *train, missing)
        short = self.folder / 'short.bin'
        short.write_bytes(b'short')
        self.meet('WL0602', *train, short)
        self.meet('WL0603', *train, data, '--inputs', 'nothing=tokens')
        numpy.save(self.folder / 'ids.npy', numpy.full(4096, 300, numpy.int32))
        self.meet('WL0604', 'train', model, '--data', self.folder / 'ids.npy', '-o', missing)
        self.meet('WL0701', *train, data, '--parameters', missing)
        self.meet('WL0801', *held_run, data)
        self.meet('WL0802', 'checkpoint', 'inspect', self.folder)
        self.meet('WL0901', *train, data, '--lr', '1e38', '--steps', 20, '-o', self.folder / 'nan')
        self.interrupt(model, data)
        self.meet('WL0990', 'report', self.folder)

        self.assertEqual(self.met | set(NOT_MET), set(self.table), 'a code that nothing brings about')
        self.assertFalse(self.met & set(NOT_MET), 'met after all')

    def interrupt(self, model, data):
        run = self.folder / 'interrupted'
        words = ['train', model, '--bytes', '--steps', 100000000, '--data', data, '-o', run]
        process = subprocess.Popen([str(word) for word in [common.WINDLASS, *words]], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while not (run / 'metrics.jsonl').exists() or not (run / 'metrics.jsonl').read_text():
            self.assertLess(time.monotonic(), deadline, 'no step was made')
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, self.table['WL0903']['exit_code'], said)
        self.assertRegex(said, r'interrupted after step \d+.* \[WL0903\]\n')
        self.met.add('WL0903')

    def test_explain(self):
        table = json.loads(self.succeed('explain', '--json').out)
        for row in table:
            self.assertRegex(row['code'], r'^WL\d{4}$')
            self.assertGreater(len(row['explanation']), 60)
            self.assertRegex(row['explanation'], r'\.$')
            self.assertNotRegex(row['explanation'], r'\w\w[A-Z][a-z]+ing|  ', 'two words that were joined')
        self.assertEqual([row['code'] for row in table], sorted({row['code'] for row in table}))
        for name in ('WL0305', 'wl0305', '305', '0305'):
            self.assertEqual(json.loads(self.succeed('explain', name, '--json').out)['code'], 'WL0305')
        text = self.succeed('explain', 'WL0305').out
        self.assertTrue(text.startswith('WL0305: no plan fits in memory (exit code 3)\n'))
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        for name in ('WL9999', 'frobnicate', '', '99999999999999999999', '-1', 'WL'):
            self.assertEqual(common.windlass('explain', name).code, 2, name)


common.main()
