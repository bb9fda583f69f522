"""Kills each handler before and after each step of a story, once and twice in a row."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from local.functions import ProcessKilled
from tests.faults.expected import End, Expected
from tests.faults.stories import Story, stories
from tests.faults.verdict import Case, baseline

MOST_OF_A_STEP = 2
"""How many steps with the same name are tried: later ones behave alike."""
_GAPS = ("POST", "Publish", "UpdateItem", "PutItem", "answered deliver", "TransactWriteItems")
"""Steps from the claim to the mark: after a crash there it is unknown whether it was posted."""


class Kills:
    """Kills the process at one step, `times` times in a row."""

    def __init__(self, name: str, number: int, times: int) -> None:
        self._name = name
        self._number = number
        self._left = times
        self._times = times
        self._seen = 0

    def __call__(self, name: str) -> None:
        """Kills the process if this is the step."""
        if name != self._name:
            return
        self._seen += 1
        if self._left and self._seen >= self._number:
            self._left -= 1
            raise ProcessKilled(name)

    @property
    def killed(self) -> bool:
        """Whether the process was killed."""
        return self._left < self._times


@cache
def crash_cells() -> tuple[Case, ...]:
    """Returns cells for each step of each story, without steps that earlier stories had."""
    seen_before: set[tuple[str, int]] = set()
    return tuple(case for story in stories() for case in crash_cells_of(story, seen_before))


def crash_cells_of(story: Story, seen_before: set[tuple[str, int]]) -> Iterator[Case]:
    """Yields the cells of the story's steps that are not in `known`, and adds them to it."""
    seen: Counter[str] = Counter()
    for name in baseline(story).steps:
        seen[name] += 1
        place = (name, seen[name])
        if place not in seen_before and seen[name] <= MOST_OF_A_STEP:
            seen_before.add(place)
            yield _case(story, name, seen[name], 1)
            if seen[name] == 1:
                yield _case(story, name, 1, 2)


def _case(story: Story, name: str, number: int, times: int) -> Case:
    kills = Kills(name, number, times)
    ends = {End.UNSEEN, End.LATER}
    if times > 1 and any(gap in name for gap in _GAPS):
        ends.add(End.DEAD)
    marked = any(gap in name for gap in _GAPS) or "Secret" in name
    return Case(
        f"{story.name}/killed {name}#{number}/{times}",
        story,
        Expected(frozenset(ends), marked=marked),
        breaks=lambda _: None,
        met=lambda _: kills.killed,
        on_step=kills,
    )
