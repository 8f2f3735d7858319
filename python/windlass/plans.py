"""Plans: how every operator of a model runs on a cluster."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import TYPE_CHECKING, Any

from .command import read_model, run_command, to_flags

if TYPE_CHECKING:
    from .exporting import Export


@dataclasses.dataclass(frozen=True)
class Plan:
    """A plan: its file, and what `windlass plan --json` says of it where this process made it."""

    path: pathlib.Path
    summary: dict[str, Any]

    @property
    def seconds(self) -> float:
        """The predicted seconds of a step."""
        return self.summary['predicted_seconds']

    @property
    def bytes_per_device(self) -> int:
        """The bytes that a step takes of each device: the arena and what is reserved besides it."""
        held = self.summary['bytes_per_device']
        return held['arena'] + held['reserve']['total']

    @property
    def ranks(self) -> int:
        return self.summary['ranks']

    def read(self) -> dict[str, Any]:
        """Returns plan.json: strategies, layouts, and the settings that are compiled in."""
        return json.loads(self.path.read_text())


def plan(model: Export | str | pathlib.Path, cluster: str | pathlib.Path, output: str | pathlib.Path = 'plan.json', **settings: Any) -> Plan:
    """Plans `model` for `cluster`, a preset such as 'h100:2x8' or a file, and writes the plan to `output`.

    Settings are the flags of `windlass plan`, as in `strategy='zero3', precision='bf16', micro_batches=8`.
    """
    path, own = read_model(model)
    summary = run_command('plan', path, *to_flags({**own, **settings, 'cluster': cluster}), '-o', output)
    return Plan(pathlib.Path(output), summary)
