"""Translates AWS errors into this project's errors, and sets the clients' retries.

Only the SDK retries: six attempts in about 10 seconds. Longer waits are left to SQS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import boto3
import botocore
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
from botocore.loaders import Loader
from botocore.parsers import ResponseParserError

from sageaudit.domain.request.validity import ApiModel
from sageaudit.domain.token_shapes import redact
from sageaudit.errors import (
    PARSE_ERRORS,
    AccessDenied,
    AwsError,
    NoCredentials,
    Throttled,
    Unavailable,
)

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 6}, connect_timeout=3, read_timeout=10
)
QUICK_CONFIG = CONFIG.merge(
    Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=2, read_timeout=3)
)
"""For functions that make several calls before their time-out: a call ends within 12 seconds."""

_THROTTLES = re.compile(r"Throttl|RequestLimitExceeded|TooManyRequests|SlowDown|LimitExceeded\Z")
_DENIED_CODES = re.compile(r"AccessDenied|UnauthorizedOperation|NotAuthorized|AuthorizationError")
_CREDENTIAL_CODES = re.compile(
    r"ExpiredToken|InvalidClientTokenId|UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch"
    r"|IncompleteSignature|InvalidAccessKeyId"
)
_WRONG_CLOCK = re.compile(
    r"RequestTimeTooSkewed|RequestExpired|RequestInTheFuture|Signature expired|not yet current"
)
"""In the error's code, or in the message of InvalidSignatureException."""
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
"""What a person can do about each kind of missing credentials."""
SERVICES_WITHOUT_LIMIT = frozenset({"sqs"})
"""The time limit does not apply to SQS: the result of a record must still be sent there."""
RESERVE_S = 60
"""No try begins in this many seconds before the function's end. A try takes at most 13 s and a
pause between two tries 16 s; the result then goes to SQS, within two tries of 8 s each."""


def error_code(error: ClientError) -> str:
    """Returns the error code, empty if the response has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: ClientError) -> str:
    """Returns AWS's error message without secrets, at most 300 characters.

    AWS quotes in it what the caller sent. A proxy answers with a page of HTML, which says nothing.
    """
    text = str(error.response.get("Error", {}).get("Message", ""))
    return "(a page of HTML, as a proxy sends)" if _HTML.match(text) else redact(text)[:300]


@contextmanager
def aws_errors(service: str, resource: str = "") -> Iterator[None]:
    """Turns botocore's errors into NoCredentials, AccessDenied, Throttled or Unavailable.

    `service` is the IAM prefix, such as "sagemaker"; `resource` is named in the message.
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
    """Turns the errors of reading an incomplete or mistyped answer into Unavailable.

    Only for the lines that read an answer: a defect in other lines would pass for a bad answer.
    """
    try:
        yield
    except PARSE_ERRORS as error:
        raise unreadable_answer_error(service) from error


def is_parser_error(error: Exception) -> bool:
    """Whether the SDK could not read an answer: its parser raises many types of error."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__") == _PARSER:
            return True
        frame = frame.tb_next
    return isinstance(error, ResponseParserError)


def read_text(row: Mapping[str, Any], key: str) -> str:
    """Returns the text under a key. Raises TypeError or KeyError, for `parse_errors`."""
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is not a text")
    return value


def require_key(answer: Mapping[str, Any], key: str) -> Any:
    """Returns what AWS always answers under a key. Raises Unavailable if it is missing."""
    if key not in answer:
        raise Unavailable(f"An answer of AWS has no {key}; is a proxy between? Try again later.")
    return answer[key]


def no_answer_error(error: BotoCoreError, service: str) -> AwsError:
    """Returns the error for a missing answer: NoCredentials with what to do, or Unavailable."""
    text = redact(str(error)).strip().rstrip(".:")
    for kinds, what_to_do in _CREDENTIAL_ADVICE:
        if isinstance(error, kinds):
            return NoCredentials(f"No usable AWS credentials: {text}; {what_to_do}.")
    return Unavailable(f"{service} did not answer: {text}.")


def unreadable_answer_error(service: str) -> Unavailable:
    """Returns the error for an answer that is not AWS's."""
    return Unavailable(f"{service} sent an answer that cannot be read; is a proxy between?")


