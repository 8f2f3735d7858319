"""Compares runs with PyTorch, and brings their weights back into modules."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
from typing import Any

import numpy
import safetensors.numpy
import torch

from .exporting import Export
from .modules import find_name, in_training, name_values
from .optimizers import Both, Lamb, Lion, Muon
from .runs import Run
from .training import check


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The largest relative deviation of a run from PyTorch: of the losses, of the gradients' norms, and for each parameter of its
    gradient in the first step (where the run has dumped them) and, as for each buffer, of its values after the last step. Differences
    of a tensor are compared with its largest value, or with 1e-4 of the largest value of all where that is more.

    Two things differ that are no mistake. Where a gradient is nothing but rounding, as that of the bias of attention's keys is, AdamW with
    a small eps moves the values by the sign of that. Several micro-batches of a step move the running statistics of batch norms as far as
    in PyTorch, but with equal weights.
    """

    losses: float
    gradient_norms: float
    gradients: dict[str, float]
    parameters: dict[str, float]

    def __str__(self) -> str:
        parts = [f'losses differ by {self.losses:.1e}', f'norms of gradients by {self.gradient_norms:.1e}']
        for what, deviations in (('gradients', self.gradients), ('parameters', self.parameters)):
            if deviations:
                worst = max(deviations, key=lambda name: deviations[name])
                parts.append(f'{what} by at most {deviations[worst]:.1e} ({worst})')
        return ', '.join(parts)


def to_torch(module: torch.nn.Module, source: Run | str | pathlib.Path, ema: bool = False) -> torch.nn.Module:
    """Loads into `module` the parameters and buffers of a run's newest checkpoint, or of a safetensors file, and returns it.

    With `ema` the weights are the moving averages that the run kept. A tied weight may be there under any of its names. Raises KeyError
    for a parameter that is there under none.
    """
    values = source.parameters(ema=ema) if isinstance(source, Run) else safetensors.numpy.load_file(source)
    with torch.no_grad():
        for names, target in name_values(module):
            held = find_name(names, values)
            if held is not None:
                target.copy_(torch.from_numpy(numpy.array(values[held])).reshape(target.shape))
            elif isinstance(target, torch.nn.Parameter):
                raise KeyError(f'{names[0]}: the checkpoint does not have it')
    return module


def compare(run: Run, module: torch.nn.Module, exported: Export) -> Comparison:
    """Trains a copy of `module` in PyTorch as `run` trained `exported`, which was made of it, and returns how far the two are apart.

    The module has the values with which it was exported. The run's data are micro-batches, its arithmetic is f32, and the module has no
    dropout: its random numbers would be others.
    """
    settings = run.record['settings']
    if settings['precision'] != 'f32' or settings['average'] != 'micro-batches':
        raise ValueError(f"the run has precision {settings['precision']} and averages {settings['average']}: only f32 and micro-batches are compared")
    if any(isinstance(each, torch.nn.modules.dropout._DropoutNd) and each.p > 0 for each in module.modules()):
        raise ValueError('the module has dropout, whose random numbers differ: set it to 0, export and train again')
    rows, batches = run.metrics, _read_batches(run, module)
    twin = copy.deepcopy(module)
    optimizer = _make_optimizer(twin, settings, exported, run)
    trained = [each for group in optimizer.param_groups for each in group['params']]
    losses: list[float] = []
    norms: list[float] = []
    gradients: dict[str, float] = {}
    dumped = run.path / 'gradients.safetensors'
    with in_training(twin):
        for row in rows:
            for group in optimizer.param_groups:
                group['lr'] = row['lr']
            optimizer.zero_grad()
            total = 0.0
            for _ in range(settings['micro_batches']):
                loss = _find_loss(twin(**next(batches)))
                (loss / settings['micro_batches']).backward()
                total += float(loss.detach()) / settings['micro_batches']
            if not losses and dumped.exists():
                gradients = _compare_values([(names, value.grad) for names, value in name_values(twin) if value.grad is not None],
                                            safetensors.numpy.load_file(dumped))
            norms.append(_clip(trained, settings.get('clip_norm', float('inf'))))
            optimizer.step()
            losses.append(total)
    return Comparison(_deviation(losses, [row['loss'] for row in rows]), _deviation(norms, [row['grad_norm'] for row in rows]),
                      gradients, _compare_values(name_values(twin), run.parameters()))


