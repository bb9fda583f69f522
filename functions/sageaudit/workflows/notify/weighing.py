"""Weighs an audit against what was told before: whether it is worth a message, and as what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sageaudit.domain.alert.family_day import FamilyDay
from sageaudit.domain.alert.news import News, Said
from sageaudit.domain.alert.rule import Floors, Silent, Tell, decide
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Head, JobKey
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import UNREADABLE, BadHistory, Malformed
from sageaudit.output.text.notice import accepted_usd, news_of
from sageaudit.ports import History
from sageaudit.workflows.notify.family_dollars import (
    day_of,
    days_until,
    family_of,
    moment_of,
    others_usd,
    own_usd,
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What of an audit the decision needs. `own_usd`: what it adds to its family's 30 days."""

    key: JobKey
    news: News
    accepted_usd: Decimal
    own_usd: Decimal
    family: tuple[str, str, str]
    ended_at: datetime | None


def figures(key: JobKey, document: AuditDocument, now: datetime) -> Figures:
    """Raises one of UNREADABLE for a document of another form."""
    since, _ = days_until(now)
    ended_at = document["job"]["ended_at"]
    return Figures(
        key=key,
        news=news_of(document),
        accepted_usd=accepted_usd(document),
        own_usd=own_usd(document, since),
        family=family_of(document),
        ended_at=moment_of(ended_at) if ended_at else None,
    )


def weigh(
    audited: Figures,
    newest: Head | None,
    *,
    today: FamilyDay,
    last: Said | None,
    history: History,
    policy: Policy,
    now: datetime,
) -> Tell | Silent:
    """`newest`: the run's head. `last`: what was told of it. Raises Malformed or AwsError."""
    since, until = days_until(now)
    if last is None and audited.ended_at and day_of(audited.ended_at) < since:
        return Silent("it ended more than 30 days ago")

    def family_usd() -> Decimal:
        if audited.own_usd >= policy.floor_usd:
            return audited.own_usd
        with reading_stored("sums of the family"):
            return audited.own_usd + others_usd(history, newest, audited.family, since, until)

    return decide(
        audited.news,
        last=last,
        today=today.said(),
        accepted_usd=_accepted_since(audited, last, history),
        floors=Floors(
            policy.floor_usd,
            policy.idle_floor_usd,
            {
                "gpu_hours": policy.idle_floor_gpu_hours,
                "vcpu_hours": policy.idle_floor_vcpu_hours,
            },
        ),
        family_usd=family_usd,
    )


def _accepted_since(audited: Figures, told: Said | None, history: History) -> Decimal:
    """Dollars that a policy or tag accepts now and did not when the run was told.

    0 where that version cannot be read: what fell is then corrected.
    """
    if told is None or not audited.accepted_usd:
        return Decimal(0)
    try:
        before = history.audit(audited.key, told.version)
        return audited.accepted_usd - accepted_usd(before) if before else Decimal(0)
    except (BadHistory, Malformed, *UNREADABLE):
        return Decimal(0)


@contextmanager
def reading_stored(what: str) -> Iterator[None]:
    """Raises Malformed for what is stored and cannot be read: no later try would."""
    try:
        yield
    except (BadHistory, *UNREADABLE) as error:
        raise Malformed(what, f"cannot be read: {type(error).__name__} {error}") from error
