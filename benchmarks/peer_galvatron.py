"""Galvatron's problem: how each layer of a model is parallelised over the GPUs of a machine, so that most samples are trained per second.

A folder holds `golden.json`, a list of cases with what Galvatron answered, and `profile.json`, what it measured. Times are in ms, memory in MB of 2^20
bytes. Where the layers' strategies may differ, a plan has one strategy per layer and one for embedding and head; otherwise all have the same. A strategy
splits a layer over `tensor` or `ulysses` ranks and the batch over `data` replicas, which shard states of training by ZeRO-2 or ZeRO-3; a layer with one
replica shards nothing and exchanges no gradients. With one micro-batch there is no separate copy of gradients, so ZeRO takes a fifth less.

`evaluate` adds up a plan layer by layer. `search` knows that layers are alike: for each stage it lists the best sums of time and memory that any choice
of strategies has, and then joins stages. It returns the best plan of all, with a bound that proves it. There is one exception: with several stages, where
the exchange of a later stage's gradients is longer than the forward and backward passes of all stages before it, the bound may be lower.
"""

import bisect
import collections
import functools
import itertools
import json
import math
import re
import time

import numpy

Strategy = collections.namedtuple('Strategy', 'tensor ulysses data zero checkpoint')
SETTINGS = {'default_zero': 2, 'schedule': '1F1B with flush', 'precision': 'bf16', 'sequence_parallel': True, 'asynchronous_gradient_reduction': False}
BYTES, CONTEXT_MB, CALLS, BACKWARD = 2, 1024, {'all_reduce': 6, 'all_to_all': 4}, 2


def fitted(table, degree):
    """The polynomial that fits a table of values by number best."""
    return functools.partial(numpy.polyval, numpy.polyfit([float(key) for key in table], list(table.values()), degree))


