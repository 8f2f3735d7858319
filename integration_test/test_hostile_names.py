"""A model whose names are made to break out of what they are put into, from the import to the exported checkpoint: nothing of them is
executed, the program compiles without a warning, labels of its code have letters, digits, '_' and '.' of them only, and the checkpoint's
keys are the names as they are."""

import json
import os

import onnx

import common
from windlass_models import files, safetensors_file

# Quotes, ends and beginnings of comments, line ends, shell and CMake expansions, trigraphs, formats, markup, paths.
PIECES = ('*/', "'", '\n', '\r\n', '"', '/*', '//', '$(touch owned)', '`touch owned`', '${CMAKE_BINARY_DIR}', '$<1:x>', '\\', '\\"', '\\\n', '??/', '??/\n',
          '"); system("touch owned"); ("', 'R"(', ')"', '%s%n', '<script>alert(1)</script>', '</title>', '../../owned', '/owned', '-o owned', '; touch owned',
          '|| touch owned', '\x1b[2J', '\x7f', '\u202e', 'naïve 漢字', '@', '{', '}', '[0]', 'x' * 4000, ' ', '#pragma', '#include "owned"')


class HostileNamesTest(common.Case):
    def hostile(self, path):
        """Changes every name of the model at `path`; returns the model, and micro-batches for it."""
        model = onnx.load(str(path))
        batches = files.random_batches(model, 8, 0)
        graph, names = model.graph, {}

        def rename(name):
            # Names that differ in such characters only are names of different things.
            pieces = len(names)
            return names.setdefault(name, f'{PIECES[pieces % len(PIECES)]}{pieces // len(PIECES)}' if name else '')

        for tensor in graph.initializer:
            tensor.name = rename(tensor.name)
        pairs = iter(('w.0', 'w_0', 'w-0', 'w 0'))
        for tensor, name in zip(list(graph.initializer)[-4:], pairs):
            names[next(old for old, new in names.items() if new == tensor.name)] = name
            tensor.name = name
        for info in (*graph.input, *graph.output, *graph.value_info):
            info.name = rename(info.name)
        for index, node in enumerate(graph.node):
            node.input[:] = [rename(name) for name in node.input]
            node.output[:] = [rename(name) for name in node.output]
            node.name = PIECES[index % len(PIECES)]
            for entry in node.metadata_props:
                if entry.key == 'pkg.torch.onnx.name_scopes':
                    piece = PIECES[(index // 2 + 33) % len(PIECES)].replace("'", '')
                    entry.value = f"['', '{piece}', 'call']"
        graph.name = ''.join(PIECES[:-5])[:2000]
        onnx.save(model, str(path))
        data = self.folder / 'batches.safetensors'
        safetensors_file.write({f'{names[key.rpartition(".")[0]]}.{key.rpartition(".")[2]}': array for key, array in batches.items()}, data)
        return model, data

    def check_operators(self, model, frozen, built, run):
        """Operators' names are in timelines as they are, and in nothing that is compiled or run."""
        self.succeed('simulate', model, '--cluster', 'cpu:2', '--freeze', frozen, '-o', self.folder / 'predicted.json')
        predicted, measured = (
            sorted((event['tid'], event['ts'], event['name'], event['args'].get('operator', '')) for event in json.loads(file.read_text())['traceEvents'] if event['ph'] == 'X')
            for file in (self.folder / 'predicted.json', run / 'traces' / 'rank_00001.json'))
        self.assertEqual([(thread, kernel, name) for thread, _, kernel, name in measured], [(thread, kernel, name) for thread, _, kernel, name in predicted])
        operators = {name for _, _, _, name in measured if name}
        for piece in ('$(touch owned)', '*/', '"); system("touch owned"); ("', '<script>'):
            self.assertTrue([each for each in operators if piece in each], piece)
        self.assertTrue([each for each in operators if each.endswith('xxx...')])
        self.assertLess(max(len(each.encode()) for each in operators), 1024)
        for file in (built / 'CMakeLists.txt', built / 'run.sh', built / 'run.slurm', *(built / 'src').iterdir()):
            text = file.read_text()
            self.assertEqual([each for each in operators if each in text or json.dumps(each) in text], [], file.name)
        # Comments of code have words and labels, a line each, of a bounded length.
        labelled = 0
        for name in ('step.cpp', 'buffers.h', 'rows.h'):
            for line in (built / 'src' / name).read_text().split('\n')[2:]:  # behind the file's first comment
                self.assertTrue(all(' ' <= each <= '~' for each in line), line)
                code, _, comment = (' ' + line).partition(' // ')
                self.assertRegex(comment, r'^[A-Za-z0-9_.,\' ]*$')
                self.assertLess(len(comment), 350)
                self.assertNotIn('??', code)
                labelled += any(len(word) > 20 and word.count('_') > 2 for word in comment.split())
        self.assertGreater(labelled, 20)

    def test_whole_life(self):
        model, data = self.hostile(self.small_gpt(tokens=8, width=16, vocabulary=32))
        path, run, work = self.folder / '$(touch owned)<script>"\\.onnx', self.folder / 'run', self.folder / 'work'
        (self.folder / 'small.onnx').rename(path)
        work.mkdir()

        def train(*flags):
            return self.succeed('train', path, '--data', data, '-o', run, '--freeze', model.graph.initializer[-1].name, *flags, cwd=work)

        before = set(os.listdir(self.folder))
        plan = self.folder / 'plan.json'
        self.succeed('check', path, '-v', cwd=work)
        self.succeed('plan', path, '--cluster', 'cpu:2', '-o', plan, '--html', run.with_suffix('.html'), cwd=work)
        outcome = train('-n', 2, '--steps', 2, '-v', '--profile')
        built = common.built_folder(outcome)
        self.assertNotIn('warning', (built / 'build.log').read_text())
        self.check_operators(path, model.graph.initializer[-1].name, built, run)
        train('-n', 2, '--steps', 4, '--resume')
        # A plan whose keys are such names is read again.
        self.succeed('emit', path, '--plan', plan, '-o', self.folder / 'project', cwd=work)
        self.assertEqual(json.loads((self.folder / 'project' / 'plan.json').read_text()), json.loads(plan.read_text()))
        exported = self.folder / 'merged.safetensors'
        self.succeed('checkpoint', 'inspect', run, cwd=work)
        self.succeed('checkpoint', 'export', run, '--state', '-o', exported, cwd=work)
        self.succeed('report', run, cwd=work)
        floats = {tensor.name for tensor in model.graph.initializer if tensor.data_type == onnx.TensorProto.FLOAT and tensor.dims}
        held = safetensors_file.read(exported)
        self.assertEqual({name for name in held if not name.endswith(('/exp_avg', '/exp_avg_sq'))}, floats)
        self.assertEqual({name.rpartition('/')[0] for name in held if name.endswith('/exp_avg')}, floats - {model.graph.initializer[-1].name})
        self.assertEqual(len(held), 3 * len(floats) - 2)
        record = json.loads((run / 'run.json').read_text())
        self.assertEqual(record['model'], path.name)
        for page in (run / 'report.html', run.with_suffix('.html')):
            self.assertNotIn('<script', page.read_text())
            self.assertIn('&lt;script&gt;', page.read_text())
        # Nothing was executed, and nothing was written elsewhere.
        self.assertEqual(os.listdir(work), [])
        self.assertEqual(set(os.listdir(self.folder)) - before, {'plan.json', 'plan.cert', 'predicted.json', 'run', 'run.html', 'project', 'merged.safetensors'})
        self.assertFalse(list(self.folder.rglob('owned*')))

    def test_names_that_no_file_can_hold(self):
        for what, change in (('initializer', lambda graph, name: setattr(graph.initializer[0], 'name', name)),
                             ('node', lambda graph, name: setattr(graph.node[0], 'name', name)), ('graph', lambda graph, name: setattr(graph, 'name', name))):
            for name, word in (('placeholder', 'UTF-8'), ('x' * 10000, 'exceeds the budget')):
                with self.subTest(what, name=name[:11]):
                    path = self.small_gpt()
                    model = onnx.load(str(path))
                    change(model.graph, name)
                    for bad in (b'a\0aaaaaaaaa', b'aaaa\xff\xfeaaaaa'):
                        path.write_bytes(model.SerializeToString().replace(b'placeholder', bad))
                        outcome = common.windlass('check', path)
                        self.assertEqual(outcome.code, 1, outcome.err)
                        self.assertIn(word, outcome.err)
                        self.assertEqual(len(outcome.err.splitlines()), 1)


common.main()
