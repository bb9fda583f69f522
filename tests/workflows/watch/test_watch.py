"""Jobs that run: who is looked at, and what is said of them, once."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, cast
from unittest import mock

import pytest

from local.workers import InlineWorkers
from sageaudit.adapters.channels.services import channel_writers
from sageaudit.domain.advice.advice import Decision, DecisionAction, recommendation_id
from sageaudit.domain.audit.finding_document import RunRecommendation
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Exemption, Severity
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig, Route, Routes
from sageaudit.domain.policy.rule_choices import FamilyExemption
from sageaudit.domain.policy.scope import WatchSettings
from sageaudit.domain.prices.market import Market
from sageaudit.domain.running import FinishedRuns, next_limit
from sageaudit.domain.sweep import ListedJob
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import (
    METRIC_DENIED_CODE,
    Measurements,
    Metric,
    MissingMetrics,
    RawSeries,
)
from sageaudit.errors import AccessDenied, AwsError, JobNotFound, Throttled, UnreadableItem
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from sageaudit.workflows.watch.run import check_running_jobs
from sageaudit.workflows.watch.running_job import JobCheck, WatchDependencies, WatchMessage
from tests.fakes.families import run_fields, run_summary
from tests.fakes.jobs import ACCOUNT, REGION, TYPES, job, market, not_none, phases
from tests.fakes.memory_ledger import MemoryAlertLedger, MemoryDecisions
from tests.fakes.sweeps import key_of, row, summary_of

NOON = datetime(2026, 5, 20, 12, 0, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BUSY, HUNG, SPINS, NOTHING = (3000.0, 300.0), (10.0, 0.0), (101.0, 0.0), (None, None)
"""CPU and GPU as CloudWatch sums them, of a host with 48 vCPUs and 4 GPUs."""
Use = tuple[int, tuple[float | None, float | None]]
RULES = [rule.info for rule in catalogue.ruleset().rules]


@dataclass
class Run:
    """A training job of two hosts, $9.78 an hour, from NOON on; `uses`: minutes on each host."""

    name: str = "train"
    instance: str = "ml.g4dn.12xlarge"
    count: int = 2
    uses: tuple[Use, ...] = ()
    other: tuple[Use, ...] | None = None
    """The second host's; None: the same."""
    phase: str = "Training"
    limit_s: int = 432_000
    late: timedelta = 3 * MINUTE
    tags: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    fails: AwsError | None = None

    @property
    def list_jobs(self) -> ListedJob:
        return row(self.name, None, created_at=NOON - 5 * MINUTE)

    def describe(self) -> dict[str, Any]:
        if self.fails:
            raise self.fails
        return {
            "TrainingJobName": self.name,
            "TrainingJobArn": self.list_jobs.ref.arn,
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": self.phase,
            "ResourceConfig": {
                "InstanceType": self.instance,
                "InstanceCount": self.count,
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": self.limit_s},
            "CreationTime": self.list_jobs.created_at.isoformat(),
            "TrainingStartTime": NOON.isoformat(),
            "SecondaryStatusTransitions": [{"Status": self.phase, "StartTime": NOON.isoformat()}],
            **self.more,
        }

    def series(self, now: datetime) -> Iterator[RawSeries]:
        seen = max(int((now - self.late - NOON) / MINUTE), 0)
        for host in range(1, self.count + 1):
            uses = self.uses if host == 1 or self.other is None else self.other
            points = [use for minutes, use in uses for _ in range(minutes)][:seen]
            for place, metric in enumerate((Metric.CPU, Metric.GPU)):
                values = tuple(point[place] for point in points)
                if any(value is not None for value in values):
                    yield RawSeries(f"{self.name}/algo-{host}", metric.value, NOON, 60, values)


@dataclass
class Watched:
    """What came of a watch's checks."""

    checks: list[JobCheck]

    @property
    def messages(self) -> list[WatchMessage]:
        return [check.message for check in self.checks if check.message]

    @property
    def checked_count(self) -> int:
        return sum(check.is_expensive is True for check in self.checks)

    @property
    def error(self) -> AwsError | None:
        return next((check.error for check in self.checks if check.error), None)

    @property
    def unreadable(self) -> list[str]:
        return [check.unreadable for check in self.checks if check.unreadable]

    @property
    def defects(self) -> list[tuple[str, Exception]]:
        return [(check.ref.arn, check.defect) for check in self.checks if check.defect]


class Watch:
    """Everything that a watch touches."""

    def __init__(
        self, *runs: Run, policy: Policy | None = None, heads: tuple[AuditSummary, ...] = ()
    ) -> None:
        self.runs_there = {run.name: run for run in runs}
        self.policy = policy or Policy()
        self.heads = heads
        self.now = NOON
        self.ledger, self.decided = MemoryAlertLedger(), MemoryDecisions()
        self.asked = Counter[str]()

    def describe(self, ref: Any) -> dict[str, Any]:
        self.asked[f"describe {ref.name}"] += 1
        return self.runs_there[ref.name].describe()

    def tags(self, ref: Any) -> dict[str, str]:
        return dict(self.runs_there[ref.name].tags)

    def read(self, job: Job, now: datetime) -> Measurements:
        self.asked[f"read {job.name}"] += 1
        raw = self.runs_there[job.name].series(now)
        return measure(
            job, raw, TYPES, missing_reason=MissingMetrics("metric_missing", "no points")
        )

    def market(self, job: Job, now: datetime) -> Market:
        return market()

    def runs(
        self, query: RunQuery[AuditSummary], *, page_size: int | None = None
    ) -> Iterator[AuditSummary]:
        return iter(self.heads)

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        return ()

    def dependencies(self, is_out_of_time: Callable[[], bool] = lambda: False) -> WatchDependencies:
        """The dependencies of a watch."""
        here = cast("Any", self)
        return WatchDependencies(
            here,
            here,
            here,
            here,
            self.decided,
            self.ledger,
            self.policy,
            RULES,
            channel_writers(self.policy.channels),
            self.policy.watch or WatchSettings(),
            lambda: self.now,
            is_out_of_time,
        )

    def at(self, minute: int) -> Watched:
        """What a watch at this minute does."""
        self.now = NOON + minute * MINUTE
        rows = [run.list_jobs for run in self.runs_there.values()]
        return Watched(list(check_running_jobs(self.dependencies(), rows, InlineWorkers())))

    def said(self, minute: int) -> list[str]:
        """The kinds of what it says, one word for each message."""
        return ["+".join(message.kinds) for message in self.at(minute).messages]

    @property
    def cards(self) -> list[str]:
        """The mails so far."""
        bodies = [json.loads(body) for _, body in self.ledger.notices.values()]
        return [body["payload"]["message"] for body in bodies if body["channel"] == "sns"]


def earlier(
    seconds: int,
    *,
    advised: RunRecommendation | None = None,
    status: str = "Completed",
    **facts: Any,
) -> AuditSummary:
    """A finished run of the family on the same instances."""
    listed = row(f"before-{seconds}", NOON - HOUR, status=status)
    summary = run_summary(
        Purchase.ON_DEMAND,
        elapsed_s=Decimal(seconds),
        instance_type="ml.g4dn.12xlarge",
        instance_count=2,
        recommendations=(advised,) if advised else (),
    )
    return replace(summary_of(listed), family=FAMILY, **run_fields(replace(summary, **facts)))


FAMILY = "training/None/None/train"
HANGS = ((30, BUSY), (300, HUNG))


@pytest.mark.parametrize(
    ("run", "minute", "said"),
    [
        pytest.param(Run(uses=HANGS), 78, ["idle"], id="45 minutes are known"),
        pytest.param(Run(uses=HANGS), 77, [], id="44 minutes are known"),
        pytest.param(Run(uses=HANGS, late=12 * MINUTE), 88, ["idle"], id="points 12 min late"),
        pytest.param(Run(uses=HANGS, late=20 * MINUTE), 120, [], id="no points for 20 min"),
        pytest.param(Run(uses=()), 120, [], id="no points at all"),
        pytest.param(Run(uses=((30, BUSY), (2, NOTHING), (90, HUNG))), 90, ["idle"], id="a gap"),
        pytest.param(
            Run(uses=((30, BUSY), (20, HUNG), (9, NOTHING), (30, HUNG))), 90, [], id="a long gap"
        ),
        pytest.param(Run(uses=HANGS, other=((200, BUSY),)), 120, [], id="another host works"),
        pytest.param(Run(uses=HANGS, other=()), 120, [], id="another host has no points"),
        pytest.param(
            Run(uses=((30, BUSY), (90, SPINS))), 100, ["idle"], id="one core spins after GPU work"
        ),
        pytest.param(Run(uses=((120, SPINS),)), 100, [], id="one core may prepare the GPU work"),
        pytest.param(Run(uses=((120, (40.0, 0.0)),)), 60, ["idle"], id="quiet from the start"),
        pytest.param(Run(uses=((120, HUNG),), phase="Downloading"), 100, [], id="it downloads"),
        pytest.param(Run(uses=((120, HUNG),), phase="Uploading"), 100, [], id="it uploads"),
        pytest.param(Run(uses=HANGS, count=1), 120, [], id="$4.89 an hour"),
        pytest.param(
            Run(uses=((120, (10.0, None)),), instance="ml.m5.4xlarge", count=6),
            60,
            ["idle"],
            id="CPU hosts",
        ),
        pytest.param(
            Run(uses=HANGS, more={"CreationTime": NOON.isoformat()}),
            120,
            [],
            id="Describe answers with another run",
        ),
        pytest.param(Run(uses=HANGS, more={"TrainingJobStatus": "Stopping"}), 120, [], id="stops"),
        pytest.param(
            Run(uses=HANGS, more={"TrainingJobStatus": "Completed"}), 120, [], id="it has ended"
        ),
        pytest.param(Run(uses=HANGS, fails=JobNotFound("gone")), 120, [], id="it is deleted"),
    ],
)
def test_a_job_that_does_nothing(run: Run, minute: int, said: list[str]) -> None:
    """Every host, for 45 known minutes, while its own code runs."""
    assert Watch(run).said(minute) == said


def test_it_is_told_once_then_its_work_once_and_three_times_at_most() -> None:
    """A new message needs work in between; also work that came and went between two sweeps."""
    hang, work, blip = (60, HUNG), (30, BUSY), (6, BUSY)
    watch = Watch(Run(uses=(work, hang, work, hang, blip, hang, work, hang)))
    kinds_by_minute = {
        minute: kinds for minute in range(0, 350, 15) if (kinds := watch.said(minute))
    }
    assert kinds_by_minute == {
        90: ["idle"],
        105: ["at-work"],
        180: ["idle"],
        240: ["idle"],
        255: ["at-work"],
    }
    first, over, again, *_ = (card.splitlines()[0] for card in watch.cards)
    who = "2 x ml.g4dn.12xlarge training job train"
    assert first == f"{who} has done no GPU work for 57 min: it costs $9.78 an hour"
    assert over == f"{who} is at work again after 1 h without work: it cost $9.78 meanwhile"
    assert again == f"{who} has again done no GPU work for 57 min: it costs $9.78 an hour"


LONGER = tuple(earlier(20_000 + n) for n in range(3))


@pytest.mark.parametrize(
    ("heads", "limit_s", "minute", "said"),
    [
        pytest.param((earlier(1_200),), 432_000, 61, ["long"], id="over three times the longest"),
        pytest.param((earlier(1_200),), 432_000, 60, [], id="three times"),
        pytest.param((earlier(180),), 432_000, 59, [], id="a test of 3 minutes before"),
        pytest.param((earlier(180),), 432_000, 60, ["long"], id="an hour after such a test"),
        pytest.param((earlier(1_000, instance_count=1),), 432_000, 99, [], id="on other instances"),
        pytest.param((earlier(1_000, status="Failed"),), 432_000, 99, [], id="only failed runs"),
        pytest.param(
            (earlier(9_000, status="Stopped", reason="limit reached"), earlier(1_000)),
            432_000,
            99,
            [],
            id="a limit let one run for long",
        ),
        pytest.param(LONGER, 14_400, 5, ["limit"], id="all runs needed longer than the limit"),
        pytest.param(LONGER[:2], 14_400, 5, [], id="two runs forecast nothing"),
        pytest.param((), 14_400, 211, ["limit"], id="half an hour is left"),
        pytest.param((), 14_400, 209, [], id="more is left"),
        pytest.param(
            tuple(earlier(13_000 + n) for n in range(3)), 14_400, 215, [], id="usually in time"
        ),
    ],
)
def test_a_run_that_takes_too_long(
    heads: tuple[AuditSummary, ...], limit_s: int, minute: int, said: list[str]
) -> None:
    """By its family, on the same instances; each once a run."""
    watch = Watch(Run(uses=((600, BUSY),), limit_s=limit_s), heads=heads)
    assert watch.said(minute) == said
    assert not said or watch.said(minute + 1) == []


def test_one_message_has_all_that_is_due() -> None:
    """A hung run that is also too long."""
    watch = Watch(Run(uses=HANGS), heads=(earlier(1_000),))
    assert watch.said(80) == ["idle+long"]
    assert (
        "It also: has run 4.8 times as long as its family's longest finished run" in watch.cards[0]
    )
    assert watch.said(120) == []


def test_the_card_has_the_money_the_limit_and_the_command() -> None:
    """Nobody but the reader runs it."""
    watch = Watch(Run(name="llm-7b", uses=HANGS, tags={"owner": "mara"}))
    watch.at(90)
    assert watch.cards[0].startswith(
        "2 x ml.g4dn.12xlarge training job llm-7b has done no GPU work for 57 min: it costs $9.78 "
        "an hour\n"
        "Seen: on every host no GPU worked, at most one core busy since 2026-05-20 12:30 UTC\n"
        "So far: $14.67 in 1 h 30 min\n"
        "Remaining: up to $1,158.93 more, 4 d 23 h until its limit\n"
        "Look first: aws logs tail /aws/sagemaker/TrainingJobs --log-stream-name-prefix llm-7b/ "
        "--since 2026-05-20T12:00:00Z --region us-east-1\n"
        f"Stop it, in account {ACCOUNT}: aws sagemaker stop-training-job "
        "--training-job-name llm-7b --region us-east-1\n"
        "Caveat: A run that waits for a query or for another job looks the same.\n"
    )


SPOT = {"EnableManagedSpotTraining": True}
PLAN = {
    "ResourceConfig": {
        "InstanceType": "ml.g4dn.12xlarge",
        "InstanceCount": 2,
        "TrainingPlanArn": "arn:aws:sagemaker:us-east-1:1:training-plan/p",
    }
}


@pytest.mark.parametrize(
    ("more", "costs"),
    [(SPOT, "it costs up to $9.78 an hour"), (PLAN, "it occupies 8 GPUs of prepaid capacity")],
)
def test_a_figure_says_what_it_is(more: Mapping[str, Any], costs: str) -> None:
    """Spot costs less, and prepaid hours have no price."""
    watch = Watch(Run(uses=HANGS, more=more))
    watch.at(90)
    assert costs in watch.cards[0].splitlines()[0]


IDLES = RunRecommendation("idle-middle", "", "", Severity.HIGH, amount=Decimal(50))
SNOOZE = Decision(
    recommendation_id(ACCOUNT, REGION, FAMILY, IDLES),
    DecisionAction.SNOOZE,
    "ana",
    NOON - HOUR,
    date(2026, 6, 1),
)
EXEMPT = FamilyExemption("idle-middle", None, Exemption("ana", None, "it waits"))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"disabled_rules": frozenset({"idle-middle"})}, id="the rule is off"),
        pytest.param({"exemptions": (EXEMPT,)}, id="the policy accepts it"),
    ],
)
def test_the_policy_silences(changes: Mapping[str, Any]) -> None:
    """By the rule that says the same of a finished job."""
    assert Watch(Run(uses=HANGS), policy=replace(Policy(), **changes)).said(90) == []


