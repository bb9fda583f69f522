"""What one audit adds to sums, as whole numbers, which add up exactly and quickly.

Dollars are micro-dollars, since amounts are stored with six decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from msgspec.structs import fields

from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums

_DIGITS = 6
_MAX_FIGURE = 2**63 - 1
"""SQLite and arrays store no larger numbers."""
Numbers = Mapping[str, int]
"""Counts, and amounts in micro-dollars, by the name of their field. Zeros are left out."""
UsageFigures = Mapping[str, int | None]
"""Micro-dollars or millionths of an hour or a GB-month, by usage type. None if unknown."""


def to_micro_usd(usd: Decimal) -> int:
    """Returns an amount in micro-dollars."""
    return int(usd.scaleb(_DIGITS))


@lru_cache(1_000)
def from_micro_usd(amount: int) -> Decimal:
    """Returns an amount in USD. Raises TypeError if the amount is not an int."""
    if type(amount) is not int:
        raise TypeError(f"{amount!r} is no amount")
    return Decimal(amount).scaleb(-_DIGITS)


def to_micros(amounts: Mapping[str, Decimal | None]) -> UsageFigures:
    """Returns amounts in micro-dollars, or quantities in millionths."""
    return {
        name: None if amount is None else to_micro_usd(amount) for name, amount in amounts.items()
    }


class MicroSums(Struct, frozen=True):
    """The numbers of a `Sums`, and of each of its rules."""

    numbers: dict[str, int] = field(default_factory=dict)
    rules: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def from_sums(cls, sums: Sums) -> MicroSums:
        """Returns the numbers of these sums."""
        return cls(_micros(sums), {name: _micros(rule) for name, rule in sums.rules.items()})

    @property
    def sums(self) -> Sums:
        """The same as a `Sums`. Rules whose numbers are all 0 are left out."""
        rules = {
            name: RuleSums(**_from_micros(RuleSums, numbers))
            for name, numbers in self.rules.items()
            if any(numbers.values())
        }
        return Sums(**_from_micros(Sums, self.numbers), rules=rules)


def _micros(sums: Sums | RuleSums) -> dict[str, int]:
    numbers = ((name, getattr(sums, name)) for name in _FROM_MICROS[type(sums)])
    return {
        name: to_micro_usd(number) if isinstance(number, Decimal) else number
        for name, number in numbers
        if number
    }


_FROM_MICROS: dict[type[Sums | RuleSums], dict[str, Any]] = {
    form: {
        field.name: from_micro_usd if field.name.endswith("_usd") else int
        for field in fields(form)
        if field.name != "rules"
    }
    for form in (Sums, RuleSums)
}


def _from_micros(form: type[Sums | RuleSums], numbers: Numbers) -> dict[str, Any]:
    # Leaves out zeros, which are the fields' defaults, and names of newer versions.
    readers = _FROM_MICROS[form]
    return {
        name: readers[name](number)
        for name, number in numbers.items()
        if number and name in readers
    }


class RunFigures(Struct, frozen=True, array_like=True):
    """The figures of a run that are added up, in seconds and micro-dollars. None if unknown.

    `usage_micro_quantity` is in millionths of an hour or a GB-month, and only of a usage type.
    """

    total_micro_usd: int | None = None
    waiting_s: int | None = None
    instance_s: int | None = None
    gpu_s: int | None = None
    idle_gpu_s: int | None = None
    storage_micro_usd: int | None = None
    warm_pool_micro_usd: int | None = None
    spot_saved_micro_usd: int | None = None
    usage_micro_quantity: int | None = None

    @classmethod
    def from_summary(cls, summary: AuditSummary) -> RunFigures:
        """Returns the figures in a summary. Raises ValueError for one above 64 bits."""
        fields_of_summary = (getattr(summary, name) for name in FIGURE_FIELDS)
        figures = [
            to_micro_usd(figure) if isinstance(figure, Decimal) else figure
            for figure in fields_of_summary
        ]
        if any(figure is not None and abs(figure) > _MAX_FIGURE for figure in figures):
            raise ValueError("a figure is too large to be added up")
        return cls(*figures)


FIGURE_FIELDS = tuple(
    name.replace("_micro_usd", "_usd") for name in RunFigures.__struct_fields__[:-1]
)
"""The fields of a summary with the figures of a run, in the order of RunFigures."""


class SumPart(Struct, frozen=True):
    """What one audit adds to sums.

    `label` is what the caller's function returned for the audit. If it is None, the audit is left
    out, and its numbers were not read. The usage figures are empty unless they were asked for.
    """

    label: Any
    ended_at: datetime
    sums: MicroSums = MicroSums()
    figures: RunFigures = RunFigures()
    usage_quantities: UsageFigures = field(default_factory=dict)
    usage_costs: UsageFigures = field(default_factory=dict)

    @classmethod
    def from_summary(cls, label: Any, summary: AuditSummary) -> SumPart:
        """Returns what the audit with this summary adds."""
        if label is None:
            return cls(None, summary.ended_at)
        return cls(
            label,
            summary.ended_at,
            MicroSums.from_sums(summary.sums),
            RunFigures.from_summary(summary),
            to_micros(summary.usage_quantities or {}),
            to_micros(summary.usage_costs or {}),
        )


PART_FIELDS = ("ended_at", "sums", *FIGURE_FIELDS)
"""The fields of a summary that `SumPart.from_summary` reads, without the usage figures."""
USAGE_FIELDS = ("usage_quantities", "usage_costs")
