"""The demo's jobs have all ended: what stands in the history, and who was told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal

import pytest

from local.recorded import RecordedJob, recorded_jobs
from tests.integration.whole_flow import Scene, a_failed_job, recorded, scene, tuning_set

JOBS = recorded_jobs()


@pytest.fixture(scope="module")
def demo() -> Iterator[Scene]:
    """All jobs of the demo have ended, one after the other, and all is quiet."""
    with scene(JOBS[0].ended_at) as one:
        for job in JOBS:
            one.aws.advance(job.ended_at)
            one.aws.ends(job)
        one.aws.advance()
        yield one


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_each_job_has_one_audit(demo: Scene, job: RecordedJob) -> None:
    """Of a real job something is said, and it is said once."""
    assert demo.head(job).unauditable is None
    assert demo.versions(job) == 1


def test_no_handler_fails_on_a_real_job(demo: Scene) -> None:
    """Nothing is tried again and given up unseen."""
    assert [function.failures for function in demo.aws.functions.values()] == [[], [], []]


def test_a_loss_is_told_once_on_each_channel(demo: Scene) -> None:
    """Of the failures only the dearest is worth a message under the demo's floor."""
    [lost] = [headline for headline in demo.headlines() if "lost" in headline]
    assert a_failed_job().name in lost
    assert "$0.15" in lost
    mails = [json.loads(mail["Body"])["Message"] for mail in demo.aws.mails]
    assert sum(a_failed_job().name in mail for mail in mails) == 1


def test_a_run_on_more_gpus_than_it_used_is_told_with_the_smaller_type(demo: Scene) -> None:
    """3 h of ml.g4dn.12xlarge at $4.89 that ml.g4dn.2xlarge holds at $0.94."""
    document = demo.audit(recorded("composed-g4dn-12xlarge"))
    assert document["bill"]["total_usd"] == Decimal("14.67")
    assert document["avoidable_usd"] == Decimal("11.85")
    [fix] = document["findings"][0]["fix"]
    assert fix["new"] == "ml.g4dn.2xlarge"
    assert "$11.85" in demo.headlines()[-1]


def test_prices_that_may_not_be_asked_are_the_packaged_ones(demo: Scene) -> None:
    """The line of the bill says why, and the message does not carry it."""
    document = demo.audit(recorded("composed-g4dn-12xlarge"))
    [line] = document["bill"]["lines"]
    assert "packaged 2026-05-20: pricing:GetProducts is not permitted" in (line["note"] or "")
    assert "GetProducts" not in str(demo.slack.posts)


def test_points_are_read_by_the_minute(demo: Scene) -> None:
    """The local clock stands shortly after the job's end, as it does for the deployed function."""
    job = recorded("profiled-053-g4dn-xlarge")
    coverage = demo.audit(job)["audit"]["coverage"]
    assert coverage["period_s"] == 60
    assert demo.head(job).settled


def test_children_are_added_up(demo: Scene) -> None:
    """The tuning job's bill is the sum of its children's, and no sum of its own."""
    children, tuning = tuning_set("Completed")
    parts = [demo.audit(child)["bill"]["total_usd"] or Decimal(0) for child in children]
    document = demo.audit(tuning)
    assert document["rollup"]
    assert document["bill"]["total_usd"] == sum(parts)
