"""Whether a new audit is notified, and as what; pure. docs/messages.md has the rule as a table.

A family has one message a day, unless a later one is worse. A run that had a message has another
one only to correct it. Each reason for a message is a function of `REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from sageaudit.domain.alert.alert import Alert, AlertFigures, IdleHours
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy

TIMES = 10
"""A further message of the day needs so many times as much as those before."""
CHANGED_USD = Decimal(1)
CHANGED_HOURS = Decimal(1)
CHANGED_SHARE = Decimal("0.1")
"""A figure is corrected when it changed by $1 (or an hour) and by a tenth. Metrics that come late
move figures by a few percent, and nobody decides otherwise for that; a tenth is what a reader may
have acted on. Our choice."""
_UNKNOWN_FROM = Severity.MEDIUM
"""From this severity on, a finding whose dollars are not known is notified. Our choice."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Send a message. `idle`: it is about idle hours.

    A further message of the family's day is the `nth`, `after` an earlier one, and `why` says what
    is worse. A correction `corrects` the run's last alert, which version `before` of the audit
    caused (None where it cannot be read). `day` is the family's day, where it is over.
    """

    idle: bool = False
    nth: int = 1
    why: str = ""
    after: Alert | None = None
    corrects: Alert | None = None
    before: AuditDocument | None = None
    day: date | None = None

    @property
    def kind(self) -> str:
        """`first`, `further` or `correction`: subscriptions can filter by it."""
        if self.corrects:
            return "correction"
        return "further" if self.after else "first"


FIRST = Notify()
"""The first message of a family's day."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Send no message, for this reason."""

    reason: str


Reason = Callable[[AlertFigures, Sequence[Alert], Policy, Callable[[], Decimal]], Notify | None]
"""Whether a run without an alert is notified, by its figures and the alerts of its family today.

The last argument gives the avoidable and lost USD of the family over 30 days, with this run's. It
reads the history: call it only where the answer needs it.
"""


def decide(
    figures: AlertFigures,
    last: Alert | None,
    today: Sequence[Alert],
    policy: Policy,
    family_usd: Callable[[], Decimal],
) -> Notify | Quiet:
    """What to do about an audit. `last`: of the run; `today`: of its family."""
    if last is not None:
        return _correction(figures, last, policy)
    today = [alert for alert in today if alert.figures.stands]
    for reason in REASONS:
        if notify := reason(figures, today, policy, family_usd):
            return notify
    if today:
        return Quiet("the family already had a message today, and this is no worse")
    if not figures.of_money:
        return Quiet("no finding worth a message")
    sums = f"family's avoidable and lost cost over 30 days, ${family_usd():,.2f},"
    return Quiet(f"{sums} is under the floor of ${policy.floor_usd:,.2f}")


def dollars(
    figures: AlertFigures, today: Sequence[Alert], policy: Policy, family_usd: Callable[[], Decimal]
) -> Notify | None:
    """Money at stake: first the family's over 30 days, then a run that is worse by itself."""
    if not figures.of_money:
        return None
    if not today:
        enough = _unknown(figures) or family_usd() >= policy.floor_usd
        return Notify() if enough else None
    why = _worse(figures, today, policy.floor_usd)
    return Notify(nth=len(today) + 1, why=why, after=most(today)) if why else None


def idle_hours(
    figures: AlertFigures, today: Sequence[Alert], policy: Policy, family_usd: Callable[[], Decimal]
) -> Notify | None:
    """Hours paid for and not used: one message a day, and another at ten times as many."""
    del family_usd
    idle = figures.idle
    if idle is None or not reaches_idle_floor(idle, policy):
        return None
    if not today:
        return Notify(idle=True)
    before = [(alert.figures.idle, alert) for alert in today if alert.figures.idle]
    nth = len(today) + 1
    if not before:
        return Notify(idle=True, nth=nth, why="it was not about idle hours", after=most(today))
    if all(_ten_times_idle(idle, earlier, policy) for earlier, _ in before):
        after = max(before, key=lambda pair: pair[0].hours)[1]
        return Notify(idle=True, nth=nth, why=_TEN_TIMES, after=after)
    return None


