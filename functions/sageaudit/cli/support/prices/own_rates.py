"""What `sageaudit prices learn` shows: each own rate beside the list price, and what it means."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from sageaudit.adapters.prices import sources
from sageaudit.cli.support.prices.learnt_rates import Taught
from sageaudit.domain.policy.discounts import Discounts, percent_off
from sageaudit.domain.prices.own_rates import Merged, OwnRate, RateBasis
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.domain.reconcile.lesson import Learnt, Lesson
from sageaudit.domain.reconcile.usage_type import JOBS, MANAGED_SPOT, OTHER
from sageaudit.output.terminal.layout import plain_table, signed_percent
from sageaudit.output.text.money import rate as shown_rate
from sageaudit.output.text.money import usd
from sageaudit.output.text.untrusted import terminal

_PERMILLE = Decimal("0.001")
_SAME_PERCENT = Decimal("0.2")
"""Discounts that differ by less are one discount: AWS rounds its prices."""
_LEAST_PERCENT = Decimal("0.5")
_FEWEST_TYPES = 2
_SHOWN = 60
_OF_JOBS = frozenset({JOBS, MANAGED_SPOT, OTHER})
"""Areas whose usage is, or may be, of jobs: each usage type of them is named."""


@dataclass(frozen=True, slots=True)
class Row:
    """A learnt rate beside the list price, and the policy's price of the same."""

    learnt: Learnt
    list_usd: Decimal | None
    list_source: str | None
    percent: Decimal | None
    """By how much it differs from the list price; below zero: less."""
    policy_usd: Decimal | None
    """The policy's own rate of the type, which wins."""
    policy_percent: Decimal | None
    """The policy's percentage, which is not taken off."""

    @property
    def rate(self) -> OwnRate:
        """The rate itself."""
        return self.learnt.rate

    @property
    def name(self) -> str:
        """`ml.g5.2xlarge, Training, us-east-1`."""
        return f"{self.rate.what}, {self.rate.component.value}, {self.rate.region}"


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: the rows, the sentences below them, and what becomes of known rates."""

    lesson: Lesson
    merged: Merged
    rows: list[Row]
    notes: list[str]
    in_use: bool
    """Whether the policy names a file of own rates already."""


def view_of(taught: Taught, discounts: Discounts) -> View:
    """Every learnt rate beside the report's public price, else the packaged one."""
    rows = [_row(learnt, discounts) for learnt in taught.lesson.learnt]
    notes = [*taught.notes, *_notes(taught.lesson, rows)]
    in_use = discounts.learnt is not None
    return View(taught.lesson, taught.merged, rows, notes, in_use)


def _row(learnt: Learnt, discounts: Discounts) -> Row:
    rate, listed, source = learnt.rate, learnt.list_usd, "report"
    if listed is None:
        book = sources.offline_book(rate.region, rate.component, rate.last)
        packaged = (
            book.storage(rate.region, rate.component)
            if rate.what == STORAGE
            else book.hourly(rate.region, rate.component, rate.what)
        )
        listed, source = (packaged.usd, "packaged") if packaged else (None, "")
    percent = None if listed is None else 100 * (rate.usd - listed) / listed
    family = None if rate.what == STORAGE else rate.what
    return Row(
        learnt,
        listed,
        source or None,
        percent,
        policy_usd=discounts.rates.get(rate.region, {}).get(rate.what),
        policy_percent=percent_off(discounts, rate.component, family),
    )


def document(view: View) -> dict[str, Any]:
    """The document of --output json."""
    lesson, merged = view.lesson, view.merged
    replaced = {new: old for old, new in merged.replaced}
    return {
        "schema": 1,
        "basis": lesson.basis.value,
        "currency": "USD",
        "rates": [_json(row, merged, replaced) for row in view.rows],
        "not_learnt": [
            {
                "type": found.product.what,
                "region": found.product.region,
                "component": found.product.component.value,
                "first": found.first,
                "last": found.last,
                "why": found.why,
            }
            for found in lesson.not_learnt
        ],
        "seen": [
            {
                "usage": seen.text,
                "area": seen.area,
                "why": seen.why,
                "quantity": seen.quantity,
                "usd": seen.usd,
            }
            for seen in lesson.seen
        ],
        "left_out": [
            {"kind": left.kind, "lines": left.lines, "usd": left.usd} for left in lesson.left_out
        ],
        "notes": view.notes,
    }


def _json(row: Row, merged: Merged, replaced: Mapping[OwnRate, OwnRate]) -> dict[str, Any]:
    rate, before = row.rate, replaced.get(row.rate)
    known = "added" if rate in merged.added else "same"
    return {
        "type": rate.what,
        "region": rate.region,
        "component": rate.component.value,
        "usd": rate.usd,
        "unit": "GB-month" if rate.what == STORAGE else "hour",
        "first": rate.first,
        "last": rate.last,
        "quantity": rate.quantity,
        "cost_usd": row.learnt.usd,
        "list_usd": row.list_usd,
        "list_source": row.list_source,
        "difference_percent": None if row.percent is None else row.percent.quantize(_PERMILLE),
        "note": rate.note,
        "change": known if before is None else "changed",
        "before_usd": None if before is None else before.usd,
        "wins": "learnt" if row.policy_usd is None else "policy",
        "policy_usd": row.policy_usd,
    }


