"""Sums over audits: what one audit adds, and daily sums by account, family, owner, type and tag.

A roll-up adds only its own findings, because it repeats its children's dollars. An unknown amount
adds 1 to the count of unknown amounts.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import (
    SpendQualifier,
    is_upper_bound,
    qualify_amount,
    undercounted_parts,
)
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import (
    FindingDocument,
    has_open_trial,
    is_standing,
    max_saving_usd,
)
from sageaudit.domain.bill.finding import Bucket

MAX_RULES_BY_NAME = 40
"""The most rules that an audit adds to by name, in the order of its findings. Further rules are
added to OTHERS."""
OTHERS = "(others)"
"""The name under which rules beyond `MAX_RULES_BY_NAME` are summed."""
_JUDGED = frozenset({Judged.YES, Judged.PARTLY})
_ZERO = Decimal(0)
_MICRODOLLAR = Decimal("0.000001")
_LARGEST_EXPONENT = 8
"""Amounts of $1,000,000,000 or more are not stored. SQLite's integers hold the sum of 9,000 such
amounts in millionths."""


class Scope(enum.StrEnum):
    """What the audits of one day are summed by."""

    ACCOUNT = "account"
    FAMILY = "family"
    OWNER = "owner"
    TYPE = "type"
    """The instance type; None if a job has several, or an unknown one."""
    TAG = "tag"
    """A cost tag with its value, as `tag_sum_name` writes it. Unlike in the other scopes, a job is
    in no row if it has none of the tags, and in several rows if it has several."""


def tag_sum_name(tag: str, value: str) -> str:
    """Returns the name of the daily sums of a cost tag's value, such as `team=vision`."""
    return f"{tag}={value}"


class RuleSums(Struct, frozen=True):
    """The sums of one rule's standing findings in USD, by bucket.

    The `*_range_usd` fields say how much more findings with a range may save. The `*_unknown`
    fields count findings with unknown dollars. `estimated` counts findings at an estimated rate.
    """

    findings: int = 0
    avoidable_usd: Decimal = _ZERO
    lost_usd: Decimal = _ZERO
    possible_usd: Decimal = _ZERO
    avoidable_range_usd: Decimal = _ZERO
    lost_range_usd: Decimal = _ZERO
    possible_range_usd: Decimal = _ZERO
    avoidable_unknown: int = 0
    lost_unknown: int = 0
    possible_unknown: int = 0
    estimated: int = 0

    @property
    def waste_usd(self) -> Decimal:
        """Avoidable and lost dollars together."""
        return self.avoidable_usd + self.lost_usd

    def known_usd(self, bucket: Bucket) -> Decimal | None:
        """Returns the dollars of a bucket; None if no finding has known dollars."""
        usd: Decimal = getattr(self, f"{bucket}_usd")
        return None if not usd and self.unknown(bucket) >= self.findings > 0 else usd

    def max_usd(self, bucket: Bucket) -> Decimal | None:
        """Returns the most dollars of a bucket, with the upper ends of ranges; None if unknown."""
        usd = self.known_usd(bucket)
        range_usd: Decimal = getattr(self, f"{bucket}_range_usd")
        return None if usd is None else usd + range_usd

    def unknown(self, bucket: Bucket) -> int:
        """Returns the number of findings in a bucket with unknown dollars."""
        count: int = getattr(self, f"{bucket}_unknown")
        return count

    def __add__(self, other: RuleSums) -> RuleSums:
        return RuleSums(**_numbers((self, other)))

    def __neg__(self) -> RuleSums:
        return RuleSums(**_negative(self))


