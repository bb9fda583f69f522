from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements, Metric, RawSeries
from sageaudit.domain.usage.plot import plot_curve
from tests.fakes.jobs import START, job, phases, ran, series, usage
from tests.fakes.judging import found, not_applicable, outcome, priced, unknown, usd

RULE = "metric-plateau"
TWO_HOURS = ran(7200, "ml.g5.2xlarge")
Values = Sequence[float | None]


def curve(values: Values, metric: str = "validation:loss", period_s: int = 60) -> RawSeries:
    """Points of an algorithm metric from the start on."""
    return RawSeries("train", metric, START, period_s, tuple(values))


def falls(until: int, points: int = 120) -> list[float]:
    """A loss that falls by a twentieth each minute, and then stays."""
    return [2.0 * 0.95 ** min(minute, until) for minute in range(points)]


def reported(values: Values, metric: str = "validation:loss", of: Job = TWO_HOURS) -> Measurements:
    """What is known of a run that reported one metric and none of its hosts."""
    return usage(of, curve(values, metric))


def test_an_hour_without_a_gain_is_found() -> None:
    """The loss falls for 40 min of 2 h: 79 of the others are known to be flat."""
    what = found(RULE, TWO_HOURS, reported(falls(40)))
    assert what.summary == (
        "validation:loss last improved to 0.2570; after that, 1 h 19 min of 2 h of Training (66%) "
        "brought no gain."
    )
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert what.evidence["direction"] == "Minimize"
    assert what.evidence["points"] == 120


def test_the_saving_is_what_came_after_ten_points_of_patience() -> None:
    """From minute 50 to the last point at 119: 4140 of 7200 s of $3.03."""
    finding = priced(RULE, TWO_HOURS, reported(falls(40)))
    assert finding.found.evidence["cut_s"] == 4140
    assert usd(finding.saving_usd) == usd(Decimal("1.515") * 4140 / 3600)
    assert finding.severity.value == "low"


def test_the_plot_is_the_curve_itself() -> None:
    """So that it can be shown when CloudWatch no longer has it."""
    what = found(RULE, TWO_HOURS, reported(falls(40)))
    line = reported(falls(40)).curves["validation:loss"]
    assert what.evidence["series"] == plot_curve("validation:loss", line)


def test_a_limit_is_the_last_resort() -> None:
    """7200 - 4140 s, and checkpoints for what it leaves; an interrupted run has no such limit."""
    limit, checkpoints = found(RULE, TWO_HOURS, reported(falls(40))).fix
    assert limit.path == "StoppingCondition.MaxRuntimeInSeconds"
    assert (limit.old, limit.new) == (86400, 3060)
    assert checkpoints.path == "CheckpointConfig.S3Uri"
    saving = replace(TWO_HOURS, checkpointed=True)
    assert found(RULE, saving, reported(falls(40), of=saving)).fix == (limit,)
    twice = ran(7200, "ml.g5.2xlarge", phases=phases(("Interrupted", 0), ("Training", 7200)))
    assert found(RULE, twice, reported(falls(40), of=twice)).fix == ()


@pytest.mark.parametrize("image", ["xgboost:1", "sagemaker-xgboost:1.7-1"])
def test_xgboost_stops_early_itself(image: str) -> None:
    """By a parameter of the built-in algorithm; a script has its own."""
    built_in = replace(TWO_HOURS, image=f"683313688378.dkr.ecr.us-east-1.amazonaws.com/{image}")
    [fix] = found(RULE, built_in, reported(falls(40), of=built_in)).fix
    assert (fix.path, fix.new) == ("HyperParameters.early_stopping_rounds", "10")
    script = replace(built_in, entry_point="train.py")
    limit, _ = found(RULE, script, reported(falls(40), of=script)).fix
    assert limit.path == "StoppingCondition.MaxRuntimeInSeconds"


def test_exactly_fifteen_minutes_after_the_patience_are_enough() -> None:
    """A run of 80 minutes: flat from 54 on, 10 points of patience, the last point at 79."""
    run = ran(4800, "ml.g5.2xlarge")
    assert found(RULE, run, reported(falls(54, 80), of=run)).evidence["cut_s"] == 900
    assert outcome(RULE, run, reported(falls(55, 80), of=run)) == Clear()


