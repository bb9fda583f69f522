"""`sageaudit replay`: which findings another policy would change in stored runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from sageaudit.adapters.files import policy_file
from sageaudit.cli import options
from sageaudit.cli.support.history import asking, stored_runs
from sageaudit.cli.support.history.asking import HistoryOptions
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.policy_diff import FindingMove, RuleMoves, by_rule, moves
from sageaudit.domain.audit.record import Head
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.terminal.layout import line, plain_table
from sageaudit.output.text.money import signed
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted
from sageaudit.ports import History
from sageaudit.queries.lists import heads_of_period
from sageaudit.queries.window import DAY_FORMS, DETAILS, window_of_days
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job

_JOBS_SHOWN, _NAME = 10, 34
_EPILOG = """\b
Examples:
  sageaudit replay --policy new.toml --since 30d
  sageaudit replay --policy new.toml --table sageaudit-history
  sageaudit replay --policy new.toml --against policy.toml --recording a.json --recording b.json"""


@click.command(epilog=_EPILOG)
@click.option(
    "--policy", "new", type=click.Path(path_type=Path), required=True, help="The policy to try."
)
@click.option(
    "--against",
    "old",
    type=click.Path(path_type=Path),
    help="The policy to compare with; by default the policy of a new installation.",
)
@asking.since(forms=DAY_FORMS)
@asking.WHERE
@options.RECORDINGS_FOR_TABLE
@options.PRINTED
def replay(
    new: Path,
    old: Path | None,
    since: str,
    where: HistoryOptions,
    recordings: tuple[Path, ...],
    printed: options.Printed,
) -> None:
    """Shows which findings another policy adds or removes.

    Each stored run is judged again under both policies, at the same packaged prices; the
    difference is shown in dollars. Floors of messages are ignored. Reads only.
    """
    if recordings and (where.history or where.table):
        raise BadUsage("give the runs to judge: either --recording, or a history")
    policies = (policy_file.load(old) if old else Policy()), policy_file.load(new)
    if recordings:
        result = run(*stored_runs.history_of_recordings(recordings), policies)
    else:
        now = asking.now()
        period = window_of_days(since, None, now, DETAILS).period(now.date())
        with where.open() as source:
            heads = heads_of_period(source.history, period)
            result = run(source.history, heads, policies)
    if not result.runs and not result.not_kept:
        raise JobNotFound("no run was found to judge again")
    printed.show(result, _show, _document)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The differences, and the numbers of runs that were compared or could not be.

    `not_judged`: runs whose waste no rule could judge under the new policy, for lack of metrics.
    """

    moves: tuple[FindingMove, ...]
    runs: int
    not_kept: int
    rollups: int
    not_judged: int


def run(history: History, heads: Iterable[Head], policies: tuple[Policy, Policy]) -> Replayed:
    """Audits every run under both policies and returns the differences in findings."""
    differences: list[FindingMove] = []
    runs = not_kept = rollups = not_judged = 0
    for head in heads:
        if head.rollup:
            rollups += 1
            continue
        kept = None if head.unauditable else stored_runs.run_of_head(history, head)
        if kept is None:
            not_kept += 1
            continue
        runs += 1
        before, after = (_audit(kept, policy) for policy in policies)
        differences.extend(moves(before, after))
        not_judged += after["judged"] == Judged.NO
    return Replayed(tuple(differences), runs, not_kept, rollups, not_judged)


def _audit(kept: stored_runs.FamilyRun, policy: Policy) -> AuditDocument:
    run = kept.run
    audit = audit_job(
        run.job,
        run.usage,
        run.market,
        policy,
        catalogue.ruleset(),
        now=run.now,
        earlier=kept.earlier,
        pool=kept.pool,
    )
    return document(audit)


def _document(result: Replayed) -> dict[str, object]:
    """What --output json prints; keys are always present and never removed."""
    return {
        "schema": 1,
        "runs": result.runs,
        "not_kept": result.not_kept,
        "tuning_jobs_left_out": result.rollups,
        "not_judged": result.not_judged,
        "rules": [asdict(rule) for rule in by_rule(result.moves)],
        "findings": [{**asdict(move), "move": move.move.value} for move in result.moves],
    }


def _show(result: Replayed, console: Console) -> None:
    """Prints the totals, then the differences by rule and by job."""
    moved = sum((move.moved_usd for move in result.moves), Decimal(0))
    possible = sum((move.possible_usd for move in result.moves), Decimal(0))
    estimated = any(move.estimated for move in result.moves)
    runs, differences = counted(result.runs, "run"), counted(len(result.moves), "difference")
    line(
        console,
        f"{runs} judged under both policies: {differences}, "
        f"{signed(moved, estimated=estimated)} avoidable or lost, "
        f"{signed(possible, estimated=estimated)} possible.",
    )
    if result.not_kept:
        expired = counted(result.not_kept, "run")
        line(console, f"Not judged, as their details have expired: {expired}.", "dim")
    if result.rollups:
        jobs = counted(result.rollups, "tuning job")
        line(console, f"Not judged, only their training jobs: {jobs}.", "dim")
    if result.not_judged:
        unjudged = counted(result.not_judged, "run")
        line(console, f"What was avoidable could not be judged in {unjudged}.", "yellow")
    if result.moves:
        console.print(_rules(result.moves))
        console.print(_jobs(result.moves))
    if len(result.moves) > _JOBS_SHOWN:
        more = len(result.moves) - _JOBS_SHOWN
        line(console, f"+{more} more: --output json shows all", "dim")


def _rules(moved: tuple[FindingMove, ...]) -> Table:
    counts = ("Appears", "Vanishes", "Changes")
    money = _money_columns(moved)
    table = plain_table("Rule", *counts, *money, right=(*counts, *money), unbroken=("Rule",))
    for rule in by_rule(moved):
        cells = (str(count or "") for count in (rule.appears, rule.vanishes, rule.changes))
        table.add_row(rule.rule, *cells, *_dollars(rule)[: len(money)])
    return table


def _jobs(moved: tuple[FindingMove, ...]) -> Table:
    money = _money_columns(moved)
    table = plain_table("Job", "Rule", "Move", *money, right=money, unbroken=("Rule",))
    dearest = sorted(moved, key=lambda move: (-abs(move.moved_usd), -abs(move.possible_usd)))
    for move in dearest[:_JOBS_SHOWN]:
        name = middle(terminal(move.job.rsplit("/", 1)[-1]), _NAME)
        change = f"{move.move.value} ({move.why})" if move.why else move.move.value
        table.add_row(name, move.rule, change, *_dollars(move)[: len(money)])
    return table


def _money_columns(moved: tuple[FindingMove, ...]) -> tuple[str, ...]:
    """The money columns; "Possible" only if a difference has possible dollars."""
    return ("USD moved", "Possible")[: 2 if any(move.possible_usd for move in moved) else 1]


def _dollars(row: FindingMove | RuleMoves) -> tuple[str, str]:
    possible = signed(row.possible_usd, estimated=row.estimated) if row.possible_usd else ""
    return signed(row.moved_usd, estimated=row.estimated), possible
