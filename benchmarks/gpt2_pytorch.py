"""Training speed of GPT-2 124M or of a LLaMA of its size in PyTorch, beside which benchmarks/gpt2_cpu puts ours. Prints one JSON object.

    gpt2_pytorch.py MODEL MODE BATCH TOKENS THREADS STEPS CORPUS       MODEL: gpt2 or llama; MODE: eager or compiled
    gpt2_pytorch.py MODEL ddp BATCH TOKENS THREADS STEPS CORPUS RANKS  data-parallel over gloo, BATCH on each rank

AdamW (fused), f32, random initial values, on the bytes of CORPUS. What is compiled, and the first two steps, are not timed.
"""

import json
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional

LAYERS, WIDTH, HEADS, VOCABULARY = 12, 768, 12, 50257
LLAMA_HIDDEN, LLAMA_VOCABULARY = 2048, 32000


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        parts = self.qkv(self.norms[0](x)).split(WIDTH, dim=2)
        q, k, v = (part.view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2) for part in parts)
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mixed(heads.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x)), approximate='tanh'))


class Gpt(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(tokens, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, labels):
        x = self.words(ids) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.words.weight)
        return functional.cross_entropy(logits.view(-1, VOCABULARY), labels.reshape(-1))


class LlamaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH, eps=1e-6) for _ in range(2))
        self.q, self.k, self.v, self.mixed = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, LLAMA_HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(LLAMA_HIDDEN, WIDTH, bias=False)

    def forward(self, x, cosine, sine):
        batch, tokens, _ = x.shape
        normed = self.norms[0](x)
        q, k, v = (linear(normed).view(batch, tokens, HEADS, WIDTH // HEADS).transpose(1, 2) for linear in (self.q, self.k, self.v))
        q, k = (y * cosine + torch.cat((-y.chunk(2, -1)[1], y.chunk(2, -1)[0]), -1) * sine for y in (q, k))
        heads = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.mixed(heads.transpose(1, 2).reshape(batch, tokens, WIDTH))
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.words, self.logits = nn.Embedding(LLAMA_VOCABULARY, WIDTH), nn.Linear(WIDTH, LLAMA_VOCABULARY, bias=False)
        self.blocks, self.norm = nn.ModuleList(LlamaBlock() for _ in range(LAYERS)), nn.RMSNorm(WIDTH, eps=1e-6)
        half = WIDTH // HEADS // 2
        angles = torch.outer(torch.arange(tokens).float(), 10000.0 ** (-torch.arange(half) / half)).repeat(1, 2)
        self.register_buffer('cosine', angles.cos())
        self.register_buffer('sine', angles.sin())
        for parameter in self.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, labels):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return functional.cross_entropy(self.logits(self.norm(x)).view(-1, LLAMA_VOCABULARY), labels.reshape(-1))


def train(name, mode, batch, tokens, threads, steps, corpus, rank=0):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = {'gpt2': Gpt, 'llama': Llama}[name](tokens)
    if mode == 'ddp':
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    elif mode == 'compiled':
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    data = torch.frombuffer(bytearray(open(corpus, 'rb').read()), dtype=torch.uint8).long()
    seconds, losses = [], []
    for step in range(steps):
        at = torch.arange(batch) * tokens + (step * batch + rank * steps * batch) * tokens % (len(data) - batch * tokens - 1)
        windows = data[at[:, None] + torch.arange(tokens + 1)]
        start = time.perf_counter()
        loss = model(windows[:, :-1], windows[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=mode != 'ddp')
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return {'version': torch.__version__, 'seconds': seconds[2:], 'first_loss': losses[0], 'last_loss': losses[-1]}


def train_rank(rank, ranks, name, batch, tokens, threads, steps, corpus):
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT='29533')
    torch.distributed.init_process_group('gloo', rank=rank, world_size=ranks)
    result = train(name, 'ddp', batch, tokens, threads, steps, corpus, rank)
    torch.distributed.destroy_process_group()
    if rank == 0:
        print(json.dumps(result))


if __name__ == '__main__':
    name, mode, corpus = sys.argv[1], sys.argv[2], sys.argv[7]
    numbers = [int(word) for word in sys.argv[3:7]]
    if mode == 'ddp':
        ranks = int(sys.argv[8])
        torch.multiprocessing.spawn(train_rank, (ranks, name, *numbers, corpus), nprocs=ranks)
    else:
        print(json.dumps(train(name, mode, *numbers, corpus)))