def test_a_tag_and_a_snooze_silence() -> None:
    """As they do an advice of a finished run."""
    tagged = Watch(Run(uses=HANGS, tags={"sageaudit:ignore": "idle-middle"}))
    assert tagged.said(90) == []
    snoozed = Watch(Run(uses=HANGS), heads=(earlier(100_000, advised=IDLES),))
    snoozed.decided.save_decision(SNOOZE)
    assert snoozed.said(90) == []


def test_it_goes_by_the_routes_and_the_all_clear_to_the_same_place() -> None:
    """The owner's channel, whatever the routes say later."""
    routes = Routes(("sns",), (Route(rule="idle-middle", channels=("vision",)),))
    channels = {**Policy().channels, "vision": ChannelConfig("slack", "sageaudit/channel/vision")}
    policy = replace(Policy(), channels=channels, routes=routes)
    watch = Watch(Run(uses=((30, BUSY), (60, HUNG), (60, BUSY))), policy=policy)
    assert [said.destination.channels for said in watch.at(90).messages] == [("vision",)]
    watch.policy = replace(policy, routes=Routes())
    assert [said.destination.channels for said in watch.at(120).messages] == [("vision",)]


def test_a_cheap_job_is_described_once() -> None:
    """What it costs does not change; its metrics are never read."""
    watch = Watch(Run(name="cheap", count=1, uses=HANGS), Run(name="dear", uses=HANGS))
    looked = [watch.at(minute).checked_count for minute in (15, 30, 60, 120)]
    assert looked == [1, 1, 1, 1]
    assert watch.asked == {"describe cheap": 1, "describe dear": 4, "read dear": 2}


