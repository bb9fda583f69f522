"""A rule's cases as one table: sentences, and below each the rows that show it.

    test_cases = cases(
        "gpu-idle",
        "A GPU at 4.9% did almost nothing, at 5% it worked a little.",
        row(FOUND, ONE, even(60, gpu=4.9, cpu=50)),
        row(CLEAR, ONE, even(60, gpu=5, cpu=50)),
        "A mixed cluster has no one type to make smaller.",
        row("not applicable: …several groups…", MIXED),
    )

A row is what the rule is expected to say, and what it is asked about. "…" stands for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Concatenate, ParamSpec

import pytest

from sageaudit.domain.bill.finding import Clear, Finding, Found, Outcome, Parameter, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import Measurements
from tests.fakes.jobs import flat, usage
from tests.fakes.judging import answer, usd

FOUND, CLEAR = "found", "clear"
Measured = Callable[[Job], Measurements]
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Finds:
    """A finding with these of its parts, and any others."""

    parts: dict[str, Any]

    def matches(self, finding: Finding | Found) -> bool:
        """True when it has all of them."""
        return all(_has(finding, part, value) for part, value in self.parts.items())


@dataclass(frozen=True, slots=True)
class Row:
    """What is expected of the rule, and the arguments with which it is asked."""

    expected: str | Finds
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def row(expected: str | Finds, *arguments: Any, **options: Any) -> Row:
    """`expected`: FOUND, CLEAR, "unknown: <code>", "not applicable: <reason>" or finds(…)."""
    return Row(expected, arguments, options)


def finds(summary: str = "…", **parts: Any) -> Finds:
    """A finding whose summary, and whose parts, are these.

    `fix`, `ways` (the alternatives): each parameter as its new value, (path, new) or (path, old,
    new); `paths`: those of the fix. `usd`, `alone`, `span`: its dollars to the millionth, or None. `evidence`: some of its
    items. `caution`, `severity`, `bucket`, `confidence`, `change`, `best`, `subsumed_by`,
    `in_chat`. A row's option `rule` asks another rule.
    """
    return Finds({"summary": summary, **parts})


def cases(
    rule: str, *parts: str | Row, ask: Callable[..., Finding | Outcome] = answer, **always: Any
) -> Callable[[str, list[Row]], None]:
    """A test for each sentence of the table; `always` are options of every row."""
    table: dict[str, list[Row]] = {}
    for part in parts:
        if isinstance(part, str):
            assert part not in table, part
            rows = table[part] = []
        else:
            rows.append(part)

    @pytest.mark.parametrize(("sentence", "rows"), table.items(), ids=table)
    def test(sentence: str, rows: list[Row]) -> None:
        assert rows, sentence
        for number, one in enumerate(rows, 1):
            options = {"rule": rule} | always | one.options
            said = ask(options.pop("rule"), *one.arguments, **options)
            fits = (
                isinstance(said, Finding | Found) and one.expected.matches(said)
                if isinstance(one.expected, Finds)
                else any(_fits(one.expected, text) for text in _texts(said))
            )
            assert fits, f"row {number} of {sentence!r}: {said}, expected {one.expected}"

    return test


def later(
    build: Callable[Concatenate[Job, P], Measurements],
) -> Callable[P, Measured]:
    """`later(flat)(60, gpu=0)` is measured of the row's own job."""

    def given(*args: P.args, **kwargs: P.kwargs) -> Measured:
        return lambda job: build(job, *args, **kwargs)

    return given


even, lines = later(flat), later(usage)


def _texts(said: Finding | Outcome) -> Sequence[str]:
    if isinstance(said, Finding | Found):
        return [FOUND]
    if isinstance(said, Clear):
        return [CLEAR]
    if isinstance(said, Unknown):
        return [f"unknown: {said.code}", f"unknown: {said.code}: {said.reason}"]
    return [f"not applicable: {said.reason}"]


def _fits(pattern: str, text: str) -> bool:
    return bool(re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), text, re.DOTALL))


def _has(finding: Finding | Found, part: str, value: Any) -> bool:
    found = finding.found if isinstance(finding, Finding) else finding
    match part:
        case "summary" | "caution":
            return _fits(value, getattr(found, part) or "")
        case "fix":
            return _parameters(found.fix, value)
        case "paths":
            return [one.path for one in found.fix] == value
        case "ways":
            ways = zip(found.alternatives, value, strict=False)
            return len(found.alternatives) == len(value) and all(_parameters(*way) for way in ways)
        case "evidence":
            return {key: found.evidence.get(key, "none") for key in value} == value
        case "bucket" | "confidence" | "change" | "best":
            return bool(getattr(found, part) == value)
    assert isinstance(finding, Finding), part
    match part:
        case "usd" | "alone":
            return _dollars(finding.saving_usd if part == "usd" else finding.alone_usd) == value
        case "span":
            span = finding.range_usd
            return (span and tuple(_dollars(end) for end in span)) == value
        case "in_chat":
            return finding.rule.in_chat is value
        case _:
            return bool(getattr(finding, part) == value)


def _dollars(amount: Decimal | None) -> str | None:
    return None if amount is None else usd(amount)


def _parameters(parameters: Sequence[Parameter], expected: Sequence[Any]) -> bool:
    said = [(one.path, one.old, one.new) for one in parameters]
    if len(said) != len(expected):
        return False
    return all(_is(*one, wanted) for one, wanted in zip(said, expected, strict=True))


def _is(path: str, old: object, new: object, wanted: Any) -> bool:
    if not isinstance(wanted, tuple):
        return bool(new == wanted)
    values = (old, new)[-(len(wanted) - 1) :]
    return _fits(wanted[0], path) and values == wanted[1:]
