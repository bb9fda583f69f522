"""Compiles the asset for Lambda's Python, so that a cold start need not compile it.

Lambda's code folder is read-only, so modules without byte code are compiled again at every cold
start. Python reads only byte code of its own minor version. By default, the functions run on the
version that runs the deployment. If the setting `runtime` names another version, this machine needs
an interpreter of that version.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TASK_ROOT = "/var/task"
"""The asset's folder on Lambda, as tracebacks show it."""

_VERSION_SCRIPT = (
    "import json, platform, sys; print(json.dumps([sys.executable, platform.python_version(),"
    " sys.implementation.name, sys.version_info.releaselevel]))"
)
_ANSWER_TIMEOUT_S = 20


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python interpreter on this machine.

    `version` includes the patch level, such as `3.13.0`.
    """

    path: str
    version: str


def find_interpreter(python: str, environ: Mapping[str, str] = os.environ) -> Interpreter | None:
    """Returns a released CPython of the minor version `python`: the one that runs this process, or
    the first on the path. None if there is none.

    Runs each candidate: a shim of pyenv has the right name, but fails if its version is not
    selected.
    """
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    candidates = (Path(folder, f"python{python}") for folder in folders)
    for candidate in (Path(sys.executable), *candidates):
        interpreter = _query_version(candidate)
        if interpreter is not None and interpreter.version.rpartition(".")[0] == python:
            return interpreter
    return None


def compile_folder(folder: Path, interpreter: Interpreter) -> None:
    """Writes `__pycache__` beside each module of `folder`. Raises CalledProcessError.

    Python never checks the byte code against its source, as the asset is read-only. The byte code
    depends on nothing of this machine: no time, no path, no hash order.
    """
    subprocess.run(
        [
            *(interpreter.path, "-P", "-s", "-S", "-m", "compileall", "-q", "-f"),
            *("--invalidation-mode", "unchecked-hash"),
            *("-s", str(folder), "-p", TASK_ROOT, str(folder)),
        ],
        check=True,
        cwd=folder,
        env={"PATH": os.defpath, "PYTHONHASHSEED": "0"},
    )


def no_interpreter_warning(python: str) -> str:
    """Returns a sentence on what a deployment without `python` costs, and how to install Python."""
    return (
        f"no Python {python} is on this machine's path, so the Lambda functions have no byte code, "
        "and each cold start takes about 0.5 s more CPU time (more than twice as much): "
        "remove `runtime` from the context in cdk.json, or install this Python with "
        f"`uv python install {python}`, which puts it in ~/.local/bin, then run this again"
    )


def _query_version(candidate: Path) -> Interpreter | None:
    if not candidate.is_file() or not os.access(candidate, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [str(candidate), "-I", "-S", "-c", _VERSION_SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            timeout=_ANSWER_TIMEOUT_S,
        )
        path, version, implementation, level = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    # A pre-release may have another byte code than the release, which then ignores it.
    is_usable = implementation == "cpython" and level == "final"
    return Interpreter(path, version) if is_usable else None
