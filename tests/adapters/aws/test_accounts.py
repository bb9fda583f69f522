"""Clients of other accounts: a role that is of another account reads nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from sageaudit.adapters.aws.accounts import AccountClients
from sageaudit.adapters.aws.sagemaker import SageMakerJobs
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import AccessDenied, Unavailable

OWN, OTHER, THIRD = "111122223333", "222233334444", "555566667777"
NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
JOB = JobRef(
    JobKind.TRAINING,
    "train-bert",
    f"arn:aws:sagemaker:us-east-1:{OTHER}:training-job/train-bert",
    OTHER,
    "us-east-1",
)


class Sts:
    """STS that assumes a role of this account, whichever it is asked for."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, account: str | None) -> None:
        self.account = account

    def assume_role(self, *, RoleArn: str, ExternalId: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        self.asked.append((RoleArn, ExternalId))
        answer: dict[str, Any] = {
            "Credentials": {
                "AccessKeyId": "id",
                "SecretAccessKey": "key",
                "SessionToken": "token",
                "Expiration": NOON + timedelta(hours=1),
            }
        }
        if self.account is not None:
            arn = f"arn:aws:sts::{self.account}:assumed-role/read/sageaudit"
            answer["AssumedRoleUser"] = {"AssumedRoleId": "AROA:sageaudit", "Arn": arn}
        return answer


class SageMaker:
    """Answers every Describe, and counts them."""

    asked: ClassVar[list[str]] = []

    def describe_training_job(self, **name: str) -> dict[str, Any]:
        self.asked.append(name["TrainingJobName"])
        return {"TrainingJobArn": JOB.arn}


class Session:
    """A session of the own account."""

    def __init__(self, assumed: str | None) -> None:
        self.assumed = assumed
        self.made: list[tuple[str, str | None]] = []

    def client(self, service: str, **more: Any) -> Any:
        self.made.append((service, more.get("aws_session_token")))
        return Sts(self.assumed) if service == "sts" else SageMaker()


def jobs(session: Session, role: str = f"arn:aws:iam::{OTHER}:role/read") -> SageMakerJobs:
    """SageMaker in the own and the other account."""
    accounts = AccountClients(session, OWN, {OTHER: role}.get, NOON.timestamp, external_id="x1")
    SageMaker.asked.clear()
    return SageMakerJobs(accounts.client_factory("sagemaker"))


def test_another_account_is_read_with_its_role() -> None:
    """Once assumed, the client is kept."""
    session = Session(OTHER)
    reader = jobs(session)
    reader.describe(JOB)
    reader.describe(JOB)
    assert session.made == [("sts", None), ("sagemaker", "token")]
    assert len(SageMaker.asked) == 2


def test_a_role_is_asked_for_by_its_name_and_the_external_id() -> None:
    """In the partition of the job's region."""
    Sts.asked.clear()
    jobs(Session(OTHER), "read").describe(JOB)
    assert Sts.asked == [(f"arn:aws:iam::{OTHER}:role/read", "x1")]


def test_the_own_account_is_read_without_a_role() -> None:
    """Also where the policy lists one for it."""
    session = Session(OWN)
    accounts = AccountClients(
        session, OWN, {OWN: f"arn:aws:iam::{OWN}:role/read"}.get, NOON.timestamp
    )
    accounts.client_factory("sagemaker")(OWN, "us-east-1")
    assert session.made == [("sagemaker", None)]


def test_a_role_of_another_account_describes_nothing() -> None:
    """STS says whose role it is."""
    with pytest.raises(AccessDenied, match="belongs to another account") as caught:
        jobs(Session(THIRD)).describe(JOB)
    assert caught.value.action == "sts:AssumeRole"
    assert not SageMaker.asked


def test_an_answer_that_does_not_say_whose_role_it_is_is_asked_again() -> None:
    """A proxy may have answered."""
    with pytest.raises(Unavailable, match="AssumedRoleUser"):
        jobs(Session(None)).describe(JOB)
    assert not SageMaker.asked
