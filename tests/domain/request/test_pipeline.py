from typing import Any

import pytest

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.pipeline import requests_in_definition, unpriced_steps
from sageaudit.domain.request.request import UnknownValue

PARAMETERS = [
    {"Name": "Type", "Type": "String", "DefaultValue": "ml.m5.xlarge"},
    {"Name": "Count", "Type": "Integer"},
]


def step(name: str, kind: str, **arguments: Any) -> dict[str, Any]:
    """One step."""
    return {"Name": name, "Type": kind, "Arguments": arguments}


def read(*steps: dict[str, Any], **more: Any) -> Any:
    """Returns the requests of a definition with these steps."""
    return requests_in_definition({"Parameters": PARAMETERS, "Steps": list(steps)}, **more)


def test_parameters_get_their_defaults() -> None:
    """One without a default is known later, like the output of another step."""
    config = {
        "InstanceType": {"Get": "Parameters.Type"},
        "InstanceCount": {"Get": "Parameters.Count"},
        "VolumeSizeInGB": {"Get": "Parameters.Absent"},
        "TrainingPlanArn": {"Get": "Steps.Other.Arn"},
    }
    [request] = read(step("Train", "Training", ResourceConfig=config)).requests
    resolved = request.body["ResourceConfig"]
    assert resolved["InstanceType"] == "ml.m5.xlarge"
    assert "Count has no default" in resolved["InstanceCount"].reason
    assert "no parameter Absent" in resolved["VolumeSizeInGB"].reason
    assert isinstance(resolved["TrainingPlanArn"], UnknownValue)
    assert request.parameters[("ResourceConfig", "InstanceType")] == "Type"


def test_texts_are_joined() -> None:
    """If all parts are known."""
    known = {"Std:Join": {"On": "/", "Values": ["s3:/", "b", {"Get": "Parameters.Type"}]}}
    unknown = {"Std:Join": {"On": "", "Values": ["s3://", {"Get": "Execution.PipelineName"}]}}
    [request] = read(step("T", "Transform", A=known, B=unknown)).requests
    assert request.body["A"] == "s3://b/ml.m5.xlarge"
    assert isinstance(request.body["B"], UnknownValue)


def test_branches_of_conditions_are_read() -> None:
    """At any depth. The branch is named."""
    inner = step("Inner", "Condition", ElseSteps=[step("Deep", "Processing")])
    outer = step("Outer", "Condition", IfSteps=[inner, step("Tune", "Tuning")])
    result = read(outer)
    assert [(r.label, r.kind, r.note) for r in result.requests] == [
        ("step Deep", JobKind.PROCESSING, "runs only in ElseSteps of Inner"),
        ("step Tune", JobKind.TUNING, "runs only in IfSteps of Outer"),
    ]
    assert result.requests[0].origin.base_path == (
        *("Steps", 0, "Arguments", "IfSteps", 0, "Arguments", "ElseSteps", 0, "Arguments"),
    )


def test_checks_run_processing_jobs_and_other_steps_are_named() -> None:
    """ClarifyCheck and QualityCheck start jobs of their own."""
    result = read(step("Q", "QualityCheck"), step("L", "Lambda"))
    assert [request.kind for request in result.requests] == [JobKind.PROCESSING]
    assert result.unchecked_sentences == ("step L: a Lambda step is not checked",)


def test_the_family_needs_the_pipelines_name() -> None:
    """As in the history, where names of pipelines are in lower case, as in ARNs."""
    [request] = read(step("Train", "Training"), name="Nightly").requests
    assert request.step == "pipeline/nightly/Train"
    [unnamed] = read(step("Train", "Training")).requests
    assert unnamed.step is None


def test_invalid_steps_are_ignored() -> None:
    """A person may have written the definition."""
    assert requests_in_definition({"Steps": [1, None, {"Type": "Training"}]}).requests[0].body == {}
    whole = read({"Name": "T", "Type": "Training", "Arguments": {"Get": "Parameters.Type"}})
    assert whole.unchecked_sentences == ("step T: its Arguments are not an object",)
    assert requests_in_definition({"Steps": "none", "Parameters": 3}).requests == ()


def test_a_small_definition_gives_no_endless_text() -> None:
    """Joins produce at most as much text as a definition may have. A default cannot be a list."""
    parameters = [
        {"Name": "Long", "DefaultValue": "x" * 1000},
        {"Name": "Lists", "DefaultValue": [[1] * 1000]},
    ]
    join = {"Std:Join": {"On": "/", "Values": [{"Get": "Parameters.Long"}] * 600}}
    steps = [
        step("A", "Training", One=join, Many=[{"Get": "Parameters.Lists"}]),
        step("B", "Training", One=join),
    ]
    first, second = requests_in_definition({"Parameters": parameters, "Steps": steps}).requests
    assert len(first.body["One"]) == 600 * 1000 + 599
    assert first.body["Many"] == [
        UnknownValue("the default of the pipeline parameter Lists is no plain value")
    ]
    assert second.body["One"] == UnknownValue("what Std:Join gives is longer than any definition")


@pytest.mark.parametrize(
    ("policies", "attempts"),
    [
        ([], 1),
        ([{"ExceptionType": ["Step.THROTTLING", "SageMaker.CAPACITY_ERROR"], "MaxAttempts": 5}], 1),
        ([{"ExceptionType": ["SageMaker.JOB_INTERNAL_ERROR"], "MaxAttempts": 5}], 6),
        ([{"ExceptionType": ["SageMaker.JOB_INTERNAL_ERROR"], "ExpireAfterMin": 60}], None),
        ([{"MaxAttempts": 2}, "x"], None),
        ([{"MaxAttempts": 2}, {"MaxAttempts": -9}], 3),
        ({"Get": "Parameters.Policies"}, None),
    ],
)
def test_attempts_that_may_be_billed_are_counted(policies: Any, attempts: object) -> None:
    """An attempt without capacity costs nothing."""
    [request] = read({**step("Train", "Training"), "RetryPolicies": policies}).requests
    assert request.attempts == attempts


def test_a_search_is_not_repeated() -> None:
    policies = [{"ExceptionType": ["SageMaker.JOB_INTERNAL_ERROR"]}]
    [request] = read({**step("Tune", "Tuning"), "RetryPolicies": policies}).requests
    assert request.attempts == 1


def test_only_steps_that_start_other_jobs_have_an_unknown_cost() -> None:
    steps = [step(kind, kind) for kind in ("Training", "Lambda", "RegisterModel", "Fail", "AutoML")]
    branch = step("If", "Condition", IfSteps=[step("Spark", "EMR")])
    assert unpriced_steps({"Steps": [*steps, branch]}) == (
        "step AutoML: the cost of an AutoML step is not known",
        "step Spark: the cost of an EMR step is not known",
    )
