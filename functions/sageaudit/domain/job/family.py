"""The family of a run (runs of the same workload), and a keyed fingerprint of one run.

A family does not depend on instance type and count, so it stays the same after a fix. A fingerprint
covers what makes two runs the same: image, inputs, script and settings.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.addresses import CODE_INPUTS, repository, s3_inputs
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef

FAMILY_VERSION = 3
"""The version of the family names, stored with every family. Increase it if `family` returns
another name for any job."""

_SDK_PREFIX = "sagemaker_"
"""The prefix of hyperparameters that the SageMaker SDK adds, such as the job's name."""
_TIMESTAMP = re.compile(
    r"-?\d{4}-?\d{2}-?\d{2}(?:[-T]?\d{2}-?\d{2}(?:-?\d{2})?(?:-\d{1,6})?)?(?=-|\Z)"
)
_TUNING_CHILD = re.compile(r"-\d{6}-\d{4}(?:-\d{3}-[0-9a-f]{8})?\Z")
_PIPELINE_JOB = re.compile(r"\Apipelines-[a-z0-9]{12}-(.+?)(?:-[A-Za-z0-9]{10})?\Z")
_TOKEN_LENGTH = 12
_CONTENT_HASH = re.compile(r"/[0-9a-f]{32,64}(?=/|\Z)")
"""The folder of code that the SDK uploads in a pipeline. Outside pipelines, the folder has the
job's name."""
_SUFFIX = re.compile(r"-(?:\d+|(?=[a-f]*\d)[0-9a-f]{4,}|[0-9a-f]{8,})\Z")
_SCRIPT = re.compile(
    r"(?:[\w./:-]*/)?([\w.+-]+\.(?:py|pyc|pyz|ipynb|sh|bash|zsh|R|r|Rmd|jl|pl|rb|js|mjs|ts|lua|m|sql"
    r"|scala|jar|php|go|exe|bat|ps1))\Z",
    re.ASCII,
)
"""A path to a script. Any other word may be a secret."""
_MAX_NAME_LENGTH = 255
"""The most characters of a file name."""


def family(job: Job, tag: str | None = None) -> str:
    """Returns the name of a job's family.

    The name is the first of these that exists: the ARN of the job's roll-up, the value of `tag`,
    the pipeline step, or kind, image, script and stem of the job's name. A tag's value that is an
    ARN is ignored, so that no tag adds a job to a roll-up's sum.
    """
    if job.kind.spec.rollup and job.arn:
        return job.arn
    if job.parent is not None and job.parent.rollup is not None:
        return job.parent.arn
    tag_value = job.tags.get(tag) if tag else None
    if tag_value and not tag_value.startswith("arn:"):
        return tag_value
    if job.pipeline_step is not None:
        return job.pipeline_step
    return "/".join(
        (job.kind.value, repository(job.image) or "-", job.entry_point or "-", stem(job.name))
    )


def shared_name(name: str) -> str:
    """Returns the name under which families are compared.

    Each roll-up is a family of its own, named by its ARN. Such a name becomes `<kind>/<stem>`, so
    that tuning jobs with similar names can be compared. Other names are returned unchanged.
    """
    ref = JobRef.from_arn(name)
    return name if ref is None else f"{ref.kind.value}/{stem(ref.name)}"


def stem(name: str) -> str:
    """Returns a job's name without timestamps and hashes; unchanged if nothing would be left."""
    shortened = _PIPELINE_JOB.sub(r"\1", name)
    shortened = _TUNING_CHILD.sub("", shortened)
    shortened = _TIMESTAMP.sub("", shortened)
    while True:
        parts = shortened.split("-")
        cut = "-".join(part for part in parts if not _is_random(part))
        cut = _SUFFIX.sub("", cut)
        if cut == shortened or not cut.strip("-"):
            break
        shortened = cut
    return shortened.strip("-") or name


def _is_random(part: str) -> bool:
    return (
        len(part) >= _TOKEN_LENGTH
        and any(c.isdigit() for c in part)
        and any(c.islower() for c in part)
        and any(c.isupper() for c in part)
    )


def fingerprint_settings(kind: JobKind, answer: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the values that are equal if two runs are the same; None for roll-ups.

    `answer` is AWS's own Describe answer, because the stored form lacks some of these values.
    """
    algorithm = fields.section(answer, "AlgorithmSpecification")
    app = fields.section(answer, "AppSpecification")
    parts: dict[JobKind, dict[str, Any]] = {
        JobKind.TRAINING: {
            "image": algorithm.get("TrainingImage") or algorithm.get("AlgorithmName"),
            "entry": entry_point(answer),
            "code": sorted(filter(_CONTENT_HASH.search, _code_addresses(answer))),
            "data": [
                item
                for item in fields.items(answer, "InputDataConfig")
                if item.get("ChannelName") not in CODE_INPUTS  # its address differs in each run
            ],
            "hyperparameters": {
                name: value
                for name, value in fields.section(answer, "HyperParameters").items()
                if not name.startswith(_SDK_PREFIX)
            },
        },
        JobKind.PROCESSING: {
            "image": app.get("ImageUri"),
            "entry": app.get("ContainerEntrypoint"),
            "arguments": app.get("ContainerArguments"),
            "inputs": answer.get("ProcessingInputs"),
        },
        JobKind.TRANSFORM: {
            "model": answer.get("ModelName"),
            "input": answer.get("TransformInput"),
            "strategy": answer.get("BatchStrategy"),
        },
    }
    if kind not in parts:
        return None
    return {"kind": kind.value, "environment": answer.get("Environment"), **parts[kind]}


def _code_addresses(answer: Mapping[str, Any]) -> Iterator[str]:
    submitted = fields.text(fields.section(answer, "HyperParameters"), "sagemaker_submit_directory")
    yield (submitted or "").strip('"')
    for channel in s3_inputs(JobKind.TRAINING, answer):
        if channel.name in CODE_INPUTS:
            yield channel.address or ""


def fingerprint(key: bytes, parts: Mapping[str, Any]) -> str:
    """Returns the HMAC-SHA-256 of `parts`, from which they cannot be recovered."""
    canonical = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hmac.new(key, canonical.encode(), hashlib.sha256).hexdigest()


def entry_point(answer: Mapping[str, Any]) -> str | None:
    """Returns the script's file name, or None.

    It comes from the SDK's hyperparameter `sagemaker_program`, or is the first script in a
    processing command.
    """
    program = fields.section(answer, "HyperParameters").get("sagemaker_program")
    if isinstance(program, str):
        return script(program.strip('"'))
    command = fields.section(answer, "AppSpecification").get("ContainerEntrypoint")
    words = command if isinstance(command, list) else ()
    return next((name for word in words if (name := script(str(word)))), None)


def script(word: str) -> str | None:
    """Returns the script's file name in a path; None if the suffix is not a script's."""
    match = _SCRIPT.match(word)
    return match[1] if match and len(match[1]) <= _MAX_NAME_LENGTH else None