def test_one_that_fails_stops_no_other() -> None:
    """It is looked at again at the next sweep."""
    failing = Run(name="first", uses=HANGS, fails=Throttled("DescribeTrainingJob is throttled"))
    watch = Watch(failing, Run(name="second", uses=HANGS))
    done = watch.at(90)
    assert isinstance(done.error, Throttled)
    assert [said.job for said in done.messages] == ["second"]
    failing.fails = None
    assert [said.job for said in watch.at(105).messages] == ["first"]


def test_of_two_sweeps_at_once_one_tells() -> None:
    """Both have read the same state: the second one's condition fails."""
    watch = Watch(Run(uses=HANGS))
    state = watch.ledger.watch_state(key_of(watch.runs_there["train"].list_jobs))
    assert watch.said(90) == ["idle"]
    notices_before = dict(watch.ledger.notices)
    with mock.patch.object(watch.ledger, "watch_state", return_value=state):
        assert watch.said(90) == []
    assert watch.ledger.notices == notices_before


SPOT_LEFT = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 432_000, "MaxWaitTimeInSeconds": 432_000},
}


@pytest.mark.parametrize("phase", ["Interrupted", "Uploading", "Stopping"])
def test_a_job_that_is_not_at_work_neither_nears_its_limit_nor_runs_too_long(phase: str) -> None:
    """It costs nothing, or ends by itself."""
    transitions = [
        {"Status": name, "StartTime": (NOON + minute * MINUTE).isoformat()}
        for name, minute in (("Training", 0), (phase, 220))
    ]
    run = Run(phase=phase, limit_s=14_400, more={"SecondaryStatusTransitions": transitions})
    watch = Watch(run, heads=(earlier(1_200),))
    assert watch.said(230) == []


