"""Whether a new audit is notified, and as what; pure. docs/messages.md has the rule as a table.

A family has a message once its 30 days reach the floor, and another one only for something new. A
run that had a message has another one only to correct it. Each reason is a function of `REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from sageaudit.domain.alert.advice import Advice
from sageaudit.domain.alert.alert import Alert, AlertFigures, IdleHours, Kind, Told
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy

TIMES = 10
"""At so many times as much a message is sent at once."""
GROWN = Decimal(4) / 3
"""A family's month that grew by a third is told again: our choice."""
AGAIN_AFTER = timedelta(days=30)
"""The same advice is not told again before, unless it is worse."""
CHANGED_USD = Decimal(1)
CHANGED_HOURS = Decimal(1)
CHANGED_SHARE = Decimal("0.1")
"""A figure is corrected when it changed by $1 (or an hour) and by a tenth. Metrics that come late
move figures by a few percent, and nobody decides otherwise for that; a tenth is what a reader may
have acted on. Our choice."""
_UNKNOWN_FROM = Severity.MEDIUM
"""From this severity on, a finding whose dollars are not known is notified. Our choice."""
_APART = frozenset({Kind.IDLE, Kind.TRIAL, Kind.REGRESSION})
"""Messages that are not about avoidable or lost dollars: they keep none of these back."""


@dataclass(frozen=True, slots=True)
class Month:
    """A family's last 30 days, the run in hand included: USD that are avoidable or lost, those
    worth a trial, and how many runs.
    """

    usd: Decimal
    possible_usd: Decimal
    runs: int


@dataclass(frozen=True, slots=True)
class Regression:
    """What a run was expected to cost by its like, and what it cost, in USD."""

    expected_usd: Decimal
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class Case:
    """What a decision about a run rests on.

    `advised`: the ids of what its counted findings advise, the dearest first; `trials`: of those
    that are worth a trial. `told`: the messages about its family that stand. `advices`, which reads
    the family's runs, and `month`, which reads its sums: call them only where the answer needs it.
    """

    figures: AlertFigures
    advised: Sequence[str]
    trials: Sequence[str]
    regression: Regression | None
    told: Sequence[Told]
    policy: Policy
    now: datetime
    month: Callable[[], Month]
    advices: Callable[[], dict[str, Advice]]

    @property
    def of_money(self) -> list[Told]:
        """The messages about avoidable or lost dollars, oldest first."""
        return [one for one in self.told if one.kind not in _APART]

    def last_of(self, advice: str) -> Told | None:
        """The last message that had this advice."""
        return next((one for one in reversed(self.told) if advice in one.advices), None)

    def recent(self, told: Sequence[Told]) -> list[Told]:
        """Those that are not older than `AGAIN_AFTER`."""
        return [one for one in told if self.now - one.alert.at < AGAIN_AFTER]


@dataclass(frozen=True, slots=True)
class Notify:
    """Send a message of a kind.

    `why` says what is new since the message `after`. A correction `corrects` the run's last alert,
    which version `before` of the audit caused (None where it cannot be read). `month` is of the
    family; `advice` the dearest one of the run. `idle`: it is about idle hours, or corrects such a
    message.
    """

    kind: Kind = Kind.FIRST
    why: str = ""
    after: Told | None = None
    corrects: Alert | None = None
    before: AuditDocument | None = None
    month: Month | None = field(default=None, compare=False)
    advice: Advice | None = field(default=None, compare=False)
    regression: Regression | None = None
    idle: bool = False


FIRST = Notify()
"""A family's first message."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """Send no message, for this reason."""

    reason: str


Reason = Callable[[Case], Notify | None]
"""Whether a run without an alert is notified."""


def decide(case: Case, last: Alert | None) -> Notify | Quiet:
    """What to do about an audit. `last`: the last alert of its run."""
    if last is not None:
        return _correction(case.figures, last, case.policy)
    for reason in REASONS:
        if notify := reason(case):
            return notify
    if not case.figures.of_money:
        return Quiet("no finding worth a message")
    if _unknown(case.figures) or case.month().usd >= case.policy.floor_usd:
        return Quiet("the family was told of this, and nothing is new")
    sums = f"family's avoidable and lost cost over 30 days, ${case.month().usd:,.2f},"
    return Quiet(f"{sums} is under the floor of ${case.policy.floor_usd:,.2f}")


def dollars(case: Case) -> Notify | None:
    """Money at stake: first the family's over 30 days, then what is new."""
    if not case.figures.of_money or not case.advised:
        return None
    earlier, unknown = case.of_money, _unknown(case.figures)
    if why := _worse(case, case.recent(earlier)):
        return Notify(Kind.WORSE, why, _most(case.recent(earlier)))
    if not unknown and case.month().usd < case.policy.floor_usd:
        return None
    if not earlier:
        return Notify()
    top = case.advised[0]
    before = case.last_of(top)
    if before is None:
        return Notify(Kind.CHANGED, "the advice is another one", earlier[-1])
    known = case.advices().get(top)
    if known and known.times > 1 and known.since > before.alert.at:
        return Notify(Kind.BACK, _came_back(known), before)
    if known and known.woke_at and before.alert.at < known.woke_at <= case.now:
        return Notify(Kind.AWAKE, "its snooze has ended", before)
    grown = case.month().usd >= GROWN * before.month_usd
    if grown and not case.recent([before]):
        return Notify(Kind.GREW, "the family's 30 days grew by a third or more", before)
    return None


