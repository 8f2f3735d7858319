"""Modules of PyTorch and transformers, freshly initialised, from `windlass.export` to `windlass.compare`. Needs torch, transformers,
timm and onnxscript: see test_recipe.py.

    test_torch.py              a few models closely, and what export and compare refuse
    test_torch.py families     all families of torch_models.py, also as PyTorch's exporter writes them by its defaults
"""

import collections
import json
import re
import shutil
import sys

import numpy
import pyarrow
import pyarrow.parquet
import timm.optim
import tokenizers
import torch
import transformers
from torch import nn
from torch.nn import functional

import common
import make_exports
from torch_models import FAMILIES, batch, ids, values

sys.path.insert(0, str(common.ROOT / 'python'))
import windlass  # noqa: E402
import windlass.optimizers  # noqa: E402

STEPS = 3
# The models of which everything is compared, on two ranks; of the others their losses and norms, on one.
CLOSELY = ('convolutions', 'gpt2', 'llama', 'mixtral', 'bert', 't5')


class Attention(nn.Module):
    """What exporters lose in some of its forms: the dropout of attention, and label smoothing."""

    def __init__(self, dropout, smoothing):
        super().__init__()
        self.dropout, self.smoothing, self.scores = dropout, smoothing, False
        self.qkv, self.head = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x, labels):
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        y = functional.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        scores = self.head(y).flatten(0, 2)
        return scores if self.scores else functional.cross_entropy(scores, labels, label_smoothing=self.smoothing)


class Paths(nn.Module):
    """A residual path that is dropped for half of the samples, as transformers or as torchvision draws that."""

    def __init__(self, form):
        super().__init__()
        self.form, self.path = form, nn.Linear(8, 8)

    def forward(self, x, y):
        path = self.path(x)
        if self.training and self.form == 'uniform':
            path = path.div(0.5) * (0.5 + torch.rand((x.shape[0], 1))).floor()
        elif self.training:
            path = path * torch.empty((x.shape[0], 1)).bernoulli_(0.5).div_(0.5)
        return functional.mse_loss(x + path, y)


def frozen_gpt():
    """A GPT whose embedding of positions does not train."""
    module = make_exports.Gpt(tied=True)
    module.pos.weight.requires_grad_(False)
    return module


MODELS = {'frozen': (frozen_gpt, batch(tokens=ids(24, 2, 8), labels=ids(24, 2, 8))), **{name: FAMILIES[name] for name in CLOSELY}}


