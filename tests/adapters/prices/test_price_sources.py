"""Sources in one book: the first that knows answers, and what the others add."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec import Struct, field

from sageaudit.adapters.prices import packaged, sources
from sageaudit.adapters.prices.price_list import ListedPrices
from sageaudit.adapters.prices.sources import PriceBook, PricedMarkets
from sageaudit.domain.bill.bill import bill
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.known_prices import DatedRate, Quote
from sageaudit.domain.prices.market import Rate
from sageaudit.domain.prices.price_list import STORAGE
from sageaudit.structs import replace
from tests.fakes.jobs import not_none, ran

M5, C5 = "ml.m5.xlarge", "ml.c5.xlarge"
REGION, TRAINING = "eu-west-1", Component.TRAINING
DAY = date(2026, 11, 20)
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
UNREAD = ListedPrices(REGION, TRAINING, None, "pricing:GetProducts is not permitted")


class Negotiated(Struct, frozen=True):
    """A source in one class: a company's own rates, the same in every region; it notes what is
    asked for.
    """

    usd: dict[str, str] = field(default_factory=dict)
    why: str | None = None
    asked: list[str] = field(default_factory=list)

    name = "negotiated"
    version = "negotiated 2026-11-01"

    def read(self, region: str | None, component: Component) -> "Negotiated":
        return self

    def quote(self, region: str, component: Component, product: str) -> Quote:
        self.asked.append(product)
        if product not in self.usd:
            return Quote(absence_reason=self.why)
        usd = Decimal(self.usd[product])
        return Quote((DatedRate(Rate(usd, "2026-11-01", "a contract", kind="own"), DAY, DAY),))

    def usage_type(self, region: str, component: Component, product: str) -> str | None:
        return None


def book(*first: Negotiated) -> PriceBook:
    """The offline book with other sources before it."""
    return PriceBook((*first, packaged.packaged_prices()), DAY)


def test_a_source_before_the_others_answers_with_its_own_kind_of_price() -> None:
    """The list prices behind it are of another kind, so that they are no price of other days."""
    rate = not_none(book(Negotiated({M5: "0.2"})).hourly_rate(REGION, TRAINING, M5))
    assert (rate.usd, rate.as_of, rate.source) == (Decimal("0.2"), "2026-11-01", "a contract")
    assert (rate.kind, rate.note, rate.other_usd, rate.price_age) == ("own", None, None, "today")


@pytest.mark.parametrize("why", [None, "no contract for it"])
def test_a_source_that_does_not_know_leaves_its_reason(why: str | None) -> None:
    """Beside the rate of the source that does, which is the one without it but for the note."""
    plain = not_none(book().hourly_rate(REGION, TRAINING, C5))
    rate = not_none(book(Negotiated(why=why)).hourly_rate(REGION, TRAINING, C5))
    assert rate.usd == plain.usd
    assert rate.note == (f"packaged {plain.as_of}: {why}" if why else plain.note)


def _first(source: ListedPrices, packaged_book: PriceBook) -> PriceBook:
    return replace(packaged_book, sources=(source, *packaged_book.sources))


def test_all_reasons_are_given_in_order() -> None:
    """Two sources before the packaged one."""
    price_book = _first(UNREAD, book(Negotiated(why="no contract for it")))
    rate = not_none(price_book.storage_rate(REGION, TRAINING))
    assert rate.note == f"packaged {rate.as_of}: {UNREAD.unavailable_because}; no contract for it"


def test_a_book_has_the_version_of_its_first_source_that_was_read() -> None:
    """A price list that was not read gives none; without any source all is unknown, never 0."""
    assert _first(UNREAD, book(Negotiated())).version == "negotiated 2026-11-01"
    assert _first(UNREAD, book()).version == "packaged 2026-05-20"
    empty = PriceBook(())
    assert (empty.version, empty.hourly_rate(REGION, TRAINING, M5)) == ("no prices", None)
    assert empty.storage_rate(REGION, TRAINING) is empty.usage_type(REGION, TRAINING, M5) is None


def test_a_bill_is_made_of_the_sources_in_order() -> None:
    """An hour at the contract's rate."""
    markets = PricedMarkets(
        packaged.instance_types(), (Negotiated({M5: "0.2"}), *sources.offline_sources())
    )
    run = ran(3600, M5, at=NOW, region=REGION)
    assert bill(run, markets.market(run, NOW)).compute_usd == Decimal("0.2")


def test_a_source_is_asked_once_for_all_jobs_of_a_day_and_region() -> None:
    source = Negotiated({M5: "0.2", STORAGE: "0.1"})
    markets = PricedMarkets(packaged.instance_types(), (source,))

    def asked(hours: int = 0, region: str = REGION) -> list[str]:
        before = len(source.asked)
        job = ran(3600, M5, at=NOW + timedelta(hours=hours), region=region)
        markets.market(job, NOW).prices.hourly_rate(region, TRAINING, M5)
        return source.asked[before:]

    assert asked() == [M5]
    assert asked(hours=-6) == []  # the same day
    assert asked(region="us-east-1") == [M5]
    assert asked(hours=-24) == [M5]


def test_an_unknown_rate_and_storage_are_asked_for_once_too() -> None:
    source = Negotiated({STORAGE: "0.1"})
    prices = PricedMarkets(packaged.instance_types(), (source,)).market(ran(3600, M5), NOW).prices
    for _ in range(3):
        prices.hourly_rate(REGION, TRAINING, "ml.none.large")
        prices.storage_rate(REGION, TRAINING)
    assert source.asked == ["ml.none.large", STORAGE]
