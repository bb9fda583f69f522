"""What an answer tells beside the run: profiler, verdicts, metrics, outputs, batches, tuning."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import (
    Job,
    RuleEvaluation,
    TransformBatching,
    Upload,
)
from sageaudit.domain.job.kept import keep
from sageaudit.domain.job.tuning import Direction, Objective, Tuning
from sageaudit.errors import Malformed
from tests.fakes.jobs import training_answer


def read(**changes: Any) -> Job:
    """The job of a training answer."""
    return parse(training_answer(**changes), {})


def processing(**changes: Any) -> Job:
    """The job of a processing answer."""
    return parse({"ProcessingJobName": "p", "ProcessingJobStatus": "Completed", **changes}, {})


def transform(**changes: Any) -> Job:
    """The job of a transform answer."""
    return parse({"TransformJobName": "t", "TransformJobStatus": "Completed", **changes}, {})


def tuning(config: dict[str, Any], **changes: Any) -> Tuning:
    """What a tuning job's answer says."""
    answer = {
        "HyperParameterTuningJobName": "sweep",
        "HyperParameterTuningJobStatus": "Completed",
        "HyperParameterTuningJobConfig": config,
        **changes,
    }
    found = parse(answer, {}).tuning
    assert found is not None
    return found


def test_an_answer_that_says_nothing_leaves_all_unknown() -> None:
    """Absent is None or empty, never False or 0."""
    job = read()
    assert (job.profiled, job.network_isolation, job.output_compression) == (None, None, None)
    assert (job.image_pull_in_download, job.data_pinned) == (None, None)
    assert (job.evaluations, job.metric_names, job.final_metrics) == ((), (), {})
    assert (job.uploads, job.batch) == ((), None)


@pytest.mark.parametrize(
    ("changes", "on"),
    [
        ({"ProfilingStatus": "Enabled"}, True),
        ({"ProfilingStatus": "Disabled"}, False),
        ({"ProfilingStatus": "Disabled", "ProfilerConfig": {"S3OutputPath": "s3://b"}}, False),
        ({"ProfilerConfig": {"S3OutputPath": "s3://b"}}, True),
        ({"ProfilerConfig": {"DisableProfiler": True}}, False),
        ({"ProfilerConfig": {}}, None),
        ({"ProfilerRuleConfigurations": [{"RuleConfigurationName": "ProfilerReport"}]}, True),
        ({"ProfilerRuleConfigurations": []}, None),
    ],
)
def test_whether_a_profiler_was_on(changes: dict[str, Any], on: bool | None) -> None:
    """The status knows; without it what was asked for."""
    assert read(**changes).profiled is on


def test_debuggers_verdicts_are_read_in_order() -> None:
    """The profiler's first; a running one has no details."""
    job = read(
        DebugRuleEvaluationStatuses=[
            {"RuleConfigurationName": "Overfit", "RuleEvaluationStatus": "InProgress"},
        ],
        ProfilerRuleEvaluationStatuses=[
            {
                "RuleConfigurationName": "LowGPUUtilization",
                "RuleEvaluationStatus": "IssuesFound",
                "StatusDetails": "RuleEvaluationConditionMet: at step 8\n",
            },
            {"RuleEvaluationStatus": "NoIssuesFound"},
            {"RuleConfigurationName": "never started"},
        ],
    )
    assert job.evaluations == (
        RuleEvaluation("LowGPUUtilization", "IssuesFound", "RuleEvaluationConditionMet"),
        RuleEvaluation("without a name", "NoIssuesFound", None),
        RuleEvaluation("Overfit", "InProgress", None),
    )


def test_metric_names_are_those_that_sagemaker_publishes() -> None:
    """Each once, in their order; 40 at most, none longer than CloudWatch takes."""

    def names(*names: str | None) -> tuple[str, ...]:
        definitions = [{"Name": name, "Regex": "x"} for name in names]
        return read(AlgorithmSpecification={"MetricDefinitions": definitions}).metric_names

    assert names("train:loss", "validation:auc", "train:loss") == ("train:loss", "validation:auc")
    assert names(None, "", "a" * 256, "a" * 255) == ("a" * 255,)
    assert names(*(f"m{n}" for n in range(60))) == tuple(f"m{n}" for n in range(40))


