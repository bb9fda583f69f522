"""A year of a made-up company, played by the rule for messages: 30 subjects, a fixed seed.

`python -m tools.pages.message_year` writes the table of docs/evidence/message-year.md.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from sageaudit.domain.advice.advice import Decision, DecisionAction, recommendation_id
from sageaudit.domain.advice.totals import MONTH_DAYS, estimate_month
from sageaudit.domain.alert.alert import REPEAT_AFTER, Alert, AlertDecision, AlertKind
from sageaudit.domain.audit.finding_document import AmountKind, Recommendation
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from tests.fakes.families import run_summary
from tests.fakes.story_lines import Family, run_head
from tools.pages import with_parts

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "message-year.md"
SEED = 20_260_101
FIRST_DAY = datetime(2026, 1, 1, 9, tzinfo=UTC)
DAYS = 365
POLICY = Policy()
_PRICE_CHANGES = ((90, Decimal("1.08")), (273, Decimal("0.95")))
"""From which day on all dollars are this many times as many."""
_A_DAY = timedelta(days=1)
_SHARES = {"waste": 0.45, "trial": 0.2, "undone": 0.3, "second": 0.25, "hung": 0.25}
"""How many of the families have a waste, something worth a trial, a fix that is undone, a second
waste, and a run that hangs.
"""


@dataclass
class Workload:
    """One family: how often it runs, what it costs and wastes, and how its team answers.

    `waste` and `trial`: shares of a run's bill. `second_from`: from which day on it has a second
    waste, of the share `second`. `hung`: days on which a run hangs, costs `hung_times` as much and
    fails. `yearly_growth`: of its bill. `answer`: what its team does about its first message,
    `after_days` later; a fix is undone after `undone_days`.
    """

    name: str
    every_days: int
    usd: Decimal
    waste: Decimal = Decimal(0)
    trial: Decimal = Decimal(0)
    second: Decimal = Decimal(0)
    second_from: int = DAYS
    hung: frozenset[int] = frozenset()
    hung_times: int = 8
    yearly_growth: Decimal = Decimal(0)
    answer: str = "ignore"
    after_days: int = 7
    undone_days: int | None = None
    fixed_at: datetime | None = None
    undone_at: datetime | None = None


@dataclass
class Played:
    """What was sent in the year. `at_floor_usd`: open dollars of subjects at the floor, of which
    `told_usd` had a message until a day after their run.
    """

    sent: list[tuple[datetime, AlertDecision]] = field(default_factory=list)
    running: list[datetime] = field(default_factory=list)
    runs: int = 0
    wasted_usd: Decimal = Decimal(0)
    at_floor_usd: Decimal = Decimal(0)
    told_usd: Decimal = Decimal(0)
    repeats: int = 0


def company() -> list[list[Workload]]:
    """30 subjects: 25 families, and 5 pipelines of two to five steps."""
    random_ = random.Random(SEED)
    families = [[_workload(random_, f"family-{number:02d}")] for number in range(25)]
    pipelines = [_pipeline(random_, number) for number in range(5)]
    return [*families, *pipelines]


def _workload(random_: random.Random, name: str) -> Workload:
    wastes = random_.random() < _SHARES["waste"]
    answers = ("fix", "fix", "fix", "snooze", "exempt", "accept", "ignore", "ignore")
    work = Workload(
        name,
        every_days=random_.choice((1, 3, 7, 7, 7)),
        usd=Decimal(round(random_.lognormvariate(2.6, 1.1), 2)).quantize(Decimal("0.01")),
        waste=Decimal(random_.randint(10, 60)) / 100 if wastes else Decimal(0),
        trial=Decimal(random_.randint(20, 50)) / 100
        if random_.random() < _SHARES["trial"]
        else Decimal(0),
        yearly_growth=Decimal(random_.choice((0, 0, 30, 100))) / 100,
        answer=random_.choice(answers),
        after_days=random_.randint(2, 25),
        undone_days=random_.randint(45, 120) if random_.random() < _SHARES["undone"] else None,
    )
    if random_.random() < _SHARES["second"]:
        work.second, work.second_from = Decimal("0.2"), random_.randint(60, 300)
    if random_.random() < _SHARES["hung"]:
        work.hung = frozenset(random_.sample(range(30, DAYS), 1))
    return work


def _pipeline(random_: random.Random, number: int) -> list[Workload]:
    """Its steps run on the same days."""
    every = random_.choice((2, 7, 7))
    steps = []
    for step in range(random_.randint(2, 5)):
        work = _workload(random_, f"pipeline/pipeline-{number}/step-{step}")
        work.every_days = every
        steps.append(work)
    return steps


def play() -> Played:
    """The year of each subject; none knows of another one."""
    played = Played()
    for number, works in enumerate(company()):
        _play(works, played, random.Random(SEED + number))
    played.sent.sort(key=lambda one: one[0])
    return played


def _play(works: list[Workload], played: Played, random_: random.Random) -> None:
    subject, alerts = Family(""), list[tuple[datetime, Alert]]()
    pending: list[tuple[str, datetime, Decimal]] = []
    for day in range(DAYS):
        for step, work in enumerate(works):
            is_hung = day in work.hung
            if day % work.every_days and not is_hung:
                continue
            ended_at = FIRST_DAY + timedelta(days=day, minutes=20 * step)
            run = _run(work, day, ended_at, random_, is_hung=is_hung)
            now = ended_at + timedelta(minutes=5)
            known = len(subject.past.subject_alerts)
            decision = subject.heard(run, now, POLICY)
            played.runs += 1
            if is_hung:
                played.running.append(now)
            for alert in subject.past.subject_alerts[known:] if decision else ():
                played.repeats += _is_repeat(alert, run, alerts)
                alerts.append((now, alert))
            if decision:
                played.sent.append((now, decision))
                _answer(work, subject, now)
            _count(subject, run, now, played, pending)
    named = [(at, alert.recommendation_ids) for at, alert in alerts]
    for recommendation, ended_at, usd in pending:
        if any(
            at <= ended_at + _A_DAY and recommendation in recommendations
            for at, recommendations in named
        ):
            played.told_usd += usd


def _run(
    work: Workload, day: int, ended_at: datetime, random_: random.Random, *, is_hung: bool
) -> AuditSummary:
    price = next((times for since, times in reversed(_PRICE_CHANGES) if day >= since), Decimal(1))
    noise = Decimal(random_.randint(85, 115)) / 100
    usd = work.usd * price * noise * (1 + work.yearly_growth * day / DAYS)
    is_fixed = _is_fixed(work, ended_at)
    advised, settings = [], {"P.A": "A" if is_fixed else "old", "P.B": "old"}
    if work.waste and not is_fixed:
        advised.append(_advised("A", usd * work.waste))
    if work.waste and is_fixed:
        usd *= 1 - work.waste
    if work.second and day >= work.second_from:
        advised.append(_advised("B", usd * work.second))
    if work.trial:
        advised.append(_advised("T", usd * work.trial, AmountKind.POSSIBLE))
    if is_hung:
        usd *= work.hung_times
        advised = [
            Recommendation("failed-spend", "", "", Severity.HIGH, AmountKind.COUNTED, _cents(usd))
        ]
    facts = run_summary(
        elapsed_s=Decimal(3600),
        instance_type="ml.g5.xlarge",
        instance_count=1,
        fingerprint="code",
        phase_s={"Downloading": Decimal(200)},
        recommendations=tuple(advised),
        settings=settings,
    )
    status = "Failed" if is_hung else "Completed"
    name = f"{work.name.rpartition('/')[2]}-{day:03d}"
    return run_head(name, ended_at, facts, status=status, total_usd=_cents(usd), family=work.name)


def _is_fixed(work: Workload, at: datetime) -> bool:
    is_undone = work.undone_at is not None and at >= work.undone_at
    return work.fixed_at is not None and at >= work.fixed_at and not is_undone


def _advised(letter: str, usd: Decimal, worth: AmountKind = AmountKind.COUNTED) -> Recommendation:
    parameter = f"P.{letter}"
    return Recommendation(f"rule-{letter}", parameter, letter, Severity.LOW, worth, _cents(usd))


def _cents(usd: Decimal) -> Decimal:
    return usd.quantize(Decimal("0.01"))


def _answer(work: Workload, subject: Family, now: datetime) -> None:
    """What the team does about the first message with its advice A; a fix may be undone once."""
    at = now + timedelta(days=work.after_days)
    if work.answer == "fix" and work.fixed_at is None:
        work.fixed_at = at
        if work.undone_days:
            work.undone_at = at + timedelta(days=work.undone_days)
        return
    verbs = {
        "snooze": DecisionAction.SNOOZE,
        "exempt": DecisionAction.EXEMPT,
        "accept": DecisionAction.ACCEPT,
    }
    if work.answer in verbs:
        one = _advised("A", Decimal(1))
        last = (at + timedelta(days=90 if work.answer == "exempt" else 30)).date()
        name = recommendation_id("1", "", work.name, one)
        subject.decisions.append(Decision(name, verbs[work.answer], "ana", now, last))
        work.answer = "ignore"


def _is_repeat(alert: Alert, run: AuditSummary, before: list[tuple[datetime, Alert]]) -> bool:
    """Whether a first message, or one sent again, has only advice of the run that another one of
    the last 30 days has named.
    """
    if alert.kind not in {AlertKind.FIRST, AlertKind.FOLLOW_UP}:
        return False
    recent = [one for at, one in before if alert.at - at < REPEAT_AFTER]
    named = {name for one in recent for name in one.recommendation_ids}
    advised = run.recommendations or ()
    own = {
        recommendation_id("1", "", run.family, one)
        for one in advised
        if one.amount_kind is alert.amount_kind
    }
    return bool(own) and own <= named


def _count(
    subject: Family,
    run: AuditSummary,
    now: datetime,
    played: Played,
    pending: list[tuple[str, datetime, Decimal]],
) -> None:
    """The dollars of the run, and those that are open while its subject is at the floor."""
    recommendations = subject.decided_by
    opened = [
        one
        for one in recommendations.values()
        if one.is_open and one.amount_kind is AmountKind.COUNTED
    ]
    is_at_floor = estimate_month(opened, AmountKind.COUNTED, now).total >= POLICY.floor_usd
    for one in run.recommendations or ():
        if one.amount_kind is not AmountKind.COUNTED or one.amount is None:
            continue
        played.wasted_usd += one.amount
        name = recommendation_id("1", "", run.family, one)
        if is_at_floor and name in recommendations and recommendations[name].is_open:
            played.at_floor_usd += one.amount
            pending.append((name, run.ended_at, one.amount))


def table(played: Played) -> Iterator[str]:
    """The rows of the page."""
    words = [*(kind.value for kind in AlertKind), "running"]
    events = [(at, decision.kind.value) for at, decision in played.sent]
    events += [(at, "running") for at in played.running]
    yield "| quarter | messages | " + " | ".join(words) + " |"
    yield "|---|--:|" + "--:|" * len(words)
    for quarter in range(4):
        counts = Counter(kind for at, kind in events if (at.month - 1) // 3 == quarter)
        cells = " | ".join(str(counts[word]) for word in words)
        yield f"| {quarter + 1} | {counts.total()} | {cells} |"
    counts = Counter(kind for _, kind in events)
    cells = " | ".join(str(counts[word]) for word in words)
    yield f"| year | {counts.total()} | {cells} |"
    share = 100 * played.told_usd / played.at_floor_usd
    yield ""
    yield f"- {played.runs:,} runs, ${played.wasted_usd:,.0f} avoidable or lost."
    yield (
        f"- ${played.at_floor_usd:,.0f} of it was open while its subject was at the floor;"
        f" {share:.1f}% of that had a message within a day after its run."
    )
    yield f"- {played.repeats} repeats: no advice had a second message within {MONTH_DAYS} days."


def page(text: str, rows: str) -> str:
    """The page with these rows."""
    return with_parts(text, {"year": rows})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), "\n".join(table(play()))))
