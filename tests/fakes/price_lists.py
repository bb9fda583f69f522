"""Price List products, and a fake Price List API that returns them."""

import copy
import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from sageaudit.adapters.prices.price_list import StoredListing
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import ROLES, STORAGE, ListedRate, PriceListing

DOCUMENTS = Path(__file__).parents[1] / "recorded" / "data" / "price-list-documents"


def recorded_document(name: str) -> Any:
    """Returns one of the reconstructed Price List documents."""
    return json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))


def product(
    instance_type: str = "ml.m5.xlarge",
    usd: object = "0.2570000000",
    *,
    region: str = "eu-west-1",
    component: Component = Component.TRAINING,
    effective: str = "2026-05-01T00:00:00Z",
    **attributes: str,
) -> Any:
    """Returns a product with one price and changed attributes."""
    document = copy.deepcopy(recorded_document("training_eu-west-1_ml.m5.xlarge"))
    document["product"]["attributes"] |= {
        "instanceName": instance_type,
        "instanceType": f"{instance_type}-{component.value}",
        "component": component.value,
        "regionCode": region,
        "usagetype": f"XX1-{ROLES[component]}:{instance_type}",
        **attributes,
    }
    [term] = document["terms"]["OnDemand"].values()
    term["effectiveDate"] = effective
    [dimension] = term["priceDimensions"].values()
    dimension["pricePerUnit"] = {"USD": usd}
    return document


def volume(usd: str, *, region: str = "eu-west-1", component: Component) -> Any:
    """Returns the storage product of a component."""
    document = copy.deepcopy(recorded_document("volume_training_eu-west-1_gp2"))
    document["product"]["attributes"] |= {
        "regionCode": region,
        "volumeType": f"General Purpose-{component.value}",
        "usagetype": f"XX1-{ROLES[component]}:{STORAGE}",
    }
    [term] = document["terms"]["OnDemand"].values()
    [dimension] = term["priceDimensions"].values()
    dimension["pricePerUnit"] = {"USD": usd}
    return document


def dimension_of(document: Any) -> dict[str, Any]:
    """Returns the only price dimension of a document, to be changed."""
    [term] = document["terms"]["OnDemand"].values()
    [dimension] = term["priceDimensions"].values()
    result: dict[str, Any] = dimension
    return result


class PricingClient:
    """Fakes GetProducts over a list of products, with AWS's filters and pages."""

    def __init__(self, products: Sequence[Any] = (), *, page: int = 100) -> None:
        self.products = list(products)
        self.calls: list[dict[str, Any]] = []
        self.refusal: ClientError | None = None
        self._page = page

    def get_products(self, **request: Any) -> dict[str, Any]:
        self.calls.append(request)
        if self.refusal is not None:
            raise self.refusal
        matching = [product for product in self.products if _matches(product, request["Filters"])]
        start = int(request.get("NextToken", 0))
        answer: dict[str, Any] = {
            "FormatVersion": "aws_v1",
            "PriceList": [
                condition if isinstance(condition, str) else json.dumps(condition)
                for condition in matching[start : start + self._page]
            ],
        }
        if start + self._page < len(matching):
            answer["NextToken"] = str(start + self._page)
        return answer


def _matches(document: Any, filters: list[dict[str, str]]) -> bool:
    if isinstance(document, str):
        return True
    product = document["product"]
    values = {**product["attributes"], "productFamily": product.get("productFamily")}
    assert all(condition["Type"] == "TERM_MATCH" for condition in filters)
    return all(values.get(condition["Field"]) == condition["Value"] for condition in filters)


def denied_error(operation: str = "GetProducts") -> ClientError:
    """Returns AWS's error for a role without the permission."""
    message = (
        "User: arn:aws:sts::111122223333:assumed-role/audit/x is not authorized to perform:"
        f" pricing:{operation}"
    )
    return ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, operation)


def listing(
    rates: dict[str, str],
    *,
    region: str = "eu-west-1",
    component: Component = Component.TRAINING,
    effective: date | None = date(2026, 5, 1),
) -> PriceListing:
    """Returns a listing of these rates."""
    role = ROLES[component]
    return PriceListing(
        region,
        component,
        {
            name: ListedRate(Decimal(usd), effective, f"XX1-{role}:{name}")
            for name, usd in rates.items()
        },
    )


def stored_listing(rates: dict[str, str], read_at: datetime) -> StoredListing:
    """The same as it was read at a moment."""
    return StoredListing(listing(rates), read_at)
