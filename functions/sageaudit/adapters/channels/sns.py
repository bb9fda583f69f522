"""The SNS topic: e-mail, and whoever else subscribes to it."""

from __future__ import annotations

from typing import Any, Self

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ParamValidationError,
    ReadTimeoutError,
)

from sageaudit.adapters.aws.clients import CONFIG, code_of, translated
from sageaudit.adapters.channels.channel import Connections, NoticeChannel, StackTopic
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import (
    AwsError,
    ChannelBroken,
    ChannelUnavailable,
    MaybeSent,
    NoCredentials,
    Throttled,
)
from sageaudit.text import plain
from sageaudit.text.envelope import Payload
from sageaudit.text.occasion import Occasion

PERMISSIONS = ("sns:Publish",)

ONE_TRY = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
"""For this client: SNS knows no repeat of a publish, so the SDK must not make an unmarked one.

SQS repeats instead, and the ledger marks what may be one.
"""
_REFUSED_FROM, _REFUSED_BELOW = 400, 500
_PASSING = frozenset({"RequestExpired", "RequestTimeout", "RequestTimeoutException"})


class SnsChannel(NoticeChannel):
    """`client` is boto3's SNS client, made with `ONE_TRY`."""

    name = "sns"
    address = StackTopic(variable="TOPIC_ARN")
    permissions = PERMISSIONS

    def __init__(self, client: Any, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    @staticmethod
    def write(document: AuditDocument, policy: Policy, occasion: Occasion) -> Payload:
        """Subject, text and attributes to filter by."""
        del policy  # e-mail mentions nobody
        return dict(plain.message(document, occasion=occasion))

    @staticmethod
    def check(payload: Payload) -> None:
        """Raises Malformed."""
        plain.check(payload)

    @staticmethod
    def as_repeat(payload: Payload) -> Payload:
        """Marked in the subject and in the first line."""
        return plain.as_repeat(payload)

    @classmethod
    def connect(cls, address: str, connections: Connections) -> Self:
        """`address` is the topic's ARN."""
        return cls(connections.session.client("sns", config=ONE_TRY), address)

    def post(self, payload: Payload) -> None:
        """Publishes subject, message and attributes. Raises ChannelBroken or ChannelUnavailable."""
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
            raise ChannelBroken("sns: the payload is not one that SNS takes") from error
        except (ReadTimeoutError, ConnectionClosedError) as error:
            raise MaybeSent("sns: no answer came") from error
        except BotoCoreError as error:
            raise ChannelUnavailable(f"sns: {type(error).__name__}") from error


def _refusal(error: ClientError) -> ChannelBroken | ChannelUnavailable:
    """Permanent when SNS says that the request is wrong: topic, text, permission or key."""
    code = code_of(error)
    meant: AwsError = translated(error, "sns")
    if isinstance(meant, Throttled | NoCredentials) or code in _PASSING:
        return ChannelUnavailable(f"sns: {code}")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if _REFUSED_FROM <= status < _REFUSED_BELOW:
        return ChannelBroken(f"sns: {code}")
    return ChannelUnavailable(f"sns: {code}")
