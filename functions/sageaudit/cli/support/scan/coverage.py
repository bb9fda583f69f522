"""The SageMaker bill beside the audits of a scan: as Cost Explorer has it, and as it is shown."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from rich.console import Console

from sageaudit.adapters.aws import organization
from sageaudit.adapters.aws.accounts import Accounts
from sageaudit.adapters.billing.cost_explorer import REGION, USD_PER_REQUEST, CostExplorer
from sageaudit.cli.exits import Exit, exit_of
from sageaudit.cli.messages import say
from sageaudit.cli.support.account.accounts import identity
from sageaudit.cli.support.scan.scanned_accounts import ScannedAccounts
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.listed import Period
from sageaudit.domain.job.ref import partition_of
from sageaudit.domain.reconcile.audited_lines import AuditedLine, lines_of
from sageaudit.domain.reconcile.coverage import Coverage, coverage
from sageaudit.domain.reconcile.spend import AwsLine
from sageaudit.errors import AwsError, BadUsage, Malformed
from sageaudit.output.terminal.layout import line, plain_table
from sageaudit.output.text.headline import coverage_headline
from sageaudit.output.text.money import Figure, usd
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted
from sageaudit.ports import History
from sageaudit.queries.lists import heads_of_period
from sageaudit.workflows.audit.whole_audit import whole_audit

_CHINA = "cn-northwest-1"


@dataclass(frozen=True, slots=True)
class BilledAccounts:
    """Whose bill is read. `clients` are those of each account.

    `by_payer`: the own account sees them all, as it pays for them.
    """

    own: str
    accounts: tuple[str, ...]
    clients: Accounts
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

    @property
    def groups(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each account that is asked, with those that it is asked about."""
        if self.by_payer or self.accounts == (self.own,):
            yield self.own, self.accounts
        else:
            yield from ((account, (account,)) for account in self.accounts)


def of_one(session: Any, region: str) -> BilledAccounts:
    """The bill of the session's own account. Raises AwsError, or BadUsage as `of_several`."""
    _check(region)
    own = identity(session, region).account
    return BilledAccounts(own, (own,), Accounts(session, own, {}, time.time), by_payer=False)


def of_several(several: ScannedAccounts, region: str) -> BilledAccounts:
    """The bills of the accounts that could be opened, by whoever may read them.

    Raises BadUsage where Cost Explorer has no endpoint.
    """
    _check(region)
    own, clients = several.listed.own.account, several.clients
    payer = organization.payer(clients.of("organizations")(own, region))
    names = several.listed.names
    seen = names if payer == own else [account for account in names if account in several.opened]
    return BilledAccounts(own, tuple(seen), clients, by_payer=payer == own)


def _check(region: str) -> None:
    if partition_of(region) not in {"aws", "aws-cn"}:
        raise BadUsage(f"--coverage: Cost Explorer cannot be asked about {region}; leave it out")


@dataclass(frozen=True, slots=True)
class Covered:
    """The bill beside the audits; None where no bill could be read. `codes`: of refusals."""

    coverage: Coverage | None = None
    requests: int = 0
    codes: frozenset[Exit] = frozenset()


def read(
    asked: BilledAccounts,
    history: History,
    places: Collection[tuple[str, str]],
    regions: Sequence[str],
    period: Period,
) -> Covered:
    """Reads the bill and puts it beside the audits of these accounts and regions.

    `regions` has at least one. An account that refuses is said; it is left out on both sides, but
    not in the list of accounts.
    """
    requests = 0
    lines: list[AwsLine] = []
    bills: dict[str, Decimal] = {}
    codes: set[Exit] = set()
    endpoint = _CHINA if partition_of(regions[0]) == "aws-cn" else REGION
    for asker, accounts in asked.groups:
        explorer = CostExplorer(asked.clients.of("ce")(asker, endpoint))
        try:
            found, by_account = _of_accounts(explorer, accounts, period)
            lines += found
            bills |= by_account
        except (AwsError, Malformed) as error:
            for account in accounts:
                say(f"the SageMaker bill of {account} is not known: {error}")
            codes.add(exit_of(error))
        requests += explorer.requests
    if not bills:
        return Covered(None, requests, frozenset(codes))
    audited = dict.fromkeys(asked.accounts, Decimal(0))
    for row in history.sums(Scope.ACCOUNT, period.since, period.until):
        if (row.account, row.region) in places:
            audited[row.account] = audited.get(row.account, Decimal(0)) + row.sums.total_usd
    billed_places = {place for place in places if place[0] in bills}
    known = coverage(
        lines,
        audited_lines(history, billed_places, period),
        days=(period.since, period.until),
        audited_usd=sum((audited[name] for name in audited if name in bills), Decimal(0)),
        regions=regions,
        accounts={name: (bills.get(name), usd) for name, usd in audited.items()},
    )
    return Covered(known, requests, frozenset(codes))


