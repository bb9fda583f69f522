"""Daemon threads that make calls at the same time.

The standard library's pools have no daemon threads, so a running request would delay the end of a
command or of a function's invocation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from queue import Empty, SimpleQueue
from typing import Any, Self, TypeVar, cast

from sageaudit.ports import PendingCall, Workers

T = TypeVar("T")
_POLL_INTERVAL_S = 0.2
"""Seconds between two checks whether the user stopped the command."""
OpenWorkers = Callable[[], AbstractContextManager[Workers]]
"""Opens workers for the time of a `with` block."""
_LAMBDA_THREADS = 32
"""The threads of a Lambda function, as many as `workflows/side_by_side.py` keeps busy."""
_Task = tuple[Future[Any], Callable[[], Any]]


class DaemonThreads:
    """Implements Workers with daemon threads.

    After the `with` block no further call starts. Nothing waits for calls that still run.
    """

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
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
        """Queues the call for the next free thread."""
        future: Future[T] = Future()
        self._tasks.put((future, call))
        if self._count < self._max_threads:
            self._count += 1
            threading.Thread(target=self._work, name="sageaudit", daemon=True).start()
        return future

    def wait_for_any(self, pending_calls: Collection[PendingCall[T]]) -> Collection[PendingCall[T]]:
        """Returns the finished calls. The collection is empty if none finishes within 0.2 s."""
        futures = cast("Collection[Future[T]]", pending_calls)
        return wait(futures, timeout=_POLL_INTERVAL_S, return_when=FIRST_COMPLETED).done

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            if future.set_running_or_notify_cancel():
                _run_task(future, call)
            del task, future, call  # the waiting thread must not keep the data of the call alive


def _run_task(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
        future.set_exception(error)
    else:
        future.set_result(result)


def open_threads() -> DaemonThreads:
    """Returns the threads of a Lambda function."""
    return DaemonThreads(_LAMBDA_THREADS)
