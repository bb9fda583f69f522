"""Compares the SageMaker bill of Cost Explorer with the audits of a scan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.accounts import identity
from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.billing.cost_explorer import REGION, USD_PER_REQUEST, CostExplorer
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.ref import region_partition
from sageaudit.domain.reconcile.coverage import Coverage, coverage
from sageaudit.domain.reconcile.lines import AuditedLine, AwsLine, AwsSpend, lines_from_audit
from sageaudit.domain.sweep import Period
from sageaudit.errors import AwsError, BadUsage, MalformedData, SageauditError
from sageaudit.ports import History
from sageaudit.queries.lists import audits_of_period
from sageaudit.workflows.audit.stored import read_audit

_CHINA = "cn-northwest-1"


class BilledAccounts(Struct, frozen=True):
    """The accounts whose bill is read, with the session's own credentials.

    An organization's payer account sees all bills. Any other account sees only its own.
    """

    session: Any
    accounts: tuple[str, ...]

    @property
    def min_requests(self) -> int:
        """The number of Cost Explorer requests if each answer has one page."""
        return min(len(self.accounts), 2)

    @property
    def cost_usd(self) -> Decimal:
        """The price of `min_requests` requests."""
        return self.min_requests * USD_PER_REQUEST


def billed_accounts(session: Any, region: str, accounts: Iterable[str] = ()) -> BilledAccounts:
    """Returns the accounts whose bill is read, by default only the session's own.

    Raises AwsError, or BadUsage if Cost Explorer has no endpoint for the region.
    """
    if region_partition(region) not in {"aws", "aws-cn"}:
        raise BadUsage(f"--coverage: Cost Explorer does not cover {region}; omit --coverage")
    return BilledAccounts(session, tuple(accounts) or (identity(session, region).account,))


class CoverageResult(Struct, frozen=True):
    """The comparison of the AWS bill and audits. `requests` counts the Cost Explorer requests.

    If the AWS bill could not be read, `coverage` is None and `refusal` is the error.
    """

    coverage: Coverage | None = None
    requests: int = 0
    refusal: SageauditError | None = None


def read_coverage(
    billed_accounts: BilledAccounts,
    history: History,
    account_regions: Collection[tuple[str, str]],
    regions: Sequence[str],
    period: Period,
) -> CoverageResult:
    """Compares the AWS bill with the audits of these accounts and regions.

    `regions` must not be empty. An account whose bill is not visible counts on neither side, but
    stays in the list of accounts.
    """
    endpoint = _CHINA if region_partition(regions[0]) == "aws-cn" else REGION
    explorer = CostExplorer(client(billed_accounts.session, "ce", endpoint))
    try:
        lines, bills = _read_bills(explorer, billed_accounts.accounts, period)
    except (AwsError, MalformedData) as error:
        return CoverageResult(None, explorer.requests, error)
    audited_usd_by_account = dict.fromkeys(billed_accounts.accounts, Decimal(0))
    for row in history.daily_sums(Scope.ACCOUNT, period.since, period.until):
        if (row.account, row.region) in account_regions:
            audited_usd_by_account[row.account] = (
                audited_usd_by_account.get(row.account, Decimal(0)) + row.sums.total_usd
            )
    billed_account_regions = {
        account_region for account_region in account_regions if account_region[0] in bills
    }
    comparison = coverage(
        AwsSpend(tuple(lines)),
        audited_lines(history, billed_account_regions, period),
        days=(period.since, period.until),
        audited_usd=sum(
            (audited_usd_by_account[name] for name in audited_usd_by_account if name in bills),
            Decimal(0),
        ),
        regions=regions,
        accounts={name: (bills.get(name), usd) for name, usd in audited_usd_by_account.items()},
    )
    return CoverageResult(comparison, explorer.requests)


def read_own_coverage(
    history: History,
    session: Any,
    period: Period,
    account: str | None,
    on_cost_known: Callable[[BilledAccounts], None],
) -> CoverageResult:
    """Compares the AWS bill of the session's own account with its audits.

    `on_cost_known` is called before the requests. Raises BadUsage if the audits are of other
    accounts.
    """
    rows = history.daily_sums(Scope.ACCOUNT, period.since, period.until, account=account)
    account_regions = {(row.account, row.region) for row in rows}
    regions = sorted({region for _, region in account_regions})
    billed = billed_accounts(session, regions[0])
    [own_account] = billed.accounts
    if {account for account, _ in account_regions} != {own_account}:
        raise BadUsage(
            f"--coverage reads the bill of your own account: give --account {own_account}"
        )
    on_cost_known(billed)
    return read_coverage(billed, history, account_regions, regions, period)


def _read_bills(
    explorer: CostExplorer, accounts: Sequence[str], period: Period
) -> tuple[Sequence[AwsLine], dict[str, Decimal]]:
    # Also returns the dollars of each account whose bill is visible.
    spend = explorer.usage(accounts, period.since, period.until)
    if len(accounts) == 1:
        return spend.lines, {accounts[0]: sum((line.usd for line in spend.lines), Decimal(0))}
    return spend.lines, explorer.cost_by_account(accounts, period.since, period.until)


def audited_lines(
    history: History, account_regions: Collection[tuple[str, str]], period: Period
) -> Iterator[AuditedLine]:
    """Yields the bill lines of audited jobs that ended in the period, without roll-ups."""
    for account in sorted({account for account, _ in account_regions}):
        for summary in audits_of_period(history, period, account):
            if summary.rollup or (account, summary.region) not in account_regions:
                continue
            document = read_audit(history, summary.key, summary.version)
            if document is not None:
                yield from lines_from_audit(document, None)
