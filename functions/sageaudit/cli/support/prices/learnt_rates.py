"""What `sageaudit prices learn` does: own rates beside list prices, and a file that they go to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sageaudit.adapters.billing import cost_report
from sageaudit.adapters.files import own_rates_file
from sageaudit.adapters.prices import sources
from sageaudit.domain.prices.own_rates import (
    Merged,
    OwnRate,
    OwnRates,
    RateBasis,
    merged,
    own_rates,
)
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.learning import Learnt, Lesson, Product, learn
from sageaudit.domain.reconcile.usage_type import JOBS, MANAGED_SPOT, OTHER
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import plain_table, signed_percent
from sageaudit.output.text.money import rate as shown_rate
from sageaudit.output.text.money import usd
from sageaudit.output.text.untrusted import terminal
from sageaudit.output.text.words import counted

_PERMILLE = Decimal("0.001")
_SHOWN = 60
_OF_JOBS = frozenset({JOBS, MANAGED_SPOT, OTHER})
"""Areas whose usage is, or may be, of jobs: each usage type of them is named."""


@dataclass(frozen=True, slots=True)
class LearntRow:
    """A learnt rate beside the list price."""

    learnt: Learnt
    list_usd: Decimal | None
    list_source: str | None

    @property
    def rate(self) -> OwnRate:
        """The rate itself."""
        return self.learnt.rate

    @property
    def percent(self) -> Decimal | None:
        """By how much it differs from the list price; below zero: less."""
        if self.list_usd is None:
            return None
        return 100 * (self.rate.usd - self.list_usd) / self.list_usd


def _name(of: OwnRate | Product) -> str:
    return f"{of.what}, {of.component.value}, {of.region}"


@dataclass(frozen=True, slots=True)
class LearntRates:
    """What reports teach beside what a file of own rates has already; `notes` are sentences."""

    lesson: Lesson
    merged: Merged
    rows: list[LearntRow]
    notes: list[str]


def learnt_rates(
    paths: Sequence[Path], account: str | None, basis: RateBasis, file: Path
) -> LearntRates:
    """What the reports add to a file of own rates, beside the list prices.

    Raises BadUsage for a report that cannot be read, and for a file of something else.
    """
    known = _known(file, basis, account)
    report = cost_report.paid(paths, account, basis)
    lesson = learn(report, basis, ", ".join(path.name for path in paths))
    rates = own_rates(basis, account, (found.rate for found in lesson.learnt))
    rows = [_row(learnt) for learnt in lesson.learnt]
    return LearntRates(lesson, merged(known, rates), rows, [*_notes(lesson)])


def _known(path: Path, basis: RateBasis, account: str | None) -> OwnRates:
    """The rates of a file; none where it does not exist yet.

    Raises BadUsage for a file of something else, and for rates of another basis or account.
    """
    if not path.exists():
        return OwnRates(basis, account)
    found = own_rates_file.read(path)
    other = "choose another file with --to"
    if found.basis is not basis:
        raise BadUsage(f"{path}: has {found.basis} rates, not {basis} ones: {other}")
    if found.account != account:
        of = "of all accounts" if found.account is None else f"of account {found.account}"
        raise BadUsage(f"{path}: has rates {of}: {other}")
    return found


def _row(learnt: Learnt) -> LearntRow:
    """The rate beside the report's public price, else the packaged one."""
    rate, listed, source = learnt.rate, learnt.list_usd, "report"
    if listed is None:
        book = sources.offline_book(rate.region, rate.component, rate.last)
        packaged = (
            book.storage(rate.region, rate.component)
            if rate.what == STORAGE
            else book.hourly(rate.region, rate.component, rate.what)
        )
        listed, source = (packaged.usd, "packaged") if packaged else (None, "")
    return LearntRow(learnt, listed, source or None)


def document(view: LearntRates) -> dict[str, Any]:
    """The document of --output json."""
    lesson = view.lesson
    replaced = {new: old for old, new in view.merged.replaced}
    return {
        "schema": 1,
        "basis": lesson.basis.value,
        "currency": "USD",
        "rates": [_json(row, view.merged, replaced) for row in view.rows],
        "not_learnt": [
            _product(found.product) | {"first": found.first, "last": found.last, "why": found.why}
            for found in lesson.not_learnt
        ],
        "seen": [asdict(usage) for usage in lesson.unpriced],
        "left_out": [asdict(lines) for lines in lesson.left_out],
        "notes": view.notes,
    }


