"""Commands from start to answer, beside `aws --version`, which reads no data and calls nothing.

Without the AWS CLI, the peer is the import of boto3.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

RECORDING = "tests/recorded/data/jobs/profiled-056-p3-2xlarge.json"
SAGEAUDIT = (sys.executable, "-c", "from sageaudit.cli.main import main; main()")


def run_ms(command: Sequence[str]) -> float:
    """Runs a command, and returns its CPU time in ms. Raises CalledProcessError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


@cache
def _history() -> str:
    """Returns the path of a history with one audit."""
    path = str(Path(mkdtemp(), "history.db"))
    run_ms((*SAGEAUDIT, "audit", "--recording", RECORDING, "--history", path))
    return path


def _command_ms(*arguments: str) -> float:
    return run_ms((*SAGEAUDIT, *arguments))


def _history_ms() -> float:
    return _command_ms("history", "--all", "--history", _history())


def _aws_ms() -> float:
    aws = shutil.which("aws")
    return run_ms((aws, "--version") if aws else (sys.executable, "-c", "import boto3"))


MEASURED: Mapping[str, tuple[str, Callable[[], float]]] = {
    "sageaudit --version": ("ms", partial(_command_ms, "--version")),
    "sageaudit audit --recording": ("ms", partial(_command_ms, "audit", "--recording", RECORDING)),
    "sageaudit history": ("ms", _history_ms),
    "peer: aws --version": ("ms", _aws_ms),
    "Python alone": ("ms", partial(run_ms, (sys.executable, "-c", "pass"))),
}  # fmt: skip