def show(view: View, console: Console) -> None:
    """Prints the rates, why others are missing, and the notes."""
    table = plain_table(
        *("Type", "Region", "For", "Own rate", "List", "Diff", "Used", "From", "To"),
        right=("Own rate", "List", "Diff", "Used"),
        unbroken=("Own rate", "List", "Diff", "Used", "From", "To"),
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
    lesson = view.lesson
    for found in lesson.not_learnt[:_SHOWN]:
        product = found.product
        name = f"{product.what}, {product.component.value}, {product.region}"
        console.print(Text(terminal(f"No rate for {name}: {found.why}.")))
    if len(lesson.not_learnt) > _SHOWN:
        console.print(Text(f"+{len(lesson.not_learnt) - _SHOWN} more: --output json shows all"))
    for note in view.notes:
        sentence = note if note.startswith(("ml.", STORAGE)) else f"{note[0].upper()}{note[1:]}"
        console.print(Text(terminal(f"{sentence}."), "dim"))


def _notes(lesson: Lesson, rows: list[Row]) -> Iterator[str]:
    """Sentences without full stops: averages, what is left out, and which price wins."""
    for row in rows:
        if row.rate.note:
            yield f"{row.name}: {row.rate.note}"
    if lesson.basis is RateBasis.AMORTISED:
        yield (
            "amortised rates count what a Savings Plan costs, which is paid used or not:"
            " they hold for the days that they were learnt from"
        )
    yield from lesson.notes
    for left in lesson.left_out:
        lines = "line" if left.lines == 1 else "lines"
        yield (
            f"left out, because it is no usage at a price: {left.lines:,} {lines} of {left.kind},"
            f" {usd(left.usd)}"
        )
    unknown = [seen for seen in lesson.seen if seen.area in _OF_JOBS]
    for seen in unknown[:_SHOWN]:
        yield (
            f"seen, and in no rate because {seen.why}: {seen.text},"
            f" {seen.quantity:,.2f} units, {usd(seen.usd)}"
        )
    elsewhere = sum((seen.usd for seen in lesson.seen if seen not in unknown), Decimal(0))
    if elsewhere:
        yield f"other SageMaker usage, {usd(elsewhere)}, is of no job: endpoints, notebooks"
    yield from _which_wins(rows)
    yield from _one_discount(lesson, rows)


def _which_wins(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        if row.policy_usd is not None and row.rate.what != STORAGE:
            yield (
                f"{row.name}: the policy's rate of {shown_rate(row.policy_usd)} wins over the"
                f" learnt {shown_rate(row.rate.usd)}: remove it from [discounts.rates] to use"
                " what was paid"
            )
    if any(row.policy_percent for row in rows):
        yield (
            "the percentages of [discounts.percent] are not taken off learnt rates, which are net"
            " already; they stay for what has no learnt rate"
        )


def _one_discount(lesson: Lesson, rows: list[Row]) -> Iterator[str]:
    """The percentage that all types of a component share, for the types without an own rate."""
    shares: dict[str, list[Decimal]] = {}
    for row in rows:
        if row.percent is not None and row.rate.what != STORAGE and row.rate.note is None:
            shares.setdefault(row.rate.component.value, []).append(-row.percent)
    for component, off in shares.items():
        one = max(off) - min(off) <= _SAME_PERCENT and len(off) >= _FEWEST_TYPES
        if lesson.basis is RateBasis.NET and one and min(off) >= _LEAST_PERCENT:
            percent = (sum(off, Decimal(0)) / len(off)).quantize(Decimal("0.1"))
            yield (
                f"all {component} rates are {percent}% below the list: {component} = {percent} in"
                " [discounts.percent] gives types without a learnt rate the same"
            )


def closing(view: View, path: Path, policy: Path | None, *, written: bool) -> Iterator[str]:
    """What was written, which known rates had to go, and the next command to run."""
    merged = view.merged
    new = len(merged.added) + len({rate for _, rate in merged.replaced})
    verb = "written" if written else "nothing is written; it would be"
    yield (
        f"{path}: {verb}: {len(merged.added)} rates added, {len(merged.replaced)} replaced,"
        f" {len(merged.rates.rows) - new} kept"
    )
    for old, rate in merged.replaced[:_SHOWN]:
        yield (
            f"replaced {old.what}, {old.component.value}, {old.region}, {old.days}:"
            f" {shown_rate(old.usd)} becomes {shown_rate(rate.usd)} ({rate.days})"
        )
    policy = policy or Path("policy.toml")
    if not view.in_use:
        # Both may be given from anywhere; the policy's own folder is where its paths begin.
        name = os.path.relpath(path, policy.parent)
        yield f"to use them, write own_rates = {json.dumps(name)} under [discounts] in {policy}"
    yield f"then run: sageaudit audit JOB --policy {policy}"
