"""Requests of jobs that have not run, and the outcomes of rules for them."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sageaudit.adapters.aws.service_model import api_model
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.bill.finding import Finding, Outcome
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.market import Market
from sageaudit.domain.request.forecast import MaxCost
from sageaudit.domain.request.request import REQUEST_SHAPES, Request, UnknownValue
from sageaudit.rules import catalogue
from sageaudit.workflows.check.request import (
    CheckedRequest,
    FamilyHistory,
    check_request,
    find_problems,
    plan_job,
)
from tests.fakes import jobs
from tests.fakes.jobs import REGION, START

LATER = UnknownValue("known after apply")
ROLE = "arn:aws:iam::111122223333:role/train"
_BUILT_IN = "683313688378.dkr.ecr.us-east-1.amazonaws.com"
XGBOOST = f"{_BUILT_IN}/sagemaker-xgboost:1.7-1"
SKLEARN = f"{_BUILT_IN}/sagemaker-scikit-learn:1.2-1-cpu-py3"
LDA = "766337827248.dkr.ecr.us-east-1.amazonaws.com/lda:1"
KMEANS = "382416733822.dkr.ecr.us-east-1.amazonaws.com/kmeans:1"
PYTORCH = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.5-gpu-py311-cu124"

_TRAINING: dict[str, Any] = {
    "TrainingJobName": "train-1",
    "RoleArn": ROLE,
    "AlgorithmSpecification": {"TrainingImage": PYTORCH, "TrainingInputMode": "FastFile"},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri": "s3://bucket/train/",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }
    ],
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}
_PROCESSING: dict[str, Any] = {
    "ProcessingJobName": "prepare-1",
    "RoleArn": ROLE,
    "AppSpecification": {"ImageUri": SKLEARN},
    "ProcessingInputs": [
        {
            "InputName": "data",
            "S3Input": {
                "S3Uri": "s3://bucket/raw/",
                "S3DataType": "S3Prefix",
                "LocalPath": "/opt/ml/processing/input",
                "S3InputMode": "File",
            },
        }
    ],
    "ProcessingResources": {
        "ClusterConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}
_TRANSFORM: dict[str, Any] = {
    "TransformJobName": "score-1",
    "ModelName": "churn-1",
    "TransformInput": {
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/in/"}},
        "SplitType": "Line",
    },
    "TransformOutput": {"S3OutputPath": "s3://bucket/out"},
    "TransformResources": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1},
    "MaxConcurrentTransforms": 4,
}
_TUNING: dict[str, Any] = {
    "HyperParameterTuningJobName": "search-1",
    "HyperParameterTuningJobConfig": {
        "Strategy": "Bayesian",
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 8, "MaxParallelTrainingJobs": 2},
        "TrainingJobEarlyStoppingType": "Auto",
    },
    "TrainingJobDefinition": {
        key: value for key, value in _TRAINING.items() if key != "TrainingJobName"
    },
}
_BODIES: Mapping[JobKind, dict[str, Any]] = {
    JobKind.TRAINING: _TRAINING,
    JobKind.PROCESSING: _PROCESSING,
    JobKind.TRANSFORM: _TRANSFORM,
    JobKind.TUNING: _TUNING,
}
REQUESTED = tuple(_BODIES)
"""Kinds of jobs whose requests are checked."""


def body(
    kind: JobKind = JobKind.TRAINING, changes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns a request without problems.

    `changes` by path; None removes the parameter.
    """
    request: dict[str, Any] = copy.deepcopy(_BODIES[kind])
    for path, value in (changes or {}).items():
        *around, last = path.split(".")
        inside = request
        for step in around:
            inside = inside.setdefault(step, {})
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = value
    return request


def checked_request(
    changes: Mapping[str, Any] | None = None,
    *,
    kind: JobKind = JobKind.TRAINING,
    market: Market | None = None,
    earlier: Sequence[AuditSummary] | None = None,
    audits: Sequence[AuditDocument] = (),
    policy: Policy | None = None,
    trials: Sequence[MaxCost] = (),
    region: str | None = REGION,
) -> CheckedRequest:
    """Checks the request and returns the result.

    `earlier` are the family's runs; None: no history was read.
    """
    request = Request(kind, body(kind, changes), f"{kind.value} job", REQUEST_SHAPES[kind])
    problems = find_problems(request, api_model())
    rules = policy or Policy()
    planned_job = plan_job(request, problems, region, rules)
    history = None if earlier is None else FamilyHistory(tuple(earlier), tuple(audits))
    return check_request(
        planned_job,
        problems,
        market or jobs.market(),
        rules,
        catalogue.ruleset(),
        now=START,
        history=history,
        trial_costs=trials,
    )


def request_finding(rule: str, changes: Mapping[str, Any] | None = None, **more: Any) -> Finding:
    """Returns the rule's finding about a request."""
    [finding] = [f for f in checked_request(changes, **more).findings if f.rule.name == rule]
    return finding


def request_answer(
    rule: str, changes: Mapping[str, Any] | None = None, **more: Any
) -> Finding | Outcome:
    """Returns the rule's outcome for a request; a detection as a finding with its dollars."""
    checked = checked_request(changes, **more)
    findings = [f for f in checked.findings if f.rule.name == rule]
    return findings[0] if findings else next(o for name, o in checked.outcomes if name.name == rule)
