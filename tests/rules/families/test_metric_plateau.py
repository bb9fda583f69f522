import math
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial

import pytest

from sageaudit.domain.bill.finding import Unknown
from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements, Metric, RawSeries
from sageaudit.structs import replace
from tests.fakes.jobs import START, job, phases, ran, series, usage
from tests.fakes.judging import answer, outcome, usd
from tests.fakes.rule_cases import (
    CLEAR,
    FOUND,
    cannot_judge,
    does_not_apply,
    finds,
    given_job,
    measured,
)

RULE = "metric-plateau"
BUILT_IN = "683313688378.dkr.ecr.us-east-1.amazonaws.com"
TWO_HOURS = ran(7200, "ml.g5.2xlarge")
"""At $1.515 an hour."""
Values = Sequence[float | None]


def curve(values: Values, metric: str = "validation:loss", period_s: int = 60) -> RawSeries:
    """Points of an algorithm metric from the start on."""
    return RawSeries("train", metric, START, period_s, tuple(values))


def falls(until: int, points: int = 120) -> list[float]:
    """A loss that falls by a twentieth each minute, and then stays."""
    return [2.0 * 0.95 ** min(minute, until) for minute in range(points)]


@given_job
def reported(job: Job, values: Values, metric: str = "validation:loss") -> Measurements:
    """A run that reported one metric and nothing of its hosts."""
    return usage(job, curve(values, metric))


LATE = [*falls(until=40, points=100), *[falls(until=40)[-1] * 0.995] * 20]


verdict = partial(answer, RULE)


def test_an_hour_without_a_gain_is_found() -> None:
    # The loss falls for 40 min of 2 h: 79 of the others are known to be flat.
    assert verdict(TWO_HOURS, reported(falls(until=40))) == finds(
        "validation:loss last improved to 0.2570; after that, 1 h 19 min of 2 h of "
        "Training (66%) brought no gain.",
        builder="possible",
        evidence={"direction": "Minimize", "points": 120},
    )


def test_the_saving_is_what_came_after_ten_points_of_patience() -> None:
    # From minute 50 to the last point at 119: 4140 of 7200 s of $3.03.
    assert verdict(TWO_HOURS, reported(falls(until=40))) == finds(
        usd=usd(Decimal("1.515") * 4140 / 3600), severity="low", evidence={"cut_s": 4140}
    )


def test_15_flat_minutes_after_the_patience_are_found_and_14_are_not() -> None:
    # A run of 80 minutes: flat from 54 on, 10 points of patience, the last point at 79.
    result = verdict(ran(4800, "ml.g5.2xlarge"), reported(falls(until=54, points=80)))
    assert result == finds(evidence={"cut_s": 900})
    result = verdict(ran(4800, "ml.g5.2xlarge"), reported(falls(until=55, points=80)))
    assert result == CLEAR


def test_30_flat_minutes_of_120_a_quarter_are_found_and_29_are_not() -> None:
    assert verdict(TWO_HOURS, reported(falls(until=89))) == finds(evidence={"flat_s": 1800})
    assert verdict(TWO_HOURS, reported(falls(until=90))) == CLEAR


def test_training_that_learns_to_the_end_is_clear() -> None:
    """A loss that falls, an accuracy that rises."""
    assert verdict(TWO_HOURS, reported(falls(until=120))) == CLEAR
    result = verdict(
        TWO_HOURS,
        reported([0.95 - 0.5 * math.exp(-minute / 40) for minute in range(120)], "val_accuracy"),
    )
    assert result == CLEAR


def test_a_gain_of_1_percent_is_none_and_of_1_1_percent_it_is_one() -> None:
    # Of 1.00 to 0.99 at minute 60; to 0.989 it is one, and 59 flat minutes remain.
    result = verdict(TWO_HOURS, reported([1.0] * 60 + [0.99] * 60))
    assert result == finds(evidence={"flat_s": 119 * 60})
    result = verdict(TWO_HOURS, reported([1.0] * 60 + [0.989] * 60))
    assert result == finds(evidence={"flat_s": 59 * 60})


def test_gains_of_a_hundredth_of_a_percent_a_minute_add_up_to_one_percent() -> None:
    # A hundredth of a percent each minute: 1% of minute 1, where the median begins, at 102.
    result = verdict(
        TWO_HOURS,
        reported([0.9999**minute for minute in range(120)]),
        limits={"flat_share_percent": 10, "min_cut_s": 1},
    )
    assert result == finds(evidence={"flat_s": (119 - 102) * 60})


