"""Bad input ends with one line that names the cause, the exit code of its kind, and no crash."""

import onnx
from onnx import TensorProto, helper

import common

BAD_INPUT, USAGE, UNSUPPORTED = 1, 2, 4


class BadInputCase(common.Case):
    def expect(self, code, words, *arguments, lines=1):
        """windlass must end with `code` and say each of `words`; `lines` bounds what it says on standard error."""
        outcome = common.windlass(*arguments)
        said = f'windlass {" ".join(map(str, arguments))}\nexit code {outcome.code}\n{outcome.err[-2000:]}'
        self.assertEqual(outcome.code, code, said)
        for word in words:
            self.assertIn(word.lower(), outcome.err.lower(), said)
        spoken = [line for line in outcome.err.splitlines() if line.strip()]
        self.assertTrue(spoken, said)
        if lines:
            self.assertLessEqual(len(spoken), lines, said)
        return outcome


class ModelTest(BadInputCase):
    def test_missing_file(self):
        self.expect(BAD_INPUT, ['none.onnx'], 'check', self.folder / 'none.onnx')

    def test_folder_instead_of_a_file(self):
        self.expect(BAD_INPUT, [self.folder.name], 'check', self.folder)

    def test_empty_file(self):
        path = self.folder / 'empty.onnx'
        path.write_bytes(b'')
        self.expect(BAD_INPUT, ['empty.onnx'], 'check', path)

    def test_truncated_file(self):
        whole = self.small_gpt().read_bytes()
        path = self.folder / 'cut.onnx'
        for length in (1, 7, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(length):
                path.write_bytes(whole[:length])
                self.expect(BAD_INPUT, ['cut.onnx'], 'check', path)

    def test_truncated_gzip(self):
        whole = (common.MODELS / 'moe-tiny' / 'graph.onnx.gz').read_bytes()
        path = self.folder / 'cut.onnx.gz'
        path.write_bytes(whole[:len(whole) // 2])
        self.expect(BAD_INPUT, ['cut.onnx.gz'], 'check', path)

    def test_foreign_files(self):
        foreign = {'text.onnx': b'This is a text and no model.\n' * 50, 'elf.onnx': common.WINDLASS.read_bytes()[:65536],
                   'zeros.onnx': bytes(4096), 'picture.onnx': b'\x89PNG\r\n\x1a\n' + bytes(range(256)) * 8,
                   'weights.onnx': (common.MODELS / 'mlp' / 'final.safetensors').read_bytes()}
        for name, data in foreign.items():
            with self.subTest(name):
                path = self.folder / name
                path.write_bytes(data)
                self.expect(BAD_INPUT, [name], 'check', path)

    def model(self, nodes, inputs, output, initializers=()):
        graph = helper.make_graph(nodes, 'graph', inputs, [output], list(initializers))
        path = self.folder / 'made.onnx'
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)], ir_version=10), str(path))
        return path

    def weight(self, *shape):
        return helper.make_tensor('w', TensorProto.FLOAT, shape, [0.5] * (shape[0] * shape[1]))

    def test_unknown_operator(self):
        x = helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, 4])
        loss = helper.make_tensor_value_info('loss', TensorProto.FLOAT, [])
        nodes = [helper.make_node('MatMul', ['x', 'w'], ['a']), helper.make_node('Frobnicate', ['a'], ['b'], name='odd'),
                 helper.make_node('Transmogrify', ['b'], ['c']), helper.make_node('ReduceMean', ['c'], ['loss'], keepdims=0)]
        path = self.model(nodes, [x], loss, [self.weight(4, 4)])
        self.expect(UNSUPPORTED, [], 'check', path, lines=0)
        outcome = common.windlass('check', path)
        for name in ('Frobnicate', 'Transmogrify'):
            self.assertIn(name, outcome.out + outcome.err, 'all unsupported operators are to be named at once')

    def test_loss_that_is_not_scalar(self):
        x = helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, 4])
        out = helper.make_tensor_value_info('out', TensorProto.FLOAT, [4, 4])
        path = self.model([helper.make_node('MatMul', ['x', 'w'], ['out'])], [x], out, [self.weight(4, 4)])
        self.expect(BAD_INPUT, ['out', 'scalar'], 'check', path)

    def test_named_loss_that_does_not_exist(self):
        self.expect(BAD_INPUT, ['elsewhere'], 'check', self.small_gpt(), '--loss', 'elsewhere')

    def test_external_data_outside_the_folder(self):
        path = self.small_gpt(external=True)
        model = onnx.load(str(path), load_external_data=False)
        for entry in model.graph.initializer[0].external_data:
            if entry.key == 'location':
                entry.value = '../../etc/passwd'
        path.write_bytes(model.SerializeToString())
        self.expect(BAD_INPUT, ['passwd'], 'check', path)