REASONS: tuple[Reason, ...] = (dollars, idle_hours)
"""Every reason for a message about a run that had none; the first one that holds is what it says.
A new reason is a function here."""
_TEN_TIMES = f"this run is {TIMES} times as much or more"


def reaches_idle_floor(idle: IdleHours, policy: Policy) -> bool:
    """By the list value where there is one, else by hours."""
    if idle.usd is not None:
        return idle.usd >= policy.idle_floor_usd
    return idle.hours >= _idle_floor(idle, policy)


def most(alerts: Sequence[Alert]) -> Alert:
    """The alert with the most dollars at stake, the most severe of these."""
    return max(alerts, key=lambda one: (one.figures.at_stake_usd, one.figures.severity.rank))


def _idle_floor(idle: IdleHours, policy: Policy) -> Decimal:
    of_gpus = idle.unit == "gpu_hours"
    return policy.idle_floor_gpu_hours if of_gpus else policy.idle_floor_vcpu_hours


def _unknown(figures: AlertFigures) -> bool:
    """Dollars that are not known are not none: a severe finding is notified without."""
    severe = figures.severity.rank >= _UNKNOWN_FROM.rank
    return figures.usd is None and not figures.perhaps_usd and severe


def _worse(figures: AlertFigures, today: Sequence[Alert], floor_usd: Decimal) -> str:
    """What is worse than all of today; "" for nothing.

    Each further message has to reach the floor by itself: its family did that already. A message
    about idle hours silences no severity above low. Dollars that had no message, or are not known,
    count as the floor.
    """
    if figures.at_stake_usd < floor_usd and not _unknown(figures):
        return ""
    ranks = [alert.figures.severity.rank for alert in today]
    if figures.severity.rank > max(*ranks, Severity.LOW.rank):
        return "this run is more severe"
    certain = max(alert.figures.usd or floor_usd for alert in today)
    at_stake = max(alert.figures.at_stake_usd or floor_usd for alert in today)
    more = (figures.usd or 0) >= TIMES * certain or figures.at_stake_usd >= TIMES * at_stake
    return _TEN_TIMES if more else ""


def _ten_times_idle(idle: IdleHours, before: IdleHours, policy: Policy) -> bool:
    """By list value where both have one, else by hours; against the floor where units differ."""
    if idle.usd is not None and before.usd is not None:
        return idle.usd >= TIMES * before.usd
    same = idle.unit == before.unit
    return idle.hours >= TIMES * (before.hours if same else _idle_floor(idle, policy))


def _correction(figures: AlertFigures, last: Alert, policy: Policy) -> Notify | Quiet:
    before = last.figures
    first_dollars = figures.of_money and not before.of_money
    too_few = first_dollars and figures.at_stake_usd < policy.floor_usd and not _unknown(figures)
    if too_few or not matters(figures, before):
        reason = f"version {last.version} was notified, and what changed since does not matter"
        return Quiet(reason)
    fell_usd = (before.usd or Decimal(0)) - (figures.usd or Decimal(0))
    accepted_since_usd = figures.accepted_usd - before.accepted_usd
    known = before.usd is not None and figures.usd is not None
    if known and Decimal(0) < fell_usd <= accepted_since_usd + CHANGED_USD:
        return Quiet("the last figure stands; a policy or tag accepts it now")
    return Notify(idle=not (before.of_money or figures.of_money), corrects=last)


def matters(figures: AlertFigures, before: AlertFigures) -> bool:
    """Whether a figure of the last alert changed enough to be corrected."""
    if not before.of_money and not figures.of_money:
        idle, last = figures.idle, before.idle
        if idle is None or last is None or idle.unit != last.unit:
            return last is not None
        return _changed(idle.hours, last.hours, CHANGED_HOURS)
    if (figures.usd is None) != (before.usd is None):
        return True
    if figures.of_money and before.of_money and figures.severity.rank > before.severity.rank:
        return True
    certain = _changed(figures.usd or Decimal(0), before.usd or Decimal(0), CHANGED_USD)
    return certain or _changed(figures.perhaps_usd, before.perhaps_usd, CHANGED_USD)


def _changed(now: Decimal, before: Decimal, least: Decimal) -> bool:
    return abs(now - before) >= max(least, CHANGED_SHARE * before)
