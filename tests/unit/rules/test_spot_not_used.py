from __future__ import annotations

from typing import Any

import pytest

from sageaudit.domain.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job import InstanceGroup, Purchase, WarmPool
from sageaudit.domain.ref import JobKind
from tests.fakes.jobs import ran
from tests.fakes.judging import excuse, found, outcome, priced, unknown, usd

RULE = "spot-not-used"
GPU = "ml.g5.2xlarge"


def test_an_on_demand_run_is_worth_a_trial() -> None:
    """Half an hour of $1.515; 14683 of 37026 s billed at worst, 52 of 175 at best."""
    finding = priced(RULE, ran(1800, GPU))
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.POSSIBLE,
        Confidence.HEURISTIC,
    )
    # 0.7575 x (1 - 14683/37026) and 0.7575 x (1 - 52/175)
    assert usd(finding.saving_usd) == "0.457106"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["0.457106", "0.532414"]
    assert finding.severity.value == "low"


def test_exactly_thirty_minutes_are_long_enough() -> None:
    """Shorter runs save cents."""
    assert isinstance(outcome(RULE, ran(1800, GPU)), Found)
    assert outcome(RULE, ran(1799, GPU)) == Clear()


def test_an_hour_without_checkpoints_gets_no_figure() -> None:
    """An interruption would start it again; one second less is the limit of MaxWait."""
    assert priced(RULE, ran(3599, GPU)).saving_usd is not None
    long = priced(RULE, ran(3600, GPU))
    assert (long.saving_usd, long.range_usd) == (None, None)
    assert "checkpoints" in (long.found.caution or "")


def test_checkpoints_make_a_long_run_safe() -> None:
    """And they need not be asked for."""
    safe = priced(RULE, ran(36_000, GPU, checkpointed=True))
    assert safe.saving_usd is not None
    assert "CheckpointConfig.S3Uri" not in [fix.path for fix in safe.found.fix]
    assert "CheckpointConfig.S3Uri" in [fix.path for fix in found(RULE, ran(36_000, GPU)).fix]


def test_the_wait_limit_is_above_the_run_limit() -> None:
    """The API refuses a MaxWait under MaxRuntime."""
    what = found(RULE, ran(1800, GPU, max_runtime_s=7200))
    [wait] = [fix for fix in what.fix if fix.path.endswith("MaxWaitTimeInSeconds")]
    assert isinstance(wait.new, int)
    assert wait.new > 7200


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"purchase": Purchase.SPOT}, "spot"),
        ({"purchase": Purchase.TRAINING_PLAN}, "training plan"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"groups": (InstanceGroup(GPU, 1), InstanceGroup("ml.m5.large", 1))}, "groups"),
        ({"warm_pool": WarmPool(None, 1800, None)}, "warm pool"),
        ({"tags": {"sageaudit:deadline": "tonight"}}, "sageaudit:deadline"),
        ({"status": "Failed"}, "complete"),
        ({"status": "Stopped"}, "complete"),
        ({"kind": JobKind.PROCESSING}, "processing"),
        ({"kind": JobKind.TRANSFORM}, "transform"),
    ],
)
def test_where_spot_cannot_be_or_was_used_it_says_nothing(
    changes: dict[str, Any], why: str
) -> None:
    """And why."""
    assert why in excuse(RULE, ran(36_000, GPU, **changes))


def test_without_times_it_does_not_know() -> None:
    """A completed job whose answer has no times."""
    run = ran(1800, GPU, started_at=None, ended_at=None, training_s=None)
    assert unknown(RULE, run) == "times_missing"
