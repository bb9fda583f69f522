"""A stand-in for EventBridge Scheduler: invokes sweep and watch as often as the template says."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

from local.clock import LocalClock
from local.stack import TEMPLATE

_MINUTES = re.compile(r"cron\(\d+/(\d+) \* \* \* \? \*\)")


class Schedule:
    """The times of sweep and watch, which are the same here; no times if they are off."""

    def __init__(self, clock: LocalClock, *, is_enabled: bool) -> None:
        self.interval = _interval()
        self.is_enabled = is_enabled
        self._clock = clock
        self._next = clock.now() + self.interval

    def is_due(self) -> bool:
        """Whether the clock has reached the next time."""
        return self.is_enabled and self._clock.now() >= self._next

    def mark_run(self) -> None:
        """Sets the next time to the first one after now, as the clock may skip some times."""
        while self._next <= self._clock.now():
            lateness = self._clock.now() - self._next
            self._next += self.interval * max(lateness // self.interval, 1)

    @property
    def next_at(self) -> datetime | None:
        """The next time; None if the schedule is off."""
        return self._next if self.is_enabled else None


def _interval() -> timedelta:
    """Returns the interval of the template's schedules, which moto does not create."""
    resources = json.loads(TEMPLATE.read_text(encoding="utf-8"))["Resources"].values()
    expressions = {
        resource["Properties"]["ScheduleExpression"]
        for resource in resources
        if resource["Type"] == "AWS::Scheduler::Schedule"
    }
    [minutes] = {match[1] for match in map(_MINUTES.fullmatch, expressions) if match}
    return timedelta(minutes=int(minutes))
