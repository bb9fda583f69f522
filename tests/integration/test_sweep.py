"""Sweeps on the local AWS: what no event told of is found, and what is due is audited again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from local.recorded import RecordedJob
from local.requests import Send
from tests.faults.world import renamed
from tests.integration.whole_flow import a_failed_job, scene

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def with_pool(job: RecordedJob, status: str, retained_s: int | None = None) -> RecordedJob:
    """The job with a warm pool that is kept for an hour."""
    pool = {"Status": status, "ResourceRetainedBillableTimeInSeconds": retained_s}
    resources = {**job.describe["ResourceConfig"], "KeepAlivePeriodInSeconds": 3600}
    said = {**job.describe, "ResourceConfig": resources, "WarmPoolStatus": pool}
    return replace(job, describe=said)


def test_a_job_whose_audit_is_throttled_for_hours_is_missing_and_not_found() -> None:
    """Its event came: it is not sent once more, and no alarm says that events are lost."""
    job = a_failed_job()
    until = job.ended_at + 2 * HOUR
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)

        def throttled(asked: str, _: Any, send: Send) -> AWSResponse:
            if asked == "sagemaker.DescribeTrainingJob" and one.aws.clock.now() < until:
                said = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
                raise ClientError(said, "DescribeTrainingJob")
            return send()

        one.aws.requests.between = throttled
        one.aws.ends(job)
        one.aws.advance(job.ended_at + 4 * HOUR)
        assert one.count("JobsAudited", "audit") == 1
        assert one.count("JobsMissing", "sweep") > 2
        assert one.count("ReconcilerFound", "sweep") == 0
        assert one.count("DuplicateEvents", "audit") == 0
        assert not one.dead_letters()


def test_the_first_sweep_looks_back_a_day_and_tells_nothing_of_it() -> None:
    """Jobs of before the installation are audited, at one List a second, and nobody sees it."""
    job = a_failed_job()
    earlier = [renamed(job, f"before-{h}", later=-h * HOUR) for h in (3, 20, 40)]
    with scene(job.ended_at, sweeps=True) as one:
        for before in earlier:
            one.aws.sagemaker.add(before)
        one.aws.advance(job.ended_at + 2 * HOUR)
        history = one.aws.history()
        assert [history.head(before.key) is not None for before in earlier] == [True, True, False]
        assert not one.slack.tried
        assert not one.aws.mails
        assert one.count("ReconcilerFound", "sweep") == one.count("JobsMissing", "sweep") == 0
        asked = one.aws.sagemaker.lists_requested
        assert min((b - a).total_seconds() for a, b in pairwise(asked)) >= 1


def test_a_warm_pools_dollars_are_found_when_it_has_ended() -> None:
    """From the end event they could never be known."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.ends(with_pool(job, "Available"))
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
        assert one.count("DueAudited", "audit") == 1
