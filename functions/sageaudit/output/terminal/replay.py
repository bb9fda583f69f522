"""A replay, the differences between two policies, on the terminal and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sageaudit.domain.audit.policy_diff import FindingMove, RuleMoves, by_rule
from sageaudit.output.terminal.layout import plain_table
from sageaudit.output.text.money import signed
from sageaudit.output.text.untrusted import middle, terminal
from sageaudit.output.text.words import counted

_JOBS_SHOWN = 10
_NAME = 34
_NUMBERS = ("Appears", "Vanishes", "Changes", "USD moved", "Possible")


@dataclass(frozen=True, slots=True)
class Replayed:
    """The differences, and the numbers of runs that were compared or could not be.

    `not_judged`: runs whose waste no rule could judge under the new policy, for lack of metrics.
    """

    moves: tuple[FindingMove, ...]
    runs: int
    not_kept: int
    rollups: int
    not_judged: int = 0


def document(result: Replayed) -> dict[str, object]:
    """The document that --output json prints; keys are always present and never removed."""
    return {
        "schema": 1,
        "runs": result.runs,
        "not_kept": result.not_kept,
        "tuning_jobs_left_out": result.rollups,
        "not_judged": result.not_judged,
        "rules": [asdict(rule) for rule in by_rule(result.moves)],
        "findings": [{**asdict(move), "move": move.move.value} for move in result.moves],
    }


def show(result: Replayed, console: Console) -> None:
    """Prints the totals, then the differences by rule and by job."""
    moved = sum((move.moved_usd for move in result.moves), Decimal(0))
    possible = sum((move.possible_usd for move in result.moves), Decimal(0))
    estimated = any(move.estimated for move in result.moves)
    console.print(
        f"{counted(result.runs, 'run')} judged under both policies: "
        f"{counted(len(result.moves), 'difference')}, "
        f"{signed(moved, estimated=estimated)} avoidable or lost, "
        f"{signed(possible, estimated=estimated)} possible.",
        highlight=False,
    )
    if result.not_kept:
        runs = counted(result.not_kept, "run")
        console.print(Text(f"Not judged, as their details have expired: {runs}.", "dim"))
    if result.rollups:
        jobs = counted(result.rollups, "tuning job")
        console.print(Text(f"Not judged, only their training jobs: {jobs}.", "dim"))
    if result.not_judged:
        runs = counted(result.not_judged, "run")
        console.print(Text(f"What was avoidable could not be judged in {runs}.", "yellow"))
    if result.moves:
        console.print(_rules(result.moves))
        console.print(_jobs(result.moves))
    if len(result.moves) > _JOBS_SHOWN:
        more = len(result.moves) - _JOBS_SHOWN
        console.print(Text(f"+{more} more: --output json shows all", "dim"))


def _rules(moves: tuple[FindingMove, ...]) -> Table:
    money = _money_columns(moves)
    table = _table("Rule", "Appears", "Vanishes", "Changes", *money)
    for rule in by_rule(moves):
        counts = (rule.appears, rule.vanishes, rule.changes)
        cells = (str(count or "") for count in counts)
        table.add_row(rule.rule, *cells, *_dollars(rule)[: len(money)])
    return table


def _jobs(moves: tuple[FindingMove, ...]) -> Table:
    money = _money_columns(moves)
    table = _table("Job", "Rule", "Move", *money)
    dearest = sorted(moves, key=lambda move: (-abs(move.moved_usd), -abs(move.possible_usd)))
    for move in dearest[:_JOBS_SHOWN]:
        name = middle(terminal(move.job.rsplit("/", 1)[-1]), _NAME)
        change = f"{move.move.value} ({move.why})" if move.why else move.move.value
        table.add_row(name, move.rule, change, *_dollars(move)[: len(money)])
    return table


def _money_columns(moves: tuple[FindingMove, ...]) -> tuple[str, ...]:
    """The money columns; "Possible" only if a difference has possible dollars."""
    return ("USD moved", "Possible") if any(m.possible_usd for m in moves) else ("USD moved",)


def _table(*columns: str) -> Table:
    return plain_table(*columns, right=_NUMBERS, unbroken=("Rule",))


def _dollars(row: FindingMove | RuleMoves) -> tuple[str, str]:
    moved, possible = (
        signed(amount, estimated=row.estimated) for amount in (row.moved_usd, row.possible_usd)
    )
    return moved, possible if row.possible_usd else ""
