"""Writes the table of docs/organization.md about large organizations: `make docs`.

The figures are from a simulation in virtual time with the real workflows
(`tests/fakes/large_organization.py`, whose constants are its assumptions).
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.fakes.large_organization import LargeOrganization, Round
from tools.pages import DOCS, replace_parts

PAGE = DOCS / "organization.md"
Size = tuple[int, int, int, int]
"""Accounts, regions, running jobs, and how many of these are expensive."""
SIZES: tuple[Size, ...] = ((30, 3, 300, 50), (300, 3, 3_000, 500), (1_000, 2, 3_000, 500))
_HEADER = (
    "accounts x regions",
    "running jobs (expensive)",
    "lists read by each sweep",
    "requests",
    "seconds",
    "expensive jobs checked by each watch",
    "requests",
    "seconds",
)


def rounds() -> dict[Size, Round]:
    """Returns the first round of each organization."""
    return {size: LargeOrganization(*size).round() for size in SIZES}


def page(text: str, round_by_size: Mapping[Size, Round]) -> str:
    """Returns the page with a new table. Seconds are rounded up to the next ten."""
    rows = [f"| {' | '.join(_HEADER)} |", "|---|" + "--:|" * (len(_HEADER) - 1)]
    for (accounts, regions, running, expensive), figures in round_by_size.items():
        cells = (
            f"{accounts:,} x {regions}",
            f"{running:,} ({expensive:,})",
            f"{figures.lists_read:,} of {figures.lists:,}",
            f"{figures.sweep_requests:,}",
            _seconds_text(figures.sweep_s),
            f"{figures.expensive_checked:,} of {expensive:,}",
            f"{figures.watch_requests:,}",
            _seconds_text(figures.watch_s),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return replace_parts(text, {"large": "\n".join(rows)})


def _seconds_text(seconds: float) -> str:
    return f"{-(-seconds // 10) * 10:.0f}"


def main() -> None:
    """Writes the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(text, rounds()), encoding="utf-8")


if __name__ == "__main__":
    main()
