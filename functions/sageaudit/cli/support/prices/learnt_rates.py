"""Learns own rates from cost reports, and adds them to a file of own rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sageaudit.adapters.billing.paid_lines import MOST_REMEMBERED, PaidLines
from sageaudit.adapters.files import own_rates_file
from sageaudit.adapters.prices import price_table
from sageaudit.domain.prices.own_rates import Merged, OwnRates, RateBasis, merged, own_rates
from sageaudit.domain.reconcile.learning import learn
from sageaudit.domain.reconcile.lesson import Lesson
from sageaudit.domain.reconcile.paid_line import ReportLine
from sageaudit.errors import BadUsage


@dataclass(frozen=True, slots=True)
class Taught:
    """What reports teach, beside what a file knows already. `notes`: how they were read."""

    lesson: Lesson
    merged: Merged
    notes: tuple[str, ...]


def taught(paths: Sequence[Path], account: str | None, basis: RateBasis, file: Path) -> Taught:
    """What the reports add to a file of own rates.

    Raises BadUsage for a report that cannot be read, and for a file of something else.
    """
    before, reports = _known(file, basis, account), PaidLines(account)
    source = ", ".join(path.name for path in paths)
    lesson = learn(_lines(reports, paths), basis, source)
    if not reports.read_lines:
        of = "" if account is None else f" of account {account}"
        raise BadUsage(f"{source}: has no SageMaker line{of}")
    rates = own_rates(basis, account, (found.rate for found in lesson.learnt))
    return Taught(lesson, merged(before, rates), tuple(_notes(reports)))


def write(rates: OwnRates, path: Path) -> None:
    """Replaces the file atomically. Raises BadUsage where it cannot be written."""
    price_table.write(own_rates_file.text_of(rates), path)


def _lines(reports: PaidLines, paths: Sequence[Path]) -> Iterator[ReportLine]:
    for path in paths:
        yield from reports.read(path)


def _notes(reports: PaidLines) -> Iterator[str]:
    if reports.repeats:
        yield (
            f"{reports.repeats:,} lines are in two of the files (two versions of one report?):"
            " each is counted once"
        )
    if reports.forgets:
        yield f"lines that are in two files are found among the first {MOST_REMEMBERED:,} only"


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
