"""Cost reports in the formats that AWS delivers, all written from the same charges.

The columns are a selection from AWS's data dictionaries (legacy CUR, CUR 2.0, FOCUS 1.0 and 1.2
with AWS columns).
"""

import csv
import io
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.structs import replace

PAYER, ACCOUNT = "999900001111", "111122223333"
REGION = "us-east-1"
_PREFIXES = {"us-east-1": "USE1", "eu-west-1": "EU", "us-west-2": "USW2"}
_TEN = Decimal("1e-10")
LEGACY = {
    "bill_billing_period_start_date": "bill/BillingPeriodStartDate",
    "bill_payer_account_id": "bill/PayerAccountId",
    "identity_line_item_id": "identity/LineItemId",
    "line_item_usage_account_id": "lineItem/UsageAccountId",
    "line_item_line_item_type": "lineItem/LineItemType",
    "line_item_usage_start_date": "lineItem/UsageStartDate",
    "line_item_usage_end_date": "lineItem/UsageEndDate",
    "line_item_product_code": "lineItem/ProductCode",
    "line_item_usage_type": "lineItem/UsageType",
    "line_item_resource_id": "lineItem/ResourceId",
    "line_item_usage_amount": "lineItem/UsageAmount",
    "line_item_currency_code": "lineItem/CurrencyCode",
    "line_item_unblended_cost": "lineItem/UnblendedCost",
    "line_item_net_unblended_cost": "lineItem/NetUnblendedCost",
    "pricing_public_on_demand_rate": "pricing/publicOnDemandRate",
    "pricing_unit": "pricing/unit",
    "product_region_code": "product/regionCode",
    "savings_plan_savings_plan_effective_cost": "savingsPlan/SavingsPlanEffectiveCost",
    "savings_plan_net_savings_plan_effective_cost": "savingsPlan/NetSavingsPlanEffectiveCost",
}
"""Legacy names of CUR 2.0 columns."""


class Charge(Struct, frozen=True):
    """One line: `seconds` of usage of `what` at `price` USD per unit, or a charge of another kind.

    `list_price`: AWS's public price. `plan_price`: what a Savings Plan pays per hour, if it covers
    the line.
    """

    start: datetime
    what: str = "ml.g5.2xlarge"
    role: str = "Train"
    seconds: int = 3600
    price: Decimal = Decimal("1.3332")
    list_price: Decimal = Decimal("1.515")
    plan_price: Decimal | None = None
    job: str = "job-1"
    region: str = REGION
    account: str = ACCOUNT
    payer: str = PAYER
    kind: str = "Usage"
    usd: Decimal | None = None
    unit: str = "Hrs"
    quantity: Decimal | None = None
    currency: str = "USD"
    changes: dict[str, str] = field(default_factory=dict)

    @property
    def amount(self) -> Decimal:
        """The usage in hours to ten decimals, as AWS writes it; or `quantity`."""
        if self.quantity is not None:
            return self.quantity
        return (Decimal(self.seconds) / 3600).quantize(_TEN)

    def cost(self, price: Decimal) -> Decimal:
        """Returns the cost of the exact usage to ten decimals."""
        if self.usd is not None:
            return self.usd
        exact = self.quantity if self.quantity is not None else Decimal(self.seconds) / 3600
        return (exact * price).quantize(_TEN)

    @property
    def usage_type(self) -> str:
        """For example `USE1-Train:ml.g5.2xlarge`."""
        return f"{_PREFIXES[self.region]}-{self.role}:{self.what}" if self.what else ""

    @property
    def arn(self) -> str:
        """The ARN of the training job."""
        return f"arn:aws:sagemaker:{self.region}:{self.account}:training-job/{self.job}"


def hours_of(charge: Charge, *, hours: int) -> list[Charge]:
    """Returns the charge repeated for each of the next hours, as in an hourly report."""
    return [replace(charge, start=charge.start + timedelta(hours=hour)) for hour in range(hours)]


def cur2(charges: Iterable[Charge], *, net: bool = True) -> str:
    """Writes a CUR 2.0 report; without `net`, as for an account without discounts."""
    rows = [_cur_row(charge, net=net) for charge in charges]
    return _csv([name for name in rows[0] if net or "_net_" not in name], rows)


def legacy(charges: Iterable[Charge], *, net: bool = True) -> str:
    """Writes a legacy report, which has fewer columns."""
    rows = [_cur_row(charge, net=net) for charge in charges]
    names = [name for name in LEGACY if net or "_net_" not in name]
    renamed = [{LEGACY[name]: row[name] for name in names} for row in rows]
    return _csv([LEGACY[name] for name in names], renamed)