def test_an_all_clear_after_a_wait_has_no_cost() -> None:
    """An interrupted spot job waited between the message and its work."""
    run = Run(uses=((30, BUSY), (60, HUNG), (30, NOTHING), (60, BUSY)), more=SPOT)
    watch = Watch(run)
    assert watch.said(90) == ["idle"]
    phases = (("Training", 0), ("Interrupted", 90), ("Training", 120))
    transitions = [
        {"Status": name, "StartTime": (NOON + minute * MINUTE).isoformat()}
        for name, minute in phases
    ]
    run.more = {**SPOT, "SecondaryStatusTransitions": transitions}
    assert watch.said(140) == ["at-work"]
    assert watch.cards[-1].splitlines()[0].endswith("training job train is at work again")


def test_the_run_time_limit_counts_a_repeated_download() -> None:
    """It is not charged, and the instances run: 20 of 60 minutes are left, not 30."""
    first, train, again, rest = phases(
        ("Downloading", 600), ("Training", 600), ("Downloading", 600), ("Training", 600)
    )
    run = job(
        status="InProgress",
        purchase=Purchase.SPOT,
        max_runtime_s=3600,
        phases=(first, train, replace(again, billed=False, is_repeated=True), rest),
    )
    assert not_none(next_limit(run, FinishedRuns(), NOON)).left_s == 1200


