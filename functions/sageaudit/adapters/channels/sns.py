"""An SNS topic: e-mail, and whoever else subscribes to it."""

from __future__ import annotations

from typing import Any, Self

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
    ProxyConnectionError,
    SSLError,
)

from sageaudit.adapters.aws.clients import CONFIG, code_of, is_of_parser, translated, unanswered
from sageaudit.adapters.channels.channel import Connections, NoticeChannel
from sageaudit.errors import (
    AwsError,
    ChannelBroken,
    ChannelError,
    ChannelUnavailable,
    MaybeSent,
    NoCredentials,
    Throttled,
)
from sageaudit.output.text import plain
from sageaudit.output.text.card import Payload

PERMISSIONS = ("sns:Publish",)

ONE_TRY = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
"""For this client: SNS knows no repeat of a publish, so the SDK must not make an unmarked one.

SQS repeats instead, and the ledger marks what may be one.
"""
_MOVED, _REQUEST_TIMEOUT, _SERVER_ERROR = 300, 408, 500
_NO_REQUEST = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
"""The errors of a request that did not leave this machine."""
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_KEY = "KMS"
_REFUSALS = {
    "AuthorizationError": ("denied", "deliver may not publish to it"),
    "InvalidParameter": ("refused", "it takes no message of this form"),
    "InvalidParameterValue": ("refused", "it takes no message of this form"),
    "NotFound": ("channel_broken", "there is no such topic"),
}
"""By SNS's code: the code of this project, and what it means."""


class SnsChannel(NoticeChannel):
    """`client` is boto3's SNS client, made with `ONE_TRY`."""

    service = "sns"
    permissions = PERMISSIONS
    write = staticmethod(plain.message)
    check = staticmethod(plain.check)
    as_repeat = staticmethod(plain.as_repeat)

    def __init__(self, client: Any, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    @classmethod
    def connect(cls, name: str, address: str, connections: Connections) -> Self:
        """`address` is the topic's ARN, which says its region."""
        del name
        region = address.split(":")[3]
        return cls(connections.session.client("sns", region_name=region, config=ONE_TRY), address)

    def prepare(self) -> None:
        """A topic needs nothing."""

    def post(self, payload: Payload) -> None:
        """Publishes subject, message and attributes. Raises a ChannelError."""
        attributes = {
            name: {"DataType": attribute["type"], "StringValue": attribute["value"]}
            for name, attribute in payload["attributes"].items()
        }
        try:
            self._client.publish(
                TopicArn=self._topic_arn,
                Subject=payload["subject"],
                Message=payload["message"],
                MessageAttributes=attributes,
            )
        except ClientError as error:
            raise _refusal(error) from error
        except ParamValidationError as error:
            why = "sns: the payload is not one that SNS takes"
            raise ChannelBroken(why, "refused") from error
        except BotoCoreError as error:
            raise _no_answer(error) from error
        except Exception as error:
            if not is_of_parser(error):
                raise
            raise MaybeSent("sns: the answer cannot be read") from error


def _refusal(error: ClientError) -> ChannelError:
    """Permanent when SNS says that the request is wrong: topic, text, permission or key."""
    code = code_of(error)
    meant: AwsError = translated(error, "sns")
    if isinstance(meant, Throttled | NoCredentials):
        return ChannelUnavailable(f"sns: {code}")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if not _MOVED <= status < _SERVER_ERROR or status == _REQUEST_TIMEOUT:
        return MaybeSent(f"sns: {code}")
    if code.startswith(_KEY):
        return ChannelBroken(f"sns: {code}, the topic's KMS key cannot be used", "key_unusable")
    reason, means = _REFUSALS.get(code, ("channel_broken", "the topic refuses the notice"))
    return ChannelBroken(f"sns: {code}, {means}", reason)


def _no_answer(error: BotoCoreError) -> ChannelError:
    """In doubt, the request left."""
    if (
        isinstance(error, _NO_REQUEST)
        or isinstance(unanswered(error, "sns"), NoCredentials)
        or (isinstance(error, SSLError) and _UNTRUSTED in str(error))
    ):
        return ChannelUnavailable(f"sns: no request was sent ({type(error).__name__})")
    return MaybeSent(f"sns: no answer came ({type(error).__name__})")
