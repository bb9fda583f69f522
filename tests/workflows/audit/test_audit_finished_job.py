"""One job's end, told as a story: what the flow asks, waits for and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import JobKey, Verdict
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.usage.measurements import Missing
from sageaudit.errors import AccessDenied, JobNotFound, RejectedEvent, Throttled, Unavailable
from sageaudit.workflows.audit.attempt import (
    AuditDependencies,
    Audited,
    Caller,
    Dropped,
    Later,
    Outcome,
    Repeated,
    Wait,
)
from sageaudit.workflows.audit.run import audit_finished_job
from tests.fakes.dependencies import SaidBuckets, SaidJobs, SaidMetrics, dependencies, ended
from tests.fakes.due import due
from tests.fakes.jobs import training_answer, transition

END = datetime(2026, 5, 20, 11, 0, tzinfo=UTC)
CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
FIVE, TWENTY = END + timedelta(minutes=5), END + timedelta(minutes=20, seconds=10)
"""The queue's delay after the end, and one delivery of 15 minutes later."""
NAME = "train-vision"
FIRST: Mapping[Wait, int] = {}
"""A first delivery: nothing was waited for."""
WAITED: Mapping[Wait, int] = dict.fromkeys(Wait, 99)
"""All that may be waited for was."""
NEVER_STARTED: dict[str, Any] = {
    "TrainingJobStatus": "Failed",
    "TrainingStartTime": None,
    "TrainingEndTime": None,
    "TrainingTimeInSeconds": None,
    "BillableTimeInSeconds": None,
    "SecondaryStatusTransitions": [],
}


def answered(*answers: Any, **more: Any) -> SaidJobs:
    """SageMaker with these answers for the one job."""
    return SaidJobs({NAME: list(answers) or [training_answer()]}, **more)


def audit(
    of: AuditDependencies,
    now: datetime = FIVE,
    waited: Mapping[Wait, int] | None = FIRST,
    event: JobEnded | None = None,
) -> Outcome:
    """One delivery; a person's command where it cannot wait."""
    caller = Caller.PERSON if waited is None else Caller.DELIVERY
    return audit_finished_job(event or ended(NAME), of, now=now, caller=caller, waited=waited or {})


def done(
    of: AuditDependencies, now: datetime = FIVE, waited: Mapping[Wait, int] | None = FIRST
) -> AuditDocument:
    """The document of a delivery that ends in a record."""
    result = audit(of, now, waited)
    assert isinstance(result, Audited), result
    return result.document


def kept(of: AuditDependencies) -> AuditDocument:
    """What the history holds of the job."""
    document = of.history.audit(JobKey(ended(NAME).ref.arn, CREATED))
    assert document is not None
    return document


def test_a_job_that_ended_is_priced_judged_and_recorded() -> None:
    """Two hosts of ml.g4dn.xlarge for an hour: 2 x $0.736."""
    of = dependencies(answered(tag_answer={"owner": "ana"}))
    document = done(of)
    assert document["bill"]["total_usd"] == Decimal("1.472")
    assert (document["job"]["owner"], document["job"]["name"]) == ("ana", NAME)
    assert (document["audit"]["settled"], document["audit"]["due_at"]) == (True, None)
    assert document["audit"]["coverage"]["hosts"] == 2
    assert kept(of)["bill"] == document["bill"]
    assert document["idle_capacity"] is not None
    assert kept(of)["idle_capacity"] == document["idle_capacity"]


def test_a_second_delivery_changes_nothing() -> None:
    """Fifty times the same event: one version."""
    of = dependencies(answered())
    results = [audit(of) for _ in range(50)]
    assert isinstance(results[0], Audited)
    assert results[0].recorded.verdict is Verdict.RECORDED
    assert all(isinstance(result, Repeated) for result in results[1:])
    head = of.history.head(JobKey(ended(NAME).ref.arn, CREATED))
    assert head is not None
    assert head.version == 1


def test_the_event_is_only_a_hint() -> None:
    """Nothing is priced from what it says."""
    forged = ended(NAME, ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 99})
    result = audit(dependencies(answered()), event=forged)
    assert isinstance(result, Audited)
    assert result.document["bill"]["total_usd"] == Decimal("1.472")


LATE = SaidMetrics(minutes=10)


