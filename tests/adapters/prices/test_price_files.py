"""Price lists of the past: which was in force on a day, and its file read row by row."""

from __future__ import annotations

import io
from datetime import date
from typing import IO, Any

import boto3
import pytest
from botocore.stub import Stubber

from sageaudit.adapters.prices import price_files
from sageaudit.adapters.prices.price_files import PastList, PriceFiles
from sageaudit.domain.job.kinds import Component
from sageaudit.errors import AccessDenied, Unavailable

ARN = "arn:aws:pricing:::price-list/aws/AmazonSageMaker/USD/{}/us-east-1"
URL = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonSageMaker/x/index.csv"
PAST = PastList("us-east-1", ARN.format("20250128120000"), date(2025, 1, 28))
HEADER = (
    '"SKU","OfferTermCode","RateCode","TermType","PriceDescription","EffectiveDate","StartingRange"'
    ',"EndingRange","Unit","PricePerUnit","Currency","Product Family","serviceCode","Location"'
    ',"Location Type","Instance Type","usageType","operation","Component","Instance Name"'
    ',"Region Code"\n'
)
PREAMBLE = (
    '"FormatVersion","v1.0"\n"Disclaimer","This pricing list is for informational purposes only."\n'
    '"Publication Date","2025-01-28T12:00:00Z"\n"Version","20250128120000"\n'
    '"OfferCode","AmazonSageMaker"\n'
)


def row(
    name: str = "ml.p4d.24xlarge",
    usd: str = "37.6880000000",
    *,
    term: str = "OnDemand",
    component: str = "Training",
    usage: str = "USE1-Train",
    unit: str = "Hrs",
) -> str:
    """One line of the file."""
    return (
        f'"S","T","R","{term}","a ""quoted"", text","2025-01-01","0","Inf","{unit}","{usd}","USD"'
        f',"ML Instance","AmazonSageMaker","US East (N. Virginia)","AWS Region","{name}-Training"'
        f',"{usage}:{name}","RunInstance","{component}","{name}","us-east-1"\n'
    )


FILE = (
    PREAMBLE
    + HEADER
    + row()
    + row("ml.m5.xlarge", "0.2300000000")
    + row(usd="20", term="Reserved")
    + row(usd="25.91", component="Cluster", usage="USE1-Cluster")
    + row(usd="13.57", component="", usage="USE1-TrainingPlanUpfrontFee", unit="Quantity")
)


class Client:
    """ListPriceLists and GetPriceListFileUrl."""

    def __init__(self, *versions: str, url: str = URL) -> None:
        self._arns = [ARN.format(version) for version in versions]
        self._url = url
        self.asked: dict[str, Any] = {}

    def list_price_lists(self, **asked: Any) -> dict[str, Any]:
        self.asked = asked
        listed = [{"PriceListArn": arn, "RegionCode": "us-east-1"} for arn in self._arns]
        return {"PriceLists": listed}

    def get_price_list_file_url(self, **asked: Any) -> dict[str, Any]:
        return {"Url": self._url}


def files(client: Any, content: str = FILE) -> PriceFiles:
    """Over one client and one file."""
    return PriceFiles(lambda _endpoint: client, lambda _url: io.BytesIO(content.encode()))


def test_the_list_of_a_day_is_named_with_its_date() -> None:
    """The newest that was in force; AWS keeps no list of every day."""
    client = Client("20250128120000", "20241201000000")
    assert files(client).in_force("us-east-1", date(2025, 2, 1)) == PAST
    assert client.asked["ServiceCode"] == "AmazonSageMaker"
    assert client.asked["EffectiveDate"].isoformat() == "2025-02-01T00:00:00+00:00"
    assert files(Client()).in_force("us-east-1", date(2010, 1, 1)) is None


def test_the_file_gives_the_rates_of_its_day() -> None:
    """On-demand rows of the component; the traps of the live list, and cut lines, are left out."""
    listing = files(Client(), FILE + '"S","T","R","OnDemand"\n').listing(PAST, Component.TRAINING)
    assert {name: str(rate.usd) for name, rate in listing.rates.items()} == {
        "ml.m5.xlarge": "0.23", "ml.p4d.24xlarge": "37.688",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((FILE.replace(f'"{column}"', '"Else"'), r"has no column [a-z]+\.$")
          for column in ("Instance Name", "PricePerUnit", "usageType", "Component")),
        *((content, "has no header") for content in ("", PREAMBLE, "<html>\n")),
    ],
    ids=range(7),
)  # fmt: skip
def test_what_is_no_price_list_is_one_sentence(content: str, said: str) -> None:
    """No column is guessed from another."""
    with pytest.raises(Unavailable, match=said):
        files(Client(), content).listing(PAST, Component.TRAINING)


def test_a_file_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is some 256 MB."""
    monkeypatch.setattr(price_files, "MOST_BYTES", 10_000)
    with pytest.raises(Unavailable, match="longer than 10,000 bytes"):
        files(Client(), FILE + row() * 100).listing(PAST, Component.TRAINING)


@pytest.mark.parametrize(
    "url",
    [
        "http://pricing.us-east-1.amazonaws.com/x.csv",
        "https://amazonaws.com.example.org/x.csv",
        "https://user@pricing.us-east-1.amazonaws.com/x.csv",
        "https://localhost/x.csv",
        "file:///etc/passwd",
    ],
)
def test_an_address_that_is_not_aws_is_not_opened(url: str) -> None:
    """Whatever the answer says."""
    with pytest.raises(Unavailable, match="did not return an https address"):
        files(Client(url=url)).listing(PAST, Component.TRAINING)


def test_a_connection_that_breaks_is_one_of_our_errors() -> None:
    """The caller falls back."""

    def broken(_url: str) -> IO[bytes]:
        raise TimeoutError("timed out")

    with pytest.raises(Unavailable, match="could not be read: timed out"):
        PriceFiles(lambda _endpoint: Client(), broken).listing(PAST, Component.TRAINING)


def test_the_requests_are_ones_that_boto3_accepts() -> None:
    """Names and types are checked against the service's model; a refusal names the action."""
    client = boto3.client("pricing", region_name="us-east-1")
    with Stubber(client) as stubber:
        stubber.add_response("list_price_lists", {"PriceLists": []})
        stubber.add_response("get_price_list_file_url", {"Url": URL})
        stubber.add_client_error("list_price_lists", "AccessDeniedException", "no")
        made = files(client)
        assert made.in_force("us-east-1", date(2025, 2, 1)) is None
        assert made.listing(PAST, Component.TRAINING).rates
        with pytest.raises(AccessDenied, match="pricing:ListPriceLists is not permitted"):
            made.in_force("us-east-1", date(2025, 2, 1))
