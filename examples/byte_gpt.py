#!/usr/bin/env python3
"""Trains a byte-level GPT on this repository's documentation with Windlass, step by step; scripts/demo runs it.

    byte_gpt.py --windlass build/bin/windlass -o build/demo [--ranks 2] [--steps 300]

Every command is printed before it runs, and can be typed by hand from the root of the repository. The training stops half-way,
resumes from its checkpoint, and must end below the loss TARGET.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = dict(layers=2, width=128, heads=4, vocabulary=256, tokens=64, batch=8)
MICRO_BATCHES = 2
LEAST_TEXT = 60_000
TARGET = 2.6


def say(text):
    print(f'demo: {text}', flush=True)


def run(*command, python_path=None):
    """Runs a command after printing it and returns the peak memory of its largest process in bytes; ends the demo where it fails."""
    words, env = [str(word) for word in command], dict(os.environ)
    shown = shlex.join(words)
    if python_path:
        env['PYTHONPATH'] = python_path
        shown = f'PYTHONPATH={python_path} {shown}'
    print(f'$ {shown}', flush=True)
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f'demo: exit code {process.returncode} of: {shown}')
    return usage.ru_maxrss * 1024


def gather_text():
    """The documentation, then headers until there is enough of it."""
    documents = [ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *sorted((ROOT / 'docs').rglob('*.md'))]
    headers = [*sorted((ROOT / 'include').rglob('*.h')), *sorted((ROOT / 'runtime' / 'include').rglob('*.h'))]
    text, used = b'', 0
    for path in [*documents, *headers]:
        if path.exists() and (path in documents or len(text) < LEAST_TEXT):
            text += path.read_bytes()
            used += 1
    say(f'{len(text):,} bytes of text from {used} files')
    return text


def rows(folder):
    return [json.loads(row) for row in (folder / 'metrics.jsonl').read_text().splitlines()]


def mean(values):
    return sum(values) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--windlass', type=pathlib.Path, required=True)
    parser.add_argument('-o', '--output', type=pathlib.Path, required=True)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument('--steps', type=int, default=300)
    args = parser.parse_args()
    begin = time.monotonic()
    os.chdir(ROOT)

    out, half = args.output, args.steps // 2
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    model, corpus, plan, project, trained = out / 'model.onnx', out / 'corpus.txt', out / 'plan.json', out / 'project', out / 'run'
    corpus.write_bytes(gather_text())
    sizes = [word for key, value in MODEL.items() for word in (f'--{key}', value)]
    run(sys.executable, '-B', '-m', 'windlass_models', 'gpt', *sizes, '-o', model, python_path='python')

    run(args.windlass, 'check', model)
    run(args.windlass, 'plan', model, '--cluster', f'cpu:{args.ranks}', '--strategy', 'ddp', '--micro-batches', MICRO_BATCHES, '--clip', '-o', plan)
    run(args.windlass, 'emit', model, '--plan', plan, '-o', project)
    train = [args.windlass, 'train', model, '--plan', plan, '-n', args.ranks, '--data', corpus, '--bytes', '-o', trained, '--lr', '2e-3',
             '--betas', '0.9,0.95', '--weight-decay', '0.1', '--clip-norm', '1', '--lr-schedule', 'cosine', '--warmup', '20',
             '--schedule-steps', args.steps]
    run(*train, '--steps', half)
    say(f'stopped after step {half}; going on from its checkpoint')
    peak = run(*train, '--steps', args.steps, '--resume') / (1 << 20)

    found = rows(trained)
    losses = [row['loss'] for row in found]
    if len(losses) != args.steps:
        sys.exit(f'demo: {len(losses)} rows in {trained}/metrics.jsonl instead of {args.steps}')
    # The first steps also touch every page and file for the first time.
    speed = mean(sorted(row['tokens_per_s'] for row in found)[len(found) // 4:-len(found) // 4])
    jump = mean(losses[half:half + 5]) - mean(losses[half - 5:half])
    last = mean(losses[-5:])
    say(f'loss {losses[0]:.3f} at the first step (ln 256 is {math.log(256):.3f}), {last:.3f} over the last five of {args.steps}')
    say(f'around the stop: {mean(losses[half - 5:half]):.3f} over the five steps before, {mean(losses[half:half + 5]):.3f} over the five after')
    say(f'{speed:,.0f} tokens/s on {args.ranks} ranks; {peak:,.0f} MiB at most in a process, windlass included; {time.monotonic() - begin:.0f} s in all')
    problems = []
    if abs(losses[0] - math.log(256)) > 0.3:
        problems.append(f'the first loss {losses[0]:.3f} is not near ln 256')
    if not last < TARGET:
        problems.append(f'the last loss {last:.3f} is not below {TARGET}')
    if not jump < 0.2:
        problems.append(f'the loss jumps by {jump:.3f} where the run resumes')
    for problem in problems:
        say(f'FAILED: {problem}')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
