"""Past price lists: which one was in force on a day, and its rates.

GetProducts returns only today's prices. ListPriceLists names the list of a day and
GetPriceListFileUrl the address of its file, which is read row by row, up to a size limit, and not
stored. This is too slow for an audit; only the command line uses it. The column names come from
files of other services, not from one of SageMaker, so a missing column is reported by name.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from http.client import HTTPException, HTTPSConnection
from typing import IO, Any
from urllib.parse import urlsplit

from sageaudit.adapters.aws.clients import aws_errors
from sageaudit.adapters.prices.price_list import SERVICE, endpoint_of
from sageaudit.domain.job.kinds import Component
from sageaudit.domain.prices.price_list import PriceListing, read
from sageaudit.errors import Unavailable

PAST_PERMISSIONS = ("pricing:GetPriceListFileUrl", "pricing:ListPriceLists")
"""Needed by the user of the command line; no Lambda function reads past price lists."""
MOST_BYTES = 256 * 1024 * 1024
_TIMEOUT_S = 30
_OK = 200
_VERSION = re.compile(r"/(\d{4})(\d{2})(\d{2})\d{6}/")
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+amazonaws\.com(?:\.cn)?")
_NEEDED = (
    "termtype", "unit", "priceperunit", "currency", "productfamily", "locationtype", "usagetype",
    "instancename", "component",
)  # fmt: skip
"""Required columns, in lower case without spaces or punctuation."""
_NO_LETTERS = re.compile(r"[^a-z0-9]")


@dataclass(frozen=True, slots=True)
class PastList:
    """A price list of one region; `published` is the day in its version."""

    region: str
    arn: str
    published: date


class PriceFiles:
    """Reads past price lists. `open_url` opens an https address for reading."""

    def __init__(self, clients: Callable[[str], Any], open_url: Callable[[str], IO[bytes]]) -> None:
        self._clients = clients
        self._open_url = open_url

    def in_force(self, region: str, day: date) -> PastList | None:
        """The price list in force on a day; None when AWS lists none. Raises AwsError."""
        with aws_errors("pricing"):
            answer = self._clients(endpoint_of(region)).list_price_lists(
                ServiceCode=SERVICE,
                CurrencyCode="USD",
                EffectiveDate=datetime.combine(day, time(), UTC),
                RegionCode=region,
            )
        lists = [
            PastList(region, listed["PriceListArn"], date(*map(int, version.groups())))
            for listed in answer.get("PriceLists", ())
            if listed.get("RegionCode") == region
            and (version := _VERSION.search(listed["PriceListArn"])) is not None
        ]
        return max(lists, key=lambda listed: listed.arn, default=None)

    def listing(self, past: PastList, component: Component) -> PriceListing:
        """The rates of a component in a past price list. Raises AwsError."""
        with aws_errors("pricing"):
            url = self._clients(endpoint_of(past.region)).get_price_list_file_url(
                PriceListArn=past.arn, FileFormat="csv"
            )["Url"]
        parts = urlsplit(url)
        if parts.scheme != "https" or not _HOST.fullmatch(parts.netloc):
            raise Unavailable("pricing:GetPriceListFileUrl did not return an https address of AWS.")
        try:
            with self._open_url(url) as stream:
                bounded = io.BufferedReader(_Bounded(stream))
                text = io.TextIOWrapper(bounded, encoding="utf-8", errors="replace", newline="")
                return read(_documents(csv.reader(text), past.region), past.region, component)
        except (OSError, HTTPException, csv.Error) as error:
            raise Unavailable(f"The price list file could not be read: {error}.") from error


def open_https(url: str) -> IO[bytes]:
    """Opens an address with a GET request, without following redirects.

    Raises OSError for a status other than 200, or HTTPException.
    """
    parts = urlsplit(url)
    connection = HTTPSConnection(parts.netloc, timeout=_TIMEOUT_S)
    connection.request("GET", f"{parts.path}?{parts.query}" if parts.query else parts.path)
    response = connection.getresponse()
    if response.status != _OK:
        connection.close()
        raise OSError(f"HTTP status {response.status}")
    return response


class _Bounded(io.RawIOBase):
    """A stream that raises OSError after `MOST_BYTES`."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._stream.read(len(buffer))
        self._left -= len(chunk)
        if self._left < 0:
            raise OSError(f"it is longer than {MOST_BYTES:,} bytes")
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _documents(rows: Iterator[list[str]], region: str) -> Iterator[object]:
    """Each on-demand row in the form of a GetProducts product. Raises Unavailable."""
    header = next((row for row in rows if row and row[0] == "SKU"), None)
    if header is None:
        raise Unavailable("The price list file has no header.")
    names = [_NO_LETTERS.sub("", name.lower()) for name in header]
    for needed in _NEEDED:
        if needed not in names:
            raise Unavailable(f"The price list file has no column {needed}.")
    whole = (dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names))
    return (_document(row, region) for row in whole if row["termtype"] == "OnDemand")


def _document(row: dict[str, str], region: str) -> object:
    attributes = {
        "instanceName": row["instancename"],
        "component": row["component"],
        "usagetype": row["usagetype"],
        "locationType": row["locationtype"],
        "regionCode": row.get("regioncode") or region,
    }
    if row.get("instancetype"):
        attributes["instanceType"] = row["instancetype"]
    price = {"unit": row["unit"], "pricePerUnit": {row["currency"]: row["priceperunit"]}}
    term = {"effectiveDate": row.get("effectivedate"), "priceDimensions": {"": price}}
    product = {"productFamily": row["productfamily"], "attributes": attributes}
    return {"product": product, "terms": {"OnDemand": {"": term}}}
