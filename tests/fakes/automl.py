"""An AutoML job and its child jobs, built from recorded jobs at shifted times."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from local import ACCOUNT, REGION
from local.recorded import RECORDINGS, RecordedJob, jobs_in_file
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind
from sageaudit.structs import replace

START = datetime(2026, 5, 12, 8, tzinfo=UTC)
NAME = "churn-260512"
PARENT = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:automl-job/{NAME}"
SOURCES = ("processing-067-failed", "training-020-c4-8xlarge-x2-failed", "transform-136-completed")
"""The recordings of a candidate's steps: features, training, and the transform of its data."""


def automl_job(
    status: str = "Completed", hours: int = 6, *, version: int = 2, **changes: Any
) -> RecordedJob:
    """Returns the AutoML job as DescribeAutoMLJobV2 (or, for `version` 1, V1) answers.

    Both versions have name, ARN, status and times under the same keys.
    """
    end = START + timedelta(hours=hours)
    form: dict[int, dict[str, Any]] = {
        1: {"AutoMLJobConfig": {}, "InputDataConfig": []},
        2: {"AutoMLProblemTypeConfigName": "Tabular", "AutoMLJobInputDataConfig": []},
    }
    answer = {
        "AutoMLJobName": NAME,
        "AutoMLJobArn": PARENT,
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/execution",
        "OutputDataConfig": {"S3OutputPath": "s3://bucket-57f1ce1b/churn"},
        "CreationTime": START.isoformat(),
        "EndTime": end.isoformat(),
        "LastModifiedTime": end.isoformat(),
        "AutoMLJobStatus": status,
        "AutoMLJobSecondaryStatus": status,
        **form[version],
        **changes,
    }
    return RecordedJob(JobKind.AUTOML, answer, {"owner": "mara"}, ())


def candidates(number: int = 4) -> list[RecordedJob]:
    """Returns a processing, a training and a transform job for each of `number` candidates."""
    return [
        _launched(source, f"{NAME[:10]}-dpp{at}-{place}", START + timedelta(minutes=70 * at + 20))
        for at in range(number)
        for place, source in enumerate(SOURCES)
    ]


def _launched(source: str, name: str, created_at: datetime) -> RecordedJob:
    """Returns a recorded job under another name, shifted so that it was created at `created_at`."""
    [job] = jobs_in_file(RECORDINGS / f"{source}.json")
    row, created_before = job.kind.spec, fields.time(job.describe, "CreationTime")
    assert created_before is not None
    answer = {
        key: _moved(value, key, created_at - created_before) for key, value in job.describe.items()
    }
    answer |= {
        row.name_key: name,
        row.arn_key: f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{row.arn_word}/{name}",
        "AutoMLJobArn": PARENT,
    }
    return replace(job, describe=answer, tags={"owner": "mara"}, series=())


def _moved(value: Any, key: str, by: timedelta) -> Any:
    if isinstance(value, list):
        return [
            {inner: _moved(part, inner, by) for inner, part in row.items()}
            if isinstance(row, Mapping)
            else row
            for row in value
        ]
    moment = fields.parsed_time(value, key) if key.endswith("Time") else None
    return value if moment is None else (moment + by).isoformat()
