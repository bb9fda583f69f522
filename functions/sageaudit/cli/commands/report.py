"""`sageaudit report`: one page about a job or an account, to open, send and keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.core import ParameterSource

from sageaudit import __version__
from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.files.local_files import atomic_write
from sageaudit.adapters.prices import packaged
from sageaudit.cli import clock, options, query_options, query_output
from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import HistoryChoice
from sageaudit.cli.views import coverage as coverage_view
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import Period
from sageaudit.errors import BadUsage
from sageaudit.exits import Exit
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.contents import AccountReport, JobReport
from sageaudit.output.html.job import job_body, job_title
from sageaudit.output.html.job_table import job_count_text
from sageaudit.output.html.markup import Child
from sageaudit.output.html.page import page
from sageaudit.queries.names import JobQuery, find_job
from sageaudit.queries.window import DAY_FORMATS, parse_whole_days
from sageaudit.structs import replace
from sageaudit.workflows.recordings.run import audit_recording, recorded_report
from sageaudit.workflows.report import ReportSource, make_account_report, make_job_report
from sageaudit.workflows.scan import coverage as billed

_STDOUT = "-"
_HISTORY_ARGUMENTS = (
    "job",
    "since",
    "until",
    "account",
    "coverage",
    "history",
    "table",
    "table_region",
)
_KIB = 1024
_EPILOG = """\b
Examples:
  sageaudit report -o report.html
  sageaudit report my-training-job -o job.html
  sageaudit report --since 2026-10-01 --until 2026-10-31 --account 111122223333
  sageaudit report --recording job.json -o -"""


@click.command(epilog=_EPILOG)
@click.argument("job", required=False, metavar="[ARN|NAME]")
@options.RECORDING_OPTION
@query_options.since_option(formats_text=DAY_FORMATS)
@query_options.UNTIL_OPTION
@query_options.ACCOUNT_OPTION
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
    help="Also show how much of the account's SageMaker bill these jobs are: one or more Cost"
    " Explorer requests at $0.01 each.",
)
@query_options.HISTORY_OPTIONS
@options.POLICY_OPTION
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
    history_choice: HistoryChoice,
    policy: Policy,
) -> Exit:
    """Writes an HTML page about one job, or about all jobs of a period.

    The page is one file that loads nothing and sends nothing. It is written from a history, or from
    the --recording of one job; only --coverage makes other calls to AWS.
    """
    history_options = [name for name in _HISTORY_ARGUMENTS if _is_given(context, name)]
    if path and history_options:
        names_text = ", ".join(
            "JOB" if name == "job" else query_options.option_name(name) for name in history_options
        )
        raise BadUsage(
            f"with --recording the report is about that job alone: leave out {names_text}"
        )
    if _is_given(context, "policy") and not path:
        raise BadUsage("--policy needs a --recording: audits of a history are not judged again")
    if coverage and job:
        raise BadUsage("--coverage is about an account: leave out JOB")
    code = Exit.DONE
    contents: AccountReport | JobReport
    if path:
        contents = recorded_report(path, audit_recording(path, policy))
    else:
        days = parse_whole_days(since, until, clock.utc_now())
        with history_choice.open() as opened_history:
            decisions = opened_history.decisions.decisions()
            source = ReportSource(
                opened_history.history, packaged.instance_types(), query_output.with_progress
            )
            if job is not None:
                contents = make_job_report(
                    source, find_job(opened_history.history, JobQuery(job, account=account))
                )
            else:
                period = Period(days.first_day, days.last_day)
                contents = make_account_report(source, period, account, clock.utc_now(), decisions)
            if coverage and isinstance(contents, AccountReport):
                session = opened_history.session or open_session(history_choice.profile, None)
                period = Period(contents.since, contents.until)
                result = billed.read_own_coverage(
                    opened_history.history, session, period, account, _report_cost
                )
                code = coverage_view.report_refusal(result)
                contents = replace(contents, coverage=result.coverage)
    _write(_page(contents), output, contents)
    return code


def _report_cost(bill: billed.BilledAccounts) -> None:
    print_message(coverage_view.cost_line(bill))


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _page(contents: AccountReport | JobReport) -> Iterator[str]:
    body: Child
    if isinstance(contents, JobReport):
        title, body = job_title(contents.document), job_body(contents)
    else:
        title, body = account_title(contents), account_body(contents)
    return page(title, body, generated_at=clock.utc_now(), version=__version__)


def _write(pieces: Iterator[str], output: str, contents: AccountReport | JobReport) -> None:
    if output == _STDOUT:
        for piece in pieces:
            click.echo(piece, nl=False)
        return
    with atomic_write(Path(output)) as temporary_file:
        with temporary_file.open("w", encoding="utf-8", errors="replace", newline="") as file:
            file.writelines(pieces)
        size = f"{max(temporary_file.stat().st_size // _KIB, 1):,} KB"
    description = "1 job"
    if isinstance(contents, AccountReport):
        description = f"{job_count_text(contents.summaries)}, {contents.since} to {contents.until}"
        if contents.omitted_jobs:
            others_text = f"{contents.omitted_jobs:,} others are only in its sums"
            description = f"the most wasteful {description} ({others_text})"
    print_message(f"wrote {output}: {description}, {size}")
