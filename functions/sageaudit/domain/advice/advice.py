"""What a family was advised, and what came of it: pure, and derived from its runs each time.

No state of an advice is stored. It follows from the family's runs, each with what it was advised
and the values that it ran with (`AuditSummary`), and from what people decided. So runs that come
late, come twice or are judged again always give the same answer. docs/advice.md has the states as
a table, docs/decisions/0025 the reasons.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.advice.comparison import (
    CLOSED_AFTER,
    Comparison,
    Effect,
    amount_of,
    compared,
    episodes_of,
    mended_otherwise,
    started_at,
)
from sageaudit.domain.audit.finding_document import Advised, Worth
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.structs import replace

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ID_LETTERS = 8
MOST_RUNS = 1_000
"""Of a family, the newest: what they were advised, and what came of it. Our choice."""


class State(enum.StrEnum):
    """What became of an advice, as far as decisions depend on it."""

    OPEN = "open"
    SILENCED = "silenced"
    """Accepted, snoozed or exempt: `Advice.silence` says by whom, until when and why."""
    TAKEN = "taken"
    CLOSED = "closed"
    """Replaced, not seen for long, fixed another way, or withdrawn by what the runs say."""


MEASURED, NOT_COMPARABLE, WITHDRAWN = "measured", "not comparable", "withdrawn"
"""What the bills of later runs say came of an advice. No decision depends on it."""
_OUTCOMES = {
    Effect.CHEAPER: MEASURED,
    Effect.CHANGED_TOO: NOT_COMPARABLE,
    Effect.WORSE: WITHDRAWN,
}


class Verb(enum.StrEnum):
    """What people decide about an advice."""

    ACCEPT = "accept"
    SNOOZE = "snooze"
    EXEMPT = "exempt"
    REOPEN = "reopen"


_SILENCES = {Verb.ACCEPT: "accepted", Verb.SNOOZE: "snoozed", Verb.EXEMPT: "exempt"}
WORDS = ("open", *_SILENCES.values(), "taken", MEASURED, NOT_COMPARABLE, WITHDRAWN)
"""The words by which reports count advice that still matters: `Advice.word`."""


class Silence(Struct, frozen=True):
    """Why an advice is in no message: it is accepted, snoozed or exempt (`word`).

    `by` is None of what a policy or tag accepts: `reason` has who and why.
    """

    word: str
    by: str | None
    until: date | None
    reason: str | None

    @property
    def ends_if_worse(self) -> bool:
        """Whether a message has it if it got worse: an exemption holds whatever happens."""
        return self.word != _SILENCES[Verb.EXEMPT]


class Decision(Struct, frozen=True):
    """What somebody decided about an advice, by its id; the newest one counts, for any value of its
    parameter. `until`: its last day, in UTC; None without an end.
    """

    advice: str
    verb: Verb
    by: str
    at: datetime
    until: date | None = None
    reason: str | None = None

    @property
    def over_at(self) -> datetime | None:
        """From when on it no longer holds; None of one without an end."""
        if self.verb is Verb.REOPEN:
            return self.at
        if self.until is None:
            return None
        return datetime.combine(self.until, time(), UTC) + timedelta(days=1)


class Advice(Struct, frozen=True):
    """One advice to a family. Amounts are in what it is `worth`; None is unknown.

    `amount`: of the newest run that was advised so; `hits`: the end and amount of each such run
    since the advice came last, in `since`, oldest first; `amounts` of all runs that were read.
    `times`: how often it came, as it comes back where it was followed before. `decision`: the one
    that counts; `silence`: if that, or the policy, holds now. `comparison`: of the runs before and
    after it was taken. `ended`: what was measured of each earlier time that it was taken, until the
    change was undone.
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
    worth: Worth
    amount: Decimal | None
    hits: tuple[tuple[datetime, Decimal | None], ...]
    amounts: tuple[Decimal | None, ...]
    times: int
    first_at: datetime
    since: datetime
    last_at: datetime
    decision: Decision | None = None
    exempt: str | None = None
    silence: Silence | None = None
    comparison: Comparison | None = None
    ended: tuple[Comparison, ...] = ()

    @property
    def runs(self) -> int:
        """How many runs were advised so."""
        return len(self.amounts)

    @property
    def is_open(self) -> bool:
        """Whether a message may have it."""
        return self.state is State.OPEN

    @property
    def is_sent_if_worse(self) -> bool:
        """Whether a message has it only if it got worse."""
        return self.silence is not None and self.silence.ends_if_worse

    @property
    def state_words(self) -> str:
        """`open`; what is silenced is `accepted`, `snoozed` or `exempt`."""
        return self.silence.word if self.silence else self.state.value

    @property
    def outcome(self) -> str | None:
        """`measured`, `not comparable` or `withdrawn`; None before the bills say anything."""
        return _OUTCOMES.get(self.comparison.effect) if self.comparison else None

    @property
    def word(self) -> str:
        """What a report shows: what came of it, else how it is silenced, else its state."""
        return self.outcome or self.state_words

    @property
    def was_followed(self) -> bool:
        """Whether later runs had the value, or another one that fixed it, and say what came of it;
        or may still.
        """
        return self.outcome is not None or self.state is State.TAKEN

    @property
    def measured(self) -> tuple[Comparison, ...]:
        """All that was measured of it, at whatever time, the newest last."""
        found = self.comparison
        is_measured = found is not None and found.effect is Effect.CHEAPER
        return (*self.ended, found) if found and is_measured else self.ended

    @property
    def line(self) -> tuple[str, str, Worth]:
        """The same for any value of its parameter."""
        return self.rule, self.parameter or self.new, self.worth

    def is_same_line(self, other: Advice) -> bool:
        """Whether both are to the same family, with the same or another value."""
        return (self.family, self.line) == (other.family, other.line)

    def amounts_of_days(self, now: datetime, days: int) -> list[Decimal | None]:
        """The amounts of the last days, since it came last."""
        return [amount for at, amount in self.hits if at > now - timedelta(days)]

    def of_days(self, now: datetime, days: int) -> Decimal:
        """What is known of them together."""
        return known_sum(self.amounts_of_days(now, days))


