"""Types whose prices are compared with the job's own: if no price of the job's day is known."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.bill.bill import bill
from sageaudit.domain.job.job import InstanceGroup
from sageaudit.domain.job.kinds import Component, JobKind
from sageaudit.domain.policy.discounts import Discounts, with_own_prices
from sageaudit.domain.prices.known_prices import OwnRate, RateBasis, group_own_rates
from sageaudit.domain.prices.market import Era, Market, Rate, is_comparable
from sageaudit.domain.resize.resize import resize
from sageaudit.structs import replace
from tests.fakes.jobs import REGION, TYPES, FixedPrices, estimate_note, flat, not_none, ran

pytestmark = pytest.mark.money

OWN = "ml.m5.4xlarge"
OTHER = "ml.m5.2xlarge"
RUN = ran(3600, OWN, volume_gb=0)
LITTLE = flat(RUN, 60, cpu=10, memory=10)


class DatedPrices(FixedPrices, frozen=True):
    """Rates of the job's day with their era, where `then` has one; else the newest."""

    then: Mapping[str, tuple[str, Era]] | None = None

    def hourly_rate(self, region: str, component: Component, instance_type: str) -> Rate | None:
        newest = self.newest_hourly_rate(region, component, instance_type)
        past = (self.then or {}).get(instance_type)
        if newest is None or past is None or region != self.region:
            return newest
        return newest._replace(usd=Decimal(past[0]), as_of="2023-01", price_age=past[1])

    def newest_hourly_rate(
        self, region: str, component: Component, instance_type: str
    ) -> Rate | None:
        # not super(): dataclass slots make another class of this one
        rate = FixedPrices.hourly_rate(self, region, component, instance_type)
        if rate is None or not rate.is_estimate:
            return rate
        return rate._replace(unlisted_reason="not in the list")


def market(**then: tuple[str, Era]) -> Market:
    """Returns a market with rates of the job's day, such as `m5_4xlarge`; other rates are the
    newest.
    """
    past = {f"ml.{name.replace('_', '.')}": rate for name, rate in then.items()}
    return Market(TYPES, DatedPrices(then=past))


def hourly(prices: Market, name: str) -> Rate:
    """Returns what a type costs a training job here."""
    return not_none(prices.hourly(REGION, JobKind.TRAINING, name))


@pytest.mark.parametrize(
    ("own_then", "other_then", "usd", "era", "by_ratio"),
    [
        # $1.20 then and $0.92 today; the other costs $0.46 today: half of $1.20
        (("1.20", "past"), None, "0.60", "past", True),
        # the job's own rate is today's; $0.70 of another day says nothing beside it
        (None, ("0.70", "past"), "0.46", "today", True),
        # no ratio is better than two prices of one time
        (("1.20", "past"), ("0.70", "past"), "0.70", "past", False),
        (("0.92", "today"), ("0.46", "today"), "0.46", "today", False),
        (("0.92", "ambiguous"), ("0.46", "before_known"), "0.46", "before_known", False),
    ],
)
def test_a_type_without_a_rate_of_the_day_gets_the_ratio_of_the_newest_rates(
    own_then: tuple[str, Era] | None,
    other_then: tuple[str, Era] | None,
    usd: str,
    era: Era,
    by_ratio: bool,
) -> None:
    """Of both types."""
    then = {"m5_4xlarge": own_then, "m5_2xlarge": other_then}
    on = market(**{name: rate for name, rate in then.items() if rate})
    rate = hourly(on.relative_to(RUN), OTHER)
    assert (rate.usd, rate.price_age, rate.is_by_ratio) == (Decimal(usd), era, by_ratio)
    if own_then and by_ratio:
        assert rate.note == (
            "no rate of ml.m5.2xlarge is known for the job's day: the rate of ml.m5.4xlarge on "
            "that day times 0.5000, the ratio of the newest rates of both (2026-05-20)"
        )


def test_the_jobs_own_bill_does_not_change() -> None:
    """Only the rates that it is compared with do. A job of several types is compared with none."""
    plain = market(m5_4xlarge=("1.20", "past"))
    beside = plain.relative_to(RUN)
    assert bill(RUN, beside) == bill(RUN, plain)
    assert hourly(beside, OWN) == hourly(plain, OWN)
    both = replace(RUN, groups=(InstanceGroup(OWN, 1, "a"), InstanceGroup(OTHER, 1, "b")))
    assert plain.relative_to(both) == plain
    # a type without a price stays unknown, and so does a region without prices
    assert beside.hourly(REGION, JobKind.TRAINING, "ml.unpriced.xlarge") is None
    assert beside.hourly(None, JobKind.TRAINING, OTHER) is None
    assert beside.hourly("eu-west-9", JobKind.TRAINING, OTHER) is None