def test_final_metrics_are_exact_numbers() -> None:
    """As AWS prints them; the last of a name counts."""
    values = [("auc", 0.91), ("loss", 3), ("loss", Decimal("2.5")), ("epoch", -1)]
    listed = [{"MetricName": name, "Value": value} for name, value in values]
    assert read(FinalMetricDataList=listed).final_metrics == {
        "auc": Decimal("0.91"),
        "loss": Decimal("2.5"),
        "epoch": Decimal(-1),
    }


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("Infinity"), 10**400, None]
)
def test_a_final_metric_that_is_no_finite_number_is_left_out(value: object) -> None:
    """A loss that diverged is no value."""
    assert read(FinalMetricDataList=[{"MetricName": "loss", "Value": value}]).final_metrics == {}


@pytest.mark.parametrize(
    ("transitions", "pulled"),
    [
        ([], None),
        ([("Downloading", None)], None),
        ([("Downloading", "Downloading input data")], False),
        ([("Downloading", "Downloading the training image")], True),
        (
            [
                ("Downloading", "Downloading input data"),
                ("Interrupted", "x"),
                ("Downloading", "Downloading the training image"),
            ],
            True,
        ),
        ([("DownloadingTrainingImage", "Downloading the training image")], True),
        ([("Training", "Training image download completed. Training in progress.")], None),
    ],
)
def test_downloading_says_whether_it_pulled_the_image(
    transitions: list[tuple[str, str | None]], pulled: bool | None
) -> None:
    """Only its own message counts: Training's names the image in every job."""
    listed = [
        {"Status": status, "StatusMessage": message, "StartTime": f"2026-05-20T10:0{n}:00Z"}
        for n, (status, message) in enumerate(transitions)
    ]
    assert read(SecondaryStatusTransitions=listed).image_pull_in_download is pulled


def test_compression_and_isolation_of_a_training_job() -> None:
    """From OutputDataConfig and EnableNetworkIsolation."""
    job = read(OutputDataConfig={"CompressionType": "NONE"}, EnableNetworkIsolation=True)
    assert (job.output_compression, job.network_isolation) == ("NONE", True)
    assert read(EnableNetworkIsolation=False).network_isolation is False


@pytest.mark.parametrize(
    ("changes", "isolated"),
    [
        ({"NetworkConfig": {"EnableNetworkIsolation": True}}, True),
        ({"NetworkConfig": {"EnableNetworkIsolation": False}}, False),
        ({"NetworkConfig": {"VpcConfig": {}}}, False),
        ({"AppSpecification": {"ImageUri": "x"}}, False),
        ({"AppSpecification": {"ImageUri": "x"}, "NetworkConfig": None}, False),
        ({}, None),
    ],
)
def test_a_processing_job_that_asked_for_no_isolation_has_none(
    changes: dict[str, Any], isolated: bool | None
) -> None:
    """Its whole answer leaves NetworkConfig out; a part of an answer says nothing."""
    assert processing(**changes).network_isolation is isolated


def test_a_processing_jobs_outputs_say_when_they_are_uploaded() -> None:
    """What the application writes itself, or a feature store takes, has no upload mode."""
    outputs = [
        {"OutputName": "train", "S3Output": {"S3Uri": "s3://b/t", "S3UploadMode": "EndOfJob"}},
        {"OutputName": "logs", "S3Output": {"S3Uri": "s3://b/l", "S3UploadMode": "Continuous"}},
        {"OutputName": "own", "S3Output": {"S3UploadMode": "EndOfJob"}, "AppManaged": True},
        {"FeatureStoreOutput": {"FeatureGroupName": "g"}},
    ]
    assert processing(ProcessingOutputConfig={"Outputs": outputs}).uploads == (
        Upload("train", "EndOfJob"),
        Upload("logs", "Continuous"),
        Upload("own", None),
        Upload("output", None),
    )


