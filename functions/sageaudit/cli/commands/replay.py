"""`sageaudit replay`: what another policy would have said of the runs of the last days."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.auditing import audit_job
from sageaudit.cli import options
from sageaudit.cli.exits import Exit
from sageaudit.cli.sources import stored
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.policy_diff import FindingMove, RuleMoves, by_rule, moves
from sageaudit.domain.audit.record import Head
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.text.money import usd
from sageaudit.text.untrusted import middle, terminal
from sageaudit.text.words import counted

_JOBS_SHOWN = 10
_NAME = 34
_EPILOG = """\b
Examples:
  sageaudit replay --policy new.toml --since 30d --table sageaudit-history
  sageaudit replay --policy new.toml --against policy.toml --recording a.json --recording b.json"""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What differs, and how many runs were looked at or could not be."""

    moves: tuple[FindingMove, ...]
    runs: int
    not_kept: int
    rollups: int


@click.command(epilog=_EPILOG)
@click.option(
    "--policy", "new", type=click.Path(path_type=Path), required=True, help="The policy to try."
)
@click.option(
    "--against",
    "old",
    type=click.Path(path_type=Path),
    help="The policy to compare with; by default that of a fresh install.",
)
@options.SINCE
@options.TABLE
@click.option(
    "--recording",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Recorded jobs instead of the history; --since plays no part.",
)
@options.TABLE_REGION
@options.PROFILE
@options.OUTPUT
@options.NO_COLOR
def replay(
    new: Path,
    old: Path | None,
    since: str,
    table: str | None,
    recordings: tuple[Path, ...],
    region: str | None,
    profile: str | None,
    output: str,
    no_color: bool,
) -> int:
    """Which findings another policy adds and removes, and the dollars that move.

    Judges the runs that are kept again under both policies, at the same packaged prices. Reads
    only; messages, floors and cool-downs play no part.
    """
    if bool(table) == bool(recordings):
        raise BadUsage("say where the runs are: --table, or --recording")
    policies = (policy_file.load(old) if old else Policy()), policy_file.load(new)
    if table:
        days, today = stored.days_of(since), datetime.now(UTC).date()
        history = stored.of_table(table, profile, region)
        done = run(history, stored.heads(history, today - timedelta(days=days), today), policies)
    else:
        done = run(*stored.of_recordings(recordings), policies)
    if not done.runs and not done.not_kept:
        raise JobNotFound("there is no run to judge again")
    if output == "json":
        click.echo(to_json(_document(done)))
    else:
        _render(done, Console(no_color=no_color or None))
    return int(Exit.DONE)


def run(history: History, heads: Iterable[Head], policies: tuple[Policy, Policy]) -> Replayed:
    """Judges every run under both policies."""
    found: list[FindingMove] = []
    runs = not_kept = rollups = 0
    for head in heads:
        if head.rollup:
            rollups += 1
            continue
        kept = None if head.unauditable else stored.stored(history, head)
        if kept is None:
            not_kept += 1
            continue
        runs += 1
        before, after = (_judged(kept, policy) for policy in policies)
        found.extend(moves(before, after))
    return Replayed(tuple(found), runs, not_kept, rollups)


def _judged(kept: stored.Stored, policy: Policy) -> AuditDocument:
    run = kept.run
    audit = audit_job(
        run.job,
        run.usage,
        run.market,
        policy,
        catalogue.ruleset(),
        now=run.now,
        earlier=kept.earlier,
    )
    return document(audit)


def _document(done: Replayed) -> dict[str, object]:
    return {
        "runs": done.runs,
        "not_kept": done.not_kept,
        "tuning_jobs_left_out": done.rollups,
        "rules": [asdict(one) for one in by_rule(done.moves)],
        "findings": [{**asdict(one), "move": one.move.value} for one in done.moves],
    }


def _render(done: Replayed, console: Console) -> None:
    moved = sum((one.moved_usd for one in done.moves), Decimal(0))
    possible = sum((one.possible_usd for one in done.moves), Decimal(0))
    console.print(
        f"{counted(done.runs, 'run')} judged under both policies: "
        f"{counted(len(done.moves), 'difference')}, "
        f"{_signed(moved)} avoidable or lost, {_signed(possible)} possible.",
        highlight=False,
    )
    if done.not_kept:
        console.print(Text(f"No longer kept in full: {counted(done.not_kept, 'run')}.", "dim"))
    if done.rollups:
        console.print(
            Text(
                f"Judged by their training jobs only: {counted(done.rollups, 'tuning job')}.", "dim"
            )
        )
    if not done.moves:
        return
    money = (
        ("USD moved", "Possible") if any(one.possible_usd for one in done.moves) else ("USD moved",)
    )
    rules = _table("Rule", "Appears", "Vanishes", "Changes", *money)
    for row in by_rule(done.moves):
        numbers = (row.appears, row.vanishes, row.changes)
        rules.add_row(row.rule, *(str(n or "") for n in numbers), *_dollars(row)[: len(money)])
    console.print(rules)
    jobs = _table("Job", "Rule", "Move", *money)
    dearest = sorted(done.moves, key=lambda one: (-abs(one.moved_usd), -abs(one.possible_usd)))
    for one in dearest[:_JOBS_SHOWN]:
        name = middle(terminal(one.job.rsplit("/", 1)[-1]), _NAME)
        what = f"{one.move.value} ({one.why})" if one.why else one.move.value
        jobs.add_row(name, one.rule, what, *_dollars(one)[: len(money)])
    console.print(jobs)
    if len(dearest) > _JOBS_SHOWN:
        console.print(Text(f"+{len(dearest) - _JOBS_SHOWN} more: --output json has all", "dim"))


def _table(*words: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for word in words:
        right = word in {"Appears", "Vanishes", "Changes", "USD moved", "Possible"}
        side: Literal["left", "right"] = "right" if right else "left"
        table.add_column(word, justify=side, overflow="fold", no_wrap=word == "Rule")
    return table


def _dollars(row: FindingMove | RuleMoves) -> tuple[str, str]:
    return _signed(row.moved_usd), _signed(row.possible_usd) if row.possible_usd else ""


def _signed(amount: Decimal) -> str:
    return f"+{usd(amount)}" if amount > 0 else usd(amount)
