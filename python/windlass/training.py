"""Checking and training."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy
import safetensors.numpy

from .command import read_model, run_command, to_flags
from .modules import name_values
from .runs import Run

if TYPE_CHECKING:
    from .exporting import Export

# Micro-batches, each with an array or tensor for every input; or samples of each input; or files that `windlass train --data` takes.
Data = Union[Sequence[Mapping[str, Any]], Mapping[str, Any], str, pathlib.Path, Sequence[Union[str, pathlib.Path]]]


def check(model: Export | str | pathlib.Path, **settings: Any) -> dict[str, Any]:
    """Returns what `windlass check` says of a model: its parameters, inputs, loss and operators, and what is not supported."""
    path, own = read_model(model)
    return run_command('check', path, *to_flags({**own, **settings}))


def to_array(value: Any) -> numpy.ndarray:
    """Returns an array of a tensor or of anything that numpy takes."""
    return numpy.ascontiguousarray(value.detach().cpu().numpy() if hasattr(value, 'detach') else value)


def write_data(data: Data, folder: pathlib.Path) -> list[str]:
    """Writes values to data.safetensors in `folder`, where there are any, and returns the files to train on."""
    if isinstance(data, (str, pathlib.Path)):
        return [str(data)]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / 'data.safetensors'
    if isinstance(data, Mapping):
        safetensors.numpy.save_file({name: to_array(value) for name, value in data.items()}, file)
        return [str(file)]
    batches = [each for each in data if isinstance(each, Mapping)]
    if not batches:
        return [str(each) for each in data]
    safetensors.numpy.save_file({f'{name}.{k}': to_array(value) for k, batch in enumerate(batches) for name, value in batch.items()}, file)
    return [str(file)]


def write_values(module: Any, folder: pathlib.Path) -> pathlib.Path:
    """Writes the parameters and buffers of a module of torch, under each of their names, to initial.safetensors in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / 'initial.safetensors'
    safetensors.numpy.save_file({name: to_array(value.float() if value.is_floating_point() else value)
                                 for names, value in name_values(module) for name in names}, file)
    return file


def train(model: Export | str | pathlib.Path, data: Data, output: str | pathlib.Path, *,
          on_metrics: Callable[[dict[str, Any]], None] | None = None, show: bool = False, **settings: Any) -> Run:
    """Plans, builds and trains `model` on `data`, and returns the run in the folder `output`.

    `data` is a list of micro-batches, each a dict with an array or tensor for every input; a dict of arrays whose first dim is samples;
    or files. Values are kept in the run's folder, as data.safetensors. `on_metrics` gets the row of each step and evaluation soon after
    it. `show` passes on what `windlass` says meanwhile. Settings are the flags of `windlass train`, as in `n=2, steps=100, lr=3e-4,
    strategy='zero3', micro_batches=4, eval_data='more.npz'`; with `dump_gradients=True` those of the first step go to
    gradients.safetensors in the run's folder, for `compare`. `init_from` may be a module of torch, such as a pretrained one.
    """
    run = Run(output)
    path, own = read_model(model)
    shown = sum(1 for _ in run.read_metrics()) if settings.get('resume') else 0

    def show_rows() -> None:
        nonlocal shown
        for row in run.read_metrics(shown):
            shown += 1
            if on_metrics:
                on_metrics(row)

    if settings.get('dump_gradients') is True:
        settings['dump_gradients'] = run.path / 'gradients.safetensors'
    if hasattr(settings.get('init_from'), 'named_parameters'):
        settings['init_from'] = write_values(settings['init_from'], run.path)
    files = write_data(data, run.path)
    run_command('train', path, *to_flags({**own, **settings, 'data': files, 'o': run.path}),
                show=show, tick=show_rows if on_metrics else None)
    return run
