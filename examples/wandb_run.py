#!/usr/bin/env python3
"""Sends a run to Weights & Biases: what it has written, and what it writes until it ends or this is interrupted.

    wandb_run.py RUN [--project PROJECT] [--once]

Needs the package wandb. Steps and evaluations become rows with the number of their step; run.json becomes the configuration. Started again,
also after the run was resumed, it continues the same run of Weights & Biases, whose name stands in RUN/wandb-id.
"""

import argparse
import pathlib
import secrets
import sys
import time

import wandb

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'python'))
import windlass  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('run', type=pathlib.Path)
    parser.add_argument('--project', default='windlass')
    parser.add_argument('--once', action='store_true', help='send what there is, and end')
    words = parser.parse_args()
    run = windlass.Run(words.run)
    identity = words.run / 'wandb-id'
    if not identity.exists():
        identity.write_text(secrets.token_hex(8))
    with wandb.init(project=words.project, name=words.run.resolve().name, id=identity.read_text(), resume='allow', config=run.record) as target:
        seen, first = 0, target.step
        while True:
            is_over = words.once or 'last_step' in run.record
            for row in run.read_metrics(seen):
                seen += 1
                if row['step'] >= first:
                    target.log({name: value for name, value in row.items() if name != 'step'}, step=row['step'])
            if is_over:
                break
            time.sleep(1)


if __name__ == '__main__':
    main()
