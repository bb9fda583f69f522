"""What a report teaches: rates by product and days, and what is no rate."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.own_rates import OwnRate, RateBasis
from sageaudit.domain.reconcile.learning import Lesson, learn
from sageaudit.domain.reconcile.paid_usage import PaidReport, PaidUsage
from sageaudit.domain.reconcile.spend import Excluded
from sageaudit.domain.reconcile.usage_type import MANAGED_SPOT
from sageaudit.errors import BadUsage

pytestmark = pytest.mark.money

TEN = Decimal("1e-10")
CENT = Decimal("0.01")
NOTHING = Decimal(0)


def line(
    price: str | Decimal, hours: str | Decimal = "1", day: int = 5, places: Decimal = TEN
) -> PaidUsage:
    """Usage of one line at a price, with its cost rounded as in the report."""
    quantity, start = Decimal(hours), date(2026, 10, 1) + timedelta(days=day - 1)
    usd = (quantity * Decimal(price)).quantize(places)
    return PaidUsage(
        "111122223333", "999900001111", "USE1-Train:ml.g5.2xlarge", "us-east-1", "Hrs",
        start, start, -int(places.as_tuple().exponent), 1, quantity, usd,
        covered=NOTHING, free=NOTHING, list_rate=Decimal("1.515"),
        largest_usd=usd, largest_line="cur.csv: line 7",
    )  # fmt: skip


LINE = line("1.3332")


def free(hours: str) -> PaidUsage:
    """Usage at $0."""
    return replace(LINE, lines=0, quantity=NOTHING, usd=NOTHING, free=Decimal(hours))


def under_plan(hours: str, usd: str) -> PaidUsage:
    """Usage that a Savings Plan paid for."""
    return replace(line("0", hours), usd=Decimal(usd), covered=Decimal(hours))


def taught(*usage: PaidUsage, basis: RateBasis = RateBasis.NET) -> Lesson:
    """The lesson of a report of this usage."""
    return learn(PaidReport(usage), basis, "cur.csv")


def rates(lesson: Lesson) -> list[OwnRate]:
    """Its rates."""
    return [found.rate for found in lesson.learnt]


def why(lesson: Lesson) -> str:
    """Why its only product has no rate."""
    [found] = lesson.not_learnt
    assert not lesson.learnt
    return found.why


def test_cost_over_usage_is_the_rate_of_type_region_and_component() -> None:
    """With its days, from the first of the month on, its hours and the report's public price."""
    lesson = taught(line("1.3332", "3"), line("1.3332", "0.5", day=9))
    [found] = lesson.learnt
    assert found.rate == OwnRate(
        "us-east-1", Component.TRAINING, "ml.g5.2xlarge", Decimal("1.3332"),
        date(2026, 10, 1), date(2026, 10, 9), Decimal("3.5"), "cur.csv",
    )  # fmt: skip
    assert (found.usd, found.list_usd) == (Decimal("4.6662"), Decimal("1.515"))


@pytest.mark.parametrize(
    ("usage_type", "unit", "component", "what"),
    [
        ("EU-Train:ml.m5.large", "Hrs", Component.TRAINING, "ml.m5.large"),
        ("EU-Processing:ml.m5.large", "Hrs", Component.PROCESSING, "ml.m5.large"),
        ("EU-Tsform:ml.m5.large", "Hours", Component.TRANSFORM, "ml.m5.large"),
        ("APS3-train:ml.M5.large", "", Component.TRAINING, "ml.m5.large"),
        ("EU-Train:VolumeUsage.gp2", "GB-Mo", Component.TRAINING, "VolumeUsage.gp2"),
        ("EU-Processing:VolumeUsage.gp2", "GB-Month", Component.PROCESSING, "VolumeUsage.gp2"),
    ],
)
def test_the_components_are_those_of_the_price_tables(
    usage_type: str, unit: str, component: Component, what: str
) -> None:
    """By the role in the usage type, whatever its case; the region is never that of the prefix."""
    [rate] = rates(taught(replace(LINE, usage_type=usage_type, unit=unit)))
    assert (rate.region, rate.component, rate.what) == ("us-east-1", component, what)


