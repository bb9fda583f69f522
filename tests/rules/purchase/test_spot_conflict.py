import pytest

from sageaudit.domain.bill.finding import Clear
from tests.fakes.planned import request_finding, request_outcome

RULE = "spot-conflict"
PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/p"
SPOT = {"EnableManagedSpotTraining": True}


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
    finding = request_finding(RULE, SPOT | {path: value})
    assert [fix.path for fix in finding.found.fix] == [path]
    assert finding.found.alternatives[0][0].path == "EnableManagedSpotTraining"


def test_without_spot_or_without_the_others_it_is_clear() -> None:
    """Each alone is fine, and so is a keep-alive of 0."""
    assert request_outcome(RULE, SPOT) == Clear()
    assert request_outcome(RULE, SPOT | {"ResourceConfig.KeepAlivePeriodInSeconds": 0}) == Clear()
    assert request_outcome(RULE, {"ResourceConfig.KeepAlivePeriodInSeconds": 600}) == Clear()
