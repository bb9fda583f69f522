"""The channel services: Slack and Microsoft Teams by webhook, and SNS.

Webhooks are called by `http.client`. slack-sdk logs the address when it retries, treats a redirect
as success, and accepts plain http. urllib3 logs the path at DEBUG.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import urlsplit

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

from sageaudit.adapters.aws import secrets
from sageaudit.adapters.aws.clients import (
    CONFIG,
    error_code,
    is_parser_error,
    no_answer_error,
    translate_error,
)
from sageaudit.adapters.channels.channel import (
    ChannelConnections,
    NoticeChannel,
    Response,
    SecretFormat,
    WebhookChannel,
)
from sageaudit.domain.policy.routes import ChannelConfig, Service
from sageaudit.errors import (
    AwsError,
    ChannelBroken,
    ChannelError,
    ChannelUnavailable,
    NoCredentials,
    PossiblySent,
    Throttled,
)
from sageaudit.output.text import plain, slack, teams
from sageaudit.output.text.card import Check, Payload, Writer

_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com|hooks\.slack-gov\.com)(?::443)?/services(?:/[A-Za-z0-9_-]+)+"
)
_INVALID_WEBHOOK = "it is not of the form https://hooks.slack.com/services/T.../B.../..."
_LABELS = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,4}"
_WORKFLOW_HOSTS = (
    r"(?:environment\.api\.(?:powerplatform\.com|(?:gov|high)\.powerplatform\.microsoft\.us"
    r"|appsplatform\.us|powerplatform\.partner\.microsoftonline\.cn)|logic\.azure\.(?:com|us|cn))"
)
"""Power Automate's hosts: commercial, GCC, GCC High, DoD and 21Vianet (learn.microsoft.com,
"IP address configuration" of Power Automate)."""
_WORKFLOW = re.compile(
    rf"https://{_LABELS}{_WORKFLOW_HOSTS}(?::443)?"
    r"(?:/[A-Za-z0-9_-]+)*/workflows/[A-Za-z0-9_-]+/triggers/[A-Za-z0-9_-]+/paths/invoke/?"
    r"\?(?:[A-Za-z0-9_.-]+=[A-Za-z0-9_.%~+-]*&)*sig=[A-Za-z0-9_.%~-]+(?:&[A-Za-z0-9_.%~=+-]*)*"
)
_MAX_ADDRESS_LENGTH = 2_000
_INVALID_WORKFLOW = (
    "it is not of the form https://….environment.api.powerplatform.com:443/…/workflows/…/triggers/"
    "manual/paths/invoke?…&sig=…"
)
CONNECT_TIMEOUT_S = 3
EXCHANGE_TIMEOUT_S = 10
"""Seconds for TLS, request and answer together. A socket's own timeout restarts at each byte."""
_HTTPS = 443
_MAX_ANSWER_BYTES = 1_000
PERMISSIONS = ("sns:Publish",)
NO_RETRY_CONFIG = CONFIG.merge(
    Config(retries={"mode": "standard", "total_max_attempts": 1}, parameter_validation=True)
)
"""Settings of the SNS client without retries, since SNS does not recognize a repeated publish.

SQS delivers the notice again instead, and the ledger marks possible repeats. Parameters are
checked, since they come from a queue.
"""
_REDIRECT = 300
_REQUEST_TIMEOUT = 408
_SERVER_ERROR = 500
_NOT_SENT_ERRORS = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
"""Errors of requests that were certainly not sent."""
_BAD_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"
_KMS_PREFIX = "KMS"
_REFUSALS = {
    "AuthorizationError": ("denied", "deliver may not publish to it"),
    "InvalidParameter": ("refused", "it does not accept messages of this form"),
    "InvalidParameterValue": ("refused", "it does not accept messages of this form"),
    "NotFound": ("channel_broken", "there is no such topic"),
}
"""sageaudit's error code and an explanation, by SNS's error code."""
ChannelChoices = Mapping[str, ChannelConfig]


def webhook_invalid_reason(url: str) -> str | None:
    """Returns why a text is not a Slack webhook's address, or None. Never quotes the text.

    Only one form is valid: https, Slack's hosts, port 443, no user, dots, query or fragment.
    """
    return None if _WEBHOOK.fullmatch(url) else _INVALID_WEBHOOK


