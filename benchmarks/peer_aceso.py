"""Cases of the planner Aceso under its own cost rules: what a plan takes, and how plans of `windlass-peers aceso` compare with Aceso's.

A case is a folder with case.json (cluster, limits, Aceso's results), ops.csv (times and sizes of operators), collectives.csv and p2p.csv. Nothing here
is shared with the program that makes the plans: `evaluate` computes every number from the files. Times are in milliseconds and sizes in MB unless a
name says otherwise.
"""

import collections
import csv
import json
import math
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEERS = ROOT / 'build' / 'bin' / 'windlass-peers'
# The time of a collective whose size was not measured, which rules it out.
UNKNOWN_MS = 100_000
# Per MB of weights: the weights, a master copy, gradients and optimizer state in half precision; no master copy in full precision.
COPIES, COPIES_FP32 = 1 + 2 + 1 + 4, 1 + 1 + 2
Row = collections.namedtuple('Row', 'forward backward input output weights activations forward_reserved backward_reserved')
Stage = collections.namedtuple('Stage', 'first ops gpus tensor data algorithm recomputed')


class Case:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.facts = json.loads((folder / 'case.json').read_text())
        self.rows, names = {}, []
        for line in _lines(folder / 'ops.csv'):
            key = (line['op'], int(line['micro_batch']), int(line['tensor_parallel']), int(line['algorithm']))
            self.rows[key] = Row(*(float(line[column]) for column in (
                'forward_us', 'backward_us', 'input_mb', 'output_mb', 'weights_mb', 'activations_mb', 'forward_reserved_mb', 'backward_reserved_mb')))
            if line['op'] not in names:
                names.append(line['op'])
        self.ops = _order(names, self.facts['model'])
        # Models that never change layouts come without.
        table = folder / 'collectives.csv'
        self.collectives = {(line['collective'], int(line['gpus']), line['mb']): float(line['ms']) for line in (_lines(table) if table.exists() else ())}
        self.links = collections.defaultdict(list)
        for line in _lines(folder / 'p2p.csv'):
            self.links[line['link']].append(float(line['gb_per_s']))
        self.copies = COPIES_FP32 if self.facts['model'].get('precision') == 'fp32' else COPIES

    def row(self, stage, position, micro_batch):
        """Returns the row of an operator of a stage, or nothing where it was not measured."""
        key = (self.ops[stage.first + position], micro_batch // stage.data[position], stage.tensor[position], stage.algorithm[position])
        return self.rows.get(key)


def _lines(path):
    with open(path, newline='') as file:
        return list(csv.DictReader(file))


def _order(names, model):
    """Returns the operators of the model in order. What `op_order` calls "ops 2-14 once per layer" repeats, all others run once."""
    ops, done = [], 0
    for first, last in re.findall(r'(\d+)\s*-\s*(\d+) once per layer', model.get('op_order', '')):
        ops += names[done:int(first) - 1] + names[int(first) - 1:int(last)] * model['layers']
        done = int(last)
    return ops + names[done:]


def _transfer_us(case, size, link):
    """Returns the time in microseconds to hand `size` MB to another stage."""
    if size <= 0:
        return 0
    speeds = case.links[link] or case.links['intra_node']
    index = int(math.log(size, 2))
    if index >= 1:
        index -= 1
    return size / (speeds[max(min(index, len(speeds) - 1), -len(speeds))] * 1e-3)


def layout(op, tensor, data, algorithm, is_input):
    """Returns how an operator's input or output lies on the GPUs of its stage: the number of replicas, and in how many parts each of three dimensions is
    split. Returns nothing where any layout will do. In the middle of a model the batch is the second dimension, in attention and at the end the first."""
    split, whole = (1, (1, data, tensor)), (tensor, (1, data, 1))
    if op == 'encoder-embedding':
        return None if is_input else whole
    if op in ('enc-1st-layernorm', 'enc-2nd-layernorm', 'enc-post-attention-dropout', 'enc-post-MLP-dropout'):
        return whole
    if op in ('enc-attention-qkv', 'enc-MLP-GEMM-1'):
        return whole if is_input == (algorithm == 0) else split
    if op in ('enc-attention-dense', 'enc-MLP-GEMM-2'):
        return split if is_input == (algorithm == 0) else whole
    if op == 'enc-MLP-gelu':
        return split
    heads = (1, (data, tensor, 1))
    if op == 'enc-attention-score':
        return split if is_input else heads
    if op in ('enc-attention-softmax', 'enc-attention-dropout'):
        return heads
    if op == 'enc-attention-context':
        return heads if is_input else split
    rows = (tensor, (data, 1, 1))
    if op == 'final-layernorm':
        return whole if is_input else rows
    if op == 'gpt-post-process':
        return rows if is_input else None
    if any(part in op for part in ('conv', 'downsample', 'bn', 'relu', 'pool', 'fc')):
        return rows
    return None


def reshard(before, after):
    """Returns the collectives of forward and backward pass between two layouts, and the size of their groups. Nothing stands for a collective that moves
    no data."""
    if before is None or after is None or before == after:
        return None, None, 0
    (from_replicas, source), (to_replicas, target) = before, after
    if from_replicas > to_replicas:
        return None, 'all_gather', from_replicas // to_replicas
    shrinks = next(i for i in range(3) if source[i] > target[i])
    if from_replicas < to_replicas:
        return 'all_gather', None, source[shrinks] // target[shrinks]
    return 'all_to_all', 'all_to_all', source[shrinks] // target[shrinks]


def _collective_us(case, name, gpus, size):
    if name is None:
        return 0
    for key in (f'{size:.0f}', f'{size - 1:.0f}'):
        if (name, gpus, key) in case.collectives:
            return 1000 * case.collectives[name, gpus, key]
    return 1000 * UNKNOWN_MS


def stage_ms(case, stage, micro_batch, gpus_before):
    """Returns the time of one micro-batch on a stage; `gpus_before` is the number of GPUs of the stages before it."""
    rows = [case.row(stage, position, micro_batch) for position in range(stage.ops)]
    per_node = case.facts['gpus_per_node']
    enters, leaves = ('inter_node' if gpus and gpus % per_node == 0 else 'intra_node' for gpus in (gpus_before, gpus_before + stage.gpus))
    total = sum(row.forward + row.backward for row in rows) + sum(rows[position].forward for position in stage.recomputed)
    total += _transfer_us(case, rows[0].input, enters) + _transfer_us(case, rows[-1].output, leaves)
    for position in range(1, stage.ops if case.collectives else 0):
        sides = [layout(case.ops[stage.first + i], stage.tensor[i], stage.data[i], stage.algorithm[i], i == position) for i in (position - 1, position)]
        forward, backward, gpus = reshard(*sides)
        total += sum(_collective_us(case, name, gpus, rows[position].input) for name in (forward, backward))
    return total / 1000


def _kept(op, row):
    """Returns the size that an operator keeps for its backward pass. Some operators share it with a neighbour."""
    if op == 'enc-attention-dropout':
        return 1.5 * row.activations
    if op in ('enc-attention-softmax', 'bn1') or '-bn3' in op or ('-downsample' in op and '0-0' not in op):
        return 0
    return row.activations


def stage_mb(case, stage, micro_batch, stages_after):
    """Returns the memory that a stage allocates, and what is reserved beyond."""
    ops = case.ops[stage.first:stage.first + stage.ops]
    rows = [case.row(stage, position, micro_batch) for position in range(stage.ops)]
    weights = sum(row.weights for row in rows)
    kept = [_kept(op, row) for op, row in zip(ops, rows)]
    saved = peak = run = 0
    for position in range(stage.ops - 1):
        if position not in stage.recomputed or position + 1 not in stage.recomputed:
            run = 0
            continue
        run += kept[position]
        peak = max(peak, run)
        # The input of a layer stays, and what is recomputed for one layer is gone before the layer in front of it needs the memory.
        if ops[position + 1] == 'enc-1st-layernorm' or '-conv1' in ops[position + 1]:
            run = 0
        else:
            saved += kept[position]
    in_flight = rows[0].input + sum(kept) - saved
    reserved = max(max((row.forward_reserved for row in rows[:-1]), default=0) + max((row.backward_reserved for row in rows[:-1]), default=0), weights)
    return case.copies * weights + in_flight * (stages_after + 1) + peak, reserved


def _spread(value, count):
    """Returns one value for each operator; an answer may give one for all."""
    values = value if isinstance(value, list) else [value]
    return values * count if len(values) == 1 else values


def _read_stages(answer):
    """Returns the stages of an answer; those of a stored plan name fewer things."""
    stages, first = [], 0
    for stage in answer['stages']:
        recomputed = stage.get('recomputed', stage.get('recomputed_op_positions', []))
        degrees = [_spread(stage[key], stage['ops']) for key in ('tensor_parallel', 'data_parallel', 'algorithm')]
        stages.append(Stage(stage.get('first_op', first), stage['ops'], stage['gpus'], *degrees, frozenset(recomputed)))
        first += stage['ops']
    return stages


def _problems_of_stage(case, stage, micro_batch):
    if stage.ops < 1 or stage.first + stage.ops > len(case.ops):
        return ['has no operators of the model']
    if any(len(values) != stage.ops for values in (stage.tensor, stage.data, stage.algorithm)):
        return ['does not say how each operator runs']
    problems = []
    if stage.gpus < 1 or stage.gpus & (stage.gpus - 1):
        problems.append('does not have a power of two of GPUs')
    if any(tensor * data != stage.gpus for tensor, data in zip(stage.tensor, stage.data)):
        problems.append('has an operator that does not use all its GPUs')
    if max(stage.tensor) > case.facts['max_tensor_parallel']:
        problems.append('has too high a tensor-parallel degree')
    if any(data < 1 or micro_batch % data for data in stage.data) or any(case.row(stage, i, micro_batch) is None for i in range(stage.ops)):
        problems.append('has an operator that was not measured')
    if not stage.recomputed <= set(range(stage.ops)):
        problems.append('recomputes what it does not run')
    return problems


def evaluate(folder, answer):
    """Returns the milliseconds of an iteration under a plan, and what is wrong with the plan, one line each. The time is infinite where the plan is not
    even one of the case."""
    case, micro_batch, stages = Case(folder), answer['micro_batch'], _read_stages(answer)
    problems = [f'stage {i} {problem}' for i, stage in enumerate(stages) for problem in _problems_of_stage(case, stage, micro_batch)]
    if [stage.first for stage in stages] != [sum(stage.ops for stage in stages[:i]) for i in range(len(stages))]:
        problems.append('stages do not follow each other')
    if sum(stage.ops for stage in stages) != len(case.ops):
        problems.append('stages do not have all operators')
    if sum(stage.gpus for stage in stages) != case.facts['gpus_per_node'] * case.facts['nodes']:
        problems.append('stages do not have all GPUs')
    if micro_batch not in case.facts['micro_batches'] or case.facts['global_batch'] % micro_batch:
        problems.append('the micro-batch is not one of the case')
    if problems:
        return math.inf, problems
    limit = case.facts['memory_limit_mb']
    for i, stage in enumerate(stages):
        needed = sum(stage_mb(case, stage, micro_batch, len(stages) - 1 - i))
        # Sums of decimal numbers differ in the last bits by the order of the terms.
        if needed > limit + 1e-6:
            problems.append(f'stage {i} needs {needed:.2f} MB of {limit}')
    before = [sum(stage.gpus for stage in stages[:i]) for i in range(len(stages))]
    times = [stage_ms(case, stage, micro_batch, gpus) for stage, gpus in zip(stages, before)]
    return max(times) * (case.facts['global_batch'] // micro_batch - 1) + sum(times), problems


def their_result(case):
    """Returns the milliseconds of Aceso's plan by its own prediction and the seconds of its search, of a rerun where there is one."""
    results = case.facts['results']
    published, rerun = results.get('published') or {}, results.get('rerun')
    if rerun:
        return rerun['best_predicted_iteration_ms'], rerun['search_wall_seconds']
    seconds = published.get('search_seconds') or {}
    value = published.get('predicted_iteration_ms')
    return 1000 * published['predicted_iteration_s'] if value is None else value, seconds.get('aceso')


def compare(folder):
    """Yields a row for each case below `folder`, with both plans' milliseconds, how many times as good ours is, the seconds of both searches, and what is
    wrong."""
    for path in sorted(pathlib.Path(folder).rglob('case.json')):
        case = Case(path.parent)
        theirs, their_seconds = their_result(case)
        begin = time.monotonic()
        outcome = subprocess.run([PEERS, 'aceso', path.parent], capture_output=True, text=True)
        seconds = time.monotonic() - begin
        row = {'case': path.parent.name, 'theirs': theirs, 'their_seconds': their_seconds, 'seconds': seconds}
        if outcome.returncode != 0:
            yield {**row, 'ours': None, 'gain': None, 'wrong': [outcome.stderr.strip()]}
            continue
        answer = json.loads(outcome.stdout)
        ours, problems = evaluate(path.parent, answer)
        if abs(ours - answer['iteration_ms']) > 1e-6 * ours:
            problems.append(f'the answer claims {answer["iteration_ms"]} ms')
        if ours > theirs:
            problems.append('ours is slower')
        yield {**row, 'ours': ours, 'gain': theirs / ours, 'wrong': problems}
