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
    """Only the dearest failure is worth a message under the demo's floor."""
    [headline] = demo.headlines()
    assert a_failed_job().name in headline
    assert "$0.15" in headline
    [mail] = demo.aws.mails
    assert a_failed_job().name in json.loads(mail["Body"])["Message"]


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