@pytest.mark.parametrize(
    ("changes", "batch"),
    [
        ({}, TransformBatching(None, None, None)),
        (
            {"BatchStrategy": "SingleRecord", "MaxConcurrentTransforms": 1, "MaxPayloadInMB": 6},
            TransformBatching("SingleRecord", 1, 6),
        ),
        ({"MaxConcurrentTransforms": 0, "MaxPayloadInMB": 0}, TransformBatching(None, None, 0)),
    ],
)
def test_how_a_transform_job_asks_its_container(
    changes: dict[str, Any], batch: TransformBatching
) -> None:
    """0 concurrent transforms leave it to the container, as if none were given."""
    assert transform(**changes).batch == batch


def test_a_transforms_input_may_name_a_version() -> None:
    """Its one input is its data."""

    def source(uri: str) -> dict[str, Any]:
        return {"DataSource": {"S3DataSource": {"S3Uri": uri}}}

    assert transform(TransformInput=source("s3://b/2026-05-20/x")).data_pinned is True
    assert transform(TransformInput=source("s3://b/x")).data_pinned is False
    assert transform().data_pinned is None


def test_a_processing_jobs_inputs_may_name_versions() -> None:
    """A query's answer may differ each time."""
    pinned = {"InputName": "d", "S3Input": {"S3Uri": "s3://b/v1/x"}}
    query = {"InputName": "q", "DatasetDefinition": {}}
    assert processing(ProcessingInputs=[pinned]).data_pinned is True
    assert processing(ProcessingInputs=[pinned, query]).data_pinned is None


def test_a_tuning_jobs_plan_is_read() -> None:
    """Objective, limits and the best trial."""
    found = tuning(
        {
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 30, "MaxParallelTrainingJobs": 3},
        },
    )
    assert found.objective == Objective("auc", Direction.MAXIMIZE)
    assert (found.max_jobs, found.max_parallel) == (30, 3)


@pytest.mark.parametrize(
    ("own", "shared", "objective"),
    [
        (None, [], None),
        ({"MetricName": "loss", "Type": "Minimize"}, [], ("loss", Direction.MINIMIZE)),
        ({"MetricName": "loss", "Type": "Sideways"}, [], ("loss", None)),
        ({"Type": "Minimize"}, [], None),
        (
            None,
            [{"MetricName": "auc", "Type": "Maximize"}] * 2,
            ("auc", Direction.MAXIMIZE),
        ),
        (None, [{"MetricName": "auc", "Type": "Maximize"}, {"MetricName": "loss"}], None),
    ],
)
def test_the_objective_is_the_jobs_or_one_that_all_definitions_share(
    own: dict[str, str] | None,
    shared: list[dict[str, str]],
    objective: tuple[str, Direction | None] | None,
) -> None:
    """Several definitions each have their own; where these differ there is no single one."""
    config = {"HyperParameterTuningJobObjective": own} if own else {}
    definitions = [{"TuningObjective": item} for item in shared]
    found = tuning(config, TrainingJobDefinitions=definitions).objective
    assert found == (None if objective is None else Objective(*objective))


