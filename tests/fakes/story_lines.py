"""Plays a family's year written in one line, as in docs/message-rule.md and docs/advice.md.

`03-01 $4`: an hour-long run that ended on 1 March 2026 at noon, with $4 avoidable by the
recommendation `A`. `$4 B`: by another one. `$4 A'`: by another value of the same parameter.
`trial $9`: possible by a trial. `clean`: without any recommendation. `~b`: a run of the step b of a
pipeline. `new A`: it ran with the value of `A`; `other A`: with a third one. `cost $24`: its bill.
`failed`, `code 2`, `count 2`, `spot` and `data 30`: status, code version, instance count,
purchase and amount of data. `03-01..03-09 $1`: one run a day; `/7`: every seventh day; `x500`: this
many runs on the day. `late 03-09`: the event arrives then. `again 03-01 $6`: that run is audited
again. `@eu`: in another region. `[snooze A 04-05]`: a person's decision at nine, until that day.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.advice.advice import (
    Decision,
    DecisionAction,
    FamilyRecommendation,
    derive_recommendations,
    recommendation_id,
)
from sageaudit.domain.advice.comparison import find_cost_spike
from sageaudit.domain.alert.alert import Alert, AlertCase, AlertDecision, AlertKind, PastAlerts
from sageaudit.domain.alert.audit_figures import AlertFigures
from sageaudit.domain.alert.rule import alerts_for_decision, decide
from sageaudit.domain.audit.finding_document import AmountKind, RunRecommendation
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.structs import replace
from tests.fakes.families import run_fields, run_summary

YEAR_BACK = timedelta(days=365)
_SPAN = re.compile(r"(\d\d-\d\d)(?:\.\.(\d\d-\d\d))?(?:/(\d+))? (.+)")
_FOUND = re.compile(r"(?<!cost )(trial )?\$([\d.]+)(?: ([A-Z]'*))?")
_COST = re.compile(r"cost \$([\d.]+)")


@dataclass
class Family:
    """One family, or one pipeline, in one region: its runs, people's decisions and sent alerts."""

    region: str
    summaries: dict[JobKey, AuditSummary] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    past: PastAlerts = field(default_factory=lambda: PastAlerts("", "f"))
    alerts: dict[str, Alert] = field(default_factory=dict)
    decided_by: dict[str, FamilyRecommendation] = field(default_factory=dict)
    """Recommendations at the last decision, by id."""

    def recommendations(self, now: datetime) -> dict[str, FamilyRecommendation]:
        """Returns the recommendations by id."""
        return {
            recommendation.id: recommendation
            for recommendation in derive_recommendations(
                self.summaries.values(), self.decisions, now
            )
        }

    def add_run(self, run: AuditSummary, now: datetime, policy: Policy) -> AlertDecision | None:
        """Adds an audited run and decides about a message; returns the decision to send, if any."""
        self.summaries[run.key] = run
        advised = run.recommendations or ()
        counted = [
            recommendation.amount or Decimal(0)
            for recommendation in advised
            if recommendation.amount_kind is AmountKind.COUNTED
        ]
        severity = Severity.LOW if counted else Severity.INFO
        figures = AlertFigures(severity, sum(counted, Decimal(0)), Decimal(0))
        other_runs = [other for other in self.summaries.values() if other.key != run.key]
        found_ids = [
            recommendation_id("1", self.region, run.family, recommendation)
            for recommendation in advised
        ]
        same_family = [other for other in other_runs if other.family == run.family]
        self.decided_by = self.recommendations(now)
        case = AlertCase(
            family=run.family,
            figures=figures,
            recommendation_ids=found_ids,
            recommendations=self.decided_by,
            spike=find_cost_spike(run, same_family, policy),
            alerts=[alert for alert in self.past.subject_alerts if alert.is_standing],
            policy=policy,
            now=now,
            history_since=now - YEAR_BACK,
        )
        last = self.alerts.get(run.job)
        outcome = decide(case, last)
        if outcome.suppressed_because:
            return None
        version = last.version + 1 if last else 1
        alert = Alert(run.job, run.family, outcome.kind, version, figures, now)
        past = replace(self.past, run=run.job)
        self.past = past.with_alerts(alert, alerts_for_decision(case, outcome, alert))
        self.alerts[run.job] = alert
        return outcome


