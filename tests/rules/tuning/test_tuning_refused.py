from __future__ import annotations

import pytest

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.planned import LATER, said, told

RULE = "tuning-refused"
CONFIG = "HyperParameterTuningJobConfig"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({f"{CONFIG}.Strategy": "Hyperband"}, "Hyperband"),
        ({"TrainingJobDefinition": None}, "no definition"),
        ({"TrainingJobDefinitions": [{"DefinitionName": "a"}]}, "TrainingJobDefinitions"),
        ({f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs": 9}, "in parallel"),
    ],
)
def test_what_aws_refuses_is_found(changes: dict[str, object], says: str) -> None:
    """Each with the parameter to change."""
    assert says in told(RULE, changes, kind=JobKind.TUNING).found.summary


def test_a_healthy_search_is_clear() -> None:
    """As many in parallel as there are is no mistake."""
    assert said(RULE, kind=JobKind.TUNING) == Clear()
    all_at_once = {f"{CONFIG}.ResourceLimits.MaxParallelTrainingJobs": 8}
    assert said(RULE, all_at_once, kind=JobKind.TUNING) == Clear()


def test_a_strategy_that_is_known_later_is_not_judged() -> None:
    """It may take early stopping."""
    later = {f"{CONFIG}.Strategy": LATER}
    assert isinstance(said(RULE, later, kind=JobKind.TUNING), Unknown)
