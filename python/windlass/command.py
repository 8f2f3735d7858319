"""The program `windlass`: where it is, its flags, and its errors."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any


class WindlassError(RuntimeError):
    """An error of `windlass`: `code` is its exit code, `diagnostic` the code of its message, such as 'WL0110', which `windlass explain` knows."""

    def __init__(self, message: str, code: int = 1, diagnostic: str | None = None):
        super().__init__(message)
        self.code, self.diagnostic = code, diagnostic


def find_program() -> str:
    """Returns the path of `windlass`: $WINDLASS, the one on PATH, or that of the checkout which this package is a part of."""
    own = pathlib.Path(__file__).resolve().parents[2] / 'build' / 'bin' / 'windlass'
    found = os.environ.get('WINDLASS') or shutil.which('windlass') or (str(own) if own.exists() else None)
    if not found:
        raise WindlassError('windlass is neither on PATH nor in $WINDLASS: build and install it (see its README)')
    return found


def to_flags(settings: dict[str, Any]) -> list[str]:
    """Returns settings as flags: `micro_batches=4` is `--micro-batches 4`, True a flag without a value, a list a flag for each of its
    values; None and False are left out."""
    flags = []
    for name, value in settings.items():
        flag = '-' + name if len(name) == 1 else '--' + name.replace('_', '-')
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                flags.append(flag)
            elif each is not None and each is not False:
                flags += [flag, str(each)]
    return flags


def read_model(model: Any) -> tuple[Any, dict[str, Any]]:
    """Returns the path of a model, and the settings that it needs where it is an `Export`."""
    return getattr(model, 'path', model), getattr(model, 'settings', {})


def run_command(*arguments: Any, show: bool = False, tick: Callable[[], None] | None = None) -> Any:
    """Runs `windlass` with the arguments and --json, and returns what it answers, or None where that is nothing.

    `show` passes on what it says meanwhile to standard error; `tick` is called a few times a second. An interrupt goes to the program
    too, which saves and stops. Raises WindlassError with its message where it fails.
    """
    command = [find_program(), *(str(each) for each in arguments), '--json']
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors='replace')
    assert process.stdout and process.stderr
    talk, result = process.stderr, process.stdout
    said: list[str] = []

    def listen() -> None:
        for line in talk:
            said.append(line)
            if show:
                print(line, end='', file=sys.stderr)

    answer: list[str] = []
    readers = [threading.Thread(target=listen), threading.Thread(target=lambda: answer.append(result.read()))]
    for reader in readers:
        reader.start()
    try:
        while True:
            try:
                process.wait(0.2)
                break
            except subprocess.TimeoutExpired:
                if tick:
                    tick()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    finally:
        for reader in readers:
            reader.join()
        talk.close()
        result.close()
    if tick:
        tick()
    if process.returncode != 0:
        errors = [line.strip() for line in said if 'error: ' in line]
        message = errors[-1] if errors else ''.join(said[-5:]).strip() or f'windlass ended with {process.returncode}'
        diagnostic = re.search(r'\[(WL\d{4})\]', message)
        raise WindlassError(message, process.returncode, diagnostic and diagnostic[1])
    return json.loads(answer[0]) if answer[0].strip() else None