class TorchTest(common.Case):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        torch.manual_seed(3)
        transformers.logging.set_verbosity_error()

    def batches(self, draw, count):
        generator = torch.Generator().manual_seed(4)
        return [draw(generator) for _ in range(count)]

    def test_from_export_to_comparison(self):
        for name, (make, draw) in MODELS.items():
            with self.subTest(name):
                module, seen = make(), []
                # The running statistics of batch norms are those of PyTorch with one micro-batch.
                micro_batches = 1 if name == 'convolutions' else 2
                batches = self.batches(draw, STEPS * micro_batches)
                exported = windlass.export(module, batches[0], self.folder / f'{name}.onnx')
                run = windlass.train(exported, batches, self.folder / name, n=2, steps=STEPS, micro_batches=micro_batches, clip_norm=0.5,
                                     eps=1e-3, lr_schedule='cosine', dump_gradients=True, on_metrics=seen.append)
                self.assertEqual(seen, run.metrics)
                self.assertEqual([row['step'] for row in seen], [1, 2, 3])
                found = windlass.compare(run, module, exported)
                print(f'{name}: {found}', flush=True)
                trained = {each for each, value in module.named_parameters() if value.requires_grad}
                self.assertEqual(trained - set(found.gradients), set())
                self.assertEqual({each for each, _ in module.named_parameters()} - set(found.parameters), set())
                self.assertLess(found.losses, 2e-6)
                self.assertLess(found.gradient_norms, 2e-6)
                self.assertLess(max(found.gradients.values()), 5e-6)
                self.assertLess(max(found.parameters.values()), 2e-5)
                windlass.to_torch(module, run)
                held = run.parameters()
                same = [(value.detach().numpy() == held[each].reshape(value.shape)).all()
                        for each, value in module.named_parameters(remove_duplicate=False) if each in held]
                self.assertGreater(len(same), 5)
                self.assertTrue(all(same))

    def test_a_batch_that_is_left_open(self):
        for name in ('gpt2', 'mixtral', 'vit', 'convolutions'):
            with self.subTest(name):
                make, draw = FAMILIES[name]
                module = make()
                pairs = self.batches(draw, 2 * STEPS)
                wide = [{key: torch.cat([one[key], other[key]]) for key in one} for one, other in zip(pairs[::2], pairs[1::2])]
                exported = windlass.export(module, pairs[0], self.folder / f'{name}.onnx', dynamic_batch=True)
                for batches, graph in ((pairs[:STEPS], exported), (wide, exported.with_batch(len(next(iter(wide[0].values())))))):
                    run = windlass.train(graph, batches, self.folder / f'{name}-{graph.settings["dim"]}', n=1, steps=STEPS, clip_norm=0.5, eps=1e-3)
                    found = windlass.compare(run, module, graph)
                    print(f'{name}, {graph.settings["dim"]}: {found}', flush=True)
                    self.assertLess(found.losses, 2e-6)
                    self.assertLess(max(found.parameters.values()), 2e-5)
        for inputs, said in (({'input_ids': torch.zeros(1, 4).long()}, 'a batch of 1 as a constant'),
                             ({'input_ids': torch.zeros(2, 4).long(), 'labels': torch.zeros(3, 4).long()}, 'as many samples in dim 0 each')):
            with self.assertRaisesRegex(ValueError, said):
                windlass.export(FAMILIES['gpt2'][0](), inputs, self.folder / 'no.onnx', dynamic_batch=True)
        with self.assertRaisesRegex(ValueError, 'dynamic_batch=True'):
            windlass.export(FAMILIES['gpt2'][0](), batch(input_ids=ids(96, 2, 16, low=2), labels=ids(96, 2, 16, low=2))(torch.Generator().manual_seed(5)), self.folder / 'fixed.onnx').with_batch(4)

    def test_optimizers(self):
        """Twenty steps of each like PyTorch; LAMB and Lion are those of timm."""
        draw = batch(tokens=ids(24, 2, 8), labels=ids(24, 2, 8))
        for name, flags in (('adam', dict(eps=1e-3, betas='0.8,0.95')), ('adafactor', dict(lr=1e-2)), ('lamb', dict(eps=1e-3, lr=1e-2)), ('lion', dict(lr=3e-4)), ('muon', dict(eps=1e-3)), ('sgd', dict(momentum=0.9))):
            with self.subTest(name):
                module, batches = make_exports.Gpt(tied=True), self.batches(draw, 20)
                exported = windlass.export(module, batches[0], self.folder / f'{name}.onnx')
                run = windlass.train(exported, batches, self.folder / name, steps=20, optimizer=name, weight_decay=0.1, **flags)
                found = windlass.compare(run, module, exported)
                print(f'{name}: {found}', flush=True)
                self.assertLess(found.losses, 2e-6)
                # A bias that all keys share does not change the softmax: its gradient is rounding, which Adafactor makes large and whose sign
                # Lion follows.
                follows = name in ('adafactor', 'lion')
                surely = {each: value for each, value in found.parameters.items() if not (follows and each.endswith('qkv.bias'))}
                self.assertGreater(len(surely), 10)
                self.assertLess(max(surely.values()), 1e-4)

    def test_muon_is_that_of_torch(self):
        """But for its products in bf16, of which each keeps 8 bits."""
        generator = torch.Generator().manual_seed(5)
        for sizes in ((7, 5), (5, 7)):
            start, gradient = (torch.randn(*sizes, generator=generator) for _ in range(2))
            values = [torch.nn.Parameter(start.clone()) for _ in range(2)]
            settings = {'lr': 0.01, 'momentum': 0.9, 'weight_decay': 0.1}
            for value, optimizer in zip(values, (windlass.optimizers.Muon(values[:1], settings),
                                                 torch.optim.Muon(values[1:], **settings, adjust_lr_fn='match_rms_adamw'))):
                value.grad = gradient.clone()
                optimizer.step()
            steps = [value.detach() - start for value in values]
            self.assertLess((steps[0] - steps[1]).norm(), 0.05 * steps[0].norm())

    def test_lamb_and_lion_are_those_of_timm(self):
        generator = torch.Generator().manual_seed(5)
        start, gradients = (torch.randn(*sizes, generator=generator) for sizes in ((7, 5), (20, 7, 5)))
        for ours, theirs, settings, more in (
                (windlass.optimizers.Lamb, timm.optim.Lamb, {'lr': 0.01, 'betas': (0.9, 0.99), 'eps': 1e-6, 'weight_decay': 0.1}, {'max_grad_norm': None}),
                (windlass.optimizers.Lion, timm.optim.Lion, {'lr': 0.01, 'betas': (0.9, 0.99), 'weight_decay': 0.1}, {})):
            values = [torch.nn.Parameter(start.clone()) for _ in range(2)]
            optimizers = ours(values[:1], settings), theirs(values[1:], **settings, **more)
            for gradient in gradients:
                for value in values:
                    value.grad = gradient.clone()
                for optimizer in optimizers:
                    optimizer.step()
            self.assertLess((values[0] - values[1]).abs().max(), 1e-6)

    def test_families(self):
        for name in sorted(set(FAMILIES) - set(CLOSELY)):
            with self.subTest(name):
                make, draw = FAMILIES[name]
                module, batches = make(), self.batches(draw, STEPS)
                exported = windlass.export(module, batches[0], self.folder / f'{name}.onnx')
                run = windlass.train(exported, batches, self.folder / name, steps=STEPS, eps=1e-3)
                found = windlass.compare(run, module, exported)
                print(f'{name}: {found}', flush=True)
                self.assertLess(found.losses, 1e-6)
                self.assertLess(found.gradient_norms, 2e-6)
                self.assertLess(max(found.parameters.values()), 1e-3)

    def test_experts(self):
        """Layers of experts are found in the forms of transformers and in those that people write, and what is none is explained."""
        layers = {'experts-gathered': 1, 'experts-scattered': 1, 'experts-one-hot': 1, 'mixtral': 2, 'qwen2-moe': 2, 'qwen3-moe': 2, 'olmoe': 2, 'gpt-oss': 0}
        for name, count in layers.items():
            with self.subTest(name):
                make, draw = FAMILIES[name]
                exported = windlass.export(make(), self.batches(draw, 1)[0], self.folder / f'{name}.onnx')
                found = windlass.check(exported)['layers']
                self.assertEqual(found['expert_layers'], count)
                self.assertEqual({each['reason'] for each in found['missed_experts']}, set() if count else {"what it gives passes 'add'"})

    def test_packed_sequences(self):
        """Masks that keep the documents of a row apart, from their numbers or from positions, are masks of attention."""
        for name, count in {'packed': 1, 'llama-packed': 2}.items():
            with self.subTest(name):
                make, draw = FAMILIES[name]
                module, batches = make(), self.batches(draw, STEPS)
                exported = windlass.export(module, batches[0], self.folder / f'{name}.onnx')
                self.assertEqual(windlass.check(exported)['layers']['attentions'], count)
                found = windlass.compare(windlass.train(exported, batches, self.folder / name, steps=STEPS, eps=1e-3), module, exported)
                print(f'{name}: {found}', flush=True)
                self.assertLess(found.losses, 2e-6)
                self.assertLess(max(found.parameters.values()), 2e-5)

    def test_plain_exports(self):
        """What PyTorch's exporter writes by its defaults trains like PyTorch, or is refused by the name of what it lost."""
        outcomes = collections.Counter()
        for name, (make, draw) in sorted(FAMILIES.items()):
            with self.subTest(name):
                module, batches = make(), self.batches(draw, STEPS)
                path = self.folder / f'{name}.onnx'
                try:
                    torch.onnx.export(module.train(), (), str(path), kwargs=batches[0], dynamo=True, verbose=False)
                except torch.onnx.OnnxExporterError:
                    outcomes['not exported'] += 1
                    continue
                exported = windlass.Export(path, {})
                try:
                    run = windlass.train(exported, batches, self.folder / name, steps=STEPS, eps=1e-3)
                except windlass.WindlassError as error:
                    print(f'{name}: {error}', flush=True)
                    self.assertIn(error.diagnostic, ('WL0107', 'WL0108', 'WL0110'))
                    outcomes[error.diagnostic] += 1
                    continue
                found = windlass.compare(run, module, exported)
                print(f'{name}: {found}', flush=True)
                self.assertLess(found.losses, 1e-6)
                self.assertLess(found.gradient_norms, 2e-6)
                outcomes['equal'] += 1
        print(dict(outcomes))

    def test_weights_go_to_transformers_and_back(self):
        """A model that transformers has saved is what a run begins with; what the run leaves, transformers loads, and its next loss is the run's."""
        for name in ('gpt2', 'llama', 'bert', 'mixtral', 't5'):
            with self.subTest(name):
                make, draw = FAMILIES[name]
                module, saved, batches = make(), make().eval(), self.batches(draw, STEPS + 1)
                exported = windlass.export(module, batches[0], self.folder / f'{name}.onnx')
                saved.save_pretrained(self.folder / f'{name}-saved')
                pretrained = type(module).from_pretrained(self.folder / f'{name}-saved')
                run = windlass.train(exported, batches, self.folder / name, steps=STEPS, init_from=pretrained)
                longer = windlass.train(exported, batches, self.folder / f'{name}-longer', steps=STEPS + 1, init_from=pretrained)
                self.assertLess(self.deviation(saved, batches[0], run.losses[0]), 1e-6)
                windlass.to_torch(module, run).save_pretrained(self.folder / f'{name}-trained')
                loaded = type(module).from_pretrained(self.folder / f'{name}-trained').eval()
                held, names = run.parameters(), dict(loaded.named_parameters(remove_duplicate=False))
                same = [(value.detach().numpy() == held[each].reshape(value.shape)).all() for each, value in names.items() if each in held]
                self.assertGreater(len(same), 5)
                self.assertTrue(all(same))
                self.assertLess(self.deviation(loaded, batches[STEPS], longer.losses[STEPS]), 1e-6)

    def deviation(self, module, inputs, loss):
        with torch.no_grad():
            return abs(float(module(**inputs).loss) - loss) / loss

    def test_text_becomes_tokens(self):
        """By a tokenizer that was trained on the spot, with a vocabulary of either width."""
        pages = sorted((common.ROOT / 'docs').glob('*.md'))
        own = tokenizers.Tokenizer(tokenizers.models.BPE())
        own.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        own.decoder = tokenizers.decoders.ByteLevel()
        own.train([str(page) for page in pages], tokenizers.trainers.BpeTrainer(
            vocab_size=600, special_tokens=['<|end|>'], show_progress=False, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
        file, output = self.folder / 'tokenizer.json', self.folder / 'tokens.npy'
        own.save(str(file))
        count = windlass.tokenize(pages, file, output, end='<|end|>')
        tokens = numpy.load(output)
        self.assertEqual((tokens.dtype, tokens.shape), (numpy.uint16, (count,)))
        ends = numpy.flatnonzero(tokens == own.token_to_id('<|end|>'))
        self.assertEqual([own.decode(part) for part in numpy.split(tokens, ends + 1)[:-1]],
                         [page.read_text() for page in pages])
        lines = self.folder / 'lines.jsonl'
        lines.write_text(''.join(json.dumps({'body': page.read_text()}) + '\n' for page in pages))
        columns = self.folder / 'columns.parquet'
        texts = [page.read_text() for page in pages]
        pyarrow.parquet.write_table(pyarrow.table({'number': range(len(texts)), 'body': texts}), columns, row_group_size=2)
        for more in (dict(files=lines, key='body'), dict(files=columns, key='body'), dict(files=None, texts=(page.read_text() for page in pages))):
            windlass.tokenize(tokenizer=transformers.PreTrainedTokenizerFast(tokenizer_object=own), output=self.folder / 'again.npy', end='<|end|>', **more)
            self.assertEqual(numpy.load(self.folder / 'again.npy').tolist(), tokens.tolist())
        run = windlass.train(self.small_gpt(vocabulary=600), output, self.folder / 'run', steps=80, lr=1e-2)
        self.assertLess(run.losses[-1], run.losses[0] - 0.5)
        own.add_tokens([f'unseen {number}!' for number in range(1 << 16)])
        windlass.tokenize(pages, own, output)
        self.assertEqual((numpy.load(output).dtype, len(numpy.load(output))), (numpy.uint32, count - len(pages)))
        pyarrow.parquet.write_table(pyarrow.table({'body': ['a', None]}), self.folder / 'holes.parquet')
        (self.folder / 'broken.parquet').write_text('PAR1')
        for file, said in (('columns', "has no column 'text', but 'number', 'body'"), ('holes', 'row 1: column'), ('broken', 'broken.parquet cannot be read')):
            with self.assertRaisesRegex(ValueError, said):
                windlass.tokenize(self.folder / f'{file}.parquet', own, output, key='text' if file == 'columns' else 'body')
        for wrong, said in ((dict(end='<none>'), 'has no token'), (dict(texts=['a']), 'either files or texts')):
            with self.assertRaisesRegex(ValueError, said):
                windlass.tokenize(pages, own, output, **wrong)
        with self.assertRaisesRegex(ValueError, "lines.jsonl, line 1: expected a JSON object with a text under 'text'"):
            windlass.tokenize(lines, own, output)

    def test_torchrun_starts_a_program(self):
        """By its way for one host, where it keeps a store of its own at MASTER_PORT, and by addresses."""
        model, text = self.small_gpt(), self.folder / 'text.txt'
        text.write_bytes(b'a stitch in time saves nine ' * 200)
        flags = ['--data', text, '--bytes', '--steps', 3, '--model-name', model.name]
        program = common.built_folder(self.succeed('train', model, '-n', 2, *flags[:5], '-o', self.folder / 'mpi', '-v'))
        for run, way in (('alone', ['--standalone']), ('addresses', ['--nnodes', 1, '--node-rank', 0, '--master-addr', 'localhost', '--master-port', 29777])):
            done = common.run([sys.executable, '-m', 'torch.distributed.run', *way, '--nproc-per-node', 2, '--no-python', program / 'build' / 'train', *flags,
                               '-o', self.folder / run], timeout=300)
            self.assertEqual(done.code, 0, done.err)
            file = 'checkpoints/step-000003/parameters-00000.safetensors'
            self.assertEqual((self.folder / run / file).read_bytes(), (self.folder / 'mpi' / file).read_bytes())

    def test_stochastic_depth(self):
        """A dropped path is gone for a sample, and evaluation drops none: without a step, it gives what torch gives in that mode."""
        for form in ('uniform', 'bernoulli'):
            with self.subTest(form):
                module = Paths(form)
                batches = self.batches(batch(x=values(64, 8), y=values(64, 8)), 4)
                exported = windlass.export(module, batches[0], self.folder / f'{form}.onnx')
                windlass.train(exported, batches[:1], self.folder / f'{form}-data', steps=1)
                run = windlass.train(exported, batches, self.folder / form, steps=4, lr=0, weight_decay=0,
                                     eval_data=self.folder / f'{form}-data' / 'data.safetensors', eval_every=1)
                evaluated = [row['eval_loss'] for row in run.evaluations]
                with torch.no_grad():
                    wanted = float(module.eval()(**batches[0]))
                self.assertTrue(evaluated)
                for loss in evaluated:
                    self.assertLess(abs(loss - wanted) / wanted, 1e-6)
                # In training half of the samples lose the path.
                self.assertGreater(abs(run.losses[0] - wanted) / wanted, 1e-3)

    def test_what_the_exporter_loses_is_refused(self):
        """The error has the code of what was lost, and the module keeps its mode."""
        for dropout, smoothing, code in ((0.1, 0.0, 'WL0110'), (0.0, 0.1, 'WL0110'), (0.0, 0.0, None)):
            with self.subTest(dropout=dropout, smoothing=smoothing):
                module = Attention(dropout, smoothing).eval()
                inputs = {'x': torch.randn(2, 4, 8), 'labels': torch.randint(8, (8,))}
                try:
                    windlass.export(module, inputs, self.folder / 'model.onnx')
                    found = None
                except windlass.WindlassError as error:
                    found = error.diagnostic
                self.assertEqual(found, code)
                self.assertFalse(any(each.training for each in module.modules()))

    def test_misuse(self):
        module, inputs = Attention(0.0, 0.0), {'x': torch.randn(2, 4, 8), 'labels': torch.randint(8, (8,))}
        with self.assertRaisesRegex(ValueError, "forward has no input 'y': name inputs as forward does"):
            windlass.export(module, {'y': inputs['x']}, self.folder / 'model.onnx')
        module.scores = True
        with self.assertRaises(windlass.WindlassError) as caught:
            windlass.export(module, inputs, self.folder / 'model.onnx')
        self.assertIn('loss', str(caught.exception))

    def test_dropout_is_not_compared(self):
        module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
        run = windlass.Run(self.folder)
        (self.folder / 'run.json').write_text('{"settings": {"precision": "f32", "average": "micro-batches"}}')
        with self.assertRaisesRegex(ValueError, 'the module has dropout'):
            windlass.compare(run, module, None)

    def test_the_example_of_the_page(self):
        page = (common.ROOT / 'docs' / 'python.md').read_text()
        code = re.search(r'^```python\n(.*?)^```', page, re.M | re.S)[1]
        done = common.run([sys.executable, '-c', code], cwd=self.folder, env={'PYTHONPATH': str(common.ROOT / 'python')})
        self.assertEqual(done.code, 0, done.err)
        self.assertIn('losses differ by ', done.out)
        print(done.out.splitlines()[-1])

    def test_the_package_installs(self):
        target, source = self.folder / 'installed', self.folder / 'python'
        shutil.copytree(common.ROOT / 'python', source)  # pip builds in the folder of the source
        done = common.run([sys.executable, '-m', 'pip', 'install', '-q', '--no-deps', '--target', target, source])
        self.assertEqual(done.code, 0, done.err)
        done = common.run([sys.executable, '-c', 'import windlass; print(windlass.__file__, windlass.export)'], env={'PYTHONPATH': str(target)})
        self.assertEqual(done.code, 0, done.err)
        self.assertIn(str(target), done.out)
        self.assertTrue((target / 'windlass' / 'py.typed').exists())


if __name__ == '__main__':
    if sys.argv[1:] == ['families']:
        sys.argv[1:] = ['TorchTest.test_families', 'TorchTest.test_plain_exports']
    elif not sys.argv[1:]:
        del TorchTest.test_families, TorchTest.test_plain_exports
    common.main()
