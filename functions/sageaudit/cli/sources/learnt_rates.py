"""Learns own rates from cost reports, and adds them to a file of own rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sageaudit.adapters.billing.paid_lines import MOST_REMEMBERED, PaidLines
from sageaudit.adapters.files import own_rates_file
from sageaudit.adapters.prices import price_table
from sageaudit.domain.prices.own_rates import Basis, Merged, OwnRates, merged, own_rates
from sageaudit.domain.reconcile.learning import Lesson, learn
from sageaudit.domain.reconcile.paid_line import ReportLine
from sageaudit.errors import BadUsage


def lesson(
    paths: Sequence[Path], account: str | None, basis: Basis
) -> tuple[Lesson, tuple[str, ...]]:
    """What the reports teach, and notes on how they were read. Raises BadUsage naming the file."""
    reports = PaidLines(account)
    source = ", ".join(path.name for path in paths)
    learnt = learn(_lines(reports, paths), basis, source)
    if not reports.read_lines:
        of = "" if account is None else f" of account {account}"
        raise BadUsage(f"{source}: has no SageMaker line{of}")
    return learnt, tuple(_notes(reports))


def _lines(reports: PaidLines, paths: Sequence[Path]) -> Iterator[ReportLine]:
    for path in paths:
        yield from reports.read(path)


def _notes(reports: PaidLines) -> Iterator[str]:
    if reports.repeats:
        yield (
            f"{reports.repeats:,} lines occur twice (two versions of one report?):"
            " each is counted once"
        )
    if reports.forgets:
        yield f"lines that occur twice are found among the first {MOST_REMEMBERED:,} only"


def known(path: Path, basis: Basis, account: str | None) -> OwnRates:
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


def added(lesson_: Lesson, before: OwnRates) -> Merged:
    """The known rates with those of a lesson."""
    rates = own_rates(before.basis, before.account, (found.rate for found in lesson_.learnt))
    return merged(before, rates)


def write(rates: OwnRates, path: Path) -> None:
    """Replaces the file atomically. Raises BadUsage where it cannot be written."""
    price_table.write(own_rates_file.text_of(rates), path)
