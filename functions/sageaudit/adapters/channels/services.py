"""Every service of channels: Slack and Microsoft Teams by a webhook, and SNS.

Posts to webhooks use TLS and the standard library. slack-sdk is not used: it logs the address at
INFO on a connection retry, follows a redirect and calls the answer a success, and accepts plain
http. urllib3 logs the path at DEBUG. `http.client` does none of these.
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
_WORKFLOW = re.compile(
    rf"https://{_LABELS}(?:environment\.api\.powerplatform\.com|logic\.azure\.com)(?::443)?"
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
"""Seconds for TLS, request and answer together: a socket's own time-out restarts at each byte."""
_HTTPS = 443
_MAX_ANSWER_BYTES = 1_000
PERMISSIONS = ("sns:Publish",)
NO_RETRY_CONFIG = CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
"""Only for this client: SNS does not recognise a repeated publish, so the SDK must not send one
unmarked. SQS repeats instead, and the ledger marks possible repeats."""
_REDIRECT = 300
_REQUEST_TIMEOUT = 408
_SERVER_ERROR = 500
_NOT_SENT_ERRORS = (ConnectTimeoutError, EndpointConnectionError, ProxyConnectionError)
"""Errors of requests that did not leave this machine."""
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_KEY = "KMS"
_REFUSALS = {
    "AuthorizationError": ("denied", "deliver may not publish to it"),
    "InvalidParameter": ("refused", "it takes no message of this form"),
    "InvalidParameterValue": ("refused", "it takes no message of this form"),
    "NotFound": ("channel_broken", "there is no such topic"),
}
"""By SNS's error code: this project's code, and what it means."""
ChannelChoices = Mapping[str, ChannelConfig]


def webhook_invalid_reason(url: str) -> str | None:
    """Says why this is not an address of a Slack webhook, or None; never quotes it.

    One strict form: https, Slack's hosts, no user, no port but 443, no dots, queries or fragments.
    """
    return None if _WEBHOOK.fullmatch(url) else _INVALID_WEBHOOK


class SlackChannel(WebhookChannel):
    """Slack answers 200 with `ok` if it has posted, and an error word otherwise."""

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
        """Whether the answer is 200 with `ok`."""
        return status == HTTPStatus.OK and word == "ok"


def workflow_invalid_reason(url: str) -> str | None:
    """Says why this is not an address of a workflow, or None; never quotes it.

    One strict form: https, hosts of Power Automate, no user, no port but 443, no dots in the path,
    no fragment. Whoever knows its `sig` may post.
    """
    return (
        None if len(url) <= _MAX_ADDRESS_LENGTH and _WORKFLOW.fullmatch(url) else _INVALID_WORKFLOW
    )


class TeamsChannel(WebhookChannel):
    """A workflow answers 202 if it has taken a card, which it posts after that."""

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
        """Whether the answer is 202, with any text."""
        del word
        return status == HTTPStatus.ACCEPTED