def _of_accounts(
    explorer: CostExplorer, accounts: Sequence[str], period: Period
) -> tuple[Sequence[AwsLine], dict[str, Decimal]]:
    """The usage of these accounts together, and the dollars of each."""
    lines = explorer.usage(accounts, period.since, period.until)
    if len(accounts) == 1:
        return lines, {accounts[0]: sum((one.usd for one in lines), Decimal(0))}
    of_account = explorer.by_account(accounts, period.since, period.until)
    return lines, {account: of_account.get(account, Decimal(0)) for account in accounts}


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


_SHOWN = 10
_NAME = 44
_WHOLE = 100
_NOTE = (
    "Bill: Cost Explorer's unblended cost of usage, before credits, Savings Plans and taxes;"
    " it may be 24 hours late. Audited: list prices of the jobs that ended in these days."
)


def cost_line(asked: BilledAccounts) -> str:
    """What reading the bill costs, before it is read."""
    requests = counted(asked.least_requests, "Cost Explorer request")
    return f"--coverage takes {requests} or more at ${USD_PER_REQUEST} each: about {usd(asked.usd)}"


def document(found: Covered) -> dict[str, Any] | None:
    """The coverage as JSON; None where no bill was read."""
    covered = found.coverage
    if covered is None:
        return None
    return {
        "since": covered.since.isoformat(),
        "until": covered.until.isoformat(),
        "bill_usd": covered.bill_usd,
        "audited_usd": covered.audited_usd,
        "audited_percent": covered.percent,
        "jobs": [asdict(row) for row in covered.jobs],
        "outside": [asdict(row) for row in covered.outside],
        "accounts": [asdict(row) for row in covered.accounts],
        "requests": found.requests,
        "requests_usd": found.requests * USD_PER_REQUEST,
    }


def show(found: Covered, console: Console) -> None:
    """Prints the headline, then what is audited and what is outside, by usage type."""
    covered = found.coverage
    if covered is None:
        return
    line(console, coverage_headline(covered), "bold")
    if covered.percent is not None and covered.percent > _WHOLE:
        line(
            console,
            "More than the bill: its last day is not complete, or the dollars of jobs that began"
            " before these days are in the bill of earlier days.",
        )
    if covered.jobs or covered.outside:
        _show_table("Usage", list(_rows(covered)), console)
    if len(covered.accounts) > 1:
        console.print()
        ranked = sorted(covered.accounts, key=lambda one: (-(one.bill_usd or 0), one.account))
        rows = [
            (row.account, str(Figure(row.bill_usd, absent="not known")), usd(row.audited_usd))
            for row in ranked
        ]
        _show_table("Account", rows, console)
    line(console, _NOTE, "dim")
    console.print()


def _show_table(title: str, rows: Sequence[tuple[str, str, str]], console: Console) -> None:
    money = ("Bill", "Audited")
    table = plain_table(title, *money, right=money, unbroken=money)
    for name, *amounts in rows:
        table.add_row(middle(terminal(name), _NAME), *amounts)
    console.print(table)


def _rows(covered: Coverage) -> Iterator[tuple[str, str, str]]:
    for row in covered.jobs[:_SHOWN]:
        yield row.usage, usd(row.bill_usd), usd(row.audited_usd)
    rest = covered.jobs[_SHOWN:]
    if rest:
        bill = sum((row.bill_usd for row in rest), Decimal(0))
        audited = sum((row.audited_usd for row in rest), Decimal(0))
        yield f"{counted(len(rest), 'usage type')} of jobs more", usd(bill), usd(audited)
    for outside in covered.outside[:_SHOWN]:
        yield outside.name, usd(outside.usd), "not audited"
    left = covered.outside[_SHOWN:]
    if left:
        amount = sum((row.usd for row in left), Decimal(0))
        yield f"{counted(len(left), 'usage type')} more", usd(amount), "not audited"