class UsageTest(BadInputCase):
    def test_usage(self):
        model = self.small_gpt()
        for arguments in ((), ('frobnicate',), ('check',), ('check', model, '--no-such-flag'), ('train', model, '-n', 'two'),
                          ('train', model, '-n', '0')):
            with self.subTest(arguments):
                self.expect(USAGE, [], *arguments, lines=0)

    def test_help_and_version(self):
        self.assertRegex(self.succeed('--version').out, r'^windlass \d+\.\d+\.\d+')
        self.assertIn('train', self.succeed('--help').out)


class TrainTest(BadInputCase):
    def train(self, code, words, model, data, *extra):
        run = self.folder / 'run'
        outcome = self.expect(code, words, 'train', model, '--data', data, '--steps', 2, '-o', run, *extra, lines=0)
        spoken = [line for line in outcome.err.splitlines() if 'error' in line.lower()]
        self.assertLessEqual(len(spoken), 1, outcome.err[-2000:])
        return outcome

    def text(self, data):
        path = self.folder / 'data.txt'
        path.write_bytes(data)
        return path

    def test_missing_data(self):
        self.train(BAD_INPUT, ['none.txt'], self.small_gpt(), self.folder / 'none.txt', '--bytes')

    def test_short_data(self):
        self.train(BAD_INPUT, ['data.txt'], self.small_gpt(), self.text(b'too short'), '--bytes')

    def test_token_ids_beyond_the_vocabulary(self):
        self.train(BAD_INPUT, ['data.txt', '255'], self.small_gpt(vocabulary=100), self.text(bytes([255]) * 4096), '--bytes')

    def test_explicit_batches_that_run_out(self):
        model = self.small_gpt()
        self.train(BAD_INPUT, ['batches.safetensors', 'input_ids.1'], model, self.batches(model, 1))

    def test_foreign_safetensors(self):
        path = self.folder / 'odd.safetensors'
        for data in (b'', b'\xff' * 8, b'\x10' + bytes(7) + b'{"a":' + bytes(16)):
            with self.subTest(data[:8]):
                path.write_bytes(data)
                self.train(BAD_INPUT, ['odd.safetensors'], self.small_gpt(), path)

    def test_ranks_that_do_not_fit(self):
        model = self.small_gpt()
        outcome = self.train(BAD_INPUT, ['3'], model, self.batches(model, 4), '-n', 3, '--strategy', 'ddp')
        self.assertIn('4', outcome.err, 'the batch of 4 is to be named')

    def test_plan_that_contradicts_a_flag(self):
        model, plan = self.small_gpt(), self.folder / 'plan.json'
        self.succeed('plan', model, '--cluster', 'cpu:2', '--strategy', 'ddp', '-o', plan)
        self.train(BAD_INPUT, ['-n', '2', '4'], model, self.batches(model, 4), '--plan', plan, '-n', 4)

    def test_foreign_plan(self):
        model, plan = self.small_gpt(), self.folder / 'plan.json'
        for text in ('', '{', '[]', '{"version": 999}', '[' * 100000):
            with self.subTest(text[:10]):
                plan.write_text(text)
                self.expect(BAD_INPUT, ['plan.json'], 'emit', model, '--plan', plan, '-o', self.folder / 'project')

    def test_foreign_checkpoint(self):
        self.expect(BAD_INPUT, [], 'checkpoint', 'export', self.folder, '-o', self.folder / 'merged.safetensors')


common.main()
