"""Fixes as text: golden snippets, and that whatever is written parses in its language."""

from __future__ import annotations

import ast
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.audit.finding_document import FixDocument
from sageaudit.domain.job.kinds import JobKind
from sageaudit.output.fixes.dialects import DIALECTS, Dialect, fix_text
from sageaudit.output.fixes.names import NAMES
from tests.fakes.documents import fix

PYTHON: tuple[Dialect, ...] = ("sdk-v3", "sdk-v2", "boto3")
SPOT = [
    fix("EnableManagedSpotTraining", False, True),
    fix("StoppingCondition.MaxWaitTimeInSeconds", None, 7200),
    fix("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"),
]
CONVERGED = (
    "HyperParameterTuningJobConfig.TuningJobCompletionCriteria.ConvergenceDetected"
    ".CompleteOnConvergence"
)
ALWAYS_SENT = (
    "# no argument: remove ResourceConfig.VolumeSizeInGB (the SDK always sends volume_size)"
)
KINDS: list[tuple[JobKind, str]] = [(kind, path) for kind, table in NAMES.items() for path in table]


def one(path: str, new: Any) -> list[FixDocument]:
    """A fix of one parameter."""
    return [fix(path, None, new)]


def text(*lines: str) -> str:
    """A snippet."""
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("dialect", "snippet"),
    [
        (
            "api",
            text(
                "{",
                '  "$.EnableManagedSpotTraining": true,',
                '  "$.StoppingCondition.MaxWaitTimeInSeconds": 7200,',
                '  "$.CheckpointConfig.S3Uri": "s3://<bucket>/<prefix>"',
                "}",
            ),
        ),
        (
            "sdk-v3",
            text(
                "ModelTrainer(",
                "    compute=Compute(enable_managed_spot_training=True),",
                "    stopping_condition=StoppingCondition(max_wait_time_in_seconds=7200),",
                '    checkpoint_config=CheckpointConfig(s3_uri="s3://<bucket>/<prefix>"),',
                ")",
            ),
        ),
        (
            "sdk-v2",
            text(
                "Estimator(",
                "    use_spot_instances=True,",
                "    max_wait=7200,",
                '    checkpoint_s3_uri="s3://<bucket>/<prefix>",',
                ")",
            ),
        ),
        (
            "boto3",
            text(
                "client.create_training_job(",
                "    EnableManagedSpotTraining=True,",
                '    StoppingCondition={"MaxWaitTimeInSeconds": 7200},',
                '    CheckpointConfig={"S3Uri": "s3://<bucket>/<prefix>"},',
                ")",
            ),
        ),
        (
            "terraform",
            text(
                'resource "aws_sagemaker_training_job" "this" {',
                "  enable_managed_spot_training = true",
                "  stopping_condition {",
                "    max_wait_time_in_seconds = 7200",
                "  }",
                "  checkpoint_config {",
                '    s3_uri = "s3://<bucket>/<prefix>"',
                "  }",
                "}",
            ),
        ),
    ],
)
def test_spot_in_each_dialect(dialect: Dialect, snippet: str) -> None:
    """Exactly what changes, as one statement or block."""
    assert fix_text("training", SPOT, dialect) == snippet


@pytest.mark.parametrize(
    ("dialect", "snippet"),
    [
        ("api", '{\n  "$.InputDataConfig[?@.ChannelName==\'train\'].InputMode": "FastFile"\n}'),
        (
            "sdk-v3",
            text(
                'ModelTrainer(input_data_config=[Channel(channel_name="train", '
                'input_mode="FastFile")])',
                "# a Channel in place of InputData, which takes no input mode",
            ),
        ),
        ("sdk-v2", 'estimator.fit(inputs={"train": TrainingInput(input_mode="FastFile")})'),
        (
            "boto3",
            text(
                "client.create_training_job(",
                '    InputDataConfig=[{"ChannelName": "train", "InputMode": "FastFile"}],',
                ")",
            ),
        ),
        (
            "terraform",
            text(
                'resource "aws_sagemaker_training_job" "this" {',
                "  input_data_config {",
                '    channel_name = "train"',
                '    input_mode = "FastFile"',
                "  }",
                "}",
            ),
        ),
    ],
)
def test_a_channel_in_each_dialect(dialect: Dialect, snippet: str) -> None:
    """It is found by its name, wherever it stands in the list."""
    fixes = one("InputDataConfig[train].InputMode", "FastFile")
    assert fix_text("training", fixes, dialect) == snippet


