"""Workers without threads, so that every run has the same order of requests."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, Self, TypeVar

from sageaudit.ports import PendingCall

T = TypeVar("T")


class _DoneCall(Generic[T]):
    """Implements PendingCall: a call that has run."""

    def __init__(self, answer: T) -> None:
        self._answer = answer

    def result(self) -> T:
        return self._answer

    def cancel(self) -> bool:
        return False


class InlineWorkers:
    """Implements Workers: each call runs when it is submitted."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, call: Callable[[], T]) -> PendingCall[T]:
        """Runs the call. Raises what it raises."""
        return _DoneCall(call())

    def wait_for_any(self, pending_calls: Collection[PendingCall[T]]) -> Collection[PendingCall[T]]:
        """Returns all calls."""
        return list(pending_calls)