def https_post(url: str, body: bytes, headers: Mapping[str, str]) -> Response:
    """Posts as a Transport: without redirects, proxies and logs."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    context = ssl.create_default_context()
    try:
        secured = _connect(context, host, parts.port or _HTTPS)
    except OSError as error:
        raise ChannelUnavailable(f"no connection ({type(error).__name__})") from None
    with secured, _ends(secured) as over:
        try:
            secured.do_handshake()
        except OSError as error:
            raise ChannelUnavailable(f"no secure connection ({type(error).__name__})") from None
        with closing(HTTPSConnection(host, parts.port, context=context)) as connection:
            connection.sock = secured
            try:
                connection.request("POST", path, body, dict(headers))
                answer = connection.getresponse()
                read = answer.read(_MAX_ANSWER_BYTES)
            except (OSError, HTTPException) as error:
                raise PossiblySent(f"no answer came ({type(error).__name__})") from None
        if over.is_set() or (answer.length and len(read) < _MAX_ANSWER_BYTES):
            raise PossiblySent("half an answer came")
    named = {name.lower(): value for name, value in answer.getheaders()}
    return Response(answer.status, named, read)


def _connect(context: ssl.SSLContext, host: str, port: int) -> ssl.SSLSocket:
    """Returns a connection before its TLS handshake, which checks the certificate and its name.

    It is wrapped before it connects: on a connection that the other side has reset, `wrap_socket`
    leaves the socket open.
    """
    failed = OSError("no address")
    for family, kind, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        secured = context.wrap_socket(
            socket.socket(family, kind), server_hostname=host, do_handshake_on_connect=False
        )
        try:
            secured.settimeout(CONNECT_TIMEOUT_S)
            secured.connect(address)
            secured.settimeout(EXCHANGE_TIMEOUT_S)
        except OSError as error:
            secured.close()
            failed = error
        else:
            return secured
    raise failed


@contextmanager
def _ends(secured: ssl.SSLSocket) -> Iterator[threading.Event]:
    """Shuts the connection at the end of its time; its reader then sees the end of the data."""
    over = threading.Event()

    def shut() -> None:
        over.set()
        with suppress(OSError):
            # Not SSLSocket.shutdown, which takes TLS away under whoever is still reading.
            socket.socket.shutdown(secured, socket.SHUT_RDWR)

    timer = threading.Timer(EXCHANGE_TIMEOUT_S, shut)
    timer.daemon = True
    timer.start()
    try:
        yield over
    finally:
        timer.cancel()


class SnsChannel(NoticeChannel):
    """A topic. `client` is boto3's SNS client, made with NO_RETRY_CONFIG."""

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
        """Connects; `address` is the topic's ARN, which contains its region."""
        del name
        region = address.split(":")[3]
        return cls(
            connections.session.client("sns", region_name=region, config=NO_RETRY_CONFIG), address
        )

    def prepare(self) -> None:
        """Does nothing: a topic needs no preparation."""

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
            message = "sns: the payload is not one that SNS takes"
            raise ChannelBroken(message, "refused") from error
        except BotoCoreError as error:
            raise _transport_error(error) from error
        except Exception as error:
            if not is_parser_error(error):
                raise
            raise PossiblySent("sns: the answer cannot be read") from error


def _refusal(error: ClientError) -> ChannelError:
    """Returns the error for a refusal: permanent for a wrong topic, text, permission or key."""
    code = error_code(error)
    meant: AwsError = translate_error(error, "sns")
    if isinstance(meant, Throttled | NoCredentials):
        return ChannelUnavailable(f"sns: {code}")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if not _REDIRECT <= status < _SERVER_ERROR or status == _REQUEST_TIMEOUT:
        return PossiblySent(f"sns: {code}")
    if code.startswith(_KEY):
        return ChannelBroken(f"sns: {code}, the topic's KMS key cannot be used", "key_unusable")
    reason, means = _REFUSALS.get(code, ("channel_broken", "the topic refuses the notice"))
    return ChannelBroken(f"sns: {code}, {means}", reason)


def _transport_error(error: BotoCoreError) -> ChannelError:
    """Returns the error of a failed request; in doubt, the request left."""
    if (
        isinstance(error, _NOT_SENT_ERRORS)
        or isinstance(no_answer_error(error, "sns"), NoCredentials)
        or (isinstance(error, SSLError) and _UNTRUSTED in str(error))
    ):
        return ChannelUnavailable(f"sns: no request was sent ({type(error).__name__})")
    return PossiblySent(f"sns: no answer came ({type(error).__name__})")


SERVICES: Mapping[Service, type[NoticeChannel]] = {
    one.service: one for one in (SlackChannel, TeamsChannel, SnsChannel)
}


def channel_writers(channels: ChannelChoices) -> dict[str, Writer]:
    """Returns what writes a card for each channel, with the ids of owners to mention."""
    return {name: SERVICES[channel.service].write for name, channel in channels.items()}


def payload_checks(channels: ChannelChoices) -> dict[str, Check]:
    """Returns what checks the payload of each channel."""
    return {name: SERVICES[channel.service].check for name, channel in channels.items()}


def connect_channels(
    channels: ChannelChoices, own_topic: str, connections: ChannelConnections
) -> dict[str, NoticeChannel]:
    """Connects each channel; `own_topic` is the ARN of the stack's own topic."""
    return {
        name: SERVICES[channel.service].connect(
            name, channel.secret or channel.topic_arn or own_topic, connections
        )
        for name, channel in channels.items()
    }
