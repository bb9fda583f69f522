"""Simulates the messages of a year for a made-up company of 30 subjects, with a fixed seed.

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
from sageaudit.domain.audit.finding_document import AmountKind, RunRecommendation
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from tests.fakes.families import run_summary
from tests.fakes.story_lines import Family, run_head
from tools.pages import replace_parts

PAGE = Path(__file__).parents[2] / "docs" / "evidence" / "message-year.md"
SEED = 20_260_101
FIRST_DAY = datetime(2026, 1, 1, 9, tzinfo=UTC)
DAYS = 365
POLICY = Policy()
_PRICE_CHANGES = ((90, Decimal("1.08")), (273, Decimal("0.95")))
"""From this day on, all dollars are multiplied by the factor."""
_ONE_DAY = timedelta(days=1)
_SHARES = {"waste": 0.45, "trial": 0.2, "undone": 0.3, "second": 0.25, "hung": 0.25}
"""The shares of families with a waste, a possible saving, a fix that is undone, a second waste, and
a run that hangs."""


@dataclass
class Workload:
    """One family: how often it runs, what it costs and wastes, and how its team answers.

    `waste`, `trial` and `second` are shares of a run's bill. The second waste begins on day
    `second_from`. On the days in `hung`, a run hangs, costs `hung_times` as much and fails.
    `yearly_growth` is the growth of its bill. `answer` is what the team does `after_days` after its
    first message. A fix is undone after `undone_days`.
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
class YearResult:
    """What was sent in the year.

    `at_floor_usd` are the open dollars of subjects at the floor. `reported_usd` is the part that
    was named in a message at most a day after the run.
    """

    sent: list[tuple[datetime, AlertDecision]] = field(default_factory=list)
    running: list[datetime] = field(default_factory=list)
    runs: int = 0
    wasted_usd: Decimal = Decimal(0)
    at_floor_usd: Decimal = Decimal(0)
    reported_usd: Decimal = Decimal(0)
    repeats: int = 0


def company() -> list[list[Workload]]:
    """Returns 30 subjects: 25 families, and 5 pipelines of two to five steps."""
    random_ = random.Random(SEED)
    families = [[_workload(random_, f"family-{number:02d}")] for number in range(25)]
    pipelines = [_pipeline(random_, number) for number in range(5)]
    return [*families, *pipelines]


