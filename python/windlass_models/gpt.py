"""A GPT-like language model."""

import dataclasses
import math

from onnx import TensorProto

from . import attention, checks, layers, loss
from .builder import OPERATORS_OPSET, OPSET, GraphBuilder
from .parameters import Parameters


@dataclasses.dataclass(frozen=True)
class GptConfig:
    layers: int = 2
    width: int = 128
    heads: int = 4
    vocabulary: int = 256
    tokens: int = 64
    batch: int = 8
    tied: bool = True
    shifted: bool = True
    fused_qkv: bool = False
    activation: str = 'chain'
    linear: str = 'conv1d'
    mask: str = 'range'
    attention: str = 'sdpa'
    dropout: float = 0.0
    bias: bool = True

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'heads', 'vocabulary', 'tokens', 'batch')
        if self.width % self.heads:
            raise ValueError(f'the width {self.width} is not a multiple of the {self.heads} heads')
        if not 0 <= self.dropout < 1:
            raise ValueError(f'the dropout {self.dropout} must be at least 0 and below 1')
        if not self.bias and self.linear == 'conv1d':
            raise ValueError('a Gemm of this layer has a bias: without one, give --linear matmul')
        if self.shifted and self.tokens < 2:
            raise ValueError('one token leaves nothing to predict once the labels are shifted: give --tokens 2 or --unshifted')

    @property
    def head_width(self):
        return self.width // self.heads


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True):
    """Builds the training graph: `input_ids` and `labels` [batch, tokens] to the scalar `loss`. With `shifted`, the labels are the ids
    themselves and the graph shifts them; without, they are the next tokens."""
    parameters = Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values)
    builder = GraphBuilder(parameters, OPERATORS_OPSET if config.attention == 'operator' else OPSET)
    shape = [config.batch, config.tokens]
    ids = builder.input('input_ids', TensorProto.INT64, shape)
    labels = builder.input('labels', TensorProto.INT64, shape)
    with builder.scope('', 'windlass_models.CausalLanguageModel'):
        logits = _logits(builder, ids, config)
        if config.shifted:
            labels = loss.shifted(builder, labels, config.tokens)
        return builder.model(loss.cross_entropy(builder, logits, labels, config.vocabulary))


def _logits(builder, ids, config):
    # A tied weight has the name of its last use, as the exporter gives it.
    embedding = 'lm_head.weight' if config.tied else 'transformer.wte.weight'
    with builder.scope('transformer', 'windlass_models.Transformer'):
        flat = builder.reshape(ids, [-1, config.tokens])
        with builder.scope('transformer.wte', 'torch.nn.modules.sparse.Embedding'):
            weight = builder.parameter(embedding, [config.vocabulary, config.width], 'matrix')
            tokens = builder.op('Gather', [weight, flat], 'embedding', origin='aten.embedding.default', axis=0)
        places = layers.positions(builder, config.tokens)
        with builder.scope('transformer.wpe', 'torch.nn.modules.sparse.Embedding'):
            weight = builder.parameter('transformer.wpe.weight', [config.tokens, config.width], 'matrix')
            positions = builder.op('Gather', [weight, places], 'embedding', origin='aten.embedding.default', axis=0)
        value = layers.dropout(builder, builder.op('Add', [tokens, positions], 'add'), config.dropout)
        pattern = attention.causal_pattern(builder, config) if config.mask == 'range' else None
        for layer in range(config.layers):
            value = _block(builder, value, f'transformer.h.{layer}', config, pattern)
        with builder.scope('transformer.ln_f', 'torch.nn.modules.normalization.LayerNorm'):
            value = layers.layer_norm(builder, value, 'transformer.ln_f', config.width, config.bias)
    with builder.scope('lm_head', 'torch.nn.modules.linear.Linear'):
        weight = builder.parameter('lm_head.weight', [config.vocabulary, config.width], 'matrix')
        turned = builder.op('Transpose', [weight], perm=[1, 0])
        return builder.op('MatMul', [value, turned], 'linear', origin='aten.linear.default')


def _block(builder, value, name, config, pattern):
    with builder.scope(name, 'windlass_models.Block'):
        with builder.scope(f'{name}.ln_1', 'torch.nn.modules.normalization.LayerNorm'):
            normed = layers.layer_norm(builder, value, f'{name}.ln_1', config.width, config.bias)
        with builder.scope(f'{name}.attn', 'windlass_models.Attention'):
            mixed = attention.self_attention(builder, normed, f'{name}.attn', config, pattern, has_bias=config.bias)
            mixed = layers.dropout(builder, mixed, config.dropout)
        value = builder.op('Add', [mixed, value], 'add')
        with builder.scope(f'{name}.ln_2', 'torch.nn.modules.normalization.LayerNorm'):
            normed = layers.layer_norm(builder, value, f'{name}.ln_2', config.width, config.bias)
        with builder.scope(f'{name}.mlp', 'windlass_models.MLP'):
            sizes = (config.batch, config.tokens, config.width, 4 * config.width)
            hidden = layers.linear(builder, normed, f'{name}.mlp.c_fc', sizes, config.linear, has_bias=config.bias)
            hidden = layers.activation(builder, hidden, config.activation)
            sizes = (config.batch, config.tokens, 4 * config.width, config.width)
            hidden = layers.linear(builder, hidden, f'{name}.mlp.c_proj', sizes, config.linear, kind='residual', has_bias=config.bias)
            hidden = layers.dropout(builder, hidden, config.dropout)
        return builder.op('Add', [value, hidden], 'add')