def test_the_limit_of_a_spot_jobs_whole_time_is_named() -> None:
    """It counts waiting, and ends the job first."""
    watch = Watch(
        Run(
            uses=((900, BUSY),),
            more={
                **SPOT_LEFT,
                "StoppingCondition": {
                    "MaxRuntimeInSeconds": 432_000,
                    "MaxWaitTimeInSeconds": 14_400,
                },
            },
        )
    )
    assert watch.said(215) == ["limit"]
    assert "min left until its waiting limit" in watch.cards[0].splitlines()[0]
    assert "Next: copy checkpoints out, or start the next run with a higher limit" in watch.cards[0]


def test_a_job_that_does_nothing_is_not_told_to_take_a_higher_limit() -> None:
    """It would only wait longer."""
    limits = {"MaxRuntimeInSeconds": 432_000, "MaxWaitTimeInSeconds": 14_400}
    watch = Watch(
        Run(uses=((60, BUSY), (900, HUNG)), more={**SPOT_LEFT, "StoppingCondition": limits})
    )
    assert "limit" in watch.said(215)[-1]
    assert "higher limit only lets it wait longer" in watch.cards[-1]
    assert "start the next run" not in watch.cards[-1]


def test_one_message_goes_where_each_of_its_kinds_goes() -> None:
    """And says that all may be lost."""
    routes = Routes(("sns",), (Route(rule="limit-hit", channels=("vision",)),))
    channels = {**Policy().channels, "vision": ChannelConfig("slack", "sageaudit/channel/vision")}
    policy = replace(Policy(), channels=channels, routes=routes)
    watch = Watch(Run(uses=HANGS, limit_s=6_000), policy=policy)
    [message] = watch.at(90).messages
    assert message.kinds == ("idle", "limit")
    assert (message.destination.channels, message.has_no_route) == (("sns", "vision"), False)
    assert "all may be lost" in watch.cards[0]


