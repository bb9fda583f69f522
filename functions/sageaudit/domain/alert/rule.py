"""Whether a new audit is notified, and as what; pure. docs/messages.md has the rule as a table.

A family has a message once its 30 days reach the floor, and another one only for something new. A
run that had a message has another one only to correct it. Each reason is a function of `REASONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial

from sageaudit.domain.advice.advice import WAITING, Advice, State, Verb, known_sum
from sageaudit.domain.advice.comparison import Dearer
from sageaudit.domain.advice.episodes import CLOSED_AFTER
from sageaudit.domain.advice.month import (
    MONTH_DAYS,
    Month,
    floor_of,
    least_usd,
    month_of,
    severity_of,
)
from sageaudit.domain.alert.alert import CHANGED_USD, Alert, AlertFigures, AlertKind, matters
from sageaudit.domain.alert.subject import MessageSubject
from sageaudit.domain.audit.earlier import Worth
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Destination

TIMES = 10
"""At so many times as much a message is sent at once."""
GROWN = Decimal(4) / 3
"""A month that grew by a third has another message: our choice."""
AGAIN_AFTER = timedelta(days=30)
"""The same advice has no other message before, unless it is worse."""
_APART = timedelta(hours=24)
"""A family has at most one message of a worth in it, but for what is worse."""
_WAITS_FOR = timedelta(days=32)
"""A monthly pipeline's next run is within it; what is older may hold no longer."""
_UNKNOWN_FROM = Severity.MEDIUM
"""From this severity on, a finding whose dollars are not known is notified. Our choice."""
NOTHING_FOUND = "no finding worth a message"
_WAITS = "another step of its pipeline has just had a message: the next one speaks of it"
_TEN_TIMES = f"it is {TIMES} times as much or more"
_ANSWERS = {
    Verb.SNOOZE: "snooze",
    Verb.ACCEPT: 'answer "accepted"',
    Verb.EXEMPT: "exemption",
    Verb.REOPEN: "other answer",
}
_ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}


@dataclass(frozen=True, slots=True)
class AlertCase:
    """What a decision about a run rests on.

    `found`: the ids of what this run is advised; `advices`: all of its family, by id, what is worth
    most first. `dearer`: where it cost more than its like. `alerts`: those of its family, oldest
    first; `other_steps`: those of the other steps of its pipeline, and what waits.
    `read_from`: no older run of it was read.
    """

    figures: AlertFigures
    found: Sequence[str]
    advices: Mapping[str, Advice]
    dearer: Dearer | None
    alerts: Sequence[Alert]
    policy: Policy
    now: datetime
    read_from: datetime
    other_steps: Sequence[Alert] = ()

    @property
    def waiting(self) -> list[Alert]:
        """What the next message includes of other steps."""
        recent = (one for one in self.other_steps if self.now - one.at < _WAITS_FOR)
        return [one for one in recent if one.kind is AlertKind.WAITS]

    def too_near(self, decision: AlertDecision) -> bool:
        """Whether another step of its pipeline has just had a message, so that this one waits."""
        worth = decision.worth or Worth.COUNTED
        month = month_of(self.of(worth, waiting=True), worth, self.now)
        worse = decision.after is not None and month.projected >= TIMES * decision.after.amount
        if decision.kind is AlertKind.DEARER or worse or month.severity is Severity.HIGH:
            return False
        alerts = (one for one in self.other_steps if one.kind is not AlertKind.WAITS)
        return any(self.now - one.at < _APART for one in alerts)

    def of(self, worth: Worth, *, waiting: bool = False) -> list[Advice]:
        """The open advices of one worth; with those that wait."""
        states = {State.OPEN, *(WAITING if waiting else ())}
        return [one for one in self.advices.values() if one.worth is worth and one.state in states]

    def fresh(self, advices: Iterable[Advice]) -> list[Advice]:
        """Those that this run was advised."""
        return [one for one in advices if one.id in self.found]

    def last_of(self, advice: Advice) -> Alert | None:
        """The last alert that had this advice."""
        return next((one for one in reversed(self.alerts) if advice.id in one.advices), None)

    def is_recent(self, alert: Alert) -> bool:
        """Whether it is not older than `AGAIN_AFTER`."""
        return self.now - alert.at < AGAIN_AFTER


@dataclass(frozen=True, slots=True)
class AlertDecision:
    """Send a message of a kind; with `quiet`, none for this reason.

    `why` says what is new since the alert `after`. A correction `corrects` the run's last alert,
    which version `before` of the audit caused (None where it cannot be read). `month`: of the open
    advices of the family of this `worth`; `advice`: the dearest one that the run has, and `saves`
    what it alone comes to. `idle`: it is about idle hours, or corrects such a message. `waits`: the
    next message of its pipeline includes it; `waited`: what so waited for this one. `to`: where it
    goes; the `held` channels have had their most in this hour. `lines`: the channels that get the
    line about the job, also where it is `quiet`.
    """

    kind: AlertKind = AlertKind.FIRST
    why: str = ""
    after: Alert | None = None
    worth: Worth | None = Worth.COUNTED
    corrects: Alert | None = None
    before: MessageSubject | None = None
    dearer: Dearer | None = None
    idle: bool = False
    quiet: str = ""
    waits: bool = field(default=False, compare=False)
    month: Month | None = field(default=None, compare=False)
    saves: Month | None = field(default=None, compare=False)
    advice: Advice | None = field(default=None, compare=False)
    waited: Sequence[Alert] = field(default=(), compare=False)
    to: Destination = field(default=Destination(()), compare=False)
    held: tuple[str, ...] = field(default=(), compare=False)
    lines: tuple[str, ...] = field(default=(), compare=False)

    @property
    def month_severity(self) -> Severity | None:
        """Of the family's month, or of what a run cost more; None where neither is known."""
        if self.dearer:
            return severity_of(self.dearer.more_usd)
        if self.month and self.month.projected and not self.corrects:
            return self.month.severity
        return None


