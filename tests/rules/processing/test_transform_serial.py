from __future__ import annotations

from typing import Any

import pytest

from sageaudit.adapters.prices import packaged
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Metric, Missing
from tests.fakes.batch_jobs import batch_job, used
from tests.fakes.jobs import series
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown
from tests.fakes.trainium import MARKET, TRAINIUM, cpu_alone

RULE = "transform-serial"


def transform(concurrent: int | None = 1, payload_mb: int | None = None, **changes: Any) -> Job:
    """An hour on 8 vCPUs."""
    changes = {"batch": TransformBatching("MultiRecord", concurrent, payload_mb)} | changes
    return batch_job(JobKind.TRANSFORM, 60, **changes)


def test_one_request_at_a_time_on_an_idle_instance_is_found() -> None:
    """CPU at 12% of 8 vCPUs: as many requests as vCPUs, and no invented dollars."""
    run = transform()
    what = found(RULE, run, used(run, cpu=[12] * 60))
    assert what.summary == (
        "MaxConcurrentTransforms is 1, and CPU averaged 12% of 8 vCPUs over 1 h on "
        "1 x ml.m5.2xlarge."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("MaxConcurrentTransforms", 1, 8)
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert what.change is None
    assert (what.caution or "").startswith("Only a run shows")


def test_it_saves_no_figure() -> None:
    """Only a run shows how much faster it is."""
    run = transform()
    finding = priced(RULE, run, used(run, cpu=[12] * 60))
    assert (finding.saving_usd, finding.alone_usd, finding.range_usd) == (None, None, None)
    assert finding.severity.value == "info"


@pytest.mark.parametrize("unset", [None, 0])
def test_not_set_means_one_unless_the_container_says_otherwise(unset: int | None) -> None:
    """AWS's default is 1; the sentence does not claim that somebody set it."""
    run = transform(unset)
    what = found(RULE, run, used(run, cpu=[12] * 60))
    assert what.summary.startswith("MaxConcurrentTransforms is not set, and")
    assert what.fix[0].old == unset


def test_exactly_forty_percent_is_not_idle() -> None:
    """39.9% is."""
    run = transform()
    assert outcome(RULE, run, used(run, cpu=[40] * 60)) == Clear()
    assert isinstance(outcome(RULE, run, used(run, cpu=[39.9] * 60)), Found)


def test_idle_minutes_before_and_after_the_work_do_not_count() -> None:
    """Half of the hour at 60% is busy work, not 30%."""
    run = transform()
    assert outcome(RULE, run, used(run, cpu=[0] * 15 + [60] * 30 + [0] * 15)) == Clear()


def test_two_vcpus_are_several_and_one_is_not() -> None:
    """On one core a second request waits for the first."""
    two = transform(instance="ml.m5.large")
    assert found(RULE, two, used(two, cpu=[12] * 60)).fix[0].new == 2
    few = used(two, cpu=[12] * 60)
    assert outcome(RULE, two, few, limits={"vcpu_from": 3}) == Clear()


@pytest.mark.parametrize(("payload_mb", "several"), [(None, 8), (25, 4), (50, 2), (0, 8)])
def test_all_payloads_together_stay_within_100_mb(payload_mb: int | None, several: int) -> None:
    """CreateTransformJob refuses more; chunked payloads (0) have no size."""
    run = transform(1, payload_mb)
    assert found(RULE, run, used(run, cpu=[12] * 60)).fix[0].new == several


def test_payloads_that_leave_room_for_one_are_clear() -> None:
    """2 x 51 MB are refused."""
    run = transform(1, 51)
    assert outcome(RULE, run, used(run, cpu=[12] * 60)) == Clear()


def test_the_default_payload_of_6_mb_leaves_room_for_16() -> None:
    """On 48 vCPUs too."""
    run = transform(instance="ml.g4dn.12xlarge")
    assert found(RULE, run, used(run, cpu=[5] * 60, gpu=[10] * 60)).fix[0].new == 16


def test_payloads_of_1_mb_leave_room_for_a_request_per_vcpu() -> None:
    """On 96 vCPUs, up to 100 requests."""
    run = transform(1, 1, instance="ml.m5.24xlarge")
    raw = [series(Metric.CPU, [12 * 96] * 60, host=f"{run.name}/1")]
    of = measure(run, raw, packaged.types(), absent=Missing("metric_missing", "no points"))
    assert found(RULE, run, of, on=packaged.market()).fix[0].new == 96


def test_several_requests_at_a_time_are_not_its_concern() -> None:
    """Idle for another reason; so is the job that followed the advice."""
    run = transform(8)
    assert "8 requests at a time" in not_applicable(RULE, run, used(run, cpu=[12] * 60))


def test_a_gpu_without_figures_is_unknown() -> None:
    """An idle CPU does not show what it did."""
    run = transform(instance="ml.g4dn.xlarge")
    assert unknown(RULE, run, used(run, cpu=[5] * 60)) == "metric_missing"


def test_an_accelerator_that_nobody_measures_is_unknown() -> None:
    """Trainium has no metric."""
    run = transform(instance=TRAINIUM)
    answer = outcome(RULE, run, cpu_alone(run, [40] * 60), on=MARKET)
    assert getattr(answer, "code", None) == "accelerator_unseen"


def test_without_settings_it_is_unknown() -> None:
    """Never clear."""
    bare = transform(batch=None)
    assert unknown(RULE, bare, used(bare, cpu=[12] * 60)) == "batch_unknown"
