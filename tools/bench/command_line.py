"""How much CPU the command takes to start and answer, and a scan of recordings for each job.

Beside it stands `aws --version`, which reads no data and calls nothing, or the import of boto3
where there is no AWS CLI.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.bench.measure import Row, in_turn, run

RUNS = 9
RECORDINGS = Path("tests/recorded/data/jobs")
ONE = RECORDINGS / "profiled-056-p3-2xlarge.json"
_JOBS = 249
"""Jobs in the recordings that a history can keep."""
_REFUSED = 2
"""One of the files has an ARN that is no job's."""


def rows() -> Iterator[Row]:
    """Each command beside the AWS CLI's start, then the scan."""
    python, aws = [sys.executable], shutil.which("aws")
    name, peer = ("aws --version", [aws, "--version"]) if aws else ("boto3", _code("import boto3"))
    ours = _code("from sageaudit.cli.main import main; main()")
    with TemporaryDirectory() as folder:
        history = ["--history", str(Path(folder, "history.db"))]
        run([*ours, "audit", "--recording", str(ONE), *history])
        asked = (
            (["--version"], "at most 60 ms"),
            (["audit", "--recording", str(ONE)], "at most 300 ms"),
            (["history", "--all", *history], "at most 250 ms"),
        )
        for words, goal in asked:
            commands = [*ours, *words], peer, [*python, "-c", "pass"]
            own, other, bare = in_turn(RUNS, *(partial(run, command) for command in commands))
            what = f"{words[0]}, Python alone {bare * 1000:.0f} ms"
            yield Row(what, own * 1000, "ms", name, other * 1000, goal)
        yield _scan(ours, Path(folder))


def _scan(ours: list[str], folder: Path) -> Row:
    """A scan of all recordings into a new history, without the start of the command."""

    def scan() -> None:
        (folder / "scan.db").unlink(missing_ok=True)
        words = ["--recordings", str(RECORDINGS), "--history", str(folder / "scan.db")]
        run([*ours, "scan", *words], code=_REFUSED)

    whole, start = in_turn(3, scan, partial(run, [*ours, "scan", "--help"]))
    return Row("scan of recordings", (whole - start) * 1000 / _JOBS, "ms/job", goal="at most 8 ms")


def _code(program: str) -> list[str]:
    return [sys.executable, "-c", program]
