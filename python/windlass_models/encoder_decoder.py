"""Encoder-decoders: a T5-like one for texts, with relative positions, and a Whisper-like one from spectra to text."""

import dataclasses
import math

from onnx import TensorProto

from . import attention, checks, layers, loss
from .builder import OPSET, GraphBuilder
from .parameters import Parameters

KINDS = ('t5', 'whisper')
# The number of buckets of T5's relative positions. The last one is for all distances of at least FARTHEST tokens.
BUCKETS, FARTHEST = 32, 128


@dataclasses.dataclass(frozen=True)
class EncoderDecoderConfig:
    """The configuration of `layers` layers each. `source` is the number of the encoder's tokens (of a spectrum twice as many frames are read,
    each of `channels` numbers), `tokens` the decoder's. Heads may be wider together than the layers are."""
    kind: str = 't5'
    layers: int = 2
    width: int = 64
    heads: int = 4
    head_width: int = 16
    hidden: int = 256
    vocabulary: int = 256
    source: int = 32
    tokens: int = 32
    channels: int = 80
    batch: int = 4

    def __post_init__(self):
        checks.require_positive(self, 'layers', 'width', 'heads', 'head_width', 'hidden', 'vocabulary', 'source', 'tokens', 'channels', 'batch')
        if self.kind not in KINDS:
            raise ValueError(f'{self.kind}: only {" and ".join(KINDS)} are known')


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True):
    """Builds the training graph: `input_ids` [batch, source] or `input_features` [batch, channels, 2 source], `decoder_input_ids` and `labels`
    [batch, tokens] to the scalar `loss`."""
    builder = GraphBuilder(Parameters(seed, scale, 1.0 / math.sqrt(2 * config.layers), jitter, with_values), OPSET)
    model = (_T5 if config.kind == 't5' else _Whisper)(builder, config)
    with builder.scope('', f'windlass_models.{config.kind}'):
        return builder.model(model.build())


class _Model:
    """What both models share: attention of any tokens to any others, as transformers' eager form, and the order of a layer."""

    def __init__(self, builder, config):
        self.builder, self.config = builder, config

    def linear(self, value, name, tokens, inputs, outputs, has_bias, kind='matrix'):
        return layers.linear(self.builder, value, name, (self.config.batch, tokens, inputs, outputs), 'matmul', kind, has_bias)

    def attend(self, value, memory, name, tokens, others, bias, scale, has_bias):
        """Attends from `value`, of `tokens` tokens, to `memory`, of `others`; `bias` is added to the scores, where it is given."""
        config, builder, inner = self.config, self.builder, self.config.heads * self.config.head_width

        def heads(of, part, count, has_bias):
            split = builder.reshape(self.linear(of, f'{name}.{part}', count, config.width, inner, has_bias), [config.batch, count, config.heads, config.head_width])
            return builder.op('Transpose', [split], 'transpose', perm=[0, 2, 1, 3])

        # Whisper's keys have no bias.
        query, key, values = heads(value, 'q', tokens, has_bias), heads(memory, 'k', others, False), heads(memory, 'v', others, has_bias)
        scores = builder.op('MatMul', [query, builder.op('Transpose', [key], 'transpose', perm=[0, 1, 3, 2])], 'matmul')
        if scale != 1:
            scores = builder.op('Mul', [scores, builder.scalar(scale)], 'mul')
        if bias is not None:
            scores = builder.op('Add', [scores, bias], 'add')
        mixed = builder.op('MatMul', [builder.op('Softmax', [scores], 'softmax', axis=-1), values], 'matmul')
        joined = builder.reshape(builder.op('Transpose', [mixed], 'transpose', perm=[0, 2, 1, 3]), [config.batch, tokens, inner])
        return self.linear(joined, f'{name}.o', tokens, inner, config.width, has_bias, 'residual')

    def add(self, value, inner):
        return self.builder.op('Add', [value, inner], 'add')

    def layer(self, value, name, tokens, bias, memory=None):
        """Adds a layer of the encoder, or with the encoder's `memory` one of the decoder."""
        with self.builder.scope(name, 'windlass_models.Layer'):
            normal = self.norm(value, f'{name}.self_norm')
            value = self.add(value, self.attend(normal, normal, f'{name}.self', tokens, tokens, bias, self.scale, self.has_bias))
            if memory is not None:
                normal = self.norm(value, f'{name}.cross_norm')
                value = self.add(value, self.attend(normal, memory, f'{name}.cross', tokens, self.config.source, None, self.scale, self.has_bias))
            normal = self.norm(value, f'{name}.mlp_norm')
            hidden = self.activate(self.linear(normal, f'{name}.wi', tokens, self.config.width, self.config.hidden, self.has_bias))
            return self.add(value, self.linear(hidden, f'{name}.wo', tokens, self.config.hidden, self.config.width, self.has_bias, 'residual'))

    def embed(self, ids, name):
        table = self.builder.parameter(name, [self.config.vocabulary, self.config.width], 'matrix')
        return self.builder.op('Gather', [table, ids], 'embedding', origin='aten.embedding.default', axis=0)

    def causal(self):
        """Returns the bias that hides later tokens, [batch, 1, tokens, tokens]."""
        return attention.bias(self.builder, self.config, attention.causal_pattern(self.builder, self.config))

    def texts(self):
        shape = [self.config.batch, self.config.tokens]
        return self.builder.input('decoder_input_ids', TensorProto.INT64, shape), self.builder.input('labels', TensorProto.INT64, shape)

    def finish(self, value, labels, table):
        """Returns the loss of the decoder's values, with the embedding `table` as the weight of the last layer."""
        turned = self.builder.op('Transpose', [table], perm=[1, 0])
        logits = self.builder.op('MatMul', [value, turned], 'linear', origin='aten.linear.default')
        return loss.cross_entropy(self.builder, logits, labels, self.config.vocabulary)


