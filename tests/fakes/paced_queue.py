"""The queue of finished jobs and the functions that audit its jobs, in virtual time."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sageaudit.errors import AwsError
from sageaudit.ports import QueueDepth


@dataclass
class PacedAuditQueue:
    """Implements PacedQueue.

    Each message occupies one of `at_once` functions for `audit_s` seconds. `live`: times at which
    jobs of today end. `fails`: errors of the next sends. `waits_s`: how long each message of today,
    and of the past, waited for a function.
    """

    clock: Callable[[], float]
    at_once: int = 5
    audit_s: float = 10.0
    live: deque[float] = field(default_factory=deque)
    fails: list[AwsError] = field(default_factory=list)
    refuses: frozenset[int] = frozenset()
    names: list[str] = field(default_factory=list)
    waits_s: dict[str, list[float]] = field(default_factory=lambda: {"today": [], "past": []})
    max_depth: int = 0
    _free_at: deque[float] = field(default_factory=deque)
    _begin_at: deque[float] = field(default_factory=deque)

    def send_batch(self, bodies: Sequence[str], *, delay_s: int = 0) -> dict[int, str]:
        """Queues each body behind the waiting ones."""
        assert delay_s == 1, "the queue's own delay is for metrics"
        self._until_now()
        if self.fails:
            raise self.fails.pop(0)
        accepted = [body for place, body in enumerate(bodies) if place not in self.refuses]
        for body in accepted:
            self.names += _names(json.loads(body)["detail"])
            self._take(self.clock(), "past")
        return dict.fromkeys(self.refuses, "InternalError")

    def depth(self) -> QueueDepth:
        """Returns how many messages no function has begun."""
        self._until_now()
        while self._begin_at and self._begin_at[0] <= self.clock():
            self._begin_at.popleft()
        self.max_depth = max(self.max_depth, len(self._begin_at))
        return QueueDepth(len(self._begin_at), 0, 345_600)

    def _until_now(self) -> None:
        while self.live and self.live[0] <= self.clock():
            self._take(self.live.popleft(), "today")

    def _take(self, at: float, whose: str) -> None:
        """Assigns the message to the function that is free first."""
        free_at = self._free_at.popleft() if len(self._free_at) == self.at_once else at
        begins = max(at, free_at)
        self._free_at.append(begins + self.audit_s)
        self._begin_at.append(begins)
        self.waits_s[whose].append(begins - at)


def _names(detail: dict[str, str]) -> Iterable[str]:
    return (value for key, value in detail.items() if key.endswith("JobName"))
