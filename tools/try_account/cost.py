"""What a try costs at most, and where its job's image is."""

from __future__ import annotations

import json
from decimal import ROUND_UP, Decimal
from pathlib import Path

from msgspec import Struct

from sageaudit.adapters.prices.price_list import PriceList, PriceListSource
from sageaudit.adapters.prices.sources import PriceBook, offline_sources
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.market import Rate
from tools.pages.alarms import all_alarm_specs
from tools.pages.running_cost import JOB_METRICS, USD
from tools.try_account.account import Account

INSTANCE_TYPE = "ml.t3.medium"
"""The smallest type of processing jobs."""
MAX_USD = Decimal("0.05")
MAX_RUNTIME_S = 600
"""After these seconds SageMaker stops the job."""
_BILLED_S = 900
"""The most that is billed for the job: MAX_RUNTIME_S, and time to pull the image and to stop."""
_STACK_HOURS = 2
"""The most hours in which the stack exists. A try takes about half an hour."""
_MONTH_HOURS = 720
_REQUESTS_USD = Decimal("0.002")
"""An upper bound of what is billed by requests: Lambda, SQS, DynamoDB, S3 and GetMetricData."""
OTHER_JOB_USD = Decimal("0.0006")
"""The most that the audit of another job of four hosts costs, with a year of storage
(docs/operations.md)."""
_IMAGES = Path(__file__).with_name("images.json")


class CannotTry(Exception):
    """Why nothing can be tried here. Nothing was created."""


class Cost(Struct, frozen=True):
    """The rate of the job's instance, and the most that the whole try costs."""

    rate: Rate
    max_usd: Decimal


def max_cost(account: Account) -> Cost:
    """Returns the most that a try costs. Raises CannotTry without a rate, or above MAX_USD.

    The rate is the one that the audit will use: of the price list, else of the packaged tables.
    """
    price_list = PriceList(lambda endpoint: account.session.client("pricing", endpoint))
    sources = PriceListSource(price_list, None, account.now), *offline_sources()
    component = Component.PROCESSING
    book = PriceBook(tuple(source.read(account.region, component) for source in sources))
    rate = book.hourly_rate(account.region, component, INSTANCE_TYPE)
    if rate is None:
        reason = book.absence_reason(account.region, component, INSTANCE_TYPE)
        why = f" ({reason})" if reason else ""
        raise CannotTry(f"no price of {INSTANCE_TYPE} in {account.region} is known{why}")
    exact_usd = rate.usd * _BILLED_S / 3600 + _stack_usd() + _REQUESTS_USD
    max_usd = exact_usd.quantize(Decimal("0.01"), rounding=ROUND_UP)
    if max_usd > MAX_USD:
        raise CannotTry(f"in {account.region} it could cost ${max_usd}, more than ${MAX_USD}")
    return Cost(rate, max_usd)


def image_uri(region: str) -> str:
    """Returns the image of AWS's scikit-learn container. Raises CannotTry if it is not known."""
    table = json.loads(_IMAGES.read_text(encoding="utf-8"))
    registry = table["registries"].get(region)
    if registry is None:
        known = ", ".join(table["registries"])
        raise CannotTry(f"AWS's image for the job is not known in {region}; known: {known}")
    return f"{registry}.dkr.ecr.{region}.amazonaws.com/{table['repository']}"


def _stack_usd() -> Decimal:
    """Returns the cost of the stack itself, which CloudWatch and Secrets Manager bill by the hour.

    The prices are those of us-east-1.
    """
    alarm_metrics = sum(len(spec.sources) for spec in all_alarm_specs(("sns",)))
    month = (
        USD["alarms"] * alarm_metrics
        + USD["dashboards"]
        + USD["secrets"]
        + USD["own metrics"] * (len(JOB_METRICS) + 1)
    )
    return month * _STACK_HOURS / _MONTH_HOURS
