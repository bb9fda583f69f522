"""Writes the track records of the rules, which docs/rules shows: the first part of `make docs`."""

from __future__ import annotations

from tests.labelled.track_records import track_records
from tools.pages.track_record import FILE, to_text

if __name__ == "__main__":
    FILE.write_text(to_text(track_records()), encoding="utf-8")
