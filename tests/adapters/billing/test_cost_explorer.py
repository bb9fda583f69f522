"""Cost Explorer against a client that answers from a list: pages, loops, refusals, odd answers."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from sageaudit.adapters.billing.cost_explorer import MAX_REQUESTS, CostExplorer
from sageaudit.domain.reconcile.lines import AwsLine, AwsSpend
from sageaudit.errors import (
    AccessDenied,
    AwsError,
    MalformedData,
    NoCredentials,
    Throttled,
    Unavailable,
)

ACCOUNT = "111122223333"
OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)


def group(*keys: str, usd: str = "0.92", quantity: str = "4", unit: str = "Hrs") -> dict[str, Any]:
    """One group as Cost Explorer gives it."""
    return {
        "Keys": list(keys),
        "Metrics": {
            "UnblendedCost": {"Amount": usd, "Unit": "USD"},
            "UsageQuantity": {"Amount": quantity, "Unit": unit},
        },
    }


def page(*groups: dict[str, Any], token: str | None = None, **result: Any) -> dict[str, Any]:
    """One answer, with the token of the next."""
    answer: dict[str, Any] = {"ResultsByTime": [{"Groups": list(groups)} | result]}
    return answer | ({"NextPageToken": token} if token else {})


class Client:
    """Gives the pages; errors are raised."""

    def __init__(self, pages: list[Any]) -> None:
        self._pages = pages
        self.asked: list[dict[str, Any]] = []

    def get_cost_and_usage(self, **request: Any) -> dict[str, Any]:
        self.asked.append(dict(request))
        answer = self._pages.pop(0) if len(self._pages) > 1 else self._pages[0]
        if isinstance(answer, Exception):
            raise answer
        result: dict[str, Any] = answer
        return result


def october(client: Client) -> AwsSpend:
    """The usage of October."""
    return CostExplorer(client).usage([ACCOUNT], OCTOBER, LAST)


def test_twenty_pages_are_read_and_no_more() -> None:
    """Each costs a cent: the error says what was spent."""
    pages = [page(token=str(number)) for number in range(19)]
    october(twenty := Client([*pages, page()]))
    assert len(twenty.asked) == 20
    with pytest.raises(Unavailable, match=r"stopped after \$0\.20"):
        october(more := Client([*pages, page(token="19"), page()]))
    assert len(more.asked) == 20


def test_lines_come_with_region_unit_and_exact_amounts() -> None:
    """Digit by digit: no float in between."""
    m5, usd = "USE1-Train:ml.m5.xlarge", "0.9200000001"
    spend = october(Client([page(group(m5, "us-east-1", usd=usd))]))
    assert spend.lines == (AwsLine(m5, "us-east-1", "Hrs", Decimal(4), Decimal(usd)),)


def test_it_asks_for_one_account_one_service_one_month_and_usage_alone() -> None:
    """No credits, refunds and negations of savings plans."""
    client = Client([page()])
    october(client)
    [usage] = client.asked
    assert usage["TimePeriod"] == {"Start": "2026-10-01", "End": "2026-11-01"}
    assert usage["Granularity"] == "MONTHLY"
    assert usage["Metrics"] == ["UnblendedCost", "UsageQuantity"]
    assert [group["Key"] for group in usage["GroupBy"]] == ["USAGE_TYPE", "REGION"]
    service, account, records = (condition["Dimensions"] for condition in usage["Filter"]["And"])
    assert service == {"Key": "SERVICE", "Values": ["Amazon SageMaker"]}
    assert account == {"Key": "LINKED_ACCOUNT", "Values": [ACCOUNT]}
    assert records["Key"] == "RECORD_TYPE"


def test_every_page_is_read_and_counted() -> None:
    """Three pages are three requests."""
    pages = [page(group(f"USE1-Train:{n}", "us-east-1"), token=n) for n in ("2", "3")]
    client = Client([*pages, page(group("USE1-Train:4", "us-east-1"))])
    explorer = CostExplorer(client)
    spend = explorer.usage([ACCOUNT], OCTOBER, LAST)
    assert [line.usage_type[-1] for line in spend.lines] == ["2", "3", "4"]
    assert [request.get("NextPageToken") for request in client.asked] == [None, "2", "3"]
    assert explorer.requests == 3


@pytest.mark.parametrize(
    ("tokens", "asked", "said"),
    [
        (["again"], 2, "twice"),
        (range(MAX_REQUESTS + 5), MAX_REQUESTS, r"more than 20 pages.*\$0\.20.*--cur"),
    ],
)
def test_pages_that_nobody_would_pay_for_end_it(
    tokens: Sequence[object], asked: int, said: str
) -> None:
    """A loop or a limit: it says what was spent and what to do instead."""
    client = Client([page(token=str(token)) for token in tokens])
    with pytest.raises(Unavailable, match=said):
        october(client)
    assert len(client.asked) == asked


def test_usage_below_zero_and_lines_of_nothing_are_left_out() -> None:
    """What is free is no nothing."""
    usage = page(
        group("USE1-Train:a", "us-east-1"),
        group("USE1-Train:b", "us-east-1", usd="-1.5"),
        group("USE1-Train:c", "us-east-1", usd="0", quantity="0"),
        group("USE1-Train:d", "us-east-1", usd="0", quantity="3"),
    )
    assert [line.usage_type[-1] for line in october(Client([usage])).lines] == ["a", "d"]


@pytest.mark.parametrize("region", ["", "NoRegion", "global"])
def test_no_region_is_none(region: str) -> None:
    """It is not a place of its own."""
    assert october(Client([page(group("x", region, unit="N/A"))])).lines[0].region is None


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("AccessDeniedException", AccessDenied, "ce:GetCostAndUsage"),
        ("ExpiredTokenException", NoCredentials, "expired"),
        ("ThrottlingException", Throttled, "throttled"),
        ("DataUnavailableException", Unavailable, "DataUnavailableException"),
        (None, NoCredentials, "redentials"),
    ],
)
def test_a_refusal_is_one_of_our_errors(code: str | None, kind: type[AwsError], said: str) -> None:
    """With the action in it, and nothing of botocore; no credentials as everywhere."""
    refusal = ClientError({"Error": {"Code": code, "Message": "no"}}, "GetCostAndUsage")
    with pytest.raises(kind, match=said):
        october(Client([refusal if code else NoCredentialsError()]))


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"ResultsByTime": [{}]},
        page({"Keys": ["one"], "Metrics": {}}),
        page({"Keys": ["a", "b"]}),
        page(group("a", "b", usd="much")),
        page(group("a", "b", usd="NaN")),
        page(group("a", "b", quantity="1e999")),
        page({"Keys": ["a", "b"], "Metrics": {"UsageQuantity": {"Amount": "1"}}}),
        page({"Keys": ["a", "b"], "Metrics": {"UsageQuantity": None, "UnblendedCost": None}}),
        page(
            {
                "Keys": ["a", "b"],
                "Metrics": {
                    "UsageQuantity": {"Amount": "1", "Unit": "Hrs"},
                    "UnblendedCost": {"Amount": "1", "Unit": "CNY"},
                },
            }
        ),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused(answer: dict[str, Any]) -> None:
    """Never a guess, and never a 0."""
    with pytest.raises(MalformedData):
        october(Client([answer]))
