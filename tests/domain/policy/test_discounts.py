"""What the company pays in place of the list price, and what a Savings Plan changes."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.policy.discounts import Discounts, OwnPrices, with_own_prices
from sageaudit.domain.prices.known_prices import OwnRate, RateBasis, group_own_rates
from sageaudit.domain.prices.market import Rate
from sageaudit.errors import BadPolicy
from sageaudit.structs import replace
from tests.fakes.jobs import not_none
from tests.fakes.packaged_prices import packaged_market, packaged_prices

REGION = "us-east-1"


def hourly(discounts: Discounts, name: str, component: Component = Component.TRAINING) -> Decimal:
    """Returns the own rate of a type in us-east-1."""
    return not_none(
        OwnPrices(packaged_prices(), discounts).hourly_rate(REGION, component, name)
    ).usd


def policy(tmp_path: Path, text: str) -> Discounts:
    """Returns the discounts of a policy file."""
    path = tmp_path / "policy.toml"
    path.write_text(text)
    return load_policy(path).discounts


@pytest.mark.parametrize(
    ("region", "component", "name", "usd"),
    [
        # 12.5% off Training, and nothing off Processing
        (REGION, "Training", "ml.m5.xlarge", "0.20125"),
        (REGION, "Processing", "ml.m5.xlarge", "0.23"),
        # a family counts before its component and is not added: 30% off, not 44 or 50
        (REGION, "Training", "ml.g5.4xlarge", "1.421"),
        (REGION, "Processing", "ml.g5.4xlarge", "1.421"),
        # a rate is used as it is, in its region only
        (REGION, "Training", "ml.g5.2xlarge", "1.1"),
        ("us-west-2", "Training", "ml.g5.2xlarge", "1.0605"),
        # a percentage of an unknown price is not a price
        (REGION, "Training", "ml.p2.xlarge", None),
    ],
)
def test_the_policy_names_percentages_rates_and_a_plan(
    tmp_path: Path, region: str, component: str, name: str, usd: str | None
) -> None:
    """As the comments of the file show them."""
    discounts = policy(
        tmp_path,
        "[discounts]\nsavings_plan = true\n[discounts.percent]\nTraining = 12.5\ng5 = 30\n"
        '[discounts.rates.us-east-1]\n"ml.g5.2xlarge" = 1.10\n',
    )
    assert discounts.savings_plan is True
    rate = OwnPrices(packaged_prices(), discounts).hourly_rate(region, Component(component), name)
    assert (rate and rate.usd) == (None if usd is None else Decimal(usd))


def test_an_own_price_is_marked() -> None:
    """An own price never looks like a list price."""
    prices = OwnPrices(packaged_prices(), Discounts(percent={"Training": Decimal(20)}))
    training, processing = (
        not_none(prices.hourly_rate(REGION, item, "ml.g5.2xlarge"))
        for item in (Component.TRAINING, Component.PROCESSING)
    )
    assert (training.kind, processing.kind) == ("own", "list")
    assert "less 20% by policy" in training.source


def test_without_discounts_the_market_is_the_list() -> None:
    """A Savings Plan alone changes no price."""
    market = packaged_market()
    assert with_own_prices(market, Discounts(savings_plan=True)) is market


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[discounts.percent]\nTraning = 10", "discounts.percent.Traning"),
        ("[discounts.percent]\ng9 = 10", "discounts.percent.g9"),
        ("[discounts.percent]\nTraining = -1", "discounts.percent.Training"),
        ("[discounts.percent]\nTraining = 100", "discounts.percent.Training"),
        ("[discounts.percent]\nTraining = nan", "discounts.percent.Training"),
        ("[discounts.percent]\nTraining = true", "discounts.percent.Training"),
        ('[discounts.rates.us-east-1]\n"ml.g5.2xlarge" = 0', 'discounts.rates.us-east-1."ml.g5'),
        ('[discounts.rates.us-east-1]\n"ml.g9.huge" = 1', 'discounts.rates.us-east-1."ml.g9.huge"'),
        ("[discounts.rates]\nus-east-1 = 1", "discounts.rates.us-east-1"),
        ('[discounts.rates.us-eas-1]\n"ml.g5.2xlarge" = 1', "discounts.rates.us-eas-1"),
        ('[discounts]\nsavings_plan = "yes"', "discounts.savings_plan"),
        ("[discounts]\nedp = 10", "discounts.edp"),
    ],
)
def test_a_wrong_discount_is_refused_by_its_key(tmp_path: Path, text: str, key: str) -> None:
    """A typing mistake never makes a price 0, or any other wrong price."""
    with pytest.raises(BadPolicy, match=key.replace(".", r"\.")):
        policy(tmp_path, text)


OCTOBER = date(2026, 10, 9)
LEARNT = OwnRate(
    REGION,
    Component.TRAINING,
    "ml.g5.2xlarge",
    Decimal("1.3332"),
    date(2026, 10, 1),
    date(2026, 10, 31),
    Decimal(100),
    "cur.csv",
)
STORED = group_own_rates(
    RateBasis.NET, None, [LEARNT, replace(LEARNT, product="VolumeUsage.gp2", usd=Decimal("0.1232"))]
)


def hourly_price(discounts: Discounts, day: date | None = OCTOBER) -> Rate:
    """Returns the price of an hour of training on ml.g5.2xlarge on a day."""
    prices = OwnPrices(packaged_prices(), discounts, day)
    return not_none(prices.hourly_rate(REGION, Component.TRAINING, "ml.g5.2xlarge"))


def test_a_rate_from_a_cost_report_replaces_the_list_price() -> None:
    """Only for its own product, and from its first day."""
    discounts = Discounts(own_rates=STORED)
    assert (hourly_price(discounts).usd, hourly_price(discounts).kind) == (Decimal("1.3332"), "own")
    assert hourly_price(discounts, None).usd == Decimal("1.3332")
    before = hourly_price(discounts, date(2026, 9, 30))
    prices = OwnPrices(packaged_prices(), discounts, OCTOBER)
    processing = not_none(prices.hourly_rate(REGION, Component.PROCESSING, "ml.g5.2xlarge"))
    storage = not_none(prices.storage_rate(REGION, Component.TRAINING))
    for rate in (before, processing):
        assert (rate.usd, rate.kind) == (Decimal("1.515"), "list")
    assert (storage.usd, storage.kind) == (Decimal("0.1232"), "own")


def test_no_percentage_is_taken_off_a_rate_from_a_cost_report() -> None:
    """It is already net. A type without one, and earlier days, get the percentage."""
    discounts = Discounts(percent={"Training": Decimal(20), "g5": Decimal(30)}, own_rates=STORED)
    assert hourly_price(discounts).usd == Decimal("1.3332")
    assert hourly_price(discounts, date(2026, 9, 30)).usd == Decimal("1.0605")
    assert hourly(discounts, "ml.m5.xlarge") == Decimal("0.184")
    storage = OwnPrices(packaged_prices(), discounts, OCTOBER).storage_rate(
        REGION, Component.TRAINING
    )
    assert not_none(storage).usd == Decimal("0.1232")


def test_a_rate_in_the_policy_wins_and_names_the_cost_reports() -> None:
    """So both are shown. If they are equal, there is no note."""
    rate = hourly_price(
        Discounts(rates={REGION: {"ml.g5.2xlarge": Decimal("1.1")}}, own_rates=STORED)
    )
    assert (rate.usd, rate.note) == (
        Decimal("1.1"),
        "the cost report of 2026-10-01/2026-10-31 says $1.3332",
    )
    same = hourly_price(
        Discounts(rates={REGION: {"ml.g5.2xlarge": Decimal("1.3332")}}, own_rates=STORED)
    )
    assert (same.usd, same.note) == (Decimal("1.3332"), None)


def test_the_policy_names_the_file_of_learnt_rates(tmp_path: Path) -> None:
    """Its path is relative to the policy, wherever the command runs. A new rate is a new policy
    version.
    """
    (tmp_path / "own-rates.json").write_text(policy_file.own_rates_text(STORED))
    text = '[discounts]\nown_rates = "own-rates.json"\n'
    assert policy(tmp_path, text) == Discounts(own_rates=STORED)
    before = load_policy(tmp_path / "policy.toml").version
    newer = group_own_rates(RateBasis.NET, None, [replace(LEARNT, usd=Decimal("1.2"))])
    (tmp_path / "own-rates.json").write_text(policy_file.own_rates_text(newer))
    assert load_policy(tmp_path / "policy.toml").version != before


def test_amortised_rates_are_rates_under_a_savings_plan(tmp_path: Path) -> None:
    """What a change saves then depends on the plan's use, unless the policy says otherwise."""
    amortised = group_own_rates(RateBasis.AMORTISED, None, [LEARNT])
    (tmp_path / "own-rates.json").write_text(policy_file.own_rates_text(amortised))
    text = '[discounts]\nown_rates = "own-rates.json"\n'
    assert policy(tmp_path, text).savings_plan is True
    assert policy(tmp_path, f"{text}savings_plan = false\n").savings_plan is False


@pytest.mark.parametrize("value", ['"absent.json"', '"policy.toml"', "7", '"."'])
def test_a_file_without_learnt_rates_is_refused_by_its_key(tmp_path: Path, value: str) -> None:
    """The error has the policy's line."""
    with pytest.raises(BadPolicy, match=r"policy\.toml:2: discounts\.own_rates"):
        policy(tmp_path, f"[discounts]\nown_rates = {value}\n")
