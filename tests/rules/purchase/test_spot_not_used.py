from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.job import InstanceGroup, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import WarmPool
from tests.fakes.families import earlier_run
from tests.fakes.jobs import ran
from tests.fakes.judging import answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds

RULE = "spot-not-used"
GPU = "ml.g5.2xlarge"
"""One A10G at $1.515 an hour."""
CHECKPOINTS_FIRST = [
    "CheckpointConfig.S3Uri",
    "EnableManagedSpotTraining",
    "StoppingCondition.MaxWaitTimeInSeconds",
]


def run_with_finding(days_ago: int) -> AuditSummary:
    """A run on demand with a finding of this rule."""
    return earlier_run(days_ago, rules_with_findings=(RULE,), instance_type=GPU)


def spot_runs(*billed_of_1000: int, first: int = 1, **facts: Any) -> list[AuditSummary]:
    """Completed spot runs of the family, each billed for this many of its 1000 seconds."""
    plain: dict[str, Any] = {"purchase": Purchase.SPOT, "instance_type": GPU}
    return [
        earlier_run(n, elapsed_s=Decimal(1000), billable_s=Decimal(billed), **plain | facts)
        for n, billed in enumerate(billed_of_1000, start=first)
    ]


verdict = partial(answer, RULE)


def test_an_on_demand_run_is_worth_a_trial() -> None:
    # Half an hour of 6 x $1.515 at 40%.
    assert verdict(ran(1800, GPU, 6)) == finds(
        "The run took 30 min on demand, so managed spot is worth a trial. EC2's spot prices for "
        "g5 were on average 60% below the on-demand price (us-east-1, July 2025).",
        builder="possible",
        usd="2.727000",
        span=None,
        severity="low",
    )


def test_a_published_managed_spot_run_of_the_family_is_the_counted_end() -> None:
    # 14683 of 37026 s were billed; 24 h of $0.23 are $5.52.
    result = verdict(ran(86_400, checkpointed=True, volume_gb=0))
    assert result == finds(
        "…worth a trial. A published run on ml.m5.4xlarge saved 60%, and EC2's spot prices "
        "for m5 were on average 65% below…",
        usd="3.330993",
        span=("3.330993", "3.588000"),
    )


def test_of_other_families_and_of_scarce_types_nothing_is_published_that_would_hold() -> None:
    for name in ("ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.odd.xlarge"):
        assert verdict(ran(86_399, name, checkpointed=True)) == finds(
            "The run took 1 d on demand with checkpoints, so managed spot is worth a trial.",
            usd=None,
            caution="No figure:…",
        )


def test_a_run_of_30_minutes_is_long_enough_and_one_second_less_is_not() -> None:
    """Shorter runs save cents."""
    assert verdict(ran(1800, GPU, 6)) == FOUND
    assert verdict(ran(1799, GPU, 6)) == CLEAR


def test_a_family_that_cost_less_than_4_dollars_is_left_alone() -> None:
    # 6 h x $0.23 = $1.38; with two runs for $1.31 each before it the family's are $4.
    run = ran(21_600, "ml.m5.xlarge", checkpointed=True, volume_gb=0)
    earlier = [earlier_run(days, total_usd=Decimal("1.31")) for days in (1, 2)]
    assert verdict(run, earlier=[]) == CLEAR
    assert verdict(run, earlier=[], limits={"min_spend_usd": 1.38}) == FOUND
    assert verdict(run, earlier=earlier) == FOUND
    assert verdict(run, earlier=earlier[:1]) == CLEAR


def test_where_spot_cannot_be_or_was_used_it_says_nothing() -> None:
    for changes, reason in (
        ({"purchase": Purchase.SPOT}, "…spot…"),
        ({"purchase": Purchase.TRAINING_PLAN}, "…training plan…"),
        ({"purchase": Purchase.SERVERLESS}, "…serverless…"),
        ({"groups": (InstanceGroup(GPU, 1), InstanceGroup("ml.m5.large", 1))}, "…groups…"),
        ({"groups": (InstanceGroup(GPU, 1, "all"),)}, "…groups…"),
        ({"warm_pool": WarmPool(None, 1800, None)}, "…warm pool…"),
        ({"tags": {"sageaudit:deadline": "tonight"}}, "…sageaudit:deadline…"),
        ({"status": "Failed"}, "…complete…"),
        ({"status": "Stopped"}, "…complete…"),
        ({"kind": JobKind.PROCESSING}, "…processing…"),
        ({"kind": JobKind.TRANSFORM}, "…transform…"),
    ):
        assert verdict(ran(36_000, GPU, **changes)) == does_not_apply(reason)


