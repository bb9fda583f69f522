"""`sageaudit replay`: which findings another policy would change in stored runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from sageaudit.adapters.files import policy_file
from sageaudit.cli import options
from sageaudit.cli.exits import Exit
from sageaudit.cli.messages import echo_json
from sageaudit.cli.support.history import asking, stored_runs
from sageaudit.cli.support.history.asking import HistoryOptions
from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.policy_diff import FindingMove, moves
from sageaudit.domain.audit.record import Head
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.terminal import replay as view
from sageaudit.output.terminal.layout import console_for
from sageaudit.ports import History
from sageaudit.queries.lists import heads_of_period
from sageaudit.queries.window import DAY_FORMS, DETAILS, window_of_days
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
@asking.since(forms=DAY_FORMS)
@asking.WHERE
@options.RECORDINGS_FOR_TABLE
@options.OUTPUT
@options.NO_COLOR
def replay(
    new: Path,
    old: Path | None,
    since: str,
    where: HistoryOptions,
    recordings: tuple[Path, ...],
    output: str,
    no_color: bool,
) -> int:
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
        kept = None if head.unauditable else stored_runs.run_of_head(history, head)
        if kept is None:
            not_kept += 1
            continue
        runs += 1
        before, after = (_audit(kept, policy) for policy in policies)
        differences.extend(moves(before, after))
        not_judged += after["judged"] == Judged.NO
    return view.Replayed(tuple(differences), runs, not_kept, rollups, not_judged)


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
