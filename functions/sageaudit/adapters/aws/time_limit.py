"""Ends the requests of one record in time, so that a function answers before Lambda kills it.

The SDK tries a request that hangs six times, 13 seconds each, and an audit makes a dozen requests.
So no try begins once the record's time is up: a function that is killed says nothing about why.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError

UNLIMITED = frozenset({"sqs"})
"""SQS must still hear what became of the record."""
RESERVE_S = 60
"""Seconds before the function's end after which no try begins. One that has begun takes at most 13
s, a pause between two tries 16 s; then SQS is told, within two tries of 8 s each."""


class OutOfTime(BotoCoreError):  # type: ignore[misc]
    """The SDK repeats a request after errors of the connection, and not after this one."""

    fmt = "no time was left to ask {operation}"


class TimeLimit:
    """Makes clients as `session` does, whose requests end in time. `clock` is that of Lambda."""

    def __init__(self, session: Any, clock: Callable[[], datetime]) -> None:
        self._session = session
        self._clock = clock
        self._until: datetime | None = None

    def begin(self, left_ms: float | None) -> None:
        """A new record: the function has so many milliseconds left; None where there is no end."""
        until = None if left_ms is None else timedelta(milliseconds=left_ms, seconds=-RESERVE_S)
        self._until = None if until is None else self._clock() + until

    def client(self, service: str, **more: Any) -> Any:
        """A client of the service."""
        made = self._session.client(service, **more)
        if service not in UNLIMITED:
            made.meta.events.register_first("before-send", self._check)
        return made

    def _check(self, event_name: str, **_: Any) -> None:
        """Called by the SDK before each try, the first one included."""
        if self._until is not None and self._clock() >= self._until:
            raise OutOfTime(operation=event_name.rpartition(".")[2])
