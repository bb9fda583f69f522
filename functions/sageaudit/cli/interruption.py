"""Ctrl-C as a wish that a long command looks at, so that what is done is kept and shown."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from sageaudit.adapters.aws.pace import Stopped

_LOOK_S = 0.1
"""How often a thread that waits looks whether Ctrl-C was pressed."""


class Interruption:
    """While it is open, the first Ctrl-C only marks; the second one ends the command at once.

    The mark has no lock: a handler that waits for one that its own thread holds waits for ever.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._wished = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._mark)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @property
    def wished(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._wished

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
        until = time.monotonic() + seconds
        while not self._wished and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_S))
        if self._wished:
            raise Stopped

    def _mark(self, number: int, frame: FrameType | None) -> None:
        if self.wished:
            signal.default_int_handler(number, frame)
        self._wished = True
        with suppress(RuntimeError):  # it may come while stderr is written
            self._say("stopping: what is done is kept. Ctrl-C again ends at once.")
