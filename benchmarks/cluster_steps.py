"""Predictions of training steps that others published, for benchmarks/clusters.

Each row's model is made by python/windlass_models and planned with the row's own named strategy, micro-batch and recompute; nothing is searched. Kept
are dense rows in bf16 without pipelines or context parallelism that state micro-batch and recompute, on devices that have a preset. What a framework
adds to every step (its launches, stragglers) is one factor for each source, fitted to the configurations whose crc32
is even, and only where there are six rows; configurations whose crc32 is odd are scored. Sources that reduce gradients in bf16 are planned so.
"""

import collections
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
WINDLASS = ROOT / 'build' / 'bin' / 'windlass'
PYTHON = ROOT / '.venv' / 'bin' / 'python'
PRESETS = {'H100-80': 'h100', 'A100-80': 'a100-80g', 'A100-40': 'a100-40g', 'H100-96': 'h100', 'RTX4090': 'rtx4090'}
STRATEGIES = {'0': 'ddp', '1': 'zero1', '2': 'zero2', '3': 'zero3'}
# What rows recompute, as the word of `segments`; nothing for rows that do not say it in full.
RECOMPUTE = (('none', 'kept'), ('full', 'block'), ('selective (norm', 'kept'), ('selective (ffn', 'mlp'))
# Those whose gradients travel in bf16: FSDP as llm-foundry sets it up, and llm.c, whose gradients have the type of its weights.
BF16_GRADIENTS = ('mosaicml/llm-foundry', 'karpathy/llm.c')
# Links of rows that do not state theirs, in bits per second of each GPU.
ASSUMED_NETWORK, FACTOR_RANGE, LEAST_ROWS = 400e9, (0.85, 1.4), 6
Step = collections.namedtuple('Step', 'source config preset gpus hosts network is_assumed model strategy micro_batches word seconds')


def model_words(line):
    """The words for windlass_models that make the row's graph. Llamas and Qwens have gated layers, the others are GPTs."""
    shared = ('--no-values', '--layers', line['layers'], '--width', line['hidden'], '--heads', line['heads'], '--vocabulary', line['vocab'],
              '--tokens', line['seq'], '--batch', line['micro_batch'])
    if line['model'].startswith(('Llama', 'Qwen')):
        own = [*(['--qkv-bias'] if line['model'].startswith('Qwen') else []), *(['--tied'] if line['tied'] == '1' else [])]
        return ('llama', *shared, '--key-heads', line['kv_heads'], '--hidden', line['ffn'], *own)
    if int(line['ffn']) != 4 * int(line['hidden']):
        return None
    own = [*(['--no-bias', '--linear', 'matmul'] if line['model'].startswith('MPT') else []), *([] if line['tied'] == '1' else ['--untied'])]
    return ('gpt', *shared, *own)


def read_steps(path):
    with open(path, newline='') as file:
        for line in csv.DictReader(file):
            word = next((word for text, word in RECOMPUTE if line['recompute'].startswith(text)), None)
            is_plain = line['pp'] in ('', '1') and line['cp'] in ('', '1') and line['ep'] in ('', '1')
            if (line['status'], line['model_class'], line['precision']) != ('ok', 'dense', 'bf16') or not is_plain or not word or not line['micro_batch']:
                continue
            if line['gpu'] not in PRESETS or line['zero_stage'] not in STRATEGIES or not model_words(line):
                continue
            gpus, tensor = int(line['gpus']), int(line['tp'])
            hosts = max(1, int(line['nodes']))
            text = line['inter_link']
            stated = text.split(' Gb/GPU')[0] if ' Gb/GPU' in text else ''
            network = float(stated) * 1e9 if stated else ASSUMED_NETWORK
            data = STRATEGIES[line['zero_stage']] if gpus > tensor or tensor == 1 else ''
            strategy = '*'.join(word for word in (data, f'megatron={tensor}' if tensor > 1 else '') if word)
            yield Step(line['source'].split('@')[0], line['config'], PRESETS[line['gpu']], gpus, hosts, network, hosts > 1 and not stated, model_words(line),
                       strategy, int(line['global_batch_sequences']) // int(line['micro_batch']), word, float(line['measured_seconds_per_step']))


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, PYTHONPATH=str(ROOT / 'python')))
    if done.returncode != 0:
        raise RuntimeError(f'{" ".join(str(word) for word in words[1:4])}: {done.stdout.strip()[-300:]} {done.stderr.strip()[-300:]}')
    return done.stdout


