"""Threads that make calls at the same time.

They are daemons, which a pool of the standard library has not: a request that is under way when the
command ends does not hold it up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar, cast

from sageaudit.ports import Pending

T = TypeVar("T")
_LOOK_S = 0.2
"""How long a caller waits before it may look whether it shall stop."""
_Task = tuple[Future[Any], Callable[[], Any]]


class Threads:
    """Implements Workers. At its end no call is begun any more, and none is waited for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while not self._tasks.empty():
            try:
                task = self._tasks.get_nowait()
            except Empty:  # a thread was faster
                break
            if task is not None:
                task[0].cancel()
        for _number in range(self._count):
            self._tasks.put(None)

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Has a thread make the call, as soon as one is free."""
        future: Future[T] = Future()
        self._tasks.put((future, call))
        if self._count < self._most:
            self._count += 1
            threading.Thread(target=self._work, name="sageaudit", daemon=True).start()
        return future

    def first_done(self, pending: Collection[Pending[T]]) -> Collection[Pending[T]]:
        """Those that are done; none after 0.2 s without one."""
        futures = cast("Collection[Future[T]]", pending)
        return wait(futures, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            if future.set_running_or_notify_cancel():
                _make(future, call)
            del task, future, call  # nothing of the call is kept while the thread waits


def _make(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
        future.set_exception(error)
    else:
        future.set_result(result)
