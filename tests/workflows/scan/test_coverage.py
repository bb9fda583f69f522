"""What Cost Explorer's bill says of the audits of a scan, account by account."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.reconcile.coverage import Coverage, CoveredAccount
from sageaudit.domain.sweep import Period
from sageaudit.ports import History
from sageaudit.workflows.scan.coverage import BilledAccounts, read_coverage
from tests.fakes.aws_calls import aws_calls
from tests.fakes.cost_explorer import cost_and_usage
from tests.fakes.documents import ACCOUNT, REGION
from tests.fakes.entries import NOON, entry

DAY = Period(NOON.date(), NOON.date())


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A history with one audited job of $4.545."""
    with SqliteHistory(tmp_path / "history.db") as history:
        history.record(entry())
        yield history


def coverage_of_bill(history: History, *usage: tuple[str, str], region: str = REGION) -> Coverage:
    """The coverage of one account's bill; `usage` has usage types and their dollars."""

    def bill(_: str, params: Mapping[str, Any]) -> dict[str, Any]:
        assert [group["Key"] for group in params["GroupBy"]] == ["USAGE_TYPE", "REGION"]
        return cost_and_usage(((name, REGION), 1, usd) for name, usd in usage)

    billed = BilledAccounts(boto3.Session(region_name=REGION), (ACCOUNT,))
    with aws_calls() as calls:
        calls.answer("ce:GetCostAndUsage", bill)
        result = read_coverage(billed, history, {(ACCOUNT, region)}, [region], DAY)
    assert result.coverage is not None
    return result.coverage


def test_the_bill_of_a_single_account_is_the_sum_of_its_usage(history: History) -> None:
    """Its usage is read anyway, so its dollars need no second request."""
    found = coverage_of_bill(
        history, ("USE1-Train:ml.m5.large", "12"), ("USE1-Host:ml.m5.large", "30.5")
    )
    assert found.accounts == (CoveredAccount(ACCOUNT, Decimal("42.5"), Decimal("4.545")),)


def test_a_single_account_without_usage_has_a_bill_of_0_dollars(history: History) -> None:
    """A bill that was read and is empty differs from one that could not be read."""
    found = coverage_of_bill(history)
    assert found.accounts == (CoveredAccount(ACCOUNT, Decimal(0), Decimal("4.545")),)


def test_audits_of_other_regions_are_not_counted(history: History) -> None:
    """The history may have more than what the scan covered."""
    found = coverage_of_bill(history, ("EU-Train:ml.m5.large", "7"), region="eu-west-1")
    assert (found.audited_usd, found.accounts[0].audited_usd) == (0, 0)
