"""Faults at a chosen step of an API call, through botocore's own events."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ReadTimeoutError


class Killed(BaseException):
    """The process ends here."""


@contextmanager
def meanwhile(client: Any, event: str, act: Callable[..., Any]) -> Iterator[None]:
    """Does something at a step of an API call: before-call or after-call, and the operation."""
    when, operation = event.split(" ")
    name = f"{when}.dynamodb.{operation}"
    client.meta.events.register_first(name, act)
    try:
        yield
    finally:
        client.meta.events.unregister(name, act)


_NOT_AUTHORIZED = "User x is not authorized to perform: dynamodb:PutItem"


def refusal(
    code: str, *, times: int = 1_000, reasons: tuple[str, ...] = (), message: str = _NOT_AUTHORIZED
) -> Callable[..., Any]:
    """Answers the first calls with an error, as AWS would."""
    left = [times]
    body = {
        "Error": {"Code": code, "Message": message},
        "CancellationReasons": [{"Code": reason} for reason in reasons],
        "ResponseMetadata": {},
    }

    def answer(**_: Any) -> Any:
        left[0] -= 1
        return None if left[0] < 0 else (SimpleNamespace(status_code=400), body)

    return answer


def once(act: Callable[[], Any]) -> Callable[..., None]:
    """Acts at the first call only."""
    left = [act]

    def acting(**_: Any) -> None:
        if left:
            left.pop()()

    return acting


def everything(client: Any, table: str) -> list[dict[str, Any]]:
    """All items, for looking at what a test left behind."""
    items: list[dict[str, Any]] = client.scan(TableName=table)["Items"]
    return items


def kill(**_: Any) -> None:
    """Ends the process at this step."""
    raise Killed


def time_out() -> None:
    """Loses the answer."""
    raise ReadTimeoutError(endpoint_url="https://dynamodb")


@contextmanager
def called_actions(client: Any) -> Iterator[set[str]]:
    """The IAM actions of the calls in this block; of a transaction, those of its parts."""
    called: set[str] = set()

    def note(model: Any, params: dict[str, Any], **_: Any) -> None:
        if model.name != "TransactWriteItems":
            called.add(f"dynamodb:{model.name}")
            return
        actions = json.loads(params["body"])["TransactItems"]
        called.update(f"dynamodb:{kind}Item" for action in actions for kind in action)

    client.meta.events.register_first("before-call.dynamodb", note)
    try:
        yield called
    finally:
        client.meta.events.unregister("before-call.dynamodb", note)
