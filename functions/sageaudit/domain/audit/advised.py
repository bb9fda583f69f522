"""What a run is advised: of each of its findings one line, stored with its summary."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.domain.bill.finding import Bucket, Scalar, Severity

MOST_ADVISED = 6
"""Of a run, the dearest: what is stored of it stays small."""
_LONGEST_VALUE, _LONGEST_REASON = 100, 200


class Worth(enum.StrEnum):
    """What the dollars of an advice are; those of the two kinds are never added."""

    COUNTED = "counted"
    """Avoidable or lost USD."""
    TRIAL = "trial"
    """USD that are worth a trial."""


class Advised(Struct, frozen=True):
    """What a standing finding of a run advises; one that the policy or a tag accepts has `exempt`,
    who and why.

    `parameter` and `new` as in its fix, empty without one. `also`: the paths that change with it.
    `amount` in USD; None is unknown.
    """

    rule: str
    parameter: str
    new: str
    severity: Severity
    worth: Worth = Worth.COUNTED
    amount: Decimal | None = None
    also: tuple[str, ...] = ()
    exempt: str | None = None

    @property
    def line(self) -> tuple[str, str, Worth]:
        """The same for any value of its parameter."""
        return self.rule, self.parameter or self.new, self.worth


def advised_by(finding: FindingDocument) -> Advised | None:
    """What one finding advises; None where it has no dollars, is another's part, or never posted.

    What may be lost is at stake, too: the upper end of its range.
    """
    bucket, amount, exempt = Bucket(finding["bucket"]), finding["saving_usd"], finding["exempt"]
    fix, accepted = finding["fix"], None
    if exempt:
        amount = finding["saving_alone_usd"]
        until = f" until {exempt['until']}" if exempt["until"] else ""
        accepted = f"{exempt['by']}{until}: {exempt['reason']}"[:_LONGEST_REASON]
    if bucket is Bucket.LOST:
        ends = finding["saving_range_usd"] or []
        amount = max([*ends, *([] if amount is None else [amount])], default=None)
    whole = stands({**finding, "exempt": None}) and finding["in_chat"]
    none = bucket.counted and (finding["severity"] == Severity.INFO or finding["said_of"])
    if bucket is Bucket.NONE or none or amount == 0 or not whole:
        return None
    return Advised(
        rule=finding["rule"],
        parameter=fix[0]["parameter"] if fix else "",
        new=value_text(fix[0]["new"]) if fix else "",
        severity=Severity(finding["severity"]),
        worth=Worth.COUNTED if bucket.counted else Worth.TRIAL,
        amount=amount,
        also=tuple(one["parameter"] for one in fix[1:]),
        exempt=accepted,
    )


def dearest(advised: Iterable[Advised]) -> tuple[Advised, ...]:
    """The most of each line, what is worth most first: what a run stores of it stays small."""
    worths = list(Worth)
    found = sorted(
        advised, key=lambda one: (worths.index(one.worth), -(one.amount or Decimal(0)), one.new)
    )
    return tuple({one.line: one for one in reversed(found)}.values())[::-1][:MOST_ADVISED]


def value_text(value: Scalar) -> str:
    """The text of a parameter's value, by which values are compared; empty for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    number = isinstance(value, int | float | Decimal)
    text = f"{Decimal(str(value)).normalize():f}" if number else str(value)
    return text[:_LONGEST_VALUE]
