"""Makes a golden file's text: fixes of every kind of job in every dialect."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sageaudit.output.text.fix_code import DIALECTS, fix_text
from tests.fakes.documents import fix

_CONVERGED = (
    "HyperParameterTuningJobConfig.TuningJobCompletionCriteria.ConvergenceDetected"
    ".CompleteOnConvergence"
)
_UPLOAD = "ProcessingOutputConfig.Outputs[model].S3Output.S3UploadMode"
CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "training",
        {
            "EnableManagedSpotTraining": True,
            "StoppingCondition.MaxWaitTimeInSeconds": 7200,
            "CheckpointConfig.S3Uri": "s3://<bucket>/<prefix>",
        },
    ),
    ("training", {"InputDataConfig[train].InputMode": "FastFile"}),
    ("training", {"Environment.OMP_NUM_THREADS": Decimal(8), "HyperParameters.bf16": True}),
    ("training", {"HyperParameters.sagemaker-x": 1, "HyperParameters.rate": Decimal("0.10")}),
    ("training", {"OutputDataConfig.CompressionType": "NONE"}),
    ("training", {"OutputDataConfig.CompressionType": "GZIP"}),
    ("training", {"RetryStrategy.MaximumRetryAttempts": 2}),
    ("training", {"ResourceConfig.KeepAlivePeriodInSeconds": None}),
    ("training", {"ResourceConfig.VolumeSizeInGB": None}),
    ("training", {"DebugHookConfig": None, "HyperParameters.x": None}),
    ("training", {"Tags[owner].Value": "ana", "ProfilerConfig.DisableProfiler": True}),
    ("training", {"New.Parameter": "x"}),
    ("processing", {_UPLOAD: "Continuous", "Tags[owner].Value": "ana"}),
    ("processing", {"ProcessingResources.ClusterConfig.InstanceType": "ml.m5.large"}),
    ("transform", {"MaxConcurrentTransforms": 4, "TransformInput.SplitType": "Line"}),
    ("tuning", {"HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType": "Auto"}),
    ("tuning", {_CONVERGED: "Enabled"}),
    (
        "tuning",
        {
            "ResourceConfig.InstanceType": "ml.g5.xlarge",
            "HyperParameters.bf16": "true",
            "InputDataConfig[train].InputMode": "FastFile",
        },
    ),
)


def all_fixes() -> str:
    """Returns each case in each dialect."""
    return "\n".join(_texts()) + "\n"


def _texts() -> Iterator[str]:
    for kind, parameters in CASES:
        for dialect in DIALECTS:
            yield f"== {kind}: {', '.join(parameters)} as {dialect}"
            yield fix_text(
                kind, [fix(path, None, new) for path, new in parameters.items()], dialect
            )
