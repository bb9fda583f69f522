"""EventBridge Scheduler: when the sweep is invoked, as the template says."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta

from local.clock import LocalClock
from local.stack import TEMPLATE

_RATE = re.compile(r"rate\((\d+) minutes\)")


class Schedule:
    """The times of the stack's one schedule with a rate; none if it is off."""

    def __init__(self, clock: LocalClock, *, is_enabled: bool) -> None:
        self.every = _rate()
        self.on = is_enabled
        self._clock = clock
        self._next = clock.now() + self.every

    def is_due(self) -> bool:
        """Whether the clock has passed the next time."""
        return self.on and self._clock.now() >= self._next

    def mark_run(self) -> None:
        """Sets the next time to the first one after now: the clock may have skipped some."""
        while self._next <= self._clock.now():
            late = self._clock.now() - self._next
            self._next += self.every * max(late // self.every, 1)

    @property
    def next_at(self) -> datetime | None:
        """Returns the next time; None if the schedule is off."""
        return self._next if self.on else None


def _rate() -> timedelta:
    """Returns the rate of the template's schedule, which moto does not create."""
    resources = json.loads(TEMPLATE.read_text(encoding="utf-8"))["Resources"].values()
    expressions = (
        resource["Properties"]["ScheduleExpression"]
        for resource in resources
        if resource["Type"] == "AWS::Scheduler::Schedule"
    )
    [rate] = filter(None, map(_RATE.fullmatch, expressions))
    return timedelta(minutes=int(rate[1]))
