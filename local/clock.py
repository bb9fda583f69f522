"""The one clock of the local AWS: queues, leases and handlers read it, and nobody sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest import mock


class LocalClock:
    """Stands still until it is moved, and only forwards."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """The time here, in UTC."""
        return self._now

    def forward(self, seconds: float) -> None:
        """Lets time pass."""
        self._now += timedelta(seconds=max(seconds, 0))

    def forward_to(self, moment: datetime) -> None:
        """Lets time pass until then; a moment that is over changes nothing."""
        self._now = max(self._now, moment)

    @contextmanager
    def of_moto(self) -> Iterator[None]:
        """Within this, moto's delays, visibility, retention and streams run by this clock."""

        def utcnow() -> datetime:
            return self._now.replace(tzinfo=None)

        with (
            mock.patch("moto.core.utils.utcnow", utcnow),
            mock.patch("moto.dynamodb.models.table.utcnow", utcnow),
        ):
            yield
