"""The ways in which a finding can be followed, and the recording of the run that does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.bill.change import Change, CutPhase, SetCount, SetType
from sageaudit.domain.bill.finding import Finding, Parameter, Scalar
from sageaudit.text.fixes.names import ELEMENT_NAMES
from tests.labelled.heeded import HAPPENS, changed
from tests.labelled.tape import Tape, put_together, taken_apart

_STEP = re.compile(r"(\w+)(?:\[(.+)\])?\Z")


@dataclass(frozen=True)
class Way:
    """One way to follow a finding: the parameters that are set, and what the run is then."""

    rule: str
    fix: tuple[Parameter, ...]
    change: Change | None

    def __str__(self) -> str:
        told = ", ".join(f"{one.path} {one.old} -> {one.new}" for one in self.fix)
        return f"{self.rule}: {told}"


def ways(finding: Finding) -> Iterator[Way]:
    """The fix at both ends of its range, then its alternatives.

    Left out: the end at which the advice did nothing, and a way whose value nobody can guess.
    """
    name, found = finding.rule.name, finding.found
    last = found.best or found.change
    if found.fix:
        nothing = isinstance(found.change, CutPhase) and found.change.seconds == 0
        if not nothing:
            yield Way(name, found.fix, found.change)
        if found.best is not None:
            yield Way(name, found.fix, found.best)
    for fix in found.alternatives:
        if not any(one.new == "<another type>" for one in fix):
            yield Way(name, fix, None if isinstance(last, SetType | SetCount) else last)


def followed(told: dict[str, Any], taken: Iterable[Way], *, later: timedelta) -> dict[str, Any]:
    """The recording of the next run, so much later, in which these ways were gone together."""
    tape = taken_apart(told)
    for way in taken:
        change = way.change or _moved(tape, way.fix)
        HAPPENS.get(way.rule, changed)(tape, change, way.fix)
        for parameter in way.fix:
            put(tape.describe, parameter.path, _said(parameter))
    return put_together(tape, later)


def put(answer: dict[str, Any], path: str, value: Scalar) -> None:
    """Sets one parameter of the request in the answer, which has the same form; None removes it."""
    *way, last = path.split(".")
    place: Any = answer
    for step in way:
        match = _STEP.match(step)
        assert match, path
        name, element = match.groups()
        if element is None:
            place = place.setdefault(name, {})
            continue
        label, elements = ELEMENT_NAMES[name], place.setdefault(name, [])
        named = next((one for one in elements if one.get(label) == element), None)
        if named is None:
            named = {label: element}
            elements.append(named)
        place = named
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value


def _said(parameter: Parameter) -> Scalar:
    """What a person writes for it: numbers of their own where the advice leaves a blank."""
    new = parameter.new
    if isinstance(new, str) and "<" in new and parameter.path.endswith("VolumeSizeInGB"):
        return int(next(iter(re.findall(r"\d+", new)))) + 5
    if isinstance(new, str) and new.startswith("<"):
        return parameter.old
    return new.replace("<", "").replace(">", "") if isinstance(new, str) else new


def _moved(tape: Tape, fix: tuple[Parameter, ...]) -> Change | None:
    """Another type or count without a figure: taken as long as the work needs there."""
    for parameter in fix:
        if parameter.path.endswith("InstanceType") and "[" not in parameter.path:
            return SetType(str(parameter.new))
        if parameter.path.endswith("InstanceCount") and isinstance(parameter.new, int):
            return SetCount(parameter.new, Decimal(len(tape.hosts)) / parameter.new)
    return None