def known_sum(amounts: Iterable[Decimal | None]) -> Decimal:
    """The sum of those that are known."""
    return sum((amount for amount in amounts if amount is not None), Decimal(0))


def advice_id(account: str, region: str, family: str, advised: Advised) -> str:
    """Eight letters, the same for each run that is advised so."""
    what = [account, region, family, advised.rule, advised.parameter, advised.new]
    number = int.from_bytes(hashlib.sha256(json.dumps(what).encode()).digest()[:8], "big")
    letters = ""
    for _ in range(_ID_LETTERS):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return letters


def advices_of(
    heads: Iterable[AuditSummary], decisions: Iterable[Decision], now: datetime
) -> list[Advice]:
    """The advices of these runs, of one family or of many: what counts first, the most of 30 days
    first. Runs and decisions may come in any order, and more than once.
    """
    families: dict[tuple[str, str, str], dict[object, AuditSummary]] = defaultdict(dict)
    for head in heads:
        if head.purchase is not None:
            families[head.account, head.region, head.family][head.key] = head
    ordered = sorted(decisions, key=lambda one: (one.at, one.verb))
    newest = {decision.advice: decision for decision in ordered}
    found = [
        advice
        for runs in families.values()
        for advice in _of_family(sorted(runs.values(), key=_place), newest, now)
    ]
    return dearest_first(found, now)


def dearest_first(advices: Iterable[Advice], now: datetime) -> list[Advice]:
    """What counts before what is worth a trial, the most of 30 days first."""
    worths = list(Worth)
    return sorted(advices, key=lambda one: (worths.index(one.worth), -one.of_days(now, 30), one.id))


def _place(head: AuditSummary) -> tuple[datetime, str, datetime]:
    """Runs are in the order of their starts: their parameters were chosen then."""
    return started_at(head), head.key.arn, head.key.created_at


def _of_family(
    runs: Sequence[AuditSummary], decisions: Mapping[str, Decision], now: datetime
) -> list[Advice]:
    """All values of each line; `runs` by start."""
    lines: dict[object, dict[str, Advised]] = defaultdict(dict)
    for run in runs:
        for one in run.advised or ():
            name = advice_id(run.account, run.region, run.family, one)
            known = lines[one.line]
            known.pop(name, None)
            known[name] = one  # the newest value is the last
    every = [one for of in lines.values() for one in of.values()]
    paths = {path for one in every for path in (one.parameter, *one.also)}
    found: list[Advice] = []
    for values in lines.values():
        *replaced, newest = values
        decided = [decisions[name] for name in values if name in decisions]
        decision = max(decided, key=lambda one: one.at, default=None)
        advice = _advice(newest, values[newest], runs, decision, frozenset(paths), now)
        olds = (
            replace(advice, id=name, new=values[name].new, hits=(), ended=()) for name in replaced
        )
        found += [advice, *(replace(old, state=State.CLOSED, comparison=None) for old in olds)]
    return _once(found)


