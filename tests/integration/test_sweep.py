"""Sweeps on the local AWS: what no event told of is found, and what is due is audited again."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from local.recorded import RecordedJob
from local.requests import Send, http_answer
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepNotes
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import ListOfJobs
from sageaudit.domain.usage.measurements import RawSeries
from tests.fakes.due import due
from tests.integration.whole_flow import Scene, Steps, a_failed_job, recorded, scene, tuning_set

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ACCOUNT, REGION = "111122223333", "us-east-1"
TRAINING = ListOfJobs(ACCOUNT, REGION, JobKind.TRAINING)


def counted(one: Scene, name: str, function: str = "sweep") -> int:
    """The sum of a metric in a function's log."""
    lines = one.aws.functions[function].log.getvalue().splitlines()
    records = [json.loads(line) for line in lines if line.startswith("{") and "_aws" in line]
    return sum(int(record[name][0]) for record in records if name in record)


def lists_of(one: Scene) -> list[datetime]:
    """When a list was requested."""
    return one.aws.sagemaker.lists_requested


def moved(job: RecordedJob, by: timedelta, name: str | None = None) -> RecordedJob:
    """The same job at another time, and under another name."""
    answer: dict[str, Any] = _moved(job.describe, by)
    if name is not None:
        arn = f"{job.arn.rpartition('/')[0]}/{name}"
        answer |= {"TrainingJobName": name, "TrainingJobArn": arn}
    series = [replace(one, start=one.start + by) for one in job.series]
    return replace(job, describe=answer, series=tuple(series))


def _moved(value: Any, by: timedelta) -> Any:
    if isinstance(value, dict):
        return {key: _moved(item, by) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_moved(item, by) for item in value]
    if isinstance(value, str) and value[:2] == "20" and "T" in value[:11]:
        with suppress(ValueError):
            return (datetime.fromisoformat(value).astimezone(UTC) + by).isoformat()
    return value


def with_pool(job: RecordedJob, status: str, retained_s: int | None = None) -> RecordedJob:
    """The job with a warm pool that is kept for an hour."""
    said: dict[str, Any] = {"Status": status}
    if retained_s is not None:
        said["ResourceRetainedBillableTimeInSeconds"] = retained_s
    resources = {**job.describe["ResourceConfig"], "KeepAlivePeriodInSeconds": 3600}
    return replace(
        job, describe={**job.describe, "ResourceConfig": resources, "WarmPoolStatus": said}
    )


def test_a_job_whose_event_was_lost_is_audited_within_the_hour() -> None:
    """It is counted once, and told as any other."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.sagemaker.add(job)
        one.aws.advance(job.ended_at + HOUR)
        assert one.versions(job) == 1
        assert len(one.slack.posts) == 1
        one.aws.advance(job.ended_at + 2 * HOUR)
        assert counted(one, "ReconcilerFound") == 1
        assert counted(one, "JobsAudited", "audit") == 1
        assert not one.dead_letters()


def test_a_sweep_beside_an_event_on_its_way_finds_nothing() -> None:
    """A job that ends in the usual way is neither found nor missing."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.ends(job)
        one.aws.advance(job.ended_at + 3 * HOUR)
        assert counted(one, "JobsEnded") == 1
        assert counted(one, "ReconcilerFound") == counted(one, "JobsMissing") == 0
        assert counted(one, "DuplicateEvents", "audit") == 0


@pytest.mark.parametrize("operation", ["ListTags", "DescribeTrainingJob"])
def test_a_job_whose_audit_is_throttled_for_hours_is_missing_and_not_found(operation: str) -> None:
    """Its event came: it is not sent once more, and no alarm says that events are lost."""
    job = a_failed_job()
    until = job.ended_at + 2 * HOUR
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)

        def throttled(asked: str, _: Any, send: Send) -> AWSResponse:
            if asked == f"sagemaker.{operation}" and one.aws.clock.now() < until:
                said = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
                raise ClientError(said, operation)
            return send()

        one.aws.requests.between = throttled
        one.aws.ends(job)
        one.aws.advance(job.ended_at + 4 * HOUR)
        assert counted(one, "JobsAudited", "audit") == 1
        assert counted(one, "JobsMissing") > 2
        assert counted(one, "ReconcilerFound") == 0
        assert counted(one, "DuplicateEvents", "audit") == 0
        assert not one.dead_letters()


