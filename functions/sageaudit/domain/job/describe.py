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

from sageaudit.domain.job import fields
from sageaudit.domain.job.describe import keep, kept_tags, split_tags
from sageaudit.domain.job.fields import DERIVED
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.job_fields import fields_of
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
    given, row = fields_of(kind, answer), kind.row
    for field, of_answer in (("name", row.name_key), ("status", row.status_key)):
        if given[field] is None:
            raise Malformed(of_answer, "is empty")
    ref = JobRef.from_arn(given["arn"]) if given["arn"] else None
    fingerprint = fields.text(fields.section(answer, DERIVED), "Fingerprint")
    shown_tags, tags_set = split_tags(kept_tags(tags))
    return Job(
        kind=kind,
        account=account or (ref.account if ref else None),
        region=region or (ref.region if ref else None),
        pipeline_step=_pipeline_step(shown_tags),
        tags=shown_tags,
        tags_set=tags_set,
        settings=settings_of(kind, answer),
        fingerprint=fingerprint if key else None,
        **given,
    )


def latest_time(answer: Mapping[str, Any]) -> datetime | None:
    """The latest time in an answer, its lists (transitions, metrics) included: until then the job
    was seen. Raises Malformed.
    """
    lists = [value for value in answer.values() if isinstance(value, list)]
    rows = [answer, *(row for rows in lists for row in rows if isinstance(row, Mapping))]
    keys = ((row, key) for row in rows for key in row if key.endswith(("Time", "Timestamp")))
    return max(filter(None, (fields.time(row, key) for row, key in keys)), default=None)


def _pipeline_step(tags: Mapping[str, str]) -> str | None:
    """Pipeline and step, from the tags that SageMaker Pipelines puts on the jobs it starts."""
    step = tags.get("sagemaker:pipeline-step-name")
    execution = _PIPELINE.search(tags.get("sagemaker:pipeline-execution-arn", ""))
    return f"pipeline/{execution[1]}/{step}" if execution and step else None
