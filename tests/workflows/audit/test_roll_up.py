"""A tuning job's end: it waits for its children's audits and adds them up."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sums import Scope, sum_rows
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, MissingMetrics
from sageaudit.workflows.audit.attempt import (
    AlreadyAudited,
    AuditDeferred,
    AuditOutcome,
    AuditRecorded,
    AuditTrigger,
    WaitReason,
)
from tests.fakes.audit_flow import AuditFlow, FakeMetrics
from tests.fakes.jobs import ACCOUNT, REGION, training_answer

NOW = datetime(2026, 5, 20, 11, 5, tzinfo=UTC)
TUNING_ARN = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hyper-parameter-tuning-job/sweep"


def sweep(**counters: int) -> dict[str, Any]:
    """The tuning job's answer."""
    answer: dict[str, Any] = {
        "HyperParameterTuningJobName": "sweep",
        "HyperParameterTuningJobArn": TUNING_ARN,
        "HyperParameterTuningJobStatus": "Completed",
        "CreationTime": "2026-05-20T09:00:00Z",
        "HyperParameterTuningEndTime": "2026-05-20T11:00:00Z",
        "LastModifiedTime": "2026-05-20T11:00:00Z",
    }
    return answer | ({"TrainingJobStatusCounters": counters} if counters else {})


