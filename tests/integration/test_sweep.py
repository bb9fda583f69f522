"""Sweeps on the local AWS: what no event told of is found, and what is due is audited again."""

from __future__ import annotations

from datetime import timedelta

from tests.integration.whole_flow import a_failed_job, scene

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_a_job_whose_event_was_lost_is_audited_within_the_hour() -> None:
    """It is counted once, and told as any other."""
    job = a_failed_job()
    with scene(job.ended_at - HOUR, sweeps=True) as one:
        one.aws.advance(job.ended_at)
        one.aws.sagemaker.add(job)
        one.aws.advance(job.ended_at + HOUR)
        assert one.versions(job) == 1
        assert len(one.slack.posts) == 1
        one.aws.advance(job.ended_at + DAY)
        log = one.aws.functions["sweep"].log.getvalue()
        assert log.count('"ReconcilerFound":[1') == 1
        assert not one.dead_letters()
