"""The packaged prices only, at their newest rates."""

from functools import cache

from sageaudit.adapters.prices import packaged
from sageaudit.adapters.prices.sources import PriceBook
from sageaudit.domain.prices.market import Market


@cache
def packaged_market() -> Market:
    """Returns packaged instance types and prices, read once per process."""
    return Market(packaged.instance_types(), packaged_prices())


def packaged_prices() -> PriceBook:
    """Returns the price book of the packaged tables."""
    return PriceBook((packaged.packaged_prices(),))