def test_the_plateau_ends_where_the_idle_tail_begins() -> None:
    # 30 idle minutes at the end are another finding's: 39 of the 69 minutes are left.
    result = verdict(
        TWO_HOURS,
        measured(
            curve(falls(until=40)),
            series(Metric.CPU, [400] * 90 + [0] * 30),
            series(Metric.GPU, [80] * 90 + [0] * 30),
        ),
    )
    assert result == finds(evidence={"flat_s": 50 * 60, "cut_s": 40 * 60})


def test_work_after_the_last_point_is_no_plateau() -> None:
    # An export after training: 60 minutes without a point.
    assert verdict(TWO_HOURS, reported(falls(until=30, points=50))) == CLEAR


def test_an_interruption_is_no_training() -> None:
    # Two hours of work with an hour in between, which is not in the flat minutes.
    result = verdict(
        ran(
            7200,
            "ml.g5.2xlarge",
            phases=phases(("Training", 3600), ("Interrupted", 3600), ("Training", 3600)),
            ended_at=START + timedelta(hours=3),
        ),
        measured(curve([*falls(until=40, points=60), *[None] * 60, *[falls(until=60)[40]] * 60])),
    )
    assert result == finds(evidence={"flat_s": 20 * 60 + 59 * 60})


def test_an_answer_without_phases_is_cut_in_its_run() -> None:
    """Of 2018: one run from start to end."""
    result = verdict(
        ran(7200, "ml.g5.2xlarge", phases=phases(("Running", 7200))),
        reported(falls(until=40)),
    )
    assert result == finds(usd="1.742250")


def test_validation_is_preferred_and_the_last_gain_counts() -> None:
    # Training loss does not count beside it; of two validation metrics the later gain counts.
    result = verdict(
        TWO_HOURS, measured(curve(falls(until=40)), curve(falls(until=120), "train:loss"))
    )
    assert result == finds(evidence={"metric": "validation:loss"})
    result = verdict(
        TWO_HOURS,
        measured(
            curve(falls(until=40)),
            curve([0.5 + minute / 300 for minute in range(120)], "validation:accuracy"),
        ),
    )
    assert result == CLEAR


def test_the_policys_objective_stands_before_the_table() -> None:
    """Its direction too."""
    result = verdict(
        TWO_HOURS,
        measured(curve(falls(until=40)), curve(range(120), "reward")),
        policy=Policy(objectives={"reward": Direction.MAXIMIZE}),
    )
    assert result == CLEAR
    result = verdict(
        TWO_HOURS,
        measured(curve([1.0] * 120, "reward")),
        policy=Policy(objectives={"reward": Direction.MAXIMIZE}),
    )
    assert result == finds(evidence={"metric": "reward"})


def test_the_tuning_jobs_objective_stands_before_all() -> None:
    """Of its children."""
    result = verdict(
        replace(TWO_HOURS, objective=Objective("odd", Direction.MAXIMIZE)),
        measured(curve(falls(until=40)), curve(range(120), "odd")),
    )
    assert result == CLEAR


def test_20_points_draw_a_curve_and_19_do_not() -> None:
    assert verdict(TWO_HOURS, reported(falls(until=5, points=19))) == cannot_judge("too_few_points")
    assert verdict(TWO_HOURS, measured(curve(falls(until=5, points=20), period_s=360))) == FOUND


def test_a_metric_of_unknown_direction_is_unknown() -> None:
    """Whether more reward is better is not stated."""
    assert verdict(TWO_HOURS, reported(falls(until=40), "reward")) == cannot_judge(
        "direction_unknown"
    )
    result = verdict(TWO_HOURS, reported(falls(until=40), "loss_scale"))
    assert result == cannot_judge("direction_unknown")


def test_a_metric_that_never_came_is_unknown() -> None:
    # Most containers define none at all: the rule does not apply to them.
    result = verdict(replace(TWO_HOURS, metric_names=("validation:loss",)))
    assert result == cannot_judge("metric_missing")
    assert verdict(TWO_HOURS) == does_not_apply("its container defines no metric of its own")


def test_other_runs_are_not_judged() -> None:
    """A failed run is lost as a whole."""
    result = verdict(replace(TWO_HOURS, status="Failed"), reported(falls(until=40)))
    assert result == does_not_apply("…did not complete…")
    result = verdict(replace(TWO_HOURS, status="Stopped"), reported(falls(until=40)))
    assert result == does_not_apply("…did not complete…")
    result = verdict(replace(TWO_HOURS, purchase=Purchase.SERVERLESS), reported(falls(until=40)))
    assert result == does_not_apply("…serverless…")
    result = verdict(replace(TWO_HOURS, kind=JobKind.PROCESSING), reported(falls(until=40)))
    assert result == does_not_apply("…processing…")


