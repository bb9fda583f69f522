"""Reads SageMaker's usage and cost from Cost Explorer, by usage type and region.

AWS charges for every page, so the number of requests is limited. Usage types have no reliable
region prefix, so the query groups by region.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from sageaudit.adapters.aws.clients import aws_errors
from sageaudit.domain.reconcile.lines import USAGE_TYPES, AwsLine, AwsSpend
from sageaudit.errors import MalformedData, Unavailable

CLI_PERMISSIONS = ("ce:GetCostAndUsage",)
"""The permission that the command's user needs. No Lambda function calls Cost Explorer."""
REGION = "us-east-1"
"""Cost Explorer's only endpoint. It covers the usage of all regions."""
USD_PER_REQUEST = Decimal("0.01")
MAX_REQUESTS = 20

_SERVICE = "Amazon SageMaker"
_USAGE_FILTER = {"Dimensions": {"Key": "RECORD_TYPE", "Values": list(USAGE_TYPES)}}
_NO_REGION_NAMES = frozenset({"", "global", "NoRegion"})
_METRICS = ("UnblendedCost", "UsageQuantity")
_MAX_EXPONENT = 15


class CostExplorer:
    """Calls Cost Explorer. `client` is boto3's "ce" client in REGION.

    `requests` counts the requests made so far.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.requests = 0

    def usage(self, accounts: Sequence[str], since: date, until: date) -> AwsSpend:
        """Returns the accounts' SageMaker usage. Both days are included, negative usage is not.

        Raises AccessDenied, NoCredentials, Throttled or Unavailable. Raises MalformedData if the
        response cannot be read.
        """
        lines: list[AwsLine] = []
        for result in self._results(accounts, _period(since, until), ("USAGE_TYPE", "REGION")):
            for (usage_type, region), usd, quantity, unit in _groups(result, 2):
                if usd >= 0 and quantity >= 0 and (usd or quantity):
                    usage_region = None if region in _NO_REGION_NAMES else region
                    lines.append(AwsLine(usage_type, usage_region, unit, quantity, usd))
        return AwsSpend(tuple(lines))

    def cost_by_account(
        self, accounts: Sequence[str], since: date, until: date
    ) -> dict[str, Decimal]:
        """Returns the dollars of SageMaker usage by account. Both days are included.

        Accounts without usage are left out.
        """
        sums: dict[str, Decimal] = {}
        period = _period(since, until)
        for result in self._results(accounts, period, ("LINKED_ACCOUNT",)):
            for (account,), usd, _, _ in _groups(result, 1):
                sums[account] = sums.get(account, Decimal(0)) + usd
        return sums

    def _results(
        self,
        accounts: Sequence[str],
        period: dict[str, str],
        group_by: tuple[str, ...],
    ) -> Iterator[dict[str, Any]]:
        """Yields the results of all pages. Raises Unavailable after MAX_REQUESTS requests."""
        account_filter = {"Dimensions": {"Key": "LINKED_ACCOUNT", "Values": [*accounts]}}
        service_filter = {"Dimensions": {"Key": "SERVICE", "Values": [_SERVICE]}}
        request: dict[str, Any] = {
            "TimePeriod": period,
            "Granularity": "MONTHLY",
            "Metrics": [*_METRICS],
            "Filter": {"And": [service_filter, account_filter, _USAGE_FILTER]},
            "GroupBy": [{"Type": "DIMENSION", "Key": key} for key in group_by],
        }
        seen_tokens: set[str] = set()
        while True:
            if self.requests >= MAX_REQUESTS:
                spent_usd = self.requests * USD_PER_REQUEST
                raise Unavailable(
                    f"Cost Explorer has more than {MAX_REQUESTS} pages for this period: "
                    f"stopped after ${spent_usd}; use a cost report (`sageaudit reconcile --cur`)."
                )
            self.requests += 1
            with aws_errors("ce", "for this account's billing data"):
                answer = self._client.get_cost_and_usage(**request)
            results = answer.get("ResultsByTime")
            if not isinstance(results, list):
                raise MalformedData("ResultsByTime", "is missing in Cost Explorer's response")
            yield from results
            token = answer.get("NextPageToken")
            if not token:
                return
            if token in seen_tokens:
                raise Unavailable("Cost Explorer returned the same page twice.")
            seen_tokens.add(token)
            request["NextPageToken"] = token


def _period(since: date, until: date) -> dict[str, str]:
    # Cost Explorer excludes the end of a period.
    return {"Start": since.isoformat(), "End": (until + timedelta(days=1)).isoformat()}


def _groups(
    result: Mapping[str, Any], key_count: int
) -> Iterator[tuple[list[str], Decimal, Decimal, str]]:
    """Yields each group's keys, dollars, quantity and unit. Raises MalformedData."""
    try:
        for group in result["Groups"]:
            names = [str(key) for key in group["Keys"]]
            cost_metric, usage = (group["Metrics"][name] for name in _METRICS)
            usd, quantity = (Decimal(str(metric["Amount"])) for metric in (cost_metric, usage))
            has_valid_amounts = all(
                amount.is_finite() and amount.adjusted() <= _MAX_EXPONENT
                for amount in (usd, quantity)
            )
            if len(names) != key_count or not has_valid_amounts:
                raise MalformedData("Groups", "has a group without its keys or amounts")
            if cost_metric.get("Unit") not in {None, "USD"}:
                raise MalformedData(
                    "UnblendedCost", f"is in {cost_metric['Unit']}: only USD can be compared"
                )
            unit = str(usage.get("Unit") or "")
            yield names, usd, quantity, "" if unit == "N/A" else unit
    except (ArithmeticError, AttributeError, KeyError, TypeError) as error:
        raise MalformedData("Groups", "cannot be read in Cost Explorer's response") from error
