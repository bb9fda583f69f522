"""The objective of training: its metric, its direction, and when it stopped improving.

Words of the table, with their direction: "Metrics computed by the algorithm" of SageMaker's guide
on tuning XGBoost, LightGBM, Linear Learner, BlazingText, DeepAR, K-Means, LDA, Seq2Seq and the
image algorithms; Hugging Face's `eval_loss`, Keras's `val_loss`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from statistics import median_low

from msgspec import Struct

from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.usage.measurements import Curve, Missing

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
"""Words in names of values related to a loss that are not a loss: `loss_scale`, `loss_weight`."""
_WINDOW = 5
"""Points of the running median: a single outlier changes nothing."""


class ObjectiveCurve(Struct, frozen=True):
    """The objective's curve; `last_gain_index` is the index of the last point that improved."""

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
        """The value at the end."""
        return self.values[-1]

    def time_of_point(self, point: int) -> datetime:
        """Returns when a point was reported."""
        return self.curve.points[point][0]


def direction(metric: str, declared_directions: Mapping[str, Direction]) -> Direction | None:
    """Returns the declared direction, else that of the name's words; None if it is unknown."""
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


def objective_direction(objective: Objective, stated: Mapping[str, Direction]) -> Direction | None:
    """Returns the objective's own direction, else that of its metric's name."""
    return objective.direction or direction(objective.metric, stated)


def find_objective_curve(
    curves: Mapping[str, Curve],
    declared_directions: Mapping[str, Direction],
    objective: Objective | None,
    *,
    min_points: int,
    tolerance_percent: Decimal,
) -> ObjectiveCurve | Missing:
    """Returns the curve of the objective, or why there is none.

    It is the tuning job's objective if there is one, else a metric of `declared_directions`, else a
    validation metric, else a training metric. The one that improved last wins.
    """
    if objective is not None and objective.metric in curves:
        curves = {objective.metric: curves[objective.metric]}
        if objective.direction is not None:
            declared_directions = {**declared_directions, objective.metric: objective.direction}
    if not curves:
        return Missing("metric_missing", "it reported no metric of its own to CloudWatch")
    ways = {
        name: aim for name in curves if (aim := direction(name, declared_directions)) is not None
    }
    if not ways:
        names = ", ".join(sorted(curves)[:3])
        return Missing("direction_unknown", f"unknown whether more or less is better: {names}")
    preferred = min(_rank(name, declared_directions) for name in ways)
    aims = {
        name: aim
        for name, aim in ways.items()
        if _rank(name, declared_directions) == preferred and len(curves[name].points) >= min_points
    }
    if not aims:
        size = max(
            len(curves[n].points) for n in ways if _rank(n, declared_directions) == preferred
        )
        return Missing("too_few_points", f"{size} points of its objective, {min_points} needed")
    watched = [
        _objective_curve(n, aim, curves[n], tolerance_percent) for n, aim in sorted(aims.items())
    ]
    return max(watched, key=lambda curve: curve.time_of_point(curve.last_gain_index))


def last_gain(values: Sequence[Decimal], better: Direction, tolerance_percent: Decimal) -> int:
    """Returns the index of the last value that beats the previous best beyond the tolerance."""
    sign = 1 if better is Direction.MAXIMIZE else -1
    at, reference = 0, values[0]
    for position, value in enumerate(values):
        if sign * (value - reference) > abs(reference) * tolerance_percent / 100:
            at, reference = position, value
    return at


def _rank(metric: str, stated: Mapping[str, Direction]) -> int:
    if metric in stated:
        return 0
    return 1 if _words(metric) & _VALIDATION else 2


def _objective_curve(
    metric: str, better: Direction, curve: Curve, tolerance_percent: Decimal
) -> ObjectiveCurve:
    raw = [Decimal(str(value)) for _, value in curve.points]
    half = _WINDOW // 2
    values = tuple(median_low(raw[max(at - half, 0) : at + half + 1]) for at in range(len(raw)))
    return ObjectiveCurve(
        metric, better, curve, values, last_gain(values, better, tolerance_percent)
    )


def _words(metric: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _SPLIT.split(metric) if word)
