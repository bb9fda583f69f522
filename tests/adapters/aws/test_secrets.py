"""One secret: kept for a while, read again when asked, silent about its value."""

import traceback
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from sageaudit.adapters.aws.secrets import TTL_S, SecretReader
from sageaudit.errors import AccessDenied, BadSettings, Throttled, Unavailable

NAME = "sageaudit/slack-webhook"


class Seconds:
    """A clock that is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Store:
    """Answers with the next value each time."""

    def __init__(self, *values: str) -> None:
        self.values = list(values)
        self.reads = 0

    def get_secret_value(self, SecretId: str) -> dict[str, str]:  # noqa: N803 - boto3's name
        assert SecretId == NAME
        self.reads += 1
        return {"SecretString": self.values.pop(0)}


def test_it_is_read_when_it_is_needed_and_kept_for_an_hour() -> None:
    """Not when it is wired."""
    store, clock = Store("one", "two"), Seconds()
    secret = SecretReader(store, NAME, clock)
    assert store.reads == 0
    assert [secret.value(), secret.value()] == ["one", "one"]
    clock.now += TTL_S - 1
    assert secret.value() == "one"
    clock.now += 1
    assert secret.value() == "two"
    assert store.reads == 2


def test_a_refresh_reads_it_at_once_and_keeps_that() -> None:
    """A webhook was renewed."""
    secret = SecretReader(Store("one", "two"), NAME, Seconds())
    assert secret.value() == "one"
    assert secret.value(refresh=True) == "two"
    assert secret.value() == "two"


def test_an_expired_one_is_used_while_the_store_does_not_answer() -> None:
    """A webhook hardly ever changes; without the kept one, an outage here stops the channel."""
    store, clock = Store("one"), Seconds()
    secret = SecretReader(store, NAME, clock)
    assert secret.value() == "one"
    client = boto3.client("secretsmanager", region_name="us-east-1")
    with Stubber(client) as stub:
        stub.add_client_error("get_secret_value", "ThrottlingException")
        stub.add_client_error("get_secret_value", "InternalServiceError")
        stub.add_client_error("get_secret_value", "ResourceNotFoundException")
        secret = SecretReader(client, NAME, clock)
        secret._cached = (clock.now - TTL_S - 1, "one")  # as after a read an hour ago
        assert [secret.value(), secret.value()] == ["one", "one"]
        with pytest.raises(BadSettings, match="no such secret"):
            secret.value()


def test_spaces_around_it_are_not_part_of_it() -> None:
    """A console's text field adds a line end."""
    assert SecretReader(Store(" one\n"), NAME, Seconds()).value() == "one"


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ("ResourceNotFoundException", BadSettings, f"{NAME}: there is no such secret"),
        ("InvalidRequestException", BadSettings, f"{NAME}: it is marked for deletion"),
        ({"SecretBinary": b"123"}, BadSettings, "has no text"),
        ({"SecretString": "  "}, BadSettings, "has no text"),
        ("ThrottlingException", Throttled, "throttled"),
        ("AccessDeniedException", AccessDenied, "not permitted"),
        ("InternalServiceError", Unavailable, "was refused"),
    ],
)
def test_what_is_no_secret_is_one_of_this_projects_errors(
    answer: Any, error: type[Exception], said: str
) -> None:
    """A missing one is named, so that a person knows what to make; others say what to do."""
    client = boto3.client("secretsmanager", region_name="us-east-1")
    with Stubber(client) as stub:
        if isinstance(answer, str):
            stub.add_client_error("get_secret_value", answer)
        else:
            stub.add_response("get_secret_value", answer)
        with pytest.raises(error, match=said):
            SecretReader(client, NAME, Seconds()).value()


def test_the_value_is_in_no_text_about_it() -> None:
    """Neither when it is shown nor when a read fails after it was known."""
    client = boto3.client("secretsmanager", region_name="us-east-1")
    with Stubber(client) as stub:
        stub.add_response("get_secret_value", {"SecretString": "hush"})
        stub.add_client_error("get_secret_value", "ResourceNotFoundException")
        secret = SecretReader(client, NAME, Seconds())
        assert secret.value() == "hush"
        assert "hush" not in repr(secret)
        with pytest.raises(BadSettings) as raised:
            secret.value(refresh=True)
    assert "hush" not in "".join(traceback.format_exception(raised.value))
