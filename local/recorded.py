"""Recorded jobs with their data in AWS: the event of their end, series and Describe answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from local import ACCOUNT, REGION
from sageaudit.adapters.files.recording import RecordedSet, Recording, read
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind, kind_from_answer
from sageaudit.domain.usage.measurements import RawSeries

RECORDINGS = Path(__file__).parent / "recordings"


class RecordedJob(Struct, frozen=True):
    """One finished job with its Describe answer, tags and series."""

    kind: JobKind
    describe: Mapping[str, Any]
    tags: Mapping[str, str]
    series: tuple[RawSeries, ...]

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self.describe[self.kind.spec.name_key])

    @property
    def arn(self) -> str:
        """The job's ARN."""
        return str(self.describe[self.kind.spec.arn_key])

    @property
    def ended_at(self) -> datetime:
        """The time of the job's last state change, which is the event's time."""
        for key in (self.kind.spec.end_key, "LastModifiedTime", "CreationTime"):
            if moment := fields.time(self.describe, key):
                return moment
        raise ValueError(f"{self.name} has no time at all")

    @property
    def key(self) -> JobKey:
        """The job's key in the history."""
        for key in ("CreationTime", self.kind.spec.start_key):
            if moment := fields.time(self.describe, key):
                return JobKey(self.arn, moment)
        return JobKey(self.arn, self.ended_at)

    def describe_at(self, now: datetime) -> Mapping[str, Any]:
        """Returns Describe's answer at `now`; before the job's end, it is about a running job."""
        spec = self.kind.spec
        if now >= self.ended_at:
            return self.describe
        end_keys = (spec.end_key, "TrainingTimeInSeconds", "BillableTimeInSeconds")
        running_answer = {key: value for key, value in self.describe.items() if key not in end_keys}
        running_answer |= {spec.status_key: "InProgress", "LastModifiedTime": now.isoformat()}
        started_phases = [
            {
                key: value
                for key, value in phase.items()
                if key != "EndTime" or _is_past(phase, key, now)
            }
            for phase in self.describe.get("SecondaryStatusTransitions", ())
            if _is_past(phase, "StartTime", now)
        ]
        if started_phases:
            running_answer["SecondaryStatusTransitions"] = started_phases
            running_answer["SecondaryStatus"] = started_phases[-1]["Status"]
        return running_answer

    def event(self, source: str = "aws.sagemaker") -> dict[str, Any]:
        """Returns the event of the job's end for PutEvents, with times in epoch milliseconds."""
        created_at = fields.time(self.describe, "CreationTime")
        prefix = self.kind.spec.prefix
        detail = {
            f"{prefix}JobName": self.name,
            f"{prefix}JobArn": self.arn,
            f"{prefix}JobStatus": self.describe[f"{prefix}JobStatus"],
            "CreationTime": int(created_at.timestamp() * 1000) if created_at else None,
            "Tags": dict(self.tags),
        }
        return {
            "Source": source,
            "DetailType": self.kind.spec.detail_type,
            "Detail": json.dumps(detail),
            "Resources": [self.arn],
            "Time": self.ended_at,
        }


def _is_past(row: Mapping[str, Any], key: str, now: datetime) -> bool:
    moment = fields.time(row, key)
    return moment is not None and moment <= now


def recorded_jobs(folder: Path = RECORDINGS) -> list[RecordedJob]:
    """Returns every job of a folder's recordings, in the order of their ends."""
    jobs = [job for path in sorted(folder.glob("*.json")) for job in jobs_in_file(path)]
    return sorted(jobs, key=lambda job: (job.ended_at, job.kind.spec.rollup is not None))


def jobs_in_file(path: Path) -> Iterator[RecordedJob]:
    """Yields the jobs of one recording: its only job, or the children of a roll-up."""
    recorded = read(path)
    for recording in recorded.children if isinstance(recorded, RecordedSet) else (recorded,):
        yield _job(recording, path)


def _job(recording: Recording, path: Path) -> RecordedJob:
    kind = kind_from_answer(recording.describe)
    if kind is None or (recording.account, recording.region) != (ACCOUNT, REGION):
        raise ValueError(f"{path.name} has no job of account {ACCOUNT} in {REGION}")
    return RecordedJob(kind, recording.describe, recording.tags, recording.series)
