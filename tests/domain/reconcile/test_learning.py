"""What is derived from a cost report: rates by product and days, and what gives no rate."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import OwnRate, RateBasis
from sageaudit.domain.reconcile.learning import DerivedRate, UsageWithoutRate, derive_rates
from sageaudit.domain.reconcile.lines import PaidReport, PaidUsage
from sageaudit.errors import BadUsage
from sageaudit.structs import replace

pytestmark = pytest.mark.money

TEN = Decimal("1e-10")
CENT = Decimal("0.01")
NOTHING = Decimal(0)


def line(
    price: str | Decimal, hours: str | Decimal = "1", day: int = 5, places: Decimal = TEN
) -> PaidUsage:
    """Returns the usage of one line at a price, with its cost rounded as in the report."""
    quantity, start = Decimal(hours), date(2026, 10, 1) + timedelta(days=day - 1)
    usd = (quantity * Decimal(price)).quantize(places)
    return PaidUsage(
        "111122223333",
        "USE1-Train:ml.g5.2xlarge",
        "us-east-1",
        "Hrs",
        start,
        start,
        -int(places.as_tuple().exponent),
        1,
        quantity,
        usd,
        covered_quantity=NOTHING,
        list_rate=Decimal("1.515"),
        largest_usd=usd,
        largest_line="cur.csv: line 7",
    )


LINE = line("1.3332")


FREE = replace(LINE, line_count=0, quantity=NOTHING, usd=NOTHING)
"""Usage at $0."""


def under_plan(hours: str, usd: str) -> PaidUsage:
    """Returns usage that a Savings Plan paid for."""
    return replace(line("0", hours), usd=Decimal(usd), covered_quantity=Decimal(hours))


def derived(
    *usage: PaidUsage, basis: RateBasis = RateBasis.NET
) -> list[DerivedRate | UsageWithoutRate]:
    """Returns what is derived from a report of this usage."""
    return derive_rates(PaidReport(usage), basis, "cur.csv")


def rates(derived_rates: list[DerivedRate | UsageWithoutRate]) -> list[OwnRate]:
    """Returns the rates among the results."""
    return [item.rate for item in derived_rates if isinstance(item, DerivedRate)]


def test_cost_over_usage_is_the_rate_of_type_region_and_component() -> None:
    """With its days (from the first of the month), its hours and the report's public price."""
    [result] = derived(line("1.3332", "3"), line("1.3332", "0.5", day=9))
    assert isinstance(result, DerivedRate)
    assert result.rate == OwnRate(
        "us-east-1",
        Component.TRAINING,
        "ml.g5.2xlarge",
        Decimal("1.3332"),
        date(2026, 10, 1),
        date(2026, 10, 9),
        Decimal("3.5"),
        "cur.csv",
    )
    assert result.list_usd == Decimal("1.515")


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
    """By the role in the usage type, in any case. The region is never read from the prefix."""
    [rate] = rates(derived(replace(LINE, usage_type=usage_type, unit=unit)))
    assert (rate.region, rate.component, rate.product) == ("us-east-1", component, what)


MIXED = [
    line(price, hours, day) for day in range(1, 9) for price, hours in (("1", "3"), ("2", "1"))
]


@pytest.mark.parametrize(
    ("usage", "basis", "expected"),
    [
        pytest.param(
            MIXED,
            RateBasis.NET,
            ["1.25 of 32 from 10-01 to 10-08: the average of prices from $1.00 to $2.00"],
            id="3 hours at $1 and 1 hour at $2 on each day",
        ),
        pytest.param(
            [line(str(1 + day / 10), "1", day) for day in range(1, 11)],
            RateBasis.NET,
            ["1.55 of 10 from 10-01 to 10-10: the average of prices from $1.10 to $2.00"],
            id="a price that changes",
        ),
        pytest.param(
            [LINE, line("1.3332", day=38)],
            RateBasis.NET,
            ["1.3332 of 1 from 10-01 to 10-05: None", "1.3332 of 1 from 11-01 to 11-07: None"],
            id="a file may have several months",
        ),
        pytest.param(
            [LINE, under_plan("9", "8.1")],
            RateBasis.AMORTISED,
            ["0.94332 of 10 from 10-01 to 10-05: a Savings Plan covers 90% of its hours"],
            id="9 h at $0.90 under the plan and 1 h at $1.3332: $9.4332 for 10 hours",
        ),
        pytest.param(
            [LINE, under_plan("9", "0")],
            RateBasis.NET,
            ["1.3332 of 1 from 10-01 to 10-05: None"],
            id="what the plan pays is in no net rate",
        ),
        pytest.param(
            [line("1"), replace(line("2"), account="222233334444")],
            RateBasis.NET,
            [
                (
                    "1.5 of 2 from 10-01 to 10-05: the average of prices from $1.00 to $2.00; of "
                    "2 accounts:"
                    " --account learns those of one"
                )
            ],
            id="two accounts, with contracts of their own",
        ),
        pytest.param(
            [LINE, replace(LINE, account="222233334444")],
            RateBasis.NET,
            ["1.3332 of 2 from 10-01 to 10-05: None"],
            id="if both rates are equal there is no note",
        ),
        pytest.param(
            [LINE, FREE],
            RateBasis.NET,
            ["1.3332 of 1 from 10-01 to 10-05: None"],
            id="hours at $0 do not make the other hours cheaper",
        ),
        # six minutes are enough; $3.33 for 2.5 h is $1.33 in a report in cents
        pytest.param(
            [line("1.3332", "0.1")],
            RateBasis.NET,
            ["1.3332 of 0.1 from 10-01 to 10-05: None"],
            id="six minutes are enough",
        ),
        pytest.param(
            [line("1.3332", "2.5", places=CENT)],
            RateBasis.NET,
            ["1.33 of 2.5 from 10-01 to 10-05: None"],
            id="$3.33 for 2.5 h is $1.33 in a report in cents",
        ),
    ],
)
def test_each_month_has_its_own_rate(
    usage: list[PaidUsage], basis: RateBasis, expected: list[str]
) -> None:
    """An average that was not paid on any day has a note."""
    assert [
        f"{rate.usd.normalize():f} of {rate.quantity.normalize():f}"
        f" from {rate.first:%m-%d} to {rate.last:%m-%d}: {rate.note}"
        for rate in rates(derived(*usage, basis=basis))
    ] == expected


