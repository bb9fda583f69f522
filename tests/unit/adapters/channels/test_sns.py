"""The topic: what is published, and what each refusal means for a second try."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from botocore.stub import Stubber

from sageaudit.adapters.channels.sns import ONE_TRY, SnsChannel
from sageaudit.errors import ChannelBroken, ChannelUnavailable, MaybeSent

TOPIC = "arn:aws:sns:us-east-1:111122223333:notices"
PAYLOAD = {
    "subject": "HIGH $2.04",
    "message": "HIGH  $2.04 of $4.55\n",
    "attributes": {
        "severity": {"type": "String", "value": "high"},
        "rule_ids": {"type": "String.Array", "value": '["SA202"]'},
    },
}
ENDPOINT = "https://sns"


@pytest.fixture
def client() -> Any:
    """An SNS client that no stub has answered for yet."""
    return boto3.client("sns", region_name="us-east-1", config=ONE_TRY)


def test_subject_text_and_attributes_are_published(client: Any) -> None:
    """As the model of SNS wants them."""
    expected = {
        "TopicArn": TOPIC,
        "Subject": "HIGH $2.04",
        "Message": "HIGH  $2.04 of $4.55\n",
        "MessageAttributes": {
            "severity": {"DataType": "String", "StringValue": "high"},
            "rule_ids": {"DataType": "String.Array", "StringValue": '["SA202"]'},
        },
    }
    with Stubber(client) as stub:
        stub.add_response("publish", {"MessageId": "1"}, expected)
        SnsChannel(client, TOPIC).post(PAYLOAD)
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("NotFound", 404),
        ("InvalidParameter", 400),
        ("AuthorizationError", 403),
        ("KMSAccessDenied", 400),
        ("KMSDisabled", 400),
    ],
)
def test_what_no_second_try_repairs_is_broken(client: Any, code: str, status: int) -> None:
    """The error names the code and nothing else."""
    with Stubber(client) as stub:
        stub.add_client_error("publish", code, "about the topic", status)
        with pytest.raises(ChannelBroken, match=f"^sns: {code}$"):
            SnsChannel(client, TOPIC).post(PAYLOAD)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("Throttled", 429),
        ("ThrottlingException", 400),
        ("KMSThrottling", 400),
        ("ExpiredToken", 403),
        ("InternalError", 500),
        ("ServiceUnavailable", 503),
    ],
)
def test_what_passes_is_unavailable(client: Any, code: str, status: int) -> None:
    """It was refused, so nothing was published."""
    with Stubber(client) as stub:
        stub.add_client_error("publish", code, "", status)
        with pytest.raises(ChannelUnavailable) as raised:
            SnsChannel(client, TOPIC).post(PAYLOAD)
    assert not isinstance(raised.value, MaybeSent)


@pytest.mark.parametrize(
    ("error", "maybe"),
    [
        (EndpointConnectionError(endpoint_url=ENDPOINT), False),
        (ConnectTimeoutError(endpoint_url=ENDPOINT), False),
        (ReadTimeoutError(endpoint_url=ENDPOINT), True),
        (ConnectionClosedError(endpoint_url=ENDPOINT), True),
    ],
)
def test_only_an_answer_that_is_missing_leaves_it_open(
    client: Any, error: Exception, maybe: bool
) -> None:
    """The SDK does not try again by itself: an unmarked repeat would be a second mail."""
    tries = []

    def fail(**_: Any) -> None:
        tries.append(1)
        raise error

    client.meta.events.register("before-send.sns.Publish", fail)
    with pytest.raises(ChannelUnavailable) as raised:
        SnsChannel(client, TOPIC).post(PAYLOAD)
    assert isinstance(raised.value, MaybeSent) is maybe
    assert len(tries) == 1


def test_a_payload_that_is_none_is_broken(client: Any) -> None:
    """The SDK's own check refuses it before it leaves."""
    with pytest.raises(ChannelBroken, match="payload"):
        SnsChannel(client, TOPIC).post({**PAYLOAD, "subject": 7})
