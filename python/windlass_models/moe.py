"""A LLaMA-like language model with a mixture of experts in place of each MLP. Every expert sees every token, without a limit of its
capacity; the router says how much of each result a token gets."""

import dataclasses

from onnx import TensorProto

from . import layers, llama

# topk: TopK and a one-hot matrix, as the exporter writes a router; threshold: everything below the k-th greatest is masked.
ROUTERS = ('topk', 'threshold')


@dataclasses.dataclass(frozen=True)
class MoeConfig(llama.LlamaConfig):
    experts: int = 4
    chosen: int = 2
    router: str = 'topk'

    def __post_init__(self):
        super().__post_init__()
        if not 1 <= self.chosen <= self.experts:
            raise ValueError(f'{self.chosen} of {self.experts} experts are chosen: it must be 1 to {self.experts}')


def build(config, seed=0, scale=0.02, jitter=0.0, with_values=True):
    """The training graph: `input_ids` and `labels` [batch, tokens], which the graph shifts, to the scalar `loss`."""
    return llama.build(config, seed, scale, jitter, with_values, feed_forward=_experts)


def _experts(builder, value, name, config):
    """[batch, tokens, width] to the same."""
    batch, tokens, width = config.batch, config.tokens, config.width
    with builder.scope(f'{name}.moe', 'windlass_models.Experts'):
        flat = builder.reshape(value, [-1, width])
        with builder.scope(f'{name}.moe.gate', 'torch.nn.modules.linear.Linear'):
            weight = builder.parameter(f'{name}.moe.gate.weight', [config.experts, width], 'matrix')
            scores = builder.op('Gemm', [flat, weight], 'linear', origin='aten.linear.default', alpha=1.0, beta=1.0, transA=0, transB=1)
        shares = {'topk': _chosen_by_topk, 'threshold': _chosen_by_threshold}[config.router](builder, scores, config)

        def product(of, part, inputs, outputs, kind):
            weights = builder.parameter(f'{name}.moe.{part}', [config.experts, inputs, outputs], kind)
            return builder.op('MatMul', [of, weights], 'matmul')

        spread = builder.op('Unsqueeze', [flat, builder.vector(0)], 'unsqueeze')
        gate = layers.silu(builder, product(spread, 'gate_proj', width, config.hidden, 'matrix'))
        gated = builder.op('Mul', [gate, product(spread, 'up_proj', width, config.hidden, 'matrix')], 'mul')
        results = product(gated, 'down_proj', config.hidden, width, 'residual')
        turned = builder.op('Unsqueeze', [builder.op('Transpose', [shares], 't', perm=[1, 0]), builder.vector(-1)], 'unsqueeze')
        mixed = builder.op('ReduceSum', [builder.op('Mul', [results, turned], 'mul'), builder.vector(0)], 'sum', keepdims=0, noop_with_empty_axes=0)
        return builder.reshape(mixed, [batch, tokens, width])


def _normalized(builder, values):
    total = builder.op('ReduceSum', [values, builder.vector(-1)], 'sum', keepdims=1, noop_with_empty_axes=0)
    return builder.op('Div', [values, total], 'div')


def _chosen_by_topk(builder, scores, config):
    """[batch · tokens, experts]: the shares of the chosen experts, 0 for the others."""
    chances = builder.op('Softmax', [scores], 'softmax', axis=-1)
    values, places = builder.op('TopK', [chances, builder.vector(config.chosen)], 'getitem', outputs=2, origin='aten.topk.default',
                                axis=-1, largest=1, sorted=1)
    numbers = builder.arange(config.experts)
    hits = builder.op('Equal', [builder.op('Unsqueeze', [places, builder.vector(-1)], 'unsqueeze'), numbers], 'eq')
    one_hot = builder.op('Cast', [builder.op('Cast', [hits], '_to_copy', to=TensorProto.INT64)], '_to_copy', to=TensorProto.FLOAT)
    rows = builder.op('Unsqueeze', [_normalized(builder, values), builder.vector(1)], 'unsqueeze')
    return builder.op('Squeeze', [builder.op('MatMul', [rows, one_hot], 'matmul'), builder.vector(1)], 'squeeze')


def _chosen_by_threshold(builder, scores, config):
    """The same where no two experts of a token have equal chances."""
    chances = builder.op('Softmax', [scores], 'softmax', axis=-1)
    rest = chances
    for _ in range(config.chosen - 1):
        greatest = builder.op('ReduceMax', [rest, builder.vector(-1)], 'amax', keepdims=1, noop_with_empty_axes=0)
        rest = builder.op('Where', [builder.op('GreaterOrEqual', [rest, greatest], 'ge'), builder.scalar(-1.0), rest], 'where')
    threshold = builder.op('ReduceMax', [rest, builder.vector(-1)], 'amax', keepdims=1, noop_with_empty_axes=0)
    kept = builder.op('GreaterOrEqual', [chances, threshold], 'ge')
    return _normalized(builder, builder.op('Where', [kept, chances, builder.scalar(0.0)], 'where'))