class Rules:
    """What one case and its profile say, and what a strategy costs by it."""

    def __init__(self, case, profile):
        differs = [key for key, value in SETTINGS.items() if case[key] != value]
        if differs:
            raise ValueError(f'the rules are known for other settings only: {", ".join(differs)}')
        self.case, self.profile = case, profile
        self.gpus, self.layers, self.micro_batches = case['gpus'], case['layers'], case['micro_batches']
        # Samples per micro-batch.
        self.samples = case['global_batch'] // self.micro_batches
        self.sample_mb = case['sequence'] * int(re.search(r'hidden (\d+)', case['model'])[1]) * BYTES / 2**20
        forward = profile['forward_ms_one_sample']
        self.layer_ms = float(fitted(forward['layer'], 2)(case['sequence']))
        self.ends_ms = float(fitted(forward['embedding_and_head'], 1)(case['sequence']))
        lengths = sorted(profile['layer_memory_mb'], key=int)
        self.parameters = profile['layer_memory_mb'][lengths[0]]['parameters']
        longest = profile['layer_memory_mb'][lengths[-1]]['activation_per_sample_by_degree']
        self.activations = {degree: value * case['sequence'] / int(lengths[-1]) for degree, value in longest.items()}
        self.lines = {kind: {group: fitted(table, 1) for group, table in profile[f'{kind}_ms_by_group_and_mb'].items()} for kind in CALLS}

    def local_batch(self, strategy):
        """Samples of a micro-batch on one replica; what does not divide is dropped, as Galvatron does."""
        return self.samples // strategy.data

    def collective_ms(self, kind, group, megabytes):
        """The measured time of this size, or that of a line through all sizes."""
        for size, milliseconds in self.profile[f'{kind}_ms_by_group_and_mb'][str(group)].items():
            if float(size) == megabytes:
                return milliseconds
        return float(self.lines[kind][str(group)](megabytes))

    def gather_ms(self, strategy):
        """The time of one all-gather between tensor ranks, half that of an all-reduce."""
        return self.collective_ms('all_reduce', strategy.tensor, self.local_batch(strategy) * self.sample_mb) / 2

    def exchange_rate(self, strategy):
        """ms per MB of an all-reduce between the ranks that shard states or share gradients."""
        group, rates = strategy.data * strategy.ulysses, self.profile['all_reduce_mb_per_ms']
        if group == 1:
            return 0.0
        key = f"{group} {'strided' if strategy.tensor > 1 else 'contiguous'}"
        return 1 / rates[key if key in rates else f'{group} contiguous']

    def state_share(self, strategy):
        """The part of its states that a rank keeps."""
        share = 1 / (strategy.data * strategy.ulysses) + 0.003
        gradients = 1.25 if self.micro_batches > 1 else 1.0
        return {0: 1.0, 2: gradients * (7 / 8 * share + 1 / 8), 3: gradients * share}[strategy.zero]

    def layer_times(self, pipeline, strategy):
        """ms of a layer's forward and backward pass for one micro-batch, without and with the exchange of gradients."""
        batch, degree = self.local_batch(strategy), strategy.tensor * strategy.ulysses
        forward = self.layer_ms * batch / degree
        backward = (BACKWARD + strategy.checkpoint) * forward
        ranks, rate, slowdown = strategy.data * strategy.ulysses, self.exchange_rate(strategy), self.profile['overlap_slowdown']
        message = 2 * (ranks - 1) / ranks * self.parameters / strategy.tensor / 2
        shared = forward + (message / 2 * rate if strategy.zero == 3 else 0)
        if strategy.tensor > 1:
            split = CALLS['all_reduce'] * self.gather_ms(strategy)
        else:
            split = CALLS['all_to_all'] * self.collective_ms('all_to_all', strategy.ulysses, batch * self.sample_mb) if strategy.ulysses > 1 else 0
        shared += split * (1.5 if strategy.checkpoint else 1)
        if pipeline > 1:
            shared += 2 * pipeline * batch * self.sample_mb / self.profile['p2p_mb_per_ms'][str(pipeline)] / self.layers
        exchange, overlapped = message * rate * slowdown, backward * slowdown
        if strategy.data == 1:
            last = backward
        elif exchange > overlapped:
            last = overlapped + (message - overlapped / (rate * slowdown)) * rate
        else:
            last = exchange + backward - exchange / slowdown
        return shared + backward, shared + last

    def layer_megabytes(self, pipeline, stage, strategy):
        """MB of a layer, with the activations of all micro-batches that its stage has begun."""
        degree = strategy.tensor * strategy.ulysses
        kept = self.activations['checkpoint'] / degree if strategy.checkpoint else self.activations[str(degree)]
        return math.ceil(4 * self.parameters / strategy.tensor * self.state_share(strategy) + kept * self.local_batch(strategy) * (pipeline - stage))

    def end_tables(self, pipeline):
        """For each stage the tables of its states and activations in MB, empty where it has neither embedding nor head."""
        names = ['one_stage'] if pipeline == 1 else ['first_stage'] + [None] * (pipeline - 2) + ['last_stage']
        for name in names:
            table = self.profile['embedding_and_head_memory_mb'][name] if name else None
            yield table and (int(max(table, key=int)), table[max(table, key=int)])

    def end_times(self, pipeline, strategy):
        """ms that embedding and head add to each stage for one micro-batch, without an exchange of gradients."""
        slowdown, degree, ranks = self.profile['overlap_slowdown'], strategy.tensor * strategy.ulysses, strategy.data * strategy.ulysses
        forward = self.ends_ms * self.local_batch(strategy) / degree / min(pipeline, 2)
        gathers = self.gather_ms(strategy) * (2 if pipeline == 1 else 1) if strategy.tensor > 1 else 0
        times = []
        for table in self.end_tables(pipeline):
            if not table:
                times.append(0.0)
                continue
            weights = table[1]['model_states'][str(strategy.tensor)] / 4 / 2
            gathered = weights / 2 * self.exchange_rate(strategy) * (ranks - 1) / ranks if strategy.zero == 3 else 0
            times.append(gathers + sum(max(gathered, gathered + work - gathered / slowdown) for work in (forward, BACKWARD * forward)))
        return times

    def end_megabytes(self, pipeline, strategy):
        """MB of each stage for embedding, head and what every process takes."""
        sizes, degree = [], strategy.tensor * strategy.ulysses
        for stage, table in enumerate(self.end_tables(pipeline)):
            size = CONTEXT_MB
            if table:
                length, values = table
                activation = values['activation'][str(degree)] * self.case['sequence'] / length
                size += values['model_states'][str(strategy.tensor)] * self.state_share(strategy)
                size += activation * self.local_batch(strategy) * (pipeline - stage)
            sizes.append(math.ceil(size))
        return sizes

    def buffer_megabytes(self, pipeline, degree):
        """MB that tensor parallelism shares between layers, for the largest degree of any strategy."""
        return math.ceil(self.case['global_batch'] / self.micro_batches / (self.gpus / pipeline / degree) * self.sample_mb)

    def step_ms(self, without, exchanging):
        """ms of a step, from each stage's time for one micro-batch without and with the exchange of gradients."""
        stages, count, first, rest = len(without), self.micro_batches, without[0], sum(without[1:])
        filling = min(stages - 1, count - 1) * first
        steady = max(filling / 3, rest / 3) + max(filling * 2 / 3, rest * 2 / 3) + first * max(0, count + 1 - stages)
        exposed = max(late - so_far for late, so_far in zip(exchanging, itertools.accumulate(without)))
        return max(sum(without) + without[-1] * (count - 1), steady) + max(0, exposed)

    def stage_layers(self, pipeline):
        """Layers per stage: all alike, the last with what is left over."""
        return [self.layers // pipeline] * (pipeline - 1) + [self.layers - self.layers // pipeline * (pipeline - 1)]

    def pipelines(self):
        return [degree for degree in powers(self.gpus) if degree <= min(self.micro_batches, self.layers)]

    def strategies(self, pipeline):
        """All strategies of a layer on its share of the GPUs."""
        for degree in powers(self.gpus // pipeline):
            data = self.gpus // pipeline // degree
            if data <= max(1, self.samples):
                splits = sorted({(degree, 1), (1, degree)})
                zeros = (0,) if data == 1 else (2, 3)
                yield from (Strategy(*split, data, zero, checkpoint) for split in splits for zero in zeros for checkpoint in (False, True))


def powers(limit):
    """Powers of two up to a limit."""
    return [1 << exponent for exponent in range(limit.bit_length())]


def read_plan(plan, gpus):
    """Returns the strategies of all layers in order, and that of embedding and head."""
    layers = [Strategy(*(run[key] for key in ('tensor_parallel', 'ulysses', 'data_parallel', 'zero', 'checkpoint')))
              for run in plan['strategies'] for _ in range(run['layers'])]
    ends = plan['embedding_and_head']
    data = gpus // plan['pipeline'] // (ends['tensor_parallel'] * ends['ulysses'])
    return layers, Strategy(ends['tensor_parallel'], ends['ulysses'], data, ends['zero'], False)


def write_plan(pipeline, layers, ends):
    runs = [{'layers': len(list(run)), 'pipeline': pipeline, 'tensor_parallel': strategy.tensor, 'ulysses': strategy.ulysses, 'data_parallel': strategy.data,
             'zero': strategy.zero, 'checkpoint': strategy.checkpoint} for strategy, run in itertools.groupby(layers)]
    return {'pipeline': pipeline, 'embedding_and_head': {'tensor_parallel': ends.tensor, 'ulysses': ends.ulysses, 'zero': ends.zero}, 'strategies': runs}


def evaluate(case, profile, plan):
    """Returns a plan's samples per second, the MB of each of its stages, and what is wrong with it."""
    return add_up(Rules(case, profile), plan)


def add_up(rules, plan):
    """`evaluate` by rules that were read before."""
    case, pipeline, wrong = rules.case, plan['pipeline'], []
    layers, ends = read_plan(plan, rules.gpus)
    if pipeline not in rules.pipelines() or any(run['pipeline'] != pipeline for run in plan['strategies']):
        return None, [], [f'{pipeline} stages are not possible']
    allowed = set(rules.strategies(pipeline))
    if len(layers) != rules.layers or not {ends, *layers} <= allowed:
        return None, [], ['a layer has no strategy, or one that is not possible']
    if case['search'] != 'per layer' and (len(set(layers)) > 1 or layers[0]._replace(checkpoint=False) != ends):
        wrong.append('the strategies differ')
    used, buffer = {ends, *layers}, 0
    if any(strategy.tensor > 1 for strategy in used):
        buffer = rules.buffer_megabytes(pipeline, max(strategy.tensor * strategy.ulysses for strategy in used))
    without, exchanging, memory, begin = [], [], [], 0
    for stage, (count, end_ms, end_mb) in enumerate(zip(rules.stage_layers(pipeline), rules.end_times(pipeline, ends), rules.end_megabytes(pipeline, ends))):
        members = layers[begin:begin + count]
        begin += count
        times = [rules.layer_times(pipeline, strategy) for strategy in members]
        without.append(sum(quiet for quiet, _ in times) + end_ms)
        exchanging.append(sum(late for _, late in times))
        memory.append(sum(rules.layer_megabytes(pipeline, stage, strategy) for strategy in members) + end_mb + buffer)
        if memory[-1] > case['usable_mb']:
            wrong.append(f'stage {stage} takes {memory[-1]} MB of {case["usable_mb"]}')
    return case['global_batch'] / rules.step_ms(without, exchanging) * 1e3, memory, wrong


Sums = collections.namedtuple('Sums', 'megabytes without exchanging last before')


def best_sums(candidates):
    """Drops sums that another one beats or equals in memory and in both times."""
    kept, without, exchanging = [], [], []
    for sums in sorted(candidates, key=lambda sums: sums[:3]):
        at = bisect.bisect_right(without, sums.without)
        if at and exchanging[at - 1] <= sums.exchanging:
            continue
        begin = end = bisect.bisect_left(without, sums.without)
        while end < len(without) and exchanging[end] >= sums.exchanging:
            end += 1
        without[begin:end], exchanging[begin:end] = [sums.without], [sums.exchanging]
        kept.append(sums)
    return kept


def stage_sums(rules, pipeline, stage, count, allowed, limit):
    """The best sums over a stage's layers, in any choice of allowed strategies that takes at most `limit` MB."""
    single = best_sums(Sums(rules.layer_megabytes(pipeline, stage, strategy), *rules.layer_times(pipeline, strategy), strategy, None) for strategy in allowed)
    least = min((sums.megabytes for sums in single), default=0)
    found = [Sums(0, 0.0, 0.0, None, None)]
    for left in range(count - 1, -1, -1):
        found = best_sums(Sums(a.megabytes + b.megabytes, a.without + b.without, a.exchanging + b.exchanging, b.last, a)
                          for a in found for b in single if a.megabytes + b.megabytes + left * least <= limit)
    return found


def join_stages(rules, stages):
    """Returns the least ms of a step that sums of the stages give, or less in the case that the module names; and the sums.

    Let n[i] be a stage's time without and r[i] with the exchange of gradients, b[0] = max(n[0], r[0]), and b[i] = max(b[i-1] + n[i], r[i]). A step of m
    micro-batches on p stages takes max(b[p-1] + (m-1) n[p-1], b[p-1] + (m-p) n[0], m n[0] + x), where x is the longest part of an exchange that is exposed.
    Here x counts that of the first stage only. Then no stage gains from a larger n or r, so once the first stage is chosen, each b is made least in turn.
    """
    count, pipeline, best = rules.micro_batches, len(stages), (math.inf, None)
    for first in stages[0]:
        so_far, chosen = max(first.without, first.exchanging), [first]
        for options in stages[1:-1]:
            so_far, middle = min(((max(so_far + each.without, each.exchanging), each) for each in options), key=lambda pair: pair[0])
            chosen.append(middle)
        for last in stages[-1] if pipeline > 1 else [first]:
            total = max(so_far + last.without, last.exchanging) if pipeline > 1 else so_far
            exposed = max(0, first.exchanging - first.without)
            step = max(total + (count - 1) * last.without, total + (count - pipeline) * first.without, count * first.without + exposed)
            if step < best[0]:
                best = step, chosen + [last] * (pipeline > 1)
    return best


def unwind(sums):
    """The strategies of the layers that were added up, equal ones side by side."""
    strategies = []
    while sums.before:
        strategies.append(sums.last)
        sums = sums.before
    return sorted(strategies)


def search_layers(rules):
    """Yields for each number of stages, strategy of embedding and head, and largest degree the best plan and a lower bound of its ms."""
    for pipeline in rules.pipelines():
        strategies = list(rules.strategies(pipeline))
        counts = rules.stage_layers(pipeline)
        # Without tensor parallelism there is no buffer; with it, all strategies up to the degree that the buffer is for.
        choices = [([strategy for strategy in strategies if strategy.tensor == 1], 0)]
        for degree in powers(rules.gpus // pipeline)[1:]:
            choices.append(([strategy for strategy in strategies if strategy.tensor * strategy.ulysses <= degree], rules.buffer_megabytes(pipeline, degree)))
        for allowed, buffer in choices:
            ends = [strategy for strategy in allowed if not strategy.checkpoint]
            sizes = [rules.end_megabytes(pipeline, strategy) for strategy in ends]
            if not ends:
                continue
            limits = [rules.case['usable_mb'] - buffer - min(size[stage] for size in sizes) for stage in range(pipeline)]
            tables = [stage_sums(rules, pipeline, stage, count, allowed, limit) for stage, (count, limit) in enumerate(zip(counts, limits))]
            for strategy, size in zip(ends, sizes):
                times = rules.end_times(pipeline, strategy)
                stages = [best_sums(sums._replace(megabytes=0, without=sums.without + times[stage], last=sums) for sums in table
                                    if sums.megabytes + buffer + size[stage] <= rules.case['usable_mb']) for stage, table in enumerate(tables)]
                if all(stages):
                    bound, chosen = join_stages(rules, stages)
                    yield write_plan(pipeline, [each for sums in chosen for each in unwind(sums.last)], strategy), bound


def search(case, profile):
    """Returns the best plan, its samples per second and an upper bound of all plans'; None, 0 and 0 where nothing fits."""
    rules = Rules(case, profile)
    if case['search'] == 'per layer':
        plans = list(search_layers(rules))
    else:
        plans = [(write_plan(pipeline, [strategy] * rules.layers, strategy), math.inf)
                 for pipeline in rules.pipelines() for strategy in rules.strategies(pipeline)]
    best, most, least = None, 0.0, min((bound for _, bound in plans), default=math.inf)
    for plan, _ in plans:
        speed, _, wrong = add_up(rules, plan)
        if not wrong and speed > most:
            best, most = plan, speed
    return best, most, max(most, case['global_batch'] / least * 1e3)


def compare(folder):
    """Yields a row for each case, with both plans' samples per second, how many times as good ours is, the seconds of our search, and what is wrong."""
    profile = json.loads((folder / 'profile.json').read_text())
    for case in json.loads((folder / 'golden.json').read_text()):
        theirs = case['expected']['samples_per_s']
        again, _, wrong = evaluate(case, profile, case['expected'])
        if again is None or abs(again - theirs) > 1e-6 * theirs:
            wrong.append(f'the stored plan trains {again} by our reading of the rules')
        begin = time.monotonic()
        _, ours, bound = search(case, profile)
        seconds = time.monotonic() - begin
        if ours < theirs * (1 - 1e-8):
            wrong.append('ours is slower')
        name = f"{case['case']}, {case['layers']} layers, {case['micro_batches']} micro-batches, {case['memory_limit_gb']} GB, bound {bound:.6g}"
        yield {'case': name, 'theirs': theirs, 'ours': ours, 'gain': ours / theirs, 'their_seconds': None, 'seconds': seconds, 'wrong': wrong}