def test_the_advised_run_gets_no_advice() -> None:
    """Stopped after ten points of patience."""
    result = verdict(
        ran(3060, "ml.g5.2xlarge", max_runtime_s=3060),
        reported(falls(until=40, points=51)),
    )
    assert result == CLEAR


def test_a_job_whose_end_is_before_its_start_does_not_raise() -> None:
    """It has no seconds."""
    result = verdict(
        job(
            ended_at=START - timedelta(hours=1),
            training_s=None,
            billable_s=None,
            phases=(),
            metric_names=("validation:loss",),
        ),
        reported(falls(until=40)),
    )
    assert result == cannot_judge("metric_missing")


def test_one_lucky_point_is_no_best() -> None:
    """The running median of five ignores it."""
    assert (
        verdict(TWO_HOURS, reported([*falls(until=5, points=5), 0.001, *falls(until=120)[6:]]))
        == CLEAR
    )


def test_a_schedule_that_gains_late_is_judged_more_strictly() -> None:
    # Half a percent at minute 100 is a gain there, and none elsewhere.
    assert verdict(TWO_HOURS, reported(LATE)) == FOUND
    assert verdict(replace(TWO_HOURS, hints=Hints(schedule="cosine")), reported(LATE)) == CLEAR
    result = verdict(replace(TWO_HOURS, hints=Hints(schedule="cosine")), reported(falls(until=40)))
    assert result == finds(caution="Its cosine schedule gains late. …")
    assert verdict(replace(TWO_HOURS, hints=Hints(schedule="linear")), reported(LATE)) == CLEAR
    result = verdict(replace(TWO_HOURS, hints=Hints(schedule="linear")), reported(falls(until=40)))
    assert result == finds(caution="Its linear schedule gains late. …")


def test_a_limit_is_the_last_resort() -> None:
    """7200 - 4140 s, and checkpoints for what it leaves."""
    # One that writes them needs no more; an interrupted run has no such limit.
    assert verdict(TWO_HOURS, reported(falls(until=40))) == finds(
        fix=[
            ("StoppingCondition.MaxRuntimeInSeconds", 86400, 3060),
            ("CheckpointConfig.S3Uri", "s3://<bucket>/<prefix>"),
        ]
    )
    result = verdict(replace(TWO_HOURS, checkpointed=True), reported(falls(until=40)))
    assert result == finds(fix=[("StoppingCondition.MaxRuntimeInSeconds", 86400, 3060)])
    result = verdict(
        ran(7200, "ml.g5.2xlarge", phases=phases(("Interrupted", 0), ("Training", 7200))),
        reported(falls(until=40)),
    )
    assert result == finds(fix=[])


def test_xgboost_stops_early_itself() -> None:
    """By a parameter of the built-in algorithm."""
    result = verdict(replace(TWO_HOURS, image=f"{BUILT_IN}/xgboost:1"), reported(falls(until=40)))
    assert result == finds(fix=[("HyperParameters.early_stopping_rounds", "10")])
    result = verdict(
        replace(TWO_HOURS, image=f"{BUILT_IN}/sagemaker-xgboost:1.7-1"), reported(falls(until=40))
    )
    assert result == finds(fix=[("HyperParameters.early_stopping_rounds", "10")])


def test_a_script_on_xgboosts_image_stops_early_by_its_own() -> None:
    result = verdict(
        replace(TWO_HOURS, image=f"{BUILT_IN}/xgboost:1", entry_point="train.py"),
        reported(falls(until=40)),
    )
    assert result == finds(
        paths=["StoppingCondition.MaxRuntimeInSeconds", "CheckpointConfig.S3Uri"]
    )
    result = verdict(
        replace(TWO_HOURS, image=f"{BUILT_IN}/sagemaker-xgboost:1.7-1", entry_point="train.py"),
        reported(falls(until=40)),
    )
    assert result == finds(
        paths=["StoppingCondition.MaxRuntimeInSeconds", "CheckpointConfig.S3Uri"]
    )


@pytest.mark.parametrize(
    "values", [[None] * 200, [1.0], [0.0] * 120, [-5.0] * 120, [1e300] * 120, [float("nan")] * 120]
)
def test_odd_values_do_not_raise(values: list[float | None]) -> None:
    """Gaps, a single point, zeros, negatives and numbers past all measure."""
    answer = outcome(RULE, TWO_HOURS, reported(values))
    assert not isinstance(answer, Unknown) or answer.code in {"metric_missing", "too_few_points"}
