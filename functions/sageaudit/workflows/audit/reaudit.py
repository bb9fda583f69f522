"""The second look at a run: what it is made from, and when it is the last one.

An audit is due again while a figure may still change: a warm pool has not ended, metrics were late,
training jobs of a tuning job were not audited, or a run of the family was audited later. The look
ends some day, so that no audit is due for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.record import Detail, Head
from sageaudit.domain.job.describe import latest_time, parse
from sageaudit.domain.job.job import FINISHED, Job
from sageaudit.domain.job.listed import LONGEST_LIFE
from sageaudit.domain.job.phases import so_far
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import (
    METRICS_COME_WITHIN,
    MIN_COVERAGE,
    Measurements,
    Metric,
)
from sageaudit.domain.usage.series_codec import unpack
from sageaudit.errors import Malformed
from sageaudit.ports import History, Metrics

COARSER_AFTER = timedelta(days=15)
"""CloudWatch keeps points of one minute for this long, and averages of five minutes after it."""
LAST_LOOK_AFTER = METRICS_COME_WITHIN
"""Metrics and training jobs that are missing a day after the end do not come any more: our choice.
A warm pool is kept for 6 hours at most."""
SOONEST = timedelta(hours=1)
"""The first pause between two looks; each later one is as long as the time since the end."""
_POOL_AGAIN = timedelta(minutes=30)
"""SageMaker may say some minutes later that a pool has ended."""
_SAME_USD = Decimal("0.01")
_SAME_SHARE = Decimal("0.01")
"""Series are kept to a tenth of a percent: dollars that differ less than this are the same."""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run as the history keeps it: the job as of `now`, the time of its end."""

    job: Job
    now: datetime
    detail: Detail

    def usage(self, types: Mapping[str, InstanceType]) -> Measurements:
        """Its measurements."""
        return unpack(self.detail.series, self.job, types)


def kept_run(head: Head, detail: Detail | None) -> KeptRun | None:
    """The run of a head; None where its details have expired or cannot be read."""
    if detail is None or not detail.series:
        return None
    try:
        job = parse(detail.describe, detail.tags, account=head.account, region=head.region)
    except Malformed:
        return None
    job = replace(job, fingerprint=head.facts.fingerprint if head.facts else None)
    now = job.ended_at or latest_time(detail.describe) or head.ended_at
    return KeptRun(so_far(job, now), now, detail)


@dataclass(frozen=True, slots=True)
class Used:
    """What a run used: `kept` are the details that it was taken from, None where it was read now.

    `unread`: why CloudWatch could not be read again. Then `usage` is what is kept, or
    without `kept` nothing to judge by: the stored figures stay.
    """

    usage: Measurements
    kept: Detail | None = None
    unread: str | None = None


def used(
    head: Head,
    job: Job,
    types: Mapping[str, InstanceType],
    history: History,
    metrics: Metrics,
    *,
    now: datetime,
) -> Used:
    """What a run that has an audit used: never less than what the history keeps of it.

    CloudWatch is not asked where it would not say more: every metric was there, or is only kept in
    averages by now. An audit that was made before the run ended keeps nothing of its end. Raises
    Throttled or Unavailable when CloudWatch is asked and does not answer.
    """
    if head.status not in FINISHED or job.ended_at is None:
        return Used(metrics.read(job, now))
    detail = history.detail(head.key)
    kept = unpack(detail.series, job, types) if detail and detail.series else None
    if kept is not None:
        old = now - job.ended_at > COARSER_AFTER
        if old or (detail and detail.note is None and _whole(kept)):
            return Used(kept, detail)
    read = metrics.read(job, now)
    unread = _unread(read, kept)
    if unread is None:
        return Used(read)
    # Details with a note lack hosts: what was judged by all of them is not judged by some.
    whole = kept is not None and detail is not None and detail.note is None
    return Used(kept, detail, unread) if kept and whole else Used(read, None, unread)


def _unread(read: Measurements, kept: Measurements | None) -> str | None:
    """Why this was no whole answer: it was denied, or says less than an earlier one."""
    denied = [why.reason for why in read.missing.values() if why.code == "metric_denied"]
    if denied:
        return denied[0]
    fewer = kept is not None and _points(read) < _points(kept)
    return "CloudWatch answered with fewer points than before" if fewer else None


def _points(usage: Measurements) -> int:
    """Recorded points, of all hosts and metrics."""
    return sum(len(line.present) for hosts in usage.series.values() for line in hosts.values())


def _whole(usage: Measurements) -> bool:
    wanted = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    return all(
        metric not in usage.missing and (usage.share(metric) or 0.0) >= MIN_COVERAGE
        for metric in wanted
    )