def test_an_event_that_turns_up_after_the_sweep_is_a_repeat() -> None:
    """One audit, one message."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.sagemaker.add(job)
        one.aws.advance(job.ended_at + HOUR)
        for _ in range(3):
            one.aws.put_event(job.event())
        one.aws.advance(job.ended_at + 2 * HOUR)
        assert (one.versions(job), len(one.slack.posts)) == (1, 1)
        assert counted(one, "DuplicateEvents", "audit") == 3


def test_the_first_sweep_looks_back_a_day_and_tells_nothing_of_it() -> None:
    """Jobs of before the installation are audited; a job of two days ago is not looked at."""
    job = a_failed_job()
    earlier = [moved(job, -hours * HOUR, f"job-{hours}") for hours in (3, 20, 40)]
    with scene(job.ended_at, sweeps=True) as one:
        for before in earlier:
            one.aws.sagemaker.add(before)
        one.aws.advance(job.ended_at + 2 * HOUR)
        history = one.aws.history()
        assert [history.head(before.key) is not None for before in earlier] == [True, True, False]
        assert not one.slack.tried
        assert counted(one, "ReconcilerFound") == counted(one, "JobsMissing") == 0
        item = one.aws.session.client("dynamodb").get_item(
            TableName=one.aws.physical("HistoryTable"),
            Key={"pk": {"S": "SWEEP"}, "sk": {"S": "INSTALLED"}},
        )["Item"]
        assert "installed_at" in item


def test_a_warm_pools_dollars_are_found_when_it_has_ended() -> None:
    """From the end event they could never be known."""
    job = a_failed_job()
    kept = with_pool(job, "Available")
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.ends(kept)
        one.aws.advance(job.ended_at + 30 * MINUTE)
        first = one.audit(job)["bill"]["total_usd"]
        assert one.head(job).due_at == job.ended_at + HOUR
        one.aws.sagemaker.add(with_pool(job, "Terminated", 1800))
        one.aws.advance(job.ended_at + 2 * HOUR)
        second = one.audit(job)["bill"]["total_usd"]
        assert first is not None
        assert second is not None
        assert second > first
        assert (one.versions(job), one.head(job).settled, one.head(job).due_at) == (2, True, None)
        assert counted(one, "DueAudited", "audit") == 1


def test_a_pool_whose_job_is_deleted_keeps_its_figures() -> None:
    """What it cost is not known, and it is not asked for ever."""
    job = with_pool(a_failed_job(), "Available")
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.ends(job)
        one.aws.advance(job.ended_at + 30 * MINUTE)
        before = one.audit(job)
        one.aws.sagemaker.delete(job)
        one.aws.advance(job.ended_at + 3 * HOUR)
        after = one.audit(job)
        assert after["bill"]["total_usd"] == before["bill"]["total_usd"]
        assert after["bill"]["complete"] is False
        assert (one.head(job).settled, one.head(job).unauditable) == (True, None)
        assert counted(one, "DueAudited", "audit") == 1
        assert not one.dead_letters()


def test_a_name_that_is_used_again_leaves_the_earlier_run_its_figures() -> None:
    """The new run's warm pool is not the old one's."""
    old = with_pool(a_failed_job(), "Available")
    new = moved(with_pool(a_failed_job(), "Terminated", 3600), 3 * HOUR)
    with scene(old.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(old.ended_at)
        one.aws.ends(old)
        one.aws.advance(old.ended_at + 30 * MINUTE)
        one.aws.ends(new)
        one.aws.advance(new.ended_at + 3 * HOUR)
        assert one.audit(old)["bill"]["complete"] is False
        assert one.audit(new)["bill"]["complete"] is True
        assert (one.head(old).settled, one.head(new).settled) == (True, True)
        assert one.head(old).unauditable is None


def test_late_metrics_are_judged_at_the_second_look() -> None:
    """They came when the audit had waited long enough."""
    job = recorded("profiled-053-g4dn-xlarge")
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.ends(job, measured=False)
        one.aws.advance(job.ended_at + 40 * MINUTE)
        assert one.head(job).settled is False
        one.aws.measure(job)
        one.aws.advance(job.ended_at + 3 * HOUR)
        assert (one.versions(job), one.head(job).settled) == (2, True)
        assert "gpu-underused" in {found["rule"] for found in one.audit(job)["findings"]}


def test_a_doubled_event_does_not_settle_a_run_without_its_late_metrics() -> None:
    """Its second copy is the first to be audited, 22 minutes after the end."""
    job = recorded("profiled-053-g4dn-xlarge")
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.sagemaker.add(job)
        for minutes in (9, 8):
            one.aws.advance(one.aws.clock.now() + minutes * MINUTE)
            one.aws.put_event(job.event())
        one.aws.advance(job.ended_at + 40 * MINUTE)
        assert one.audit(job)["avoidable_usd"] is None
        assert one.head(job).settled is False
        one.aws.measure(job)
        one.aws.advance(job.ended_at + 3 * HOUR)
        assert one.head(job).settled
        assert "gpu-underused" in {found["rule"] for found in one.audit(job)["findings"]}


def _denied(operation: str, _: Any, send: Send) -> AWSResponse:
    if not operation.startswith("cloudwatch."):
        return send()
    said = "User: arn:aws:sts::1:r is not authorized to perform: cloudwatch:GetMetricData"
    raise ClientError({"Error": {"Code": "AccessDenied", "Message": said}}, "GetMetricData")


def _cut(line: RawSeries) -> RawSeries:
    """The first three fifths."""
    return replace(line, values=line.values[: len(line.values) * 3 // 5])


def test_a_second_look_without_the_permission_keeps_what_is_known() -> None:
    """CloudWatch denies from then on: the pool's dollars come, and no figure goes."""
    job = recorded("profiled-053-g4dn-xlarge")
    half = replace(job, series=tuple(_cut(line) for line in job.series))
    kept, ended = with_pool(half, "Available"), with_pool(half, "Terminated", 1800)
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.ends(kept)
        one.aws.advance(job.ended_at + 40 * MINUTE)
        before = one.audit(job)
        one.aws.requests.between = _denied
        one.aws.sagemaker.add(ended)
        one.aws.advance(job.ended_at + 3 * HOUR)
        assert one.audit(job)["bill"]["complete"] is True
        assert one.audit(job)["judged"] == before["judged"] == "partly"
        assert one.head(job).settled is False
        one.aws.advance(job.ended_at + 26 * HOUR)
        assert one.audit(job)["judged"] == "partly"
        assert one.head(job).settled


