"""Compiles the asset for the Python of Lambda, so that a cold start does not.

Lambda's code folder is read-only: what is not compiled here is compiled again at every cold start.
Python reads byte code of its own minor version only, so an interpreter of that version is needed on
this machine; it need not be the one that runs the deployment.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TASK_ROOT = "/var/task"
"""Lambda's folder of the asset, as tracebacks show it."""

_VERSION_SCRIPT = (
    "import json, platform, sys; print(json.dumps([sys.executable, platform.python_version(),"
    " sys.implementation.name, sys.version_info.releaselevel]))"
)
_ANSWER_S = 20


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python on this machine; `version` has its patch level, such as `3.13.0`."""

    path: str
    version: str


def find_interpreter(python: str, environ: Mapping[str, str] = os.environ) -> Interpreter | None:
    """Returns the first released CPython of the minor version `python` on the path, or None.

    Each candidate is run: pyenv's shim has the right name, but fails if that version is not
    selected.
    """
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        version = _query_version(Path(folder, f"python{python}"))
        if version is not None and version.version.rpartition(".")[0] == python:
            return version
    return None


def compile_folder(folder: Path, interpreter: Interpreter) -> None:
    """Writes `__pycache__` beside each module of `folder`. Raises CalledProcessError.

    The byte code is never checked against its source (the asset is read-only), and depends on
    nothing of this machine: no time, no path, no order of hashes.
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
    """Says what a deployment without `python` costs and how to get it, in one sentence."""
    return (
        f"no Python {python} is on the path of this machine, so the Lambda functions go without "
        "byte code and each cold start takes about 0.5 s more of CPU (more than twice as much): "
        f"install it with `uv python install {python}`, which puts it in ~/.local/bin, "
        "then run this again"
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
            timeout=_ANSWER_S,
        )
        path, version, implementation, level = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    # The byte code of a pre-release may differ from the release's, and is then ignored.
    usable = implementation == "cpython" and level == "final"
    return Interpreter(path, version) if usable else None
