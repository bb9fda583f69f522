"""Writes the track records of the rules, which their pages show: the first part of `make docs`."""

from __future__ import annotations

from pathlib import Path

from sageaudit.cli.support.rules.track_record import FILE, to_text
from tests.labelled.track_records import track_records

DATA = Path(__file__).parents[1] / "functions" / "sageaudit" / "data" / FILE


if __name__ == "__main__":
    DATA.write_text(to_text(track_records()), encoding="utf-8")
