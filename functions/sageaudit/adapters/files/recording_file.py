"""Writes recordings: what audits read, for their owner's eyes only, and never over another file.

`recording.parsed` reads what is written here.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from sageaudit.adapters.files import local_files, recording
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.recording import SCHEMA, RecordedSet, Recording
from sageaudit.domain.audit.finding_document import iso
from sageaudit.domain.job.kept import TagNames, audited_tags, keep
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.privacy.token_shapes import is_name
from sageaudit.domain.usage.measurements import RawSeries
from sageaudit.errors import BadUsage

_WIDTH = 100
_TAGS = Policy().tags_read


def document_of(
    recorded: Recording | RecordedSet, key: bytes | None = None, tags: TagNames = _TAGS
) -> dict[str, Any]:
    """The JSON of a recording: what a history keeps of a job, with its metrics and prices.

    `key`: that of fingerprints, by which runs with the same settings are known; without it the
    recording has none. `tags`: the names of those that are kept. A set has its moment and its price
    list once, for all of its jobs. Raises Malformed.
    """
    if isinstance(recorded, Recording):
        return {"schema": SCHEMA, **_of_one(recorded, key, tags)}
    children = [_of_one(child, key, tags) for child in recorded.children]
    written = {} if recorded.rollup is None else _of_one(recorded.rollup, key, tags)
    for part in ("as_of", "prices"):
        shared = next((child[part] for child in children if child.get(part)), None)
        if shared is not None and written.setdefault(part, shared) == shared:
            for child in children:
                if child.get(part) == shared:
                    del child[part]
    deleted = {"deleted": [ref.arn for ref in recorded.deleted]} if recorded.deleted else {}
    return {"schema": SCHEMA, **written, **deleted, "children": children}


def _of_one(recorded: Recording, key: bytes | None, tags: TagNames) -> dict[str, Any]:
    kept = audited_tags(recorded.tags, tags, all_read=recorded.all_tags)
    read = recorded.as_read
    named = [one for one in recorded.series if is_name(one.host) and is_name(one.metric)]
    metrics: dict[str, Any] = {"series": [_series(one) for one in named]}
    written: dict[str, Any] = {"account": recorded.account, "region": recorded.region}
    if read is not None:
        written["as_of"] = iso(read.as_of)
        if read.notes:
            written["notes"] = list(read.notes)
        metrics = {
            "absent": asdict(read.absent),
            **({"notes": list(read.metric_notes)} if read.metric_notes else {}),
            **metrics,
        }
    written["describe"] = keep(recorded.describe, key)
    written["tags"] = [{"Key": name, "Value": value} for name, value in kept.items()]
    written["metrics"] = metrics
    if read is not None and read.prices is not None:
        written["prices"] = recording.prices_document(read.prices)
    return written


def _series(series: RawSeries) -> dict[str, Any]:
    return {
        "host": series.host,
        "metric": series.metric,
        "start": iso(series.start),
        "period_s": series.period_s,
        "values": list(series.values),
    }


def text_of(document: Mapping[str, Any]) -> str:
    """The JSON text of a recording, to be read by people too: lists of numbers on one line."""
    return "".join(_lines(document, "")) + "\n"


def _lines(value: object, indent: str) -> Iterator[str]:
    flat = to_json(value)
    plain = isinstance(value, list) and not any(isinstance(one, dict | list) for one in value)
    if plain or not isinstance(value, dict | list) or len(indent) + len(flat) <= _WIDTH:
        yield flat
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    yield opening
    inner = f"{indent} "
    pairs = value.items() if isinstance(value, dict) else ((None, one) for one in value)
    for position, (key, item) in enumerate(pairs):
        yield f"{',' if position else ''}\n{inner}"
        if key is not None:
            yield f"{json.dumps(str(key), ensure_ascii=False)}: "
        yield from _lines(item, inner)
    yield f"\n{indent}{closing}"


def check_free(path: Path, *, replace: bool) -> None:
    """Raises BadUsage without its folder, and for a file that may not be replaced."""
    if not path.parent.is_dir():
        raise BadUsage(f"{path}: there is no folder {path.parent}")
    try:
        known = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadUsage(
            f"{path}: cannot be written ({error.strerror}): choose another file with -o"
        ) from error
    if not (stat.S_ISREG(known.st_mode) or stat.S_ISLNK(known.st_mode)):
        raise BadUsage(f"{path} is not a file: choose another one, or -o - for stdout")
    if not replace:
        raise BadUsage(f"{path} exists already: choose another file with -o, or add --force")


def write(path: Path, text: str, *, replace: bool) -> None:
    """Writes a new file as a whole or not at all, readable by its owner only.

    `replace`: an existing file may be replaced. Raises BadUsage where one is in the way, or where
    the file cannot be written.
    """
    check_free(path, replace=replace)
    local_files.write_text(path, text, mode=0o600)