def test_work_again_does_not_lead_where_a_limit_nears() -> None:
    """The commands are shown."""
    run = Run(uses=((30, BUSY), (60, HUNG), (60, BUSY)))
    watch = Watch(run)
    watch.at(90)
    run.limit_s = 7_500
    assert watch.said(110) == ["limit+at-work"]
    assert "Stop it" in watch.cards[-1]


def test_a_price_that_was_missing_is_looked_for_again() -> None:
    """One GPU less than is watched without a price, until the price is there."""
    watch = Watch(Run(uses=HANGS, instance="ml.g4dn.12xlarge", count=2))
    watching = replace(watch.policy.watch or WatchSettings(), gpus_unpriced=9)
    watch.policy = replace(watch.policy, watch=watching)
    with mock.patch(
        "sageaudit.workflows.watch.running_job.cluster_usd_per_hour", return_value=None
    ):
        assert watch.said(90) == []
    assert watch.said(105) == ["idle"]


def test_a_bug_with_one_job_stops_no_other() -> None:
    """It is a defect, with its error."""
    first, second = Run(name="first", uses=HANGS), Run(name="second", uses=HANGS)
    first.fails = cast("Any", ZeroDivisionError())
    done = Watch(first, second).at(90)
    assert [(arn, type(error)) for arn, error in done.defects] == [
        (first.list_jobs.ref.arn, ZeroDivisionError)
    ]
    assert [said.job for said in done.messages] == ["second"]


def test_denied_metrics_are_a_failure_and_the_limit_is_still_told() -> None:
    """A watch that sees nothing is not silent."""
    run = Run(uses=(), limit_s=6_000)
    watch = Watch(run)
    denied = measure(
        parse(run.describe(), {}, account=ACCOUNT, region=REGION),
        [],
        TYPES,
        missing_reason=MissingMetrics(METRIC_DENIED_CODE, "cloudwatch:GetMetricData is denied"),
    )
    with mock.patch.object(watch, "read", return_value=denied):
        done = watch.at(90)
    assert isinstance(done.error, AccessDenied)
    assert [said.kinds for said in done.messages] == [("limit",)]


def test_what_there_is_no_time_for_is_counted() -> None:
    """They are looked at by a later sweep."""
    deps = mock.Mock(clock=lambda: NOON, is_out_of_time=lambda: True)
    rows = [Run(name).list_jobs for name in ("a", "b")]
    checks = check_running_jobs(deps, rows, InlineWorkers())
    assert [check.was_out_of_time for check in checks] == [True, True]
