from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import Hints, InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "spot-not-used"
GPU = "ml.g5.2xlarge"


def test_an_on_demand_run_is_worth_a_trial() -> None:
    """Half an hour of 6 x $1.515; 14683 of 37026 s billed at worst, 52 of 175 at best."""
    finding = priced(RULE, ran(1800, GPU, 6))
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.POSSIBLE,
        Confidence.HEURISTIC,
    )
    # 4.545 x (1 - 14683/37026) and 4.545 x (1 - 52/175)
    assert usd(finding.saving_usd) == "2.742639"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["2.742639", "3.194486"]
    assert finding.severity.value == "low"


def test_exactly_thirty_minutes_are_long_enough() -> None:
    """Shorter runs save cents."""
    assert isinstance(outcome(RULE, ran(1800, GPU, 6)), Found)
    assert outcome(RULE, ran(1799, GPU, 6)) == Clear()


def test_a_run_of_a_cheap_family_is_left_alone() -> None:
    """$1.38 alone are no reason to change a request; two runs for $1.31 each before it make $4."""
    cheap = ran(21_600, "ml.m5.xlarge", checkpointed=True, volume_gb=0)
    assert outcome(RULE, cheap, earlier=[]) == Clear()
    assert isinstance(outcome(RULE, cheap, earlier=[], limits={"from_usd": 1.38}), Found)
    before = [earlier_run(days, total_usd=Decimal("1.31")) for days in (1, 2)]
    assert isinstance(outcome(RULE, cheap, earlier=before), Found)
    assert outcome(RULE, cheap, earlier=before[:1]) == Clear()


def test_an_hour_without_checkpoints_gets_no_figure() -> None:
    """An interruption would start it again; one second less is the limit of MaxWait."""
    assert priced(RULE, ran(3599, GPU, 6)).saving_usd is not None
    long = priced(RULE, ran(3600, GPU, 6))
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
    what = found(RULE, ran(1800, GPU, 6, max_runtime_s=7200))
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
        ({"groups": (InstanceGroup(GPU, 1, "all"),)}, "groups"),
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
    assert why in not_applicable(RULE, ran(36_000, GPU, **changes))


def test_without_times_it_does_not_know() -> None:
    """A completed job whose answer has no times."""
    run = ran(1800, GPU, 6, started_at=None, ended_at=None, training_s=None)
    assert unknown(RULE, run) == "times_missing"


def spot_runs(*billed_of_1000: int, **facts: Any) -> list[EarlierRun]:
    """Completed spot runs of the family, each billed for so many of its 1000 seconds."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "instance_type": GPU}
    return [
        earlier_run(n, elapsed_s=Decimal(1000), billable_s=Decimal(billed), **plain | facts)
        for n, billed in enumerate(billed_of_1000, start=1)
    ]


def test_three_spot_runs_of_its_own_make_a_figure() -> None:
    """Two hours of $1.515: 3.03 x (1 - 0.4) at worst, 3.03 x (1 - 0.3) at best; it is counted."""
    run = ran(7200, GPU, checkpointed=True, volume_gb=0)
    finding = priced(RULE, run, earlier=spot_runs(400, 300, 350))
    assert finding.found.summary == (
        "2 h on demand, with checkpoints: 3 spot runs of its family on this type saved 60 to 70%."
    )
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.AVOIDABLE,
        Confidence.DERIVED,
    )
    assert usd(finding.saving_usd) == "1.818000"
    assert finding.range_usd is not None
    assert [usd(end) for end in finding.range_usd] == ["1.818000", "2.121000"]


def test_the_worst_quartile_counts() -> None:
    """Of eight runs the two worst are 900 and 600: the milder one. Of four it is the worst."""
    run = ran(3599, GPU, volume_gb=0)
    eight = found(RULE, run, earlier=spot_runs(300, 310, 320, 330, 340, 350, 600, 900))
    assert eight.evidence["savings_percent"] == "40 to 70"
    four = found(RULE, run, earlier=spot_runs(300, 310, 320, 900))
    assert four.evidence["savings_percent"] == "10 to 70"


@pytest.mark.parametrize(
    "runs",
    [
        spot_runs(400, 300),
        spot_runs(400, 300, 350, status="Failed"),
        spot_runs(400, 300, 350, instance_type="ml.m5.large"),
        spot_runs(400, 300, 350, purchase=Purchase.ON_DEMAND),
        [*spot_runs(400, 300), earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU,
                                           billable_s=None)],
        [*spot_runs(400, 300), earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU,
                                           elapsed_s=Decimal(0))],
    ],
)  # fmt: skip
def test_fewer_than_three_usable_runs_leave_a_guess(runs: list[EarlierRun]) -> None:
    """Two; not completed; on another type; on demand; without one of the two times."""
    what = found(RULE, ran(1800, GPU, 6), earlier=runs)
    assert (what.bucket, what.confidence) == (Bucket.POSSIBLE, Confidence.HEURISTIC)
    assert what.evidence["savings_percent"] == "60 to 70"


def test_spot_that_saved_its_family_nothing_is_not_advised() -> None:
    """The worst quartile was billed for every second."""
    assert outcome(RULE, ran(1800, GPU, 6), earlier=spot_runs(300, 400, 1000)) == Clear()
    assert isinstance(outcome(RULE, ran(1800, GPU, 6), earlier=spot_runs(300, 400, 999)), Found)


def test_own_runs_make_no_long_run_safe() -> None:
    """Nor do checkpoints of its own, which SageMaker does not bring back."""
    run = ran(36_000, GPU, hints=Hints(own_checkpoints=True))
    finding = priced(RULE, run, earlier=spot_runs(400, 300, 350))
    assert (finding.saving_usd, finding.found.bucket) == (None, Bucket.POSSIBLE)
    assert "CheckpointConfig.S3Uri" in [fix.path for fix in finding.found.fix]


def test_the_sentence_of_a_trial() -> None:
    """Its numbers are the evidence's."""
    what = found(RULE, ran(36_000, GPU))
    assert what.summary == (
        "10 h on demand: write checkpoints first, then managed spot is worth a trial."
    )
    assert [fix.path for fix in what.fix][:2] == [
        "CheckpointConfig.S3Uri",
        "EnableManagedSpotTraining",
    ]
    assert what.evidence["elapsed_s"] == 36_000
    safe = found(RULE, ran(36_000, GPU, checkpointed=True))
    assert safe.summary == (
        "10 h on demand, with checkpoints: managed spot is worth a trial; published runs saved "
        "60 to 70%."
    )


@pytest.mark.parametrize("instance", ["ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.p6-b200.48xlarge"])
def test_several_of_the_scarcest_gpus_get_no_advice(instance: str) -> None:
    """A run needs all of them at once; one alone, or several of another kind, may be tried."""
    assert "cannot be counted on" in not_applicable(RULE, ran(7200, instance, 2, checkpointed=True))
    for type_name, count in ((instance, 1), (GPU, 2)):
        assert isinstance(outcome(RULE, ran(7200, type_name, count, checkpointed=True)), Found)