class Sums(Struct, frozen=True):
    """Sums of the newest versions of audits. Counts are of jobs, without roll-ups.

    `failed`: failed jobs that had started. `unpriced`: jobs of unknown total, which are in no sum.
    `incomplete`: jobs whose total lacks a part. `upper_bounds`: jobs whose total is an upper bound.
    `estimated`: jobs at an estimated rate. The `*_unknown` fields count jobs whose dollars of this
    kind are unknown. `judged_usd`: the total of jobs that were judged at least in part. `idle_usd`:
    the value of idle capacity. `idle_counted_usd`: its part in avoidable or lost dollars.
    """

    jobs: int = 0
    failed: int = 0
    unauditable: int = 0
    not_judged: int = 0
    partly_judged: int = 0
    unpriced: int = 0
    incomplete: int = 0
    upper_bounds: int = 0
    estimated: int = 0
    avoidable_unknown: int = 0
    lost_unknown: int = 0
    possible_unknown: int = 0
    idle_unknown: int = 0
    total_usd: Decimal = _ZERO
    judged_usd: Decimal = _ZERO
    avoidable_usd: Decimal = _ZERO
    lost_usd: Decimal = _ZERO
    lost_up_to_usd: Decimal = _ZERO
    possible_usd: Decimal = _ZERO
    idle_usd: Decimal = _ZERO
    idle_counted_usd: Decimal = _ZERO
    rules: Mapping[str, RuleSums] = field(default_factory=dict)

    @property
    def waste_usd(self) -> Decimal:
        """Avoidable and lost dollars together."""
        return self.avoidable_usd + self.lost_usd

    @property
    def known_total_usd(self) -> Decimal | None:
        """The total; None if no job has a known total."""
        return self._known_usd(self.total_usd, self.total_unknown_count)

    @property
    def known_avoidable_usd(self) -> Decimal | None:
        """The avoidable dollars; None if they are known for no job."""
        return self._known_usd(self.avoidable_usd, self.avoidable_unknown)

    @property
    def known_lost_usd(self) -> Decimal | None:
        """The lost dollars; None if they are known for no job."""
        return self._known_usd(self.lost_usd, self.lost_unknown)

    @property
    def known_lost_up_to_usd(self) -> Decimal | None:
        """The upper end of the lost dollars; None if they are known for no job."""
        return self._known_usd(self.lost_up_to_usd, self.lost_unknown)

    @property
    def known_possible_usd(self) -> Decimal | None:
        """The possible dollars; None if they are known for no job."""
        return self._known_usd(self.possible_usd, self.possible_unknown)

    @property
    def known_idle_usd(self) -> Decimal | None:
        """The value of idle capacity; None if it is known for no job."""
        return self._known_usd(self.idle_usd, self.idle_unknown)

    @property
    def total_unknown_count(self) -> int:
        """The number of jobs whose total is unknown."""
        return self.unpriced + self.unauditable

    @property
    def spend_qualifier(self) -> SpendQualifier:
        """How exactly the total is known."""
        return qualify_amount(
            is_known=self.known_total_usd is not None,
            lower_bound=bool(self.incomplete + self.total_unknown_count),
            upper_bound=bool(self.upper_bounds),
            estimated=bool(self.estimated),
        )

    def _known_usd(self, usd: Decimal, unknown: int) -> Decimal | None:
        return None if not usd and unknown and unknown >= self.jobs else usd

    def __add__(self, other: Sums) -> Sums:
        return add_sums((self, other))

    def __sub__(self, other: Sums) -> Sums:
        return add_sums((self, -other))

    def __neg__(self) -> Sums:
        return Sums(**_negative(self), rules={name: -rule for name, rule in self.rules.items()})


class SumRow(Struct, frozen=True):
    """The sums of one day and one name. Rows of the same day and name add up.

    `day`: the day (UTC) on which the jobs ended. `name`: None for Scope.ACCOUNT, and for audits
    without an owner or a single type.
    """

    scope: Scope
    account: str
    region: str
    name: str | None
    day: date
    sums: Sums

    @property
    def place(self) -> tuple[Scope, str, str, str | None, date]:
        """What the row adds up: all fields but the sums."""
        return self.scope, self.account, self.region, self.name, self.day


class ChangedFamily(Struct, frozen=True):
    """A family whose spend changed. `change`: increased, decreased, new or gone.

    `qualifier`: how exactly the size of the change is known. `previous_sums`: those of the same
    number of days before.
    """

    family: str | None
    change: str
    change_usd: Decimal
    sums: Sums
    previous_sums: Sums
    qualifier: SpendQualifier = SpendQualifier.EXACT


Key = TypeVar("Key")


def add_sums(parts: Sequence[Sums]) -> Sums:
    """Returns the sum of all parts."""
    if len(parts) == 1 and RuleSums() not in parts[0].rules.values():
        return parts[0]
    parts_by_rule: dict[str, list[RuleSums]] = defaultdict(list)
    for part in parts:
        for name, rule in part.rules.items():
            parts_by_rule[name].append(rule)
    rules = {name: RuleSums(**_numbers(rows)) for name, rows in parts_by_rule.items()}
    nonzero = {name: rule for name, rule in rules.items() if rule != RuleSums()}
    return Sums(**_numbers(parts), rules=nonzero)


def sum_rows(rows: Iterable[SumRow]) -> Sums:
    """Returns the sum of all rows, which must be of one scope.

    Each scope counts every audit once.
    """
    return add_sums([row.sums for row in rows])


def group_rows(rows: Iterable[SumRow], key: Callable[[SumRow], Key]) -> dict[Key, Sums]:
    """Returns the sums of rows by `key`, in order of first occurrence."""
    parts: dict[Key, list[Sums]] = defaultdict(list)
    for row in rows:
        parts[key(row)].append(row.sums)
    return {group: add_sums(sums) for group, sums in parts.items()}


def project_spend(
    finished_usd: Decimal, today_usd: Decimal, finished_days: int, days_left: int
) -> Decimal:
    """Returns the projected spend of a period in USD.

    Each of the `days_left` days after today costs the average of the finished days (at least one).
    Today costs at least what it has cost so far.
    """
    daily_usd = finished_usd / finished_days
    return finished_usd + max(today_usd, daily_usd) + days_left * daily_usd


