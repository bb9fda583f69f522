from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found
from sageaudit.domain.job.job import InstanceGroup, Job, Parent, ParentKind, Phase, Purchase
from tests.fakes.families import earlier_run
from tests.fakes.jobs import START, job, market, phases
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown

RULE = "short-experiment"
DEAR = "ml.g4dn.12xlarge"
"""$4.89 an hour; ml.g4dn.xlarge has the same T4 for $0.736."""


def trial_run(work_s: int = 240, instance: str = DEAR, instances: int = 1, **more: Any) -> Job:
    """Two minutes of Downloading and some of Training."""
    seconds = Decimal(120 + work_s)
    plain: dict[str, Any] = {
        "phases": phases(("Starting", -60), ("Downloading", 120), ("Training", work_s)),
        "training_s": seconds,
        "billable_s": seconds,
        "ended_at": START.replace(hour=11),
    }
    return job(instance, instances, **plain | more)


def before(work_s: int = 240, days_ago: int = 1, **changes: Any) -> EarlierRun:
    """An earlier run like it, for $0.50."""
    plain: dict[str, Any] = {
        "instance_type": DEAR,
        "phase_s": {"Downloading": Decimal(120), "Training": Decimal(work_s)},
        "total_usd": Decimal("0.50"),
    }
    return earlier_run(days_ago, **plain | changes)


FOUR = [before()] * 4


def test_minutes_of_work_on_a_dear_type_again_and_again_are_found() -> None:
    """Five runs of four minutes; 360 s x $4.89 = $0.489 and 4 x $0.50 together."""
    what = found(RULE, trial_run(), earlier=FOUR)
    assert what.summary == (
        "5 runs in 7 days trained 4 min each (median) on 1 x ml.g4dn.12xlarge, $4.89 an hour."
    )
    assert what.evidence["runs_usd"] == Decimal("2.489")
    [fix] = what.fix
    assert (fix.path, fix.old, fix.new) == (
        "ResourceConfig.InstanceType", DEAR, "ml.g4dn.xlarge",
    )  # fmt: skip


def test_it_is_worth_a_trial_and_has_no_figure() -> None:
    """The small type may take $4.89 / $0.736 = 6.64 times as long for the same dollars."""
    finding = priced(RULE, trial_run(), earlier=FOUR)
    assert (finding.found.bucket, finding.found.confidence) == (
        Bucket.POSSIBLE, Confidence.HEURISTIC,
    )  # fmt: skip
    assert (finding.saving_usd, finding.severity.value) == (None, "info")
    assert finding.found.evidence["small_type_break_even"] == Decimal("6.64")
    assert "Local mode" in (finding.found.caution or "")


def test_exactly_ten_minutes_are_work() -> None:
    """599 s are minutes; so for this run and for the median."""
    assert outcome(RULE, trial_run(600), earlier=FOUR) == Clear()
    assert isinstance(outcome(RULE, trial_run(599), earlier=FOUR), Found)
    assert outcome(RULE, trial_run(), earlier=[before(600)] * 4) == Clear()
    assert isinstance(outcome(RULE, trial_run(), earlier=[before(599)] * 4), Found)


def test_exactly_three_dollars_an_hour_are_dear() -> None:
    """Six instances at $0.50; five are $2.50."""
    like: dict[str, Any] = {"instance_type": "ml.odd.xlarge"}
    six = trial_run(instance="ml.odd.xlarge", instances=6)
    assert isinstance(outcome(RULE, six, earlier=[before(instance_count=6, **like)] * 4), Found)
    five = trial_run(instance="ml.odd.xlarge", instances=5)
    assert outcome(RULE, five, earlier=[before(instance_count=5, **like)] * 4) == Clear()


def test_four_runs_are_not_again_and_again() -> None:
    """Three earlier ones; others of the family ran elsewhere, or long ago."""
    others = [
        before(instance_type="ml.m5.xlarge"),
        before(instance_count=2),
        before(days_ago=8),
        before(phase_s={}),
    ]
    assert outcome(RULE, trial_run(), earlier=FOUR[:3] + others) == Clear()
    assert outcome(RULE, trial_run(), earlier=[]) == Clear()


def test_a_week_is_seven_days_to_the_second() -> None:
    """The run ended at 11:00, an hour after START."""
    edge = before(ended_at=START.replace(day=13, hour=11))
    assert isinstance(outcome(RULE, trial_run(), earlier=[*FOUR[:3], edge]), Found)
    late = before(ended_at=START.replace(day=13, hour=10, minute=59))
    assert outcome(RULE, trial_run(), earlier=[*FOUR[:3], late]) == Clear()


def test_several_instances_become_one() -> None:
    """Local mode and a small type are one machine."""
    what = found(RULE, trial_run(instances=2), earlier=[before(instance_count=2)] * 4)
    assert [(fix.path, fix.new) for fix in what.fix] == [
        ("ResourceConfig.InstanceType", "ml.g4dn.xlarge"),
        ("ResourceConfig.InstanceCount", 1),
    ]


def test_the_advised_type_gets_no_advice() -> None:
    """It is not expensive."""
    assert outcome(RULE, trial_run(instance="ml.g4dn.xlarge"), earlier=FOUR) == Clear()


def test_without_a_small_type_there_is_still_local_mode() -> None:
    """No parameter is invented."""
    lonely = market(hourly_usd={DEAR: "4.89"})
    what = found(RULE, trial_run(), earlier=FOUR, on=lonely)
    assert what.fix == ()
    assert what.evidence["small_type"] is None


def test_an_unknown_cost_makes_the_sum_unknown() -> None:
    """It is never 0."""
    what = found(RULE, trial_run(), earlier=[*FOUR, before(total_usd=None)])
    assert what.evidence["runs_usd"] is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "Failed"}, "complete"),
        ({"parent": Parent(ParentKind.TUNING, "arn:t")}, "tuning job starts it"),
        ({"purchase": Purchase.TRAINING_PLAN}, "by the hour"),
        ({"purchase": Purchase.SERVERLESS}, "by the hour"),
        ({"groups": (InstanceGroup(DEAR, 1), InstanceGroup("ml.m5.xlarge", 1))}, "several groups"),
    ],
)
def test_other_runs_are_not_its_concern(changes: dict[str, Any], why: str) -> None:
    """And why."""
    assert why in not_applicable(RULE, trial_run(**changes))


def test_without_phases_price_or_history_it_is_unknown() -> None:
    """An end before the start has no seconds; a job of no known type has no rate."""
    whole = trial_run(phases=(Phase("Running", START, Decimal(360), billed=True),))
    assert unknown(RULE, whole) == "phases_missing"
    odd = trial_run(phases=(Phase("Training", START, None, billed=True),))
    assert unknown(RULE, odd) == "phases_missing"
    assert unknown(RULE, trial_run(instance="ml.unpriced.xlarge")) == "price_unknown"
    assert unknown(RULE, trial_run(groups=())) == "price_unknown"
    assert unknown(RULE, trial_run()) == "history_unread"
    assert outcome(RULE, trial_run(ended_at=None), earlier=FOUR) == Clear()