def _once(found: list[Advice]) -> list[Advice]:
    """If two were taken together, the saving stands once, at the larger promise."""
    claimed: dict[object, str] = {}
    parts = [(part, advice.id) for advice in found for part in advice.measured]
    for part, name in sorted(parts, key=lambda pair: pair[0].predicted_usd or 0, reverse=True):
        claimed.setdefault(part.after, name)

    def once(part: Comparison, name: str) -> Comparison:
        first = claimed[part.after]
        evidence = f"measured together with {first}"
        return part if first == name else replace(part, evidence=evidence, after_usd=None)

    def of(advice: Advice) -> Advice:
        now, ended = advice.comparison, tuple(once(part, advice.id) for part in advice.ended)
        if now is not None and now.effect is Effect.CHEAPER:
            now = once(now, advice.id)
        return replace(advice, comparison=now, ended=ended)

    return [of(advice) for advice in found]


def _advice(
    name: str,
    one: Advised,
    runs: Sequence[AuditSummary],
    decision: Decision | None,
    paths: frozenset[str],
    now: datetime,
) -> Advice:
    """One advice, by the runs of its family. `paths`: of all that the family was advised."""
    episodes = list(episodes_of(runs, one))
    last, advised = episodes[-1], [run for part in episodes for run in part.runs]
    newest = advised[-1]
    hits = [(run.ended_at, amount_of(run, one)) for run in last.runs]
    judged = [
        compared(runs, part.runs, part.carriers, one, paths) for part in episodes if part.carriers
    ]
    ours = judged[-1] if judged and last.carriers else None
    reopened_at = decision.at if decision and decision.verb is Verb.REOPEN else None
    followed = [run.ended_at for part in episodes for run in part.carriers]
    undone = reopened_at is not None and reopened_at > max(followed, default=reopened_at)
    wrong = next((of for of in judged if of.effect is Effect.WORSE and not undone), None)
    ended = tuple(of for of in judged if of is not ours and of.effect is Effect.CHEAPER)
    advice = Advice(
        id=name,
        account=newest.account,
        region=newest.region,
        family=newest.family,
        owner=runs[-1].owner,
        rule=one.rule,
        parameter=one.parameter,
        old=newest.value_of(one.parameter),
        new=one.new,
        state=State.OPEN,
        severity=one.severity,
        worth=one.worth,
        amount=one.amount,
        hits=tuple(sorted(hits, key=lambda hit: hit[0])),
        amounts=tuple(amount_of(run, one) for run in advised),
        times=1 + sum(part.back for part in episodes),
        first_at=min(run.ended_at for run in advised),
        since=min(at for at, _ in hits),
        last_at=max(run.ended_at for run in advised),
        decision=decision,
        exempt=one.exempt,
        comparison=wrong or ours or mended_otherwise(runs, last.runs[-1], one),
        ended=ended,
    )
    silence = None if advice.comparison else _silence(advice, now)
    last_run_at = max(run.ended_at for run in runs)
    state = State.SILENCED if silence else _state(advice, last_run_at, now)
    return replace(advice, state=state, silence=silence)


def _state(advice: Advice, last_run_at: datetime, now: datetime) -> State:
    """The state of one that nobody silenced."""
    found = advice.comparison
    if found is None:
        silent_for = now - min(last_run_at, advice.last_at)
        return State.CLOSED if silent_for >= CLOSED_AFTER else State.OPEN
    is_unfinished = found.effect is Effect.TOO_FEW and now - last_run_at >= CLOSED_AFTER
    is_over = is_unfinished or found.effect is Effect.WORSE or found.fixed_another_way
    return State.CLOSED if is_over else State.TAKEN


def _silence(advice: Advice, now: datetime) -> Silence | None:
    """By the policy or a tag, or by what somebody decided and is not over."""
    if advice.exempt:
        return Silence(_SILENCES[Verb.EXEMPT], None, None, advice.exempt)
    decision = advice.decision
    if decision is None or decision.verb not in _SILENCES:
        return None
    is_over = decision.over_at is not None and decision.over_at <= now
    was_kept = decision.verb is Verb.ACCEPT and decision.at < advice.since and advice.times > 1
    if is_over or was_kept:
        return None
    return Silence(_SILENCES[decision.verb], decision.by, decision.until, decision.reason)
