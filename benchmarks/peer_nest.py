"""NEST's problem: pipelines of stages, each of consecutive layers on equally many devices, that train a global batch in the least time.

A folder holds `layers.json`, what the layers of each model take; `setups.json`, devices and networks; `units.json`, what NEST's plans and fixed ones come
to where every block counts 1; and `reference_results.json`, its tables. By NEST's rules layers take ms and transfers take seconds, and both are added as they
are, so times below are in that mixed unit. Sizes are in bytes.

The rules leave open what hardly counts in that unit. Here a pipeline begins at the start of a group of devices of every level, so that the place of a
stage says which level a hop to it crosses; and gradients go up and down each level that the replicas of a stage span. A GB of memory is 2^30 bytes, as
one of bandwidth is. ZeRO is a choice only where a layer does not fit. It costs no time, so the search takes its third stage, which takes the least memory.
"""

import json
import math
import time

import numpy

LEVELS = range(3)
# Layer times that contradict those of other models by orders of magnitude.
WRONG_TIMES = {('h100_spineLeaf', 'llama2_7b'): 'layer times are too small by 10', ('h100_spineLeaf', 'bert_large'): 'layer times are too small by 1,000'}


def read_layers(entry):
    """The layers of one model at one tensor-parallel degree, one behind another: times in ms, sizes in bytes."""
    layers = []
    for kind in entry['layers']:
        for _ in range(kind['copies']):
            layers.append({'forward': kind['forward_large_core'], 'backward': kind['backward_large_core'], 'parameters': 2 * kind['parameters'],
                           'activations': 2 * kind['activation_elements'], 'input': 2 * entry['boundary_elements_before_to_block'] if layers else 0,
                           'blocks': int(kind['layer'] == 'block')})
    return layers


def read_problem(folder, model, setup, devices):
    models, setups = (json.loads((folder / f'{name}.json').read_text()) for name in ('layers', 'setups'))
    entry, network = models[model], setups['topologies'][setup]
    micro_batch = entry['micro_batch'] * entry['expert_parallel']
    # Whether layers are recomputed is as NEST's runs had it.
    return {'layers': {int(degree): read_layers(layers) for degree, layers in entry['setups'][setup].items()}, 'devices': devices,
            'expert_parallel': entry['expert_parallel'], 'micro_batches': setups['global_batch'] // micro_batch,
            'recompute': [entry['activation_recomputation']], 'memory': network['memory_gb'] * 2**30,
            'bandwidth': [rate * 2**30 for rate in network['bandwidth_gb_per_s']], 'latency': network['latency_s'],
            'groups': network['devices_per_level'][str(devices)]}


def in_blocks(problem):
    """The same problem where a block's passes take 1 together and nothing else takes any time."""
    layers = {degree: [{**layer, 'forward': layer['blocks'], 'backward': 0} for layer in chain] for degree, chain in problem['layers'].items()}
    return {**problem, 'layers': layers, 'bandwidth': [math.inf] * len(LEVELS), 'latency': [0] * len(LEVELS)}


def hop_time(problem, size, place):
    """Seconds to hand a stage an input of `size` bytes; `place` is its first device, counted from the start of the pipeline."""
    level = sum(place % math.prod(problem['groups'][:above]) == 0 for above in LEVELS[1:])
    once = size / min(problem['bandwidth'][:level + 1]) + problem['latency'][level]
    return once if level == 0 else 2 * once


