"""Writes what PyTorch makes of gpt2-tiny when each label of a step counts alike, however few a micro-batch has: gpt2-tiny/reference_tokens.json.

    token_mean.py     needs torch, transformers, safetensors and onnx, which no test does

Micro-batches are those of the model's folder, of which the labels behind a row's first kept[k % 8] are ignored. A step's loss is the
sum of the cross entropy over all labels of its micro-batches that are left, divided by their number.
"""

import json
import pathlib

import onnx
import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

FOLDER = pathlib.Path(__file__).resolve().parent / 'gpt2-tiny'
# The label at position 0 is shifted away: the fourth and the sixth have none left.
KEPT = (64, 3, 20, 0, 41, 1, 7, 64)
IGNORED = -100
STEPS = 3


def build(reference):
    model = GPT2LMHeadModel(GPT2Config(**reference['config']))
    held = {tensor.name.removeprefix('model.'): torch.tensor(onnx.numpy_helper.to_array(tensor)) for tensor in onnx.load(FOLDER / 'model.onnx').graph.initializer}
    tied = {'transformer.wte.weight': held['lm_head.weight']}
    model.load_state_dict({name: (held | tied)[name] for name in model.state_dict()})
    return model.train()


def train(reference, batches, micro_batches):
    model, settings = build(reference), reference['optimizer']
    groups = [dict(params=[p for p in model.parameters() if (p.ndim >= 2) == decays], weight_decay=settings['weight_decay'] * decays) for decays in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=settings['lr'], betas=settings['betas'], eps=settings['eps'], foreach=False)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        total, count = 0, 0
        for k in range(step * micro_batches, (step + 1) * micro_batches):
            labels = batches[f'labels.{k}'].clone()
            labels[:, KEPT[k % len(KEPT)]:] = IGNORED
            logits, labels = model(batches[f'input_ids.{k}']).logits[:, :-1], labels[:, 1:]
            total = total + torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED, reduction='sum')
            count += int((labels != IGNORED).sum())
        loss = total / count
        loss.backward()
        losses.append(loss.item())
        norms.append(torch.sqrt(sum((p.grad.double() ** 2).sum() for p in model.parameters())).item())
        optimizer.step()
    return {'losses': losses, 'grad_norms': norms}


def main():
    torch.set_num_threads(1)
    reference = json.loads((FOLDER / 'reference.json').read_text())
    batches = load_file(FOLDER / 'batches.safetensors')
    runs = {str(micro_batches): train(reference, batches, micro_batches) for micro_batches in (1, 2, 4, 8)}
    result = {'torch': torch.__version__, 'kept': KEPT, 'ignored': IGNORED, 'steps': STEPS, 'micro_batches': runs}
    (FOLDER / 'reference_tokens.json').write_text(json.dumps(result, indent=1) + '\n')


if __name__ == '__main__':
    main()
