"""What the audit says of sixty large jobs, beside what an expert says of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from sageaudit.cli.commands.audit import of_recording
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from tests.labelled.large import SCENARIOS, Scenario

Range = tuple[Decimal, Decimal]
_CENT = Decimal("0.01")

DISAGREED: dict[str, tuple[tuple[str, ...], str]] = {
    "two-of-eight-h100": (
        ("avoidable",),
        "an A100 is taken to be up to 3.2 times weaker, by data sheet; measured work says 2.3",
    ),
    "hung-in-the-middle-p5": (
        ("says",),
        "idle-middle says it, and counts it; the expert's rules to choose from are older",
    ),
    "download-95-minutes-p4d": (
        ("avoidable",),
        "how much of a download FastFile saves is a range from 0, and the expert counts half",
    ),
    "max-runtime-exceeded-no-artifact": (
        ("lost", "together", "says"),
        "the answer has no ModelArtifacts at all: whether anything was left is not recorded",
    ),
    "one-host-of-eight-lacks-series": (
        ("idle",),
        "the expert takes seven hosts for eight; without the eighth there is no figure here",
    ),
    "tuning-plateau-and-failed-trials": (
        ("says",),
        "eight trials after the best one are too few for tuning-plateau",
    ),
}
"""By scenario: the points in which the audit differs from the expert, and why."""


@dataclass(frozen=True)
class Compared:
    """One scenario with its audit."""

    scenario: Scenario
    document: AuditDocument

    @property
    def counted_usd(self) -> Decimal:
        """Avoidable and lost; 0 where nothing was judged."""
        return (self.document["avoidable_usd"] or Decimal(0)) + (
            self.document["lost_usd"] or Decimal(0)
        )

    @property
    def differs(self) -> tuple[str, ...]:
        """The points in which the audit is not the expert's."""
        return tuple(self._points())

    def _points(self) -> Iterator[str]:
        expert, document = self.scenario.expert, self.document
        if not _within(document["avoidable_usd"], expert.wasted_usd):
            yield "avoidable"
        if not _within(document["lost_usd"], expert.lost_usd):
            yield "lost"
        if not _within(self.counted_usd, expert.together_usd):
            yield "together"
        if document["judged"] != expert.judged:
            yield "judged"
        idle = document["idle_capacity"]
        expected = expert.idle_hours
        if idle is None or expected is None:
            if idle is not expected and not document["rollup"]:
                yield "idle"
        elif not _within(idle["idle"], expected):
            yield "idle"
        said = {finding["rule"] for finding in document["findings"]}
        wanted = ({topic} if isinstance(topic, str) else topic for topic in expert.must_say)
        if said.intersection(expert.must_not_say) or not all(said & topic for topic in wanted):
            yield "says"


def _within(value: Decimal | None, ends: Range | None) -> bool:
    """True where the expert asks for no figure; a null is 0, since nothing is claimed."""
    return ends is None or ends[0] - _CENT <= (value or Decimal(0)) <= ends[1] + _CENT


@cache
def compared() -> tuple[Compared, ...]:
    """All scenarios with their audits under the shipped rules, read as a user's files are."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(_compared(scenario, Path(folder)) for scenario in SCENARIOS)


def _compared(scenario: Scenario, folder: Path) -> Compared:
    file = folder / f"{scenario.name}.json"
    file.write_text(json.dumps(scenario.recording()), encoding="utf-8")
    return Compared(scenario, of_recording(file, Policy()))


def table() -> str:
    """Dollars found against dollars that an expert knows were wasted, job by job, for people."""
    lines = [f"{'large job':<44}{'bill':>10}{'found':>10}{'wasted, to an expert':>24}  differs in"]
    found = low = high = Decimal(0)
    for one in compared():
        wasted, points = _wasted(one.scenario), ", ".join(one.differs)
        bill = one.document["bill"]["total_usd"]
        shown = "not known" if wasted is None else f"{wasted[0]:.2f} to {wasted[1]:.2f}"
        lines.append(
            f"{one.scenario.name:<44}{'?' if bill is None else f'{bill:.2f}':>10}"
            f"{one.counted_usd:>10.2f}{shown:>24}  {points}".rstrip()
        )
        if wasted is not None:
            found, low, high = found + one.counted_usd, low + wasted[0], high + wasted[1]
    lines.append(f"{'together':<54}{found:>10.2f}{f'{low:.2f} to {high:.2f}':>24}")
    return "\n".join(lines) + "\n"


def _wasted(scenario: Scenario) -> Range | None:
    """Avoidable and lost dollars as the expert bounds them."""
    expert = scenario.expert
    if expert.together_usd is not None:
        return expert.together_usd
    if expert.wasted_usd is None or expert.lost_usd is None:
        return None
    (low, high), (lost_low, lost_high) = expert.wasted_usd, expert.lost_usd
    return low + lost_low, high + lost_high
