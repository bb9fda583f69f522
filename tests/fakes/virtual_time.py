"""Threads in virtual time: one runs at a time, and the clock jumps to the next wake-up."""

import heapq
import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeVar

from sageaudit.ports import PendingCall

T = TypeVar("T")


@dataclass(eq=False)
class VirtualCall(Generic[T]):
    """Implements PendingCall."""

    time: "VirtualTime"
    call: Callable[[], T]
    go: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None
    is_done: bool = False
    answer: list[T] = field(default_factory=list)
    error: BaseException | None = None

    def result(self) -> T:
        self.time.run_until(lambda: self.is_done)
        if self.error is not None:
            raise self.error
        return self.answer.pop()

    def cancel(self) -> bool:
        return self.time.forget(self)

    def run(self) -> None:
        self.go.wait()
        try:
            self.answer.append(self.call())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            self.error = error
        self.is_done = True
        self.time.finished(self)


class VirtualTime:
    """Implements Workers with `max_threads` threads, which share `clock` and `sleep`."""

    def __init__(self, max_threads: int = 32) -> None:
        self.now_s = 0.0
        self._max_threads = max_threads
        self._waiting: deque[VirtualCall[Any]] = deque()
        self._ready: deque[VirtualCall[Any]] = deque()
        self._asleep: list[tuple[float, int, VirtualCall[Any] | None]] = []
        self._numbers = count()
        self._active = 0
        self._current: VirtualCall[Any] | None = None
        self._back = threading.Event()

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Lets other workers run meanwhile; outside workers, runs them until then."""
        if seconds <= 0:
            return
        call, until = self._current, self.now_s + seconds
        heapq.heappush(self._asleep, (until, next(self._numbers), call))
        if call is None:
            self.run_until(lambda: self.now_s >= until)
            return
        call.go.clear()
        self._back.set()
        call.go.wait()

    def submit(self, call: Callable[[], T]) -> VirtualCall[T]:
        call_handle = VirtualCall(self, call)
        self._waiting.append(call_handle)
        return call_handle

    def wait_for_any(self, pending: Collection[PendingCall[T]]) -> Collection[PendingCall[T]]:
        calls: list[Any] = list(pending)
        self.run_until(lambda: any(call.is_done for call in calls))
        return [call for call in calls if call.is_done]

    def forget(self, call: VirtualCall[Any]) -> bool:
        if call in self._waiting:
            self._waiting.remove(call)
            return True
        return False

    def finished(self, _: VirtualCall[Any]) -> None:
        self._active -= 1
        self._back.set()

    def run_until(self, true: Callable[[], bool]) -> None:
        while not true():
            while self._waiting and self._active < self._max_threads:
                self._begin(self._waiting.popleft())
            if not self._ready:
                self._wake()
            else:
                self._let(self._ready.popleft())

    def _begin(self, call: VirtualCall[Any]) -> None:
        self._active += 1
        call.thread = threading.Thread(target=call.run, daemon=True)
        call.thread.start()
        self._ready.append(call)

    def _wake(self) -> None:
        self.now_s, _, call = heapq.heappop(self._asleep)
        if call is not None:
            self._ready.append(call)

    def _let(self, call: VirtualCall[Any]) -> None:
        self._current = call
        self._back.clear()
        call.go.set()
        self._back.wait()
        self._current = None
        if call.is_done and call.thread is not None:
            call.thread.join()
