"""One job's end, told as a story: what the flow asks, waits for and records."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.usage.measurements import MissingMetrics
from sageaudit.errors import AccessDenied, JobNotFound, Throttled, Unavailable
from sageaudit.workflows.audit.attempt import (
    AuditDeferred,
    AuditOutcome,
    AuditRecorded,
    AuditTrigger,
    EventDropped,
    WaitReason,
)
from tests.fakes.audit_flow import END, KEY, NAME, AuditFlow, FakeMetrics
from tests.fakes.entries import due_audits
from tests.fakes.jobs import training_answer, transition

FIVE, TWENTY = END + timedelta(minutes=5), END + timedelta(minutes=20, seconds=10)
"""The queue's delay after the end, and one delivery of 15 minutes later."""
FIRST: Mapping[WaitReason, int] = {}
"""A first delivery: nothing was waited for."""
WAITED: Mapping[WaitReason, int] = dict.fromkeys(WaitReason, 99)
"""All that may be waited for was."""
NONE = MissingMetrics("metric_missing", "no points")
NEVER_STARTED: dict[str, Any] = {
    "TrainingJobStatus": "Failed",
    "TrainingStartTime": None,
    "TrainingEndTime": None,
    "TrainingTimeInSeconds": None,
    "BillableTimeInSeconds": None,
    "SecondaryStatusTransitions": [],
}


def audit(
    flow: AuditFlow,
    now: datetime = FIVE,
    waited: Mapping[WaitReason, int] | None = FIRST,
    **event: Any,
) -> AuditOutcome:
    """One delivery; a person's command where it cannot wait."""
    caller = AuditTrigger.PERSON if waited is None else AuditTrigger.DELIVERY
    return flow.deliver(now, caller=caller, waited=waited, **event)


def done(
    flow: AuditFlow, now: datetime = FIVE, waited: Mapping[WaitReason, int] | None = FIRST
) -> AuditDocument:
    """The document of a delivery that ends in a record."""
    result = audit(flow, now, waited)
    assert isinstance(result, AuditRecorded), result
    return result.document


def test_a_job_that_ended_is_priced_judged_and_recorded() -> None:
    """Two hosts of ml.g4dn.xlarge for an hour: 2 x $0.736."""
    flow = AuditFlow([training_answer()], tags={"owner": "ana"})
    document = done(flow)
    assert document["bill"]["total_usd"] == Decimal("1.472")
    assert (document["job"]["owner"], document["job"]["name"]) == ("ana", NAME)
    assert (document["audit"]["settled"], document["audit"]["due_at"]) == (True, None)
    assert document["audit"]["coverage"]["hosts"] == 2
    assert flow.document["bill"] == document["bill"]
    assert document["idle_capacity"] is not None
    assert flow.document["idle_capacity"] == document["idle_capacity"]


def test_the_event_is_only_a_hint() -> None:
    """Nothing is priced from what it says."""
    forged = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 99}
    result = audit(AuditFlow([training_answer()]), ResourceConfig=forged)
    assert isinstance(result, AuditRecorded)
    assert result.document["bill"]["total_usd"] == Decimal("1.472")


LATE = FakeMetrics(minutes=10)
GONE = JobNotFound("there is no training job train-vision")


@pytest.mark.parametrize(
    ("answer", "metrics", "delay_s"),
    [
        (training_answer(), LATE, 900),  # ten of 48 minutes are there
        (GONE, FakeMetrics(), 60),  # Describe may lag behind the event
        (training_answer(TrainingJobStatus="InProgress"), FakeMetrics(), 60),
    ],
    ids=["late metrics", "not found", "behind"],
)
def test_what_comes_late_is_waited_for(answer: Any, metrics: FakeMetrics, delay_s: int) -> None:
    """Five minutes after the end."""
    result = audit(AuditFlow([answer], metrics))
    assert isinstance(result, AuditDeferred)
    assert result.delay_s == delay_s


@pytest.mark.parametrize(
    ("now", "waited", "settled"), [(END + timedelta(days=30), FIRST, True), (FIVE, None, False)]
)
def test_who_cannot_wait_takes_what_is_there(
    now: datetime, waited: Mapping[WaitReason, int] | None, *, settled: bool
) -> None:
    """An old job has the metrics that it will have; a command shortly after the end says so."""
    document = done(AuditFlow([training_answer()], LATE), now, waited)
    assert document["audit"]["settled"] is settled