def regression(case: Case) -> Notify | None:
    """A run that cost far more than its like."""
    found, policy = case.regression, case.policy
    if found is None:
        return None
    more_usd = found.cost_usd - found.expected_usd
    least_usd = found.expected_usd * policy.regression_percent / 100
    if more_usd < max(least_usd, policy.regression_floor_usd):
        return None
    return Notify(Kind.REGRESSION, regression=found)


def idle_hours(case: Case) -> Notify | None:
    """Hours paid for and not used: again after 30 days if they grew, at once at ten times."""
    idle, policy = case.figures.idle, case.policy
    if idle is None or not reaches_idle_floor(idle, policy):
        return None
    before = [one for one in case.told if one.kind is Kind.IDLE]
    if not before:
        return Notify(Kind.IDLE, idle=True)
    last = before[-1]
    recent = case.recent(before)
    times = Decimal(TIMES) if recent else GROWN
    earlier = [one.alert.figures.idle for one in recent or [last]]
    if all(one is None or _times_idle(idle, one, times, policy) for one in earlier):
        why = _TEN_TIMES if recent else "the idle hours grew by a third or more"
        return Notify(Kind.IDLE, why, last, idle=True)
    return None


def trial(case: Case) -> Notify | None:
    """What is worth a trial, where nothing is avoidable or lost for sure."""
    if case.figures.of_money or not case.trials:
        return None
    if case.month().possible_usd < case.policy.trial_floor_usd:
        return None
    before = case.last_of(case.trials[0])
    if before is None:
        return Notify(Kind.TRIAL)
    grown = case.month().possible_usd >= GROWN * before.month_usd
    if case.recent([before]) or not grown:
        return None
    return Notify(Kind.TRIAL, "the family's 30 days grew by a third or more", before)


REASONS: tuple[Reason, ...] = (dollars, regression, idle_hours, trial)
"""Every reason for a message about a run that had none; the first one that holds is what it says.
A new reason is a function here."""
_TEN_TIMES = f"this run is {TIMES} times as much or more"
_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


def _came_back(advice: Advice) -> str:
    nth = _ORDINALS.get(advice.times, f"{advice.times}th")
    return f"what was fixed came back: {nth} time, ${advice.total_usd:,.2f} so far"


def reaches_idle_floor(idle: IdleHours, policy: Policy) -> bool:
    """By the list value where there is one, else by hours."""
    if idle.usd is not None:
        return idle.usd >= policy.idle_floor_usd
    return idle.hours >= _idle_floor(idle, policy)


def _most(told: Sequence[Told]) -> Told:
    """The message with the most dollars at stake, the most severe of these."""

    def weight(one: Told) -> tuple[Decimal, int]:
        return one.alert.figures.at_stake_usd, one.alert.figures.severity.rank

    return max(told, key=weight)


def _idle_floor(idle: IdleHours, policy: Policy) -> Decimal:
    of_gpus = idle.unit == "gpu_hours"
    return policy.idle_floor_gpu_hours if of_gpus else policy.idle_floor_vcpu_hours


def _unknown(figures: AlertFigures) -> bool:
    """Dollars that are not known are not none: a severe finding is notified without."""
    severe = figures.severity.rank >= _UNKNOWN_FROM.rank
    return figures.usd is None and not figures.perhaps_usd and severe


def _worse(case: Case, recent: Sequence[Told]) -> str:
    """What is worse than all of the last 30 days; "" for nothing, and where there was nothing.

    The run has to reach the floor by itself: its family did that already. Dollars that are not
    known count as the floor.
    """
    figures, floor_usd = case.figures, case.policy.floor_usd
    if not recent or (figures.at_stake_usd < floor_usd and not _unknown(figures)):
        return ""
    before = [one.alert.figures for one in recent]
    if figures.severity.rank > max(one.severity.rank for one in before):
        return "this run is more severe"
    certain = max(one.usd or floor_usd for one in before)
    at_stake = max(one.at_stake_usd or floor_usd for one in before)
    more = (figures.usd or 0) >= TIMES * certain or figures.at_stake_usd >= TIMES * at_stake
    return _TEN_TIMES if more else ""


def _times_idle(idle: IdleHours, before: IdleHours, times: Decimal, policy: Policy) -> bool:
    """By list value where both have one, else by hours; against the floor where units differ."""
    if idle.usd is not None and before.usd is not None:
        return idle.usd >= times * before.usd
    same = idle.unit == before.unit
    return idle.hours >= times * (before.hours if same else _idle_floor(idle, policy))


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
    of_money = before.of_money or figures.of_money
    return Notify(Kind.CORRECTION, corrects=last, idle=not of_money)


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
