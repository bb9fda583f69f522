"""The topic: what is published, and what each refusal means for a second try."""

from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import ResponseParserError
from botocore.stub import Stubber

from sageaudit.adapters.channels.services import NO_RETRY_CONFIG, SnsChannel
from sageaudit.errors import ChannelBroken, ChannelError, ChannelUnavailable, PossiblySent

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
    return boto3.client("sns", region_name="us-east-1", config=NO_RETRY_CONFIG)


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


REFUSALS: list[tuple[str, int, type[ChannelError], str]] = [
    # no second try repairs it
    ("NotFound", 404, ChannelBroken, "channel_broken"),
    ("SomethingNew", 400, ChannelBroken, "channel_broken"),
    ("InvalidParameter", 400, ChannelBroken, "refused"),
    ("AuthorizationError", 403, ChannelBroken, "denied"),
    ("KMSAccessDenied", 400, ChannelBroken, "key_unusable"),
    ("KMSInvalidState", 400, ChannelBroken, "key_unusable"),
    ("KMSOptInRequired", 403, ChannelBroken, "key_unusable"),
    # it was refused, so nothing was published, and it passes
    ("Throttled", 429, ChannelUnavailable, ""),
    ("ThrottlingException", 400, ChannelUnavailable, ""),
    ("KMSThrottling", 400, ChannelUnavailable, ""),
    ("ExpiredToken", 403, ChannelUnavailable, ""),
    ("InvalidClientTokenId", 403, ChannelUnavailable, ""),
    ("SignatureDoesNotMatch", 403, ChannelUnavailable, ""),
    ("RequestExpired", 400, ChannelUnavailable, ""),
    # the message may have been accepted before
    ("InternalError", 500, PossiblySent, ""),
    ("ServiceUnavailable", 503, PossiblySent, ""),
    ("RequestTimeout", 408, PossiblySent, ""),
]


@pytest.mark.parametrize(("code", "status", "meant", "reason"), REFUSALS)
def test_a_refusal_says_what_it_means_for_a_second_try(
    client: Any, code: str, status: int, meant: type[ChannelError], reason: str
) -> None:
    """The error names the code, and repeats nothing of the request."""
    with Stubber(client) as stub:
        stub.add_client_error("publish", code, "about the topic", status)
        with pytest.raises(meant, match=f"^sns: {code}") as raised:
            SnsChannel(client, TOPIC).post(PAYLOAD)
    assert getattr(raised.value, "code", "") == reason
    assert "about the topic" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "maybe"),
    [
        (EndpointConnectionError(endpoint_url=ENDPOINT), False),
        (ConnectTimeoutError(endpoint_url=ENDPOINT), False),
        (ProxyConnectionError(proxy_url=ENDPOINT), False),
        (SSLError(endpoint_url=ENDPOINT, error="[SSL: CERTIFICATE_VERIFY_FAILED]"), False),
        (NoCredentialsError(), False),
        (SSLError(endpoint_url=ENDPOINT, error="[SSL] record layer failure"), True),
        (ReadTimeoutError(endpoint_url=ENDPOINT), True),
        (ConnectionClosedError(endpoint_url=ENDPOINT), True),
        (HTTPClientError(error="whatever else"), True),
        (ResponseParserError("200 with a page of HTML"), True),
    ],
)
def test_only_what_surely_did_not_leave_is_not_published(
    client: Any, error: Exception, maybe: bool
) -> None:
    """The SDK does not try again by itself: an unmarked repeat would be a second mail."""
    tries = []

    def fail(**_: Any) -> None:
        tries.append(1)
        raise error

    client.meta.events.register("before-send.sns.Publish", fail)
    with pytest.raises(PossiblySent if maybe else ChannelUnavailable):
        SnsChannel(client, TOPIC).post(PAYLOAD)
    assert len(tries) == 1


def test_a_payload_that_is_none_is_broken(client: Any) -> None:
    """The SDK's own check refuses it before it leaves."""
    with pytest.raises(ChannelBroken, match="payload"):
        SnsChannel(client, TOPIC).post({**PAYLOAD, "subject": 7})


@pytest.mark.parametrize("body", [b"<html/>", b"<html>busy</html>", b"{}", b"", b"\xff"])
def test_an_answer_that_is_none_of_sns_may_have_published_it(client: Any, body: bytes) -> None:
    """A 200 that the SDK cannot read, whatever it raises then."""

    def answers(request: AWSRequest, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, 200, {}, SimpleNamespace(stream=lambda: [body]))

    client.meta.events.register("before-send.sns.Publish", answers)
    with pytest.raises(PossiblySent, match="cannot be read"):
        SnsChannel(client, TOPIC).post(PAYLOAD)


def test_an_error_of_our_own_is_none_of_the_answer(client: Any) -> None:
    """It passes through, as a defect."""

    def raises(**_: Any) -> Any:
        raise KeyError("x")

    client.meta.events.register("before-send.sns.Publish", raises)
    with pytest.raises(KeyError):
        SnsChannel(client, TOPIC).post(PAYLOAD)