def test_late_metrics_are_asked_for_again_once() -> None:
    """Ten of 48 minutes, five minutes after the end: come back in a quarter of an hour."""
    result = audit(dependencies(answered(), LATE))
    assert isinstance(result, Later)
    assert result.delay_s == 900


def unknown_of(rule: str, document: AuditDocument) -> str:
    """Why a rule could not judge, by its code."""
    [code] = [row["code"] for row in document["unknown"] if row["rule"] == rule]
    return code


def test_metrics_that_stay_late_leave_the_audit_unsettled() -> None:
    """The second delivery comes 20 minutes after the end: recorded, with a second look planned."""
    of = dependencies(answered(), LATE)
    assert isinstance(audit(of), Later)
    document = done(of, TWENTY, waited=WAITED)
    assert document["audit"]["settled"] is False
    due_at = document["audit"]["due_at"]
    assert due_at is not None
    assert datetime.fromisoformat(due_at) > TWENTY
    assert unknown_of("gpu-underused", document) == "coverage_low"
    [head] = due(of.history, TWENTY + timedelta(days=1))
    assert head.name == NAME


def test_metrics_that_came_settle_the_audit() -> None:
    """The second delivery finds them."""
    metrics = SaidMetrics(minutes=10)
    of = dependencies(answered(), metrics)
    assert isinstance(audit(of), Later)
    metrics.minutes = 60
    assert done(of, TWENTY, waited=WAITED)["audit"]["settled"] is True


def test_an_old_job_has_the_metrics_that_it_will_have() -> None:
    """A replay of last month is audited at once and settled."""
    document = done(dependencies(answered(), LATE), END + timedelta(days=30))
    assert document["audit"]["settled"] is True


def test_a_command_line_takes_what_is_there_now() -> None:
    """It may not ask for another delivery; shortly after the end it says unsettled."""
    assert done(dependencies(answered(), LATE), FIVE, waited=None)["audit"]["settled"] is False


def test_a_short_run_does_not_wait_for_points_that_no_rule_needs() -> None:
    """Under 15 minutes nothing is judged by metrics anyway."""
    short = training_answer(
        TrainingEndTime="2026-05-20T10:14:59Z",
        TrainingTimeInSeconds=899,
        BillableTimeInSeconds=899,
        SecondaryStatusTransitions=[transition("Training", "10:00:00", "10:14:59")],
    )
    assert isinstance(audit(dependencies(answered(short), SaidMetrics(minutes=1))), Audited)


def test_denied_metrics_are_named_and_not_waited_for() -> None:
    """The audit stands without them."""
    denied = Missing("metric_denied", "cloudwatch:GetMetricData is not permitted")
    document = done(dependencies(answered(), SaidMetrics(missing=denied)))
    assert document["audit"]["settled"] is True
    assert document["bill"]["complete"] is True
    assert unknown_of("gpu-underused", document) == "metric_denied"
    assert any("GetMetricData" in line for line in document["audit"]["coverage"]["missing"])


def test_denied_tags_are_named_and_the_events_stand_in() -> None:
    """Owner and family still come out where the event carries them."""
    refused = AccessDenied("sagemaker:ListTags", "sagemaker:ListTags is not permitted.")
    result = audit(
        dependencies(answered(tag_answer=refused)), event=ended(NAME, Tags={"owner": "ana"})
    )
    assert isinstance(result, Audited)
    assert result.document["job"]["owner"] == "ana"
    assert any("sagemaker:ListTags" in s for s in result.document["audit"]["coverage"]["missing"])


@pytest.mark.parametrize(
    "refusal",
    [
        AccessDenied("sagemaker:DescribeTrainingJob", "not permitted"),
        Throttled("slow down"),
        Unavailable("no answer"),
    ],
)
def test_a_job_that_cannot_be_described_is_raised(refusal: Exception) -> None:
    """The queue brings it back; nothing is recorded."""
    of = dependencies(answered(refusal))
    with pytest.raises(type(refusal)):
        audit(of)
    assert of.history.head(JobKey(ended(NAME).ref.arn, CREATED)) is None