class SlackChannel(WebhookChannel):
    """A Slack webhook. Slack answers 200 with `ok` if it posted the message, else an error word."""

    service = "slack"
    secret_format = SecretFormat(
        kind="Slack incoming webhook URL",
        example="https://hooks.slack.com/services/T00000000/B00000000/local",
        invalid_reason=webhook_invalid_reason,
    )
    permissions = secrets.PERMISSIONS
    write = staticmethod(slack.make_payload)
    check = staticmethod(slack.check_payload)
    mark_as_repeat = staticmethod(slack.mark_as_repeat)
    text_lines = staticmethod(slack.text_lines)

    @staticmethod
    def is_accepted(status: int, word: str) -> bool:
        """Returns True if the answer is 200 with `ok`."""
        return status == HTTPStatus.OK and word == "ok"


def workflow_invalid_reason(url: str) -> str | None:
    """Returns why a text is not a Teams workflow's address, or None. Never quotes the text.

    Only one form is valid: https, hosts of Power Automate, port 443, no user, no dots in the path,
    no fragment. Anyone who knows the address's `sig` can post.
    """
    return (
        None if len(url) <= _MAX_ADDRESS_LENGTH and _WORKFLOW.fullmatch(url) else _INVALID_WORKFLOW
    )


class TeamsChannel(WebhookChannel):
    """A Teams workflow. It answers 202 when it accepts a card, and posts the card later."""

    service = "teams"
    secret_format = SecretFormat(
        kind="Microsoft Teams workflow URL",
        example="https://default00000000.00.environment.api.powerplatform.com:443/powerautomate/"
        "automations/direct/workflows/00000000/triggers/manual/paths/invoke?api-version=1"
        "&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=local",
        invalid_reason=workflow_invalid_reason,
    )
    permissions = secrets.PERMISSIONS
    write = staticmethod(teams.make_payload)
    check = staticmethod(teams.check_payload)
    mark_as_repeat = staticmethod(teams.mark_as_repeat)
    text_lines = staticmethod(teams.text_lines)

    @staticmethod
    def is_accepted(status: int, word: str) -> bool:
        """Returns True if the answer is 202."""
        del word
        return status == HTTPStatus.ACCEPTED


