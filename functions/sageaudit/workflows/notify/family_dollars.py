"""What an audit and the others of its family cost for nothing over the last 30 days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import NOT_NAMED, Head
from sageaudit.domain.audit.sums import Scope, sums_of, total
from sageaudit.ports import History

LOOK_BACK = timedelta(days=30)


def days_until(now: datetime) -> tuple[date, date]:
    """The first and last day (UTC) of a family's dollars: 30 days ago and today, both whole."""
    return day_of(now - LOOK_BACK), day_of(now)


def own_usd(document: AuditDocument, since: date) -> Decimal:
    """What this audit adds to its family's USD; of a roll-up, whose children are counted, what its
    own findings do.

    What may be lost counts at its upper end: its owner can still resume the run.
    """
    ended_at = document["job"]["ended_at"]
    if ended_at and day_of(moment_of(ended_at)) < since:
        return Decimal(0)
    if document["rollup"]:
        own = sums_of(document)
        return own.avoidable_usd + own.lost_up_to_usd
    return (document["avoidable_usd"] or Decimal(0)) + (document["lost_up_to_usd"] or Decimal(0))


def others_usd(
    history: History, newest: Head | None, family: tuple[str, str, str], since: date, until: date
) -> Decimal:
    """Avoidable and certainly lost USD of the family's other audits.

    The sums have this run in its newest version, which may be later than the one in hand: exactly
    that is taken out.
    """
    if newest is not None:
        family = newest.account, newest.region, newest.family
    account, region, name = family
    rows = history.sums(Scope.FAMILY, since, until, account=account, region=region, name=name)
    sums = total(rows)
    all_usd = sums.waste_usd
    if newest is None or newest.sums is None or not since <= day_of(newest.ended_at) <= until:
        return all_usd
    return all_usd - newest.sums.avoidable_usd - newest.sums.lost_usd


def family_of(document: AuditDocument) -> tuple[str, str, str]:
    """Account, region and family name."""
    job = document["job"]
    return job["account"] or NOT_NAMED, job["region"] or NOT_NAMED, job["family"]


def day_of(moment: datetime) -> date:
    """Its day in UTC."""
    return moment.astimezone(UTC).date()


def moment_of(text: str) -> datetime:
    """A time of a document; one without a zone is taken as UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
