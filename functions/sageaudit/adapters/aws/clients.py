"""Creates AWS clients, and translates AWS errors into sageaudit's errors.

Only the SDK retries: six attempts in about 10 seconds. After longer outages, SQS delivers the
message again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigParseError,
    CredentialRetrievalError,
    InvalidConfigError,
    LoginError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError
from botocore.utils import parse_timestamp

from sageaudit import __version__
from sageaudit.errors import (
    PARSE_ERRORS,
    AccessDenied,
    AwsError,
    NoCredentials,
    Throttled,
    Unavailable,
)
from sageaudit.token_shapes import redact

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 6},
    connect_timeout=3,
    read_timeout=10,
    # The SDK would check each attribute of each item against its model. tests/conftest.py checks
    # the requests of all tests.
    parameter_validation=False,
    # The SDK would assemble its own text twice for each request. It adds botocore's version.
    user_agent=f"sageaudit/{__version__} Boto3/{boto3.__version__}",
)
"""The settings of all clients. Others add to them."""
PARALLEL_CONFIG = CONFIG.merge(Config(max_pool_connections=32))
"""Settings for a client that many threads share: as many connections as threads."""
QUICK_CONFIG = CONFIG.merge(
    Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=2, read_timeout=3)
)
"""Settings for functions that make several calls. One call takes at most 12 seconds."""

_THROTTLE_CODES = re.compile(
    r"Throttl|RequestLimitExceeded|TooManyRequests|SlowDown|LimitExceeded\Z"
)
_DENIED_CODES = re.compile(r"AccessDenied|UnauthorizedOperation|NotAuthorized|AuthorizationError")
_CREDENTIAL_CODES = re.compile(
    r"ExpiredToken|InvalidClientTokenId|UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch"
    r"|IncompleteSignature|InvalidAccessKeyId"
)
_WRONG_CLOCK_SIGNS = re.compile(
    r"RequestTimeTooSkewed|RequestExpired|RequestInTheFuture|Signature expired|not yet current"
)
"""Matches errors that mean that this computer's clock is wrong."""
_ACTION = re.compile(r"not authorized to perform: ([\w-]+:\w+)")
_PARSER = ResponseParserError.__module__
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_LOG_IN = "log in again with `aws sso login` or `aws login` (with --profile for a named profile)"
_CREDENTIAL_ADVICE: tuple[tuple[tuple[type[BotoCoreError], ...], str], ...] = (
    ((SSOError, TokenRetrievalError, NoAuthTokenError, LoginError), _LOG_IN),
    ((ProfileNotFound,), "`aws configure list-profiles` names the profiles there are"),
    ((ConfigParseError, InvalidConfigError), "correct the AWS config file"),
    (
        (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError),
        "log in with `aws sso login` or `aws login`, or give a profile that has credentials",
    ),
)
"""Advice for the user, by the botocore errors about missing credentials."""
SERVICES_WITHOUT_LIMIT = frozenset({"sqs"})
"""Services whose requests TimeLimitedClients does not limit.

A record's result must still be sent to SQS when the time is over.
"""
RESERVE_S = 60
"""No attempt begins in the last 60 seconds of a function's time.

An attempt takes at most 13 s, and the pause before it 16 s. Two attempts of 8 s each then send the
result to SQS.
"""


def error_code(error: ClientError) -> str:
    """Returns the error code, or "" if the response has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: ClientError) -> str:
    """Returns AWS's error message without secrets, cut to 300 characters.

    A proxy's HTML page is replaced by a sentence.
    """
    text = str(error.response.get("Error", {}).get("Message", ""))
    return "(a page of HTML, as a proxy sends)" if _HTML.match(text) else redact(text)[:300]


@contextmanager
def aws_errors(service: str, resource: str = "") -> Iterator[None]:
    """Turns botocore's errors into NoCredentials, AccessDenied, Throttled or Unavailable.

    `service` is the IAM prefix, such as "sagemaker". `resource` becomes part of the message.
    """
    try:
        yield
    except ClientError as error:
        raise translate_error(error, service, resource) from error
    except BotoCoreError as error:
        raise no_answer_error(error, service) from error
    except (ResponseParserError, *PARSE_ERRORS) as error:
        if not is_parser_error(error):
            raise
        raise unreadable_answer_error(service) from error


@contextmanager
def parse_errors(service: str) -> Iterator[None]:
    """Turns errors from reading an incomplete or mistyped answer into Unavailable.

    Put only the lines that read an answer into the `with` block. Defects in other lines would be
    hidden.
    """
    try:
        yield
    except PARSE_ERRORS as error:
        raise unreadable_answer_error(service) from error


def is_parser_error(error: Exception) -> bool:
    """Returns True if the SDK could not parse an answer. Its parser raises many types of error."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__") == _PARSER:
            return True
        frame = frame.tb_next
    return isinstance(error, ResponseParserError)


