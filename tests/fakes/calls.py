"""The calls of a function to its ports: counted, failing, unanswered, or the last of its process.

A fake keeps what it was told. `Watched` stands between it and the function, and `Faults` says which
of the calls fail.
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
    """Stands still at NOON unless moved."""

    now: datetime = NOON

    @property
    def age_s(self) -> float:
        """Seconds since NOON."""
        return (self.now - NOON).total_seconds()

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def ignore(_: str) -> None:
    """What happens at a call that nobody watches."""


@dataclass
class Watched:
    """Passes each call on to `target`; `before` and `after` get its name, and may raise."""

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


def stepped(target: Any, step: Callable[[], None]) -> Any:
    """The target with a step before and after each of its calls."""
    return Watched(target, lambda _: step(), lambda _: step())


def no_step() -> None:
    """A step at which nothing happens."""


def at_step(number: int, do: Callable[[], Any]) -> Callable[[], None]:
    """Does something at the step with this number, once."""
    numbers = iter(range(1_000_000))

    def step() -> None:
        if next(numbers) == number:
            do()

    return step


def die() -> None:
    """Ends the process here."""
    raise ProcessKilled


def dying(number: int) -> Callable[[], None]:
    """Ends the process at the step with this number, once."""
    return at_step(number, die)


@dataclass
class _Fault:
    call: str
    after: bool
    errors: list[BaseException]
    """Raised one a call; the only one of an outage stays."""
    since: datetime | None = None
    until: datetime | None = None


@dataclass
class Faults:
    """The calls that fail, by their names; `calls` counts all of them."""

    clock: Callable[[], datetime]
    calls: Counter[str] = field(default_factory=Counter)
    _planned: list[_Fault] = field(default_factory=list)

    def fail(self, call: str, *errors: BaseException) -> None:
        """The next calls raise these errors, one each, and have no effect."""
        self._planned.append(_Fault(call, after=False, errors=[*errors]))

    def lose_answer(self, call: str, *errors: BaseException) -> None:
        """The next calls have their effect, and raise these errors, one each."""
        self._planned.append(_Fault(call, after=True, errors=[*errors]))

    def outage(self, call: str, error: Exception, since: datetime, until: datetime) -> None:
        """All calls between two moments raise the error, and have no effect."""
        self._planned.append(_Fault(call, False, [error], since, until))

    def heal(self) -> None:
        """No call fails any more."""
        self._planned.clear()

    @property
    def left(self) -> list[str]:
        """The calls that were to fail once and were not made."""
        return [one.call for one in self._planned if one.errors and one.until is None]

    def before(self, call: str) -> None:
        """A call begins."""
        self.calls[call] += 1
        self._raise(call, after=False)

    def after(self, call: str) -> None:
        """A call has had its effect."""
        self._raise(call, after=True)

    def _raise(self, call: str, *, after: bool) -> None:
        for fault in self._planned:
            if (fault.call, fault.after) != (call, after) or not fault.errors:
                continue
            if fault.until is None:
                raise fault.errors.pop(0)
            if fault.since is not None and fault.since <= self.clock() < fault.until:
                raise fault.errors[0]