class StepPredictor:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def model_of(self, step):
        path = self.folder / f'{zlib.crc32(repr(step.model).encode()):08x}.onnx'
        if not path.exists():
            call(PYTHON, '-B', '-m', 'windlass_models', *step.model, '-o', path)
        return path

    def plan_of(self, step, path):
        """Writes the plan of a row. The memory limit is so high that the planner recomputes nothing by itself: what is
        recomputed is what the row states."""
        name = f'{step.preset}:{step.hosts}x{step.gpus // step.hosts}' if step.hosts > 1 else f'{step.preset}:{step.gpus}'
        cluster = json.loads(call(WINDLASS, 'explain', '--cluster', name))
        for tier in cluster['link_tiers']:
            if tier['name'] == 'network':
                tier['bandwidth_bytes_per_s'] = round(step.network / 8)
        own = path.with_suffix('.cluster.json')
        own.write_text(json.dumps(cluster))
        call(WINDLASS, 'plan', self.model_of(step), '--cluster', own, '--strategy', step.strategy, '--precision', 'bf16', '--micro-batches', step.micro_batches,
             *(['--bf16-gradients'] if step.source in BF16_GRADIENTS else []), '--memory-limit', '1000000GiB', '-o', path)
        plan = json.loads(path.read_text())
        plan['segments'] = {name: step.word for name in plan['segments']}
        path.write_text(json.dumps(plan))

    def predict(self, number_and_step):
        number, step = number_and_step
        path = self.folder / f'plan-{number}.json'
        try:
            self.plan_of(step, path)
            return json.loads(call(WINDLASS, 'simulate', self.model_of(step), '--plan', path, '--json'))['predicted_seconds']
        except RuntimeError as error:
            print(f'clusters: {step.config}: {error}', file=sys.stderr)
            return None


def is_fitted(step):
    return zlib.crc32(step.config.encode()) % 2 == 0


def summarize(scores):
    """`scores` are pairs of a step and its predicted seconds."""
    sources = {}
    for source in sorted({step.source for step, _ in scores}):
        own = [(step, math.log(seconds / step.seconds)) for step, seconds in scores if step.source == source]
        fitted = [error for step, error in own if is_fitted(step)]
        factor = 1
        if len(own) >= LEAST_ROWS and fitted:
            factor = min(max(math.exp(-statistics.median(fitted)), FACTOR_RANGE[0]), FACTOR_RANGE[1])
        errors = [error + math.log(factor) for step, error in own if len(own) < LEAST_ROWS or not is_fitted(step)]
        if not errors:
            continue
        sources[source] = {'factor': factor, 'rows': len(errors), 'median_absolute_log_error': statistics.median(map(abs, errors)),
                           'median_log_error': statistics.median(errors), 'share_within_0.3': sum(abs(error) <= 0.3 for error in errors) / len(errors),
                           'assumed_networks': sum(step.is_assumed for step, _ in own),
                           'worst': [[step.config, round(error + math.log(factor), 4)] for step, error in
                                     sorted(own, key=lambda each: -abs(each[1] + math.log(factor)))[:8]]}
    every = [each['median_absolute_log_error'] for each in sources.values()]
    return {'median_absolute_log_error': statistics.median(every) if every else None, 'sources': sources}


def score(path, folder):
    steps = list(read_steps(path))
    predictor = StepPredictor(folder)
    # Rows that are predicted side by side share models, so these are made first.
    for step in steps:
        predictor.model_of(step)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seconds = list(pool.map(predictor.predict, enumerate(steps)))
    return summarize([(step, each) for step, each in zip(steps, seconds) if each is not None])


def show(result, worst):
    for source, own in result['sources'].items():
        assumed = f', networks of {own["assumed_networks"]} rows assumed' if own['assumed_networks'] else ''
        print(f'steps of {source}: {own["rows"]} rows, median log error {own["median_absolute_log_error"]:.3f}, with its sign {own["median_log_error"]:+.3f}, '
              f'{own["share_within_0.3"]:.0%} within 0.3, times {own["factor"]:.2f}{assumed}')
        for config, error in own['worst'][:worst]:
            print(f'    {config:44} {error:+.3f}')
