"""In-memory History for the CLI and the tests, equivalent to `adapters/history/dynamo/history.py`.

Both use the same decisions, rows, keys and cursors; nothing expires here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import islice

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.daily_sums import SumFilter, sum_row
from sageaudit.adapters.history.detail import packed_detail, read_detail
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.families import FamilyRow, family_row, out_of_date
from sageaudit.adapters.history.moments import as_utc, month_of
from sageaudit.adapters.history.paging import last_seen, list_end, page_of
from sageaudit.adapters.history.rows import finding_rows, head_of
from sageaudit.adapters.history.sort_keys import (
    before_sk,
    due_sk,
    due_until,
    ended_after,
    ended_before,
    ended_sk,
)
from sageaudit.adapters.history.stored_document import digest_of, read_text, stored_text
from sageaudit.adapters.history.versions import RecordStep, next_step, unchanged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    FAMILY_RUNS,
    Detail,
    Entry,
    FindingRow,
    Head,
    JobKey,
    Page,
    Position,
    Recorded,
    Verdict,
)
from sageaudit.domain.audit.sums import Scope, SumRow, Sums


@dataclass(frozen=True, slots=True)
class _Kept:
    """Everything about one run. `texts` are its documents in order of version."""

    head: Head
    texts: tuple[str, ...]
    findings: tuple[FindingRow, ...]
    detail: Item | None
    family_row: FamilyRow | None


class MemoryHistory:
    """Implements History in memory; its content is lost when the process ends."""

    def __init__(self) -> None:
        self._runs: dict[str, _Kept] = {}

    def record(self, entry: Entry) -> Recorded:
        """Stores HEAD, version, findings and detail, or nothing."""
        known = self._runs.get(keys.job_pk(entry.key))
        newest = None if known is None else known.head
        digest = digest_of(entry.document)
        step = next_step(newest, entry, digest)
        if known is None or newest is None or step is RecordStep.WRITE:
            return self._write(entry, digest, known)
        if step is RecordStep.CONFIRM:
            head = head_of(entry, newest.version, digest=digest, findings=finding_rows(entry))
            row = family_row(entry, head)
            self._runs[keys.job_pk(entry.key)] = replace(known, head=head, family_row=row)
        if step is RecordStep.ADVANCE:
            modified_at = as_utc(entry.last_modified_at)
            head = replace(newest, last_modified_at=modified_at)
            self._runs[keys.job_pk(entry.key)] = replace(known, head=head)
        return unchanged(step, newest)

    def _write(self, entry: Entry, digest: str, known: _Kept | None) -> Recorded:
        texts = () if known is None else known.texts
        version = len(texts) + 1
        detail = None if known is None else known.detail
        findings = finding_rows(entry)
        head = head_of(entry, version, digest=digest, findings=findings)
        self._runs[keys.job_pk(entry.key)] = _Kept(
            head=head,
            texts=(*texts, stored_text(entry.document, version)),
            findings=findings,
            detail=detail if entry.detail is None else packed_detail(entry.detail),
            family_row=family_row(entry, head),
        )
        return Recorded(Verdict.RECORDED, version, head)

    def recheck_family(
        self,
        key: JobKey,
        *,
        account: str,
        region: str,
        family: str,
        ended_at: datetime,
        due_at: datetime,
    ) -> tuple[JobKey, ...]:
        """Sets `due_at` of the family's audits that were judged without a run that ended before."""
        partition = keys.family_runs_pk(account, region, family)
        rows = sorted(self._family_rows(partition), key=lambda row: row.ended_sk)
        own = next((r for r in rows if r.ended_sk == ended_sk(ended_at, key)), None)
        if own is None:
            return ()
        before = [row for row in rows if row.ended_sk < ended_before(ended_at)]
        after = [row for row in rows if row.ended_sk > ended_after(ended_at)]
        found = tuple(out_of_date(own, before[-FAMILY_RUNS:], after[:FAMILY_RUNS]))
        for run in found:
            self.make_due(run, due_at)
        return found

    def _family_rows(self, partition: str) -> Iterator[FamilyRow]:
        for kept in self._runs.values():
            head = kept.head
            of_family = keys.family_runs_pk(head.account, head.region, head.family) == partition
            if kept.family_row is not None and of_family:
                yield kept.family_row

    def make_due(self, key: JobKey, due_at: datetime) -> None:
        """Sets `due_at` of an audit that is not due earlier, and does nothing without one."""
        job, at = keys.job_pk(key), as_utc(due_at)
        kept = self._runs.get(job)
        if kept is not None and (kept.head.due_at is None or kept.head.due_at > at):
            self._runs[job] = replace(kept, head=replace(kept.head, due_at=at))

    def head(self, key: JobKey) -> Head | None:
        """HEAD, the summary of the newest version; None for an unknown run."""
        known = self._runs.get(keys.job_pk(key))
        return None if known is None else known.head

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """The document of a version, by default the newest; None where there is none."""
        known = self._runs.get(keys.job_pk(key))
        if known is None:
            return None
        wanted = len(known.texts) if version is None else version
        return read_text(known.texts[wanted - 1]) if 1 <= wanted <= len(known.texts) else None

    def detail(self, key: JobKey) -> Detail | None:
        """The stored data to judge the job again; None where there is none."""
        known = self._runs.get(keys.job_pk(key))
        return None if known is None or known.detail is None else read_detail(known.detail)

    def by_day(
        self,
        day: date,
        *,
        before: datetime | Position | None = None,
        page_size: int | None = None,  # noqa: ARG002 - nothing is read in pages here
    ) -> Iterator[Head]:
        """Jobs that ended on a day in UTC, newest first."""
        shards = keys.day_pks(day)
        return (
            head
            for _, head in self._newest(before)
            if keys.day_pk(head.ended_at, head.key) in shards
        )

    def by_family(
        self,
        account: str,
        region: str,
        family: str,
        *,
        before: datetime | Position | None = None,
        limit: int | None = None,
        page_size: int | None = None,  # noqa: ARG002 - nothing is read in pages here
    ) -> Iterator[Head]:
        """The runs of one family, newest first."""
        wanted = keys.family_pk(account, region, family)
        heads = (
            head
            for _, head in self._newest(before)
            if keys.family_pk(head.account, head.region, head.family) == wanted
        )
        return islice(heads, limit)

    def by_owner(
        self,
        owner: str,
        *,
        limit: int,
        cursor: str | None = None,
        before: datetime | Position | None = None,
    ) -> Page[Head]:
        """One owner's jobs, newest first."""
        wanted = keys.owner_pk(owner)
        asked = f"by-owner {wanted}"
        last = list_end(asked, cursor, before)
        rows = (
            (sk, head)
            for sk, head in self._newest()
            if sk < last and head.owner is not None and keys.owner_pk(head.owner) == wanted
        )
        return page_of(asked, rows, limit)

    def by_account(
        self,
        account: str,
        month: str,
        *,
        before: datetime | Position | None = None,
        page_size: int | None = None,  # noqa: ARG002 - nothing is read in pages here
    ) -> Iterator[Head]:
        """One account's jobs of a month, newest first."""
        wanted = keys.account_pk(account, month)
        return (
            head
            for _, head in self._newest(before)
            if keys.account_pk(head.account, month_of(head.ended_at)) == wanted
        )

    def by_rule(
        self,
        rule: str,
        month: str,
        *,
        limit: int,
        cursor: str | None = None,
        before: datetime | Position | None = None,
    ) -> Page[FindingRow]:
        """One rule's findings of a month, newest first."""
        wanted = keys.rule_pk(rule, month)
        asked = f"by-rule {wanted}"
        last = list_end(asked, cursor, before)
        matching = (
            (ended_sk(row.ended_at, row.key), row)
            for kept in self._runs.values()
            for row in kept.findings
            if keys.rule_pk(row.rule, month_of(row.ended_at)) == wanted
        )
        rows = sorted((keyed for keyed in matching if keyed[0] < last), key=_sort_key, reverse=True)
        return page_of(asked, iter(rows), limit)

    def due(self, before: datetime, *, limit: int, cursor: str | None = None) -> Page[Head]:
        """Jobs whose recheck time is at or before `before`, the oldest first."""
        last, until = last_seen("due", cursor) or "0", due_until(before)
        waiting = (
            (due_sk(kept.head.due_at, kept.head.key), kept.head)
            for kept in self._runs.values()
            if kept.head.due_at is not None
        )
        rows = sorted((keyed for keyed in waiting if last < keyed[0] <= until), key=_sort_key)
        return page_of("due", iter(rows), limit)

    def sums(
        self,
        scope: Scope,
        since: date,
        until: date,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """The daily sums of one scope, a row for each audit."""
        wanted = SumFilter(account, region, name)
        for kept in self._runs.values():
            row = sum_row(kept.head, scope)
            if row is None or row.sums == Sums():
                continue
            if since <= row.day <= until and wanted.fits(row):
                yield row

    def _newest(self, before: datetime | Position | None = None) -> Iterator[tuple[str, Head]]:
        last = before_sk(before)
        heads = (kept.head for kept in self._runs.values())
        keyed = ((ended_sk(head.ended_at, head.key), head) for head in heads)
        return iter(sorted((row for row in keyed if row[0] < last), key=_sort_key, reverse=True))


def _sort_key(keyed: tuple[str, object]) -> str:
    return keyed[0]
