"""Counts a function's calls to its ports, and lets them fail, lose answers or kill the process.

`CallProxy` stands between the function and a fake, which keeps what it is given. `Faults` plans
which calls fail.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from local.functions import ProcessKilled

NOON = datetime(2026, 5, 20, 13, 10, tzinfo=UTC)


@dataclass
class Clock:
    """A clock that stands still at NOON unless moved."""

    now: datetime = NOON

    @property
    def age_s(self) -> float:
        """The seconds since NOON."""
        return (self.now - NOON).total_seconds()

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def ignore(_: str) -> None:
    """Does nothing: the default hook of CallProxy."""


@dataclass
class CallProxy:
    """Passes each call on to `target`.

    `before` and `after` are called with its name, and may raise.
    """

    target: Any
    before: Callable[[str], None] = ignore
    after: Callable[[str], None] = ignore

    def __getattr__(self, name: str) -> Any:
        if not callable(getattr(self.target, name)):
            return getattr(self.target, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.before(name)
            answer = getattr(self.target, name)(*args, **kwargs)
            self.after(name)
            return answer

        return call


def with_steps(target: Any, step: Callable[[], None]) -> Any:
    """Returns a proxy that runs `step` before and after each call."""
    return CallProxy(target, lambda _: step(), lambda _: step())


def no_step() -> None:
    """Does nothing: the default step."""


def at_step(number: int, do: Callable[[], Any]) -> Callable[[], None]:
    """Returns a step that calls `do` once, at its call number `number` (from 0)."""
    numbers = iter(range(1_000_000))

    def step() -> None:
        if next(numbers) == number:
            do()

    return step


def die() -> None:
    """Simulates the end of the process."""
    raise ProcessKilled


def die_at_step(number: int) -> Callable[[], None]:
    """Returns a step that simulates the end of the process at its call number `number`."""
    return at_step(number, die)


@dataclass
class _Fault:
    call: str
    after: bool
    errors: list[BaseException]
    """Raised one per call; the single error of an outage repeats."""
    since: datetime | None = None
    until: datetime | None = None


@dataclass
class Faults:
    """Plans failing calls by name; `calls` counts all calls."""

    clock: Callable[[], datetime]
    calls: Counter[str] = field(default_factory=Counter)
    _planned: list[_Fault] = field(default_factory=list)

    def fail(self, call: str, *errors: BaseException) -> None:
        """Lets the next calls raise these errors, one each, without any effect."""
        self._planned.append(_Fault(call, after=False, errors=[*errors]))

    def lose_answer(self, call: str, *errors: BaseException) -> None:
        """Lets the next calls take effect and then raise these errors, one each."""
        self._planned.append(_Fault(call, after=True, errors=[*errors]))

    def outage(self, call: str, error: Exception, since: datetime, until: datetime) -> None:
        """Lets all calls between two times raise the error, without any effect."""
        self._planned.append(_Fault(call, False, [error], since, until))

    def heal(self) -> None:
        """Removes all planned faults."""
        self._planned.clear()

    @property
    def unused(self) -> list[str]:
        """The names of planned single faults that no call has met."""
        return [fault.call for fault in self._planned if fault.errors and fault.until is None]

    def before(self, call: str) -> None:
        """Counts a call, and raises its planned error, if any."""
        self.calls[call] += 1
        self._raise(call, after=False)

    def after(self, call: str) -> None:
        """Raises the error that is planned for after this call, if any."""
        self._raise(call, after=True)

    def _raise(self, call: str, *, after: bool) -> None:
        for fault in self._planned:
            if (fault.call, fault.after) != (call, after) or not fault.errors:
                continue
            if fault.until is None:
                raise fault.errors.pop(0)
            if fault.since is not None and fault.since <= self.clock() < fault.until:
                raise fault.errors[0]
