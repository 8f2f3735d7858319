"""windlass-lsp-server knows the dialects of every level: no complaint about good text, errors at their place, help at an operation."""

import json
import subprocess

import common


class Server:
    def __init__(self):
        self.process = subprocess.Popen([common.WINDLASS.with_name('windlass-lsp-server')], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.id = 0

    def send(self, method, parameters, wants_answer=False):
        message = {'jsonrpc': '2.0', 'method': method, 'params': parameters}
        if wants_answer:
            self.id += 1
            message['id'] = self.id
        text = json.dumps(message).encode()
        self.process.stdin.write(b'Content-Length: %d\r\n\r\n%s' % (len(text), text))
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.process.stdout.readline().strip()):
            if line.lower().startswith(b'content-length:'):
                length = int(line.split(b':')[1])
        return json.loads(self.process.stdout.read(length))

    def ask(self, method, parameters):
        self.send(method, parameters, True)
        while True:
            answer = self.receive()
            if answer.get('id') == self.id:
                return answer['result']


class LanguageServerTest(common.Case):
    def setUp(self):
        super().setUp()
        self.server = Server()
        self.addCleanup(self.stop)
        self.server.ask('initialize', {'processId': None, 'rootUri': None, 'capabilities': {}})
        self.server.send('initialized', {})

    def stop(self):
        self.server.process.kill()
        self.server.process.communicate()

    def complaints(self, name, text):
        uri = f'file:///{name}.mlir'
        self.server.send('textDocument/didOpen', {'textDocument': {'uri': uri, 'languageId': 'mlir', 'version': 1, 'text': text}})
        while True:
            message = self.server.receive()
            if message.get('method') == 'textDocument/publishDiagnostics' and message['params']['uri'] == uri:
                return message['params']['diagnostics']

    def test_every_level(self):
        for path in ('Dialect/Train/ops.mlir', 'Dialect/Onnx/ops.mlir', 'Dialect/Sched/Transforms/Inputs/gpt.mlir', 'Dialect/Plan/Transforms/Inputs/mlp.mlir'):
            with self.subTest(path):
                self.assertEqual(self.complaints(path.replace('/', '-'), (common.ROOT / 'test' / path).read_text()), [])

    def test_errors(self):
        found = self.complaints('bad', '\ntrain.nothing\n')
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]['range']['start']['line'], 1)

    def test_help_at_an_operation(self):
        text = (common.ROOT / 'test' / 'Dialect' / 'Train' / 'ops.mlir').read_text()
        self.assertEqual(self.complaints('hover', text), [])
        line = next(i for i, row in enumerate(text.splitlines()) if ' train.' in row and not row.lstrip().startswith('//'))
        column = text.splitlines()[line].index('train.') + 2
        answer = self.server.ask('textDocument/hover', {'textDocument': {'uri': 'file:///hover.mlir'}, 'position': {'line': line, 'character': column}})
        self.assertIn('train.', answer['contents']['value'])


common.main()
