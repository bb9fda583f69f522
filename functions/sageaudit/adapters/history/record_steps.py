"""Decides what recording an audit changes, for every kind of history.

It decides which version to write, which runs to judge again, and how the daily sums change. Audits
are stored as gzipped JSON: a typical audit of 5 to 15 KB takes about 2 KB. The stream of the
DynamoDB table passes these bytes to `notify` unchanged. A document larger than MAX_DOCUMENT_BYTES
is trimmed, with a note about what is missing.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from sageaudit.adapters.files.exact_json import gzip_text, read_gzip_json, to_json
from sageaudit.adapters.history.codec import (
    moment_sk,
)
from sageaudit.adapters.history.rows import clip_text, unlisted_finding_count
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, AuditEntry, RecordOutcome, RecordResult
from sageaudit.domain.audit.stored_document import check_document
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow, Sums, tag_sum_name
from sageaudit.domain.moments import as_utc
from sageaudit.structs import replace

STAMP_LENGTH = 8
MAX_DOCUMENT_BYTES = 350_000
"""The maximum size of a document's JSON in UTF-8. Its gzip then always fits an item of 400 KB."""
MAX_TEXT_LENGTH = 300
"""The maximum length of a text after the last trim."""
MAX_LIST_LENGTH = 50
"""The maximum length of a list after the last trim."""
_Document = dict[str, Any]


class RecordStep(enum.Enum):
    """What recording an entry does.

    WRITE adds a version. ADVANCE changes only the time of the job's last change. CONFIRM means that
    judging the newest version again gave the same result. DUPLICATE and OLDER change nothing.
    """

    WRITE = "write"
    CONFIRM = "confirm"
    ADVANCE = "advance"
    DUPLICATE = "duplicate"
    OLDER = "older"


def next_step(newest_summary: AuditSummary | None, entry: AuditEntry, digest: str) -> RecordStep:
    """Returns the step for an entry. It does not depend on the order or number of deliveries.

    ADVANCE stores the newer time of an unchanged document, so that an older state is rejected
    later. If the job's state is unchanged, only its first final audit or `force_new_version` makes
    a new version. So two deliveries that read metrics a second apart count as one audit. CONFIRM
    stores the earlier runs that the new judgement used.
    """
    if newest_summary is None:
        return RecordStep.WRITE
    modified_at, newest_modified_at = (
        as_utc(entry.last_modified_at),
        as_utc(newest_summary.last_modified_at),
    )
    if modified_at < newest_modified_at:
        return RecordStep.OLDER
    is_newer = modified_at > newest_modified_at
    if digest == newest_summary.digest:
        if entry.force_new_version:
            return RecordStep.CONFIRM
        return RecordStep.ADVANCE if is_newer else RecordStep.DUPLICATE
    is_first_final = entry.document["audit"]["settled"] and not newest_summary.settled
    return (
        RecordStep.WRITE
        if is_newer or is_first_final or entry.force_new_version
        else RecordStep.DUPLICATE
    )


def unchanged_result(step: RecordStep, newest_summary: AuditSummary) -> RecordResult:
    """Returns the result for an entry that made no new version."""
    outcome = RecordOutcome.OUTDATED if step is RecordStep.OLDER else RecordOutcome.DUPLICATE
    return RecordResult(outcome, newest_summary.version, newest_summary)


class FamilyPlace(Struct, frozen=True):
    """A run's place among its family's runs, which are ordered by their ends, and its stamp."""

    ended_sk: str
    stamp: str


class FamilyRow(FamilyPlace, frozen=True):
    """A run's place in its family, and the earlier runs with which it was judged.

    A run is judged by the runs that ended before it. `compared` has the stamps of the earlier runs
    that its audit read; None if it read none. `compared_since` is the sort key of the oldest of
    them if the audit's limit was reached, else "". So two rows show if one run was judged without
    the other.
    """

    key: JobKey
    compared: tuple[str, ...] | None
    compared_since: str

    @property
    def compared_text(self) -> str | None:
        """The stamps in `compared` without separators; None if no earlier runs were read."""
        return None if self.compared is None else "".join(self.compared)

    def has_missed(self, earlier_place: FamilyPlace) -> bool:
        """Returns True if the run's audit did not read the current state of an earlier run."""
        if self.compared is None or earlier_place.ended_sk < self.compared_since:
            return False
        return earlier_place.stamp not in self.compared


def read_compared(text: str | None) -> tuple[str, ...] | None:
    """Reads the stamps that `compared_text` joined; None if no earlier runs were read."""
    if text is None:
        return None
    return tuple(text[at : at + STAMP_LENGTH] for at in range(0, len(text), STAMP_LENGTH))


def family_row(entry: AuditEntry, summary: AuditSummary) -> FamilyRow | None:
    """Returns a run's row; None if no other run is compared with it."""
    if summary.stamp is None:
        return None
    earlier_runs = entry.earlier_runs
    is_limit_reached = earlier_runs is not None and len(earlier_runs) >= MAX_EARLIER_RUNS
    return FamilyRow(
        key=summary.key,
        ended_sk=moment_sk(summary.ended_at, summary.key),
        stamp=summary.stamp,
        compared=None
        if earlier_runs is None
        else tuple(run.stamp for run in earlier_runs if run.stamp),
        compared_since=moment_sk(earlier_runs[-1].ended_at, earlier_runs[-1].key)
        if earlier_runs and is_limit_reached
        else "",
    )


