"""Translates AWS errors into this project's errors, and sets the clients' retries.

Only the SDK retries: six attempts in about 10 seconds. Longer waits are left to SQS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)

from sageaudit.domain.job.redact import redact
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, Throttled, Unavailable

CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 6}, connect_timeout=3, read_timeout=10
)

_THROTTLES = re.compile(r"Throttl|RequestLimitExceeded|TooManyRequests|SlowDown|LimitExceeded\Z")
_DENIED = re.compile(r"AccessDenied|UnauthorizedOperation|NotAuthorized|AuthorizationError")
_NO_CREDENTIALS = re.compile(
    r"ExpiredToken|InvalidClientTokenId|UnrecognizedClient|InvalidSignature|SignatureDoesNotMatch"
    r"|IncompleteSignature|InvalidAccessKeyId"
)
_WRONG_CLOCK = re.compile(
    r"RequestTimeTooSkewed|RequestExpired|RequestInTheFuture|Signature expired|not yet current"
)
"""Of the error's code, or of the message of InvalidSignatureException."""
_ACTION = re.compile(r"not authorized to perform: ([\w-]+:\w+)")
_CREDENTIALS_MISSING = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    ProfileNotFound,
    TokenRetrievalError,
)


def code_of(error: ClientError) -> str:
    """The error code, empty when the response has none."""
    return str(error.response.get("Error", {}).get("Code", ""))


def message_of(error: ClientError) -> str:
    """AWS's error message without secrets, at most 300 characters.

    AWS quotes in it what the caller sent.
    """
    return redact(str(error.response.get("Error", {}).get("Message", "")))[:300]


@contextmanager
def aws_errors(service: str, where: str = "") -> Iterator[None]:
    """Turns botocore's errors into NoCredentials, AccessDenied, Throttled or Unavailable.

    `service` is the IAM prefix, such as "sagemaker"; `where` names the resource in the message.
    """
    try:
        yield
    except ClientError as error:
        raise translated(error, service, where) from error
    except _CREDENTIALS_MISSING as error:
        raise NoCredentials(f"No usable AWS credentials: {redact(str(error))}") from error
    except BotoCoreError as error:
        raise Unavailable(f"{service} did not answer: {redact(str(error))}") from error


def translated(error: ClientError, service: str, where: str = "") -> AwsError:
    """The project's error for a ClientError."""
    code, message = code_of(error), message_of(error)
    on = f" {where}" if where else ""
    if _THROTTLES.search(code):
        return Throttled(f"{service}:{error.operation_name}{on} is throttled: try again later.")
    if _WRONG_CLOCK.search(f"{code} {message}"):
        return NoCredentials(
            f"AWS refuses requests signed at this machine's time ({code}): set its clock."
        )
    if _NO_CREDENTIALS.search(code):
        return NoCredentials(f"The AWS credentials are expired or not valid ({code}).")
    if _DENIED.search(code):
        named = _ACTION.search(message)
        action = named[1] if named else f"{service}:{error.operation_name}"
        return AccessDenied(action, f"{action}{on} is not permitted.")
    return Unavailable(f"{service}:{error.operation_name}{on} was refused: {code} {message}")


def is_throttle(answer: Any) -> bool:
    """Whether a parsed response says that too many requests were sent."""
    code = answer.get("Error", {}).get("Code") if isinstance(answer, Mapping) else None
    return isinstance(code, str) and _THROTTLES.search(code) is not None


def client(session: Any, service: str, region: str | None = None, config: Config = CONFIG) -> Any:
    """A boto3 client with this project's retries and timeouts, or those of `config`."""
    return session.client(service, region_name=region, config=config)


def known_regions() -> set[str]:
    """The SageMaker regions of all partitions, as the installed SDK lists them."""
    session = boto3.Session()
    return {
        region
        for partition in session.get_available_partitions()
        for region in session.get_available_regions("sagemaker", partition_name=partition)
    }