def _read_batches(run: Run, module: torch.nn.Module) -> Any:
    """Yields the micro-batches of the run, in order."""
    file = run.path / 'data.safetensors'
    values = safetensors.numpy.load_file(file) if file.exists() else {}
    names = {name.rpartition('.')[0] for name in values if name.rpartition('.')[2].isdigit()}
    if not names:
        raise ValueError(f'{file} has no micro-batches, which are needed for a comparison: train on a list of them')
    device = next(module.parameters()).device
    k = 0
    while all(f'{name}.{k}' in values for name in names):
        yield {name: torch.from_numpy(values[f'{name}.{k}']).to(device) for name in names}
        k += 1


def _make_optimizer(module: torch.nn.Module, settings: dict[str, Any], exported: Export, run: Run) -> torch.optim.Optimizer | Both:
    known = {each['name']: each for each in check(exported)['parameters']}
    # Parameters with a momentum buffer took Muon's step.
    matrices = {name.rpartition('/')[0] for name in run.parameters(state=True) if name.endswith('/momentum_buffer')} \
        if settings['optimizer'] == 'muon' else set()
    kinds: dict[tuple[bool, bool], list[torch.Tensor]] = {}
    for names, value in name_values(module):
        held = find_name(names, known)
        if value.requires_grad and held is not None and known[held]['trains']:
            kinds.setdefault((held in matrices, known[held]['decays']), []).append(value)
    grouped = [[{'params': params, 'weight_decay': settings['weight_decay'] if decays else 0.0}
                for (is_matrix, decays), params in kinds.items() if is_matrix == wanted] for wanted in (False, True)]
    groups = grouped[False]
    if settings['optimizer'] == 'sgd':
        return torch.optim.SGD(groups, lr=settings['lr'], momentum=settings['momentum'])
    if settings['optimizer'] == 'adafactor':
        return torch.optim.Adafactor(groups, lr=settings['lr'], eps=(None, settings['eps']))
    betas = (settings['beta1'], settings['beta2'])
    if settings['optimizer'] == 'lion':
        return Lion(groups, {'lr': settings['lr'], 'betas': betas})
    if settings['optimizer'] == 'lamb':
        return Lamb(groups, {'lr': settings['lr'], 'betas': betas, 'eps': settings['eps']})
    kind = torch.optim.Adam if settings['optimizer'] == 'adam' else torch.optim.AdamW
    made = kind(groups, lr=settings['lr'], betas=betas, eps=settings['eps'])
    return Both(made, Muon(grouped[True], {'lr': settings['lr'], 'momentum': settings['momentum']})) if matrices else made


def _clip(values: list[torch.Tensor], limit: float) -> float:
    """Scales gradients down to the norm `limit`, and returns the norm that they had. PyTorch adds up squares in f32, which is off by 1e-4
    for tables of some ten million values."""
    gradients = [value.grad for value in values if value.grad is not None]
    norm = sum(float(gradient.double().square().sum()) for gradient in gradients) ** 0.5
    if norm > limit:
        for gradient in gradients:
            gradient.mul_(limit / (norm + 1e-6))
    return norm


def _find_loss(output: Any) -> torch.Tensor:
    """Returns the loss: the output, or the first one of one number."""
    if isinstance(output, torch.Tensor):
        return output
    values = output.values() if hasattr(output, 'values') else output
    return next(each for each in values if isinstance(each, torch.Tensor) and each.dim() == 0 and each.is_floating_point())


def _deviation(wanted: list[float], got: list[float]) -> float:
    return max((abs(a - b) / max(abs(a), 1e-30) for a, b in zip(wanted, got)), default=0.0)


def _compare_values(wanted: list[tuple[list[str], torch.Tensor]], got: dict[str, numpy.ndarray]) -> dict[str, float]:
    """Returns the deviation of each tensor that `got` has under one of its names, by its first name."""
    pairs = {}
    for names, tensor in wanted:
        held = find_name(names, got)
        if held is not None:
            pairs[names[0]] = tensor.detach().cpu().double().numpy().ravel(), got[held].astype(numpy.float64).ravel()
    largest = {name: float(numpy.abs(theirs).max(initial=0)) for name, (theirs, _) in pairs.items()}
    least = max(1e-4 * max(largest.values(), default=0), 1e-30)
    return {name: float(numpy.abs(ours - theirs).max(initial=0)) / max(largest[name], least) for name, (theirs, ours) in pairs.items()}
