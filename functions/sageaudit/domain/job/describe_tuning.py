"""The fields of a DescribeHyperParameterTuningJob answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sageaudit.domain.job import fields, job_outputs


def fields_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of Job that a tuning job's answer gives. Raises Malformed."""
    return {
        "started_at": fields.time(answer, "CreationTime"),
        "ended_at": fields.time(answer, "HyperParameterTuningEndTime"),
        "tuning": job_outputs.tuning(answer),
    }