def find_outdated(
    row: FamilyRow, earlier_places: Iterable[FamilyPlace], later_rows: Iterable[FamilyRow]
) -> Iterator[JobKey]:
    """Yields the runs to judge again.

    These are the row's own run if its audit missed an earlier run, and the later runs that missed
    it.
    """
    if any(map(row.has_missed, earlier_places)):
        yield row.key
    yield from (later_row.key for later_row in later_rows if later_row.has_missed(row))


def audit_sum_rows(summary: AuditSummary) -> Iterator[SumRow]:
    """Yields what an audit adds to each scope of the daily sums."""
    day = as_utc(summary.ended_at).date()
    names: Mapping[Scope, Sequence[str | None]] = {
        Scope.ACCOUNT: [None],
        Scope.FAMILY: [summary.family],
        Scope.OWNER: [summary.owner],
        Scope.TYPE: [summary.instance_type],
        Scope.TAG: [
            clip_text(tag_sum_name(tag, value)) for tag, value in summary.tags.items() if value
        ],
    }
    for scope, names_in_scope in names.items():
        for name in names_in_scope:
            yield SumRow(scope, summary.account, summary.region, name, day, summary.sums)


def sum_differences(previous: AuditSummary | None, summary: AuditSummary) -> Iterator[SumRow]:
    """Yields how recording a version changes the sums, compared with the previous version.

    Changes of zero are left out.
    """
    changes = _rows_by_place(summary)
    for place, row in (_rows_by_place(previous) if previous is not None else {}).items():
        sums_now = changes[place].sums if place in changes else Sums()
        changes[place] = replace(row, sums=sums_now - row.sums)
    yield from (row for row in changes.values() if row.sums != Sums())


def _rows_by_place(summary: AuditSummary) -> dict[object, SumRow]:
    # The names of two tags may be equal: `a=b` of the tag `a`, and `b` of the tag `a=b`.
    return {row.place: row for row in audit_sum_rows(summary)}


def document_digest(document: AuditDocument) -> str:
    """Returns the first half of the document's SHA-256, in hexadecimal.

    It ignores the version, and the recheck time: a recheck that changes nothing else is no new
    version.
    """
    audit = {name: value for name, value in document["audit"].items() if name != "version"}
    audit["due_at"] = None
    return hashlib.sha256(
        to_json({**document, "audit": audit}, sort_keys=True).encode()
    ).hexdigest()[:32]


def to_stored_bytes(document: AuditDocument, version: int) -> bytes:
    """Returns a document's stored bytes: gzipped JSON with the version, trimmed to fit one item."""
    return gzip_text(to_stored_json(document, version))


def read_stored_bytes(packed: bytes) -> AuditDocument:
    """Returns the document that `to_stored_bytes` stored. Raises GZIP_JSON_ERRORS or ValueError."""
    return check_document(read_gzip_json(packed))


def to_stored_json(document: AuditDocument, version: int) -> str:
    """Returns a document's stored JSON, with the version, trimmed to fit one item."""
    audit = {**document["audit"], "version": version}
    stored_document = cast("_Document", {**document, "audit": audit})
    if unlisted_count := unlisted_finding_count(document):
        note = (
            f"Findings that no list shows: {unlisted_count}"
            " (lists have one of each rule, 40 at most)."
        )
        stored_document = _with_note(stored_document, note)
    text = to_json(stored_document)
    for trim, note in _TRIMS:
        if len(text.encode()) <= MAX_DOCUMENT_BYTES:
            break
        trimmed_document = trim(stored_document)
        if trimmed_document != stored_document:
            stored_document = _with_note(trimmed_document, note)
            text = to_json(stored_document)
    return text


def _with_note(document: _Document, note: str) -> _Document:
    coverage = document["audit"]["coverage"]
    coverage = {**coverage, "missing": [*coverage["missing"], note]}
    return {**document, "audit": {**document["audit"], "coverage": coverage}}


def _without_evidence(document: _Document) -> _Document:
    return {
        **document,
        "findings": [{**finding, "evidence": {}} for finding in document["findings"]],
    }


def _shorten_children(document: _Document) -> _Document:
    shortened_children = [
        {**_without_evidence(child), "phases": [], "waterfall": []}
        for child in document["children"] or ()
    ]
    return {
        **document,
        "children": shortened_children if document["children"] is not None else None,
    }


def _without_children(document: _Document) -> _Document:
    return {**document, "children": [] if document["children"] is not None else None}


def _clip(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _clip(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_clip(entry) for entry in value[:MAX_LIST_LENGTH]]
    if isinstance(value, str) and len(value) > MAX_TEXT_LENGTH:
        return value[: MAX_TEXT_LENGTH - 1] + "…"
    return value


_TRIMS: tuple[tuple[Callable[[_Document], _Document], str], ...] = (
    (_shorten_children, "Phases and evidence of the child jobs are only in their own audits."),
    (_without_children, "The child jobs are left out: each has its own audit."),
    (_without_evidence, "The evidence of the findings was too large to store."),
    (_clip, "Long texts and lists were cut: the audit was too large to store."),
)
"""Applied in this order until the document fits. No trim changes a total in dollars."""