def _workload(random_: random.Random, name: str) -> Workload:
    wastes = random_.random() < _SHARES["waste"]
    answers = ("fix", "fix", "fix", "snooze", "exempt", "accept", "ignore", "ignore")
    workload = Workload(
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
        workload.second, workload.second_from = Decimal("0.2"), random_.randint(60, 300)
    if random_.random() < _SHARES["hung"]:
        workload.hung = frozenset(random_.sample(range(30, DAYS), 1))
    return workload


def _pipeline(random_: random.Random, number: int) -> list[Workload]:
    """Returns the steps of a pipeline, which run on the same days."""
    every_days = random_.choice((2, 7, 7))
    steps = []
    for step in range(random_.randint(2, 5)):
        workload = _workload(random_, f"pipeline/pipeline-{number}/step-{step}")
        workload.every_days = every_days
        steps.append(workload)
    return steps


def play() -> YearResult:
    """Simulates the year of each subject. The subjects do not affect each other."""
    result = YearResult()
    for number, workloads in enumerate(company()):
        _play(workloads, result, random.Random(SEED + number))
    result.sent.sort(key=lambda message: message[0])
    return result


def _play(workloads: list[Workload], result: YearResult, random_: random.Random) -> None:
    subject, alerts = Family(""), list[tuple[datetime, Alert]]()
    pending: list[tuple[str, datetime, Decimal]] = []
    for day in range(DAYS):
        for step, workload in enumerate(workloads):
            is_hung = day in workload.hung
            if day % workload.every_days and not is_hung:
                continue
            ended_at = FIRST_DAY + timedelta(days=day, minutes=20 * step)
            run = _run(workload, day, ended_at, random_, is_hung=is_hung)
            now = ended_at + timedelta(minutes=5)
            alerts_before = len(subject.past.subject_alerts)
            decision = subject.add_run(run, now, POLICY)
            result.runs += 1
            if is_hung:
                result.running.append(now)
            for alert in subject.past.subject_alerts[alerts_before:] if decision else ():
                result.repeats += _is_repeat(alert, run, alerts)
                alerts.append((now, alert))
            if decision:
                result.sent.append((now, decision))
                _answer(workload, subject, now)
            _count(subject, run, now, result, pending)
    named = [(sent_at, alert.recommendation_ids) for sent_at, alert in alerts]
    for recommendation, ended_at, usd in pending:
        if any(
            sent_at <= ended_at + _ONE_DAY and recommendation in recommendations
            for sent_at, recommendations in named
        ):
            result.reported_usd += usd


def _run(
    workload: Workload, day: int, ended_at: datetime, random_: random.Random, *, is_hung: bool
) -> AuditSummary:
    price = next((times for since, times in reversed(_PRICE_CHANGES) if day >= since), Decimal(1))
    noise = Decimal(random_.randint(85, 115)) / 100
    usd = workload.usd * price * noise * (1 + workload.yearly_growth * day / DAYS)
    is_fixed = _is_fixed(workload, ended_at)
    recommendations, settings = [], {"P.A": "A" if is_fixed else "old", "P.B": "old"}
    if workload.waste and not is_fixed:
        recommendations.append(_recommendation("A", usd * workload.waste))
    if workload.waste and is_fixed:
        usd *= 1 - workload.waste
    if workload.second and day >= workload.second_from:
        recommendations.append(_recommendation("B", usd * workload.second))
    if workload.trial:
        recommendations.append(_recommendation("T", usd * workload.trial, AmountKind.POSSIBLE))
    if is_hung:
        usd *= workload.hung_times
        recommendations = [
            RunRecommendation(
                "failed-spend", "", "", Severity.HIGH, AmountKind.COUNTED, _cents(usd)
            )
        ]
    facts = run_summary(
        elapsed_s=Decimal(3600),
        instance_type="ml.g5.xlarge",
        instance_count=1,
        fingerprint="code",
        phase_s={"Downloading": Decimal(200)},
        recommendations=tuple(recommendations),
        settings=settings,
    )
    status = "Failed" if is_hung else "Completed"
    name = f"{workload.name.rpartition('/')[2]}-{day:03d}"
    return run_head(
        name, ended_at, facts, status=status, total_usd=_cents(usd), family=workload.name
    )


def _is_fixed(workload: Workload, moment: datetime) -> bool:
    is_undone = workload.undone_at is not None and moment >= workload.undone_at
    return workload.fixed_at is not None and moment >= workload.fixed_at and not is_undone


def _recommendation(
    letter: str, usd: Decimal, worth: AmountKind = AmountKind.COUNTED
) -> RunRecommendation:
    parameter = f"P.{letter}"
    return RunRecommendation(f"rule-{letter}", parameter, letter, Severity.LOW, worth, _cents(usd))


def _cents(usd: Decimal) -> Decimal:
    return usd.quantize(Decimal("0.01"))


def _answer(workload: Workload, subject: Family, now: datetime) -> None:
    """Applies the team's answer to the first message with recommendation A. A fix may be undone
    once.
    """
    changed_at = now + timedelta(days=workload.after_days)
    if workload.answer == "fix" and workload.fixed_at is None:
        workload.fixed_at = changed_at
        if workload.undone_days:
            workload.undone_at = changed_at + timedelta(days=workload.undone_days)
        return
    verbs = {
        "snooze": DecisionAction.SNOOZE,
        "exempt": DecisionAction.EXEMPT,
        "accept": DecisionAction.ACCEPT,
    }
    if workload.answer in verbs:
        recommendation = _recommendation("A", Decimal(1))
        last = (changed_at + timedelta(days=90 if workload.answer == "exempt" else 30)).date()
        advice_id = recommendation_id("1", "", workload.name, recommendation)
        subject.decisions.append(Decision(advice_id, verbs[workload.answer], "ana", now, last))
        workload.answer = "ignore"


def _is_repeat(alert: Alert, run: AuditSummary, before: list[tuple[datetime, Alert]]) -> bool:
    """Whether a first or follow-up message has no recommendation of the run that is new.

    A recommendation is new if no message of the last 30 days named it.
    """
    if alert.kind not in {AlertKind.FIRST, AlertKind.FOLLOW_UP}:
        return False
    recent = [
        recommendation for sent_at, recommendation in before if alert.at - sent_at < REPEAT_AFTER
    ]
    named = {name for recommendation in recent for name in recommendation.recommendation_ids}
    advised = run.recommendations or ()
    own_ids = {
        recommendation_id("1", "", run.family, recommendation)
        for recommendation in advised
        if recommendation.amount_kind is alert.amount_kind
    }
    return bool(own_ids) and own_ids <= named


def _count(
    subject: Family,
    run: AuditSummary,
    now: datetime,
    result: YearResult,
    pending: list[tuple[str, datetime, Decimal]],
) -> None:
    """Adds the run's dollars, and those that are open while its subject is at the floor."""
    recommendations = subject.decided_by
    open_recommendations = [
        recommendation
        for recommendation in recommendations.values()
        if recommendation.is_open and recommendation.amount_kind is AmountKind.COUNTED
    ]
    is_at_floor = (
        estimate_month(open_recommendations, AmountKind.COUNTED, now).total >= POLICY.floor_usd
    )
    for recommendation in run.recommendations or ():
        if recommendation.amount_kind is not AmountKind.COUNTED or recommendation.amount is None:
            continue
        result.wasted_usd += recommendation.amount
        advice_id = recommendation_id("1", "", run.family, recommendation)
        if is_at_floor and advice_id in recommendations and recommendations[advice_id].is_open:
            result.at_floor_usd += recommendation.amount
            pending.append((advice_id, run.ended_at, recommendation.amount))


def table(result: YearResult) -> Iterator[str]:
    """Yields the lines of the page's generated part."""
    kinds = [*(kind.value for kind in AlertKind), "running"]
    events = [(sent_at, decision.kind.value) for sent_at, decision in result.sent]
    events += [(sent_at, "running") for sent_at in result.running]
    yield "| quarter | messages | " + " | ".join(kinds) + " |"
    yield "|---|--:|" + "--:|" * len(kinds)
    for quarter in range(4):
        counts = Counter(kind for sent_at, kind in events if (sent_at.month - 1) // 3 == quarter)
        cells = " | ".join(str(counts[kind]) for kind in kinds)
        yield f"| {quarter + 1} | {counts.total()} | {cells} |"
    counts = Counter(kind for _, kind in events)
    cells = " | ".join(str(counts[kind]) for kind in kinds)
    yield f"| year | {counts.total()} | {cells} |"
    share = 100 * result.reported_usd / result.at_floor_usd
    yield ""
    yield f"- {result.runs:,} runs, ${result.wasted_usd:,.0f} avoidable or lost."
    yield (
        f"- ${result.at_floor_usd:,.0f} of it was open while its subject was at the floor;"
        f" {share:.1f}% of that was named in a message within a day after its run."
    )
    yield (
        f"- {result.repeats} repeats: no recommendation had a second message within"
        f" {MONTH_DAYS} days."
    )


def page(text: str, rows: str) -> str:
    """Returns the page with these lines in its generated part."""
    return replace_parts(text, {"year": rows})


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), "\n".join(table(play()))))
