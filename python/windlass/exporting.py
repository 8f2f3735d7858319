"""Exports modules as training graphs, around what goes wrong without a word when PyTorch's exporter is used by its defaults."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import logging
import pathlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import onnx
import torch

from .command import WindlassError
from .modules import in_training
from .training import check


# What graphs call the samples of a micro-batch where their number is left open.
BATCH = 'batch'


@dataclasses.dataclass(frozen=True)
class Export:
    """An exported graph, with the settings that `check`, `plan` and `train` need for it, such as which parameters are frozen."""

    path: pathlib.Path
    settings: dict[str, Any]

    def with_batch(self, samples: int) -> Export:
        """Returns the same graph for micro-batches of `samples` samples; it has to be exported with `dynamic_batch`."""
        if 'dim' not in self.settings:
            raise ValueError(f'{self.path} is for micro-batches of one size: export it with dynamic_batch=True')
        return dataclasses.replace(self, settings={**self.settings, 'dim': f'{BATCH}={samples}'})


def export(module: torch.nn.Module, inputs: Mapping[str, Any], path: str | pathlib.Path, *, dynamic_batch: bool = False) -> Export:
    """Writes `module`, which computes its loss, as a training graph for a micro-batch of the shapes of `inputs`, by their names in
    `forward`. With `dynamic_batch` the number of samples, dim 0 of every input, is left open: it is that of `inputs` until `with_batch`
    gives another one.

    The module is exported in training mode (all of it, unless a part of it is in that mode already) and without optimization, so that
    its parameters stay what they are. Batch norms that train keep their running statistics, layers of experts of transformers get the
    form that becomes one operator, caches of keys and values are left out, and parameters that need no gradient are frozen. Attention of
    transformers that the exporter cannot write whole, or whose dropout it would lose, is written out ('eager'). The module is left as it
    was. `windlass check` compares the file with what the exporter recorded; WindlassError names what it lost.
    """
    path = pathlib.Path(path)
    unknown = set(inputs) - set(inspect.signature(module.forward).parameters)
    if unknown:
        raise ValueError(f"forward has no input {', '.join(sorted(map(repr, unknown)))}: name inputs as forward does")
    settings = {'use_cache': False, '_experts_implementation': 'batched_mm'}
    samples = _count_samples(inputs) if dynamic_batch else None
    try:
        return _export(module, inputs, path, settings, samples)
    except (torch.onnx.OnnxExporterError, WindlassError) as error:
        # The exporter fails on fused attention of some forms, and leaves its dropout out.
        attentions = {getattr(each.config, '_attn_implementation', None) for each in module.modules() if hasattr(each, 'config')}
        if 'sdpa' not in attentions or (isinstance(error, WindlassError) and error.diagnostic != 'WL0110'):
            raise
        return _export(module, inputs, path, {**settings, '_attn_implementation': 'eager'}, samples)


def _count_samples(inputs: Mapping[str, Any]) -> int:
    """Returns the samples of a micro-batch, which the exporter can leave open."""
    sizes = {name: value.shape[0] if getattr(value, 'ndim', 0) > 0 else None for name, value in inputs.items()}
    if len(set(sizes.values())) != 1 or None in sizes.values():
        raise ValueError(f'dynamic_batch needs inputs with as many samples in dim 0 each, not {sizes}')
    samples = next(iter(sizes.values()))
    if samples < 2:
        raise ValueError('PyTorch exports a batch of 1 as a constant: give inputs of 2 samples or more, and another size by with_batch')
    return samples


def _export(module: torch.nn.Module, inputs: Mapping[str, Any], path: pathlib.Path, settings: dict[str, Any], samples: int | None) -> Export:
    shapes = {name: {0: torch.export.Dim(BATCH)} for name in inputs} if samples else None
    with in_training(module), _with_settings(module, settings), _in_silence():
        torch.onnx.export(module, (), str(path), kwargs=dict(inputs), dynamo=True, optimize=False, input_names=list(inputs), dynamic_shapes=shapes,
                          verbose=False)
        trained = {name for name, each in module.named_modules() if isinstance(each, torch.nn.modules.batchnorm._BatchNorm) and each.training}
    model = onnx.load(path, load_external_data=False)
    if _train_norms(model.graph, trained):
        onnx.save(model, path)
    own = {initializer.name for initializer in model.graph.initializer}
    frozen = [name for name, value in module.named_parameters(remove_duplicate=False) if not value.requires_grad and name in own]
    exported = Export(path, {**({'freeze': frozen} if frozen else {}), **({'dim': f'{BATCH}={samples}'} if samples else {})})
    check(exported)
    return exported


@contextlib.contextmanager
def _with_settings(module: torch.nn.Module, values: dict[str, Any]) -> Iterator[None]:
    """Sets those of `values` that a configuration of transformers has, while the module is exported."""
    configurations = {id(each.config): each.config for each in module.modules() if hasattr(each, 'config')}
    before = [(each, name, getattr(each, name)) for each in configurations.values() for name in values if hasattr(each, name)]
    try:
        for each, name, _ in before:
            setattr(each, name, values[name])
        yield
    finally:
        for each, name, value in before:
            setattr(each, name, value)


@contextlib.contextmanager
def _in_silence() -> Iterator[None]:
    """Keeps the exporter's warnings to itself: `windlass check` says what matters."""
    logger = logging.getLogger('torch.onnx')
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(before)


def _train_norms(graph: onnx.GraphProto, trained: set[str]) -> bool:
    """Puts the batch norms of modules in training mode, which the exporter writes in inference form, into training form. Returns whether
    there are any."""
    found = False
    for node in graph.node:
        if node.op_type == 'BatchNormalization' and node.input[3].rpartition('.')[0] in trained:
            kept = [attribute for attribute in node.attribute if attribute.name != 'training_mode']
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute('training_mode', 1)])
            found = True
    return found
