"""How often a rule was right on jobs whose truth is known, and two of these jobs to look at.

Measured by `make docs` over the labelled jobs of the tests, and shown on its page in docs/rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.output.text.money import format_usd
from tools.pages import DOCS

FILE = DOCS / "rules" / "track_records.json"
_MEASURED = (
    "Measured on made-up and recorded jobs whose labels name this rule. Precision is the share of",
    "its findings that are right; recall is the share of the labelled jobs that it found (0 to 1).",
)
_MONEY = (
    "By money: the dollars that it counted on jobs whose waste an expert bounded. Dollars within",
    "the expert's upper bound are right.",
)


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """How many labelled jobs a rule found rightly, missed, and found wrongly."""

    found: int
    missed: int
    false: int

    @property
    def precision(self) -> Decimal | None:
        """Of what it found, the share that is true (0 to 1); None where it found nothing."""
        found = self.found + self.false
        return Decimal(self.found) / found if found else None

    @property
    def recall(self) -> Decimal | None:
        """Of what is true, the share that it found (0 to 1); None where nothing is."""
        true = self.found + self.missed
        return Decimal(self.found) / true if true else None


@dataclass(frozen=True, slots=True)
class CountedDollars:
    """What the rule counted, avoidable and lost, on the jobs whose waste an expert bounded.

    `true_usd` of it lies within the expert's upper bound.
    """

    counted_usd: Decimal
    true_usd: Decimal

    @property
    def precision(self) -> Decimal | None:
        """Of what it counted, the share that was wasted (0 to 1); None where it counted nothing."""
        return self.true_usd / self.counted_usd if self.counted_usd else None


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled job: what happened on what, what it cost, and what the rule says of it.

    `says` is the rule's sentence where it speaks, `reason` why it was not asked where it was not.
    """

    job: str
    happened: str
    ran_on: str
    bill_usd: Decimal | None
    says: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """One rule's record."""

    fires: Example | None
    silent: Example | None
    answers: AnswerCounts
    dollars: CountedDollars


@cache
def measured() -> Mapping[str, TrackRecord]:
    """Each rule's record, as `make docs` measured it last."""
    text = FILE.read_text(encoding="utf-8")
    return {name: _record(row) for name, row in from_json(text).items()}


def to_text(records: Mapping[str, TrackRecord]) -> str:
    """What the file holds: one line for each rule."""
    rows = (f'"{name}":{to_json(asdict(record))}' for name, record in sorted(records.items()))
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _record(row: Mapping[str, Any]) -> TrackRecord:
    return TrackRecord(
        fires=_example(row["fires"]),
        silent=_example(row["silent"]),
        answers=AnswerCounts(**row["answers"]),
        dollars=CountedDollars(**row["dollars"]),
    )


def _example(row: Mapping[str, Any] | None) -> Example | None:
    return None if row is None else Example(**row)


def section(record: TrackRecord) -> list[str]:
    """The record as lines of Markdown, under its heading."""
    return ["", "## How right it is", *_MEASURED, "", *_examples(record), "", *_figures(record)]


def _examples(record: TrackRecord) -> Iterator[str]:
    if record.fires:
        yield f"**It fires on** {_place(record.fires)}"
        yield ""
        yield f"> {record.fires.says}"
        yield ""
    if record.silent:
        why = f" Not judged: {record.silent.reason}." if record.silent.reason else ""
        yield f"**It stays silent on** {_place(record.silent)}{why}"


def _place(example: Example) -> str:
    cost = "cost unknown" if example.bill_usd is None else format_usd(example.bill_usd)
    happened = example.happened.rstrip(".")
    return f"`{example.job}` ({example.ran_on}, {cost}): {happened[0].upper()}{happened[1:]}."


def figures(record: TrackRecord) -> tuple[str, str, str]:
    """Precision and recall by count, precision by money, as `0.95`; empty where there is none."""
    answers, dollars = record.answers, record.dollars
    return _share(answers.precision), _share(answers.recall), _share(dollars.precision)


def _figures(record: TrackRecord) -> Iterator[str]:
    answers, dollars = record.answers, record.dollars
    right, found, right_usd = figures(record)
    yield "| labelled jobs | right | wrong | missed | precision | recall |"
    yield "|---|--:|--:|--:|--:|--:|"
    counts = (answers.found, answers.false, answers.missed, right, found)
    yield f"| by count | {' | '.join(map(str, counts))} |"
    if dollars.counted_usd:
        sums = (
            format_usd(dollars.true_usd),
            format_usd(dollars.counted_usd - dollars.true_usd),
            "",
            right_usd,
        )
        yield f"| by money | {' | '.join(sums)} | |"
        yield ""
        yield from _MONEY


def _share(share: Decimal | None) -> str:
    return "" if share is None else f"{share:.2f}"
