"""Why a run ended without success, and whether it left any output.

The reason class is only a hint: AWS documents neither the words of a failure message nor their
order. SecondaryStatus is an enum, so it is checked before the text.
"""

from __future__ import annotations

import re

from sageaudit.domain.job.job import Job, ParentKind
from sageaudit.domain.job.kinds import JobKind

MAX_RUNTIME, MAX_WAIT = "MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"
LIMIT_REACHED, AWS_ERROR = "limit reached", "AWS error"
_LIMITS = {"MaxRuntimeExceeded": MAX_RUNTIME, "MaxWaitTimeExceeded": MAX_WAIT}
_LIMIT_WORDS = (
    (r"maxruntime(?:inseconds)?\W*exceeded|exceeded \W*maxruntime", MAX_RUNTIME),
    (r"maxwaittime(?:inseconds)?\W*exceeded|exceeded \W*maxwaittime", MAX_WAIT),
)
_CLASSES = (
    ("memory error", (r"out ?of ?memory", r"\boom\b", r"exit code:? 137\b", r"more memory")),
    ("disk error", (r"no space left", r"disk is full", r"disk quota")),
    ("capacity error", (r"capacityerror", r"insufficient capacity")),
    ("data error", (r"data download failed", r"matched no files", r"nosuchkey", r"no such file")),
    ("permission error", (r"access ?denied", r"not authorized", r"forbidden")),
    (AWS_ERROR, (r"internal ?server ?error",)),
    ("code error", (r"algorithmerror", r"executeuserscripterror", r"traceback", r"exit code")),
    ("request error", (r"clienterror", r"validationexception")),
)
"""First match wins."""


def limit_hit(job: Job) -> str | None:
    """The request parameter of the limit that ended the run, or None.

    A processing job has no secondary status: if it was stopped after its limit, the limit stopped
    it, because SageMaker stops jobs late and never early.
    """
    if job.status == "Completed":
        return None
    if job.secondary_status in _LIMITS:
        return _LIMITS[job.secondary_status]
    text = (job.failure or "").lower()
    for words, limit in _LIMIT_WORDS:
        if re.search(words, text):
            return limit
    out_of_time = (
        job.kind is JobKind.PROCESSING
        and job.status == "Stopped"
        and job.max_runtime_s is not None
        and job.elapsed_s is not None
        and job.elapsed_s >= job.max_runtime_s
    )
    return MAX_RUNTIME if out_of_time else None


def reason_class(job: Job) -> str:
    """One or two words for the reason, from the statuses and the failure message."""
    if limit_hit(job):
        return LIMIT_REACHED
    text = f"{job.secondary_status or ''} {job.failure or ''}".lower()
    for word, marks in _CLASSES:
        if any(re.search(mark, text) for mark in marks):
            return word
    return "stopped" if job.status == "Stopped" else "reason unknown"


def kept(job: Job) -> str | None:
    """What a run that ended early left in S3: "an artifact", "checkpoints", or None."""
    if job.left_artifact:
        return "an artifact"
    return "checkpoints" if job.checkpointed else None


def is_trial(job: Job) -> bool:
    """Whether a tuning job started it: then its metric is a result even without a model."""
    return job.parent is not None and job.parent.kind is ParentKind.TUNING
