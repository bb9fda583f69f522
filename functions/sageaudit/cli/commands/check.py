"""`sageaudit check`: judges requests of jobs before they run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import click

from sageaudit.adapters.history.opened import HistorySource, open_history
from sageaudit.cli import options
from sageaudit.cli.messages import print_json, print_message, show_result
from sageaudit.cli.views import check as views
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import FileFormat
from sageaudit.errors import BadUsage, HistoryFileError, NoHistory
from sageaudit.exits import Exit, worst_exit
from sageaudit.output.terminal.layout import make_console
from sageaudit.workflows import check_files
from sageaudit.workflows.check.document import CheckedFile

_EPILOG = """\b
Examples:
  sageaudit check request.json
  sageaudit check request.json --guides
  sageaudit check pipeline.json --region eu-west-1 --fail-on medium
  terraform show -json plan.out | sageaudit check - --fail-on medium
  sageaudit check request.json --table sageaudit --output github"""

OUTPUT_FORMATS = ("table", "json", "github")


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--as",
    "file_format",
    type=options.EnumChoice(FileFormat),
    help="Format of the files; by default recognised from their contents.",
)
@click.option("--pipeline", help="Name of the pipeline, which its definition does not contain.")
@options.region_option(
    "AWS region of the jobs; by default that of the plan, of the image or of your settings."
)
@click.option("--account", help="Account of the jobs, if their RoleArn does not name it.")
@options.HISTORY_OPTION
@options.TABLE_OPTION
@options.PROFILE_OPTION
@options.POLICY_OPTION
@click.option(
    "--output",
    type=click.Choice(OUTPUT_FORMATS),
    default="table",
    show_default=True,
    help="Format: table for people, json for scripts, github for annotations.",
)
@options.fail_on_option(
    "a request", " Without it, the exit code is not 0 only if AWS would refuse a request."
)
@options.GUIDES_OPTION
@options.NO_COLOR_OPTION
def check(
    files: tuple[str, ...],
    file_format: FileFormat | None,
    pipeline: str | None,
    region: str | None,
    account: str | None,
    history: Path | None,
    table: str | None,
    profile: str | None,
    policy: Policy,
    output: str,
    fail_on: Severity | None,
    guides: bool,
    no_color: bool,
) -> Exit:
    """Checks a request, pipeline or plan before it costs anything.

    FILE is the request of a training, processing, transform or tuning job (as `aws sagemaker
    create-training-job --cli-input-json` takes it), a SageMaker pipeline definition, a Step
    Functions state machine, a CloudFormation template (also of `cdk synth`), or a Terraform plan
    (`terraform show -json`); "-" reads standard input. It calls AWS only for the history's table,
    if you name one.
    """
    if guides and output == "github":
        raise BadUsage("--guides cannot be used with --output github, which has only findings")
    with _history(history, table, profile, region) as source:
        checker = check_files.make_checker(
            policy,
            source.history if source else None,
            form=file_format,
            pipeline=pipeline,
            region=region,
            account=options.check_account_id(account, "--account") if account else None,
            profile=profile,
            with_guides=guides,
        )

        def show(checked: CheckedFile) -> Exit:
            _show(checked, output, no_color=no_color)
            return _exit_code(checked, fail_on)

        tasks = (partial(check_files.check_file, checker, path) for path in dict.fromkeys(files))
        return worst_exit(show_result(task, show) for task in tasks)


def _history(
    history: Path | None, table: str | None, profile: str | None, region: str | None
) -> AbstractContextManager[HistorySource | None]:
    # Without a name, opens the user's default file if it can be read.
    try:
        return open_history(history, table, profile, region, warn=print_message)
    except HistoryFileError as error:
        if history is not None:
            raise
        if not isinstance(error, NoHistory):
            print_message(f"{error}; the history is not used")
        return nullcontext()


def _exit_code(checked_file: CheckedFile, fail_on: Severity | None) -> Exit:
    # Without --fail-on, the code is a failure only if AWS would refuse a request.
    findings = [finding for job in checked_file["jobs"] for finding in job["findings"]]
    if fail_on is None:
        is_refused = any(
            finding["refused"] and finding["not_counted"] is None for finding in findings
        )
        return Exit.FINDINGS if is_refused else Exit.DONE
    severities = (finding["severity"] for finding in findings if finding["not_counted"] is None)
    could_judge = not any(job["unreadable"] for job in checked_file["jobs"])
    return options.exit_code(checked_file["file"], severities, fail_on, could_judge=could_judge)


def _show(checked_file: CheckedFile, output: str, *, no_color: bool) -> None:
    if output == "json":
        print_json(checked_file)
    elif output == "table":
        views.show(checked_file, make_console(no_color=no_color))
    elif text := views.github_annotations(checked_file):
        click.echo(text)
