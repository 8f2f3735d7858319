"""Freshly initialised models of transformers, exported as the README says, train like PyTorch. Needs torch, transformers and onnxscript:
configure with -DWINDLASS_TORCH_PYTHON=FILE, a Python that has them and what requirements.txt lists; without it the test is not there."""

import json
import logging
import warnings

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

import common
import make_exports

VOCABULARY, TOKENS, BATCH, STEPS = 96, 16, 2, 6
SMALL = dict(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2, num_attention_heads=4)
GATED = dict(SMALL, num_key_value_heads=2, intermediate_size=48, max_position_embeddings=TOKENS)
NO_DROPOUT = dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0)


def mixtral():
    config = transformers.MixtralConfig(**GATED, num_local_experts=4, num_experts_per_tok=2)
    config._experts_implementation = 'batched_mm'
    return transformers.MixtralForCausalLM(config)


MODELS = {
    'gpt2': lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=TOKENS, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
    'llama': lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**GATED)),
    'qwen3': lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**GATED, head_dim=8)),
    'mixtral': mixtral,
    'bert': lambda: transformers.BertForMaskedLM(transformers.BertConfig(
        **SMALL, **NO_DROPOUT, intermediate_size=64, max_position_embeddings=TOKENS)),
    'opt': lambda: transformers.OPTForCausalLM(transformers.OPTConfig(
        **SMALL, ffn_dim=64, max_position_embeddings=TOKENS, dropout=0, word_embed_proj_dim=32)),
}


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, labels):
        logits = self.model(input_ids=input_ids).logits
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def draw(generator):
    """A batch without the ids 0 and 1, which some models take for padding."""
    return {name: torch.randint(2, VOCABULARY, (BATCH, TOKENS), generator=generator) for name in ('input_ids', 'labels')}


class RecipeTest(common.Case):
    def train(self, name):
        torch.manual_seed(3)
        module = WithLoss(MODELS[name]()).train()
        generator = torch.Generator().manual_seed(4)
        batches = [draw(generator) for _ in range(STEPS)]
        model, data, run = self.folder / f'{name}.onnx', self.folder / f'{name}.safetensors', self.folder / name
        inputs = tuple(batches[0].values())
        torch.onnx.export(module.train(), inputs, str(model), dynamo=True, optimize=False, input_names=list(batches[0]), verbose=False)
        save_file({f'{key}.{step}': value for step, batch in enumerate(batches) for key, value in batch.items()}, str(data))
        self.succeed('train', model, '--data', data, '--steps', STEPS, '--lr', '1e-3', '--weight-decay', 0, '-o', run)
        losses = [json.loads(row)['loss'] for row in (run / 'metrics.jsonl').read_text().splitlines()]
        return losses, make_exports.train(module, batches)

    def test_transformers(self):
        warnings.filterwarnings('ignore')
        logging.disable(logging.WARNING)
        transformers.logging.set_verbosity_error()
        torch.set_num_threads(1)
        for name in MODELS:
            with self.subTest(name):
                losses, wanted = self.train(name)
                self.assertEqual(len(losses), len(wanted))
                worst = max(abs(got - want) / abs(want) for got, want in zip(losses, wanted))
                print(f'{name}: worst deviation {worst:.1e}', flush=True)
                self.assertLessEqual(worst, 2e-6)


common.main()
