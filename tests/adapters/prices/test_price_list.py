"""The Price List API: filters, pages, endpoints and refusals."""

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from sageaudit.adapters.prices.price_list import PriceList, endpoint_region
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import STORAGE, InvalidPrice, PriceListing
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    NoCredentials,
    NoEndpoint,
    Throttled,
    Unavailable,
)
from tests.fakes.price_lists import PricingClient, denied_error, dimension_of, product, volume

EVERYTHING = [
    product(),
    product("ml.c5.xlarge", "0.238"),
    product(component=Component.PROCESSING),
    product(component=Component.TRANSFORM),
    product(region="eu-west-2", usd="0.266"),
    volume("0.154", component=Component.TRAINING),
    volume("0.11", component=Component.PROCESSING),
]


def listed(
    client: PricingClient, component: Component = Component.TRAINING, region: str = "eu-west-1"
) -> PriceListing:
    """The listing of a region, whatever the client's endpoint."""
    return PriceList(lambda _endpoint: client).read_listing(region, component)


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("us-east-1", "us-east-1"),
        ("eu-west-1", "us-east-1"),
        ("ap-southeast-7", "us-east-1"),
        ("cn-north-1", "cn-northwest-1"),
        ("cn-northwest-1", "cn-northwest-1"),
        ("eusc-de-east-1", "eusc-de-east-1"),
        ("us-gov-west-1", None),
    ],
)
def test_the_endpoint_follows_the_partition_and_not_the_job(
    region: str, endpoint: str | None
) -> None:
    """The API answers in few regions, for all of their partition."""
    assert endpoint_region(region) == endpoint


@pytest.mark.parametrize("partition", boto3.Session().get_available_partitions())
def test_each_endpoint_is_one_that_the_sdk_knows_in_the_same_partition(partition: str) -> None:
    """A partition has none only if the SDK knows none."""
    session = boto3.Session()
    endpoints = session.get_available_regions("pricing", partition_name=partition)
    regions = session.get_available_regions("sagemaker", partition_name=partition)
    chosen = {endpoint_region(region) for region in regions}
    assert len(chosen) == 1
    assert chosen <= (set(endpoints) or {None})


def test_a_partition_without_an_endpoint_is_not_asked_elsewhere() -> None:
    """Its credentials are unknown to the commercial endpoint."""
    client = PricingClient(EVERYTHING)
    with pytest.raises(NoEndpoint, match="aws-us-gov has no Price List endpoint"):
        listed(client, region="us-gov-west-1")
    assert client.calls == []


def test_one_read_brings_a_region_and_component_with_its_storage() -> None:
    """Not one call a type; transform has no storage to ask for."""
    client = PricingClient(EVERYTHING)
    assert {name: str(rate.usd) for name, rate in listed(client).rates.items()} == {
        "ml.m5.xlarge": "0.257",
        "ml.c5.xlarge": "0.238",
        STORAGE: "0.154",
    }
    assert [call["ServiceCode"] for call in client.calls] == ["AmazonSageMaker"] * 2
    listed(client, Component.TRANSFORM)
    assert len(client.calls) == 3


def test_pages_are_read_to_the_end_but_not_without_end() -> None:
    """A page has at most 100 products; the cap is far above what any region has."""
    many = PricingClient([product(f"ml.m5.{n}xlarge") for n in range(250)])
    assert len(listed(many).rates) == 250
    endless = PricingClient([product()] * 100, page=1)
    with pytest.raises(Unavailable, match="more than 30 pages"):
        listed(endless)
    assert len(endless.calls) == 30


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "7", '{"product": 1}', "[" * 10_000])
def test_a_product_that_cannot_be_read_spoils_no_other(text: str) -> None:
    """Nor does it stop the reading."""
    assert list(listed(PricingClient([text, product()])).rates) == ["ml.m5.xlarge"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ThrottlingException", Throttled),
        ("InternalErrorException", Unavailable),
        ("ExpiredNextTokenException", Unavailable),
        ("UnrecognizedClientException", NoCredentials),
    ],
)
def test_a_refusal_is_one_of_our_errors(code: str, expected: type[AwsError]) -> None:
    """One sentence."""
    client = PricingClient()
    client.refusal = ClientError({"Error": {"Code": code, "Message": "no"}}, "GetProducts")
    with pytest.raises(expected):
        listed(client)


def test_a_missing_permission_is_named() -> None:
    """So that it can be granted."""
    client = PricingClient()
    client.refusal = denied_error()
    with pytest.raises(AccessDenied, match=r"^pricing:GetProducts is not permitted\.$"):
        listed(client)


def test_a_region_without_prices_is_no_empty_listing() -> None:
    """It would make every type unknown for a day; China's other currency is said."""
    with pytest.raises(Unavailable, match=r"^The price list has no Training prices of xx-1\.$"):
        listed(PricingClient(), region="xx-1")
    document = product(region="cn-north-1")
    dimension_of(document)["pricePerUnit"] = {"CNY": "1.7"}
    with pytest.raises(Unavailable, match="is priced in CNY, not in USD"):
        listed(PricingClient([document]), region="cn-north-1")


def test_a_refused_product_is_kept_with_its_reason() -> None:
    """So that the book can say why there is no rate."""
    listing = listed(PricingClient([product(), product("ml.c5.xlarge", "NaN")]))
    assert isinstance(listing.entry_by_product["ml.c5.xlarge"], InvalidPrice)


def test_the_request_is_one_that_boto3_accepts() -> None:
    """Parameter names and types are checked against the service's model."""
    client = boto3.client("pricing", region_name="us-east-1")
    with Stubber(client) as stubber:
        for _ in range(2):
            stubber.add_response("get_products", {"FormatVersion": "aws_v1", "PriceList": []})
        with pytest.raises(Unavailable, match="has no Training prices"):
            listed(client)
        stubber.assert_no_pending_responses()
