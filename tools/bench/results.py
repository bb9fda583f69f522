"""The samples of the last measurements, kept in results.jsonl: a line for each figure."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec

from tools.bench.measure import ROOT, Row

RESULTS = Path(__file__).with_name("results.jsonl")


@dataclass(frozen=True, slots=True)
class Result:
    """A figure, with the commits of both versions, the day and the machine."""

    part: str
    commit: str
    before_commit: str | None
    day: date
    machine: str
    row: Row


_DECODER = msgspec.json.Decoder(Result)


def load_results() -> list[Result]:
    """Returns what is stored; nothing if the file does not exist."""
    return _DECODER.decode_lines(RESULTS.read_bytes()) if RESULTS.exists() else []


def keep_row(part: str, row: Row, base: Path | None) -> None:
    """Stores a figure of a part, which replaces that of the same label."""
    before = _commit(base) if base else None
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    results = {(result.part, result.row.label): result for result in load_results()}
    day = datetime.now(UTC).date()
    results[part, row.label] = Result(part, _commit(ROOT), before, day, machine, row)
    ordered = sorted(results.values(), key=lambda result: result.part)
    RESULTS.write_bytes(msgspec.json.Encoder().encode_lines(ordered))


def _commit(root: Path) -> str:
    command = ["git", "-C", str(root), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
