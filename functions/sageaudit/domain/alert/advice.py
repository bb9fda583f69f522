"""What a family was advised, and what came of it: pure, and derived from its runs each time.

No state of an advice is stored. It follows from the family's runs, each with what it was advised
and the values that it ran with (`RunFacts`), and from what people decided. So runs that come late,
come twice or are judged again always give the same answer. docs/messages.md has the states as a
table, docs/decisions/0025 the reasons.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.alert.comparison import COMPARED, Comparison, Outcome, compared
from sageaudit.domain.audit.earlier import Advised, own_value
from sageaudit.domain.audit.record import Head
from sageaudit.domain.bill.finding import Severity

CLOSED_AFTER = timedelta(days=60)
"""Without a run for so long, a family has probably ended: our choice."""
MONTH = timedelta(days=30)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ID_LETTERS = 8
_ZERO = Decimal(0)


class State(enum.StrEnum):
    """What became of an advice."""

    OPEN = "open"
    ACCEPTED = "accepted"
    SNOOZED = "snoozed"
    EXEMPT = "exempt"
    TAKEN = "taken"
    MEASURED = "measured"
    NOT_COMPARABLE = "not comparable"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"


SILENT = frozenset({State.ACCEPTED, State.SNOOZED, State.EXEMPT, State.WITHDRAWN})
"""In these states no message speaks of an advice."""
_OUTCOMES = {
    Outcome.TOO_FEW: State.TAKEN,
    Outcome.CHEAPER: State.MEASURED,
    Outcome.CHANGED_TOO: State.NOT_COMPARABLE,
    Outcome.WORSE: State.WITHDRAWN,
}


class Verb(enum.StrEnum):
    """What people decide about an advice."""

    ACCEPT = "accept"
    SNOOZE = "snooze"
    EXEMPT = "exempt"
    REOPEN = "reopen"


_DECIDED = {
    Verb.ACCEPT: State.ACCEPTED,
    Verb.SNOOZE: State.SNOOZED,
    Verb.EXEMPT: State.EXEMPT,
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decided about an advice, by its id; the newest one counts.

    `until`: its last day, in UTC; None without an end.
    """

    advice: str
    verb: Verb
    by: str
    at: datetime
    until: date | None = None
    reason: str | None = None

    def holds(self, now: datetime) -> bool:
        """Whether its last day is not over."""
        return self.until is None or now.astimezone(UTC).date() <= self.until


@dataclass(frozen=True, slots=True)
class Advice:
    """One advice to a family. Dollars are exact USD; None is unknown.

    `usd`: of the newest run that was advised so; `month_usd` and `total_usd`: of those of 30 days,
    and of all that were read, `runs` of them. `counted`: avoidable or lost, else worth a trial.
    `times`: how often it came, as it may come back after it was followed or was no longer found;
    `since`: when it came last. `decision`: the one that counts. `comparison`: of the runs before
    and after it was taken.
    """

    id: str
    account: str
    region: str
    family: str
    owner: str | None
    rule: str
    parameter: str
    old: str | None
    new: str
    state: State
    severity: Severity
    counted: bool
    usd: Decimal | None
    month_usd: Decimal
    total_usd: Decimal
    runs: int
    times: int
    first_at: datetime
    since: datetime
    last_at: datetime
    decision: Decision | None = None
    policy_exempts: str | None = None
    comparison: Comparison | None = None

    @property
    def woke_at(self) -> datetime | None:
        """When its snooze ended, where it has; None without one."""
        known = self.decision
        if known is None or known.verb is not Verb.SNOOZE or known.until is None:
            return None
        end = datetime(known.until.year, known.until.month, known.until.day, tzinfo=UTC)
        return None if self.state is State.SNOOZED else end + timedelta(days=1)


def advice_id(account: str, region: str, family: str, advised: Advised) -> str:
    """Eight letters, the same for each run that is advised so."""
    what = [account, region, family, advised.rule, advised.parameter, advised.new]
    number = int.from_bytes(hashlib.sha256(json.dumps(what).encode()).digest()[:8], "big")
    letters = ""
    for _ in range(_ID_LETTERS):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return letters


def advices_of(heads: Iterable[Head], decisions: Iterable[Decision], now: datetime) -> list[Advice]:
    """The advices of these runs, of one family or of many: what is counted first, the most dollars
    of 30 days first. Runs and decisions may come in any order, and more than once.
    """
    families: dict[tuple[str, str, str], dict[object, Head]] = defaultdict(dict)
    for head in heads:
        if head.facts is not None and not head.rollup:
            families[head.account, head.region, head.family][head.key] = head
    newest = newest_decisions(decisions)
    found = [
        advice
        for runs in families.values()
        for advice in _of_family(sorted(runs.values(), key=_place), newest, now)
    ]
    return sorted(found, key=lambda one: (not one.counted, -one.month_usd, one.id))


def newest_decisions(decisions: Iterable[Decision]) -> dict[str, Decision]:
    """The decision that counts, by advice."""
    ordered = sorted(decisions, key=lambda one: (one.at, one.verb))
    return {decision.advice: decision for decision in ordered}


