"""The fix for failures that a second try may cure."""

from __future__ import annotations

from sageaudit.domain.job.failure import reason_class
from sageaudit.domain.job.failure_words import AWS_ERROR
from sageaudit.rules import api


def retry_fix(job: api.Job) -> tuple[api.Parameter, ...]:
    """A RetryStrategy for an internal error of AWS; SageMaker has it for training jobs only."""
    if reason_class(job) != AWS_ERROR or job.kind is not api.JobKind.TRAINING:
        return ()
    return (api.Parameter("RetryStrategy.MaximumRetryAttempts", None, 2),)