@pytest.mark.parametrize(
    ("kind", "path", "new", "dialect", "snippet"),
    [
        (
            "processing", "ProcessingOutputConfig.Outputs[model].S3Output.S3UploadMode",
            "Continuous", "sdk-v2",
            text(
                "processor.run(",
                '    outputs=[ProcessingOutput(output_name="model", s3_upload_mode="Continuous")],',
                ")",
            ),
        ),
        (
            "processing", "ProcessingOutputConfig.Outputs[model].S3Output.S3UploadMode",
            "Continuous", "sdk-v3",
            text(
                "processor.run(",
                "    outputs=[",
                "        ProcessingOutput(",
                '            output_name="model",',
                '            s3_output=ProcessingS3Output(s3_upload_mode="Continuous"),',
                "        ),",
                "    ],",
                ")",
            ),
        ),
        (
            "processing", "ProcessingResources.ClusterConfig.InstanceType", "ml.m5.large", "boto3",
            text(
                "client.create_processing_job(",
                '    ProcessingResources={"ClusterConfig": {"InstanceType": "ml.m5.large"}},',
                ")",
            ),
        ),
        (
            "transform", "MaxConcurrentTransforms", 4, "sdk-v2",
            "Transformer(max_concurrent_transforms=4)",
        ),
        (
            "transform", "BatchStrategy", "MultiRecord", "sdk-v3",
            'Transformer(strategy="MultiRecord")',
        ),
        (
            "tuning", "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType", "Auto",
            "sdk-v3", 'HyperparameterTuner(early_stopping_type="Auto")',
        ),
        (
            "tuning",
            CONVERGED, "Enabled", "sdk-v2",
            text(
                "HyperparameterTuner(",
                "    completion_criteria_config=TuningJobCompletionCriteriaConfig(",
                "        complete_on_convergence=True,",
                "    ),",
                ")",
            ),
        ),
        (
            "training", "ResourceConfig.KeepAlivePeriodInSeconds", 600, "sdk-v3",
            "ModelTrainer(compute=Compute(keep_alive_period_in_seconds=600))",
        ),
        ("training", "OutputDataConfig.CompressionType", "NONE", "sdk-v2",
            "Estimator(disable_output_compression=True)"),
        ("training", "OutputDataConfig.CompressionType", "GZIP", "sdk-v2",
            "Estimator(disable_output_compression=False)"),
        (
            "training", "RetryStrategy.MaximumRetryAttempts", 2, "sdk-v3",
            text(
                "model_trainer.with_retry_strategy(",
                "    retry_strategy=RetryStrategy(maximum_retry_attempts=2),",
                ")",
            ),
        ),
        ("training", "Environment.OMP_NUM_THREADS", 8, "sdk-v2",
            'Estimator(environment={"OMP_NUM_THREADS": "8"})'),
        ("training", "Environment.OMP_NUM_THREADS", Decimal(8), "boto3",
            'client.create_training_job(Environment={"OMP_NUM_THREADS": "8"})'),
        ("training", "HyperParameters.bf16", True, "api",
            '{\n  "$.HyperParameters.bf16": "true"\n}'),
        ("training", "HyperParameters.sagemaker-x", 1, "api",
            '{\n  "$.HyperParameters[\'sagemaker-x\']": "1"\n}'),
        ("training", "HyperParameters.rate", Decimal("0.10"), "sdk-v2",
            'Estimator(hyperparameters={"rate": 0.10})'),
        (
            "training", "Environment.OMP_NUM_THREADS", 8, "terraform",
            text(
                'resource "aws_sagemaker_training_job" "this" {',
                "  environment = {",
                '    "OMP_NUM_THREADS" = "8"',
                "  }",
                "}",
            ),
        ),
    ],
)  # fmt: skip
def test_each_kind_has_its_own_words(
    kind: str, path: str, new: Any, dialect: Dialect, snippet: str
) -> None:
    """A request's maps hold texts; the SDKs take hyperparameters as they are."""
    assert fix_text(kind, one(path, new), dialect) == snippet