def _place(head: Head) -> tuple[datetime, str, datetime]:
    return head.ended_at, head.key.arn, head.key.created_at


@dataclass(slots=True)
class _Episode:
    """The runs of an advice from when it came to when it comes back."""

    runs: list[Head] = field(default_factory=list)
    carriers: list[Head] = field(default_factory=list)
    others: int = 0
    """Completed runs in a row that neither were advised so nor follow it."""

    @property
    def over(self) -> bool:
        """Whether it was followed, or is no longer found."""
        return len(self.carriers) >= COMPARED or self.others >= COMPARED


def _of_family(
    runs: Sequence[Head], decisions: Mapping[str, Decision], now: datetime
) -> Iterator[Advice]:
    known: dict[str, Advised] = {}
    for run in runs:
        for one in _advised(run).values():
            known[advice_id(run.account, run.region, run.family, one)] = one
    for name, one in known.items():
        yield _advice(name, one, runs, decisions.get(name), now)


def _advised(run: Head) -> dict[tuple[str, str, str], Advised]:
    advised = run.facts.advised if run.facts else None
    return {one.key: one for one in advised or ()}


def _advice(
    name: str, one: Advised, runs: Sequence[Head], decision: Decision | None, now: datetime
) -> Advice:
    """One advice, by the runs of its family, oldest first. `one`: as the newest run was advised."""
    told = [run for run in runs if one.key in _advised(run)]
    episodes = list(_episodes(runs, one))
    last, newest = episodes[-1], told[-1]
    dollars = [(run.ended_at, _advised(run)[one.key].usd or _ZERO) for run in told]
    advice = Advice(
        id=name,
        account=newest.account,
        region=newest.region,
        family=newest.family,
        owner=runs[-1].owner,
        rule=one.rule,
        parameter=one.parameter,
        old=own_value(newest.facts, one.parameter),
        new=one.new,
        state=State.OPEN,
        severity=one.severity,
        counted=one.counted,
        usd=one.usd,
        month_usd=sum((usd for at, usd in dollars if at > now - MONTH), _ZERO),
        total_usd=sum((usd for _, usd in dollars), _ZERO),
        runs=len(told),
        times=len(episodes),
        first_at=told[0].ended_at,
        since=last.runs[0].ended_at,
        last_at=newest.ended_at,
        decision=decision,
        policy_exempts=one.exempt,
        comparison=_comparison(last, one, runs),
    )
    return replace(advice, state=_state(advice, last, runs[-1].ended_at, now))


def _episodes(runs: Sequence[Head], one: Advised) -> Iterator[_Episode]:
    """What a run that was advised so says while the advice is followed by others is of them."""
    episode = _Episode()
    for run in runs:
        if one.key in _advised(run):
            if episode.over:
                yield episode
                episode = _Episode()
            episode.runs.append(run)
            episode.others = 0
        elif not episode.runs:
            continue
        elif _carries(run, one, episode.runs[-1]):
            episode.carriers.append(run)
        elif run.status == "Completed":
            episode.others += 1
    yield episode


def _carries(run: Head, one: Advised, before: Head) -> bool:
    """Whether it ran with the value; of a number also with one nearer to it than to the old one."""
    new, own = one.new, own_value(run.facts, one.parameter)
    old = own_value(before.facts, one.parameter)
    if not one.parameter or own is None or own == old:
        return False
    numbers = [_number(value) for value in (own, new, old)]
    if None in numbers:
        return own == new
    at, to, since = (number or _ZERO for number in numbers)
    return abs(at - to) <= abs(at - since)


def _number(value: str | None) -> Decimal | None:
    return Decimal(value) if value and value.replace(".", "", 1).isdigit() else None


def _comparison(episode: _Episode, one: Advised, runs: Sequence[Head]) -> Comparison | None:
    """Of the runs before and after; None where none followed the advice."""
    if not episode.carriers:
        return None
    first, followers = _place(episode.carriers[0]), {run.key for run in episode.carriers}
    before = [run for run in runs if _place(run) < first and run.key not in followers]
    left = _place(runs[-1]) > _place(episode.carriers[-1])
    return compared(before, episode.carriers, one, left=left)


def _state(advice: Advice, episode: _Episode, last_run_at: datetime, now: datetime) -> State:
    decision = advice.decision
    reopened = decision is not None and decision.verb is Verb.REOPEN
    if advice.comparison is not None:
        state = _OUTCOMES[advice.comparison.outcome]
        followed = episode.carriers[-1].ended_at > advice.last_at
        undone = reopened and decision is not None and decision.at > episode.carriers[-1].ended_at
        if followed or (state is State.WITHDRAWN and not undone):
            return state
    if advice.policy_exempts:
        return State.EXEMPT
    if decision is not None and not reopened and decision.holds(now):
        came_back = decision.verb is Verb.ACCEPT and decision.at < advice.since
        if not came_back:
            return _DECIDED[decision.verb]
    if now - last_run_at > CLOSED_AFTER or episode.others >= COMPARED:
        return State.CLOSED
    return State.OPEN
