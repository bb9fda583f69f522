"""Ctrl-C as a wish that a long command looks at, so that what is done is kept and shown."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from sageaudit.adapters.aws.pace import Stopped


class Interruption:
    """While it is open, the first Ctrl-C only marks; the second one ends the command at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wished = threading.Event()
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._mark)
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def wished(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._wished.is_set()

    @contextmanager
    def question(self) -> Iterator[None]:
        """While somebody is asked, Ctrl-C answers at once."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._mark)

    def sleep(self, seconds: float) -> None:
        """Waits. Raises Stopped as soon as Ctrl-C was pressed."""
        if self._wished.wait(seconds):
            raise Stopped

    def _mark(self, number: int, frame: FrameType | None) -> None:
        if self.wished:
            signal.default_int_handler(number, frame)
        self._wished.set()
        self._say("stopping: what is done is kept. Ctrl-C again ends at once.")
