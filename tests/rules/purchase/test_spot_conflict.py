from functools import partial

import pytest

from tests.fakes.planned import request_answer
from tests.fakes.rule_cases import CLEAR, finds

RULE = "spot-conflict"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"
SPOT = {"EnableManagedSpotTraining": True}


verdict = partial(request_answer, RULE)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ResourceConfig.KeepAlivePeriodInSeconds", 600),
        ("ResourceConfig.TrainingPlanArn", PLAN),
        ("ResourceConfig.InstancePreferences", [{"InstanceType": "ml.m5.xlarge"}]),
    ],
)
def test_what_spot_does_not_take_is_found(path: str, value: object) -> None:
    """The fix removes it, or spot."""
    assert verdict(SPOT | {path: value}) == finds(
        paths=[path], ways=[[("EnableManagedSpotTraining", False)]]
    )


def test_without_spot_or_without_the_others_it_is_clear() -> None:
    """Each alone is fine, and so is a keep-alive of 0."""
    assert verdict(SPOT) == CLEAR
    assert verdict(SPOT | {"ResourceConfig.KeepAlivePeriodInSeconds": 0}) == CLEAR
    assert verdict({"ResourceConfig.KeepAlivePeriodInSeconds": 600}) == CLEAR
