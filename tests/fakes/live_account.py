"""An AWS account in moto for the command line: its jobs, calls and refusals."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws

from local.recorded import RecordedJob, jobs_in_file
from local.sagemaker import RecordedSageMaker, put_series
from tests.fakes.automl import automl_job, candidates

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
SET = DATA / "tuning-set-bayesian-221019-1807.json"
TUNING = DATA / "tuning-013-completed.json"


class LiveAccount:
    """An AWS account. `calls`: calls so far, such as `sagemaker:ListTags`."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.calls: list[str] = []
        session.events.register("before-parameter-build.*.*", self._note)

    def _note(self, model: Any, **_: Any) -> None:
        self.calls.append(f"{model.service_model.service_name}:{model.name}")

    @cached_property
    def jobs(self) -> RecordedSageMaker:
        """The fake SageMaker that answers for recorded jobs."""
        return RecordedSageMaker(self.session)

    def add(self, path: Path, *, series: bool = True, **changes: Any) -> RecordedJob:
        """Adds one recorded job of owner `ana-belen`, with changes to its answer.

        Without `series`, CloudWatch has no points of it.
        """
        [job] = jobs_in_file(path)
        job = RecordedJob(job.kind, {**job.describe, **changes}, {"owner": "ana-belen"}, job.series)
        self.jobs.add(job)
        if series:
            put_series(self.session, job)
        return job

    def refuse(self, operation: str, code: str, message: str = "refused", after: int = 0) -> None:
        """Lets one operation fail after `after` successful answers."""
        body = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {}}
        remaining = [after]

        def answer(**_: Any) -> Any:
            remaining[0] -= 1
            return None if remaining[0] >= 0 else (AWSResponse("https://aws", 400, {}, None), body)

        self.session.events.register_first(f"before-call.{operation}", answer)

    def tuning(self) -> str:
        """Adds a tuning job with five training jobs; returns its ARN."""
        children = list(jobs_in_file(SET))
        for child in children:
            self.jobs.add(child)
            put_series(self.session, child)
        parent = str(children[0].describe["TuningJobArn"])
        self.add(
            TUNING,
            HyperParameterTuningJobName=parent.rpartition("/")[2],
            HyperParameterTuningJobArn=parent,
            CreationTime=min(child.describe["TrainingStartTime"] for child in children),
            HyperParameterTuningEndTime=max(
                child.describe["TrainingEndTime"] for child in children
            ),
            TrainingJobStatusCounters={"Completed": len(children)},
        )
        rows = [{"TrainingJobName": child.name, "TrainingJobArn": child.arn} for child in children]
        page = {"TrainingJobSummaries": rows, "ResponseMetadata": {}}
        self.session.events.register_first(
            "before-call.sagemaker.ListTrainingJobsForHyperParameterTuningJob",
            lambda **_: (AWSResponse("https://aws", 200, {}, None), page),
        )
        return parent

    def automl(self) -> str:
        """Adds an AutoML job with the twelve jobs of its candidates; returns its ARN."""
        parent = automl_job()
        for job in (parent, *candidates()):
            self.jobs.add(job)
        return parent.arn


@contextmanager
def live_account(
    monkeypatch: pytest.MonkeyPatch, region: str = "us-east-1"
) -> Iterator[LiveAccount]:
    """Replaces `boto3.Session` by the session of an account in moto."""
    with mock_aws():
        session = boto3.Session(region_name=region)
        monkeypatch.setattr(boto3, "Session", lambda **_: session)
        yield LiveAccount(session)
