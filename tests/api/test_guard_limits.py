"""A guard refuses a call above its limit, and one that lacks what is required."""

import json
import pickle
import re
from decimal import Decimal
from typing import Any

import pytest

import sageaudit
from sageaudit.domain.job.kinds import JobKind
from tests.fakes.guarded import DAY, Aws, train
from tests.fakes.planned import ROLE, body


def start(client: Any, kind: JobKind, changes: dict[str, Any] | None = None) -> None:
    """Creates a job of a kind."""
    getattr(client, f"create_{kind.spec.sdk_noun}")(**body(kind, changes))


def test_the_limit_that_a_refusal_names_is_within_the_guard(client: Any, aws: Aws) -> None:
    """The next minute is not."""
    with sageaudit.guard(client, max_usd="0.10", write=str):
        with pytest.raises(sageaudit.JobRefused) as caught:
            train(client, DAY)
        found = re.search(r"MaxRuntimeInSeconds = (\d+)", str(caught.value))
        assert found
        seconds = int(found[1])
        with pytest.raises(sageaudit.JobRefused):
            train(client, {"StoppingCondition.MaxRuntimeInSeconds": seconds + 60})
        train(client, {"StoppingCondition.MaxRuntimeInSeconds": seconds})
    assert aws.sent == ["CreateTrainingJob"]


def test_a_refusal_has_the_check_and_can_be_pickled(client: Any) -> None:
    """The text says what was not created, its cost, the limit and what to change."""
    with (
        sageaudit.guard(client, max_usd=5, write=str),
        pytest.raises(sageaudit.JobRefused) as caught,
    ):
        train(client, DAY)
    copied = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert str(copied) == str(caught.value)
    assert str(copied).startswith(
        "the training job train-1 was not created: its cost is at most $5.66, above the limit of"
        " $5.00 (max_usd): "
    )
    assert copied.checked["jobs"][0]["cost"]["at_most_usd"] > 5


def test_a_cost_at_the_limit_passes(client: Any, aws: Aws) -> None:
    cost = sageaudit.check(body(), region="us-east-1")["jobs"][0]["cost"]["at_most_usd"]
    with sageaudit.guard(client, max_usd=cost, write=str):
        train(client)
    with (
        sageaudit.guard(client, max_usd=cost - Decimal("0.000001"), write=str),
        pytest.raises(sageaudit.JobRefused),
    ):
        train(client)
    assert len(aws.sent) == 1


@pytest.mark.parametrize(
    ("kind", "cost"),
    [
        (JobKind.PROCESSING, "its cost is at most $0.23, above"),
        (JobKind.TUNING, "its cost is at most $1.89, above"),
    ],
)
def test_other_kinds_have_limits_too(kind: JobKind, cost: str, client: Any, aws: Aws) -> None:
    with (
        sageaudit.guard(client, max_usd="0.1", write=str),
        pytest.raises(sageaudit.JobRefused, match=re.escape(cost)),
    ):
        start(client, kind)
    assert aws.sent == []