def translate_error(error: ClientError, service: str, resource: str = "") -> AwsError:
    """Returns the project's error for a ClientError."""
    code, message = error_code(error), error_message(error)
    on = f" {resource}" if resource else ""
    if _THROTTLES.search(code):
        return Throttled(f"{service}:{error.operation_name}{on} is throttled: try again later.")
    if _WRONG_CLOCK.search(f"{code} {message}"):
        return NoCredentials(
            f"AWS refuses requests signed at this machine's time ({code}): set its clock."
        )
    if _CREDENTIAL_CODES.search(code):
        return NoCredentials(f"The AWS credentials are expired or not valid ({code}): {_LOG_IN}.")
    if _DENIED_CODES.search(code):
        named = _ACTION.search(message)
        action = named[1] if named else f"{service}:{error.operation_name}"
        return AccessDenied(action, f"{action}{on} is not permitted.")
    return Unavailable(f"{service}:{error.operation_name}{on} was refused: {code} {message}")


def is_throttle(answer: Any) -> bool:
    """Whether a parsed response says that too many requests were sent."""
    code = answer.get("Error", {}).get("Code") if isinstance(answer, Mapping) else None
    return isinstance(code, str) and _THROTTLES.search(code) is not None


def new_session() -> Any:
    """Returns a boto3 session with the credentials and the region of this process."""
    return boto3.Session()


def client(session: Any, service: str, region: str | None = None, config: Config = CONFIG) -> Any:
    """Returns a boto3 client with this project's retries and timeouts, or those of `config`."""
    return session.client(service, region_name=region, config=config)


def known_regions() -> set[str]:
    """Returns the SageMaker regions of all partitions, as the installed SDK lists them."""
    session = boto3.Session()
    return {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("sagemaker", partition_name=partition)
    }


@cache
def api_model() -> ApiModel:
    """Returns the model of the installed SDK: a newer SDK knows newer parameters."""
    model = Loader().load_service_model("sagemaker", "service-2")
    return ApiModel(model["shapes"], f"botocore {botocore.__version__}")


def instance_types() -> frozenset[str]:
    """Returns the instance types that jobs can have."""
    shapes = api_model().shapes
    kinds = ("Training", "Processing", "Transform")
    return frozenset().union(*(shapes[f"{kind}InstanceType"]["enum"] for kind in kinds))


class OutOfTime(BotoCoreError):  # type: ignore[misc]
    """No time is left. The SDK repeats a request after connection errors, not after this."""

    fmt = "no time was left to ask {operation}"


class TimeLimit:
    """Makes clients as `session` does, whose requests end in time. `clock` is Lambda's clock."""

    def __init__(self, session: Any, clock: Callable[[], datetime]) -> None:
        self._session = session
        self._clock = clock
        self._until: datetime | None = None

    def start(self, remaining_ms: float | None) -> None:
        """Begins a record: the function has `remaining_ms` left; None if it has no end."""
        until = (
            None
            if remaining_ms is None
            else timedelta(milliseconds=remaining_ms, seconds=-RESERVE_S)
        )
        self._until = None if until is None else self._clock() + until

    def client(self, service: str, **options: Any) -> Any:
        """Returns a client of the service."""
        new_client = self._session.client(service, **options)
        if service not in SERVICES_WITHOUT_LIMIT:
            new_client.meta.events.register_first("before-send", self._check)
        return new_client

    def _check(self, event_name: str, **_: Any) -> None:
        """Raises OutOfTime if no time is left; the SDK calls it before each try."""
        if self._until is not None and self._clock() >= self._until:
            raise OutOfTime(operation=event_name.rpartition(".")[2])
