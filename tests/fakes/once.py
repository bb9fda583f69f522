"""Shares slow preparations between all processes of a test run."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Returns a folder that the first process fills with `make`; other processes wait for it."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder_path = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder_path.exists():
            unfinished = folder / f"{name}.unfinished"
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder_path)
    return folder_path