def trial(name: str, **changes: Any) -> dict[str, Any]:
    """One hour on one ml.g4dn.xlarge, started by the tuning job."""
    return training_answer(
        TrainingJobName=name,
        TuningJobArn=TUNING_ARN,
        ResourceConfig={"InstanceType": "ml.g4dn.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
        **changes,
    )


def flow_with_trials(tuning: dict[str, Any], **metrics: Any) -> AuditFlow:
    """The tuning job and three trials, the third of which failed."""
    answers = {
        "sweep": tuning,
        "trial-1": trial("trial-1"),
        "trial-2": trial("trial-2"),
        "trial-3": trial("trial-3", TrainingJobStatus="Failed", FailureReason="exit code: 1"),
    }
    return AuditFlow(answers, FakeMetrics(**metrics))


def tuned(flow: AuditFlow, waits: int | None = 0, now: datetime = NOW) -> AuditOutcome:
    """The tuning job's end, after so many waits of each reason; None: it may not wait."""
    caller = AuditTrigger.PERSON if waits is None else AuditTrigger.DELIVERY
    waited = dict.fromkeys(WaitReason, waits or 0)
    return flow.deliver(
        now, "sweep", JobKind.TUNING, caller=caller, waited=waited, CreationTime=None
    )


def summed(flow: AuditFlow, waits: int | None = 0) -> AuditRecorded:
    """The same where it ends in a record."""
    result = tuned(flow, waits)
    assert isinstance(result, AuditRecorded), result
    return result


def test_it_waits_for_its_children() -> None:
    """Two of three audits are there: a quarter of an hour, up to three times."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    flow.deliver_and_record(NOW, "trial-2")
    for waits in range(3):
        result = tuned(flow, waits)
        assert isinstance(result, AuditDeferred)
        assert (result.delay_s, result.explanation) == (900, "2 of 3 training jobs are audited")


def test_it_adds_its_children_up() -> None:
    """3 x $0.736, of which the failed one is lost; marked, settled, filed under its own ARN."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    for name in ("trial-1", "trial-2", "trial-3"):
        flow.deliver_and_record(NOW, name)
    result = summed(flow)
    document = result.document
    assert document["rollup"] is True
    assert document["bill"]["total_usd"] == Decimal("2.208")
    assert document["lost_usd"] == Decimal("0.736")
    assert (document["bill"]["complete"], document["audit"]["settled"]) == (True, True)
    assert document["job"]["family"] == TUNING_ARN
    family = RunQuery.for_family(ACCOUNT, REGION, TUNING_ARN)
    [head] = [head for head in flow.history.runs(family) if head.rollup]
    assert (head.job, head.total_usd) == ("sweep", Decimal("2.208"))
    assert head.purchase is None  # a sum is no run to compare with


def test_it_adds_no_dollars_of_its_children_to_its_family() -> None:
    """The children's own audits do."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    for name in ("trial-1", "trial-2", "trial-3"):
        flow.deliver_and_record(NOW, name)
    tuned(flow)
    rows = flow.history.daily_sums(
        Scope.FAMILY, NOW.date(), NOW.date(), account=ACCOUNT, name=TUNING_ARN
    )
    family = sum_rows(rows)
    assert (family.jobs, family.total_usd) == (3, Decimal("2.208"))
    assert family.avoidable_usd + family.lost_usd == Decimal("0.736")


@pytest.mark.parametrize("waits", [3, None])
def test_children_that_stay_away_leave_it_open(waits: int | None) -> None:
    """Recorded with what is there, unsettled, and a second look is planned."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    result = summed(flow, waits)
    document = result.document
    assert document["bill"]["missing"] == ["2 of 3 training jobs are not audited"]
    assert (document["bill"]["complete"], document["audit"]["settled"]) == (False, False)
    assert document["audit"]["due_at"] is not None


def test_a_second_roll_up_with_all_children_amends_the_first() -> None:
    """The late children count then."""
    flow = flow_with_trials(sweep(Completed=2, NonRetryableError=1))
    flow.deliver_and_record(NOW, "trial-1")
    first = summed(flow, None)
    flow.deliver_and_record(NOW, "trial-2")
    flow.deliver_and_record(NOW, "trial-3")
    second = summed(flow, None)
    assert (first.result.version, second.result.version) == (1, 2)
    assert second.document["bill"]["total_usd"] == Decimal("2.208")


def test_an_unknown_number_of_children_is_unknown() -> None:
    """No counters: nothing to wait for, and no sum of nothing."""
    flow = flow_with_trials(sweep())
    result = summed(flow)
    assert result.document["bill"]["total_usd"] is None
    assert result.document["bill"]["complete"] is False
    assert result.document["audit"]["settled"] is False


def test_a_tuning_job_that_launched_nothing_cost_nothing() -> None:
    """Its counters are 0: known and complete."""
    result = summed(flow_with_trials(sweep(Completed=0, NonRetryableError=0)))
    assert (result.document["bill"]["total_usd"], result.document["bill"]["complete"]) == (0, True)


def test_the_same_roll_up_twice_is_one_version() -> None:
    """A second delivery changes nothing."""
    flow = flow_with_trials(sweep(Completed=1))
    flow.deliver_and_record(NOW, "trial-1")
    first, second = tuned(flow), tuned(flow)
    assert isinstance(first, AuditRecorded)
    assert isinstance(second, AlreadyAudited)
    assert (first.result.version, second.summary.version) == (1, 1)


def test_another_tuning_jobs_children_are_not_its_own() -> None:
    """Only the family of its ARN counts."""
    answer = trial("trial-1") | {"TuningJobArn": TUNING_ARN + "-other"}
    flow = AuditFlow({"sweep": sweep(Completed=1), "trial-1": answer})
    flow.deliver_and_record(NOW, "trial-1")
    assert isinstance(tuned(flow), AuditDeferred)


class NoHosts:
    """A tuning job has no hosts of its own to read."""

    def read(self, job: Job, now: datetime) -> Measurements:
        return measure(
            job, (), {}, missing_reason=MissingMetrics("metric_missing", "it has no hosts")
        )


def test_a_tuning_job_that_still_runs_is_no_sum_yet() -> None:
    """Describe behind its event: nothing settled, no total, and a second look is due."""
    running = sweep(InProgress=2) | {"HyperParameterTuningJobStatus": "InProgress"}
    result = summed(AuditFlow({"sweep": running}, NoHosts()), waits=99)
    document = result.document
    assert document["rollup"] is True
    assert document["bill"]["total_usd"] is None
    assert (document["audit"]["settled"], document["findings"]) == (False, [])
    assert document["audit"]["due_at"] is not None
    assert {outcome["code"] for outcome in document["unknown"]} == {"job_not_finished"}
