"""Which jobs a scan looks at, and how SageMaker is asked for them."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from sageaudit.adapters.aws.sagemaker import SageMakerJobLists
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import ListedJob, Period, newest_rows, select_rows, sort_for_audit
from sageaudit.errors import AccessDenied, Unavailable
from sageaudit.workflows.scan.accounts import list_jobs
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.quota_scan import no_children
from tests.fakes.virtual_time import VirtualTime

PERIOD = Period(date(2026, 11, 1), date(2026, 11, 22))
NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)


def row(
    name: str,
    ended_at: datetime | None = NOON,
    *,
    kind: JobKind = JobKind.TRAINING,
    status: str = "Completed",
    created_at: datetime = NOON - timedelta(days=1),
) -> ListedJob:
    """A job that ended at noon."""
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.spec.arn_word}/{name}"
    return ListedJob(
        JobRef(kind, name, arn, ACCOUNT, REGION), status, created_at, ended_at, ended_at or NOON
    )


def names(rows: list[ListedJob]) -> list[str]:
    """In order."""
    return [row.ref.name for row in rows]


def test_both_days_of_a_period_belong_to_it() -> None:
    """From midnight to midnight in UTC, by the end of the job."""
    ends = {
        "before": datetime(2026, 10, 31, 23, 59, 59, tzinfo=UTC),
        "first": datetime(2026, 11, 1, tzinfo=UTC),
        "last": datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC),
        "after": datetime(2026, 11, 23, tzinfo=UTC),
    }
    rows = [row(name, end) for name, end in ends.items()]
    assert names(select_rows(rows, PERIOD, [JobKind.TRAINING])) == ["first", "last"]


def test_a_job_that_was_created_a_month_before_can_end_in_the_period() -> None:
    """Training jobs run up to 28 days, and wait up to 2 before."""
    assert PERIOD.created_after == datetime(2026, 10, 2, tzinfo=UTC)
    assert PERIOD.created_before == datetime(2026, 11, 23, tzinfo=UTC)


def test_a_tuning_job_comes_with_its_training_jobs_of_any_day() -> None:
    """By their names; others of that day stay out."""
    long_ago = NOON - timedelta(days=20)
    rows = [
        row("sweep", kind=JobKind.TUNING, created_at=long_ago),
        row("sweep-001-0a1b2c3d", long_ago, created_at=long_ago),
        row("sweep-002-0a1b2c3d", NOON, created_at=long_ago),
        row("sweep-of-another-001-0a1b2c3d", long_ago, created_at=long_ago),
        row("sweep-003-0a1b2c3d", long_ago, created_at=long_ago - timedelta(days=9)),
    ]
    expected = ["sweep", "sweep-001-0a1b2c3d", "sweep-002-0a1b2c3d"]
    assert names(select_rows(rows, PERIOD, [JobKind.TUNING])) == expected
    assert names(select_rows(rows, PERIOD, list(JobKind))) == expected


def test_tuning_jobs_are_audited_last_and_the_others_by_their_ends() -> None:
    """So that each finds what it is compared with, or made of."""
    rows = [
        row("sweep", NOON - timedelta(days=3), kind=JobKind.TUNING),
        row("late", NOON),
        row("early", NOON - timedelta(days=2)),
    ]
    assert names(sort_for_audit(rows)) == ["early", "late", "sweep"]
    assert names(newest_rows(rows, 2)) == ["early", "late"]


def summary(name: str) -> dict[str, Any]:
    """A row of ListTrainingJobs."""
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{name}",
        "CreationTime": NOON,
        "TrainingEndTime": NOON + timedelta(hours=1),
        "LastModifiedTime": NOON + timedelta(hours=1),
        "TrainingJobStatus": "Completed",
    }


@pytest.fixture
def stubbed() -> Iterator[tuple[Any, Stubber]]:
    """SageMaker that checks each request against the service's model."""
    client = boto3.client("sagemaker", region_name=REGION)
    with Stubber(client) as stubber:
        yield client, stubber


ASKED = {
    "CreationTimeAfter": PERIOD.created_after,
    "CreationTimeBefore": PERIOD.created_before,
    "SortBy": "CreationTime",
    "SortOrder": "Descending",
    "MaxResults": 100,
}


def test_pages_are_followed_also_through_an_empty_one(stubbed: tuple[Any, Stubber]) -> None:
    """SageMaker filters after it has cut a page."""
    client, stubber = stubbed
    for token, page in ((None, ["a"]), ("1", []), ("2", ["b"])):
        request = ASKED | ({"NextToken": token} if token else {})
        following = {"NextToken": str(int(token or 0) + 1)} if token != "2" else {}
        answer = {"TrainingJobSummaries": [summary(name) for name in page], **following}
        stubber.add_response("list_training_jobs", answer, request)
    lists = SageMakerJobLists(lambda _: client)
    rows = list(lists.list_jobs(JobKind.TRAINING, REGION, PERIOD))
    assert names(rows) == ["a", "b"]
    assert rows[0].modified_at == rows[0].ended_at == NOON + timedelta(hours=1)
    stubber.assert_no_pending_responses()


def test_a_token_that_repeats_ends_no_list(stubbed: tuple[Any, Stubber]) -> None:
    """Nobody asks for ever, and nobody takes the list for whole."""
    client, stubber = stubbed
    page = {"TrainingJobSummaries": [summary("a")], "NextToken": "1"}
    stubber.add_response("list_training_jobs", page, ASKED)
    stubber.add_response("list_training_jobs", page, ASKED | {"NextToken": "1"})
    rows = SageMakerJobLists(lambda _: client).list_jobs(JobKind.TRAINING, REGION, PERIOD)
    with pytest.raises(Unavailable, match="returned no last page"):
        list(rows)


@pytest.mark.parametrize("kind", list(JobKind))
def test_every_kind_is_listed_by_a_request_that_aws_takes(
    stubbed: tuple[Any, Stubber], kind: JobKind
) -> None:
    """Names of methods and fields are those of botocore's model."""
    client, stubber = stubbed
    stubber.add_response(kind.spec.list_method, {kind.spec.list_key: []}, {**ASKED})
    assert list(SageMakerJobLists(lambda _: client).list_jobs(kind, REGION, PERIOD)) == []


def test_a_refused_kind_in_one_region_leaves_the_others() -> None:
    """It is returned beside the jobs."""
    denied = AccessDenied("sagemaker:ListProcessingJobs", "denied")

    class Lists:
        def list_jobs(self, kind: JobKind, region: str, period: Period) -> Iterator[ListedJob]:
            if (kind, region) == (JobKind.PROCESSING, "eu-west-1"):
                raise denied
            yield row(f"{kind.value}-{region}", kind=kind)

    kinds = [JobKind.TRAINING, JobKind.PROCESSING]
    listing = list_jobs(
        Lists(), no_children, ["us-east-1", "eu-west-1"], kinds, PERIOD, VirtualTime()
    )
    assert sorted(job.ref.name for job in listing.jobs) == [
        "processing-us-east-1",
        "training-eu-west-1",
        "training-us-east-1",
    ]
    [refusal] = listing.refusals
    assert (refusal.region, refusal.kind, refusal.error) == (
        "eu-west-1",
        JobKind.PROCESSING,
        denied,
    )
