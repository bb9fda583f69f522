"""A guard prints each call that starts a job, of the clients and sessions that it covers."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import sageaudit
from tests.fakes.guarded import DAY, Aws, train


def test_a_call_is_printed_and_sent(
    aws: Aws, client: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The text goes to stderr, in lines of at most 80 characters except what is to be copied."""
    with sageaudit.guard(client):
        train(client, {"ResourceConfig.InstanceType": "ml.p3.2xlarge"})
    text = capsys.readouterr().err
    assert aws.sent == ["CreateTrainingJob"]
    lines = text.splitlines()
    assert lines[0] == "sageaudit: training job train-1"
    assert lines[1].startswith("  At most $3.83: $3.825 an hour up to the limit of 1 h.")
    assert lines[2].startswith("  old-generation (up to $")
    assert lines[-1].startswith("    ResourceConfig.InstanceType = ")
    assert lines[-1].endswith("# now: ml.p3.2xlarge")
    assert all(len(line) <= 80 for line in lines if "# now" not in line)


class SdkSession:
    def __init__(self, session: Any, client: Any) -> None:
        self.boto_session = session
        self.sagemaker_client = client


TARGETS: dict[str, Callable[[Any, Any], Any]] = {
    "the client": lambda session, client: client,
    "its session": lambda session, client: session,
    "its botocore session": lambda session, client: session._session,
    "a session of an SDK": SdkSession,
    "the process": lambda session, client: None,
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_client_that_exists_already_is_guarded(name: str, aws: Aws) -> None:
    """The client of another session is guarded only with the process."""
    session = aws.session()
    client, other = session.client("sagemaker"), aws.client()
    with sageaudit.guard(TARGETS[name](session, client), max_usd=1, write=str):
        with pytest.raises(sageaudit.JobRefused):
            train(client, DAY)
        if name == "the process":
            with pytest.raises(sageaudit.JobRefused):
                train(other, DAY)
        else:
            train(other, DAY)
    assert len(aws.sent) == (name != "the process")
    train(client, DAY)


@pytest.mark.parametrize("name", ["its session", "a session of an SDK", "the process"])
def test_a_later_client_is_guarded_and_released(name: str, aws: Aws) -> None:
    """A client that copied the handler from its session is free when the guard is removed."""
    session = aws.session()
    guard = sageaudit.guard(
        TARGETS[name](session, session.client("sagemaker")), max_usd=1, write=str
    )
    later = session.client("sagemaker")
    with pytest.raises(sageaudit.JobRefused):
        train(later, DAY)
    guard.remove()
    train(later, DAY)
    assert aws.sent == ["CreateTrainingJob"]


def test_a_later_session_is_guarded_with_the_process(aws: Aws) -> None:
    """As the SDKs do, it is made after the guard. Later sessions are free again."""
    with sageaudit.guard(max_usd=1, write=str):
        client = aws.client()
        with pytest.raises(sageaudit.JobRefused):
            train(client, DAY)
    train(client, DAY)
    train(aws.client(), DAY)
    assert len(aws.sent) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"target": 3}, "int is not a boto3 session, a client of sagemaker"),
        ({"max_usd": -1}, "max_usd=-1 is not an amount"),
        ({"max_usd": "fifty"}, "max_usd='fifty' is not an amount"),
        ({"max_usd": float("nan")}, "max_usd=nan is not an amount"),
        ({"max_usd": True}, "max_usd=True is not an amount"),
        ({"require": ["Tags.team"]}, "is not a table of settings"),
        ({"require": {"EnableManagedSpot": True}}, "did you mean EnableManagedSpotTraining"),
        ({"require": {"VpcConfig": 3}}, 'is not "set" or "not set"'),
        ({"require": {1: True}}, "require={1: True} is not a table of settings"),
        ({"policy": "no-such.toml"}, "no-such.toml"),
        ({"policy": 3}, "policy=3 is not a policy or the path of its file"),
        ({"account": "12"}, "12 is not an account id"),
        ({"account": 111122223333}, "account=111122223333 is not a text"),
        ({"history": "audits.db"}, "AuditHistory.open"),
        ({"write": "stderr"}, "write='stderr' is not a function"),
    ],
)
def test_an_argument_that_makes_no_sense_is_one_sentence(
    arguments: dict[str, Any], reason: str, aws: Aws
) -> None:
    """Nothing is guarded then."""
    with pytest.raises(sageaudit.SageauditError, match=re.escape(reason)):
        sageaudit.guard(**{"target": aws.client(), **arguments})


def test_a_client_of_another_service_is_refused(aws: Aws) -> None:
    with pytest.raises(sageaudit.SageauditError, match="the client is of sqs"):
        sageaudit.guard(aws.session().client("sqs"))


def test_a_guard_of_the_same_target_is_replaced(client: Any, aws: Aws) -> None:
    """A cell of a notebook may run again with another limit. Nothing is printed twice."""
    written: list[str] = []
    first = sageaudit.guard(client, max_usd=1, write=written.append)
    second = sageaudit.guard(client, max_usd=9, write=written.append)
    train(client, DAY)
    assert len(written) == 1
    second.remove()
    train(client, DAY)
    assert len(written) == 1
    first.remove()
    assert len(aws.sent) == 2


def test_after_a_block_the_guard_before_it_works_again(client: Any) -> None:
    with sageaudit.guard(client, max_usd=1, write=str) as outer:
        with sageaudit.guard(client, max_usd=9, write=str):
            train(client, DAY)
        with pytest.raises(sageaudit.JobRefused):
            train(client, DAY)
        with sageaudit.guard(client, max_usd=9, write=str):
            outer.remove()
        train(client, DAY)


def test_a_guard_that_was_made_in_a_block_stays_the_only_one(client: Any, aws: Aws) -> None:
    """It replaced the guard of the block, which then restores none."""
    sageaudit.guard(client, max_usd=1, write=str)
    with sageaudit.guard(client, max_usd=2, write=str):
        last = sageaudit.guard(client, max_usd=9, write=str)
    train(client, DAY)
    assert len(aws.sent) == 1
    last.remove()


def test_a_guard_that_guards_nothing_has_no_block(client: Any) -> None:
    """A block of a guard that was removed or replaced would let every call pass."""
    removed = sageaudit.guard(client)
    replaced = sageaudit.guard(client)
    with sageaudit.guard(client) as ended:
        removed.remove()
        for guard in (removed, replaced):
            with pytest.raises(sageaudit.SageauditError, match="removed or replaced"), guard:
                pass
    with pytest.raises(sageaudit.SageauditError, match="removed or replaced"), ended:
        pass
    replaced.remove()


def test_guards_of_two_targets_both_count_and_print_once(aws: Aws) -> None:
    """A limit of the process holds beside that of a client."""
    session, written = aws.session(), list[str]()
    client = session.client("sagemaker")
    with (
        sageaudit.guard(max_usd=1, write=written.append),
        sageaudit.guard(session, write=written.append),
        sageaudit.guard(client, max_usd=9, write=written.append),
        pytest.raises(sageaudit.JobRefused, match=re.escape("the limit of $1.00")),
    ):
        train(client, DAY)
    assert "".join(written).count("At most") == 1
