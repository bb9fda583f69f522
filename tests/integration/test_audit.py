"""The audit function on the local AWS: repeats, outages and events that nobody may send."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from local.recorded import RecordedJob
from tests.integration.whole_flow import Steps, a_failed_job, scene

THROTTLED = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}


def counted(log: str) -> Counter[str]:
    """The metrics that a function printed."""
    counts: Counter[str] = Counter()
    for line in log.splitlines():
        printed = json.loads(line)
        for directive in printed.get("_aws", {}).get("CloudWatchMetrics", ()):
            for metric in directive["Metrics"]:
                counts[metric["Name"]] += int(printed[metric["Name"]][0])
    return counts


def run_of(job: RecordedJob, number: int) -> RecordedJob:
    """The same job under another name."""
    name = f"job-{number}"
    arn = f"{job.arn.rpartition('/')[0]}/{name}"
    return replace(job, describe={**job.describe, "TrainingJobName": name, "TrainingJobArn": arn})


def test_a_repeated_event_costs_describe_and_one_read() -> None:
    """And is counted."""
    job, steps = a_failed_job(), Steps()
    with scene(job.ended_at, steps) as one:
        one.aws.ends(job)
        one.aws.advance()
        audit = one.aws.functions["audit"]
        assert counted(audit.log.getvalue())["JobsAudited"] == 1
        steps.names.clear()
        one.aws.put_event(job.event())
        one.aws.advance()
        asked = [name for name in steps.names if name.startswith("before ")]
        assert asked == ["before DescribeTrainingJob", "before GetItem"]
        assert counted(audit.log.getvalue())["DuplicateEvents"] == 1
        assert one.versions(job) == 1


def test_each_line_of_an_audit_names_its_job() -> None:
    """Also those of a failure, which the batch writes."""
    job, fails = a_failed_job(), ["DescribeTrainingJob", "TransactWriteItems"]

    def failing(name: str) -> None:
        if fails and name == f"before {fails[0]}":
            raise ClientError(THROTTLED, fails.pop(0))

    with scene(job.ended_at, failing) as one:
        one.aws.ends(job)
        one.aws.advance()
        lines = [
            json.loads(line) for line in one.aws.functions["audit"].log.getvalue().splitlines()
        ]
        said = [line for line in lines if "_aws" not in line]
        assert not fails
        assert {line["message"] for line in said} >= {"record failed", "audited"}
        assert {line["job"] for line in said} == {job.arn}


JOBS = 2
"""The same is told of 200 jobs between fakes: test_audit_rows, A32 and A33."""


@pytest.mark.parametrize("operation", ["DescribeTrainingJob", "TransactWriteItems"])
def test_an_outage_of_six_hours_ends_in_no_dead_letter(operation: str) -> None:
    """Each job is audited within the hour after it, once."""
    job = a_failed_job()
    jobs = [run_of(job, number) for number in range(JOBS)]
    ends_at, now = job.ended_at + timedelta(hours=6), [job.ended_at]

    def outage(name: str) -> None:
        if name == f"before {operation}" and now[0] < ends_at:
            raise ClientError(THROTTLED, operation)

    with scene(job.ended_at, outage) as one:
        [source] = [source for source in one.aws.sources if source.function.name == "audit"]
        for each in jobs:
            one.aws.ends(each, measured=False)
        while now[0] < ends_at + timedelta(hours=1, minutes=5):
            now[0] += timedelta(minutes=5)
            one.aws.clock.forward_to(now[0])
            while source.poll():
                pass
        audited = [one.aws.history().head(each.key) for each in jobs]
        assert all(audited)
        assert {head.version for head in audited if head} == {1}
        assert not one.dead_letters()
        counts = counted(one.aws.functions["audit"].log.getvalue())
        assert (counts["JobsAudited"], counts["GivenUp"]) == (JOBS, 0)
        assert counts["AuditFailed"] < JOBS * 20


def test_what_a_killed_function_has_recorded_is_counted() -> None:
    """The delivery that comes back finds the audit, and counts it with its findings."""
    job = a_failed_job()
    broken = replace(job, describe={**job.describe, "ResourceConfig": {"InstanceCount": -1}})
    with scene(job.ended_at, Steps(kill_first="after TransactWriteItems")) as one:
        one.aws.ends(broken)
        one.aws.advance()
        counts = counted(one.aws.functions["audit"].log.getvalue())
        assert one.versions(job) == 1
        assert (counts["JobsAudited"], counts["JobsUnauditable"]) == (1, 1)


def test_replays_of_made_up_names_leave_no_rows() -> None:
    """Whoever may write to the bus can name any job: they are counted and gone."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        for number in range(20):
            one.aws.put_event(run_of(job, number).event(source="sageaudit.replay"))
        one.aws.put_event(job.event(source="sageaudit.sweep"))
        one.aws.advance()
        table = one.aws.session.client("dynamodb").scan(TableName=one.aws.physical("HistoryTable"))
        assert [item for item in table["Items"] if item["pk"]["S"].startswith("JOB#")] == []
        assert not one.dead_letters()
        counts = counted(one.aws.functions["audit"].log.getvalue())
        assert (counts["UnknownJobs"], counts["JobsUnauditable"]) == (20, 0)


def test_a_replay_without_creation_time_finds_its_run() -> None:
    """By the time that Describe says."""
    job = a_failed_job()
    event = job.event(source="sageaudit.replay")
    detail = {
        key: value for key, value in json.loads(event["Detail"]).items() if key != "CreationTime"
    }
    with scene(job.ended_at) as one:
        one.aws.ends(job)
        one.aws.advance()
        one.aws.put_event({**event, "Detail": json.dumps(detail)})
        one.aws.advance()
        assert one.versions(job) == 1
        assert counted(one.aws.functions["audit"].log.getvalue())["DuplicateEvents"] == 1


def test_a_name_that_was_created_again_has_two_runs() -> None:
    """The earlier one is recorded under its own key as one that could not be audited."""
    job = a_failed_job()
    later = job.key.created_at + timedelta(days=1)
    again = replace(job, describe={**job.describe, "CreationTime": later.isoformat()})
    with scene(job.ended_at) as one:
        one.aws.sagemaker.add(again)
        one.aws.put_event(job.event())
        one.aws.put_event(again.event())
        one.aws.advance()
        assert "its name now belongs to the run" in (one.head(job).unauditable or "")
        assert one.head(again).unauditable is None
        assert one.head(job).key != one.head(again).key
        assert one.audit(job)["bill"]["total_usd"] is None
        one.aws.put_event(job.event())
        one.aws.advance()
        assert one.versions(job) == 1
