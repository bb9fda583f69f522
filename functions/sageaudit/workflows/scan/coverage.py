"""The SageMaker bill beside the audits of a scan, as Cost Explorer has it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from sageaudit.adapters.aws.accounts import identity
from sageaudit.adapters.aws.clients import client
from sageaudit.adapters.billing.cost_explorer import REGION, USD_PER_REQUEST, CostExplorer
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.listed import Period
from sageaudit.domain.job.ref import partition_of
from sageaudit.domain.reconcile.audited_lines import AuditedLine, lines_of
from sageaudit.domain.reconcile.coverage import Coverage, coverage
from sageaudit.domain.reconcile.spend import AwsLine, AwsSpend
from sageaudit.errors import AwsError, BadUsage, Malformed, SageauditError
from sageaudit.ports import History
from sageaudit.queries.lists import heads_of_period
from sageaudit.workflows.audit.stored import whole_audit

_CHINA = "cn-northwest-1"


class BilledAccounts(Struct, frozen=True):
    """Whose bill is read, with the session's own credentials.

    The account that pays for an organization sees the bills of all; any other one its own alone.
    """

    session: Any
    accounts: tuple[str, ...]

    @property
    def least_requests(self) -> int:
        """The Cost Explorer requests that it takes, if each answer has one page."""
        return min(len(self.accounts), 2)

    @property
    def usd(self) -> Decimal:
        """What these requests cost."""
        return self.least_requests * USD_PER_REQUEST


def billed(session: Any, region: str, accounts: Iterable[str] = ()) -> BilledAccounts:
    """The bill of these accounts, by default of the session's own.

    Raises AwsError, or BadUsage where Cost Explorer has no endpoint.
    """
    if partition_of(region) not in {"aws", "aws-cn"}:
        raise BadUsage(f"--coverage: Cost Explorer cannot be asked about {region}; leave it out")
    return BilledAccounts(session, tuple(accounts) or (identity(session, region).account,))


class Covered(Struct, frozen=True):
    """The bill beside the audits; None if it was not read, with the error if it was refused."""

    coverage: Coverage | None = None
    requests: int = 0
    refusal: SageauditError | None = None


def read(
    asked: BilledAccounts,
    history: History,
    places: Collection[tuple[str, str]],
    regions: Sequence[str],
    period: Period,
) -> Covered:
    """Reads the bill and puts it beside the audits of these accounts and regions.

    `regions` has at least one. An account whose bill is not seen is left out on both sides, but
    not in the list of accounts.
    """
    endpoint = _CHINA if partition_of(regions[0]) == "aws-cn" else REGION
    explorer = CostExplorer(client(asked.session, "ce", endpoint))
    try:
        lines, bills = _of_accounts(explorer, asked.accounts, period)
    except (AwsError, Malformed) as error:
        return Covered(None, explorer.requests, error)
    audited = dict.fromkeys(asked.accounts, Decimal(0))
    for row in history.sums(Scope.ACCOUNT, period.since, period.until):
        if (row.account, row.region) in places:
            audited[row.account] = audited.get(row.account, Decimal(0)) + row.sums.total_usd
    billed_places = {place for place in places if place[0] in bills}
    known = coverage(
        AwsSpend(tuple(lines)),
        audited_lines(history, billed_places, period),
        days=(period.since, period.until),
        audited_usd=sum((audited[name] for name in audited if name in bills), Decimal(0)),
        regions=regions,
        accounts={name: (bills.get(name), usd) for name, usd in audited.items()},
    )
    return Covered(known, explorer.requests)


def _of_accounts(
    explorer: CostExplorer, accounts: Sequence[str], period: Period
) -> tuple[Sequence[AwsLine], dict[str, Decimal]]:
    """The usage of these accounts together, and the dollars of each that is seen."""
    spend = explorer.usage(accounts, period.since, period.until)
    if len(accounts) == 1:
        return spend.lines, {accounts[0]: sum((line.usd for line in spend.lines), Decimal(0))}
    return spend.lines, explorer.by_account(accounts, period.since, period.until)


def audited_lines(
    history: History, places: Collection[tuple[str, str]], period: Period
) -> Iterator[AuditedLine]:
    """The bill lines of the audits of jobs that ended in the period, roll-ups left out."""
    for account in sorted({account for account, _ in places}):
        for head in heads_of_period(history, period, account):
            if head.rollup or (account, head.region) not in places:
                continue
            document = whole_audit(history, head.key, head.version)
            if document is not None:
                yield from lines_of(document, None)