def test_a_price_change_within_the_month_gives_two_rates() -> None:
    """Not an average that nobody paid on any day; usage at $0 changes no price."""
    days = [line("2.0", "7.3", day) for day in (3, 4, 9)] + [line("1.5", "2", 12), line("1.5")]
    days[-1] = line("1.5", "1", 20)
    lesson = taught(*days, free("3"))
    assert [(rate.usd, rate.first.day, rate.last.day, rate.note) for rate in rates(lesson)] == [
        (Decimal(2), 1, 9, None), (Decimal("1.5"), 12, 20, None),
    ]  # fmt: skip


def test_different_prices_of_the_same_days_are_averaged_by_usage_and_it_is_said() -> None:
    """Two accounts with prices of their own: 3 hours at $1 and 1 hour at $2."""
    days = [
        line(price, hours, day) for day in range(1, 9) for price, hours in (("1", "3"), ("2", "1"))
    ]
    [rate] = rates(taught(*days))
    assert (rate.usd, rate.note) == (Decimal("1.25"), "the average of prices from $1 to $2")


def test_prices_that_change_every_day_are_one_average() -> None:
    """Prices change a few times a year: this is a mixture."""
    [rate] = rates(taught(*(line(str(1 + day / 10), "1", day) for day in range(1, 11))))
    assert rate.usd == Decimal("1.55")
    assert rate.note == "the average of prices from $1.1 to $2"


def test_each_month_has_its_own_rate() -> None:
    """A file may have several."""
    first = [rate.first for rate in rates(taught(LINE, line("1.3332", day=38)))]
    assert first == [date(2026, 10, 1), date(2026, 11, 1)]


def test_covered_hours_are_in_no_net_rate_and_it_is_said() -> None:
    """Their on-demand cost is not paid, and the plan's is no price of an hour more."""
    covered = under_plan("9", "0")
    lesson = taught(LINE, covered)
    assert [(rate.usd, rate.quantity) for rate in rates(lesson)] == [(Decimal("1.3332"), 1)]
    assert "9.00 hours are covered by a Savings Plan" in lesson.notes[0]
    assert why(taught(covered)).startswith("a Savings Plan covers all of it")


def test_an_amortised_rate_averages_covered_and_other_hours() -> None:
    """9 h at $0.90 under the plan and 1 h at $1.3332: $9.4332 for 10 hours."""
    [rate] = rates(taught(LINE, under_plan("9", "8.1"), basis=RateBasis.AMORTISED))
    assert (rate.usd, rate.quantity) == (Decimal("0.94332"), 10)
    assert rate.note == "a Savings Plan covers 90% of its hours"


def test_a_free_tier_is_not_a_rate() -> None:
    """50 hours at $0 do not make the other hours cheaper, and alone they have no rate."""
    lesson = taught(LINE, free("50"))
    assert [rate.usd for rate in rates(lesson)] == [Decimal("1.3332")]
    assert lesson.notes == (
        "50.00 hours or GB-months cost $0 and are in no rate: a free tier is not a rate",
    )
    assert why(taught(free("50"))) == "all of it cost $0, and a free tier is not a rate"


def test_a_few_minutes_are_too_little() -> None:
    """Six minutes are enough."""
    assert why(taught(line("1.3332", "0.09"))) == "only 0.09 hours were used, and 0.1 are needed"
    assert [rate.usd for rate in rates(taught(line("1.3332", "0.1")))] == [Decimal("1.3332")]


def test_a_rate_has_no_digit_that_its_source_lacks() -> None:
    """$3.33 for 2.5 h is $1.33 in a report in cents; $0.13 for 6 minutes tells nothing."""
    assert [rate.usd for rate in rates(taught(line("1.3332", "2.5", places=CENT)))] == [
        Decimal("1.33")
    ]
    assert "rounds its costs so much" in why(taught(line("1.3332", "0.1", places=CENT)))


@pytest.mark.parametrize("price", ["10000.0001", "1e15"])
def test_a_rate_above_any_price_is_refused_with_its_line(price: str) -> None:
    """It would make the whole file of own rates unreadable."""
    absurd = replace(line(price), usage_type="USE1-Train:ml.p4d.24xlarge")
    with pytest.raises(BadUsage, match=r"^cur.csv: line 7 costs \$1.*ml.p4d.24xlarge in us-east-1"):
        taught(LINE, absurd)
    assert [rate.usd for rate in rates(taught(line("10000")))] == [10_000]


