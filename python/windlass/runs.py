"""Runs: the folders that training writes."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy
import safetensors.numpy

from .command import run_command


class Run:
    """A run's folder. It may still be written."""

    def __init__(self, path: str | pathlib.Path):
        self.path = pathlib.Path(path)

    def __repr__(self) -> str:
        return f'Run({str(self.path)!r})'

    @property
    def record(self) -> dict[str, Any]:
        """What run.json says: model, mesh, settings, machine, memory."""
        return json.loads((self.path / 'run.json').read_text())

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The rows of all steps so far: step, loss, grad_norm, lr, seconds and more."""
        return [row for row in self.read_metrics() if 'loss' in row]

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The rows of all evaluations so far: step, eval_loss and more."""
        return [row for row in self.read_metrics() if 'eval_loss' in row]

    def read_metrics(self, begin: int = 0) -> Iterator[dict[str, Any]]:
        """Yields the rows of steps and evaluations, from the one numbered `begin` on, that are whole."""
        file = self.path / 'metrics.jsonl'
        if not file.exists():
            return
        with file.open() as lines:
            for number, line in enumerate(lines):
                if number >= begin and line.endswith('\n'):
                    yield json.loads(line)

    @property
    def losses(self) -> list[float]:
        return [row['loss'] for row in self.metrics]

    def to_pandas(self) -> Any:
        """Returns the rows as a DataFrame with the step as index."""
        import pandas
        return pandas.DataFrame(self.metrics).set_index('step')

    def parameters(self, state: bool = False, ema: bool = False) -> dict[str, numpy.ndarray]:
        """Returns the values of all parameters and buffers in the newest checkpoint, by the model's names; with `state` the optimizer's
        too, as `<name>/exp_avg` and so on; with `ema` the moving averages of the weights in their place."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / 'parameters.safetensors'
            run_command('checkpoint', 'export', self.path, '-o', file, *(['--state'] if state else []), *(['--ema'] if ema else []))
            return safetensors.numpy.load_file(file)
