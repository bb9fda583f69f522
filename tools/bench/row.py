"""One line of the table that `make bench` prints."""

from __future__ import annotations

from dataclasses import dataclass

THREE_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours, and of what stands beside it in the same run, in the same unit."""

    what: str
    ours: float
    unit: str
    """Such as "CPU s", "ms", "kB" or "audits/CPU s"."""
    peer: str = ""
    """What is measured beside it; empty for what has nothing beside it."""
    theirs: float | None = None
    goal: str = ""
    """As the figure or the quotient shall be, such as "at most 1.1 times"."""

    def __str__(self) -> str:
        beside = ""
        if self.theirs is not None:
            times = self.ours / self.theirs
            beside = f"{times:>8.2f} x {self.peer}, {_shown(self.theirs)}"
        goal = f" ({self.goal})" if self.goal else ""
        return f"{self.what:<52} {_shown(self.ours):>8} {self.unit:<8}{beside}{goal}"


def _shown(figure: float) -> str:
    """With at least three digits, without an exponent."""
    return f"{figure:,.0f}" if figure >= THREE_DIGITS else f"{figure:.3g}"
