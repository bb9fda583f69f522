from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.request import REQUEST_SHAPES
from sageaudit.domain.request.validity import Fault, Problem
from tests.fakes.planned import LATER, REQUESTED, body

MODEL = api_model()
TRAINING = JobKind.TRAINING


def problems(changes: dict[str, Any], kind: JobKind = TRAINING) -> list[Problem]:
    """Returns what AWS would refuse of a changed request."""
    return list(MODEL.problems(REQUEST_SHAPES[kind], body(kind, changes)))


@pytest.mark.parametrize("kind", REQUESTED)
def test_a_healthy_request_has_no_problem(kind: JobKind) -> None:
    """For each kind."""
    assert problems({}, kind) == []


@pytest.mark.parametrize(
    ("changes", "fault", "path", "near"),
    [
        ({"ResourceConfg": {}}, Fault.UNKNOWN, "ResourceConfg", "ResourceConfig"),
        ({"stoppingcondition": {}}, Fault.UNKNOWN, "stoppingcondition", "StoppingCondition"),
        ({"RoleArn": None}, Fault.MISSING, "RoleArn", None),
        ({"ResourceConfig.InstanceCount": "2"}, Fault.TYPE, "InstanceCount", None),
        ({"EnableManagedSpotTraining": 1}, Fault.TYPE, "EnableManagedSpotTraining", None),
        ({"ResourceConfig.InstanceCount": True}, Fault.TYPE, "InstanceCount", None),
        ({"ResourceConfig.InstanceCount": 0}, Fault.LIMITS, "InstanceCount", None),
        (
            {"StoppingCondition.MaxRuntimeInSeconds": 2_419_201},
            Fault.LIMITS,
            "MaxRuntimeInSeconds",
            None,
        ),
        ({"TrainingJobName": "a b"}, Fault.LIMITS, "TrainingJobName", None),
        (
            {"AlgorithmSpecification.TrainingInputMode": "file"},
            Fault.VALUE,
            "TrainingInputMode",
            "File",
        ),
        (
            {"ResourceConfig.InstanceType": "ml.g5.2xlarg"},
            Fault.VALUE,
            "InstanceType",
            "ml.g5.2xlarge",
        ),
        (
            {"ResourceConfig.SelectedInstanceType": "ml.g5.2xlarge"},
            Fault.UNKNOWN,
            "SelectedInstanceType",
            None,
        ),
    ],
)
def test_each_problem_has_its_fault_and_path(
    changes: dict[str, Any], fault: Fault, path: str, near: str | None
) -> None:
    """And the name or value that was probably meant."""
    [problem] = problems(changes)
    assert (problem.fault, problem.path[-1], problem.suggestion) == (fault, path, near)


@pytest.mark.parametrize(("value", "text"), [(3, "3"), (0.5, "0.5"), (True, "true"), ([], None)])
def test_a_number_in_place_of_a_text_may_become_text(value: object, text: str | None) -> None:
    [problem] = problems({"HyperParameters": {"epochs": value}})
    assert (problem.fault, problem.suggestion) == (Fault.TYPE, text)


def test_a_text_that_aws_would_refuse_too_is_not_suggested() -> None:
    [problem] = problems({"ResourceConfig.InstanceType": 3})
    assert (problem.fault, problem.suggestion) == (Fault.TYPE, None)


def test_items_beyond_the_maximum_are_refused_with_the_list() -> None:
    """A list of a million empty items has one fault, and those of the 20 items that AWS allows."""
    result = problems({"InputDataConfig": [{}] * 1_000_000})
    assert result[0].fault is Fault.LIMITS
    assert len({problem.path[1] for problem in result[1:]}) == 20


def test_a_type_that_is_newer_than_the_sdk_is_no_problem() -> None:
    """AWS adds families. A size that no other type has is a mistake."""
    assert problems({"ResourceConfig.InstanceType": "ml.g9.2xlarge"}) == []
    assert problems({"ResourceConfig.InstanceType": "g5.2xlarge"})
    assert problems({"ResourceConfig.InstanceType": "ml.g9.huge"})


def test_what_is_known_later_is_neither_wrong_nor_missing() -> None:
    """For example the role that the plan itself creates."""
    assert problems({"RoleArn": LATER, "ResourceConfig": LATER}) == []


def test_the_name_may_be_given_later() -> None:
    """By a pipeline."""
    made = body(TRAINING, {"TrainingJobName": None})
    assert MODEL.problems(REQUEST_SHAPES[TRAINING], made, ("TrainingJobName",)) == ()


def test_a_misspelled_parameter_is_not_reported_as_missing_too() -> None:
    """It is one mistake."""
    [problem] = problems({"RoleArn": None, "RoleARN": "arn:aws:iam::111122223333:role/train"})
    assert (problem.fault, problem.suggestion) == (Fault.UNKNOWN, "RoleArn")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=10,
    )
)
def test_any_value_is_reported_and_never_raises(value: object) -> None:
    """Any value may be in place of an object."""
    for path in ("ResourceConfig", "InputDataConfig", "Tags", "HyperParameters"):
        MODEL.problems(REQUEST_SHAPES[TRAINING], {path: value})
