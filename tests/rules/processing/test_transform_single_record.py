from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import TransformBatching
from tests.fakes.batch_jobs import batch_job, used
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "transform-single-record"


def transform(strategy: str | None = "SingleRecord", **changes: Any) -> Job:
    """An hour on 8 vCPUs, four requests at a time."""
    return batch_job(
        JobKind.TRANSFORM, 60, **{"batch": TransformBatching(strategy, 4, None)} | changes
    )


def test_single_records_on_an_idle_instance_are_found() -> None:
    """MultiRecord is worth a trial; by how much is not known."""
    run = transform()
    what = found(RULE, run, used(run, cpu=[20] * 60))
    assert what.summary == (
        "BatchStrategy is SingleRecord, and CPU averaged 20% over 1 h on 1 x ml.m5.2xlarge."
    )
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == ("BatchStrategy", "SingleRecord", "MultiRecord")
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert "SplitType" in (what.caution or "")


def test_it_saves_no_figure() -> None:
    """Only a run shows how much faster it is."""
    run = transform()
    finding = priced(RULE, run, used(run, cpu=[20] * 60))
    assert (finding.saving_usd, finding.alone_usd, finding.range_usd) == (None, None, None)


def test_exactly_forty_percent_is_not_idle() -> None:
    """39.9% is."""
    run = transform()
    assert outcome(RULE, run, used(run, cpu=[40] * 60)) == Clear()
    assert isinstance(outcome(RULE, run, used(run, cpu=[39.9] * 60)), Found)


@pytest.mark.parametrize("strategy", ["MultiRecord", None])
def test_other_strategies_are_not_its_concern(strategy: str | None) -> None:
    """The advised job among them."""
    run = transform(strategy)
    assert "not SingleRecord" in not_applicable(RULE, run, used(run, cpu=[20] * 60))


def test_a_busy_gpu_is_what_the_job_pays_for() -> None:
    """Its CPUs may be idle; a GPU without figures is unknown."""
    run = transform(instance="ml.g4dn.xlarge")
    assert "GPU is busy" in not_applicable(RULE, run, used(run, cpu=[5] * 60, gpu=[80] * 60))
    assert unknown(RULE, run, used(run, cpu=[5] * 60)) == "metric_missing"


def test_without_settings_it_is_unknown() -> None:
    """Never clear."""
    bare = transform(batch=None)
    assert unknown(RULE, bare, used(bare, cpu=[20] * 60)) == "batch_unknown"