def unknown_of(rule: str, document: AuditDocument) -> str:
    """Why a rule could not judge, by its code."""
    [code] = [row["code"] for row in document["unknown"] if row["rule"] == rule]
    return code


def test_metrics_that_stay_late_leave_the_audit_unsettled() -> None:
    """The second delivery comes 20 minutes after the end: recorded, with a second look planned."""
    flow = AuditFlow([training_answer()], LATE)
    document = done(flow, TWENTY, waited=WAITED)
    assert document["audit"]["settled"] is False
    due_at = document["audit"]["due_at"]
    assert due_at is not None
    assert datetime.fromisoformat(due_at) > TWENTY
    assert unknown_of("gpu-underused", document) == "coverage_low"
    [head] = due_audits(flow.history, TWENTY + timedelta(days=1))
    assert head.job == NAME


def test_a_short_run_does_not_wait_for_points_that_no_rule_needs() -> None:
    """Under 15 minutes nothing is judged by metrics anyway."""
    short = training_answer(
        TrainingEndTime="2026-05-20T10:14:59Z",
        TrainingTimeInSeconds=899,
        BillableTimeInSeconds=899,
        SecondaryStatusTransitions=[transition("Training", "10:00:00", "10:14:59")],
    )
    assert isinstance(audit(AuditFlow([short], FakeMetrics(minutes=1))), AuditRecorded)


def test_denied_metrics_are_named_and_not_waited_for() -> None:
    """The audit stands without them."""
    denied = MissingMetrics("metric_denied", "cloudwatch:GetMetricData is not permitted")
    document = done(AuditFlow([training_answer()], FakeMetrics(missing=denied)))
    assert document["audit"]["settled"] is True
    assert document["bill"]["complete"] is True
    assert unknown_of("gpu-underused", document) == "metric_denied"
    assert any("GetMetricData" in line for line in document["audit"]["coverage"]["missing"])


@pytest.mark.parametrize(
    ("tags", "owner", "asked"),
    [
        ({"owner": "ana"}, "ana", False),
        ({"x": "y"}, None, False),
        ({}, None, True),
        (None, None, True),
    ],
)
def test_tags_of_the_event_are_not_asked_for(
    tags: Mapping[str, str] | None, owner: str | None, *, asked: bool
) -> None:
    """An event without any is no proof that there are none. Where they are denied, it is said."""
    refused = AccessDenied("sagemaker:ListTags", "sagemaker:ListTags is not permitted.")
    result = audit(AuditFlow([training_answer()], tags=refused), Tags=tags)
    assert isinstance(result, AuditRecorded)
    assert result.document["job"]["owner"] == owner
    missing = " ".join(result.document["audit"]["coverage"]["missing"])
    assert ("sagemaker:ListTags" in missing) is asked


@pytest.mark.parametrize("refusal", [Throttled("slow down"), Unavailable("no answer")])
def test_tags_that_are_throttled_are_waited_for(refusal: Exception) -> None:
    """They decide family and owner: it waits an hour and more, each time longer."""
    flow = AuditFlow([training_answer()], tags=refusal)
    delays: list[int] = []
    while isinstance(result := audit(flow, waited={WaitReason.TAGS: len(delays)}), AuditDeferred):
        assert result.wait_reason is WaitReason.TAGS
        delays.append(result.delay_s)
    assert (delays[0], max(delays)) == (60, 900)
    assert 3600 < sum(delays) < 2 * 3600


@pytest.mark.parametrize("waited", [WAITED, None])
def test_without_its_tags_an_audit_is_unsettled(waited: Mapping[WaitReason, int] | None) -> None:
    """It says what was not read, and is looked at again: its family may be another."""
    document = done(AuditFlow([training_answer()], tags=Throttled("slow down.")), TWENTY, waited)
    assert document["audit"]["settled"] is False
    assert document["audit"]["due_at"] is not None
    assert "tags: slow down" in document["audit"]["coverage"]["missing"]


