from functools import partial

import pytest

from tests.fakes.planned import KMEANS, LATER, request_answer
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds

RULE = "spot-wait"
SPOT = {"EnableManagedSpotTraining": True}
WAIT, RUN = "StoppingCondition.MaxWaitTimeInSeconds", "StoppingCondition.MaxRuntimeInSeconds"


verdict = partial(request_answer, RULE)


def test_spot_without_a_wait_is_refused() -> None:
    """The fix gives the run as long again."""
    assert verdict(SPOT | {RUN: 3600}) == finds(
        "…without MaxWaitTimeInSeconds…", severity="high", fix=[(WAIT, None, 7200)]
    )


def test_the_default_limit_is_a_day() -> None:
    """A wait of an hour is less than the day that AWS takes."""
    assert verdict(SPOT | {WAIT: 3600, RUN: None}) == finds("…86400…")


def test_a_wait_without_spot_is_refused() -> None:
    """One of the two is a mistake."""
    assert verdict({WAIT: 7200}) == finds("…set without managed spot…")
    assert verdict() == CLEAR


def test_a_built_in_algorithm_waits_an_hour_without_checkpoints() -> None:
    # With them, or within the hour, it may.
    two_hours = SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS, WAIT: 7200}
    assert verdict(two_hours) == finds("…k-means…")
    assert verdict(two_hours | {WAIT: 3600}) == CLEAR
    assert verdict(two_hours | {"CheckpointConfig": {"S3Uri": "s3://bucket/c"}}) == CLEAR


def test_a_wait_that_is_known_later_is_not_judged() -> None:
    """It may be right."""
    assert verdict(SPOT | {WAIT: LATER}) == cannot_judge("not_known_yet")


def test_a_wait_of_3600_s_for_a_run_of_3600_s_is_enough_and_of_3599_s_it_is_not() -> None:
    """The wait counts the run too."""
    an_hour = SPOT | {RUN: 3600}
    assert verdict(an_hour | {WAIT: 3599}) == FOUND
    assert verdict(an_hour | {WAIT: 3600}) == CLEAR
    assert verdict(an_hour | {WAIT: 3601}) == CLEAR


@pytest.mark.parametrize(("limit_s", "wait_s"), [(86_399, 172_798), (86_401, 172_801)])
def test_a_spot_wait_is_as_long_as_the_run_and_a_day_at_most(limit_s: int, wait_s: int) -> None:
    assert verdict(SPOT | {RUN: limit_s}) == finds(fix=[(WAIT, None, wait_s)])


def test_a_built_in_algorithm_without_checkpoints_waits_an_hour_and_no_second_more() -> None:
    built_in = SPOT | {"AlgorithmSpecification.TrainingImage": KMEANS}
    assert verdict(built_in | {WAIT: 3600}) == CLEAR
    longer = finds("…k-means…", fix=[(WAIT, 3601, 3600)])
    assert verdict(built_in | {WAIT: 3601}) == longer


CHECKPOINTS = ("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>")


@pytest.mark.parametrize(
    ("limit_s", "wait_s", "fix"),
    [
        (1800, None, [(WAIT, None, 3600)]),
        (1800, 7200, [(WAIT, 7200, 3600)]),
        (7200, 7200, [CHECKPOINTS]),
        (7200, None, [(WAIT, None, 14400), CHECKPOINTS]),
    ],
)
def test_aws_takes_the_request_after_the_fix(
    limit_s: int, wait_s: int | None, fix: list[tuple[str, object, object]]
) -> None:
    """A built-in algorithm needs checkpoints if its run may take more than an hour."""
    changes = {"AlgorithmSpecification.TrainingImage": KMEANS, RUN: limit_s, WAIT: wait_s}
    assert verdict(SPOT | changes) == finds(severity="high", fix=fix)


def test_spot_is_set_with_a_wait_that_aws_takes() -> None:
    spot = ("EnableManagedSpotTraining", None, True)
    assert verdict({WAIT: 7200, RUN: 3600}) == finds(fix=[spot])
    assert verdict({WAIT: 600, RUN: 3600}) == finds(fix=[spot, (WAIT, 600, 7200)])
