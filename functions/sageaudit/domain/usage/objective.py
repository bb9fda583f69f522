"""The objective of training: its metric, its direction, and when it stopped improving.

Sources of the words: "Metrics computed by the algorithm" in SageMaker's guide on tuning XGBoost,
LightGBM, Linear Learner, BlazingText, DeepAR, K-Means, LDA, Seq2Seq and the image algorithms;
Hugging Face's `eval_loss`, Keras's `val_loss`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from statistics import median_low

from msgspec import Struct

from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.usage.measurements import Curve, MissingMetrics

_SPLIT = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z][a-z])")
_VALIDATION = frozenset({"validation", "val", "valid", "eval", "evaluation", "test", "dev"})
_MINIMIZED_WORDS = frozenset(
    {"loss", "rmse", "mse", "mae", "mape", "error", "merror", "logloss", "mlogloss", "multilogloss",
     "perplexity", "ppl", "nll", "wer", "cer", "msd", "ssd"}
)  # fmt: skip
_MAXIMIZED_WORDS = frozenset(
    {"accuracy", "acc", "auc", "aucpr", "f1", "map", "ndcg", "bleu", "rouge", "recall", "precision",
     "r2", "iou", "miou", "dice", "rho", "pwll"}
)  # fmt: skip
_NOT_OBJECTIVE_WORDS = frozenset({"scale", "weight", "step", "steps", "time", "count"})
"""Words in the names of values that are not a loss, although the names contain "loss"."""
_WINDOW = 5
"""The number of points of the running median, so that a single outlier changes nothing."""


class ObjectiveCurve(Struct, frozen=True):
    """The curve of a training objective.

    `values`: the running median of the points. `last_gain_index`: the index of the last value that
    improved.
    """

    metric: str
    direction: Direction
    curve: Curve
    values: tuple[Decimal, ...]
    last_gain_index: int

    @property
    def best_value(self) -> Decimal:
        """The value at the last improvement."""
        return self.values[self.last_gain_index]

    @property
    def last_value(self) -> Decimal:
        """The last value."""
        return self.values[-1]

    def time_of_point(self, point: int) -> datetime:
        """Returns when the point at this index was reported."""
        return self.curve.points[point][0]


def direction(metric: str, declared_directions: Mapping[str, Direction]) -> Direction | None:
    """Returns the declared direction of a metric, else the direction that its name shows.

    None if unknown.
    """
    if metric in declared_directions:
        return declared_directions[metric]
    words = _words(metric)
    is_minimized, is_maximized = bool(words & _MINIMIZED_WORDS), bool(words & _MAXIMIZED_WORDS)
    if is_minimized == is_maximized or words & _NOT_OBJECTIVE_WORDS:
        return None
    return Direction.MINIMIZE if is_minimized else Direction.MAXIMIZE


def meaningful_words(metric: str) -> tuple[str, ...]:
    """Returns the words of a metric's name that say what it measures, in alphabetical order."""
    return tuple(
        sorted(
            _words(metric)
            & (_VALIDATION | _MINIMIZED_WORDS | _MAXIMIZED_WORDS | _NOT_OBJECTIVE_WORDS)
        )
    )


def objective_direction(
    objective: Objective, declared_directions: Mapping[str, Direction]
) -> Direction | None:
    """Returns the objective's own direction, else the direction of its metric; None if unknown."""
    return objective.direction or direction(objective.metric, declared_directions)


def find_objective_curve(
    curves: Mapping[str, Curve],
    declared_directions: Mapping[str, Direction],
    objective: Objective | None,
    *,
    min_points: int,
    tolerance_percent: Decimal,
) -> ObjectiveCurve | MissingMetrics:
    """Returns the curve of the objective, or why there is none.

    `min_points`: the fewest points of a curve. `tolerance_percent`: smaller gains are no
    improvement. The objective is the tuning job's, else a metric of `declared_directions`, else a
    validation metric, else a training metric. Of several curves, the one that improved last is
    returned.
    """
    if objective is not None and objective.metric in curves:
        curves = {objective.metric: curves[objective.metric]}
        if objective.direction is not None:
            declared_directions = {**declared_directions, objective.metric: objective.direction}
    if not curves:
        return MissingMetrics("metric_missing", "it reported no metric of its own to CloudWatch")
    direction_by_metric = {
        name: metric_direction
        for name in curves
        if (metric_direction := direction(name, declared_directions)) is not None
    }
    if not direction_by_metric:
        names = ", ".join(sorted(curves)[:3])
        return MissingMetrics(
            "direction_unknown", f"unknown whether more or less is better: {names}"
        )
    preferred = min(_rank(name, declared_directions) for name in direction_by_metric)
    candidates = {
        name: metric_direction
        for name, metric_direction in direction_by_metric.items()
        if _rank(name, declared_directions) == preferred and len(curves[name].points) >= min_points
    }
    if not candidates:
        size = max(
            len(curves[metric].points)
            for metric in direction_by_metric
            if _rank(metric, declared_directions) == preferred
        )
        return MissingMetrics(
            "too_few_points", f"{size} points of its objective, {min_points} needed"
        )
    objective_curves = [
        _objective_curve(metric, metric_direction, curves[metric], tolerance_percent)
        for metric, metric_direction in sorted(candidates.items())
    ]
    return max(objective_curves, key=lambda curve: curve.time_of_point(curve.last_gain_index))


def last_gain(values: Sequence[Decimal], direction: Direction, tolerance_percent: Decimal) -> int:
    """Returns the index of the last improvement.

    A value improves if it beats the best earlier value by more than `tolerance_percent` of that
    value.
    """
    sign = 1 if direction is Direction.MAXIMIZE else -1
    last_index, best = 0, values[0]
    for position, value in enumerate(values):
        if sign * (value - best) > abs(best) * tolerance_percent / 100:
            last_index, best = position, value
    return last_index


def _rank(metric: str, declared_directions: Mapping[str, Direction]) -> int:
    if metric in declared_directions:
        return 0
    return 1 if _words(metric) & _VALIDATION else 2


def _objective_curve(
    metric: str, direction: Direction, curve: Curve, tolerance_percent: Decimal
) -> ObjectiveCurve:
    raw = [Decimal(str(value)) for _, value in curve.points]
    half = _WINDOW // 2
    values = tuple(
        median_low(raw[max(index - half, 0) : index + half + 1]) for index in range(len(raw))
    )
    return ObjectiveCurve(
        metric, direction, curve, values, last_gain(values, direction, tolerance_percent)
    )


def _words(metric: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _SPLIT.split(metric) if word)