def test_without_times_it_does_not_know() -> None:
    """A completed job whose answer has no times."""
    result = verdict(ran(1800, GPU, 6, started_at=None, ended_at=None, training_s=None))
    assert result == cannot_judge("times_missing")


def test_three_spot_runs_of_its_own_make_a_figure() -> None:
    # Two hours of $1.515: 3.03 x (1 - 0.4) at worst, 3.03 x (1 - 0.3) at best; it is counted.
    result = verdict(
        ran(7200, GPU, checkpointed=True, volume_gb=0), earlier=spot_runs(400, 300, 350)
    )
    assert result == finds(
        "The run took 2 h on demand with checkpoints: 3 spot runs of its family on this type saved "
        "60 to 70%, 65% at the median.",
        builder="derived",
        usd="1.818000",
        span=("1.818000", "2.121000"),
    )


def test_the_milder_of_the_2_worst_of_8_spot_runs_counts_and_the_worst_of_4() -> None:
    # Of 1000 s the two worst were billed 900 and 600: 40% saved. Of four the worst: 10%.
    result = verdict(
        ran(3599, GPU, volume_gb=0), earlier=spot_runs(300, 310, 320, 330, 340, 350, 600, 900)
    )
    assert result == finds(evidence={"savings_percent": "40 to 70"})
    result = verdict(ran(3599, GPU, volume_gb=0), earlier=spot_runs(300, 310, 320, 900))
    assert result == finds(evidence={"savings_percent": "10 to 70"})


def test_one_or_two_of_them_make_it_possible_with_dollars() -> None:
    result = verdict(
        ran(7200, GPU, volume_gb=0),
        earlier=[*spot_runs(400, 300), earlier_run(9, total_usd=Decimal(4))],
    )
    assert result == finds(
        "…: 2 spot runs of its family on this type saved 60 to 70%, 65% at the median.",
        builder="possible_by_runs",
        usd="1.818000",
        span=("1.818000", "2.121000"),
    )
    result = verdict(
        ran(7200, GPU, volume_gb=0), earlier=[*spot_runs(400), earlier_run(9, total_usd=Decimal(4))]
    )
    assert result == finds(
        "…: 1 spot run of its family on this type saved 60%.",
        builder="possible_by_runs",
        usd="1.818000",
        span=None,
    )


def test_an_interrupted_run_is_compared_with_this_one_whose_time_was_not_interrupted() -> None:
    # 900 of 1000 s with the waiting are half of the 1800 s here.
    result = verdict(
        ran(1800, GPU, 6), earlier=spot_runs(900, phase_s={"Interrupted": Decimal(100)})
    )
    assert result == finds("…: 1 spot run of its family on this type saved 50%.")


def test_runs_that_say_nothing_of_spot_leave_a_guess() -> None:
    # An interrupted run of less than half the time did less; what was not billed proves nothing.
    result = verdict(
        ran(7200, GPU, 6), earlier=spot_runs(100, 100, 100, phase_s={"Interrupted": Decimal(100)})
    )
    assert result == finds(builder="possible", evidence={"own_spot_runs": 0})
    result = verdict(ran(1800, GPU, 6), earlier=spot_runs(0, 0, 0))
    assert result == finds(builder="possible", evidence={"own_spot_runs": 0})
    # Not completed; on another type; on demand; without one of the two times.
    for facts in (
        {"status": "Failed"},
        {"instance_type": "ml.m5.large"},
        {"purchase": Purchase.ON_DEMAND},
    ):
        result = verdict(ran(1800, GPU, 6), earlier=spot_runs(400, 300, 350, **facts))
        assert result == finds(builder="possible", evidence={"own_spot_runs": 0})
    for unknown in ({"billable_s": None}, {"elapsed_s": Decimal(0)}):
        timeless = earlier_run(9, purchase=Purchase.SPOT, instance_type=GPU, **unknown)
        result = verdict(ran(1800, GPU, 6), earlier=[*spot_runs(400, 300), timeless])
        assert result == finds(builder="possible_by_runs", evidence={"own_spot_runs": 2})