def sums_from_document(document: AuditDocument) -> Sums:
    """Returns what one audit adds to sums."""
    if document["rollup"]:
        own_findings = [
            row for row in document["findings"] if row["rule"] in document["rollup_rules"]
        ]
        rules = _rules(document, own_findings)
        total = sum(rules.values(), RuleSums())
        return Sums(
            avoidable_usd=total.avoidable_usd,
            lost_usd=total.lost_usd,
            lost_up_to_usd=total.lost_usd,
            possible_unknown=int(has_open_trial(own_findings)),
            possible_usd=total.possible_usd,
            rules=rules,
        )
    bill, idle, idle_usd = (
        document["bill"],
        document["idle_capacity"],
        unused_capacity_usd(document),
    )
    is_unauditable = document["unauditable"] is not None
    has_never_started = document["job"]["started_at"] is None and bill["total_usd"] == 0
    return Sums(
        jobs=1,
        failed=int(document["job"]["status"] == "Failed" and not has_never_started),
        unauditable=int(is_unauditable),
        not_judged=int(document["judged"] == Judged.NO),
        partly_judged=int(document["judged"] == Judged.PARTLY),
        unpriced=int(storable_usd(bill["total_usd"]) is None and not is_unauditable),
        incomplete=int(
            bool(undercounted_parts(bill)) and storable_usd(bill["total_usd"]) is not None
        ),
        upper_bounds=int(is_upper_bound(bill)),
        estimated=int(bool(bill["estimated"])),
        avoidable_unknown=int(storable_usd(document["avoidable_usd"]) is None),
        lost_unknown=int(storable_usd(document["lost_usd"]) is None),
        possible_unknown=int(
            storable_usd(document["possible_usd"]) is None or has_open_trial(document["findings"])
        ),
        idle_unknown=int(idle_usd is None),
        total_usd=_usd_or_zero(bill["total_usd"]),
        judged_usd=_usd_or_zero(bill["total_usd"] if document["judged"] in _JUDGED else None),
        avoidable_usd=_usd_or_zero(document["avoidable_usd"]),
        lost_usd=_usd_or_zero(document["lost_usd"]),
        lost_up_to_usd=_usd_or_zero(document["lost_up_to_usd"]),
        possible_usd=_usd_or_zero(document["possible_usd"]),
        idle_usd=_usd_or_zero(idle_usd),
        idle_counted_usd=_usd_or_zero(idle["counted_usd"] if idle else None),
        rules=_rules(document, document["findings"]),
    )


def unused_capacity_usd(document: AuditDocument) -> Decimal | None:
    """Returns the value of unused capacity in USD: None if unknown, 0 if nothing was paid."""
    bill, idle = document["bill"], document["idle_capacity"]
    if idle is not None and idle["list_usd"] is not None:
        return idle["list_usd"]
    is_nothing_idle = idle is not None and idle["idle"] <= 0
    is_nothing_paid = bill["total_usd"] == 0 and bill["basis"] != "prepaid"
    return _ZERO if is_nothing_idle or is_nothing_paid else None


def _rules(document: AuditDocument, findings: list[FindingDocument]) -> dict[str, RuleSums]:
    sums: dict[str, RuleSums] = {}
    for finding in filter(is_standing, findings):
        name = finding["rule"]
        name = name if name in sums or len(sums) < MAX_RULES_BY_NAME else OTHERS
        sums[name] = sums.get(name, RuleSums()) + _finding_sums(document, finding)
    return sums


def _finding_sums(document: AuditDocument, finding: FindingDocument) -> RuleSums:
    bucket = Bucket(finding["bucket"])
    if bucket is Bucket.NONE:
        return RuleSums(1)
    sums: Mapping[str, Any] = {**document}
    usd, max_usd = storable_usd(finding["saving_usd"]), storable_usd(max_saving_usd(finding))
    amounts: dict[str, Any] = {f"{bucket}_unknown": 1}
    if usd is not None and (not usd or sums[f"{bucket}_usd"] is not None):
        amounts = {f"{bucket}_usd": usd, f"{bucket}_range_usd": (max_usd or usd) - usd}
    return RuleSums(1, **amounts, estimated=int(finding["estimated"]))


def storable_usd(amount: Decimal | None) -> Decimal | None:
    """Rounds USD to 6 decimals; None if the amount is not finite, or too large to store."""
    if amount is None or not amount.is_finite() or amount.adjusted() > _LARGEST_EXPONENT:
        return None
    return amount.quantize(_MICRODOLLAR)


def _usd_or_zero(amount: Decimal | None) -> Decimal:
    return storable_usd(amount) or _ZERO


def _numbers(parts: Sequence[Sums] | Sequence[RuleSums]) -> dict[str, Any]:
    sums_type = type(parts[0]) if parts else Sums
    zero = sums_type()
    return {
        name: sum((getattr(part, name) for part in parts), getattr(zero, name))
        for name in sums_type.__struct_fields__
        if name != "rules"
    }


def _negative(sums: Sums | RuleSums) -> dict[str, Any]:
    return {name: -value for name, value in asdict(sums).items() if name != "rules"}
