"""Describe's answer is used only where it is about the job, and the run, that the event names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.event import described_run, same_run
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef, partition_of
from sageaudit.errors import Malformed, RejectedEvent
from tests.fakes.jobs import ACCOUNT, REGION, training_answer

CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
ACCOUNTS, REGIONS = (ACCOUNT, "222233334444"), (REGION, "eu-west-1", "cn-north-1")
NAMES = ("train-vision", "train-vision-2")


def ref_of(kind: JobKind, name: str, account: str, region: str) -> JobRef:
    """A job."""
    arn = f"arn:{partition_of(region)}:sagemaker:{region}:{account}:{kind.row.arn_word}/{name}"
    return JobRef(kind, name, arn, account, region)


REF = ref_of(JobKind.TRAINING, NAMES[0], ACCOUNT, REGION)
REFS = st.builds(
    ref_of,
    st.sampled_from(JobKind),
    st.sampled_from(NAMES),
    st.sampled_from(ACCOUNTS),
    st.sampled_from(REGIONS),
)


def said(of: JobRef, **changes: Any) -> dict[str, Any]:
    """Describe's answer about a job."""
    prefix = of.kind.row.prefix
    return {
        f"{prefix}JobName": of.name,
        f"{prefix}JobArn": of.arn,
        f"{prefix}JobStatus": "Completed",
        "CreationTime": CREATED,
        "LastModifiedTime": CREATED + timedelta(hours=1),
        **changes,
    }


def test_an_answer_about_the_job_names_the_run() -> None:
    """Its own ARN, when it was created and last changed."""
    run = described_run(REF, said(REF))
    assert (run.arn, run.created_at) == (REF.arn, CREATED)
    assert run.modified_at == CREATED + timedelta(hours=1)


def test_names_are_compared_without_case() -> None:
    """Real ARNs have them in lower case, and Describe as the user wrote them."""
    run = described_run(replace(REF, name="Train-Vision"), training_answer())
    assert run.arn == REF.arn


@given(asked=REFS, answered=REFS)
def test_an_answer_about_another_job_is_refused(asked: JobRef, answered: JobRef) -> None:
    """Whichever of kind, name, account and region it differs in."""
    if asked == answered:
        assert described_run(asked, said(answered)).arn == asked.arn
        return
    with pytest.raises(RejectedEvent) as caught:
        described_run(asked, said(answered))
    assert caught.value.code == "answer_disagrees"
    assert str(caught.value)


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::111122223333:role/x",
        "nonsense",
        "arn:aws-cn:sagemaker:us-east-1:111122223333:training-job/train-vision",
        "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-vision-2",
    ],
)
def test_an_arn_of_something_else_is_refused(arn: str) -> None:
    """The name beside it may be right."""
    with pytest.raises(RejectedEvent):
        described_run(REF, said(REF, TrainingJobArn=arn))


def test_times_that_cannot_be_read_are_no_run() -> None:
    """The job is then unauditable."""
    with pytest.raises(Malformed):
        described_run(REF, said(REF, CreationTime="yesterday"))


@pytest.mark.parametrize(
    ("apart_s", "same"), [(0, True), (0.4, True), (-0.999, True), (1, False), (-3600, False)]
)
def test_creation_times_name_one_run_to_the_second(apart_s: float, *, same: bool) -> None:
    """Events have milliseconds, lists seconds."""
    assert same_run(CREATED, CREATED + timedelta(seconds=apart_s)) is same


def test_an_unknown_creation_time_names_what_is_described() -> None:
    """A replay that a person wrote may have none."""
    assert same_run(None, CREATED)
    assert same_run(CREATED, None)
