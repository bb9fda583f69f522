from datetime import timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.usage.measurements import Curve, MissingMetrics
from sageaudit.domain.usage.objective import (
    ObjectiveCurve,
    direction,
    find_objective_curve,
    last_gain,
    objective_direction,
)
from tests.fakes.jobs import START


@pytest.mark.parametrize(
    ("better", "names"),
    [
        # as SageMaker's own algorithms, Hugging Face and Keras name errors and scores
        pytest.param(
            Direction.MINIMIZE,
            [
                "validation:rmse",
                "validation:logloss",
                "validation:error",
                "eval_loss",
                "val_loss",
                "train:loss",
                "Validation Loss",
                "valLoss",
                "validation:mlogloss",
                "test:RMSE",
                "mean_squared_error",
                "validation:perplexity",
                "word_error_rate",
                "test:mean_wQuantileLoss",
            ],
            id=("names of errors, as SageMaker's own algorithms, Hugging Face and Keras have them"),
        ),
        pytest.param(
            Direction.MAXIMIZE,
            [
                "validation:auc",
                "validation:accuracy",
                "validation:mAP",
                "validation:ndcg",
                "eval_f1",
                "validation:f1_binary",
                "validation:mIOU",
                "validation:bleu",
                "train:mean_rho",
                "train:accuracy:epoch",
                "Test Accuracy",
                "test:pwll",
            ],
            id="names of scores",
        ),
        # other names tell no direction, nor does one that says both
        pytest.param(
            None,
            [
                "epoch",
                "learning_rate",
                "eval_runtime",
                "reward",
                "loss_scale",
                "train:accuracy_loss",
                "ObjectiveMetric",
                "",
                "loss_weight",
            ],
            id="names that tell no direction, or both",
        ),
    ],
)
def test_less_of_an_error_and_more_of_a_score_is_better(
    better: Direction | None, names: list[str]
) -> None:
    """By the words of the name."""
    assert {name: direction(name, {}) for name in names} == dict.fromkeys(names, better)


def test_a_declared_direction_comes_before_the_name() -> None:
    """The tuning job's direction comes first, then the policy's."""
    stated = {"loss": Direction.MAXIMIZE}
    assert direction("loss", stated) is Direction.MAXIMIZE
    assert objective_direction(Objective("loss", None), stated) is Direction.MAXIMIZE
    own = Objective("loss", Direction.MINIMIZE)
    assert objective_direction(own, stated) is Direction.MINIMIZE


@pytest.mark.parametrize(
    ("values", "at"),
    [
        (["1", "0.99"], 0),
        (["1", "0.9899"], 1),
        (["1", "0.995", "0.989"], 2),
        (["0", "0"], 0),
        (["0", "-0.001"], 1),
        (["-1", "-1.01"], 0),
        (["-1", "-1.02"], 1),
        (["1"], 0),
    ],
)
def test_a_gain_is_over_one_percent_of_the_last_gain(values: list[str], at: int) -> None:
    """Of a value to be minimised, also at and below 0."""
    numbers = [Decimal(value) for value in values]
    assert last_gain(numbers, Direction.MINIMIZE, Decimal(1)) == at


def curve_of(*values: float) -> Curve:
    """Returns a curve with a point each minute."""
    return Curve(tuple((START + timedelta(minutes=n), value) for n, value in enumerate(values)))


def objective_curve(
    curves: dict[str, Curve], objective: Objective | None = None
) -> ObjectiveCurve | MissingMetrics:
    """Returns the curve of the objective, with 3 points and 1%."""
    return find_objective_curve(curves, {}, objective, min_points=3, tolerance_percent=Decimal(1))


def test_the_running_median_is_used() -> None:
    """One outlier changes nothing. If the objective was not reported, the other metrics are
    used.
    """
    result = objective_curve(
        {"loss": curve_of(5, 4, 0.1, 3, 3, 3)}, Objective("auc", Direction.MAXIMIZE)
    )
    assert isinstance(result, ObjectiveCurve)
    assert (result.metric, result.best_value, result.last_value) == ("loss", 3, 3)


def test_a_training_metric_does_not_replace_a_validation_metric() -> None:
    """Too few validation points are not replaced by the training metric."""
    answer = objective_curve(
        {"validation:loss": curve_of(1, 2), "train:loss": curve_of(1, 2, 3, 4)}
    )
    assert answer == MissingMetrics("too_few_points", "2 points of its objective, 3 needed")
