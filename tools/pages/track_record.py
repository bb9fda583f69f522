"""How often each rule was right on jobs whose waste is known, and two example jobs.

`make docs` measures this over the labelled jobs of the tests, and shows it on the rule's page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from sageaudit.adapters.files.exact_json import from_json, to_json
from sageaudit.domain.money import format_usd
from tools.pages import DOCS

FILE = DOCS / "rules" / "track_records.json"
_MEASURED = (
    "Measured on jobs whose waste is known "
    "([what the figures mean](README.md#what-the-figures-mean))."
)


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """In how many labelled jobs a rule's finding was right, was missed, or was wrong."""

    found: int
    missed: int
    false: int

    @property
    def precision(self) -> Decimal | None:
        """The share of its findings that are right (0 to 1); None if it has none."""
        findings = self.found + self.false
        return Decimal(self.found) / findings if findings else None

    @property
    def recall(self) -> Decimal | None:
        """The share of the waste that it found, by count (0 to 1); None if there is none."""
        true = self.found + self.missed
        return Decimal(self.found) / true if true else None


@dataclass(frozen=True, slots=True)
class CountedDollars:
    """The avoidable and lost dollars of the rule on jobs whose waste an expert limited.

    `true_usd` is the part within the expert's upper limit.
    """

    counted_usd: Decimal
    true_usd: Decimal

    @property
    def precision(self) -> Decimal | None:
        """The share of the counted dollars that was wasted (0 to 1); None if none were counted."""
        return self.true_usd / self.counted_usd if self.counted_usd else None


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled job: what happened, on which instances, its bill, and the rule's answer.

    `says` is the sentence of the rule's finding; None without one. `reason` is why the rule was not
    called; None if it was.
    """

    job: str
    happened: str
    ran_on: str
    bill_usd: Decimal | None
    says: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """The record of one rule."""

    fires: Example | None
    silent: Example | None
    answers: AnswerCounts
    dollars: CountedDollars


@cache
def load_records() -> Mapping[str, TrackRecord]:
    """Returns each rule's record, as `make docs` measured it last."""
    text = FILE.read_text(encoding="utf-8")
    return {name: _record(row) for name, row in from_json(text).items()}


def to_text(records: Mapping[str, TrackRecord]) -> str:
    """Returns the text of the file: one line for each rule."""
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
    """Returns the record as lines of Markdown, under its heading."""
    return ["", "## How right it is", _MEASURED, "", *_examples(record), "", *_figures(record)]


def _examples(record: TrackRecord) -> Iterator[str]:
    if record.fires:
        yield f"**Example with a finding:** {_place(record.fires)}"
        yield ""
        yield f"> {record.fires.says}"
        yield ""
    if record.silent:
        why = f" Not judged: {record.silent.reason}." if record.silent.reason else ""
        yield f"**Example without a finding:** {_place(record.silent)}{why}"


def _place(example: Example) -> str:
    cost = "cost unknown" if example.bill_usd is None else format_usd(example.bill_usd)
    happened = example.happened.rstrip(".")
    return f"`{example.job}` ({example.ran_on}, {cost}): {happened[0].upper()}{happened[1:]}."


def figures(record: TrackRecord) -> tuple[str, str, str]:
    """Returns precision and recall by count, and precision by dollars, as `0.95`; empty if
    unknown.
    """
    answers, dollars = record.answers, record.dollars
    return _share(answers.precision), _share(answers.recall), _share(dollars.precision)


def _figures(record: TrackRecord) -> Iterator[str]:
    answers, dollars = record.answers, record.dollars
    precision, recall, dollar_precision = figures(record)
    yield "| counted in | right | wrong | missed | precision | recall |"
    yield "|---|--:|--:|--:|--:|--:|"
    counts = (answers.found, answers.false, answers.missed, precision, recall)
    yield f"| jobs | {' | '.join(map(str, counts))} |"
    if dollars.counted_usd:
        sums = (
            format_usd(dollars.true_usd),
            format_usd(dollars.counted_usd - dollars.true_usd),
            "",
            dollar_precision,
        )
        yield f"| dollars | {' | '.join(sums)} | |"


def _share(share: Decimal | None) -> str:
    return "" if share is None else f"{share:.2f}"