def https_post(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
    """Posts a body without redirects, proxies and logs.

    Raises ChannelUnavailable if nothing was sent; PossiblySent if the answer is missing or
    incomplete.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    context = ssl.create_default_context()
    try:
        secure_socket = _connect(context, host, parts.port or _HTTPS)
    except OSError as error:
        raise ChannelUnavailable(f"no connection ({type(error).__name__})") from None
    with secure_socket, _time_limit(secure_socket) as time_is_up:
        try:
            secure_socket.do_handshake()
        except OSError as error:
            raise ChannelUnavailable(f"no secure connection ({type(error).__name__})") from None
        with closing(HTTPSConnection(host, parts.port, context=context)) as connection:
            connection.sock = secure_socket
            try:
                connection.request("POST", path, body, dict(headers))
                response = connection.getresponse()
                body_start = response.read(_MAX_ANSWER_BYTES)
            except (OSError, HTTPException) as error:
                raise PossiblySent(f"no answer ({type(error).__name__})") from None
        if time_is_up.is_set() or (response.length and len(body_start) < _MAX_ANSWER_BYTES):
            raise PossiblySent("the answer is incomplete")
    headers_by_name = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers_by_name, body_start)


def _connect(context: ssl.SSLContext, host: str, port: int) -> ssl.SSLSocket:
    # The socket is wrapped before it connects. `wrap_socket` leaves a connected socket open if the
    # other side has reset the connection. The TLS handshake checks the certificate and host name.
    last_error = OSError("no address")
    for family, socket_type, _, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        secure_socket = context.wrap_socket(
            socket.socket(family, socket_type), server_hostname=host, do_handshake_on_connect=False
        )
        try:
            secure_socket.settimeout(CONNECT_TIMEOUT_S)
            secure_socket.connect(address)
            secure_socket.settimeout(EXCHANGE_TIMEOUT_S)
        except OSError as error:
            secure_socket.close()
            last_error = error
        else:
            return secure_socket
    raise last_error


@contextmanager
def _time_limit(secure_socket: ssl.SSLSocket) -> Iterator[threading.Event]:
    """Shuts the connection down when its time is up. A reader then sees the end of the data."""
    time_is_up = threading.Event()

    def shut() -> None:
        time_is_up.set()
        with suppress(OSError):
            # Not SSLSocket.shutdown, which removes TLS while another thread may still read.
            socket.socket.shutdown(secure_socket, socket.SHUT_RDWR)

    timer = threading.Timer(EXCHANGE_TIMEOUT_S, shut)
    timer.daemon = True
    timer.start()
    try:
        yield time_is_up
    finally:
        timer.cancel()


class SnsChannel(NoticeChannel):
    """An SNS topic. `client` is boto3's SNS client with NO_RETRY_CONFIG."""

    service = "sns"
    permissions = PERMISSIONS
    write = staticmethod(plain.make_payload)
    check = staticmethod(plain.check_payload)
    mark_as_repeat = staticmethod(plain.mark_as_repeat)
    text_lines = staticmethod(plain.text_lines)

    def __init__(self, client: Any, topic_arn: str) -> None:
        self._client = client
        self._topic_arn = topic_arn

    @classmethod
    def connect(cls, name: str, address: str, connections: ChannelConnections) -> Self:
        """Connects the channel. `address` is the topic's ARN, which contains its region."""
        del name
        region = address.split(":")[3]
        return cls(
            connections.session.client("sns", region_name=region, config=NO_RETRY_CONFIG), address
        )

    def prepare(self) -> None:
        """Does nothing, since a topic needs no preparation."""

    def post(self, payload: Payload) -> None:
        """Publishes the payload's subject, message and attributes. Raises a ChannelError."""
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
            message = "sns: SNS does not accept this payload"
            raise ChannelBroken(message, "refused") from error
        except BotoCoreError as error:
            raise _transport_error(error) from error
        except Exception as error:
            if not is_parser_error(error):
                raise
            raise PossiblySent("sns: the answer cannot be read") from error


def _refusal(error: ClientError) -> ChannelError:
    # A wrong topic, text or key is permanent, so it becomes ChannelBroken.
    code = error_code(error)
    aws_error: AwsError = translate_error(error, "sns")
    if isinstance(aws_error, Throttled | NoCredentials):
        return ChannelUnavailable(f"sns: {code}")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if not _REDIRECT <= status < _SERVER_ERROR or status == _REQUEST_TIMEOUT:
        return PossiblySent(f"sns: {code}")
    if code.startswith(_KMS_PREFIX):
        return ChannelBroken(f"sns: {code}, the topic's KMS key cannot be used", "key_unusable")
    reason, explanation = _REFUSALS.get(code, ("channel_broken", "the topic refuses the notice"))
    return ChannelBroken(f"sns: {code}, {explanation}", reason)


def _transport_error(error: BotoCoreError) -> ChannelError:
    """Returns PossiblySent if the request may have been sent, else ChannelUnavailable."""
    if (
        isinstance(error, _NOT_SENT_ERRORS)
        or isinstance(no_answer_error(error, "sns"), NoCredentials)
        or (isinstance(error, SSLError) and _BAD_CERTIFICATE in str(error))
    ):
        return ChannelUnavailable(f"sns: no request was sent ({type(error).__name__})")
    return PossiblySent(f"sns: no answer ({type(error).__name__})")


SERVICES: Mapping[Service, type[NoticeChannel]] = {
    channel.service: channel for channel in (SlackChannel, TeamsChannel, SnsChannel)
}


def channel_writers(channels: ChannelChoices) -> dict[str, Writer]:
    """Returns the function that makes a card's payload, by channel."""
    return {name: SERVICES[channel.service].write for name, channel in channels.items()}


def payload_checks(channels: ChannelChoices) -> dict[str, Check]:
    """Returns the function that checks a payload, by channel."""
    return {name: SERVICES[channel.service].check for name, channel in channels.items()}


def connect_channels(
    channels: ChannelChoices, own_topic: str, connections: ChannelConnections
) -> dict[str, NoticeChannel]:
    """Connects each channel. `own_topic` is the ARN of the stack's own topic."""
    return {
        name: SERVICES[channel.service].connect(
            name, channel.secret or channel.topic_arn or own_topic, connections
        )
        for name, channel in channels.items()
    }