@pytest.mark.parametrize("waited", [WAITED, None])
def test_a_job_that_is_gone_is_recorded_as_unauditable(
    waited: Mapping[WaitReason, int] | None,
) -> None:
    """With its reason; every figure is unknown, none is 0."""
    flow = AuditFlow([JobNotFound("there is no training job train-vision")])
    document = done(flow, FIVE, waited)
    assert document["unauditable"] == "there is no training job train-vision"
    assert document["bill"]["total_usd"] is None
    assert document["avoidable_usd"] is None
    assert flow.document["unauditable"] == document["unauditable"]
    head = flow.history.summary(KEY)
    assert head is not None
    assert head.unauditable == document["unauditable"]
    assert head.purchase is None  # nothing that the family's next runs could be compared with


def test_a_job_that_came_back_is_audited_after_all() -> None:
    """Gone at first, described on a later delivery: the real audit stands."""
    flow = AuditFlow([JobNotFound("gone"), training_answer()])
    done(flow, FIVE, waited=WAITED)
    assert done(flow, TWENTY, waited=WAITED)["unauditable"] is None
    assert flow.document["unauditable"] is None


def test_an_answer_that_cannot_be_read_is_recorded_with_its_key() -> None:
    """It is asked for twice more, as a broken answer heals; then it does not come back for ever."""
    broken = AuditFlow([training_answer(ResourceConfig="ml.m5.large")] * 3)
    for times in (0, 1):
        assert isinstance(audit(broken, FIVE, {WaitReason.NOT_FOUND: times}), AuditDeferred)
    document = done(broken, waited={WaitReason.NOT_FOUND: 2})
    assert document["unauditable"] is not None
    assert "ResourceConfig" in document["unauditable"]


def still_running() -> dict[str, Any]:
    """An answer of ten minutes Downloading, with Training since."""
    answer = training_answer(TrainingJobStatus="InProgress", SecondaryStatus="Training")
    for gone in ("TrainingEndTime", "TrainingTimeInSeconds", "BillableTimeInSeconds"):
        del answer[gone]
    answer["SecondaryStatusTransitions"] = [
        transition("Starting", "09:58:00", "10:00:00"),
        transition("Downloading", "10:00:00", "10:10:00"),
        transition("Training", "10:10:00"),
    ]
    return answer


def test_a_job_that_runs_is_audited_until_now() -> None:
    """65 minutes on two hosts of $0.736 an hour; what it cost so far is not what it will cost."""
    document = done(AuditFlow([still_running()]), waited=WAITED)
    assert document["bill"]["total_usd"] == (2 * Decimal("0.736") * 65 / 60).quantize(
        Decimal("0.000001")
    )
    assert [part["seconds"] for part in document["phases"]] == [120, 600, 55 * 60]
    assert (document["judged"], document["avoidable_usd"]) == ("no", None)
    assert (document["bill"]["complete"], document["audit"]["settled"]) == (False, False)


def pooled(status: str | None, retained: int | None) -> dict[str, Any]:
    """The answer with a keep-alive of half an hour."""
    answer = training_answer(
        ResourceConfig={
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": 1,
            "VolumeSizeInGB": 30,
            "KeepAlivePeriodInSeconds": 1800,
        }
    )
    if status:
        answer["WarmPoolStatus"] = {
            "Status": status,
            "ResourceRetainedBillableTimeInSeconds": retained,
        }
    return answer


USED = {"cpu": 60.0, "memory": 60.0}


@pytest.mark.parametrize("metrics", [FakeMetrics(use=USED), LATE], ids=["whole", "late"])
def test_an_open_warm_pool_is_looked_at_again_at_its_end(metrics: FakeMetrics) -> None:
    """Half an hour after the job, which is before the hour for late metrics: then it is amended."""
    flow = AuditFlow([pooled("Available", 280), pooled("Terminated", 1800)], metrics)
    document = done(flow, waited=WAITED)
    assert document["audit"]["settled"] is False
    assert document["audit"]["due_at"] == "2026-05-20T11:30:00Z"
    # 280 s of $0.23 so far
    [line] = [line for line in document["bill"]["lines"] if line["item"] == "warm_pool"]
    assert line["usd"] == Decimal("0.017889")
    document = done(flow, END + timedelta(minutes=31), waited=None)
    [line] = [line for line in flow.document["bill"]["lines"] if line["item"] == "warm_pool"]
    assert line["usd"] == Decimal("0.115")
    assert document["audit"]["settled"] is (metrics is not LATE)