def test_own_discounts_are_in_both_rates_of_the_ratio() -> None:
    """20% off all and 50% off one type: $0.96 then, times $0.25 / $0.736 of today."""
    discounts = Discounts(percent={"Training": Decimal(20), "odd": Decimal(50)})
    beside = with_own_prices(market(m5_4xlarge=("1.20", "past")), discounts).relative_to(RUN)
    assert hourly(beside, OWN).usd == Decimal("0.96")
    rate = hourly(beside, "ml.odd.xlarge")
    assert (rate.is_by_ratio, round(rate.usd, 6)) == (True, Decimal("0.326087"))


def learnt(*names: str) -> Discounts:
    """Returns own rates of $0.50 an hour from a report of the month."""
    rates = [
        OwnRate(
            REGION,
            Component.TRAINING,
            name,
            Decimal("0.50"),
            date(2026, 5, 1),
            date(2026, 5, 31),
            Decimal(10),
            "cur.csv",
        )
        for name in names
    ]
    return Discounts(own_rates=group_own_rates(RateBasis.NET, None, rates))


@pytest.mark.parametrize(
    ("discounts", "usd", "kind", "note"),
    [
        # what is paid under a contract tells nothing of a list price, nor of its day
        pytest.param(
            Discounts(rates={REGION: {OWN: Decimal("0.50")}}),
            "0.46",
            "list",
            None,
            id="a rate under a contract tells nothing of a list price nor of its day",
        ),
        pytest.param(
            learnt(OWN),
            "0.46",
            "own",
            "no own rate of ml.m5.2xlarge is known: its list price, the most that it costs",
            id="no rate is above the list price so the saving is at least the difference",
        ),
        pytest.param(
            learnt(OWN, OTHER),
            "0.50",
            "own",
            None,
            id="both rates are known",
        ),
        pytest.param(
            learnt(OTHER),
            "0.50",
            "own",
            None,
            id="the jobs own type may have the same discount and the saving would be too high",
        ),
    ],
)
def test_an_own_rate_of_one_type_affects_another_type(
    discounts: Discounts, usd: str, kind: str, note: str | None
) -> None:
    """An own rate of the job's type, of the other type, or of both, together with list prices."""
    beside = with_own_prices(market(), discounts).relative_to(RUN)
    rate, job_rate = hourly(beside, OTHER), hourly(beside, OWN)
    assert (rate.usd, rate.kind) == (Decimal(usd), kind)
    assert note is None or rate.note == note
    assert rate.is_by_ratio is (note is not None)
    assert is_comparable(job_rate, rate) is (discounts in (learnt(OWN), learnt(OWN, OTHER)))


def test_a_candidate_explains_its_rate_by_ratio() -> None:
    """Half of the bill is saved, at a rate that was not read on that day."""
    beside = market(m5_4xlarge=("1.20", "past")).relative_to(RUN)
    result = resize(RUN, LITTLE, beside)
    best = next(result.certain_savings)
    assert best.type.name == "ml.m5.large"
    # an eighth of $1.20
    assert result.saving_usd(best) == Decimal("1.05")
    assert "No rate of ml.m5.large is known for the job's day" in best.explanation
    assert "0.1250, the ratio of the newest rates of both" in best.explanation


money = st.decimals("0.01", "50", places=3, allow_nan=False, allow_infinity=False)


@given(past_usd=money, newest_usd=money, other_usd=money)
def test_no_saving_is_above_the_bill(
    past_usd: Decimal, newest_usd: Decimal, other_usd: Decimal
) -> None:
    """For any change of the prices, and only if the other type is the cheaper one today."""
    rates = {OWN: str(newest_usd), OTHER: str(other_usd)}
    dated = DatedPrices(hourly_usd=rates, then={OWN: (str(past_usd), "past")})
    result = resize(RUN, LITTLE, Market(TYPES, dated).relative_to(RUN))
    savings = [not_none(result.saving_usd(candidate)) for candidate in result.certain_savings]
    assert all(0 < saving <= not_none(result.bill.total_usd) for saving in savings)
    assert bool(savings) == (other_usd < newest_usd)


def test_a_ratio_with_an_estimate_in_it_is_an_estimate() -> None:
    """$1.20 then and $0.92 today; about $0.46 for the other type: half of $1.20, which is an
    estimate.
    """
    guesses = DatedPrices(estimated=frozenset({OTHER}), then={OWN: ("1.20", "past")})
    past = Market(TYPES, guesses).relative_to(RUN)
    rate = hourly(past, OTHER)
    assert (rate.usd, rate.is_by_ratio, rate.kind) == (Decimal("0.6"), True, "estimate")
    assert (rate.estimate_basis, rate.unlisted_reason) == (estimate_note(OTHER), "not in the list")
    assert rate.is_negotiated is False
    assert hourly(past, OWN).kind == "list"