def exchange_time(problem, size, pipelines):
    """Seconds to add up a stage's gradients, `size` bytes, over all pipelines."""
    if pipelines == 1:
        return 0
    bandwidth, latency = problem['bandwidth'], problem['latency']
    seconds = sum(latency[0] + size / 2**step / bandwidth[0] for step in range(1, math.ceil(math.log2(pipelines)) + 1))
    farthest = (pipelines - 1) * (problem['devices'] // pipelines)
    for level in LEVELS[1:]:
        if farthest >= math.prod(problem['groups'][:level]):
            seconds += 2 * (latency[level] + size / bandwidth[level])
    return seconds


def state_bytes(parameters, zero_stage, ranks):
    """Bytes of parameters and gradients; the optimizer has no state."""
    return parameters / (ranks if zero_stage == 3 else 1) + parameters / (ranks if zero_stage >= 2 else 1)


def needs_zero(problem, degree):
    return any(2 * layer['parameters'] + layer['activations'] > problem['memory'] for layer in problem['layers'][degree])


def evaluate(problem, plan):
    """Returns a plan's batch time, the bytes of each of its stages, and what is wrong with it. A plan says how many layers each of its `stages` has."""
    layers, stages, pipelines, wrong = problem['layers'][plan['tensor_parallel']], plan['stages'], plan['pipelines'], []
    width = plan['tensor_parallel'] * problem['expert_parallel']
    if sum(stages) != len(layers) or min(stages) < 1:
        return None, [], ['a layer is in no stage, or a stage has no layer']
    if len(stages) * width > problem['devices'] // pipelines:
        wrong.append('more devices than a pipeline has')
    if plan['recompute'] not in problem['recompute']:
        wrong.append('recompute is not a choice')
    if plan['zero_stage'] and (not needs_zero(problem, plan['tensor_parallel']) or plan['zero_ranks'] > pipelines):
        wrong.append('ZeRO where every layer fits, or over more ranks than there are')
    loads, memory, begin = [], [], 0
    for index, count in enumerate(stages):
        members, behind = layers[begin:begin + count], len(stages) - 1 - index
        begin += count
        load = sum(layer['forward'] + layer['backward'] for layer in members)
        if plan['recompute'] and behind:
            load += sum(layer['backward'] for layer in members)
        if index:
            load += hop_time(problem, members[0]['input'], index * width)
        if behind:
            load += hop_time(problem, layers[begin]['input'], (index + 1) * width)
        loads.append(load)
        kept = sum(layer['activations'] for layer in members)
        stash = members[0]['input'] if plan['recompute'] else kept
        states = state_bytes(sum(layer['parameters'] for layer in members), plan['zero_stage'], plan['zero_ranks'])
        memory.append(states + kept + behind * stash)
        if memory[-1] > problem['memory'] * (1 + 1e-12):
            wrong.append(f'stage {index} takes {memory[-1]:.0f} bytes of {problem["memory"]}')
    rounds = math.ceil(problem['micro_batches'] / pipelines) + len(stages) - 1
    exchanged = exchange_time(problem, sum(layer['parameters'] for layer in layers[:stages[0]]), pipelines)
    return max(loads) * rounds + exchanged, memory, wrong


class Cuts:
    """The best cuts of one model's layers into stages, at one tensor-parallel degree, with or without recompute, sharded by ZeRO-3 over `zero_ranks` ranks."""

    def __init__(self, problem, degree, recompute, zero_ranks):
        self.problem, self.layers, self.recompute = problem, problem['layers'][degree], recompute
        self.width = degree * problem['expert_parallel']

        def sums(key):
            totals = numpy.concatenate([[0.0], numpy.cumsum([layer[key] for layer in self.layers])])
            return totals - totals[:, None]
        self.passes, self.again = sums('forward') + sums('backward'), sums('backward')
        self.parameters, self.activations = sums('parameters'), sums('activations')
        self.states = state_bytes(self.parameters, 3 if zero_ranks > 1 else 0, zero_ranks)
        self.inputs = numpy.array([layer['input'] for layer in self.layers] + [0], float)
        self.stash = self.inputs[:, None] if recompute else self.activations

    def loads(self, stages, index):
        """For each first layer and layer behind the last, the load of the stage with this index, infinite where it does not fit."""
        behind = stages - 1 - index
        loads = self.passes + (self.again if self.recompute and behind else 0)
        if index:
            loads = loads + hop_time(self.problem, self.inputs, index * self.width)[:, None]
        if behind:
            loads = loads + hop_time(self.problem, self.inputs, (index + 1) * self.width)
        fits = self.states + self.activations + behind * self.stash <= self.problem['memory']
        numbers = numpy.arange(len(self.inputs))
        return numpy.where(fits & (numbers[:, None] < numbers), loads, math.inf)

    def best(self, stages):
        """For each number of layers in the first stage, the least load of the busiest stage; and for each stage and first layer the layer behind its last."""
        least = numpy.where(numpy.arange(len(self.inputs)) == len(self.layers), 0.0, math.inf)
        nexts = []
        for index in range(stages - 1, -1, -1):
            busiest = numpy.maximum(self.loads(stages, index), least)
            nexts.append(busiest.argmin(axis=1))
            least = busiest.min(axis=1)
        return busiest[0], nexts[::-1]


def unfold(cut, nexts):
    """The numbers of layers of all stages, where the first has `cut`."""
    stages, at = [cut], cut
    for step in nexts[1:]:
        stages.append(int(step[at]) - at)
        at = int(step[at])
    return stages


def search(problem, degrees=None, stages=None, pipelines=None):
    """Returns the best plan and its time, optionally of these tensor-parallel degrees, number of stages and number of pipelines; None where nothing fits.

    For a number of stages, and of layers in the first, dynamic programming over cuts finds the least load of the busiest stage, which does not depend on the
    number of pipelines; the exchange of gradients depends only on that and the first stage. So the best of all combinations is the best plan.
    """
    best, least = None, math.inf
    for degree in degrees or problem['layers']:
        width, count = degree * problem['expert_parallel'], len(problem['layers'][degree])
        ranks = [1 << exponent for exponent in range(problem['devices'].bit_length())] if needs_zero(problem, degree) else [1]
        for recompute in problem['recompute']:
            for zero_ranks in ranks:
                cuts = Cuts(problem, degree, recompute, zero_ranks)
                for depth in [stages] if stages else range(1, min(count, problem['devices'] // width) + 1):
                    if depth > count:
                        continue
                    busiest, nexts = cuts.best(depth)
                    for replicas in [pipelines] if pipelines else range(zero_ranks, problem['devices'] // (depth * width) + 1):
                        if depth * width > problem['devices'] // replicas or replicas < zero_ranks:
                            continue
                        rounds = math.ceil(problem['micro_batches'] / replicas) + depth - 1
                        times = busiest * rounds + exchange_time(problem, cuts.parameters[0], replicas)
                        cut = int(times.argmin())
                        if times[cut] < least:
                            least = float(times[cut])
                            best = {'pipelines': replicas, 'tensor_parallel': degree, 'recompute': recompute, 'zero_stage': 3 if zero_ranks > 1 else 0,
                                    'zero_ranks': zero_ranks, 'stages': unfold(cut, nexts)}
    return best, least


def most_units(rows, row):
    """The most blocks that NEST's plan may take, since its table rounds speeds, all of a setup to as many decimals."""
    speeds = {(each['model'], each['devices']): each['nest'] for each in rows if each['setup'] == row['setup'] and each['sweep'] == 'devices'}
    decimals = max(len(str(speed).partition('.')[2]) for speed in speeds.values())
    speed = speeds[row['model'], row['devices']]
    return (row['nest_units'] + 0.05) * speed / (speed - 0.5 * 10**-decimals)


def compare_plan(name, problem, theirs, most, **limits):
    """A row for one problem; `theirs` may be as much as `most` before rounding."""
    begin = time.monotonic()
    plan, ours = search(problem, **limits)
    seconds = time.monotonic() - begin
    again, _, wrong = evaluate(problem, plan) if plan else (ours, None, ['nothing fits'])
    if plan and abs(again - ours) > 1e-9 * ours:
        wrong.append(f'the plan is worth {again}')
    if ours > most:
        wrong.append('ours is slower')
    return {'case': name, 'theirs': theirs, 'ours': ours, 'gain': theirs / ours, 'their_seconds': None, 'seconds': seconds, 'wrong': wrong}


def compare(folder):
    """Yields two rows for each of NEST's plans: its value in blocks and ours; the ms of the fastest fixed plan, cut in the best way, and ours. Then yields
    rows for what is left out, with the reason.
    """
    units, tables, setups = (json.loads((folder / f'{name}.json').read_text()) for name in ('units', 'reference_results', 'setups'))
    compared = set()
    for row in units:
        model, setup, devices = row['model'], row['setup'], row['devices']
        name = f'{model}, {setup}, {devices} devices'
        problem = read_problem(folder, model, setup, devices)
        blocks = in_blocks(problem)
        fixed = [row[kind] for kind in ('manual', 'mcmc', 'phaze') if kind in row]
        compared.add((setup, model, devices))
        line = compare_plan(f'{name}, blocks', blocks, row['nest_units'], most_units(tables, row), degrees={plan['tensor_parallel'] for plan in fixed})
        limits = [([plan['tensor_parallel']], plan['stages'], plan['data_parallel']) for plan in fixed]
        for plan, limit in zip(fixed, limits):
            again = search(blocks, *limit)[1]
            if again != plan['as_given']:
                line['wrong'].append(f"a fixed plan of {plan['as_given']} blocks is worth {again} by our reading of the rules")
        yield line
        if (setup, model) in WRONG_TIMES:
            yield {'case': f'{name}, ms', 'left_out': WRONG_TIMES[setup, model]}
            continue
        either = {**problem, 'recompute': [False, True]}
        least = min(search(either, *limit)[1] for limit in limits)
        yield compare_plan(f'{name}, ms', either, least, least * (1 + 1e-9))
    for setup, sizes in setups['baseline_plans'].items():
        for devices, models in sizes.items():
            for model in models:
                if (setup, model, int(devices)) not in compared:
                    reason = WRONG_TIMES.get((setup, model), 'no value in blocks is known')
                    yield {'case': f'{model}, {setup}, {devices} devices', 'left_out': reason}
    for model, setup in dict.fromkeys((row['model'], row['setup']) for row in tables if row['sweep'] == 'micro_batch'):
        yield {'case': f'{model}, {setup}, larger micro-batches', 'left_out': 'speeds are relative, layers are known for one size only'}
    for model in dict.fromkeys(row['model'] for row in json.loads((folder / 'alpa_e_absolute.json').read_text())):
        yield {'case': f'{model}, absolute ms', 'left_out': 'they rest on makespans of operator graphs that the files do not hold'}
