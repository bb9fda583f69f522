"""`sageaudit audit NAME|ARN` on a live account: read-only, and each refusal with its exit code."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from moto import mock_aws

from local.recorded import RecordedJob, of_file
from local.sagemaker import RecordedSageMaker, put_series
from tests.fakes.command_line import Run

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
FAILED = DATA / "training-020-c4-8xlarge-x2-failed.json"
PROCESSING = DATA / "processing-067-failed.json"
SET = DATA / "tuning-set-bayesian-221019-1807.json"
TUNING = DATA / "tuning-013-completed.json"


class Account:
    """A live account as far as the command asks it: what was called, and what it refuses."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.jobs = RecordedSageMaker(session)
        self.calls: list[str] = []
        session.events.register("before-parameter-build.*.*", self._note)

    def _note(self, model: Any, **_: Any) -> None:
        self.calls.append(f"{model.service_model.service_name}:{model.name}")

    def add(self, path: Path) -> RecordedJob:
        """Puts one recorded job into the account."""
        [job] = of_file(path)
        self.jobs.add(job)
        put_series(self.session, job)
        return job

    def refuse(self, operation: str, code: str) -> None:
        """Answers one operation with an error."""
        body = {"Error": {"Code": code, "Message": "refused"}, "ResponseMetadata": {}}
        answer = (AWSResponse("https://aws", 400, {}, None), body)
        self.session.events.register_first(f"before-call.{operation}", lambda **_: answer)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """One account, and the session that every `boto3.Session()` gives."""
    with mock_aws():
        session = boto3.Session(region_name="us-east-1")
        monkeypatch.setattr(boto3, "Session", lambda **_: session)
        yield Account(session)


def test_a_name_is_found_and_audited_as_the_lambda_would(account: Account, run: Run) -> None:
    """The document is the recording's own, from Describe*, ListTags and GetMetricData."""
    job = account.add(FAILED)
    done = run("audit", job.name, "--region", "us-east-1", "--output", "json")
    document = done.document()
    assert document["job"]["arn"] == job.arn
    assert document["lost_usd"] == document["bill"]["total_usd"] > 0


def test_nothing_is_written_anywhere(account: Account, run: Run) -> None:
    """Every call is one that reads."""
    job = account.add(FAILED)
    account.calls.clear()
    assert run("audit", job.arn).exit_code == 0
    assert {call.split(":")[0] for call in account.calls} <= {
        "sagemaker",
        "cloudwatch",
        "pricing",
        "s3",
    }
    reads = ("Describe", "List", "Get", "HeadBucket")
    assert all(call.split(":")[1].startswith(reads) for call in account.calls)


def test_a_name_under_two_kinds_is_refused_with_both_named(account: Account, run: Run) -> None:
    """Exit 2, and --kind settles it."""
    training, processing = account.add(FAILED), account.add(PROCESSING)
    twin = RecordedJob(
        processing.kind,
        {
            **processing.describe,
            "ProcessingJobName": training.name,
            "ProcessingJobArn": processing.arn.rpartition("/")[0] + "/" + training.name.lower(),
        },
        {},
        (),
    )
    account.jobs.add(twin)
    done = run("audit", training.name, "--region", "us-east-1")
    assert done.exit_code == 2
    assert "a training job and a processing job" in done.stderr
    again = run("audit", training.name, "--kind", "processing", "--output", "json")
    assert again.document()["job"]["kind"] == "processing"


