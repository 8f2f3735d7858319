"""A LLaMA-like language model with a mixture of experts in place of each MLP, without a limit of their capacity. Either every expert sees
every token and the router says how much of each result a token gets, or each token sees the chosen experts only."""

import dataclasses

from onnx import TensorProto

from . import layers, llama

# topk: TopK and a one-hot matrix, as the exporter writes a router; threshold: everything below the k-th greatest is masked; gather: TopK,
# and each choice multiplies a copy of its expert's weights, as transformers' batched_mm does.
ROUTERS = ('topk', 'threshold', 'gather')


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
    """Builds the training graph: `input_ids` and `labels` [batch, tokens], which the graph shifts, to the scalar `loss`."""
    return llama.build(config, seed, scale, jitter, with_values, feed_forward=_experts)


def _experts(builder, value, name, config):
    """Applies the experts to [batch, tokens, width]."""
    batch, tokens, width = config.batch, config.tokens, config.width
    with builder.scope(f'{name}.moe', 'windlass_models.Experts'):
        flat = builder.reshape(value, [-1, width])
        with builder.scope(f'{name}.moe.gate', 'torch.nn.modules.linear.Linear'):
            scores = layers.flat_linear(builder, flat, f'{name}.moe.gate', width, config.experts, has_bias=False)
        chances = builder.op('Softmax', [scores], 'softmax', axis=-1)
        if config.router == 'gather':
            return builder.reshape(_of_chosen(builder, flat, chances, name, config), [batch, tokens, width])
        shares = {'topk': _chosen_by_topk, 'threshold': _chosen_by_threshold}[config.router](builder, chances, config)

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


def _of_chosen(builder, flat, chances, name, config):
    """Returns [batch · tokens, width]: the results of the chosen experts, weighed by their shares."""
    width, hidden, chosen = config.width, config.hidden, config.chosen
    values, places = _top(builder, chances, config)
    numbers = builder.op('Unsqueeze', [builder.reshape(places, [-1]), builder.vector(-1)], 'unsqueeze')

    def product(of, part, outputs, inputs, kind):
        weights = builder.parameter(f'{name}.moe.experts.{part}', [config.experts, outputs, inputs], kind)
        copies = builder.op('GatherND', [weights, numbers], 'index', origin='aten.index.Tensor', batch_dims=0)
        columns = builder.op('Unsqueeze', [of, builder.vector(-1)], 'unsqueeze')
        return builder.op('Squeeze', [builder.op('MatMul', [copies, columns], 'bmm'), builder.vector(-1)], 'squeeze')

    each = builder.op('Expand', [builder.op('Unsqueeze', [flat, builder.vector(1)]), builder.dims([1, chosen, 1])])
    each = builder.reshape(each, [-1, width], 'repeat_interleave')
    both = product(each, 'gate_up_proj', 2 * hidden, width, 'matrix')
    sequence = builder.op('SplitToSequence', [both, builder.scalar(hidden, TensorProto.INT64)], 'split', axis=-1, keepdims=1)
    gate, up = (builder.op('SequenceAt', [sequence, builder.scalar(index, TensorProto.INT64)], 'getitem') for index in range(2))
    results = product(builder.op('Mul', [layers.silu(builder, gate), up], 'mul'), 'down_proj', width, hidden, 'residual')
    shares = builder.op('Unsqueeze', [builder.reshape(_normalized(builder, values), [-1]), builder.vector(-1)], 'unsqueeze')
    weighted = builder.reshape(builder.op('Mul', [results, shares], 'mul'), [-1, chosen, width])
    return builder.op('ReduceSum', [weighted, builder.vector(1)], 'sum', keepdims=0, noop_with_empty_axes=0)


def _top(builder, chances, config):
    """Returns the greatest probabilities of each token, and their experts."""
    return builder.op('TopK', [chances, builder.vector(config.chosen)], 'getitem', outputs=2, origin='aten.topk.default',
                      axis=-1, largest=1, sorted=1)


def _normalized(builder, values):
    total = builder.op('ReduceSum', [values, builder.vector(-1)], 'sum', keepdims=1, noop_with_empty_axes=0)
    return builder.op('Div', [values, total], 'div')


def _chosen_by_topk(builder, chances, config):
    """Returns [batch · tokens, experts]: the shares of the chosen experts, 0 for the others."""
    values, places = _top(builder, chances, config)
    numbers = builder.arange(config.experts)
    hits = builder.op('Equal', [builder.op('Unsqueeze', [places, builder.vector(-1)], 'unsqueeze'), numbers], 'eq')
    one_hot = builder.op('Cast', [builder.op('Cast', [hits], '_to_copy', to=TensorProto.INT64)], '_to_copy', to=TensorProto.FLOAT)
    rows = builder.op('Unsqueeze', [_normalized(builder, values), builder.vector(1)], 'unsqueeze')
    return builder.op('Squeeze', [builder.op('MatMul', [rows, one_hot], 'matmul'), builder.vector(1)], 'squeeze')


def _chosen_by_threshold(builder, chances, config):
    """Returns the same where no two experts of a token have equal probabilities."""
    rest = chances
    for _ in range(config.chosen - 1):
        greatest = builder.op('ReduceMax', [rest, builder.vector(-1)], 'amax', keepdims=1, noop_with_empty_axes=0)
        rest = builder.op('Where', [builder.op('GreaterOrEqual', [rest, greatest], 'ge'), builder.scalar(-1.0), rest], 'where')
    threshold = builder.op('ReduceMax', [rest, builder.vector(-1)], 'amax', keepdims=1, noop_with_empty_axes=0)
    kept = builder.op('GreaterOrEqual', [chances, threshold], 'ge')
    return _normalized(builder, builder.op('Where', [kept, chances, builder.scalar(0.0)], 'where'))