@pytest.mark.parametrize("refusal", [Throttled("slow down"), Unavailable("no answer")])
def test_tags_that_are_throttled_are_waited_for(refusal: Exception) -> None:
    """They decide family and owner: it waits an hour and more, each time longer."""
    of = dependencies(answered(tag_answer=refusal))
    delays: list[int] = []
    while isinstance(result := audit(of, waited={Wait.TAGS: len(delays)}), Later):
        assert result.wait is Wait.TAGS
        delays.append(result.delay_s)
    assert (delays[0], max(delays)) == (60, 900)
    assert 3600 < sum(delays) < 2 * 3600


@pytest.mark.parametrize("waited", [WAITED, None])
def test_without_its_tags_an_audit_is_unsettled(waited: Mapping[Wait, int] | None) -> None:
    """It says what was not read, and is looked at again: its family may be another."""
    document = done(dependencies(answered(tag_answer=Throttled("slow down."))), TWENTY, waited)
    assert document["audit"]["settled"] is False
    assert document["audit"]["due_at"] is not None
    assert "tags: slow down" in document["audit"]["coverage"]["missing"]


def test_a_job_that_is_not_found_gets_a_minute() -> None:
    """Describe may lag behind the event."""
    result = audit(dependencies(answered(JobNotFound("there is no training job"))))
    assert isinstance(result, Later)
    assert result.delay_s == 60


@pytest.mark.parametrize("waited", [WAITED, None])
def test_a_job_that_is_gone_is_recorded_as_unauditable(waited: Mapping[Wait, int] | None) -> None:
    """With its reason; every figure is unknown, none is 0."""
    of = dependencies(answered(JobNotFound("there is no training job train-vision")))
    document = done(of, FIVE, waited)
    assert document["unauditable"] == "there is no training job train-vision"
    assert document["bill"]["total_usd"] is None
    assert document["avoidable_usd"] is None
    assert kept(of)["unauditable"] == document["unauditable"]
    head = of.history.head(JobKey(ended(NAME).ref.arn, CREATED))
    assert head is not None
    assert head.unauditable == document["unauditable"]
    assert head.facts is None  # nothing that the family's next runs could be compared with


def test_a_job_that_came_back_is_audited_after_all() -> None:
    """Gone at first, described on a later delivery: the real audit stands."""
    of = dependencies(answered(JobNotFound("gone"), training_answer()))
    done(of, FIVE, waited=WAITED)
    assert done(of, TWENTY, waited=WAITED)["unauditable"] is None
    assert kept(of)["unauditable"] is None


def test_an_answer_that_cannot_be_read_is_recorded_with_its_key() -> None:
    """It is asked for twice more, as a broken answer heals; then it does not come back for ever."""
    broken = dependencies(answered(*[training_answer(ResourceConfig="ml.m5.large")] * 3))
    for times in (0, 1):
        assert isinstance(audit(broken, FIVE, {Wait.NOT_FOUND: times}), Later)
    document = done(broken, waited={Wait.NOT_FOUND: 2})
    assert document["unauditable"] is not None
    assert "ResourceConfig" in document["unauditable"]


def test_a_job_under_deletion_is_unauditable() -> None:
    """Its metadata is going."""
    document = done(dependencies(answered(training_answer(TrainingJobStatus="Deleting"))))
    assert document["unauditable"] == "its status is Deleting"


def test_an_answer_behind_its_event_gets_a_minute() -> None:
    """Describe still says InProgress."""
    behind = training_answer(TrainingJobStatus="InProgress")
    of = dependencies(answered(behind, training_answer()))
    result = audit(of)
    assert isinstance(result, Later)
    assert result.delay_s == 60
    assert done(of, waited=WAITED)["bill"]["complete"] is True


def test_an_answer_that_stays_behind_is_unsettled_with_a_second_look() -> None:
    """Recorded as far as it goes: incomplete, to be looked at again."""
    document = done(
        dependencies(answered(training_answer(TrainingJobStatus="InProgress"))), waited=WAITED
    )
    assert (document["bill"]["complete"], document["audit"]["settled"]) == (False, False)
    assert document["audit"]["due_at"] is not None


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
    document = done(dependencies(answered(still_running())), waited=WAITED)
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


def test_an_open_warm_pool_is_looked_at_again_at_its_end() -> None:
    """Available five minutes after the end: due when the keep-alive ends."""
    document = done(dependencies(answered(pooled("Available", 280)), SaidMetrics(use=USED)))
    assert document["audit"]["settled"] is False
    assert document["audit"]["due_at"] == "2026-05-20T11:30:00Z"
    # 280 s of $0.23 so far
    [line] = [line for line in document["bill"]["lines"] if line["item"] == "warm_pool"]
    assert line["usd"] == Decimal("0.017889")