def _json(row: LearntRow, merged: Merged, replaced: Mapping[OwnRate, OwnRate]) -> dict[str, Any]:
    rate, before, percent = row.rate, replaced.get(row.rate), row.percent
    known = "added" if rate in merged.added else "same"
    return _product(rate) | {
        "usd": rate.usd,
        "unit": "GB-month" if rate.what == STORAGE else "hour",
        "first": rate.first,
        "last": rate.last,
        "quantity": rate.quantity,
        "cost_usd": row.learnt.usd,
        "list_usd": row.list_usd,
        "list_source": row.list_source,
        "difference_percent": None if percent is None else percent.quantize(_PERMILLE),
        "note": rate.note,
        "change": known if before is None else "changed",
        "before_usd": None if before is None else before.usd,
    }


def _product(of: OwnRate | Product) -> dict[str, Any]:
    return {"type": of.what, "region": of.region, "component": of.component.value}


def show(view: LearntRates, console: Console) -> None:
    """Prints the rates, why others are missing, and the notes."""
    numbers = ("Own rate", "List", "Diff", "Used")
    days = ("From", "To")
    table = plain_table(
        "Type", "Region", "For", *numbers, *days, right=numbers, unbroken=(*numbers, *days)
    )
    for row in view.rows:
        rate = row.rate
        unit = "GB-mo" if rate.what == STORAGE else "h"
        table.add_row(
            *(rate.what, rate.region, rate.component.value),
            *(shown_rate(rate.usd), shown_rate(row.list_usd), signed_percent(row.percent)),
            *(f"{rate.quantity:,.2f} {unit}", str(rate.first), str(rate.last)),
        )
    if view.rows:
        console.print(table)
    missing = view.lesson.not_learnt
    for found in missing[:_SHOWN]:
        console.print(Text(terminal(f"No rate for {_name(found.product)}: {found.why}.")))
    if len(missing) > _SHOWN:
        console.print(Text(f"+{len(missing) - _SHOWN} more: --output json shows all"))
    for note in view.notes:
        sentence = note if note.startswith(("ml.", STORAGE)) else f"{note[0].upper()}{note[1:]}"
        console.print(Text(terminal(f"{sentence}."), "dim"))


def _notes(lesson: Lesson) -> Iterator[str]:
    """Sentences without full stops: averages, and what is left out."""
    for found in lesson.learnt:
        if found.rate.note:
            yield f"{_name(found.rate)}: {found.rate.note}"
    if lesson.basis is RateBasis.AMORTISED:
        yield (
            "amortised rates count what a Savings Plan costs, which is paid used or not:"
            " they hold for the days that they were learnt from"
        )
    yield from lesson.notes
    for left in lesson.left_out:
        lines = counted(left.lines or 0, "line")
        yield (
            f"left out, because it is no usage at a price: {lines} of {left.kind}, {usd(left.usd)}"
        )
    of_jobs = [usage for usage in lesson.unpriced if usage.area in _OF_JOBS]
    for usage in of_jobs[:_SHOWN]:
        yield (
            f"seen, and in no rate because {usage.why}: {usage.usage},"
            f" {usage.quantity:,.2f} units, {usd(usage.usd)}"
        )
    elsewhere = sum((usage.usd for usage in lesson.unpriced if usage not in of_jobs), Decimal(0))
    if elsewhere:
        yield f"other SageMaker usage, {usd(elsewhere)}, is of no job: endpoints, notebooks"


def closing(merged: Merged, path: Path, *, written: bool) -> Iterator[str]:
    """What was written, which known rates had to go, and the next command to run."""
    new = len(merged.added) + len({rate for _, rate in merged.replaced})
    verb = "written" if written else "nothing is written; it would be"
    yield (
        f"{path}: {verb}: {len(merged.added)} rates added, {len(merged.replaced)} replaced,"
        f" {len(merged.rates.rows) - new} kept"
    )
    for old, rate in merged.replaced[:_SHOWN]:
        yield (
            f"replaced {_name(old)}, {old.days}:"
            f" {shown_rate(old.usd)} becomes {shown_rate(rate.usd)} ({rate.days})"
        )
    yield f"to use them, write own_rates = {json.dumps(str(path))} under [discounts] in policy.toml"
    yield "then run: sageaudit audit JOB --policy policy.toml"
