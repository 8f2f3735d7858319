#!/usr/bin/env python3
"""Exports small freshly initialised modules of PyTorch twice, as the README says and by the exporter's defaults, and
trains each in PyTorch.

    make_exports.py [-o FOLDER] [NAME ...]

FOLDER (default: models/exports beside this file) gets NAME.recipe.onnx.gz, NAME.default.onnx.gz, NAME.safetensors with
the batches and reference.json with PyTorch's losses. Needs torch, onnx, onnxscript and safetensors; the versions that
made the stored files are in reference.json.
"""
import argparse
import gzip
import json
import logging
import pathlib
import tempfile
import warnings

import onnx
import torch
from torch import nn
from torch.nn import functional

VOCABULARY, WIDTH, TOKENS, BATCH, STEPS = 24, 16, 8, 2, 6


class Block(nn.Module):
    """A pre-norm transformer block with causal attention."""

    def __init__(self, heads=2, zero=False, linear=nn.Linear):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.out = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        if zero:
            nn.init.zeros_(self.proj.weight)
            nn.init.zeros_(self.out.weight)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, -1).transpose(1, 2) for part in self.qkv(self.ln1(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.out(functional.gelu(self.fc(self.ln2(x))))


class Gpt(nn.Module):
    def __init__(self, zero=False, linear=nn.Linear, tied=False, logits=False):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Block(zero=zero, linear=linear) for _ in range(2))
        self.lnf, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.tok.weight
        self.gives_logits = logits

    def forward(self, tokens, labels):
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.lnf(x))
        loss = functional.cross_entropy(logits.view(-1, VOCABULARY), labels.view(-1))
        return (logits, loss) if self.gives_logits else loss


class Adapted(nn.Module):
    """A linear layer that is frozen, with a low-rank addition that trains."""

    def __init__(self, inputs, outputs, rank=2):
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.base.requires_grad_(False)
        self.A, self.B = nn.Parameter(torch.randn(rank, inputs) * 0.1), nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x):
        return self.base(x) + (x @ self.A.T) @ self.B.T * 2.0


class Tables(nn.Module):
    """Buffers that train in no case: a longer table of positions and a fixed projection."""

    def __init__(self):
        super().__init__()
        self.e, self.b, self.o = nn.Embedding(VOCABULARY, WIDTH), Block(), nn.Linear(WIDTH, VOCABULARY)
        angle = torch.arange(2 * TOKENS)[:, None] / 10.0 ** torch.linspace(0, 3, WIDTH)
        self.register_buffer('pe', torch.sin(angle)[None])
        self.register_buffer('rp', torch.randn(WIDTH, WIDTH) * 0.3)

    def forward(self, tokens, labels):
        x = functional.linear(self.e(tokens) + self.pe[:, :tokens.shape[1]], self.rp)
        return functional.cross_entropy(self.o(self.b(x)).view(-1, VOCABULARY), labels.view(-1))


class BatchNorms(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 5))

    def forward(self, x, y):
        return functional.cross_entropy(self.net(x), y)


class Scales(nn.Module):
    """Parameters that do nothing at first."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(WIDTH, 8)
        self.scale, self.shift = nn.Parameter(torch.ones(8)), nn.Parameter(torch.zeros(8))
        self.gate = nn.Parameter(torch.tensor(1.0))

    def forward(self, x, target):
        return functional.mse_loss(self.l(x) * self.gate * self.scale + self.shift, target)


class Smoothed(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(WIDTH, 5)

    def forward(self, x, y):
        return functional.cross_entropy(self.l(x), y, label_smoothing=0.1)


def tokens(generator):
    return {'tokens': torch.randint(0, VOCABULARY, (BATCH, TOKENS), generator=generator),
            'labels': torch.randint(0, VOCABULARY, (BATCH, TOKENS), generator=generator)}


def classes(generator):
    return {'x': torch.randn(8, WIDTH, generator=generator), 'y': torch.randint(0, 5, (8,), generator=generator)}


def regression(generator):
    return {'x': torch.randn(8, WIDTH, generator=generator), 'target': torch.randn(8, 8, generator=generator)}


# Name: module and batches.
KINDS = {
    'gpt': (Gpt, tokens),
    'zeroinit': (lambda: Gpt(zero=True), tokens),
    'lora': (lambda: Gpt(linear=Adapted), tokens),
    'tables': (Tables, tokens),
    'batchnorm': (BatchNorms, classes),
    'tied': (lambda: Gpt(tied=True), tokens),
    'scales': (Scales, regression),
    'smoothed': (Smoothed, classes),
    'bf16': (lambda: Gpt().to(torch.bfloat16), tokens),
    'logits': (lambda: Gpt(logits=True), tokens),
}


def without_traces(model):
    """The model without the stack traces of its nodes, which name files of one machine."""
    for node in model.graph.node:
        kept = [entry for entry in node.metadata_props if entry.key != 'pkg.torch.onnx.stack_trace']
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
    return model


def save_gzipped(program, path):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / 'model.onnx'
        program.save(str(file))
        model = without_traces(onnx.load(str(file)))
        path.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), mtime=0))


def train(module, batches):
    """Returns PyTorch's losses; weights of 16 bits are widened first, as our masters are."""
    module = module.float().train()
    optimizer = torch.optim.AdamW([p for p in module.parameters() if p.requires_grad], lr=1e-3, weight_decay=0)
    losses = []
    for batch in batches:
        result = module(*batch.values())
        loss = result[1] if isinstance(result, tuple) else result
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def make(name, folder):
    """Writes the files of one kind and returns its row of reference.json."""
    from safetensors.torch import save_file
    build, draw = KINDS[name]
    torch.manual_seed(1)
    module = build().train()
    generator = torch.Generator().manual_seed(2)
    batches = [draw(generator) for _ in range(STEPS)]
    for form, optimize in (('recipe', False), ('default', True)):
        program = torch.onnx.export(module, tuple(batches[0].values()), dynamo=True, optimize=optimize, verbose=False,
                                    input_names=list(batches[0]))
        save_gzipped(program, folder / f'{name}.{form}.onnx.gz')
    save_file({f'{key}.{step}': value for step, batch in enumerate(batches) for key, value in batch.items()},
              str(folder / f'{name}.safetensors'))
    frozen = [key for key, value in module.named_parameters() if not value.requires_grad]
    return {'losses': train(module, batches), 'frozen': frozen}


def main():
    warnings.filterwarnings('ignore')
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', type=pathlib.Path, default=pathlib.Path(__file__).parent / 'models' / 'exports')
    parser.add_argument('names', nargs='*', default=list(KINDS))
    args = parser.parse_args()
    args.o.mkdir(parents=True, exist_ok=True)
    import onnxscript
    reference = {'torch': torch.__version__, 'onnx': onnx.__version__, 'onnxscript': onnxscript.__version__,
                 'models': {name: make(name, args.o) for name in args.names}}
    (args.o / 'reference.json').write_text(json.dumps(reference, indent=1) + '\n')


if __name__ == '__main__':
    main()