class Story:
    """Plays a line under a policy; `sent` has the kind and the day of each message."""

    def __init__(self, line: str, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.families: dict[str, Family] = {}
        self.sent: list[str] = []
        self._runs: dict[tuple[str, date], AuditSummary] = {}
        parts = [part.strip() for part in line.split(";")]
        events = [event for part in parts for event in _events(part)]
        for heard_at, ended_at, what in sorted(events, key=lambda event: event[0]):
            self._play(heard_at, ended_at, what)

    def recommendation(self, letter: str, now: datetime, region: str = "") -> FamilyRecommendation:
        """Returns the recommendation with this letter at a time."""
        family = self.families[region]
        recommendation = _advised(AmountKind.COUNTED, letter, None)
        return family.recommendations(now)[recommendation_id("1", region, "f", recommendation)]

    def _play(self, heard_at: datetime, ended_at: datetime, what: str) -> None:
        region_match = re.search(r"@(\w+)", what)
        region = region_match[1] if region_match else ""
        family = self.families.setdefault(region, Family(region))
        if what.startswith("["):
            family.decisions.append(_decision(what, heard_at, region))
            return
        reaudit = re.fullmatch(r"again (\d\d-\d\d) (.+)", what)
        if reaudit:
            old = self._runs[region, _day(reaudit[1]).date()]
            runs = [replace(_run(reaudit[2], old.ended_at, old.job, region), version=2)]
        else:
            repeat = re.search(r"x(\d+) ", what)
            number = len(family.summaries)
            runs = [
                _run(
                    what,
                    ended_at + timedelta(seconds=seconds),
                    f"run-{number + seconds:05d}",
                    region,
                )
                for seconds in range(int(repeat[1]) if repeat else 1)
            ]
            self._runs[region, ended_at.date()] = runs[0]
        for run in runs:
            if outcome := family.add_run(run, heard_at, self.policy):
                self.sent.append(f"{_word(outcome)} {heard_at:%m-%d}")


def _word(outcome: AlertDecision) -> str:
    if outcome.kind is AlertKind.FIRST and outcome.amount_kind is AmountKind.POSSIBLE:
        return "trial"
    return (
        f"{outcome.kind}: {outcome.follow_up_reason}"
        if outcome.follow_up_reason
        else str(outcome.kind)
    )


def _day(text: str, hour: int = 12) -> datetime:
    month, day = (int(part) for part in text.split("-"))
    return datetime(2026, month, day, hour, tzinfo=UTC)


def _events(part: str) -> Iterator[tuple[datetime, datetime, str]]:
    """Yields when each event arrives, when its run ended, and its text."""
    matched = _SPAN.fullmatch(part)
    assert matched, part
    first, last, step, what = matched.groups()
    late = re.search(r" late (\d\d-\d\d)", what)
    at, until = _day(first), _day(last or first)
    while at <= until:
        heard_at = _day(late[1], 13) if late else at + timedelta(minutes=5)
        yield (at - timedelta(hours=3) if what.startswith("[") else heard_at), at, what
        at += timedelta(days=int(step or 1))


def _decision(what: str, at: datetime, region: str) -> Decision:
    verb, letter, *until = what.strip("[]").split()
    last = _day(until[0]).date() - timedelta(days=1) if until else None
    recommendation = _advised(AmountKind.COUNTED, letter, None)
    return Decision(
        recommendation_id("1", region, "f", recommendation), DecisionAction(verb), "ana", at, last
    )


def _advised(worth: AmountKind, name: str, amount: Decimal | None) -> RunRecommendation:
    letter = name.rstrip("'")
    return RunRecommendation(f"rule-{letter}", f"P.{letter}", name, Severity.LOW, worth, amount)


def _found(what: str) -> Iterator[RunRecommendation]:
    for word, usd, name in _FOUND.findall(_COST.sub("", what)):
        worth = AmountKind(word.strip() or "counted")
        letter = name or ("T" if worth is AmountKind.POSSIBLE else "A")
        yield _advised(worth, letter, Decimal(usd))


def _run(what: str, ended_at: datetime, name: str, region: str) -> AuditSummary:
    advised = tuple(_found(what))
    values = defaultdict(
        str,
        {recommendation.parameter: "old" for recommendation in advised if recommendation.parameter},
    )
    for word, letter in re.findall(r"(new|other) ([A-Z]'*)", what):
        values[f"P.{letter[0]}"] = letter if word == "new" else "third"
    numbers = {word: _number(rf"{word} (\d+)", what) for word in ("code", "count", "data")}
    facts = run_summary(
        Purchase.SPOT if "spot" in what else Purchase.ON_DEMAND,
        elapsed_s=Decimal(3600),
        instance_type="ml.g5.xlarge",
        instance_count=int(numbers["count"] or 1),
        fingerprint=f"code-{numbers['code'] or 1}",
        phase_s={"Downloading": (numbers["data"] or Decimal(20)) * 10},
        recommendations=advised,
        settings=dict(values),
    )
    status = "Failed" if "failed" in what else "Stopped" if "stopped" in what else "Completed"
    cost = _number(r"cost \$([\d.]+)", what)
    step = re.search(r"~(\w+)", what)
    family = f"pipeline/f/{step[1]}" if step else "f"
    return run_head(
        name, ended_at, facts, region=region, status=status, total_usd=cost, family=family
    )


def _number(pattern: str, what: str) -> Decimal | None:
    matched = re.search(pattern, what)
    return Decimal(matched[1]) if matched else None


def run_head(
    name: str,
    ended_at: datetime,
    facts: AuditSummary,
    *,
    region: str = "",
    status: str = "Completed",
    total_usd: Decimal | None = None,
    family: str = "f",
) -> AuditSummary:
    """Returns the summary of a run of the family."""
    return AuditSummary(
        key=JobKey(name, ended_at),
        version=1,
        settled=True,
        due_at=None,
        last_modified_at=ended_at,
        job=name,
        kind="training",
        status=status,
        account="1",
        region=region,
        family=family,
        owner="ana",
        ended_at=ended_at,
        rollup=False,
        total_usd=total_usd,
        avoidable_usd=None,
        lost_usd=None,
        costliest_rule=None,
        unauditable=None,
        digest="",
        ruleset="1",
        policy="1",
        family_version=1,
        finding_ids=(),
        **run_fields(facts),
    )
