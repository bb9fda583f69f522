"""Handles Ctrl-C in long commands. Finished work is kept and shown."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from sageaudit.adapters.aws.pace import ScanStopped

_POLL_INTERVAL_S = 0.1
"""Seconds between two checks of a waiting thread whether Ctrl-C was pressed."""


class Interruption:
    """Handles Ctrl-C in a `with` block. The first one sets a flag, the second one ends the command.

    The flag has no lock. If the interrupted thread held it, the signal handler would wait for ever.
    """

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line
        self._requested = False
        self._previous_handler: Any = None

    def __enter__(self) -> Self:
        self._previous_handler = signal.signal(signal.SIGINT, self._handle_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous_handler)

    @property
    def is_requested(self) -> bool:
        """True if Ctrl-C was pressed."""
        return self._requested

    @contextmanager
    def during_question(self) -> Iterator[None]:
        """Lets Ctrl-C end the command at once while a person is asked."""
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._handle_signal)

    def sleep(self, seconds: float) -> None:
        """Waits this many seconds. Raises ScanStopped as soon as Ctrl-C was pressed."""
        end = time.monotonic() + seconds
        while not self._requested and (remaining_s := end - time.monotonic()) > 0:
            time.sleep(min(remaining_s, _POLL_INTERVAL_S))
        if self._requested:
            raise ScanStopped

    def _handle_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_requested:
            signal.default_int_handler(number, frame)
        self._requested = True
        with suppress(RuntimeError):  # the signal may arrive while stderr is written
            self._print_line("stopping: finished work is kept. Press Ctrl-C again to end at once.")