@pytest.mark.parametrize(
    ("operation", "code", "exit_code", "said"),
    [
        ("sagemaker.DescribeTrainingJob", "AccessDeniedException", 4, "DescribeTrainingJob"),
        ("sagemaker.DescribeTrainingJob", "ExpiredTokenException", 4, "expired"),
        ("sagemaker.DescribeTrainingJob", "ThrottlingException", 5, "throttled"),
        ("sagemaker.DescribeTrainingJob", "InternalFailure", 5, "refused"),
    ],
)
def test_a_refusal_is_one_sentence_and_its_code(
    account: Account, run: Run, operation: str, code: str, exit_code: int, said: str
) -> None:
    """Credentials and permissions are 4, throttling and outages 5; never a stack trace."""
    job = account.add(FAILED)
    account.refuse(operation, code)
    done = run("audit", job.arn)
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", ["no-such-job", None])
@pytest.mark.usefixtures("account")
def test_a_job_that_is_not_there_exits_with_3(run: Run, target: str | None) -> None:
    """By name and by ARN alike."""
    arn = "arn:aws:sagemaker:us-east-1:111122223333:training-job/no-such-job"
    done = run("audit", target or arn, "--region", "us-east-1")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no-such-job" in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("TrainingJobStatus", "Deleting", "its status is Deleting"),
        ("ResourceConfig", {"InstanceCount": -1}, "its Describe answer cannot be read"),
    ],
)
def test_a_job_that_is_there_and_cannot_be_audited_exits_with_1(
    account: Account, run: Run, key: str, value: object, said: str
) -> None:
    """It is not gone: the sentence says what is the matter."""
    [job] = of_file(FAILED)
    account.jobs.add(RecordedJob(job.kind, {**job.describe, key: value}, {}, ()))
    done = run("audit", job.arn)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert job.arn in done.stderr


def test_denied_tags_and_metrics_are_named_and_the_audit_goes_on(
    account: Account, run: Run
) -> None:
    """What could not be read stands in the document; the bill needs neither."""
    [recorded] = of_file(DATA / "profiled-053-g4dn-xlarge.json")
    begun = datetime.now(UTC) - timedelta(days=1)
    times = {
        "CreationTime": begun.isoformat(),
        "TrainingStartTime": begun.isoformat(),
        "TrainingEndTime": (begun + timedelta(seconds=1870)).isoformat(),
        "SecondaryStatusTransitions": [
            {"Status": "Training", "StartTime": begun.isoformat(), "StatusMessage": ""}
        ],
    }
    job = RecordedJob(recorded.kind, {**recorded.describe, **times}, {}, ())
    account.jobs.add(job)
    account.refuse("sagemaker.ListTags", "AccessDeniedException")
    account.refuse("cloudwatch.GetMetricData", "AccessDenied")
    done = run("audit", job.arn, "--output", "json")
    document = done.document()
    missing = " ".join(document["audit"]["coverage"]["missing"])
    assert "sagemaker:ListTags" in missing
    assert "cloudwatch:GetMetricData" in missing
    assert document["bill"]["complete"] is True
    assert "gpu-underused" in {x["rule"] for x in document["unknown"]}
    assert (document["judged"], document["avoidable_usd"]) == ("no", None)
    [sentence] = document["not_judged"]
    assert sentence.startswith("The use of its machines was not judged: ")
    assert sentence.endswith(" Allow cloudwatch:GetMetricData.")


def test_a_tuning_job_comes_with_its_children(account: Account, run: Run) -> None:
    """All five are audited and added up, although nothing of them was in any history."""
    children = list(of_file(SET))
    for child in children:
        account.jobs.add(child)
    own = account.add(TUNING)
    parent = str(children[0].describe["TuningJobArn"])
    name = parent.rpartition("/")[2]
    account.jobs.add(
        RecordedJob(
            own.kind,
            {
                **own.describe,
                "HyperParameterTuningJobName": name,
                "HyperParameterTuningJobArn": parent,
                "CreationTime": min(one.describe["TrainingStartTime"] for one in children),
                "HyperParameterTuningEndTime": max(
                    one.describe["TrainingEndTime"] for one in children
                ),
                "TrainingJobStatusCounters": {"Completed": 5},
            },
            {},
            (),
        )
    )
    summaries = [{"TrainingJobName": child.name, "TrainingJobArn": child.arn} for child in children]
    page = {"TrainingJobSummaries": summaries, "ResponseMetadata": {}}
    account.session.events.register_first(
        "before-call.sagemaker.ListTrainingJobsForHyperParameterTuningJob",
        lambda **_: (AWSResponse("https://aws", 200, {}, None), page),
    )
    done = run("audit", parent, "--output", "json")
    document = done.document()
    assert document["rollup"] is True
    assert len(document["children"]) == 5
    total = sum(child["bill"]["total_usd"] for child in document["children"])
    assert document["bill"]["total_usd"] == pytest.approx(total, abs=1e-6)


def test_the_command_names_itself_and_its_options(run: Run) -> None:
    """Help shows an example of each form."""
    done = run("audit", "--help")
    assert done.exit_code == 0
    for part in ("--recording", "--fail-on", "arn:aws:sagemaker", "Reads only"):
        assert part in done.stdout