def test_without_limits_these_are_unknown() -> None:
    """A tuning job that failed at once has none."""
    found = tuning({})
    assert (found.objective, found.max_jobs, found.max_parallel) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"ProfilingStatus": 1}, "ProfilingStatus"),
        ({"ProfilerConfig": "on"}, "ProfilerConfig"),
        ({"ProfilerConfig": {"DisableProfiler": "no"}}, "DisableProfiler"),
        ({"ProfilerRuleConfigurations": {}}, "ProfilerRuleConfigurations"),
        ({"ProfilerRuleEvaluationStatuses": "none"}, "ProfilerRuleEvaluationStatuses"),
        ({"DebugRuleEvaluationStatuses": [{"StatusDetails": 5}]}, "StatusDetails"),
        ({"AlgorithmSpecification": {"MetricDefinitions": "loss"}}, "MetricDefinitions"),
        ({"AlgorithmSpecification": {"MetricDefinitions": [{"Name": 5}]}}, "Name"),
        ({"FinalMetricDataList": [{"MetricName": "a", "Value": "low"}]}, "Value"),
        ({"FinalMetricDataList": [{"MetricName": "a", "Value": True}]}, "Value"),
        ({"FinalMetricDataList": {}}, "FinalMetricDataList"),
        ({"OutputDataConfig": []}, "OutputDataConfig"),
        ({"OutputDataConfig": {"CompressionType": 1}}, "CompressionType"),
        ({"EnableNetworkIsolation": "yes"}, "EnableNetworkIsolation"),
        ({"Environment": "A=1"}, "Environment"),
        ({"Derived": {"Hints": []}}, "Hints"),
    ],
)
def test_nonsense_in_a_training_answer_names_its_key(changes: dict[str, Any], key: str) -> None:
    """A reader of the error knows where to look."""
    with pytest.raises(Malformed) as caught:
        read(**changes)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"ProcessingOutputConfig": 1}, "ProcessingOutputConfig"),
        ({"ProcessingOutputConfig": {"Outputs": "s3"}}, "Outputs"),
        ({"ProcessingOutputConfig": {"Outputs": [{"AppManaged": 1}]}}, "AppManaged"),
        ({"NetworkConfig": "off"}, "NetworkConfig"),
        ({"ProcessingInputs": [{"S3Input": {"S3Uri": 5}}]}, "S3Uri"),
    ],
)
def test_nonsense_in_a_processing_answer_names_its_key(changes: dict[str, Any], key: str) -> None:
    """As for a training job."""
    with pytest.raises(Malformed) as caught:
        processing(**changes)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"BatchStrategy": 1}, "BatchStrategy"),
        ({"MaxConcurrentTransforms": "many"}, "MaxConcurrentTransforms"),
        ({"MaxPayloadInMB": -1}, "MaxPayloadInMB"),
        ({"TransformInput": "s3://b"}, "TransformInput"),
    ],
)
def test_nonsense_in_a_transform_answer_names_its_key(changes: dict[str, Any], key: str) -> None:
    """As for a training job."""
    with pytest.raises(Malformed) as caught:
        transform(**changes)
    assert caught.value.key == key


@pytest.mark.parametrize(
    ("config", "changes", "key"),
    [
        ({"ResourceLimits": 5}, {}, "ResourceLimits"),
        ({"ResourceLimits": {"MaxNumberOfTrainingJobs": "all"}}, {}, "MaxNumberOfTrainingJobs"),
        ({"HyperParameterTuningJobObjective": "auc"}, {}, "HyperParameterTuningJobObjective"),
        ({"HyperParameterTuningJobObjective": {"MetricName": 1}}, {}, "MetricName"),
        ({}, {"TrainingJobDefinitions": {}}, "TrainingJobDefinitions"),
    ],
)
def test_nonsense_in_a_tuning_answer_names_its_key(
    config: dict[str, Any], changes: dict[str, Any], key: str
) -> None:
    """As for a training job."""
    with pytest.raises(Malformed) as caught:
        tuning(config, **changes)
    assert caught.value.key == key


def test_what_is_kept_tells_the_same() -> None:
    """A stored answer gives every one of these facts again."""
    answer = training_answer(
        AlgorithmSpecification={"MetricDefinitions": [{"Name": "auc", "Regex": "x"}]},
        FinalMetricDataList=[{"MetricName": "auc", "Value": 0.91}],
        ProfilingStatus="Enabled",
        EnableNetworkIsolation=True,
        OutputDataConfig={"CompressionType": "GZIP"},
        DebugRuleEvaluationStatuses=[
            {"RuleConfigurationName": "Overfit", "RuleEvaluationStatus": "NoIssuesFound"}
        ],
        InputDataConfig=[
            {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/v1"}}}
        ],
    )
    assert parse(keep(answer), {}) == parse(answer, {})


def test_a_trial_knows_the_metric_that_its_tuning_job_judges_it_by() -> None:
    """Kept without its hyperparameters too, but only where it is one of its own metrics."""
    metrics = {"MetricDefinitions": [{"Name": "validation:auc", "Regex": "x"}]}
    answer = training_answer(AlgorithmSpecification=metrics)
    trial = {**answer, "HyperParameters": {"_tuning_objective_metric": "validation:auc"}}
    wanted = Objective("validation:auc", None)
    assert parse(trial, {}).objective == parse(keep(trial), {}).objective == wanted
    assert keep(keep(trial)) == keep(trial)
    secret = {**answer, "HyperParameters": {"_tuning_objective_metric": "hunter2"}}
    assert (parse(secret, {}).objective, parse(answer, {}).objective) == (None, None)
    assert "TunedFor" not in keep(secret)["Derived"]
