"""Synthesis is slow: all templates are made once a test run, in a process of their own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.once import make_once
from tests.infra.reading import read


def _synthesize(folder: Path) -> None:
    command = [sys.executable, "-m", "tests.infra.synthesized", str(folder)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(command, cwd=Path(__file__).parents[2], env=env, check=True)


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `tests.infra.synthesized` writes."""
    return make_once(tmp_path_factory, "templates", _synthesize)


@pytest.fixture(scope="session")
def template(templates: Path) -> dict[str, Any]:
    """The stack with every channel and no further account."""
    parsed: dict[str, Any] = read(templates, "every-channel.json")
    return parsed


@pytest.fixture(scope="session")
def quiet_template(templates: Path) -> dict[str, Any]:
    """The stack without Slack and with one further account."""
    parsed: dict[str, Any] = read(templates, "quiet.json")
    return parsed