@pytest.mark.parametrize(
    ("path", "dialect", "snippet"),
    [
        ("ResourceConfig.KeepAlivePeriodInSeconds", "sdk-v2",
            "Estimator(\n    # remove keep_alive_period_in_seconds\n)"),
        ("ResourceConfig.VolumeSizeInGB", "sdk-v2", ALWAYS_SENT),
        ("ResourceConfig.VolumeSizeInGB", "sdk-v3",
            "ModelTrainer(compute=Compute(volume_size_in_gb=None))"),
        ("ResourceConfig.VolumeSizeInGB", "api", '{\n  "$.ResourceConfig.VolumeSizeInGB": null\n}'),
        ("DebugHookConfig", "sdk-v2", "Estimator(debugger_hook_config=False)"),
        ("DebugHookConfig", "sdk-v3", "# no argument: remove DebugHookConfig"),
        ("DebugHookConfig", "boto3",
            "client.create_training_job(\n    # remove DebugHookConfig\n)"),
        ("HyperParameters.sagemaker_training_compiler_enabled", "sdk-v2",
            "HuggingFace(\n    # remove compiler_config\n)"),
        (
            "HyperParameters.x", "boto3",
            text(
                "client.create_training_job(",
                "    HyperParameters={",
                '        # remove "x"',
                "    },",
                ")",
            ),
        ),
        (
            "ResourceConfig.VolumeSizeInGB", "terraform",
            text(
                'resource "aws_sagemaker_training_job" "this" {',
                "  resource_config {",
                "    # remove volume_size_in_gb",
                "  }",
                "}",
            ),
        ),
    ],
)  # fmt: skip
def test_a_removed_parameter_is_said(path: str, dialect: Dialect, snippet: str) -> None:
    """Where leaving it out does not do it, the argument says so itself."""
    assert fix_text("training", one(path, None), dialect) == snippet


def test_what_has_no_argument_is_a_comment() -> None:
    """Nothing is dropped in silence."""
    disable = one("ProfilerConfig.DisableProfiler", True)
    assert fix_text("training", disable, "sdk-v3") == (
        "# no argument: ProfilerConfig.DisableProfiler = true"
    )
    odd = one("New.Parameter", "x")
    assert fix_text("training", odd, "boto3") == '# no argument: New.Parameter = "x"'
    assert fix_text("training", odd, "api") == '{\n  "$.New.Parameter": "x"\n}'
    assert fix_text("transform", one("BatchStrategy", "MultiRecord"), "terraform") == (
        '# Terraform supports training jobs only: BatchStrategy = "MultiRecord"'
    )


def test_a_tuning_job_takes_its_trials_parameters_in_their_definition() -> None:
    """A roll-up's findings are those of its training jobs."""
    fixes = [
        fix("ResourceConfig.InstanceType", "ml.g5.2xlarge", "ml.g5.xlarge"),
        fix("HyperParameters.bf16", None, "true"),
        fix("InputDataConfig[train].InputMode", "File", "FastFile"),
    ]
    assert json.loads(fix_text("tuning", fixes, "api")) == {
        "$.TrainingJobDefinition.ResourceConfig.InstanceType": "ml.g5.xlarge",
        "$.TrainingJobDefinition.StaticHyperParameters.bf16": "true",
        "$.TrainingJobDefinition.InputDataConfig[?@.ChannelName=='train'].InputMode": "FastFile",
    }
    assert fix_text("tuning", fixes, "sdk-v2") == text(
        'Estimator(instance_type="ml.g5.xlarge", hyperparameters={"bf16": "true"})',
        'tuner.fit(inputs={"train": TrainingInput(input_mode="FastFile")})',
    )
    assert fix_text("tuning", one("ProfilerConfig.DisableProfiler", True), "boto3").startswith(
        "# no argument"
    )