class _T5(_Model):
    has_bias, scale = False, 1

    def norm(self, value, name):
        return layers.rms_norm(self.builder, value, name, self.config.width)

    def activate(self, value):
        return layers.relu(self.builder, value)

    def positions(self, name, tokens, is_causal):
        """Returns the bias of the scores by the distance of tokens, [1, heads, tokens, tokens]. One table serves all layers."""
        builder, integer = self.builder, TensorProto.INT64
        half = BUCKETS if is_causal else BUCKETS // 2
        near = half // 2
        queries = builder.op('Unsqueeze', [builder.arange(tokens), builder.vector(1)], 'unsqueeze')
        keys = builder.op('Unsqueeze', [builder.arange(tokens), builder.vector(0)], 'unsqueeze')
        distance, behind = builder.op('Sub', [keys, queries], 'sub'), None
        if is_causal:
            distance = builder.op('Neg', [builder.op('Min', [distance, builder.scalar(0, integer)], 'minimum')], 'neg')
        else:
            behind = builder.op('Cast', [builder.op('Greater', [distance, builder.scalar(0, integer)], 'gt')], '_to_copy', to=integer)
            behind = builder.op('Mul', [behind, builder.scalar(half, integer)], 'mul')
            distance = builder.op('Abs', [distance], 'abs')
        share = builder.op('Div', [builder.op('Cast', [distance], '_to_copy', to=TensorProto.FLOAT), builder.scalar(float(near))], 'div')
        share = builder.op('Div', [builder.op('Log', [share], 'log'), builder.scalar(math.log(FARTHEST / near))], 'div')
        far = builder.op('Cast', [builder.op('Mul', [share, builder.scalar(float(half - near))], 'mul')], '_to_copy', to=integer)
        far = builder.op('Min', [builder.op('Add', [far, builder.scalar(near, integer)], 'add'), builder.scalar(half - 1, integer)], 'minimum')
        ids = builder.op('Where', [builder.op('Less', [distance, builder.scalar(near, integer)], 'lt'), distance, far], 'where')
        if behind is not None:
            ids = builder.op('Add', [behind, ids], 'add')
        table = self.builder.parameter(f'{name}.relative_attention_bias', [BUCKETS, self.config.heads], 'matrix')
        values = self.builder.op('Gather', [table, ids], 'embedding', origin='aten.embedding.default', axis=0)
        turned = self.builder.op('Transpose', [values], 'permute', perm=[2, 0, 1])
        return self.builder.op('Unsqueeze', [turned, self.builder.vector(0)], 'unsqueeze')

    def build(self):
        config, builder = self.config, self.builder
        source = builder.input('input_ids', TensorProto.INT64, [config.batch, config.source])
        ids, labels = self.texts()
        value, bias = self.embed(source, 'shared.weight'), self.positions('encoder', config.source, is_causal=False)
        for index in range(config.layers):
            value = self.layer(value, f'encoder.{index}', config.source, bias)
        memory = self.norm(value, 'encoder.final_norm')
        value = self.embed(ids, 'shared.weight')
        bias = builder.op('Add', [self.positions('decoder', config.tokens, is_causal=True), self.causal()], 'add')
        for index in range(config.layers):
            value = self.layer(value, f'decoder.{index}', config.tokens, bias, memory)
        value = builder.op('Mul', [self.norm(value, 'decoder.final_norm'), builder.scalar(config.width ** -0.5)], 'mul')
        return self.finish(value, labels, 'shared.weight')


class _Whisper(_Model):
    has_bias = True

    @property
    def scale(self):
        return 1 / math.sqrt(self.config.head_width)

    def norm(self, value, name):
        return layers.layer_norm(self.builder, value, name, self.config.width)

    def activate(self, value):
        return layers.activation(self.builder, value, 'erf')

    def convolution(self, value, name, inputs, stride):
        weight = self.builder.parameter(f'{name}.weight', [self.config.width, inputs, 3], 'matrix')
        bias = self.builder.parameter(f'{name}.bias', [self.config.width], 'bias')
        found = self.builder.op('Conv', [value, weight, bias], 'conv1d', origin='aten.conv1d.default', auto_pad='NOTSET', group=1, kernel_shape=[3],
                                strides=[stride], dilations=[1], pads=[1, 1])
        return self.activate(found)

    def build(self):
        config, builder = self.config, self.builder
        value = builder.input('input_features', TensorProto.FLOAT, [config.batch, config.channels, 2 * config.source])
        ids, labels = self.texts()
        value = self.convolution(self.convolution(value, 'encoder.conv1', config.channels, 1), 'encoder.conv2', config.width, 2)
        value = self.add(builder.op('Transpose', [value], 'permute', perm=[0, 2, 1]), builder.parameter('encoder.embed_positions', [config.source, config.width], 'matrix'))
        for index in range(config.layers):
            value = self.layer(value, f'encoder.{index}', config.source, None)
        memory = self.norm(value, 'encoder.layer_norm')
        value = self.add(self.embed(ids, 'decoder.embed_tokens.weight'), builder.parameter('decoder.embed_positions', [config.tokens, config.width], 'matrix'))
        bias = self.causal()
        for index in range(config.layers):
            value = self.layer(value, f'decoder.{index}', config.tokens, bias, memory)
        return self.finish(self.norm(value, 'decoder.layer_norm'), labels, 'decoder.embed_tokens.weight')
