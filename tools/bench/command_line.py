"""Measures the CPU time of commands from start to answer, and of a scan of recordings per job.

The peer is `aws --version`, which reads no data and calls nothing, or without the AWS CLI the
import of boto3.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.bench.measure import Row, measure_alternately, run

RUNS = 9
RECORDINGS = Path("tests/recorded/data/jobs")
RECORDING = RECORDINGS / "profiled-056-p3-2xlarge.json"
_JOBS = 249
"""The number of jobs in the recordings that a history can store."""
_EXIT_CODE = 2
"""The scan's exit code, because one of the files has an ARN that is not a job's."""


def rows() -> Iterator[Row]:
    """Yields a row for each command beside the start of the AWS CLI, then one for the scan."""
    python, aws = [sys.executable], shutil.which("aws")
    name, peer = ("aws --version", [aws, "--version"]) if aws else ("boto3", _code("import boto3"))
    sageaudit = _code("from sageaudit.cli.main import main; main()")
    with TemporaryDirectory() as folder:
        history = ["--history", str(Path(folder, "history.db"))]
        run([*sageaudit, "audit", "--recording", str(RECORDING), *history])
        cases = (
            (["--version"], "at most 60 ms"),
            (["audit", "--recording", str(RECORDING)], "at most 300 ms"),
            (["history", "--all", *history], "at most 250 ms"),
        )
        for arguments, goal in cases:
            commands = [*sageaudit, *arguments], peer, [*python, "-c", "pass"]
            own_s, peer_s, python_s = measure_alternately(
                RUNS, *(partial(run, command) for command in commands)
            )
            label = f"{arguments[0]}, Python alone {python_s * 1000:.0f} ms"
            yield Row(label, own_s * 1000, "ms", name, peer_s * 1000, goal)
        yield _scan(sageaudit, Path(folder))


def _scan(sageaudit: list[str], folder: Path) -> Row:
    """Measures a scan of all recordings into a new history, without the start of the command."""

    def scan() -> None:
        (folder / "scan.db").unlink(missing_ok=True)
        arguments = ["--recordings", str(RECORDINGS), "--history", str(folder / "scan.db")]
        run([*sageaudit, "scan", *arguments], code=_EXIT_CODE)

    scan_s, start_s = measure_alternately(3, scan, partial(run, [*sageaudit, "scan", "--help"]))
    return Row(
        "scan of recordings", (scan_s - start_s) * 1000 / _JOBS, "ms/job", goal="at most 8 ms"
    )


def _code(program: str) -> list[str]:
    return [sys.executable, "-c", program]