def test_late_metrics_do_not_put_off_the_end_of_the_pool() -> None:
    """Two reasons to look again: the pool's own end comes before the hour for metrics."""
    of = dependencies(answered(pooled("Available", 280)), LATE)
    assert isinstance(audit(of), Later)
    document = done(of, TWENTY, waited=WAITED)
    assert document["audit"]["settled"] is False
    assert document["audit"]["due_at"] == "2026-05-20T11:30:00Z"


def test_the_second_look_amends_the_same_record() -> None:
    """Terminated after the whole half hour: version 2, settled, the pool at its full cost."""
    of = dependencies(answered(pooled("Available", 280), pooled("Terminated", 1800)),
                SaidMetrics(use=USED))  # fmt: skip
    done(of)
    document = done(of, END + timedelta(minutes=31), waited=None)
    assert (document["audit"]["settled"], document["audit"]["due_at"]) == (True, None)
    head = of.history.head(JobKey(ended(NAME).ref.arn, CREATED))
    assert head is not None
    assert (head.version, head.due_at) == (2, None)
    [line] = [line for line in kept(of)["bill"]["lines"] if line["item"] == "warm_pool"]
    assert line["usd"] == Decimal("0.115")


def test_a_keep_alive_without_pool_is_settled_once_it_has_run_out() -> None:
    """A quota of 0 gives no pool: no status will ever come."""
    of = dependencies(answered(pooled(None, None)), SaidMetrics(use=USED))
    first = done(of)
    assert (first["audit"]["settled"], first["audit"]["due_at"]) == (False, "2026-05-20T11:30:00Z")
    later = done(of, END + timedelta(minutes=31), waited=None)
    assert (later["audit"]["settled"], later["audit"]["due_at"]) == (True, None)


def test_a_run_that_never_started_is_recorded_at_no_cost() -> None:
    """Failed for capacity: 0, complete, settled, no finding."""
    never = training_answer(TrainingJobStatus="Failed", SecondaryStatus="Failed")
    for key in ("TrainingStartTime", "TrainingEndTime", "TrainingTimeInSeconds",
                "BillableTimeInSeconds"):  # fmt: skip
        del never[key]
    never["SecondaryStatusTransitions"] = [transition("Starting", "09:58:00", "10:13:00")]
    none = SaidMetrics(missing=Missing("metric_missing", "the job's own code did not run"))
    document = done(dependencies(answered(never), none))
    assert (document["bill"]["total_usd"], document["bill"]["complete"]) == (0, True)
    assert document["findings"] == []
    assert document["audit"]["settled"] is True


def test_a_bad_exemption_tag_is_ignored_with_a_warning() -> None:
    """It stands among what could not be read."""
    of = dependencies(answered(tag_answer={"sageaudit:ignore": "gpu-underused until=soon"}),
                SaidMetrics(use={"cpu": 60, "memory": 60, "gpu": 5}))  # fmt: skip
    document = done(of)
    assert any("sageaudit:ignore" in line for line in document["audit"]["coverage"]["missing"])
    assert [f["exempt"] for f in document["findings"] if f["rule"] == "gpu-underused"] == [None]


def test_a_tag_that_asks_for_more_than_it_may_is_said() -> None:
    """It holds for the rules that it may accept; the lost dollars stay, and the audit says why."""
    failed = training_answer(
        TrainingJobStatus="Failed",
        FailureReason="AlgorithmError: exit code: 1",
        ModelArtifacts=None,
    )
    tag = {"sageaudit:ignore": "failed-spend spot-not-used"}
    document = done(dependencies(answered(failed, tag_answer=tag)))
    by_rule = {found["rule"]: found["exempt"] for found in document["findings"]}
    assert by_rule["failed-spend"] is None
    assert document["lost_usd"] == Decimal("1.472")
    [said] = [line for line in document["audit"]["coverage"]["missing"] if "may_accept" in line]
    assert "ignored for failed-spend:" in said


