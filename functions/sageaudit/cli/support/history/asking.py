"""What the commands that ask a history share: its place, filters, formats, and how to go on."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click

from sageaudit.cli import options
from sageaudit.cli.messages import say
from sageaudit.cli.support.history import formats, histories
from sageaudit.cli.support.history.formats import Field, ListLayout, Tail
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import BadUsage
from sageaudit.output.terminal.layout import console_for
from sageaudit.output.text.words import counted
from sageaudit.queries.lists import ReadCounts
from sageaudit.queries.question import AMOUNTS, Question, Sort
from sageaudit.queries.window import FORMS, window
from sageaudit.rules import catalogue


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """The history to ask."""

    history: Path | None
    table: str | None
    table_region: str | None
    profile: str | None

    def open(self) -> histories.HistorySource:
        """Opens it; raises what `open_history` does."""
        return histories.open_history(self.history, self.table, self.profile, self.table_region)


WHERE = options.together(
    "where",
    HistoryOptions,
    options.HISTORY,
    options.TABLE,
    click.option(
        "--table-region", help="AWS region of the table; by default that of your AWS settings."
    ),
    options.PROFILE,
)


@dataclass(frozen=True, slots=True)
class Shown:
    """How rows are printed."""

    output: str
    fields: str | None
    no_color: bool

    def of(self, listing: ListLayout) -> tuple[Field, ...]:
        """The fields to print. Raises BadUsage for one that does not exist."""
        return listing.chosen(self.output, self.fields)

    def write(self, rows: Iterable[Any], listing: ListLayout, tail: Tail) -> int:
        """Prints the rows, and returns how many there were."""
        console = console_for(no_color=self.no_color)
        return formats.write(rows, listing, self.of(listing), self.output, console, tail)


OUTPUT = click.option(
    "--output",
    type=click.Choice(formats.FORMATS),
    default="table",
    show_default=True,
    help="Format: table for people, json or jsonl for scripts, csv for spreadsheets, markdown.",
)
SHOWN = options.together(
    "shown",
    Shown,
    OUTPUT,
    click.option(
        "--fields", metavar="A,B,C", help="Fields to print; a name that is not one lists them all."
    ),
    options.NO_COLOR,
)


@dataclass(frozen=True, slots=True)
class Filters:
    """Which audits to show. `since` None: the command has its own default."""

    since: str | None
    until: str | None
    rule: str | None
    family: str | None
    owner: str | None
    account: str | None
    region: str | None
    kind: JobKind | None
    status: str | None
    severity: Severity | None
    min_usd: str | None

    def question(self, now: datetime, sort: Sort = Sort.NEWEST, since: str = "30d") -> Question:
        """The question that they ask; `since`, where they have none. Raises BadUsage."""
        return Question(
            window=window(since if self.since is None else self.since, self.until, now),
            rule=None if self.rule is None else rule_named(self.rule),
            family=self.family,
            owner=self.owner,
            account=self.account,
            region=self.region,
            kind=self.kind,
            status=self.status,
            severity=self.severity,
            min_usd=None if self.min_usd is None else _dollars(self.min_usd),
            sort=sort,
        )


def since(
    default: str | None = "30d", shown: str | None = None, forms: str = FORMS
) -> options.Decorator:
    """--since, with its default; `shown` describes one that the command works out."""
    return click.option(
        "--since",
        default=default,
        show_default=shown or True,
        help=f"Jobs that ended since: {forms}.",
    )


UNTIL = click.option("--until", help="Jobs that ended until then; a date includes its day.")
ACCOUNT = click.option("--account", help="Jobs of this account.")
REGION = click.option("--region", help="Jobs of this AWS region.")


def filters(default_since: str | None = "30d", shown: str | None = None) -> options.Decorator:
    """The filters of a question about audits."""
    return options.together(
        "filters",
        Filters,
        since(default_since, shown),
        UNTIL,
        click.option("--rule", help="Findings of this rule, by name or id."),
        click.option("--family", help="Jobs of this family, as `sageaudit by family` names it."),
        click.option("--owner", help="Jobs of this owner."),
        ACCOUNT,
        REGION,
        click.option("--kind", type=options.EnumChoice(JobKind), help="Kind of job."),
        click.option("--status", help="Completed, Failed or Stopped."),
        click.option(
            "--severity",
            type=options.SEVERITIES,
            help="Jobs with a finding of this severity or a higher one.",
        ),
        click.option(
            "--min-usd", metavar="USD", help="Jobs with as many avoidable and lost dollars."
        ),
    )


def limit(default: int) -> options.Decorator:
    """--limit, with its default."""
    return click.option(
        "--limit", type=options.ROWS, default=default, show_default=True, help="Most rows to print."
    )


ALL = click.option("--all", "every", is_flag=True, help="Print all rows.")
SORT_AMOUNTS = click.option(
    "--sort",
    type=options.EnumChoice(Sort, AMOUNTS),
    default=Sort.WASTE.value,
    show_default=True,
    help="Order by these dollars, the most first; waste is avoidable plus lost.",
)


def now() -> datetime:
    """The time of this computer, in UTC."""
    return datetime.now(UTC)


def rule_named(text: str) -> str:
    """The name of a rule by its name or id; a name that no rule has is taken as it is."""
    asked = text.lower().replace("_", "-")
    names = (rule.name for rule in catalogue.load())
    return next((name.name for name in names if asked in {name.name, name.id.lower()}), asked)


def tail(read: ReadCounts, cursor: str | None = None) -> Tail:
    """What follows the rows in JSON."""
    return lambda: {"cursor": cursor, "read": {"rows": read.rows, "sums": read.sums}}


def say_read(question: Question, read: ReadCounts, shown: int) -> None:
    """Says how many rows were read where a filter or an order has no index."""
    reasons = [f"--{name}" for name in question.without_index]
    if question.sort is not Sort.NEWEST:
        reasons.append("--sort")
    if reasons and read.rows > shown:
        sums = f" and {counted(read.sums, 'daily sum')}" if read.sums else ""
        what = "finding" if question.rule is not None else "audit"
        verb = "has" if len(reasons) == 1 else "have"
        say(
            f"read {counted(read.rows, what)}{sums} to show {shown:,}:"
            f" {' and '.join(reasons)} {verb} no index"
        )


def say_nothing_found(question: Question) -> None:
    """Says that no row fits, and what may be wrong with the question."""
    days = f"{question.window.first_day} to {question.window.last_day}"
    hint = ""
    if question.rule is not None:
        known = [rule.name.name for rule in catalogue.load()]
        if question.rule not in known:
            close = difflib.get_close_matches(question.rule, known, 1)
            perhaps = f"did you mean {close[0]}? " if close else ""
            hint = f"; there is no rule {question.rule}: {perhaps}`sageaudit rules` lists them all"
    elif question.family is not None:
        hint = "; `sageaudit by family` lists the families by name"
    elif question.owner is not None:
        hint = "; `sageaudit by owner` lists the owners by name"
    say(f"no audit of {days} fits{hint or '; an earlier --since shows older ones'}")


def say_rollups() -> None:
    """Says what the amounts of a roll-up are."""
    say("a roll-up's amounts are what a tuning job adds to those of its training jobs")


def say_next(cursor: str | None) -> None:
    """Prints the command that shows the next rows."""
    if cursor is None:
        return
    words, left = [], iter(sys.argv[1:])
    for word in left:
        if word == "--cursor":
            next(left, None)
        elif not word.startswith("--cursor="):
            words.append(word)
    say(f"more rows: {shlex.join(['sageaudit', *words, '--cursor', cursor])}")


def show_some(
    rows: Sequence[Any], every: Sequence[Any], listing: ListLayout, shown: Shown, read: ReadCounts
) -> None:
    """Prints these of the rows, and says how many there are."""
    shown.write(rows, listing, tail(read))
    if len(rows) < len(every):
        say(f"{len(rows):,} of {len(every):,} rows: --all prints all of them")


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise BadUsage(f"--min-usd {text} is not an amount in USD, such as 0.50")
    return amount
