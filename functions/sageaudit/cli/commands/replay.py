"""`sageaudit replay`: which findings another policy would change in stored runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from sageaudit.adapters.files import policy_file
from sageaudit.cli import options
from sageaudit.cli.exits import Exit
from sageaudit.cli.messages import echo_json
from sageaudit.cli.support.history import histories, periods, stored
from sageaudit.cli.support.history.heads import heads_of_days
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.policy_diff import FindingMove, moves
from sageaudit.domain.audit.record import Head
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.terminal import replay as view
from sageaudit.output.terminal.layout import console_for
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_job

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
@options.SINCE
@options.HISTORY
@options.TABLE
@options.RECORDINGS_FOR_TABLE
@options.TABLE_REGION
@options.PROFILE
@options.OUTPUT
@options.NO_COLOR
def replay(
    new: Path,
    old: Path | None,
    since: str,
    history: Path | None,
    table: str | None,
    recordings: tuple[Path, ...],
    region: str | None,
    profile: str | None,
    output: str,
    no_color: bool,
) -> int:
    """Shows which findings another policy adds or removes.

    Each stored run is judged again under both policies, at the same packaged prices; the
    difference is shown in dollars. Floors of messages are ignored. Reads only.
    """
    if recordings and (history or table):
        raise BadUsage("give the runs to judge: either --recording, or a history")
    policies = (policy_file.load(old) if old else Policy()), policy_file.load(new)
    if recordings:
        result = run(*stored.history_of_recordings(recordings), policies)
    else:
        days, today = periods.days_of(since), datetime.now(UTC).date()
        since_day = today - timedelta(days=days)
        with histories.open_history(history, table, profile, region) as source:
            heads = heads_of_days(source.history, since_day, today)
            result = run(source.history, heads, policies)
    if not result.runs and not result.not_kept:
        raise JobNotFound("no run was found to judge again")
    if output == "json":
        echo_json(view.document(result))
    else:
        view.show(result, console_for(no_color=no_color))
    return int(Exit.DONE)


def run(history: History, heads: Iterable[Head], policies: tuple[Policy, Policy]) -> view.Replayed:
    """Audits every run under both policies and returns the differences in findings."""
    differences: list[FindingMove] = []
    runs = not_kept = rollups = not_judged = 0
    for head in heads:
        if head.rollup:
            rollups += 1
            continue
        kept = None if head.unauditable else stored.run_of_head(history, head)
        if kept is None:
            not_kept += 1
            continue
        runs += 1
        before, after = (_audit(kept, policy) for policy in policies)
        differences.extend(moves(before, after))
        not_judged += after["judged"] == Judged.NO
    return view.Replayed(tuple(differences), runs, not_kept, rollups, not_judged)


def _audit(kept: stored.FamilyRun, policy: Policy) -> AuditDocument:
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
