"""How the data to judge a job again is packed, and how long it is kept."""

from __future__ import annotations

import zlib

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.adapters.history.codec import Item
from sageaudit.domain.audit.record import Detail

DETAIL_DAYS = 90
"""As docs/data-model.md says; after them a job is not judged again."""
LARGEST_BYTES = 350_000
"""Most bytes of the packed description and series together; above it the series are dropped."""


def packed_detail(detail: Detail) -> Item:
    """The attributes of a detail: description and tags as compressed JSON, series as bytes."""
    job = zlib.compress(to_json({"describe": detail.describe, "tags": detail.tags}).encode())
    fits = len(job) + len(detail.series) <= LARGEST_BYTES
    dropped = None if fits else "The series were too large to keep."
    notes = [note for note in (detail.note, dropped) if note]
    return {"job": job, "series": detail.series if fits else b"", "note": " ".join(notes) or None}


def read_detail(item: Item) -> Detail:
    """The detail of a DETAIL item."""
    job = from_json(zlib.decompress(item["job"]).decode())
    return Detail(job["describe"], job["tags"], item["series"], item.get("note"))