def test_what_own_runs_prove_is_posted_once() -> None:
    """A guess before that was another sentence."""
    result = verdict(
        ran(1800, GPU, 6),
        earlier=[earlier_run(1), run_with_finding(2), *spot_runs(400, 300, 350, first=3)],
    )
    assert result == finds(reported_for_run="train-2")
    result = verdict(ran(1800, GPU, 6), earlier=[*spot_runs(400, 300, 350), run_with_finding(4)])
    assert result == finds(reported_for_run=None)


def test_spot_that_saved_its_family_nothing_is_not_advised() -> None:
    # The worst quartile was billed for every second.
    assert verdict(ran(1800, GPU, 6), earlier=spot_runs(300, 400, 1000)) == CLEAR
    assert verdict(ran(1800, GPU, 6), earlier=spot_runs(300, 400, 999)) == FOUND


def test_several_of_the_scarcest_gpus_get_no_advice() -> None:
    # A run needs all of them at once; one alone, or several of another kind, may be tried.
    for scarce in ("ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.p6-b200.48xlarge"):
        result = verdict(ran(7200, scarce, 2, checkpointed=True))
        assert result == does_not_apply("…cannot be counted on…")
        assert verdict(ran(7200, scarce, 1, checkpointed=True)) == FOUND
    assert verdict(ran(7200, GPU, 2, checkpointed=True)) == FOUND


def test_own_runs_outweigh_missing_checkpoints() -> None:
    """10 h of $1.515 at 40%."""
    result = verdict(ran(36_000, GPU), earlier=spot_runs(400, 300, 350))
    assert result == finds(
        "The run took 10 h on demand: 3 spot runs of its family on this type saved 60 to 70%, "
        "65% at the "
        "median.",
        builder="derived",
        usd="9.090000",
        paths=CHECKPOINTS_FIRST,
        caution="…Without checkpoints an interruption starts the run again.",
    )


def test_the_sentence_of_a_trial() -> None:
    """Its numbers are the evidence's; checkpoints make it safe."""
    assert verdict(ran(36_000, GPU)) == finds(
        "The run took 10 h on demand: if you first let it write checkpoints, managed spot is "
        "worth a trial.",
        paths=CHECKPOINTS_FIRST,
        evidence={"elapsed_s": 36_000},
    )
    assert verdict(ran(36_000, GPU, checkpointed=True)) == finds(
        "The run took 10 h on demand with checkpoints, so managed spot is worth a trial. EC2's "
        "spot prices…",
        paths=CHECKPOINTS_FIRST[1:],
        usd="9.090000",
    )


def test_3600_s_without_checkpoints_get_no_figure_and_3599_s_do() -> None:
    """An hour is the longest that MaxWait may be without checkpoints."""
    assert verdict(ran(3599, GPU, 6)) == finds(usd="5.452485")
    assert verdict(ran(3600, GPU, 6)) == finds(usd=None, span=None, caution="…checkpoints…")


def test_the_wait_limit_is_above_the_run_limit() -> None:
    """The API refuses a MaxWait under MaxRuntime."""
    assert verdict(ran(1800, GPU, 6, max_runtime_s=7200)) == finds(
        fix=["s3://<bucket>/<prefix>", True, 14_400]
    )


@pytest.mark.parametrize(("limit_s", "wait_s"), [(86_399, 172_798), (86_401, 172_801)])
def test_advised_spot_waits_as_long_as_the_run_and_a_day_at_most(limit_s: int, wait_s: int) -> None:
    job = ran(1800, GPU, 6, max_runtime_s=limit_s)
    advised = finds(fix=["s3://<bucket>/<prefix>", True, wait_s])
    assert verdict(job) == advised