def test_no_fix_is_no_text() -> None:
    """In any dialect."""
    assert {fix_text("training", [], dialect) for dialect in DIALECTS} == {""}


HOSTILE = 'a"b\'c\\d\n${file("x")}%{if}$${y}\u202e\x1b[31m\U000e0001*/#].InputMode'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hostile_name_stays_inside_its_quotes(dialect: Dialect) -> None:
    """Channel names and values come from outside: one literal each, on one line."""
    fixes = [
        fix(f"InputDataConfig[{HOSTILE}].InputMode", None, HOSTILE),
        fix(f"Environment.{HOSTILE}", None, HOSTILE),
        fix(f"Odd.{HOSTILE}", None, HOSTILE),
    ]
    snippet = fix_text("training", fixes, dialect)
    assert all(char.isprintable() for char in snippet.replace("\n", ""))
    said = _strings(snippet, dialect)
    assert said.count(HOSTILE) >= 3
    if dialect == "terraform":
        _assert_hcl(snippet)


@given(st.text(min_size=1), st.text(), st.sampled_from(DIALECTS))
def test_any_name_and_value_is_written_so_that_it_is_read_back(
    name: str, value: str, dialect: Dialect
) -> None:
    """But for halves of surrogate pairs, which are no characters."""
    fixes = [fix(f"Environment.{name}", None, value)]
    said = _strings(fix_text("training", fixes, dialect), dialect)
    assert value in said or any("\ud800" <= char <= "\udfff" for char in value)
    assert dialect == "api" or name in said or any("\ud800" <= char <= "\udfff" for char in name)


def _strings(snippet: str, dialect: Dialect) -> list[str]:
    """All texts of a snippet as its language reads them."""
    if dialect == "api":
        pairs = json.loads(snippet)
        return [*map(str, pairs.values())]
    if dialect == "terraform":
        lines = [line for line in snippet.split("\n") if not line.startswith("#")]
        return [_unquoted(part) for line in lines for part in _hcl_strings(line)]
    nodes = ast.walk(ast.parse(snippet))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _hcl_strings(line: str) -> list[str]:
    found, start, place = [], None, 0
    while place < len(line):
        if start is None and line[place] == '"':
            start = place
        elif start is not None and line[place] == "\\":
            place += 1
        elif start is not None and line[place] == '"':
            found.append(line[start : place + 1])
            start = None
        place += 1
    assert start is None, line
    return found


def _unquoted(literal: str) -> str:
    """Escapes of HCL's texts are Python's; a doubled sign before a brace is one."""
    inner = literal.replace("$${", "\\u0024{").replace("%%{", "\\u0025{")
    assert "${" not in inner
    assert "%{" not in inner
    read: str = ast.literal_eval(inner)
    return read


def _assert_hcl(snippet: str) -> None:
    """Braces outside of texts and comments are balanced, and no line ends inside a text."""
    depth = 0
    for line in snippet.split("\n"):
        code = "" if line.lstrip().startswith("#") else line
        for literal in _hcl_strings(code):
            code = code.replace(literal, "", 1)
        depth += code.count("{") - code.count("}")
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize(("kind", "pattern"), KINDS)
def test_every_known_parameter_is_written_or_said(kind: JobKind, pattern: str) -> None:
    """In each dialect, set and removed; and what is written parses."""
    path = pattern.replace("*", "some name")
    for new in ("value", 5, None):
        for dialect in DIALECTS:
            snippet = fix_text(kind, one(path, new), dialect)
            code = [line for line in snippet.split("\n") if not line.startswith("#")]
            assert code or path in snippet
            if dialect in PYTHON:
                ast.parse(snippet)
            elif dialect == "api":
                json.loads(snippet)
            else:
                _assert_hcl(snippet)