@pytest.mark.parametrize(
    ("usage", "expected_reason"),
    [
        # the on-demand cost of covered hours is not paid; the plan's cost is not a price per hour
        (under_plan("9", "0"), "hours under a Savings Plan are not in it: --amortised counts"),
        (FREE, "all of it cost $0, and a free tier is not a rate"),
        (line("1.3332", "0.09"), "only 0.09 hours were used, and 0.1 are needed"),
        (line("1.3332", "0.1", places=CENT), "the report rounds its costs so much that 0.1 hours"),
    ],
)
def test_too_little_usage_gives_no_rate(usage: PaidUsage, expected_reason: str) -> None:
    """The result has the reason."""
    [result] = derived(usage)
    assert isinstance(result, UsageWithoutRate)
    assert result.name == "ml.g5.2xlarge, Training, us-east-1"
    assert result.reason.startswith(expected_reason)


@pytest.mark.parametrize("price", ["10000.0001", "1e15"])
def test_a_rate_above_any_price_is_refused_with_its_line(price: str) -> None:
    """It would make the whole file of own rates unreadable."""
    absurd = replace(line(price), usage_type="USE1-Train:ml.p4d.24xlarge")
    with pytest.raises(BadUsage, match=r"^cur.csv: line 7 costs \$1.*ml.p4d.24xlarge in us-east-1"):
        derived(LINE, absurd)
    assert [rate.usd for rate in rates(derived(line("10000")))] == [10_000]


def test_unknown_usage_of_jobs_is_listed_without_a_rate() -> None:
    """A spot role, a warm pool's role, another volume, another unit, no region. An endpoint is not
    listed.
    """
    unknown = ("TrSpt:ml.g5.2xlarge", "TrainWarmPool:ml.g5.2xlarge", "Train:VolumeUsage.gp3", "")
    result = derived(
        *(replace(LINE, usage_type=f"USE1-{item}" if item else "") for item in unknown),
        replace(LINE, usage_type="USE1-Host:ml.g5.2xlarge"),
        replace(LINE, unit="Quantity"),
        replace(LINE, region=None),
    )
    name = "Train:ml.g5.2xlarge"
    assert {(item.name, item.reason) for item in result if isinstance(item, UsageWithoutRate)} == {
        *((item, "no price table knows it") for item in unknown),
        (name, "it is counted in Quantity, not in hours"),
        (name, "its region is not named"),
    }
    assert not rates(result)


PRICES = st.decimals("0.05", "110", places=7)
SECONDS = st.lists(st.integers(1, 200_000), min_size=1, max_size=40)
PLACES = st.sampled_from([TEN, Decimal("1e-8"), Decimal("0.0001"), CENT])


@given(st.lists(st.tuples(PRICES, SECONDS), min_size=1, max_size=5), PLACES)
def test_rate_times_usage_is_the_cost_within_its_rounding(
    days: list[tuple[Decimal, list[int]]], places: Decimal
) -> None:
    """For any prices, jobs and rounding of the report, in each month."""
    lines = [
        line(price, (Decimal(seconds) / 3600).quantize(TEN), day, places)
        for day, (price, jobs) in enumerate(days, start=1)
        for seconds in jobs
    ]
    for rate in rates(derived(*lines)):
        rounding = len(lines) * (places / 2 + rate.usd * TEN)
        assert abs(rate.usd * rate.quantity - sum(item.usd for item in lines)) <= rounding


@given(st.decimals("0.05", "110", places=4), SECONDS)
def test_a_price_of_few_digits_is_found_exactly(price: Decimal, seconds: list[int]) -> None:
    """For jobs of any length: AWS writes ten decimals."""
    hours = [(Decimal(second) / 3600).quantize(TEN) for second in seconds]
    lesson = derived(*(line(price, hour) for hour in hours))
    if sum(hours) >= Decimal("0.1"):
        [rate] = rates(lesson)
        assert (rate.usd, rate.note) == (price, None)
    else:
        assert not rates(lesson)
