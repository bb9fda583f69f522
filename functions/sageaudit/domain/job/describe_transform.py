"""The fields of a DescribeTransformJob answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields, job_outputs
from sageaudit.domain.job.cluster import instances
from sageaudit.domain.job.data_version import data_pinned
from sageaudit.domain.job.phases import whole_run


def fields_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Job that a transform job's answer gives. Raises Malformed."""
    resources = fields.section(answer, "TransformResources")
    start, end = fields.time(answer, "TransformStartTime"), fields.time(answer, "TransformEndTime")
    data = fields.section(fields.section(answer, "TransformInput"), "DataSource")
    address = fields.text(fields.section(data, "S3DataSource"), "S3Uri")
    selected, unknown = instances(resources)
    return {
        "started_at": start,
        "ended_at": end,
        "phases": whole_run("Transform", fields.time(answer, "CreationTime"), start, end),
        "groups": selected,
        "groups_unknown": unknown,
        "entry_point": fields.text(answer, "ModelName"),
        "data_pinned": data_pinned([("input", address)]),
        "batch": job_outputs.batch(answer),
    }