def test_a_roll_up_waits_for_children_that_only_a_sweep_finds() -> None:
    """Three of five events were lost; at the end the sum is whole."""
    children, tuning = tuning_set("Failed")
    with scene(tuning.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(tuning.ended_at - MINUTE)
        for child in children[:2]:
            one.aws.ends(child)
        for child in children[2:]:
            one.aws.sagemaker.add(child)
        one.aws.ends(tuning)
        one.aws.advance(tuning.ended_at + 4 * HOUR)
        assert [one.versions(child) for child in children] == [1] * 5
        lost = [one.audit(child)["lost_usd"] or 0 for child in children]
        assert one.audit(tuning)["lost_usd"] == sum(lost)
        assert one.head(tuning).settled
        assert one.versions(tuning) <= 2
        assert counted(one, "ReconcilerFound") == 3


def test_a_late_audit_makes_later_runs_of_the_family_due_once() -> None:
    """What changes by it gets a version; then nothing is due any more."""
    job = a_failed_job()
    runs = [moved(job, n * 20 * MINUTE, f"c7n-job-2018-01-12-{n:02}-00-00") for n in range(5)]
    with scene(runs[0].ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(runs[0].ended_at)
        for place, run in enumerate(runs):
            (one.aws.sagemaker.add if place == 2 else one.aws.ends)(run)
            one.aws.advance(max(one.aws.clock.now(), run.ended_at) + MINUTE)
        one.aws.advance(runs[-1].ended_at + 2 * HOUR)
        versions = [one.versions(run) for run in runs]
        assert versions[:3] == [1, 1, 1]
        assert sum(versions) <= 7
        history = one.aws.history()
        assert not due(history, one.aws.clock.now() + DAY)
        assert all(one.head(run).settled for run in runs)


def test_lists_are_asked_for_once_a_second_at_most() -> None:
    """Over all kinds, pages and accounts."""
    job = a_failed_job()
    with scene(job.ended_at, sweeps=True) as one:
        one.aws.sagemaker.page = 2
        for n in range(9):
            one.aws.sagemaker.add(moved(job, -n * HOUR, f"job-{n}"))
        one.aws.advance(job.ended_at + HOUR)
        asked = lists_of(one)
        gaps = [after - before for before, after in pairwise(asked)]
        assert len(asked) > 16
        assert min(gaps) >= timedelta(seconds=1)


def test_a_list_without_an_end_fails_alone() -> None:
    """Its token repeats; the other kinds are swept, and its watermark stays."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        before = _watermark(one)
        one.aws.sagemaker.add(job)
        one.aws.sagemaker.page = 1
        one.aws.sagemaker.add(moved(job, -HOUR, "other"))
        one.aws.requests.between = _endless
        one.aws.sweep()
        one.aws.requests.between = None
        assert _watermark(one) == before
        assert counted(one, "SweepFailed") == 1
        assert "returned no last page" in one.aws.functions["sweep"].log.getvalue()
        one.aws.advance(job.ended_at + 2 * HOUR)
        assert one.versions(job) == 1


def _endless(operation: str, _: Any, send: Send) -> AWSResponse:
    if operation != "sagemaker.ListTrainingJobs":
        return send()
    return http_answer("https://api.sagemaker", 200, {"TrainingJobSummaries": [], "NextToken": "1"})


def _watermark(one: Scene) -> datetime:
    notes = DynamoSweepNotes(one.aws.session.client("dynamodb"), one.aws.physical("HistoryTable"))
    state = notes.state(TRAINING)
    assert state is not None
    return state.watermark


def test_a_sweep_that_is_killed_at_any_step_loses_nothing() -> None:
    """The next one finds the job; it is audited once and told once, or marked as a repeat."""
    job = with_pool(a_failed_job(), "Available")
    plain = Steps()
    with scene(job.ended_at + HOUR, on_step=plain) as one:
        one.aws.sagemaker.add(job)
        one.aws.sweep()
    names = len(plain.names)
    assert names > 20
    for kill_at in range(0, names, 6):
        steps = Steps(kill_at=kill_at)
        with scene(job.ended_at + HOUR, on_step=steps) as one:
            one.aws.sagemaker.add(job)
            one.aws.sweep()
            one.aws.clock.forward(15 * 60)
            one.aws.sweep()
            one.aws.advance()
            assert steps.killed
            assert one.versions(job) == 1
            assert not one.dead_letters()


def test_two_sweeps_at_once_are_one() -> None:
    """The second finds that another has its turn, and does nothing."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR) as one:
        one.aws.sweep()
        one.aws.sagemaker.add(job)
        one.aws.clock.forward_to(job.ended_at + HOUR)
        nested: list[int] = []

        def meanwhile(operation: str, _: Any, send: Send) -> AWSResponse:
            if operation == "sagemaker.ListTransformJobs" and not nested:
                nested.append(len(lists_of(one)))
                one.aws.functions["sweep"].invoke({})
                nested.append(len(lists_of(one)))
            return send()

        one.aws.requests.between = meanwhile
        one.aws.sweep()
        assert nested[0] == nested[1]
        assert '"another sweep runs"' in one.aws.functions["sweep"].log.getvalue()
        one.aws.advance()
        assert one.versions(job) == 1
        assert counted(one, "ReconcilerFound") == 1
