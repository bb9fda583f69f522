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
    ],
)
def test_what_spot_does_not_take_is_found(path: str, value: object) -> None:
    """The fix removes it, or spot with its waiting time."""
    no_spot = [("EnableManagedSpotTraining", False)]
    assert verdict(SPOT | {path: value}) == finds(paths=[path], ways=[no_spot])
    wait = "StoppingCondition.MaxWaitTimeInSeconds"
    assert verdict(SPOT | {path: value, wait: 7200}) == finds(
        paths=[path], ways=[[*no_spot, (wait, None)]]
    )


@pytest.mark.parametrize("name", ["InstancePreferences", "InstanceGroups"])
def test_what_names_the_types_is_not_removed(name: str) -> None:
    """AWS would refuse a request without a type, so the fix removes spot."""
    changes = {f"ResourceConfig.{name}": [{"InstanceType": "ml.m5.xlarge", "InstanceCount": 1}]}
    assert verdict(SPOT | changes) == finds(paths=["EnableManagedSpotTraining"], ways=[])


def test_without_spot_or_without_the_others_it_is_clear() -> None:
    """Each alone is fine, and so is a keep-alive of 0."""
    assert verdict(SPOT) == CLEAR
    assert verdict(SPOT | {"ResourceConfig.KeepAlivePeriodInSeconds": 0}) == CLEAR
    assert verdict({"ResourceConfig.KeepAlivePeriodInSeconds": 600}) == CLEAR
