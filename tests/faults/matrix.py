"""Which calls the handlers make, found by watching; each of them crossed with each fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.faults.calls import Call
from tests.faults.network import Fault
from tests.faults.stories import Story, stories, told

MOST_OF_A_CALL = 2
"""Later calls of the same name are for the same: the second is one of another message or page."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One story with one call broken in one way."""

    story: Story
    call: Call
    fault: Fault

    @property
    def name(self) -> str:
        """Names it, for `python -m tests.faults.cell`."""
        return f"{self.story.name}/{self.call}/{self.fault}"


@cache
def cells() -> tuple[Cell, ...]:
    """Every call with every fault that it can meet; a story adds the calls that no earlier made."""
    return tuple(_cells())


def _cells() -> Iterator[Cell]:
    known: set[Call] = set()
    for story in stories():
        with told(story) as one:
            watched = dict.fromkeys(one.network.seen)
        yield from (
            Cell(story, call, fault)
            for call in watched
            if call not in known and call.number <= MOST_OF_A_CALL
            for fault in Fault
            if _possible(call, fault)
        )
        known.update(watched)


def _possible(call: Call, fault: Fault) -> bool:
    if fault is Fault.ENDLESS:
        return call.paged
    if fault is Fault.EMPTY:
        return call.reads
    return True