def test_usage_that_no_price_table_knows_is_listed_and_no_rate_is_guessed() -> None:
    """A spot role, a warm pool's, an endpoint, another volume, another unit, no region."""
    lesson = taught(
        *(
            replace(LINE, usage_type=usage_type)
            for usage_type in (
                "USE1-TrSpt:ml.g5.2xlarge",
                "USE1-TrainWarmPool:ml.g5.2xlarge",
                "USE1-Host:ml.g5.2xlarge",
                "USE1-Train:VolumeUsage.gp3",
                "",
            )
        ),
        replace(LINE, unit="Quantity"),
        replace(LINE, region=None),
    )
    assert (lesson.learnt, lesson.not_learnt) == ((), ())
    assert {(found.usage, found.area, found.why) for found in lesson.unpriced} == {
        ("TrSpt:ml.g5.2xlarge", MANAGED_SPOT, "no price table knows it"),
        ("TrainWarmPool:ml.g5.2xlarge", "other", "no price table knows it"),
        ("Host:ml.g5.2xlarge", "endpoints", "no price table knows it"),
        ("Train:VolumeUsage.gp3", "jobs", "no price table knows it"),
        ("", "other", "no price table knows it"),
        ("Train:ml.g5.2xlarge", "jobs", "it is counted in Quantity, not in hours"),
        ("Train:ml.g5.2xlarge", "jobs", "its region is not named"),
    }


def test_repeats_and_what_is_left_out_are_kept_in_the_lesson() -> None:
    """As the report's reader counted them."""
    credit = Excluded("Credit", 2, Decimal(-51))
    lesson = learn(PaidReport((LINE,), (credit,), 1200), RateBasis.NET, "cur.csv")
    assert lesson.left_out == (credit,)
    assert lesson.notes == (
        "1,200 lines are in two of the files (two versions of one report?): each is counted once",
    )


def test_several_payers_and_accounts_with_different_prices_are_said() -> None:
    """Each may have a contract of its own; where all pay the same there is nothing to say."""
    [note] = taught(LINE, replace(LINE, payer="222200001111")).notes
    assert note.startswith("the report has lines of 2 payer accounts")
    other = replace(line("1.515"), account="222233334444")
    [note] = taught(LINE, other).notes
    assert note.startswith("the report has lines of 2 accounts")
    assert not taught(LINE, replace(LINE, account="222233334444")).notes


PRICES = st.decimals("0.05", "110", places=7)
SECONDS = st.lists(st.integers(1, 200_000), min_size=1, max_size=40)
PLACES = st.sampled_from([TEN, Decimal("1e-8"), Decimal("0.0001"), CENT])


@given(st.lists(st.tuples(PRICES, SECONDS), min_size=1, max_size=5), PLACES)
def test_rate_times_usage_is_the_cost_within_its_rounding(
    days: list[tuple[Decimal, list[int]]], places: Decimal
) -> None:
    """Whatever prices and jobs there were, and however the report rounds; per stretch of days."""
    lines = [
        line(price, (Decimal(seconds) / 3600).quantize(TEN), day, places)
        for day, (price, jobs) in enumerate(days, start=1)
        for seconds in jobs
    ]
    for found in taught(*lines).learnt:
        rate = found.rate
        of_it = [one for one in lines if rate.first <= one.first <= rate.last]
        rounding = len(of_it) * (places / 2 + rate.usd * TEN)
        assert abs(rate.usd * rate.quantity - sum(one.usd for one in of_it)) <= rounding
        assert found.usd == sum(one.usd for one in of_it)


@given(st.decimals("0.05", "110", places=4), SECONDS)
def test_a_price_of_few_digits_is_found_exactly(price: Decimal, seconds: list[int]) -> None:
    """From jobs of any length: AWS writes ten decimals."""
    hours = [(Decimal(second) / 3600).quantize(TEN) for second in seconds]
    lesson = taught(*(line(price, hour) for hour in hours))
    if sum(hours) >= Decimal("0.1"):
        [rate] = rates(lesson)
        assert (rate.usd, rate.note) == (price, None)
    else:
        assert not lesson.learnt
