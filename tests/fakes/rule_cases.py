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

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Struct

from sageaudit.domain.bill.finding import Clear, Finding, Found, Outcome, Parameter, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.usage.measurements import Measurements
from tests.fakes.jobs import flat, usage
from tests.fakes.judging import answer, usd

FOUND, CLEAR = "found", "clear"
Measured = Callable[[Job], Measurements]


class Finds(Struct, frozen=True):
    """A finding with these of its parts, and any others."""

    parts: dict[str, Any]

    def matches(self, finding: Finding | Found) -> bool:
        """True when it has all of them."""
        return all(_has(finding, part, value) for part, value in self.parts.items())


class Row(Struct, frozen=True):
    """What is expected of the rule, and the arguments with which it is asked."""

    expected: str | Finds
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def row(expected: str | Finds, *arguments: Any, **options: Any) -> Row:
    """`expected`: FOUND, CLEAR, "unknown: <code>", "not applicable: <reason>" or finds(…).

    The option `rule` asks another rule than the table's.
    """
    return Row(expected, arguments, options)


def finds(summary: str = "…", **parts: Any) -> Finds:
    """A finding whose summary, and whose parts, are these.

    `fix`, `ways` (the alternatives): each parameter as its new value, (path, new) or (path, old,
    new); `paths`: those of the fix. `usd`, `alone`, `span`: its dollars to the millionth, or None.
    `evidence`: some of its items; `lacks`: a key that it has not. `without`: what neither summary
    nor caution says. `builder`: the one of `rules/api.py`, or `bucket` and `confidence`.
    `caution`, `first_step`, `severity`, `change`, `best`, `said_of`, `subsumed_by`, `in_chat`.
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


def later(build: Callable[..., Measurements]) -> Callable[..., Measured]:
    """`later(flat)(60, gpu=0)` is measured of the row's own job."""
    return lambda *args, **kwargs: lambda job: build(job, *args, **kwargs)


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
    return _PARTS[part](found, value) if part in _PARTS else _dollars(finding, part) == value


_BUILDERS = {
    "derived": ("derived", "avoidable"),
    "measured": ("measured", "avoidable"),
    "lost": ("measured", "lost"),
    "possible": ("heuristic", "possible"),
    "possible_by_runs": ("derived", "possible"),
    "advice": ("heuristic", "none"),
    "fact": ("measured", "none"),
}
"""The confidence and the bucket that each builder of `rules/api.py` sets."""
_PARTS: dict[str, Callable[[Found, Any], bool]] = {
    "summary": lambda found, text: _fits(text, found.summary),
    "caution": lambda found, text: _fits(text, found.caution or ""),
    "first_step": lambda found, text: _fits(text, found.first_step or ""),
    "builder": lambda found, name: (found.confidence, found.bucket) == _BUILDERS[name],
    "without": lambda found, text: text not in f"{found.summary} {found.caution}",
    "lacks": lambda found, key: key not in found.evidence,
    "fix": lambda found, value: _parameters(found.fix, value),
    "paths": lambda found, value: [one.path for one in found.fix] == value,
    "ways": lambda found, value: (
        len(found.alternatives) == len(value) and all(map(_parameters, found.alternatives, value))
    ),
    "evidence": lambda found, value: value.items() <= found.evidence.items(),
    **{
        part: lambda found, value, part=part: getattr(found, part) == value  # type: ignore[misc]
        for part in ("bucket", "confidence", "change", "best", "said_of")
    },
}


def _dollars(finding: Finding | Found, part: str) -> object:
    assert isinstance(finding, Finding), part
    if part == "span":
        return finding.range_usd and tuple(map(usd, finding.range_usd))
    if part == "in_chat":
        return finding.rule.in_chat
    value = getattr(finding, {"usd": "saving_usd", "alone": "alone_usd"}.get(part, part))
    return usd(value) if isinstance(value, Decimal) else value


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