FIRST = AlertDecision()
"""A family's first message."""
IDLE_WORTHS = frozenset({Worth.IDLE, Worth.PREPAID, Worth.UNPRICED})


def no_alert(reason: str) -> AlertDecision:
    """No message, for this reason."""
    return AlertDecision(quiet=reason)


Reason = Callable[[AlertCase], AlertDecision | None]
"""Whether a run without an alert is notified."""


def decide(case: AlertCase, last: Alert | None) -> AlertDecision:
    """What to do about an audit. `last`: the last alert of its run."""
    if last is not None:
        return _correction(case.figures, last, case.policy)
    decision = next(filter(None, (reason(case) for reason in REASONS)), None)
    if decision is None:
        return no_alert(_why_quiet(case))
    return replace(decision, quiet=_WAITS, waits=True) if case.too_near(decision) else decision


def dearer(case: AlertCase) -> AlertDecision | None:
    """A run that cost far more than its like: again after 30 days, at once at ten times."""
    found, policy = case.dearer, case.policy
    if found is None:
        return None
    least_usd = found.expected_usd * policy.dearer_percent / 100
    if found.more_usd < max(least_usd, policy.dearer_floor_usd):
        return None
    before = next((one for one in reversed(case.alerts) if one.kind is AlertKind.DEARER), None)
    if before and case.is_recent(before) and found.more_usd < TIMES * before.amount:
        return None
    return AlertDecision(AlertKind.DEARER, after=None, worth=None, dearer=found)


def alerts_by(case: AlertCase, decision: AlertDecision, sent: Alert) -> list[Alert]:
    """What a message counts as: none for a correction, one for all else that was due with it."""
    found: list[Alert] = []
    if decision.kind is AlertKind.CORRECTION:
        return found
    if decision.dearer is not None:
        found.append(replace(sent, kind=AlertKind.DEARER, amount=decision.dearer.more_usd))
    also = filter(None, (_new(worth, case) for worth in Worth))
    found += [alert_of(case, one, sent) for one in also]
    found += [replace(one, kind=AlertKind.FIRST, at=sent.at) for one in decision.waited]
    return found


def alert_of(case: AlertCase, decision: AlertDecision, sent: Alert) -> Alert:
    """The alert of what the decision is about."""
    worth = decision.worth or Worth.COUNTED
    advices = case.of(worth, waiting=decision.kind is AlertKind.WORSE)
    month = month_of(advices, worth, case.now)
    return replace(
        sent,
        kind=AlertKind.WAITS if decision.waits else decision.kind,
        worth=worth,
        advices=tuple(one.id for one in advices if one.hits),
        amount=month.projected,
        of_one_occasion=month.of_one_occasion,
    )


def _new(worth: Worth, case: AlertCase) -> AlertDecision | None:
    """What is new since the family's last message of this worth, by its open advices."""
    before = next((one for one in reversed(case.alerts) if one.worth is worth), None)
    first = AlertDecision(worth=worth, idle=worth in IDLE_WORTHS)
    given = case.fresh(case.of(worth, waiting=True))
    if before and given and not all(_came_again(case, one) for one in given):
        month = month_of(case.of(worth, waiting=True), worth, case.now)
        if why := _worse(month, before, apart=case.now - before.at >= _APART):
            return replace(first, kind=AlertKind.WORSE, why=why, after=before)
    fresh = case.fresh(case.of(worth))
    month = month_of(case.of(worth), worth, case.now)
    enough = month.total >= floor_of(worth, fresh, case.policy)
    if not fresh or not (enough or any(map(_unknown, fresh))):
        return None
    if before is None or all(_seen_again(case, one) for one in fresh):
        return first
    if case.now - before.at < _APART:
        return None
    found = (_new_of(case, one, before, month) for one in fresh)
    new = next(filter(None, found), None)
    return new and replace(new, worth=worth, idle=first.idle)


