"""Modules of torch: their values by name, and their mode. Nothing here imports torch."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable, Iterator
from typing import Any


def name_values(module: Any) -> list[tuple[list[str], Any]]:
    """Returns parameters and buffers, each once with all its names: tied weights have several."""
    found: dict[int, tuple[list[str], Any]] = {}
    for name, value in (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)):
        found.setdefault(id(value), ([], value))[0].append(name)
    return list(found.values())


def find_name(names: Iterable[str], held: Container[str]) -> str | None:
    """Returns the first of a value's names that `held` has."""
    return next((name for name in names if name in held), None)


@contextlib.contextmanager
def in_training(module: Any) -> Iterator[None]:
    """Puts the module into training mode, unless a part of it is in that mode already, and restores all modes afterwards."""
    modes = {each: each.training for each in module.modules()}
    if not any(modes.values()):
        module.train()
    try:
        yield
    finally:
        for each, mode in modes.items():
            each.training = mode