def test_exactly_a_quarter_of_training_is_enough() -> None:
    """30 of 120 minutes; 29 of them are not."""
    assert found(RULE, TWO_HOURS, reported(falls(89))).evidence["flat_s"] == 1800
    assert outcome(RULE, TWO_HOURS, reported(falls(90))) == Clear()


def test_training_that_learns_to_the_end_is_clear() -> None:
    """A loss that falls, an accuracy that rises."""
    assert outcome(RULE, TWO_HOURS, reported(falls(120))) == Clear()
    rising = [0.95 - 0.5 * math.exp(-minute / 40) for minute in range(120)]
    assert outcome(RULE, TWO_HOURS, reported(rising, "val_accuracy")) == Clear()


def test_exactly_one_percent_is_no_gain() -> None:
    """Of 1.00 to 0.99 at minute 60; to 0.989 it is one, and 59 flat minutes remain."""
    to_99 = [1.0] * 60 + [0.99] * 60
    assert found(RULE, TWO_HOURS, reported(to_99)).evidence["flat_s"] == 119 * 60
    to_989 = [1.0] * 60 + [0.989] * 60
    assert found(RULE, TWO_HOURS, reported(to_989)).evidence["flat_s"] == 59 * 60


def test_small_gains_add_up() -> None:
    """A hundredth of a percent each minute: 1% of minute 1, where the median begins, at 102."""
    slow = [0.9999**minute for minute in range(120)]
    what = found(
        RULE, TWO_HOURS, reported(slow), limits={"flat_share_percent": 10, "cut_from_s": 1}
    )
    assert what.evidence["flat_s"] == (119 - 102) * 60


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_a_schedule_that_gains_late_is_judged_more_strictly(schedule: str) -> None:
    """Half a percent at minute 100 is a gain there, and none elsewhere."""
    late = [*falls(40, 100), *[falls(40)[-1] * 0.995] * 20]
    hinted = replace(TWO_HOURS, hints=Hints(schedule=schedule))
    assert isinstance(outcome(RULE, TWO_HOURS, reported(late)), Found)
    assert outcome(RULE, hinted, reported(late, of=hinted)) == Clear()
    flat = found(RULE, hinted, reported(falls(40), of=hinted))
    assert flat.caution is not None
    assert flat.caution.startswith(f"Its {schedule} schedule gains late. ")


def test_one_lucky_point_is_no_best() -> None:
    """The running median of five does not see it; without it the loss falls on."""
    lucky = falls(120)
    lucky[5] = 0.001
    assert outcome(RULE, TWO_HOURS, reported(lucky)) == Clear()


def test_the_plateau_ends_where_the_idle_tail_begins() -> None:
    """30 idle minutes at the end are another finding's: 39 of the 69 minutes are left."""
    of = usage(
        TWO_HOURS,
        curve(falls(40)),
        series(Metric.CPU, [400] * 90 + [0] * 30),
        series(Metric.GPU, [80] * 90 + [0] * 30),
    )
    what = found(RULE, TWO_HOURS, of)
    assert (what.evidence["flat_s"], what.evidence["cut_s"]) == (50 * 60, 40 * 60)


def test_work_after_the_last_point_is_no_plateau() -> None:
    """An export after training: 60 minutes without a point."""
    assert outcome(RULE, TWO_HOURS, reported(falls(30, 50))) == Clear()


def test_an_interruption_is_no_training() -> None:
    """Two hours of work with an hour in between, which is not in the flat minutes."""
    parts = phases(("Training", 3600), ("Interrupted", 3600), ("Training", 3600))
    run = ran(7200, "ml.g5.2xlarge", phases=parts, ended_at=START + timedelta(hours=3))
    of = usage(run, curve([*falls(40, 60), *[None] * 60, *[falls(60)[40]] * 60]))
    assert found(RULE, run, of).evidence["flat_s"] == 20 * 60 + 59 * 60


def test_an_answer_without_phases_is_cut_in_its_run() -> None:
    """Of 2018: one run from start to end."""
    run = ran(7200, "ml.g5.2xlarge", phases=phases(("Running", 7200)))
    assert usd(priced(RULE, run, reported(falls(40), of=run)).saving_usd) == "1.742250"