def _new_of(case: AlertCase, advice: Advice, before: Alert, month: Month) -> AlertDecision | None:
    """What is new of one advice that the run was given."""
    same = case.last_of(advice)
    lines = {one.id for one in case.advices.values() if one.line == advice.line}
    of_line = next((one for one in reversed(case.alerts) if lines & {*one.advices}), None)
    if same is None:
        floor = floor_of(advice.worth, [advice], case.policy)
        if of_line is None and advice.of_days(case.now, MONTH_DAYS) < floor:
            return None
        another = _another(case, advice, of_line)
        return AlertDecision(AlertKind.CHANGED, another, of_line or before)
    if case.is_recent(same):
        return None
    if _came_again(case, advice):
        return AlertDecision(AlertKind.BACK, _came_back(advice), same)
    decision = advice.decision
    if decision and decision.over_at and same.at < decision.over_at <= case.now:
        over = f"{decision.by}'s {_ANSWERS[decision.verb]} has ended"
        return AlertDecision(AlertKind.AWAKE, over, same)
    if of_line is not None and of_line is not same:
        return AlertDecision(AlertKind.CHANGED, _another(case, advice, of_line), of_line)
    if month.projected >= GROWN * before.amount:
        grew = "the family's month grew by a third or more"
        return AlertDecision(AlertKind.GREW, grew, before)
    return None


def _came_again(case: AlertCase, advice: Advice) -> bool:
    """Whether it was followed and came back, which is new in itself; not just alerted."""
    last = case.last_of(advice)
    if last is None or case.is_recent(last):
        return False
    return advice.times > 1 and advice.since > last.at


def _seen_again(case: AlertCase, advice: Advice) -> bool:
    """Whether it had an alert, and has come anew after it was not seen for long."""
    last, unseen = case.last_of(advice), advice.since - case.read_from >= CLOSED_AFTER
    anew = advice.times == 1 and (advice.since > advice.first_at or unseen)
    return last is not None and anew and advice.since > last.at


def _came_back(advice: Advice) -> str:
    nth = _ORDINALS.get(advice.times, f"{advice.times}th")
    wasted = known_sum(advice.amounts)
    so_far = f", ${wasted:,.2f} wasted so far" if wasted else ""
    return f"what was fixed came back: {nth} time{so_far}"


def _another(case: AlertCase, advice: Advice, of_line: Alert | None) -> str:
    """What was advised in its place, where the same parameter had an alert before."""
    known = map(case.advices.get, of_line.advices if of_line else ())
    before = next((one.new for one in known if one and one.line == advice.line), None)
    return f"before, {before} was advised" if before else "this advice is new"


def _unknown(advice: Advice) -> bool:
    """Dollars that are not known are not none: a severe finding is notified without."""
    return advice.amount is None and advice.severity.rank >= _UNKNOWN_FROM.rank


def _worse(month: Month, before: Alert, *, apart: bool) -> str:
    """What is worse than in the last alert; "" for nothing. A step of severity alone may be a few
    cents, and not yet `apart` it may be the rest of one occasion.
    """
    was = before.amount
    if was and month.projected >= TIMES * was:
        return _TEN_TIMES
    step = month.severity.rank > severity_of(was).rank and month.severity is not Severity.INFO
    more = step and apart and month.projected >= GROWN * was
    return f"it comes to ${least_usd(month.severity):,.0f} a month or more now" if more else ""


def _why_quiet(case: AlertCase) -> str:
    """The first reason that holds of what the run was advised."""
    found = [case.advices[name] for name in case.found if name in case.advices]
    silent = next((one for one in found if one.state is not State.OPEN), None)
    opened = [one for one in found if one.state is State.OPEN]
    if not found:
        return NOTHING_FOUND
    if silent and not opened:
        return f"the advice {silent.id} is {silent.state.value}"
    month = month_of(case.of(opened[0].worth), opened[0].worth, case.now)
    floor = floor_of(opened[0].worth, opened, case.policy)
    if month.total < floor:
        return f"the family's {month.total:,.2f} of 30 days are under the floor of {floor:,.2f}"
    return "the family was told of this, and nothing is new"


def _correction(figures: AlertFigures, last: Alert, policy: Policy) -> AlertDecision:
    before = last.figures
    first_dollars = figures.of_money and not before.of_money
    too_few = (
        first_dollars and figures.at_stake_usd < policy.floor_usd and not severe_unknown(figures)
    )
    if too_few or not matters(figures, before):
        reason = f"version {last.version} was notified, and what changed since does not matter"
        return no_alert(reason)
    fell_usd = (before.usd or Decimal(0)) - (figures.usd or Decimal(0))
    accepted_since_usd = figures.accepted_usd - before.accepted_usd
    known = before.usd is not None and figures.usd is not None
    if known and Decimal(0) < fell_usd <= accepted_since_usd + CHANGED_USD:
        return no_alert("the last figure stands; a policy or tag accepts it now")
    of_money = before.of_money or figures.of_money
    return AlertDecision(AlertKind.CORRECTION, worth=None, corrects=last, idle=not of_money)


def severe_unknown(figures: AlertFigures) -> bool:
    """Whether a severe finding has dollars that are not known."""
    severe = figures.severity.rank >= _UNKNOWN_FROM.rank
    return figures.usd is None and not figures.perhaps_usd and severe


REASONS: tuple[Reason, ...] = (dearer, *(partial(_new, worth) for worth in Worth))
"""Every reason for a message about a run that had none; the first one that holds is what it says.
A new reason is a function here."""