def test_a_keep_alive_without_pool_is_settled_once_it_has_run_out() -> None:
    """A quota of 0 gives no pool: no status will ever come."""
    flow = AuditFlow([pooled(None, None)], FakeMetrics(use=USED))
    first = done(flow)
    assert (first["audit"]["settled"], first["audit"]["due_at"]) == (False, "2026-05-20T11:30:00Z")
    later = done(flow, END + timedelta(minutes=31), waited=None)
    assert (later["audit"]["settled"], later["audit"]["due_at"]) == (True, None)


@pytest.mark.parametrize(
    ("tag", "says"),
    [
        ("failed-spend until=soon", "sageaudit:ignore"),
        ("failed-spend spot-not-used", "may_accept"),
        ("failed-spend spot-not-used", "ignored for failed-spend:"),
    ],
)
def test_a_tag_that_is_bad_or_asks_for_more_than_it_may_is_said(tag: str, says: str) -> None:
    """It stands among what could not be read, and the lost dollars stay."""
    failed = training_answer(
        TrainingJobStatus="Failed",
        FailureReason="AlgorithmError: exit code: 1",
        ModelArtifacts=None,
    )
    document = done(AuditFlow([failed], tags={"sageaudit:ignore": tag}))
    by_rule = {found["rule"]: found["exempt"] for found in document["findings"]}
    assert by_rule["failed-spend"] is None
    assert document["lost_usd"] == Decimal("1.472")
    assert any(says in line for line in document["audit"]["coverage"]["missing"])


@pytest.mark.parametrize(
    ("replayed", "waited"), [(True, FIRST), (True, WAITED), (True, None), (False, FIRST)]
)
def test_a_name_that_nobody_knows_leaves_no_row(
    waited: Mapping[WaitReason, int] | None, *, replayed: bool
) -> None:
    """Of a person's event nothing is recorded; SageMaker's own waits first."""
    flow = AuditFlow([JobNotFound("there is no training job")])
    result = audit(flow, waited=waited, source="sageaudit.replay" if replayed else "aws.sagemaker")
    assert isinstance(result, EventDropped if replayed else AuditDeferred)
    assert flow.history.summary(KEY) is None


ODD: dict[str, dict[str, Any]] = {
    "no end": {"TrainingEndTime": None},
    "no times": NEVER_STARTED,
    "ended before it began": {"TrainingEndTime": "2017-12-31T00:00:00Z"},
    "began at its end": {"TrainingStartTime": "2026-05-20T11:00:00Z"},
    **{f"billed {n} s": {"BillableTimeInSeconds": n} for n in (0, -1, 10**15, 1.5, "NaN", 1e308)},
    "a type of tomorrow": {"ResourceConfig": {"InstanceType": "ml.next.96xlarge"}},
    "groups of it": {
        "ResourceConfig": {
            "InstanceGroups": [
                {"InstanceType": "ml.next.large", "InstanceCount": 1, "InstanceGroupName": "a"}
            ]
        }
    },
    "a training plan": {
        "ResourceConfig": {
            "InstanceType": "ml.p5.48xlarge",
            "InstanceCount": 1,
            "TrainingPlanArn": "plan/x",
        }
    },
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_an_answer_that_is_impossible_or_unknown_is_recorded(change: dict[str, Any]) -> None:
    """As unauditable, or with a bill that is at no price of 0; nothing is idle in it."""
    flow = AuditFlow([training_answer(**change)] * 3, FakeMetrics(missing=NONE))
    document = done(flow, END + timedelta(days=2), waited=WAITED)
    assert flow.document["bill"] == document["bill"]
    total, resources = document["bill"]["total_usd"], change.get("ResourceConfig")
    assert total is None or total >= 0
    assert not resources or not total or not document["bill"]["complete"]
    idle = {"idle-start", "idle-tail", "gpu-idle"}
    assert not idle & {item["rule"] for item in document["findings"]}


def test_a_run_that_never_started_is_recorded_at_no_cost() -> None:
    """Failed for capacity: 0, complete, settled, no finding."""
    document = done(AuditFlow([training_answer(**NEVER_STARTED)], FakeMetrics(missing=NONE)))
    assert (document["bill"]["total_usd"], document["bill"]["complete"]) == (0, True)
    assert document["findings"] == []
    assert document["audit"]["settled"] is True