def read_text(row: Mapping[str, Any], key: str) -> str:
    """Returns the text under a key. Raises KeyError or TypeError; call it within `parse_errors`."""
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is not a text")
    return value


def require_key(answer: Mapping[str, Any], key: str) -> Any:
    """Returns the value of a required key. Raises Unavailable if the key is missing."""
    if key not in answer:
        raise Unavailable(
            f"An answer of AWS has no {key}, perhaps because of a proxy: try again later."
        )
    return answer[key]


def no_answer_error(error: BotoCoreError, service: str) -> AwsError:
    """Returns NoCredentials with advice if credentials are missing, or else Unavailable."""
    text = str(error).strip().rstrip(".:")
    for kinds, what_to_do in _CREDENTIAL_ADVICE:
        if isinstance(error, kinds):
            return NoCredentials(f"No usable AWS credentials: {text}; {what_to_do}.")
    return Unavailable(f"{service} did not answer: {text}.")


def unreadable_answer_error(service: str) -> Unavailable:
    """Returns the error for an answer that the SDK could not parse."""
    return Unavailable(f"{service} sent an answer that cannot be read, perhaps because of a proxy.")


def translate_error(error: ClientError, service: str, resource: str = "") -> AwsError:
    """Returns sageaudit's error for a ClientError."""
    code, message = error_code(error), error_message(error)
    resource_text = f" {resource}" if resource else ""
    if _THROTTLE_CODES.search(code):
        return Throttled(
            f"{service}:{error.operation_name}{resource_text} is throttled: try again later."
        )
    if _WRONG_CLOCK_SIGNS.search(f"{code} {message}"):
        return NoCredentials(
            f"AWS refuses requests signed at this machine's time ({code}): set its clock."
        )
    if _CREDENTIAL_CODES.search(code):
        return NoCredentials(f"The AWS credentials are expired or not valid ({code}): {_LOG_IN}.")
    if _DENIED_CODES.search(code):
        match = _ACTION.search(message)
        action = match[1] if match else f"{service}:{error.operation_name}"
        return AccessDenied(action, f"{action}{resource_text} is not permitted.")
    return Unavailable(
        f"{service}:{error.operation_name}{resource_text} was refused: {code} {message}"
    )


def is_throttle(answer: Any) -> bool:
    """Returns True if AWS throttled the request that this parsed response answers."""
    code = answer.get("Error", {}).get("Code") if isinstance(answer, Mapping) else None
    return isinstance(code, str) and _THROTTLE_CODES.search(code) is not None


def new_session(profile: str | None = None, region: str | None = None, core: Any = None) -> Any:
    """Returns a boto3 session. Without a profile or region, the process's own are used.

    Its clients return times in UTC. `core` is botocore's session; by default a new one.
    """
    core = core or botocore.session.get_session()
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_parse_time)
    return boto3.Session(botocore_session=core, profile_name=profile, region_name=region)


def _parse_time(value: Any) -> Any:
    # CloudWatch's answer has a time for each point. The SDK would convert each to local time, which
    # takes 20 times as long. It still reads texts, and times that are out of range.
    try:
        return datetime.fromtimestamp(value, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return parse_timestamp(value)


def client(session: Any, service: str, region: str | None = None, config: Config = CONFIG) -> Any:
    """Returns a boto3 client with sageaudit's retries and timeouts."""
    return session.client(service, region_name=region, config=config)


def known_regions() -> set[str]:
    """Returns the SageMaker regions of all partitions that the installed SDK lists."""
    session = boto3.Session()
    return {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("sagemaker", partition_name=partition)
    }


class OutOfTime(BotoCoreError):  # type: ignore[misc]
    """No time is left for a request. The SDK does not retry after this error."""

    fmt = "no time was left to ask {operation}"


class TimeLimitedClients:
    """Creates clients whose requests fail when the function has little time left.

    `clock` is Lambda's clock. SQS requests are not limited.
    """

    def __init__(self, session: Any, clock: Callable[[], datetime]) -> None:
        self._session = session
        self._clock = clock
        self._ends_at: datetime | None = None

    def start(self, remaining_ms: float | None) -> None:
        """Sets a record's time limit. `remaining_ms` is None if the function has no timeout."""
        time_left = (
            None
            if remaining_ms is None
            else timedelta(milliseconds=remaining_ms, seconds=-RESERVE_S)
        )
        self._ends_at = None if time_left is None else self._clock() + time_left

    def client(self, service: str, **options: Any) -> Any:
        """Returns a client of the service. Its requests raise OutOfTime when no time is left."""
        new_client = self._session.client(service, **options)
        if service not in SERVICES_WITHOUT_LIMIT:
            new_client.meta.events.register_first("before-send", self._check_time_left)
        return new_client

    def _check_time_left(self, event_name: str, **_: Any) -> None:
        # The SDK calls this hook before each attempt.
        if self._ends_at is not None and self._clock() >= self._ends_at:
            raise OutOfTime(operation=event_name.rpartition(".")[2])