def focus_1_0(charges: Iterable[Charge]) -> str:
    """Writes FOCUS 1.0 with AWS columns: x_UsageType has the usage type; no SkuMeter."""
    rows = [_focus_row(charge) for charge in charges]
    return _csv([name for name in rows[0] if name != "SkuMeter"], rows)


def focus_1_2(charges: Iterable[Charge]) -> str:
    """Writes FOCUS 1.2 with AWS columns: SkuMeter has the usage type; no x_UsageType."""
    rows = [_focus_row(charge) for charge in charges]
    return _csv([name for name in rows[0] if name != "x_UsageType"], rows)


SHAPES: dict[str, Callable[[Iterable[Charge]], str]] = {
    "legacy": legacy,
    "cur2": cur2,
    "focus-1.0": focus_1_0,
    "focus-1.2": focus_1_2,
}


def _cur_row(charge: Charge, *, net: bool) -> dict[str, str]:
    usage = charge.kind == "Usage"
    kind = "SavingsPlanCoveredUsage" if charge.plan_price is not None else charge.kind
    gross = charge.cost(charge.list_price if net else charge.price)
    plan = "" if charge.plan_price is None else str(charge.cost(charge.plan_price))
    return {
        "bill_bill_type": "Anniversary",
        "bill_billing_period_start_date": f"{charge.start:%Y-%m}-01T00:00:00.000Z",
        "bill_payer_account_id": charge.payer,
        "identity_line_item_id": "x",
        "line_item_usage_account_id": charge.account,
        "line_item_line_item_type": kind,
        "line_item_usage_start_date": f"{charge.start:%Y-%m-%dT%H:%M:%S}.000Z",
        "line_item_usage_end_date": f"{charge.start + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}.000Z",
        "line_item_product_code": "AmazonSageMaker",
        "line_item_usage_type": charge.usage_type,
        "line_item_operation": "RunInstance",
        "line_item_resource_id": charge.arn if usage else "",
        "line_item_usage_amount": str(charge.amount) if usage else "",
        "line_item_currency_code": charge.currency,
        "line_item_unblended_rate": "",
        "line_item_unblended_cost": str(gross),
        "line_item_net_unblended_cost": str(charge.cost(charge.price)),
        "pricing_public_on_demand_cost": "",
        "pricing_public_on_demand_rate": f"{charge.list_price:.10f}" if usage else "",
        "pricing_term": "OnDemand",
        "pricing_unit": charge.unit,
        "product_region_code": charge.region,
        "savings_plan_savings_plan_effective_cost": plan,
        "savings_plan_net_savings_plan_effective_cost": plan,
        "discount": "{}",
        "product": '{"component":"Training"}',
        **charge.changes,
    }


_FOCUS_KINDS = {"Usage": "Usage", "Tax": "Tax", "Credit": "Credit", "Refund": "Credit"}


def _focus_row(charge: Charge) -> dict[str, str]:
    usage, covered = charge.kind == "Usage", charge.plan_price is not None
    billed = Decimal(0) if covered else charge.cost(charge.price)
    effective = billed if charge.plan_price is None else charge.cost(charge.plan_price)
    start, month = charge.start, charge.start.replace(day=1, hour=0, minute=0, second=0)
    return {
        "BilledCost": str(billed),
        "BillingAccountId": charge.payer,
        "BillingCurrency": charge.currency,
        "BillingPeriodStart": f"{month:%Y-%m-%dT%H:%M:%S}.000Z",
        "ChargeCategory": _FOCUS_KINDS.get(charge.kind, "Purchase"),
        "ChargePeriodStart": f"{start:%Y-%m-%dT%H:%M:%S}.000Z",
        "ChargePeriodEnd": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}.000Z",
        "CommitmentDiscountStatus": "Used" if covered else "",
        "CommitmentDiscountType": "SageMaker Savings Plans" if covered else "",
        "ConsumedQuantity": str(charge.amount) if usage else "",
        "ConsumedUnit": charge.unit if usage else "",
        "EffectiveCost": str(effective),
        "ListUnitPrice": str(charge.list_price) if usage else "",
        "PricingCategory": "Committed" if covered else "Standard",
        "PricingQuantity": str(charge.amount) if usage else "",
        "PricingUnit": charge.unit if usage else "",
        "RegionId": charge.region,
        "ResourceId": charge.arn if usage else "",
        "ServiceName": "Amazon SageMaker",
        "SkuMeter": charge.usage_type,
        "x_UsageType": charge.usage_type,
        "SubAccountId": charge.account,
        "x_Operation": "RunInstance",
        "x_ServiceCode": "AmazonSageMaker",
        **charge.changes,
    }


def _csv(header: Iterable[str], rows: Iterable[dict[str, str]]) -> str:
    names = list(header)
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
