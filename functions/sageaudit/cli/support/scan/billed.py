"""The SageMaker bill beside the audits of a scan, as Cost Explorer has it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sageaudit.adapters.aws import organization
from sageaudit.adapters.aws.clients import CONFIG, client
from sageaudit.adapters.billing.cost_explorer import REGION, USD_PER_REQUEST, CostExplorer
from sageaudit.cli.support.account.accounts import identity
from sageaudit.cli.support.scan.scanned_accounts import ScannedAccounts
from sageaudit.domain.audit.sums import Scope, grouped
from sageaudit.domain.job.listed import Period
from sageaudit.domain.job.ref import partition_of
from sageaudit.domain.reconcile.audited_lines import AuditedLine, lines_of
from sageaudit.domain.reconcile.coverage import Coverage, coverage
from sageaudit.domain.reconcile.spend import AwsLine, AwsSpend
from sageaudit.errors import AwsError, BadUsage, Malformed, SageauditError
from sageaudit.ports import History
from sageaudit.queries.lists import heads_of_period

_CHINA = "cn-northwest-1"


@dataclass(frozen=True, slots=True)
class BilledAccounts:
    """Whose bill is read. `session_of` gives each account's session.

    `by_payer`: one session sees them all, that of the account which pays for them.
    """

    own: str
    accounts: tuple[str, ...]
    session_of: Mapping[str, Any]
    by_payer: bool

    @property
    def least_requests(self) -> int:
        """The Cost Explorer requests that it takes, if each answer has one page."""
        if len(self.accounts) == 1:
            return 1
        return 2 if self.by_payer else len(self.accounts)

    @property
    def usd(self) -> Decimal:
        """What these requests cost."""
        return self.least_requests * USD_PER_REQUEST


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan covers: the days, the regions, and the accounts and regions that have jobs."""

    period: Period
    regions: Collection[str]
    places: Collection[tuple[str, str]]


@dataclass
class Billed:
    """The usage that was read, and what it took. `refused` has the accounts without an answer."""

    lines: list[AwsLine] = field(default_factory=list)
    by_account: dict[str, Decimal] = field(default_factory=dict)
    refused: dict[str, SageauditError] = field(default_factory=dict)
    requests: int = 0


def of_one(session: Any, region: str) -> BilledAccounts:
    """The bill of the session's own account. Raises AwsError, or BadUsage as `of_several`."""
    _check(region)
    own = identity(session, region).account
    return BilledAccounts(own, (own,), {own: session}, by_payer=False)


def of_several(several: ScannedAccounts, region: str) -> BilledAccounts:
    """The bills of the accounts that could be opened, by whoever may read them.

    Raises BadUsage where Cost Explorer has no endpoint.
    """
    _check(region)
    own, sessions = several.listed.own.account, several.sessions
    payer = organization.payer(client(sessions[own], "organizations", region))
    names = several.listed.names
    seen = names if payer == own else [account for account in names if account in sessions]
    return BilledAccounts(own, tuple(seen), sessions, by_payer=payer == own)


def _check(region: str) -> None:
    if partition_of(region) not in {"aws", "aws-cn"}:
        raise BadUsage(f"--coverage: Cost Explorer cannot be asked about {region}; leave it out")


def read(asked: BilledAccounts, period: Period, region: str) -> Billed:
    """The bill of all accounts; of those that refuse, the error."""
    billed = Billed()
    endpoint = _CHINA if partition_of(region) == "aws-cn" else REGION
    whole = asked.by_payer or asked.accounts == (asked.own,)
    groups = [asked.accounts] if whole else [(account,) for account in asked.accounts]
    for accounts in groups:
        session = asked.session_of[asked.own if whole else accounts[0]]
        explorer = CostExplorer(client(session, "ce", endpoint, CONFIG))
        try:
            _read(explorer, accounts, period, billed)
        except (AwsError, Malformed) as error:
            billed.refused |= dict.fromkeys(accounts, error)
        billed.requests += explorer.requests
    return billed


def _read(explorer: CostExplorer, accounts: Sequence[str], period: Period, billed: Billed) -> None:
    spend = explorer.usage(accounts, period.since, period.until)
    if len(accounts) > 1:
        of_account = explorer.by_account(accounts, period.since, period.until)
        billed.by_account |= {account: of_account.get(account, Decimal(0)) for account in accounts}
    else:
        billed.by_account[accounts[0]] = sum((line.usd for line in spend.lines), Decimal(0))
    billed.lines += spend.lines


@dataclass(frozen=True, slots=True)
class Covered:
    """The bill beside the audits; None where no bill could be read."""

    coverage: Coverage | None
    requests: int


def covered(
    billed: Billed,
    history: History,
    scanned: Scanned,
    accounts: Sequence[str],
    audited_usd: Decimal,
) -> Covered:
    """The bill beside the audits of the scanned accounts and regions.

    Accounts whose bill is not known are left out on both sides, but in `accounts`.
    """
    if not billed.by_account:
        return Covered(None, billed.requests)
    period, places = scanned.period, scanned.places
    of_account = {account: Decimal(0) for account in accounts}
    for account, region in sorted(places):
        rows = history.sums(
            Scope.ACCOUNT, period.since, period.until, account=account, region=region
        )
        for name, sums in grouped(rows, lambda row: row.account).items():
            of_account[name] = of_account.get(name, Decimal(0)) + sums.total_usd
    known = [account for account in accounts if account in billed.by_account]
    unknown_usd = sum((usd for name, usd in of_account.items() if name not in known), Decimal(0))
    found = coverage(
        AwsSpend(tuple(billed.lines)),
        audited_lines(history, {place for place in places if place[0] in known}, period),
        days=(period.since, period.until),
        audited_usd=audited_usd - unknown_usd,
        regions=scanned.regions,
        accounts={name: (billed.by_account.get(name), usd) for name, usd in of_account.items()},
    )
    return Covered(found, billed.requests)


def audited_lines(
    history: History, places: Collection[tuple[str, str]], period: Period
) -> Iterator[AuditedLine]:
    """The bill lines of the audits of jobs that ended in the period, roll-ups left out."""
    for account in sorted({account for account, _ in places}):
        for head in heads_of_period(history, period, account):
            if head.rollup or (account, head.region) not in places:
                continue
            document = history.audit(head.key, head.version)
            if document is not None:
                yield from lines_of(document, None)
