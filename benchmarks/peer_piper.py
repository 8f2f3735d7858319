"""Piper's problem (NeurIPS 2021): stages of a pipeline, each with its own data- and tensor-parallel degree, whose slowest takes the least time.

A folder holds graphs, `NAME.json` or `NAME.json.gz`, and `results.json`, a list of what Piper answered. Times are in the unit of the graph, seconds by its
rules. `evaluate` follows those rules and knows nothing of the search, which is `windlass-peers piper`.
"""

import copy
import gzip
import json
import math
import pathlib
import subprocess
import tempfile

SEARCH = pathlib.Path(__file__).resolve().parents[1] / 'build' / 'bin' / 'windlass-peers'
RECOMPUTED, KEPT = 'activation recomp', 'vanilla'


def read_graph(folder, name):
    packed = folder / f'{name}.json.gz'
    text = gzip.open(packed, 'rt') if packed.exists() else open(folder / f'{name}.json')
    with text:
        return json.load(text)


def lengthen(graph, ids):
    """Returns the graph with a copy of the last layer but one for each id, one behind another; as Piper lengthens BERT, they read nothing besides."""
    graph = copy.deepcopy(graph)
    old, behind = [node for node in graph['nodes'] if node['name'] == 'ParallelTransformerLayer'][-2:]
    link = next(edge for edge in graph['edges'] if (edge['sourceId'], edge['destId']) == (old['id'], behind['id']))
    before = next(edge['sourceId'] for edge in graph['edges'] if edge['destId'] == old['id'] and edge['communicationCost'] == link['communicationCost'])
    last = old
    for number in ids:
        node = copy.deepcopy(old)
        node['id'] = number
        rename(node, {before: last['id']})
        rename(last, {behind['id']: number})
        graph['nodes'].append(node)
        graph['edges'].append({**link, 'sourceId': last['id'], 'destId': number})
        last = node
    rename(last, {number: behind['id']})
    link['sourceId'] = last['id']
    rename(behind, {old['id']: last['id']})
    return graph


def variants_of(node):
    return [variant for variants in node['TMPCs'].values() for variant in variants]


def rename(node, names):
    """Renames neighbours of a node, by their ids."""
    for variant in variants_of(node):
        for key in 'syncTimeFw', 'syncTimeBw':
            variant[key] = {str(names.get(int(other), int(other))): value for other, value in variant[key].items()}


def evaluate(graph, question, stages):
    """Returns the time of a plan's slowest stage, and what is wrong with the plan."""
    nodes = {node['id']: node for node in graph['nodes']}
    batch, bandwidth, wrong = question['batch'], question['bandwidth'], []
    place = {node: at for at, stage in enumerate(stages) for node in stage['nodes']}
    if sorted(node for stage in stages for node in stage['nodes']) != sorted(nodes):
        wrong.append('a layer is in no stage or in two')
        return None, wrong
    if any(place[edge['sourceId']] > place[edge['destId']] for edge in graph['edges']):
        wrong.append('an edge leads back')
    if sum(stage['data_parallel'] * stage['tensor_parallel'] for stage in stages) > question['devices']:
        wrong.append('more devices than there are')
    if sum(stage['data_parallel'] for stage in stages) > batch or any(batch % stage['data_parallel'] for stage in stages):
        wrong.append('replicas do not divide the batch, or are more than it has')
    slowest = 0.0
    for at, stage in enumerate(stages):
        data = stage['data_parallel']
        in_flight = math.ceil(sum(other['data_parallel'] for other in stages[at:]) / data)
        compute, cut, exchanged, memory = 0.0, 0.0, 0.0, 0.0
        for node in stage['nodes']:
            name = RECOMPUTED if node in stage['recompute'] else KEPT
            options = [variant for variant in nodes[node]['TMPCs'].get(str(stage['tensor_parallel']), []) if variant['id'] == name]
            if not options:
                return None, wrong + [f'layer {node} has no such degree or variant']
            variant = options[0]
            compute += variant['timePerSample']
            exchanged += 4 * (data - 1) / data * variant['parameterSize'] / batch
            memory += variant['memoryUsageA'] * in_flight + variant['memoryUsageB']
            for edge in graph['edges']:
                if edge['destId'] == node and place[edge['sourceId']] != at:
                    cut += 2 * (edge['communicationCost'] + variant['syncTimeFw'].get(str(edge['sourceId']), 0)) / data
                if edge['sourceId'] == node and place[edge['destId']] != at:
                    cut += 2 * (edge['communicationCost'] + variant['syncTimeBw'].get(str(edge['destId']), 0)) / data
        if memory > question['memory_bytes'] * (1 + 1e-12):
            wrong.append(f'stage {at} takes {memory:.0f} bytes of {question["memory_bytes"]:.0f}')
        slowest = max(slowest, compute / data + (cut + exchanged) / bandwidth)
    return slowest, wrong


def search(graph, question):
    """Returns what `windlass-peers` answers."""
    with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
        json.dump(graph, file)
        file.flush()
        done = subprocess.run([SEARCH, 'piper', file.name, '--devices', str(question['devices']), '--memory', str(int(question['memory_bytes'])),
                               '--micro-batches', str(question['batch']), '--bandwidth', repr(question['bandwidth'])], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)


def compare(folder):
    """Yields a row for each of Piper's answers in a folder, with both values, how many times as good ours is, the seconds of both searches, and what is
    wrong."""
    for row in json.loads((folder / 'results.json').read_text()):
        graph = read_graph(folder, row['input'])
        layers = row.get('transformer_layers')
        if layers:
            present = {node['id'] for node in graph['nodes']}
            more = layers - sum(node['name'] == 'ParallelTransformerLayer' for node in graph['nodes'])
            ids = [node for stage in row.get('stages', []) for node in stage['nodes'] if node not in present]
            graph = lengthen(graph, ids or range(max(present) + 1, max(present) + 1 + more))
        name = f"{row['input']}{f' of {layers}' if layers else ''}, {row['devices']} devices, {row['memory_bytes'] / 2**30:.3g} GiB, N = {row['batch']}"
        wrong, theirs, ours = [], None, None
        if row.get('feasible'):
            theirs = row['time_per_sample']
            again, wrong = evaluate(graph, row, row['stages'])
            if again is None or abs(again - theirs) > 1e-9 * theirs:
                wrong.append(f'the stored plan takes {again} by our reading of the rules')
        answer = search(graph, row)
        if answer['feasible']:
            ours, more = evaluate(graph, row, answer['stages'])
            wrong += more
        if theirs and (not ours or ours > theirs * (1 + 1e-9)):
            wrong.append('ours is slower' if ours else 'no plan was found')
        yield {'case': name, 'theirs': theirs, 'ours': ours, 'gain': theirs / ours if theirs and ours else None, 'their_seconds': row.get('cpu_seconds'),
               'seconds': answer['seconds'], 'wrong': wrong}
