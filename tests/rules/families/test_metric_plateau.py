import math
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.bill.finding import Unknown
from sageaudit.domain.job.job import Hints, Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.measurements import Measurements, Metric, RawSeries
from sageaudit.structs import replace
from tests.fakes.jobs import START, job, phases, ran, series, usage
from tests.fakes.judging import outcome, usd
from tests.fakes.rule_cases import CLEAR, FOUND, cases, finds, lines, row

RULE = "metric-plateau"
BUILT_IN = "683313688378.dkr.ecr.us-east-1.amazonaws.com"
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


LATE = [*falls(40, 100), *[falls(40)[-1] * 0.995] * 20]


test_cases = cases(
    RULE,
    "An hour without a gain is found.",
    # The loss falls for 40 min of 2 h: 79 of the others are known to be flat.
    row(finds("validation:loss last improved to 0.2570; after that, 1 h 19 min of 2 h of "
        "Training (66%) brought no gain.", builder="possible", evidence={"direction": "Minimize",
        "points": 120}), TWO_HOURS, reported(falls(40))),
    "The saving is what came after ten points of patience.",
    # From minute 50 to the last point at 119: 4140 of 7200 s of $3.03.
    row(finds(usd=usd(Decimal("1.515") * 4140 / 3600), severity="low", evidence={"cut_s": 4140}),
        TWO_HOURS, reported(falls(40))),
    "Exactly fifteen minutes after the patience are enough.",
    # A run of 80 minutes: flat from 54 on, 10 points of patience, the last point at 79.
    row(finds(evidence={"cut_s": 900}), ran(4800, "ml.g5.2xlarge"), reported(falls(54, 80),
        of=ran(4800, "ml.g5.2xlarge"))),
    row(CLEAR, ran(4800, "ml.g5.2xlarge"), reported(falls(55, 80), of=ran(4800, "ml.g5.2xlarge"))),
    "Exactly a quarter of training is enough. 30 of 120 minutes; 29 of them are not.",
    row(finds(evidence={"flat_s": 1800}), TWO_HOURS, reported(falls(89))),
    row(CLEAR, TWO_HOURS, reported(falls(90))),
    "Training that learns to the end is clear. A loss that falls, an accuracy that rises.",
    row(CLEAR, TWO_HOURS, reported(falls(120))),
    row(CLEAR, TWO_HOURS, reported([0.95 - 0.5 * math.exp(-minute / 40) for minute in range(120)],
        "val_accuracy")),
    "Exactly one percent is no gain.",
    # Of 1.00 to 0.99 at minute 60; to 0.989 it is one, and 59 flat minutes remain.
    row(finds(evidence={"flat_s": 119 * 60}), TWO_HOURS, reported([1.0] * 60 + [0.99] * 60)),
    row(finds(evidence={"flat_s": 59 * 60}), TWO_HOURS, reported([1.0] * 60 + [0.989] * 60)),
    "Small gains add up.",
    # A hundredth of a percent each minute: 1% of minute 1, where the median begins, at 102.
    row(finds(evidence={"flat_s": (119 - 102) * 60}), TWO_HOURS,
        reported([0.9999**minute for minute in range(120)]), limits={"flat_share_percent": 10,
        "cut_from_s": 1}),
    "The plateau ends where the idle tail begins.",
    # 30 idle minutes at the end are another finding's: 39 of the 69 minutes are left.
    row(finds(evidence={"flat_s": 50 * 60, "cut_s": 40 * 60}), TWO_HOURS, lines(curve(falls(40)),
        series(Metric.CPU, [400] * 90 + [0] * 30), series(Metric.GPU, [80] * 90 + [0] * 30))),
    "Work after the last point is no plateau.",
    # An export after training: 60 minutes without a point.
    row(CLEAR, TWO_HOURS, reported(falls(30, 50))),
    "An interruption is no training.",
    # Two hours of work with an hour in between, which is not in the flat minutes.
    row(finds(evidence={"flat_s": 20 * 60 + 59 * 60}), ran(7200, "ml.g5.2xlarge",
        phases=phases(("Training", 3600), ("Interrupted", 3600), ("Training", 3600)),
        ended_at=START + timedelta(hours=3)), lines(curve([*falls(40, 60), *[None] * 60,
        *[falls(60)[40]] * 60]))),
    "An answer without phases is cut in its run. Of 2018: one run from start to end.",
    row(finds(usd="1.742250"), ran(7200, "ml.g5.2xlarge", phases=phases(("Running", 7200))),
        reported(falls(40), of=ran(7200, "ml.g5.2xlarge", phases=phases(("Running", 7200))))),
    "Validation is preferred and the last gain counts.",
    # Training loss does not count beside it; of two validation metrics the later gain counts.
    row(finds(evidence={"metric": "validation:loss"}), TWO_HOURS, lines(curve(falls(40)),
        curve(falls(120), "train:loss"))),
    row(CLEAR, TWO_HOURS, lines(curve(falls(40)),
        curve([0.5 + minute / 300 for minute in range(120)], "validation:accuracy"))),
    "The policy's objective stands before the table. Its direction too.",
    row(CLEAR, TWO_HOURS, lines(curve(falls(40)), curve(range(120), "reward")),
        policy=Policy(objectives={"reward": Direction.MAXIMIZE})),
    row(finds(evidence={"metric": "reward"}), TWO_HOURS, lines(curve([1.0] * 120, "reward")),
        policy=Policy(objectives={"reward": Direction.MAXIMIZE})),
    "The tuning jobs objective stands before all. Of its children.",
    row(CLEAR, replace(TWO_HOURS, objective=Objective("odd", Direction.MAXIMIZE)),
        lines(curve(falls(40)), curve(range(120), "odd"))),
    "Nineteen points draw no curve. 20 do.",
    row("unknown: too_few_points", TWO_HOURS, reported(falls(5, 19))),
    row(FOUND, TWO_HOURS, lines(curve(falls(5, 20), period_s=360))),
    "A metric of unknown direction is unknown. Whether more reward is better is not stated.",
    row("unknown: direction_unknown", TWO_HOURS, reported(falls(40), "reward")),
    row("unknown: direction_unknown", TWO_HOURS, reported(falls(40), "loss_scale")),
    "A metric that never came is unknown.",
    # Most containers define none at all: the rule does not apply to them.
    row("unknown: metric_missing", replace(TWO_HOURS, metric_names=("validation:loss",))),
    row("not applicable: its container defines no metric of its own", TWO_HOURS),
    "Other runs are not its concern. A failed run is lost as a whole.",
    row("not applicable: …did not complete…", replace(TWO_HOURS, status="Failed"),
        reported(falls(40))),
    row("not applicable: …did not complete…", replace(TWO_HOURS, status="Stopped"),
        reported(falls(40))),
    row("not applicable: …serverless…", replace(TWO_HOURS, purchase=Purchase.SERVERLESS),
        reported(falls(40))),
    row("not applicable: …processing…", replace(TWO_HOURS, kind=JobKind.PROCESSING),
        reported(falls(40))),
    "The advised run gets no advice. Stopped after ten points of patience.",
    row(CLEAR, ran(3060, "ml.g5.2xlarge", max_runtime_s=3060), reported(falls(40, 51), of=ran(3060,
        "ml.g5.2xlarge", max_runtime_s=3060))),
    "A job whose end is before its start does not raise. It has no seconds.",
    row("unknown: metric_missing", job(ended_at=START - timedelta(hours=1), training_s=None,
        billable_s=None, phases=(), metric_names=("validation:loss",)), reported(falls(40),
        of=job(ended_at=START - timedelta(hours=1), training_s=None, billable_s=None, phases=(),
        metric_names=("validation:loss",)))),
    "One lucky point is no best. The running median of five does not see it.",
    row(CLEAR, TWO_HOURS, reported([*falls(5, 5), 0.001, *falls(120)[6:]])),
    "A schedule that gains late is judged more strictly.",
    # Half a percent at minute 100 is a gain there, and none elsewhere.
    row(FOUND, TWO_HOURS, reported(LATE)),
    row(CLEAR, replace(TWO_HOURS, hints=Hints(schedule="cosine")), reported(LATE)),
    row(finds(caution="Its cosine schedule gains late. …"), replace(TWO_HOURS,
        hints=Hints(schedule="cosine")), reported(falls(40))),
    row(CLEAR, replace(TWO_HOURS, hints=Hints(schedule="linear")), reported(LATE)),
    row(finds(caution="Its linear schedule gains late. …"), replace(TWO_HOURS,
        hints=Hints(schedule="linear")), reported(falls(40))),
    "A limit is the last resort. 7200 - 4140 s, and checkpoints for what it leaves.",
    # One that writes them needs no more; an interrupted run has no such limit.
    row(finds(fix=[("StoppingCondition.MaxRuntimeInSeconds", 86400, 3060),
        ("CheckpointConfig.S3Uri", "s3://<bucket>/<prefix>")]), TWO_HOURS, reported(falls(40))),
    row(finds(fix=[("StoppingCondition.MaxRuntimeInSeconds", 86400, 3060)]), replace(TWO_HOURS,
        checkpointed=True), reported(falls(40))),
    row(finds(fix=[]), ran(7200, "ml.g5.2xlarge", phases=phases(("Interrupted", 0), ("Training",
        7200))), reported(falls(40))),
    "XGBoost stops early itself. By a parameter of the built-in algorithm.",
    row(finds(fix=[("HyperParameters.early_stopping_rounds", "10")]), replace(TWO_HOURS,
        image=f"{BUILT_IN}/xgboost:1"), reported(falls(40))),
    row(finds(fix=[("HyperParameters.early_stopping_rounds", "10")]), replace(TWO_HOURS,
        image=f"{BUILT_IN}/sagemaker-xgboost:1.7-1"), reported(falls(40))),
    "A script on XGBoost's image stops early by its own.",
    row(finds(paths=["StoppingCondition.MaxRuntimeInSeconds", "CheckpointConfig.S3Uri"]),
        replace(TWO_HOURS, image=f"{BUILT_IN}/xgboost:1", entry_point="train.py"),
        reported(falls(40))),
    row(finds(paths=["StoppingCondition.MaxRuntimeInSeconds", "CheckpointConfig.S3Uri"]),
        replace(TWO_HOURS, image=f"{BUILT_IN}/sagemaker-xgboost:1.7-1", entry_point="train.py"),
        reported(falls(40))),
)  # fmt: skip


@pytest.mark.parametrize(
    "values", [[None] * 200, [1.0], [0.0] * 120, [-5.0] * 120, [1e300] * 120, [float("nan")] * 120]
)
def test_odd_values_do_not_raise(values: list[float | None]) -> None:
    """Gaps, a single point, zeros, negatives and numbers past all measure."""
    answer = outcome(RULE, TWO_HOURS, reported(values))
    assert not isinstance(answer, Unknown) or answer.code in {"metric_missing", "too_few_points"}
