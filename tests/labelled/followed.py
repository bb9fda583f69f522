"""Follows a recommendation: the ways to do so, and the recording of the next run.

`effects.py` says how the work changes.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.domain.bill.change import Change, CutPhase, SetCount, SetType
from sageaudit.domain.bill.finding import Finding, Parameter, Scalar
from sageaudit.output.text.fix_code import ELEMENT_NAMES
from tests.fakes import request
from tests.labelled.effects import EFFECTS, apply_change
from tests.labelled.machine import Json
from tests.labelled.tape import Tape, put_together, take_apart

_NUMBER = re.compile(r"\d+")
_STEP = re.compile(r"(\w+)(?:\[(.+)\])?\Z")


class Way(Struct, frozen=True):
    """One way to follow a finding: the parameters to set, and the resulting change."""

    rule: str
    fix: tuple[Parameter, ...]
    change: Change | None

    def __str__(self) -> str:
        settings = ", ".join(
            f"{parameter.path} {parameter.old} -> {parameter.new}" for parameter in self.fix
        )
        return f"{self.rule}: {settings}"


def ways_to_follow(finding: Finding) -> Iterator[Way]:
    """Yields the fix at both ends of its range, then the alternatives.

    Left out are an end without effect, and fixes that leave a value open.
    """
    name, detection = finding.rule.name, finding.detection
    last = detection.best or detection.change
    if detection.fix and not has_open_value(detection.fix):
        nothing = isinstance(detection.change, CutPhase) and detection.change.seconds == 0
        if not nothing:
            yield Way(name, detection.fix, detection.change)
        if detection.best is not None:
            yield Way(name, detection.fix, detection.best)
    for fix in detection.alternatives:
        if not has_open_value(fix):
            yield Way(name, fix, None if isinstance(last, SetType | SetCount) else last)


def next_recording(recorded: Json, ways: Iterable[Way], *, later: timedelta) -> Json:
    """Returns the recording of the next run, `later`, in which all these ways were followed."""
    tape = take_apart(recorded)
    for way in ways:
        change = way.change or _change_of_cluster(tape, way.fix)
        EFFECTS.get(way.rule, apply_change)(tape, change, way.fix)
        for parameter in way.fix:
            set_parameter(tape.describe, parameter.path, _chosen_value(parameter))
    return put_together(tape, later)


def set_parameter(answer: Json, path: str, value: Scalar) -> None:
    """Sets one request parameter in the answer, which has the same structure; None removes it."""
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
        named = next(
            (element_row for element_row in elements if element_row.get(label) == element), None
        )
        if named is None:
            named = {label: element}
            elements.append(named)
        place = named
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value


def has_open_value(fix: tuple[Parameter, ...]) -> bool:
    """Whether the fix leaves a value open that cannot be made up, such as "<another type>".

    Free text can be made up; for a size, the number in the recommendation is used.
    """
    return any(
        _is_blank(parameter) and not (request.is_free_text(parameter.path) or _number(parameter))
        for parameter in fix
    )


def _is_blank(parameter: Parameter) -> bool:
    return isinstance(parameter.new, str) and "<" in parameter.new


def _number(parameter: Parameter) -> int | None:
    """Returns the number in the text of a numeric parameter."""
    match = _NUMBER.search(str(parameter.new)) if request.is_number(parameter.path) else None
    return int(match.group()) if match else None


def _chosen_value(parameter: Parameter) -> Scalar:
    """Returns the value that a person would set; for a blank, a made-up one."""
    new = parameter.new
    if not _is_blank(parameter):
        return new
    if (number := _number(parameter)) is not None:
        return number + 5
    if str(new).startswith("<"):
        return parameter.old
    return str(new).replace("<", "").replace(">", "")


def _change_of_cluster(tape: Tape, fix: tuple[Parameter, ...]) -> Change | None:
    """Returns the change of type or count, if the fix has no figure of its own."""
    for parameter in fix:
        if parameter.path.endswith("InstanceType") and "[" not in parameter.path:
            return SetType(str(parameter.new))
        if parameter.path.endswith("InstanceCount") and isinstance(parameter.new, int):
            return SetCount(parameter.new, Decimal(len(tape.hosts)) / parameter.new)
    return None
