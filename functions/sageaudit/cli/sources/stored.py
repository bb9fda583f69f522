"""Runs that were audited before, from the history's table or from recordings, to look at again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path

from sageaudit import flow
from sageaudit.adapters.aws.clients import aws_errors, client
from sageaudit.adapters.dynamo.history import DynamoHistory
from sageaudit.adapters.files import recording
from sageaudit.adapters.in_memory.history import MemoryHistory
from sageaudit.adapters.prices import packaged
from sageaudit.auditing import audit_job, run_facts
from sageaudit.cli.sources import recorded_run
from sageaudit.cli.sources.session import session_of_table
from sageaudit.domain.audit.document import document
from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.audit.record import Detail, Entry, Head, JobKey
from sageaudit.domain.audit.sanitize import detail_of
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.family import FAMILY_VERSION
from sageaudit.domain.job.ref import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.series_codec import unpack
from sageaudit.errors import BadRecording, BadUsage, Malformed
from sageaudit.ports import History
from sageaudit.rules import catalogue

_PAGE = 100
_DAYS = re.compile(r"(\d{1,3})d\Z")
_MOST_DAYS = 90
"""As long as the history keeps what is needed to judge a run again."""
_NOT_SAID = "unknown"
"""How the history files a run whose account or region a recording does not name."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One run as it was kept, with the runs of its family before it, at packaged prices."""

    run: recorded_run.Run
    earlier: tuple[EarlierRun, ...]


def days_of(since: str) -> int:
    """`30d` as a number. Raises BadUsage above what is kept."""
    match = _DAYS.match(since)
    days = int(match[1]) if match else 0
    if not 1 <= days <= _MOST_DAYS:
        raise BadUsage(f"--since {since} is not 1d to {_MOST_DAYS}d: runs are kept so long")
    return days


def of_table(table: str, profile: str | None, region: str | None) -> History:
    """The history in a DynamoDB table. Raises BadUsage for a table's name or region that is off."""
    session = session_of_table(table, profile, region)
    with aws_errors("dynamodb"):
        return DynamoHistory(client(session, "dynamodb"), table)


def of_recordings(paths: Sequence[Path]) -> tuple[History, list[Head]]:
    """A history in memory of recorded jobs, kept in the order in which they ended.

    Raises BadRecording naming file and key.
    """
    history, runs = MemoryHistory(), []
    for path in paths:
        recorded = recording.read(path)
        single = (recorded,) if isinstance(recorded, recording.Recording) else recorded.children
        try:
            runs += [(one, recorded_run.of_recording(one)) for one in single]
        except Malformed as error:
            raise BadRecording(f"{path}: {error}") from error
    runs = [pair for pair in runs if pair[1].job.kind is not JobKind.TUNING]
    keys = [
        _keep(history, recorded, run)
        for recorded, run in sorted(runs, key=lambda pair: pair[1].now)
    ]
    return history, [head for key in dict.fromkeys(keys) if (head := history.head(key))]


def _keep(history: History, recorded: recording.Recording, run: recorded_run.Run) -> JobKey:
    """Records one run. A tuning job's own answer has nothing to judge without its children."""
    job = replace(run.job, account=run.job.account or _NOT_SAID, region=run.job.region or _NOT_SAID)
    audit = audit_job(job, run.usage, run.market, Policy(), catalogue.ruleset(), now=run.now)
    key = JobKey(job.arn or job.name, job.created_at or job.started_at or run.now)
    history.record(
        Entry(
            key=key,
            last_modified_at=job.last_modified_at or run.now,
            document=document(audit),
            family_version=FAMILY_VERSION,
            fingerprint=job.fingerprint,
            detail=detail_of(recorded.describe, recorded.tags, run.usage),
            facts=run_facts(audit),
        )
    )
    return key


def heads(history: History, since: date, until: date) -> Iterator[Head]:
    """The runs that ended in these days, both included, the newest day first."""
    for days in range((until - since).days + 1):
        cursor: str | None = None
        while True:
            page = history.by_day(until - timedelta(days=days), limit=_PAGE, cursor=cursor)
            yield from page.rows
            cursor = page.cursor
            if cursor is None:
                break


def account_heads(history: History, account: str, since: date, until: date) -> Iterator[Head]:
    """One account's runs that ended in these days, both included, the newest first."""
    month = until.replace(day=1)
    while month >= since.replace(day=1):
        cursor: str | None = None
        while True:
            page = history.by_account(account, f"{month:%Y-%m}", limit=_PAGE, cursor=cursor)
            yield from (head for head in page.rows if since <= head.ended_at.date() <= until)
            cursor = page.cursor
            if cursor is None:
                break
        month = (month - timedelta(days=1)).replace(day=1)


def stored(history: History, head: Head) -> Stored | None:
    """The run as it was kept; None where its detail has expired or no longer reads."""
    detail = history.detail(head.key)
    if detail is None or not detail.series:
        return None
    try:
        run = _run(head, detail)
    except Malformed:
        return None
    earlier = flow.earlier_runs(run.job, head.family, history, now=run.now)
    return Stored(run, earlier)


def _run(head: Head, detail: Detail) -> recorded_run.Run:
    job = parse(detail.describe, detail.tags, account=head.account, region=head.region)
    fingerprint = head.facts.fingerprint if head.facts else None
    job = replace(job, fingerprint=fingerprint)
    now: datetime = job.ended_at or head.ended_at
    market = packaged.PackagedMarkets().market(job, now)
    return recorded_run.Run(job, unpack(detail.series, job, market.types), market, now)
