"""Parses a Describe* response and the job's tags into a Job.

Only what `kept.keep` keeps of the response is read, so that nothing else can be shown. Every field
but name and status may be absent (a job that failed early, an answer of 2018, a partial recording);
an impossible value raises Malformed with its key. Fields: botocore's sagemaker model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sageaudit.domain.job import fields, hints
from sageaudit.domain.job.describe_kinds import fields_of
from sageaudit.domain.job.failure_words import failure_of
from sageaudit.domain.job.job import PARENT_KEYS, Job, Parent
from sageaudit.domain.job.kept import DERIVED, keep, kept_tags, split_tags
from sageaudit.domain.job.kinds import kind_of
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.job.settings import settings_of
from sageaudit.errors import Malformed

_PIPELINE = re.compile(r":pipeline/([^/]+)/execution/")


def parse(
    answer: Mapping[str, Any],
    tags: Mapping[str, str],
    *,
    account: str | None = None,
    region: str | None = None,
    key: bytes | None = None,
) -> Job:
    """Parses one job. Account and region default to the ARN's; without `key` no fingerprint.

    Raises Malformed when the answer is of no known kind, or a field has an impossible value.
    """
    kind = kind_of(answer)
    if kind is None:
        raise Malformed("describe", "has no ...JobName with a ...JobStatus of a known kind")
    answer = keep(answer, key)
    derived, row = fields.section(answer, DERIVED), kind.row
    name, status = fields.text(answer, row.name_key), fields.text(answer, row.status_key)
    if name is None or status is None:
        raise Malformed(row.status_key if name else row.name_key, "is empty")
    arn = fields.text(answer, row.arn_key)
    ref = JobRef.from_arn(arn) if arn else None
    failure = fields.text(answer, "FailureReason") or fields.text(answer, "ExitMessage")
    shown_tags, tags_set = split_tags(kept_tags(tags))
    return Job(
        kind=kind,
        name=name,
        arn=arn,
        account=account or (ref.account if ref else None),
        region=region or (ref.region if ref else None),
        status=status,
        failure=failure_of(failure),
        created_at=fields.time(answer, "CreationTime"),
        last_modified_at=fields.time(answer, "LastModifiedTime"),
        parent=_parent(answer, row.arn_key),
        pipeline_step=_pipeline_step(shown_tags),
        tags=shown_tags,
        tags_set=tags_set,
        settings=settings_of(kind, answer),
        hints=hints.restored(fields.section(derived, "Hints")),
        fingerprint=fields.text(derived, "Fingerprint") if key else None,
        **fields_of(kind, answer),
    )


def latest_time(answer: Mapping[str, Any]) -> datetime | None:
    """The latest time in an answer, its lists (transitions, metrics) included: until then the job
    was seen. Raises Malformed.
    """
    lists = [value for value in answer.values() if isinstance(value, list)]
    rows = [answer, *(row for rows in lists for row in rows if isinstance(row, Mapping))]
    keys = ((row, key) for row in rows for key in row if key.endswith(("Time", "Timestamp")))
    return max(filter(None, (fields.time(row, key) for row, key in keys)), default=None)


def _parent(answer: Mapping[str, Any], own_key: str) -> Parent | None:
    """What started the job; `own_key` names the job itself."""
    for key, rollup in PARENT_KEYS.items():
        if key != own_key and (arn := fields.text(answer, key)):
            return Parent(rollup, arn)
    return None


def _pipeline_step(tags: Mapping[str, str]) -> str | None:
    """Pipeline and step, from the tags that SageMaker Pipelines puts on the jobs it starts."""
    step = tags.get("sagemaker:pipeline-step-name")
    execution = _PIPELINE.search(tags.get("sagemaker:pipeline-execution-arn", ""))
    return f"pipeline/{execution[1]}/{step}" if execution and step else None
