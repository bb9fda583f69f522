"""Network faults between the SDK and the local AWS."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError
from msgspec import Struct

from local.requests import Send, http_answer
from tests.faults.calls import Call, attempt_of, call_name

CONNECT_S, READ_S = 3, 10
"""Timeouts of this project's clients."""
PAGE_S = 2.0
"""How long each page of an endless list takes."""


class Fault(StrEnum):
    """Faults of a call. Those in `LASTING` last; the others happen once."""

    THROTTLED = "throttled-once"
    UNREACHED = "timeout-before"
    UNANSWERED = "timeout-after-effect"
    SERVER_ERROR = "error-500"
    GARBLED = "malformed-body"
    EMPTY = "empty-page"
    THROTTLED_LONG = "throttled-for-ever"
    DENIED = "denied"
    HANGS = "hangs-for-ever"
    DOWN = "500-for-ever"
    ENDLESS = "endless-token"


LASTING = frozenset({Fault.THROTTLED_LONG, Fault.DENIED, Fault.HANGS, Fault.DOWN, Fault.ENDLESS})


class Broken(Struct, frozen=True):
    """A call that fails until a time; None: once. `error` replaces the fault."""

    call: Call
    fault: Fault
    until: datetime | None = None
    error: tuple[int, str] | None = None


@dataclass
class Network:
    """Sits between the handlers and AWS.

    `running` returns the calling function; `wait` lets time pass.
    """

    running: Callable[[], str]
    wait: Callable[[float], None]
    now: Callable[[], datetime]
    broken: list[Broken] = field(default_factory=list)
    seen: list[Call] = field(default_factory=list)
    plan: Callable[[str, str], Fault | tuple[int, str] | None] = lambda *_: None
    """The fault or error of a request by function and call, if `broken` has none."""
    struck: int = 0
    """How many requests failed."""
    _numbers: Counter[tuple[str, str]] = field(default_factory=Counter)
    _tokens: Any = field(default_factory=count)

    def __call__(self, operation: str, request: AWSPreparedRequest, send: Send) -> AWSResponse:
        """Implements Between."""
        function, name = self.running(), call_name(operation, request)
        first = attempt_of(request) == 1
        if first:
            self._numbers[function, name] += 1
            self.seen.append(Call(function, name, self._numbers[function, name]))
        number = self._numbers[function, name]
        for broken_call in self.broken:
            if (broken_call.call.function, broken_call.call.name) == (function, name) and (
                (broken_call.until is None and first and number == broken_call.call.number)
                or (
                    broken_call.until is not None
                    and number >= broken_call.call.number
                    and self.now() < broken_call.until
                )
            ):
                self.struck += 1
                if broken_call.error is not None:
                    return _refused(
                        operation.split(".", maxsplit=1)[0], request.url, *broken_call.error
                    )
                return self._struck(broken_call.fault, operation, request, send)
        planned = self.plan(function, name)
        if planned is None:
            return send()
        self.struck += 1
        if isinstance(planned, tuple):
            return _refused(operation.split(".", maxsplit=1)[0], request.url, *planned)
        return self._struck(planned, operation, request, send)

    def _struck(
        self, fault: Fault, operation: str, request: AWSPreparedRequest, send: Send
    ) -> AWSResponse:
        service, url = operation.split(".", maxsplit=1)[0], request.url
        match fault:
            case Fault.THROTTLED | Fault.THROTTLED_LONG:
                return _refused(service, url, *THROTTLES.get(service, _THROTTLE))
            case Fault.DENIED:
                return _refused(service, url, *DENIALS.get(service, _DENIAL), operation=operation)
            case Fault.SERVER_ERROR | Fault.DOWN:
                return _refused(service, url, 500, "InternalFailure")
            case Fault.UNREACHED:
                self.wait(CONNECT_S)
                raise ConnectTimeoutError(endpoint_url=url)
            case Fault.HANGS:
                self.wait(READ_S)
                raise ReadTimeoutError(endpoint_url=url)
            case Fault.UNANSWERED:
                send()
                self.wait(READ_S)
                raise ReadTimeoutError(endpoint_url=url)
            case Fault.GARBLED:
                send()
                return http_answer(url, 200, b"<html><body>Please log in to the proxy")
            case Fault.EMPTY:
                return http_answer(url, 200, b"{}")
            case Fault.ENDLESS:
                self.wait(PAGE_S)
                return http_answer(url, 200, _page(operation, next(self._tokens)))


_THROTTLE = (400, "ThrottlingException")
THROTTLES: Mapping[str, tuple[int, str]] = {
    "sns": (429, "Throttled"),
    "sqs": (400, "RequestThrottled"),
    "dynamodb": (400, "ProvisionedThroughputExceededException"),
}
_DENIAL = (400, "AccessDeniedException")
DENIALS: Mapping[str, tuple[int, str]] = {
    "sns": (403, "AuthorizationError"),
    "sqs": (403, "AccessDenied"),
}


def _refused(service: str, url: str, status: int, code: str, *, operation: str = "") -> AWSResponse:
    """Returns an error in the service's format."""
    message = "refused by the test"
    if operation:
        action = operation.replace(".", ":")
        message = f"User: someone is not authorized to perform: {action} on a resource"
    if service == "sns":
        xml = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>"
            f"<Message>{message}</Message></Error><RequestId>r</RequestId></ErrorResponse>"
        )
        return http_answer(url, status, xml.encode())
    return http_answer(url, status, {"__type": code, "message": message})


def _page(operation: str, token: int) -> dict[str, Any]:
    """Returns an empty page with a next token that is never the same."""
    if operation == "dynamodb.Query":
        last = {"pk": {"S": f"SUM#{token}"}, "sk": {"S": f"row {token}"}}
        return {"Items": [], "Count": 0, "LastEvaluatedKey": last}
    rows: dict[str, Any] = {
        "cloudwatch.GetMetricData": {"MetricDataResults": [], "Messages": []},
        "cloudwatch.ListMetrics": {"Metrics": []},
        "pricing.GetProducts": {"PriceList": []},
        "sagemaker.ListTags": {"Tags": []},
        "sagemaker.ListTrainingJobs": {"TrainingJobSummaries": []},
        "sagemaker.ListProcessingJobs": {"ProcessingJobSummaries": []},
        "sagemaker.ListTransformJobs": {"TransformJobSummaries": []},
        "sagemaker.ListHyperParameterTuningJobs": {"HyperParameterTuningJobSummaries": []},
    }[operation]
    return {**rows, "NextToken": f"page-{token}"}
