"""The only clock of the local AWS: queues, leases and handlers read it, and nothing sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest import mock

import moto.sts.models  # noqa: F401 - if first imported in the block below, it would keep that clock


class LocalClock:
    """A clock that stands still until it is moved; it moves only forward."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """Returns the current time of this clock, in UTC."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Moves the clock forward."""
        self._now += timedelta(seconds=max(seconds, 0))

    def advance_to(self, moment: datetime) -> None:
        """Moves the clock forward to a time; a time in the past changes nothing."""
        self._now = max(self._now, moment)

    @contextmanager
    def patch_moto(self) -> Iterator[None]:
        """Makes moto's delays, visibility, retention and streams use this clock."""

        def utcnow() -> datetime:
            return self._now.replace(tzinfo=None)

        with (
            mock.patch("moto.core.utils.utcnow", utcnow),
            mock.patch("moto.dynamodb.models.table.utcnow", utcnow),
        ):
            yield
