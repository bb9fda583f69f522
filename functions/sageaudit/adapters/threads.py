"""Threads that make calls at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar, cast

from sageaudit.ports import Pending

T = TypeVar("T")
_LOOK_S = 0.2
"""How long a caller waits before it may look whether it shall stop."""


class Threads:
    """Implements Workers. At its end no call is begun any more, and none is waited for."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="sageaudit")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Has a thread make the call, as soon as one is free."""
        return self._pool.submit(call)

    def first_done(self, pending: Collection[Pending[T]]) -> Collection[Pending[T]]:
        """Those that are done; none after 0.2 s without one."""
        futures = cast("Collection[Future[T]]", pending)
        return wait(futures, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done