def with_next_look(audit: Audit, now: datetime, unread: str | None = None) -> Audit:
    """An audit made at a second look, with the time of the next look, or settled.

    The pauses grow with the time since the end, and the last look is a day after it. A job that has
    not ended is looked at each hour, for as long as a job can last. `unread`: why metrics could not
    be read at this look.
    """
    if audit.final:
        return audit
    ended_at, created_at = audit.job.ended_at, audit.job.created_at
    if ended_at is None:
        if created_at is not None and now - created_at > LONGEST_LIFE + LAST_LOOK_AFTER:
            return settled(audit, "it was looked at for 31 days and did not end")
        return replace(audit, recheck_at=now + SOONEST)
    if now >= ended_at + LAST_LOOK_AFTER:
        missing = f"its metrics could not be read again ({unread})" if unread else None
        return settled(audit, missing or "what was missing did not come within a day")
    if audit.recheck_at is not None:
        return replace(audit, recheck_at=max(audit.recheck_at, now + _POOL_AGAIN))
    pause = max(SOONEST, now - ended_at)
    return replace(audit, recheck_at=min(now + pause, ended_at + LAST_LOOK_AFTER))


def settled(audit: Audit, why: str) -> Audit:
    """The audit as the last one of its run, with a note."""
    note = f"last look: {why}"
    return replace(audit, final=True, recheck_at=None, notes=(*audit.notes, note))


def settled_document(document: AuditDocument, why: str) -> AuditDocument:
    """A stored audit as the last one of its run: its figures as they are, and a note."""
    audit = document["audit"]
    if audit["settled"]:
        return document
    coverage = audit["coverage"]
    noted = {**coverage, "missing": [*coverage["missing"], f"last look: {why}"]}
    return {
        **document,
        "audit": {**audit, "settled": True, "due_at": None, "coverage": noted},  # type: ignore[typeddict-item]
    }


def amended(
    stored: AuditDocument | None, looked: AuditDocument, *, blind: bool = False
) -> AuditDocument:
    """What a second look records: the stored audit, unless a figure of it has changed.

    A figure changes by more than the rounding of kept series. The stored audit is settled where the
    look was the last one. `blind`: the look had no metrics to judge by, so that the stored figures
    stay.
    """
    if stored is None or not (blind or same_figures(stored, looked)):
        return looked
    head, new = stored["audit"], looked["audit"]
    if head["settled"] == new["settled"]:
        return {**stored, "audit": {**head, "due_at": new["due_at"]}}
    noted = [*head["coverage"]["missing"], *_last_looks(new["coverage"]["missing"])]
    coverage = {**head["coverage"], "missing": noted}
    changed = {"settled": new["settled"], "due_at": new["due_at"], "coverage": coverage}
    return {**stored, "audit": {**head, **changed}}  # type: ignore[typeddict-item]


def _last_looks(notes: list[str]) -> list[str]:
    return [note for note in notes if note.startswith("last look: ")]


def same_figures(one: AuditDocument, other: AuditDocument) -> bool:
    """Whether two audits of a run say the same in dollars, findings and what is not known."""
    usd = (
        (one["bill"]["total_usd"], other["bill"]["total_usd"]),
        (one["avoidable_usd"], other["avoidable_usd"]),
        (one["lost_usd"], other["lost_usd"]),
        (one["lost_up_to_usd"], other["lost_up_to_usd"]),
        (one["possible_usd"], other["possible_usd"]),
    )
    words = [
        (
            document["job"]["status"],
            document["job"]["family"],
            document["job"]["owner"],
            document["job"]["ended_at"],
            document["bill"]["complete"],
            document["bill"]["missing"],
            document["judged"],
            document["unauditable"],
        )
        for document in (one, other)
    ]
    return (
        words[0] == words[1]
        and all(_same_usd(*pair) for pair in usd)
        and _same_findings(one["findings"], other["findings"])
    )


def _same_findings(one: list[FindingDocument], other: list[FindingDocument]) -> bool:
    """In any order: that of two findings may hang on a cent."""
    first, second = (sorted(rows, key=_of_rule) for rows in (one, other))
    return len(first) == len(second) and all(
        _of_rule(a) == _of_rule(b) and _same_usd(a["saving_usd"], b["saving_usd"])
        for a, b in zip(first, second, strict=True)
    )


def _of_rule(finding: FindingDocument) -> tuple[str, ...]:
    words = ("id", "bucket", "severity", "confidence", "exempt", "said_of")
    return tuple(str(finding.get(word)) for word in words)


def _same_usd(one: Decimal | None, other: Decimal | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= max(_SAME_USD, _SAME_SHARE * max(abs(one), abs(other)))
