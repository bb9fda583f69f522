"""`sageaudit account`: findings that need all runs of an account."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from sageaudit.adapters.files import policy_file
from sageaudit.cli import options
from sageaudit.cli.exits import Exit
from sageaudit.cli.messages import echo_json
from sageaudit.cli.support.account import view
from sageaudit.cli.support.history import asking, stored_runs
from sageaudit.cli.support.history.asking import HistoryOptions
from sageaudit.domain.audit.record import NOT_NAMED, Head, earlier_run
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.output.terminal.layout import console_for
from sageaudit.queries.lists import heads_of_period
from sageaudit.queries.window import DAY_FORMS, DETAILS, window_of_days
from sageaudit.rules import catalogue
from sageaudit.workflows.audit.judge import audit_account

_EPILOG = """\b
Examples:
  sageaudit account 111122223333 --since 30d
  sageaudit account 111122223333 --table sageaudit-history
  sageaudit account unknown --recording a.json --recording b.json"""


@click.command(epilog=_EPILOG)
@click.argument("account")
@asking.since(forms=DAY_FORMS)
@asking.WHERE
@options.RECORDINGS_FOR_TABLE
@options.POLICY
@options.OUTPUT
@options.NO_COLOR
def account(
    account: str,
    since: str,
    where: HistoryOptions,
    recordings: tuple[Path, ...],
    policy_path: Path | None,
    output: str,
    no_color: bool,
) -> int:
    """Audits all runs of an account together.

    Finds runs without an owner, and instance hours steady enough for a Savings Plan (needs
    [commitment] in the policy). ACCOUNT has 12 digits, or is `unknown` for recordings that name no
    account. Reads only.
    """
    if recordings and (where.history or where.table):
        raise BadUsage("give the runs to judge: either --recording, or a history")
    policy = policy_file.load(policy_path) if policy_path else Policy()
    now = asking.now()
    period = window_of_days(since, None, now, DETAILS).period(now.date())
    days = max((period.until - period.since).days, 1)
    if recordings:
        heads = _recorded(recordings)
    else:
        asked = account if account == NOT_NAMED else options.account_id(account, "ACCOUNT")
        with where.open() as source:
            heads = list(heads_of_period(source.history, period, asked))
    accounts = {head.account for head in heads}
    heads = [head for head in heads if head.account == account]
    runs = [run for head in heads if (run := earlier_run(head))]
    if not runs:
        others = ", ".join(sorted(accounts - {account}))
        instead = f"; there are runs of {others}" if others else ""
        raise JobNotFound(f"no audited run of account {account} was found{instead}")
    if recordings:
        days = max((runs[0].ended_at - runs[-1].ended_at).days + 1, 1)
    audit = audit_account(runs, days, policy.for_job(account, "", {}), catalogue.ruleset())
    judged = Counter(run.judged for run in runs)
    audited = view.AuditedAccount(
        account,
        days,
        len(runs),
        audit,
        judged,
        estimated=sum(run.estimated for run in runs),
        incomplete=sum(bool(head.incomplete) and earlier_run(head) is not None for head in heads),
    )
    if output == "json":
        echo_json(view.document(audited))
    else:
        view.show(audited, console_for(no_color=no_color))
    return int(Exit.DONE)


def _recorded(recordings: tuple[Path, ...]) -> list[Head]:
    _, heads = stored_runs.history_of_recordings(recordings)
    return sorted(heads, key=lambda head: head.ended_at, reverse=True)
