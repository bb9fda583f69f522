"""`sageaudit report`: one page about a job or an account, to open, send and keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sageaudit import __version__
from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.files import recording
from sageaudit.adapters.files.local_files import whole_file
from sageaudit.adapters.prices import packaged
from sageaudit.cli import asking, options
from sageaudit.cli.asking import HistoryOptions
from sageaudit.cli.messages import say
from sageaudit.cli.views.formats import with_progress
from sageaudit.cli.views.scan import cost_line
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.run_summary import summary_of_run
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.guides.guides import chosen
from sageaudit.domain.guides.traits import of_audit
from sageaudit.domain.job.failure import reason_class
from sageaudit.domain.job.listed import Period
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage, JobNotFound
from sageaudit.exits import Exit, exit_of
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.output.html.job import job_body, job_title
from sageaudit.output.html.job_table import job_words
from sageaudit.output.html.markup import Child
from sageaudit.output.html.page import page
from sageaudit.ports import History
from sageaudit.queries.names import Wanted, find, other_days
from sageaudit.queries.window import DAY_FORMS, ONE_DAY, Window, window_of, window_of_days
from sageaudit.structs import replace
from sageaudit.workflows import report as report_contents
from sageaudit.workflows.audit.guides import read_guides
from sageaudit.workflows.recordings.jobs import run_of
from sageaudit.workflows.recordings.run import audit_recording
from sageaudit.workflows.scan import coverage as billed

_STDOUT = "-"
_OF_A_HISTORY = ("job", "since", "until", "account", "coverage", "history", "table", "table_region")
_KIB = 1024
_EPILOG = """\b
Examples:
  sageaudit report -o report.html
  sageaudit report my-training-job -o job.html
  sageaudit report --since 2026-10-01 --until 2026-10-31 --account 111122223333
  sageaudit report --recording job.json -o -"""


@click.command(epilog=_EPILOG)
@click.argument("job", required=False, metavar="[ARN|NAME]")
@options.RECORDING
@asking.since(forms=DAY_FORMS)
@asking.UNTIL
@asking.ACCOUNT
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="report.html",
    show_default=True,
    help="File to write, or - for stdout.",
)
@click.option(
    "--coverage",
    is_flag=True,
    help="Also say how much of the account's SageMaker bill these jobs are: a Cost Explorer request"
    " of $0.01 or more.",
)
@asking.WHERE
@options.POLICY
@click.pass_context
def report(
    context: click.Context,
    job: str | None,
    path: Path | None,
    since: str,
    until: str | None,
    account: str | None,
    output: str,
    coverage: bool,
    where: HistoryOptions,
    policy: Policy,
) -> Exit:
    """Writes a page about one job, or about all jobs of some days.

    The page is one file that loads nothing and sends nothing: open it, send it, keep it. It is
    written from a history, or from the --recording of one job; AWS is asked nothing else, but for
    --coverage.
    """
    named = [_written(name) for name in _OF_A_HISTORY if _given(context, name)]
    if path and named:
        what = ", ".join(named)
        raise BadUsage(f"--recording is all that the report is about: leave out {what}")
    if _given(context, "policy") and not path:
        raise BadUsage("--policy judges a --recording: the audits of a history stay as is")
    if coverage and job:
        raise BadUsage("--coverage is of an account: leave out JOB")
    code = Exit.DONE
    contents: AccountReport | JobReport
    if path:
        contents = recorded_report(path, audit_recording(path, policy))
    else:
        days = window_of_days(since, until, asking.now())
        with where.open() as opened:
            decisions = opened.decisions.decisions()
            contents = _of_history(opened.history, days, job, account, decisions)
            if coverage and isinstance(contents, AccountReport):
                session = opened.session or open_session(where.profile, None)
                covered = _covered(opened.history, session, contents, account)
                if covered.refusal is not None:
                    say(f"the SageMaker bill is not known: {covered.refusal}")
                    code = exit_of(covered.refusal)
                contents = replace(contents, coverage=covered.coverage)
    _write(_page(contents), output, contents)
    return code


def _covered(
    history: History, session: Any, report: AccountReport, account: str | None
) -> billed.Covered:
    """The bill of the session's own account. Raises BadUsage for a report of other ones."""
    rows = history.sums(Scope.ACCOUNT, report.since, report.until, account=account)
    places = {(row.account, row.region) for row in rows}
    regions = sorted({region for _, region in places})
    asked = billed.billed(session, regions[0])
    [own] = asked.accounts
    if {account for account, _ in places} != {own}:
        raise BadUsage(f"--coverage reads the bill of your own account: give --account {own}")
    say(cost_line(asked))
    return billed.read(asked, history, places, regions, Period(report.since, report.until))


def _written(name: str) -> str:
    return "JOB" if name == "job" else f"--{name.replace('_', '-')}"


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def recorded_report(path: Path, document: AuditDocument) -> JobReport:
    """The report of the one job in a recording. Raises BadRecording."""
    recorded = recording.read(path)
    if not isinstance(recorded, recording.Recording):
        return JobReport(document, None)
    run = run_of(recorded)
    own = summary_of_run(run.job, reason=reason_class(run.job), usage=run.usage)
    guides = chosen(of_audit(document, run.job, own, (), run.market.types))
    return JobReport(document, run.usage, guides)


def _source(history: History) -> report_contents.ReportSource:
    return report_contents.ReportSource(history, packaged.types(), with_progress)


def _of_history(
    history: History,
    days: Window,
    job: str | None,
    account: str | None,
    decisions: Sequence[Decision],
) -> AccountReport | JobReport:
    if job is not None:
        return _of_job(history, find(history, Wanted(job, account=account)))
    return _of_days(history, Period(days.first_day, days.last_day), account, decisions)


def _of_days(
    history: History, period: Period, account: str | None, decisions: Sequence[Decision] = ()
) -> AccountReport:
    source = _source(history)
    heads, left_out = report_contents.heads_of(source, period, account)
    if not heads:
        whose = f" of account {account}" if account else ""
        asked = window_of(period.since, period.until + ONE_DAY)
        raise JobNotFound(
            f"the history has no audit{whose} of {period.since} to {period.until}:"
            f" {other_days(history, asked)}"
        )
    today = asking.now().date()
    return report_contents.account_report(
        source, period, account, heads, left_out, today, decisions
    )


def _of_job(history: History, head: AuditSummary) -> JobReport:
    found = report_contents.job_report(_source(history), head)
    if found is None:
        raise JobNotFound(f"the stored audit of {head.job} cannot be read: audit it again")
    return replace(found, guides=read_guides(history, found.document, packaged.types()))


def _page(contents: AccountReport | JobReport) -> Iterator[str]:
    body: Child
    if isinstance(contents, JobReport):
        title, body = job_title(contents.document), job_body(contents)
    else:
        title, body = account_title(contents), account_body(contents)
    return page(title, body, generated_at=asking.now(), version=__version__)


def _write(pieces: Iterator[str], output: str, contents: AccountReport | JobReport) -> None:
    if output == _STDOUT:
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    with whole_file(Path(output)) as beside:
        with beside.open("w", encoding="utf-8", errors="replace", newline="") as file:
            file.writelines(pieces)
        size = f"{max(beside.stat().st_size // _KIB, 1):,} KB"
    about = "1 job"
    if isinstance(contents, AccountReport):
        about = f"{job_words(contents.heads)}, {contents.since} to {contents.until}"
        if contents.left_out:
            about = f"the dearest {about} ({contents.left_out:,} others are in its sums alone)"
    say(f"wrote {output}: {about}, {size}")
