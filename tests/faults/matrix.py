"""Crosses each call of the handlers, found by observation, with each fault."""

from collections.abc import Container, Iterator
from datetime import timedelta
from functools import cache

from msgspec import Struct

from sageaudit.structs import replace
from tests.faults.calls import Call
from tests.faults.expected import expected
from tests.faults.network import LASTING, Broken, Fault
from tests.faults.stories import DIGEST_AFTER, HOUR, Story, stories
from tests.faults.verdict import Case, baseline

LASTS = 3 * HOUR
"""How long "for ever" is here: an outage of hours must not cause a dead letter."""


class Cell(Struct, frozen=True):
    """One story in which one call fails in one way."""

    story: Story
    call: Call
    fault: Fault

    def case(self) -> Case:
        """Returns the case: what fails, and the expected end."""
        late = DIGEST_AFTER if self.call.function == "digest" else timedelta(0)
        until = self.story.start + late + LASTS if self.fault in LASTING else None
        broken = Broken(self.call, self.fault, until)
        return Case(
            f"{self.story.name}/{self.call}/{self.fault}",
            self.story,
            expected(self.story, self.call, self.fault),
            breaks=lambda world: world.network.broken.append(broken),
            met=lambda world: world.network.struck > 0,
        )


@cache
def cells() -> tuple[Case, ...]:
    """Returns cells for every call with every possible fault, without calls of earlier stories."""
    seen_before: set[Call] = set()
    cases: list[Case] = []
    for story in stories():
        cases += cells_of(story, seen_before)
        seen_before.update(baseline(story).calls)
    return tuple(cases)


def cells_of(story: Story, seen_before: Container[Call] = ()) -> Iterator[Case]:
    """Yields the cells of the story's calls that are not in `known`."""
    calls = [call for call in baseline(story).calls if call.number <= story.most_of_a_call]
    return (
        Cell(story, call, fault).case()
        for call in calls
        if call not in seen_before
        for fault in Fault
        if _possible(call, fault) and _chosen(story, calls, call, fault)
    )


def _chosen(story: Story, calls: list[Call], call: Call, fault: Fault) -> bool:
    """Whether to test this call: lasting faults also meet later calls, so only the first counts.

    Faults that happen once are tested on each call of the first story, and on the last call of
    others.
    """
    if fault in LASTING:
        return call.number == 1
    return story is stories()[0] or replace(call, number=call.number + 1) not in calls


def _possible(call: Call, fault: Fault) -> bool:
    if fault is Fault.ENDLESS:
        return call.paged
    if fault is Fault.EMPTY:
        return call.reads
    return True
