"""The checklist of a try: what the local AWS did, and what AWS did."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from msgspec import Struct

EXPECTED: Mapping[str, str] = {
    "stack": "CREATE_COMPLETE",
    "job": "Completed",
    "audits stored": "1",
    "audited job": "processing, Completed, 1 x ml.t3.medium",
    "bill": "as calculated",
    "indexes": "by-account, by-day, by-family, by-name, by-owner",
    "messages about the job": "1",
    "job's metrics": "CPUUtilization, DiskUtilization, MemoryUtilization",
    "sageaudit's metrics": "JobsAudited, NoticesSent",
    "alarms": "29, none raised",
    "dead letters": "0",
    "removal": "complete",
}
"""What the local AWS does, by check, in the order of the list. A test plays it."""
_WIDTH = 80
_NAME_WIDTH = max(map(len, EXPECTED))


class Check(Struct, frozen=True):
    """One row of the list. `seen` is None if the try ended before."""

    name: str
    seen: str | None

    @property
    def expected(self) -> str:
        """What the local AWS does."""
        return EXPECTED[self.name]

    @property
    def is_same(self) -> bool:
        """Whether AWS did the same."""
        return self.seen == self.expected


class Fact(Struct, frozen=True):
    """A figure that the local AWS cannot have."""

    name: str
    text: str


def checklist_text(title: str, checks: Sequence[Check], facts: Sequence[Fact]) -> str:
    """Returns the list as text of at most 80 columns."""
    count = sum(check.is_same for check in checks)
    lines = [title, f"{count} of {len(checks)} checks are as on the local AWS", ""]
    for check in checks:
        mark = "same" if check.is_same else "not reached" if check.seen is None else "DIFFERS"
        lines += _row(mark, check.name, check.expected if check.seen is None else check.seen)
        if mark == "DIFFERS":
            lines += _row("", "", f"expected: {check.expected}")
    lines += [""] if facts else []
    for fact in facts:
        lines += _row("", fact.name, fact.text)
    return "\n".join(lines) + "\n"


def _row(mark: str, name: str, text: str) -> list[str]:
    start = f"{mark:11}  {name:{_NAME_WIDTH}}  "
    return textwrap.wrap(
        " ".join(text.split()) or "-",
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
    )