@pytest.mark.parametrize(
    ("replayed", "waited"), [(True, FIRST), (True, WAITED), (True, None), (False, FIRST)]
)
def test_a_name_that_nobody_knows_leaves_no_row(
    waited: Mapping[Wait, int] | None, *, replayed: bool
) -> None:
    """Of a person's event nothing is recorded; SageMaker's own waits first."""
    of = dependencies(answered(JobNotFound("there is no training job")))
    result = audit(of, waited=waited, event=replace(ended(NAME), replayed=replayed))
    assert isinstance(result, Dropped if replayed else Later)
    assert of.history.head(JobKey(ended(NAME).ref.arn, CREATED)) is None


def test_a_job_of_another_account_is_refused_before_anything_is_kept() -> None:
    """Describe answers with another ARN: neither tags nor metrics are asked for."""
    arn = "arn:aws:sagemaker:us-east-1:999988887777:training-job/train-vision"
    of = dependencies(answered(training_answer(TrainingJobArn=arn)))
    with pytest.raises(RejectedEvent) as caught:
        audit(of)
    assert caught.value.code == "answer_disagrees"
    assert of.history.head(JobKey(arn, CREATED)) is None


def test_the_earlier_run_of_a_name_is_recorded_under_its_own_key() -> None:
    """Nothing of the later run is touched; an earlier run with an audit keeps it."""
    later = training_answer(CreationTime="2026-05-21T09:58:00Z")
    of = dependencies(answered(later))
    document = done(of)
    assert "the run that was created at 2026-05-21 09:58:00 UTC" in (document["unauditable"] or "")
    assert of.history.head(JobKey(ended(NAME).ref.arn, CREATED + timedelta(days=1))) is None
    known = dependencies(answered(training_answer(), later))
    done(known)
    assert isinstance(audit(known), Repeated)
    assert kept(known)["unauditable"] is None


def test_secrets_of_a_run_are_not_kept() -> None:
    """Neither in the document nor in what is kept to judge it again."""
    answer = training_answer(
        HyperParameters={"key": "hunter2"},
        Environment={"TOKEN": "hunter2"},
        TrainingJobStatus="Failed",
        FailureReason="AlgorithmError: password=hunter2",
    )
    of = dependencies(answered(answer))
    document = done(of)
    detail = of.history.detail(JobKey(ended(NAME).ref.arn, CREATED))
    assert detail is not None
    assert "hunter2" not in repr(document)
    assert "hunter2" not in repr(detail)
    assert detail.series


def far_answer(**changes: Any) -> dict[str, Any]:
    """A job whose model goes to a bucket in another region."""
    output = {"OutputDataConfig": {"S3OutputPath": "s3://far-models/out"}}
    return training_answer(**output, **changes)


def test_a_bucket_in_another_region_is_found_and_its_region_kept() -> None:
    """S3 is asked for the job's buckets; judging the stored run again needs no S3."""
    buckets = SaidBuckets({"far-models": "eu-west-1"})
    of = dependencies(answered(far_answer()), buckets=buckets)
    result = audit(of)
    assert isinstance(result, Audited)
    assert "far-models" in buckets.asked
    [finding] = [f for f in result.document["findings"] if f["rule"] == "cross-region-data"]
    assert (finding["severity"], finding["bucket"]) == ("info", "none")
    assert "far-models in eu-west-1" in finding["summary"]
    detail = of.history.detail(result.key)
    assert detail is not None
    again = {one.name: one.region for one in parse(detail.describe, detail.tags).buckets}
    assert again["far-models"] == "eu-west-1"


def test_a_job_that_still_runs_or_never_ran_is_not_asked_for() -> None:
    """It is audited again, or moved no data."""
    for change in ({"TrainingJobStatus": "InProgress"}, NEVER_STARTED):
        buckets = SaidBuckets()
        none = SaidMetrics(missing=Missing("metric_missing", "no points"))
        of = dependencies(answered(far_answer(**change)), none, buckets=buckets)
        audit(of, waited=None)
        assert buckets.asked == []


def test_an_audit_does_without_s3() -> None:
    """The rule is unknown; nothing else changes."""
    document = done(dependencies(answered(far_answer())))
    codes = {row["rule"]: row["code"] for row in document["unknown"]}
    assert codes["cross-region-data"] == "bucket_region_unread"
    assert document["bill"]["total_usd"]
