"""Works out own rates from the lines of a cost report.

A rate is what was paid, divided by what was used, so that rate times usage is the report's cost
within the report's own rounding. Where lines of the same days have different prices, their average
weighted by usage is the rate, and its note says so.

Not a rate: credits, refunds, taxes, fees, and usage at $0. Usage that no price table knows, such as
a spot role, is reported as seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from sageaudit.domain.job.ref import REGION
from sageaudit.domain.prices.own_rates import TYPE, OwnRate, RateBasis
from sageaudit.domain.prices.price_list import ROLES, STORAGE
from sageaudit.domain.reconcile.lesson import (
    Learnt,
    Lesson,
    NotLearnt,
    NoUsage,
    Product,
    Seen,
)
from sageaudit.domain.reconcile.paid_line import DiscountLine, LeftOut, PaidLine, ReportLine
from sageaudit.domain.reconcile.price_stretches import ReportPrecision, Span, Stretch, stretches
from sageaudit.domain.reconcile.usage_type import Usage, parsed
from sageaudit.errors import BadUsage

_COMPONENTS = {role.lower(): component for component, role in ROLES.items()}
_UNITS = {
    "hours": frozenset({"", "hrs", "hr", "hours", "hour"}),
    "GB-months": frozenset({"", "gb-mo", "gb-month", "gb-months"}),
}
_ZERO = Decimal(0)


@dataclass(slots=True)
class _Tally:
    """Sums of the lines read so far; memory holds one for each product and day.

    `covered`: usage that a Savings Plan paid for and the basis does not count.
    """

    basis: RateBasis
    spans: dict[Product, dict[tuple[date, date], Span]] = field(default_factory=dict)
    covered: dict[Product, Span] = field(default_factory=dict)
    discounts: dict[tuple[str, str, str | None, str, str], list[Decimal]] = field(
        default_factory=dict
    )
    """Lines and USD by kind, usage type, region, month and payer."""
    net: set[str] = field(default_factory=set)
    """The payers whose usage lines have their discounts in their own cost."""
    seen: dict[tuple[str, str, str], list[Decimal]] = field(default_factory=dict)
    left_out: dict[str, list[Decimal]] = field(default_factory=dict)
    accounts: set[str] = field(default_factory=set)
    payers: set[str] = field(default_factory=set)
    precision: ReportPrecision = field(default_factory=ReportPrecision)

    def leave_out(self, kind: str, usd: Decimal, lines: Decimal = Decimal(1)) -> None:
        counted = self.left_out.setdefault(kind, [_ZERO, _ZERO])
        counted[0] += lines
        counted[1] += usd

    def discount(self, line: DiscountLine) -> None:
        key = (line.kind, line.usage_type, line.region, f"{line.day:%Y-%m}", line.payer)
        counted = self.discounts.setdefault(key, [_ZERO, _ZERO])
        counted[0] += 1
        counted[1] += line.usd

    def see(self, usage: Usage, why: str, quantity: Decimal, usd: Decimal) -> None:
        counted = self.seen.setdefault((usage.text, usage.area, why), [_ZERO, _ZERO])
        counted[0] += quantity
        counted[1] += usd

    def count(self, product: Product, line: PaidLine, usd: Decimal) -> None:
        """Adds usage at a price, or usage of a plan that this basis does not count."""
        days = (line.first, line.last)
        if line.covered and self.basis is RateBasis.NET:
            covered = self.covered.setdefault(product, Span(*days))
            covered.join(Span(*days, covered=line.quantity))
            return
        self.precision.see(line.quantity, usd)
        span = self.spans.setdefault(product, {}).setdefault(days, Span(*days))
        span.add(line.quantity, usd)
        span.covered += line.quantity if line.covered else _ZERO
        span.list_rate = line.list_rate or span.list_rate


def learn(lines: Iterable[ReportLine], basis: RateBasis, source: str) -> Lesson:
    """The rates of all lines, which are read once. `source` names the report.

    Raises BadUsage for a discount without a usage type, because no rate is net of it, and for
    covered usage without an amortised cost where `basis` needs one.
    """
    tally = _Tally(basis)
    for line in lines:
        if isinstance(line, PaidLine):
            _count(line, tally)
        elif isinstance(line, LeftOut):
            tally.leave_out(line.kind, line.usd)
        else:
            tally.discount(line)
    found = [*_found(tally, _discounts(tally), source)]
    learnt = tuple(rate for rate, _ in found if isinstance(rate, Learnt))
    return Lesson(
        basis=basis,
        learnt=learnt,
        not_learnt=tuple(rate for rate, _ in found if isinstance(rate, NotLearnt)),
        seen=tuple(Seen(*key, *sums) for key, sums in sorted(tally.seen.items())),
        left_out=tuple(
            NoUsage(kind, int(lines_), usd)
            for kind, (lines_, usd) in sorted(tally.left_out.items())
        ),
        notes=tuple(
            _notes(
                tally,
                sum((free for _, free in found), _ZERO),
                averaged=any(rate.rate.note is not None for rate in learnt),
            )
        ),
    )


def _count(line: PaidLine, tally: _Tally) -> None:
    usage, usd = parsed(line.usage_type), line.usd
    if line.covered and tally.basis is RateBasis.AMORTISED:
        if line.amortised_usd is None:
            raise BadUsage(
                "the report has usage under a Savings Plan without the plan's cost of it"
                " (savings_plan_savings_plan_effective_cost): export it with that column"
            )
        usd = line.amortised_usd
    if usd < 0 or line.quantity < 0:
        tally.leave_out("Usage below zero", usd)
        return
    if not line.quantity:
        tally.leave_out("Usage without a quantity", usd)
        return
    tally.accounts.add(line.account)
    tally.payers.add(line.payer)
    if line.net:
        tally.net.add(line.payer)
    product = _product(usage, line.region)
    if product is not None and line.unit.lower() in _UNITS[product.unit]:
        tally.count(product, line, usd)
        return
    why = "no price table knows it"
    if product is not None:
        why = f"it is counted in {line.unit[:20]}, not in {product.unit}"
    elif line.region is None or not REGION.fullmatch(line.region):
        why = "its region is not named"
    tally.see(usage, why, line.quantity, usd)


def _product(usage: Usage, region: str | None) -> Product | None:
    """What the usage is of; None for what no price table knows, and where the region is unknown."""
    component, what = _COMPONENTS.get(usage.role.lower()), usage.what.lower()
    if component is None or region is None or not REGION.fullmatch(region):
        return None
    if what == STORAGE.lower():
        return Product(region, component, STORAGE)
    return Product(region, component, what) if TYPE.fullmatch(what) else None


def _discounts(tally: _Tally) -> dict[tuple[Product, str], Decimal]:
    """USD of discounts by product and month that usage lines do not have in their cost already.

    Raises BadUsage for one that names no usage type.
    """
    found: dict[tuple[Product, str], Decimal] = {}
    for (kind, usage_type, region, month, payer), (lines, usd) in tally.discounts.items():
        product = _product(parsed(usage_type), region)
        if payer in tally.net:
            tally.leave_out(f"{kind} (the net costs have it already)", usd, lines)
        elif product is not None:
            found[product, month] = found.get((product, month), _ZERO) + usd
        elif usage_type:
            tally.leave_out(kind, usd, lines)
        elif usd:
            raise BadUsage(
                f"the report has discounts ({kind}) as lines that name no usage type, so no rate"
                " can be net of them: export it with net costs (line_item_net_unblended_cost)"
            )
    return found


def _found(
    tally: _Tally, discounts: Mapping[tuple[Product, str], Decimal], source: str
) -> Iterator[tuple[Learnt | NotLearnt, Decimal]]:
    """Each rate, or why there is none, with the usage at $0 that it leaves out."""
    for product in sorted({*tally.spans, *tally.covered}, key=_order):
        spans = tally.spans.get(product, {})
        if not spans:
            covered = tally.covered[product]
            why = "a Savings Plan covers all of it: --amortised counts what the plan costs"
            yield NotLearnt(product, covered.first, covered.last, why), _ZERO
        months: dict[str, list[Span]] = {}
        for span in spans.values():
            months.setdefault(f"{span.first:%Y-%m}", []).append(span)
        for month, of_month in sorted(months.items()):
            share = _paid_share(of_month, discounts.get((product, month), _ZERO))
            for found in stretches(of_month, tally.precision, product.unit, paid_share=share):
                yield _named(product, found, source), found.free if found.rate else _ZERO


def _named(product: Product, found: Stretch, source: str) -> Learnt | NotLearnt:
    if found.rate is None:
        return NotLearnt(product, found.first, found.last, found.why_not or "no rate")
    rate = OwnRate(
        product.region,
        product.component,
        product.what,
        usd=found.rate,
        first=found.first,
        last=found.last,
        quantity=found.quantity,
        source=source,
        note=found.note,
    )
    return Learnt(rate, found.usd, found.list_rate)


def _paid_share(spans: Iterable[Span], discount: Decimal) -> Decimal:
    """What discounts as lines of their own, below zero, leave of 1 USD of a month's cost."""
    whole = sum((span.usd for span in spans), _ZERO)
    return (whole + discount) / whole if whole and discount else Decimal(1)


def _notes(tally: _Tally, free: Decimal, *, averaged: bool) -> Iterator[str]:
    covered = sum((span.covered for span in tally.covered.values()), _ZERO)
    if covered:
        yield (
            f"{covered:.2f} hours are covered by a Savings Plan and in no rate here:"
            " --amortised counts them at the plan's cost"
        )
    if free:
        yield f"{free:.2f} hours or GB-months cost $0 and are in no rate: a free tier is not a rate"
    if len(tally.payers) > 1:
        yield (
            f"the report has lines of {len(tally.payers)} payer accounts, which may have prices of"
            " their own: --account learns those of one account"
        )
    elif averaged and len(tally.accounts) > 1:
        yield (
            f"the report has lines of {len(tally.accounts)} accounts: where an average is of their"
            " different prices, --account learns those of one account"
        )


def _order(product: Product) -> tuple[str, str, str]:
    return product.what, product.region, product.component.value