def test_validation_is_preferred_and_the_last_gain_counts() -> None:
    """Training loss does not count beside it; of two validation metrics the later gain counts."""
    stalls, learns = curve(falls(40)), curve(falls(120), "train:loss")
    assert found(RULE, TWO_HOURS, usage(TWO_HOURS, stalls, learns)).evidence["metric"] == (
        "validation:loss"
    )
    rises = curve([0.5 + minute / 300 for minute in range(120)], "validation:accuracy")
    assert outcome(RULE, TWO_HOURS, usage(TWO_HOURS, stalls, rises)) == Clear()


def test_the_policys_objective_stands_before_the_table() -> None:
    """Its direction too."""
    policy = Policy(objectives={"reward": Direction.MAXIMIZE})
    of = usage(TWO_HOURS, curve(falls(40)), curve(range(120), "reward"))
    assert outcome(RULE, TWO_HOURS, of, policy=policy) == Clear()
    what = found(RULE, TWO_HOURS, usage(TWO_HOURS, curve([1.0] * 120, "reward")), policy=policy)
    assert what.evidence["metric"] == "reward"


def test_the_tuning_jobs_objective_stands_before_all() -> None:
    """Of its children."""
    child = replace(TWO_HOURS, objective=Objective("odd", Direction.MAXIMIZE))
    of = usage(child, curve(falls(40)), curve(range(120), "odd"))
    assert outcome(RULE, child, of) == Clear()


def test_nineteen_points_draw_no_curve() -> None:
    """20 do."""
    assert unknown(RULE, TWO_HOURS, reported(falls(5, 19))) == "too_few_points"
    six_minutes = usage(TWO_HOURS, curve(falls(5, 20), period_s=360))
    assert isinstance(outcome(RULE, TWO_HOURS, six_minutes), Found)


def test_a_metric_of_unknown_direction_is_unknown() -> None:
    """Whether more reward is better is not stated."""
    assert unknown(RULE, TWO_HOURS, reported(falls(40), "reward")) == "direction_unknown"
    assert unknown(RULE, TWO_HOURS, reported(falls(40), "loss_scale")) == "direction_unknown"


def test_a_metric_that_never_came_is_unknown() -> None:
    """Most containers define none at all: the rule does not apply to them."""
    defined = replace(TWO_HOURS, metric_names=("validation:loss",))
    assert unknown(RULE, defined) == "metric_missing"
    assert not_applicable(RULE, TWO_HOURS) == "its container defines no metric of its own"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"status": "Failed"}, "did not complete"),
        ({"status": "Stopped"}, "did not complete"),
        ({"purchase": Purchase.SERVERLESS}, "serverless"),
        ({"kind": JobKind.PROCESSING}, "processing"),
    ],
)
def test_other_runs_are_not_its_concern(changes: dict[str, Any], why: str) -> None:
    """A failed run is lost as a whole."""
    assert why in not_applicable(RULE, replace(TWO_HOURS, **changes), reported(falls(40)))


def test_the_advised_run_gets_no_advice() -> None:
    """Stopped after ten points of patience."""
    stopped = ran(3060, "ml.g5.2xlarge", max_runtime_s=3060)
    assert outcome(RULE, stopped, reported(falls(40, 51), of=stopped)) == Clear()


@pytest.mark.parametrize(
    "values",
    [[None] * 200, [1.0], [0.0] * 120, [-5.0] * 120, [1e300] * 120, [float("nan")] * 120],
)
def test_odd_values_do_not_raise(values: list[float | None]) -> None:
    """Gaps, a single point, zeros, negatives and numbers past all measure."""
    answer = outcome(RULE, TWO_HOURS, reported(values))
    assert not isinstance(answer, Unknown) or answer.code in {"metric_missing", "too_few_points"}


def test_a_job_whose_end_is_before_its_start_does_not_raise() -> None:
    """It has no seconds."""
    odd = job(
        ended_at=START - timedelta(hours=1),
        training_s=None,
        billable_s=None,
        phases=(),
        metric_names=("validation:loss",),
    )
    assert unknown(RULE, odd, reported(falls(40), of=odd)) == "metric_missing"