UNKNOWN: dict[str, tuple[str, dict[str, Any], str]] = {
    "a transform job": (
        "create_transform_job",
        body(JobKind.TRANSFORM),
        "a transform job has no limit on its run time",
    ),
    "an AutoML job": (
        "create_auto_ml_job_v2",
        {
            "AutoMLJobName": "auto-1",
            "AutoMLJobInputDataConfig": [{"ChannelType": "training"}],
            "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
            "AutoMLProblemTypeConfig": {"TabularJobConfig": {"TargetAttributeName": "y"}},
            "RoleArn": ROLE,
        },
        "its request names no instances",
    ),
    "the start of a pipeline": (
        "start_pipeline_execution",
        {"PipelineName": "weekly", "ClientRequestToken": "1" * 32},
        "the call has no definition",
    ),
    "a definition in S3": (
        "update_pipeline",
        {
            "PipelineName": "weekly",
            "PipelineDefinitionS3Location": {"Bucket": "bucket", "ObjectKey": "weekly.json"},
        },
        "its definition is in S3",
    ),
    "a definition that is not JSON": (
        "update_pipeline",
        {"PipelineName": "weekly", "PipelineDefinition": "{"},
        "its definition is not JSON",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_cost_is_said_and_passes(
    name: str, client: Any, aws: Aws, written: list[str]
) -> None:
    """`refuse_unknown` refuses it."""
    method, request, reason = UNKNOWN[name]
    with sageaudit.guard(client, max_usd=1, write=written.append):
        getattr(client, method)(**request)
    text = " ".join("".join(written).split())
    assert "Its maximum cost is not known: " in text
    assert reason in text
    assert (
        "The limit of $1.00 cannot be applied; refuse_unknown=True would refuse this call." in text
    )
    assert len(aws.sent) == 1
    with (
        sageaudit.guard(client, refuse_unknown=True, write=str),
        pytest.raises(sageaudit.JobRefused, match=f"refuse_unknown is on: .*{reason}"),
    ):
        getattr(client, method)(**request)
    assert len(aws.sent) == 1


def search_on(resources: dict[str, Any]) -> dict[str, Any]:
    """Returns a request of a tuning job of 8 trials of an hour on these resources."""
    request = body(JobKind.TUNING)
    del request["TrainingJobDefinition"]["ResourceConfig"]
    request["TrainingJobDefinition"]["HyperParameterTuningResourceConfig"] = resources
    return request


def test_a_tuning_job_costs_at_most_what_its_most_expensive_type_does(
    client: Any, written: list[str]
) -> None:
    """Of those that it may use. 1,000 GB cost $0.14 each for 1 of 744 hours."""
    small = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10}
    large = {"InstanceType": "ml.m5.4xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1000}
    usd = 8 * (Decimal("0.922") + Decimal(140) / 744)
    refusal = re.escape(f"its cost is at most ${usd:.2f}, above")
    with (
        sageaudit.guard(client, max_usd=5, write=written.append),
        pytest.raises(sageaudit.JobRefused, match=refusal),
    ):
        client.create_hyper_parameter_tuning_job(**search_on({"InstanceConfigs": [small, large]}))
    assert "AWS refuses" not in written[0]


def test_the_volume_of_a_tuning_job_may_be_left_out(client: Any, written: list[str]) -> None:
    """AWS calls it optional."""
    with sageaudit.guard(client, write=written.append):
        for size in ({}, {"VolumeSizeInGB": 30}):
            resources = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, **size}
            client.create_hyper_parameter_tuning_job(**search_on(resources))
    assert "At most" in written[0]
    assert "AWS refuses" not in "".join(written)


def test_a_type_without_a_price_has_an_unknown_cost(aws: Aws, written: list[str]) -> None:
    """The region of the client decides the price."""
    client = aws.client("us-iso-east-1")
    with sageaudit.guard(client, max_usd=1, write=written.append):
        train(client, DAY)
    assert "Its maximum cost is not known" in written[0]
    assert aws.sent == ["CreateTrainingJob"]


def pipeline(**changes: Any) -> dict[str, Any]:
    """Returns a request to create a pipeline of two training jobs and a transform job."""
    jobs = {"Training": body(changes=DAY), "Transform": body(JobKind.TRANSFORM)}
    steps = [("first", "Training"), ("second", "Training"), ("score", "Transform")]
    definition = {
        "Version": "2020-12-01",
        "Steps": [
            {"Name": name, "Type": kind, "Arguments": jobs[kind] | {f"{kind}JobName": None}}
            for name, kind in steps
        ],
    }
    return {"PipelineName": "weekly", "PipelineDefinition": json.dumps(definition), **changes}


def test_the_jobs_of_a_pipeline_count_together(client: Any, aws: Aws, written: list[str]) -> None:
    token = {"ClientRequestToken": "1" * 32, "RoleArn": ROLE}
    with sageaudit.guard(client, max_usd=10, write=written.append):
        with pytest.raises(sageaudit.JobRefused, match="for 2 of its 3 jobs, above"):
            client.create_pipeline(**pipeline(**token))
        assert aws.sent == []
    text = " ".join(written[0].split())
    assert "At most $11.31 for 2 of its 3 jobs, each to its limit." in text
    assert "The maximum cost of 1 job is not known: a transform job has no limit" in text
    assert (
        "The limit of $10.00 is applied to the known costs only; refuse_unknown=True would refuse"
        " this call." in text
    )


def test_what_is_not_checked_of_a_pipeline_is_said(client: Any, written: list[str]) -> None:
    """Its costs are in no amount."""
    steps = [{"Name": f"step-{number}", "Type": "AutoML"} for number in range(1, 6)]
    definition = json.dumps({"Version": "2020-12-01", "Steps": steps})
    with sageaudit.guard(client, write=written.append):
        client.update_pipeline(PipelineName="weekly", PipelineDefinition=definition)
    _, *lines = written[0].splitlines()
    assert lines[0] == "  It has no job that is checked."
    assert lines[1].startswith("  Step step-")
    assert lines[1].endswith("AutoML step is not checked.")
    assert lines[4:] == ["  2 more parts not checked."]


def test_an_update_after_a_create_is_printed_once(client: Any, written: list[str]) -> None:
    """The SDKs create a pipeline, and update it if it exists already."""
    token = {"ClientRequestToken": "1" * 32, "RoleArn": ROLE}
    with sageaudit.guard(client, write=written.append):
        client.create_pipeline(**pipeline(**token))
        client.update_pipeline(**pipeline())
        assert len(written) == 1
        client.update_pipeline(**pipeline())
        client.update_pipeline(PipelineName="weekly", PipelineDisplayName="Weekly")
        assert len(written) == 2


def test_other_calls_are_not_checked(client: Any, aws: Aws, written: list[str]) -> None:
    with sageaudit.guard(client, max_usd=0, refuse_unknown=True, write=written.append):
        client.list_training_jobs()
        client.describe_training_job(TrainingJobName="train-1")
    assert (len(aws.sent), written) == (2, [])


def test_a_job_must_meet_what_is_required(client: Any, aws: Aws) -> None:
    """Each setting and tag is named with its value. A job that meets all passes."""
    require = {"EnableNetworkIsolation": True, "Tags": {"team": "set"}}
    with sageaudit.guard(client, require=require, write=str):
        with pytest.raises(sageaudit.JobRefused) as caught:
            train(client)
        assert str(caught.value).endswith(
            "EnableNetworkIsolation is not set (required: true); the tag team is not set"
            " (required: set)"
        )
        tags = [{"Key": "team", "Value": "growth"}]
        train(client, {"EnableNetworkIsolation": True, "Tags": tags})
    assert len(aws.sent) == 1


def test_what_cannot_be_checked_may_lack_what_is_required(
    client: Any, aws: Aws, written: list[str]
) -> None:
    """The guard says so, and the call is sent."""
    method, request, _ = UNKNOWN["an AutoML job"]
    with sageaudit.guard(client, require={"Tags.team": "set"}, write=written.append):
        getattr(client, method)(**request)
    assert "It is not known whether it meets what is required." in written[0]
    assert len(aws.sent) == 1


def test_the_policy_is_required_only_with_require(client: Any, aws: Aws, tmp_path: Any) -> None:
    """Its rule may be off: the argument asks for it. An exemption still counts."""
    policy = tmp_path / "policy.toml"
    table = '[rules]\noff = ["requirement-not-met"]\n[require]\nEnableNetworkIsolation = true\n'
    policy.write_text(table, encoding="utf-8")
    with sageaudit.guard(client, policy=policy, write=str):
        train(client)
    with (
        sageaudit.guard(client, policy=policy, require={}, write=str),
        pytest.raises(sageaudit.JobRefused, match="EnableNetworkIsolation is not set"),
    ):
        train(client)
    exempt = '[[exempt]]\nrule = "requirement-not-met"\nby = "ana"\nreason = "a trial"\n'
    policy.write_text(f"{table}{exempt}", encoding="utf-8")
    with sageaudit.guard(client, policy=policy, require={}, write=str):
        train(client)
    assert len(aws.sent) == 2


def test_what_aws_refuses_is_printed(client: Any, written: list[str]) -> None:
    """botocore refuses it itself."""
    with (
        sageaudit.guard(client, write=written.append),
        pytest.raises(Exception, match="InstanceTyp"),
    ):
        train(client, {"ResourceConfig.InstanceTyp": "ml.m5.large"})
    assert "AWS refuses it: ResourceConfig.InstanceTyp" in written[0]


def test_a_pipeline_with_a_job_of_unknown_cost_is_refused(client: Any, aws: Aws) -> None:
    """Its AutoML step is in no amount. A step that registers a model costs nothing."""
    token = {"ClientRequestToken": "1" * 32, "RoleArn": ROLE}
    train_step = {"Name": "Train", "Type": "Training", "Arguments": body()}
    for kind in ("RegisterModel", "AutoML"):
        steps = [train_step, {"Name": "Next", "Type": kind, "Arguments": {}}]
        definition = json.dumps({"Version": "2020-12-01", "Steps": steps})
        request = {"PipelineName": "weekly", "PipelineDefinition": definition, **token}
        with sageaudit.guard(client, refuse_unknown=True, write=str):
            if kind == "RegisterModel":
                client.create_pipeline(**request)
                continue
            with pytest.raises(sageaudit.JobRefused, match="the cost of an AutoML step is not kno"):
                client.create_pipeline(**request)
    assert aws.sent == ["CreatePipeline"]


def test_attempts_of_a_step_count(client: Any, aws: Aws, written: list[str]) -> None:
    """Three attempts of an hour at $0.23."""
    retry = {"ExceptionType": ["SageMaker.JOB_INTERNAL_ERROR"], "MaxAttempts": 2}
    step = {"Name": "Train", "Type": "Training", "Arguments": body(), "RetryPolicies": [retry]}
    request = {
        "PipelineName": "weekly",
        "PipelineDefinition": json.dumps({"Version": "2020-12-01", "Steps": [step]}),
        "ClientRequestToken": "1" * 32,
        "RoleArn": ROLE,
    }
    with (
        sageaudit.guard(client, max_usd="0.60", write=written.append),
        pytest.raises(sageaudit.JobRefused, match=re.escape("at most $0.71, above")),
    ):
        client.create_pipeline(**request)
    assert "At most $0.71: 3 attempts (RetryPolicies), each $0.23 an hour" in written[0]
    assert aws.sent == []
