"""`sageaudit check`: judges requests of jobs before they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from sageaudit.adapters.files import policy_file
from sageaudit.cli import options
from sageaudit.cli.exits import Exit, exit_of, gravest
from sageaudit.cli.messages import echo_json, say
from sageaudit.cli.support.account.accounts import open_session
from sageaudit.cli.support.check import views
from sageaudit.cli.support.check.document import CheckedFile
from sageaudit.cli.support.check.planned_jobs import Checks
from sageaudit.cli.support.history.histories import HistorySource, open_history
from sageaudit.cli.support.history.stored_runs import read_family
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.job.ref import REGION
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import Form
from sageaudit.errors import BadUsage, HistoryFileError, NoHistory, SageauditError
from sageaudit.output.terminal.layout import console_for

_EPILOG = """\b
Examples:
  sageaudit check request.json
  sageaudit check pipeline.json --region eu-west-1 --fail-on medium
  terraform show -json plan.out | sageaudit check - --output markdown
  sageaudit check request.json --table sageaudit --output github"""


OUTPUTS = ("table", "json", "markdown", "github")


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--as",
    "form",
    type=click.Choice([form.value for form in Form]),
    help="What the files are; by default it is recognised by what is in them.",
)
@click.option("--pipeline", help="Name of the pipeline, which a definition does not say.")
@click.option(
    "--region",
    help="AWS region of the jobs; by default that of the plan, of the image or of your settings.",
)
@click.option("--account", help="Account of the jobs, where their RoleArn does not say it.")
@options.HISTORY
@options.TABLE
@options.PROFILE
@options.POLICY
@click.option(
    "--output",
    type=click.Choice(OUTPUTS),
    default="table",
    show_default=True,
    help="Format: table for people, json for scripts, markdown for a comment, github for"
    " annotations.",
)
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in reversed(Severity)]),
    help="Exit with code 10 if a finding has this severity or a higher one, with 11 if none has"
    " and a request could not be judged.",
)
@options.NO_COLOR
def check(
    files: tuple[str, ...],
    form: str | None,
    pipeline: str | None,
    region: str | None,
    account: str | None,
    history: Path | None,
    table: str | None,
    profile: str | None,
    policy_path: Path | None,
    output: str,
    fail_on: str | None,
    no_color: bool,
) -> int:
    """Checks a request, pipeline or plan before it costs anything.

    FILE is the request of a training, processing, transform or tuning job (as `aws sagemaker
    create-training-job --cli-input-json` takes it), a SageMaker pipeline definition, or a Terraform
    plan (`terraform show -json`); "-" reads standard input. Nothing is asked of AWS but the
    history's table, if you name one.
    """
    policy = policy_file.load(policy_path) if policy_path else Policy()
    with _history(history, table, profile, region) as known:
        checks = Checks(
            policy=policy,
            now=datetime.now(UTC),
            form=Form(form) if form else None,
            pipeline=pipeline,
            region=_region(region),
            account=options.account_id(account, "--account") if account else None,
            settings_region=lambda: open_session(profile, None).region_name,
            read_family=partial(read_family, known.history) if known else None,
        )
        show = partial(_show, output=output, no_color=no_color)
        return int(gravest(_run(path, checks, show, fail_on) for path in dict.fromkeys(files)))


@contextmanager
def _history(
    history: Path | None, table: str | None, profile: str | None, region: str | None
) -> Iterator[HistorySource | None]:
    """The history that is named; without a name the user's own file, if it can be read."""
    try:
        source = open_history(history, table, profile, region)
    except HistoryFileError as error:
        if history is not None:
            raise
        if not isinstance(error, NoHistory):
            say(f"{error}; the history is not asked")
        yield None
        return
    with source:
        yield source


def _region(name: str | None) -> str | None:
    if name is not None and not REGION.fullmatch(name):
        raise BadUsage(f"--region {name} is not a region; a region looks like eu-west-1")
    return name


def _run(
    path: str, checks: Checks, show: Callable[[CheckedFile], None], fail_on: str | None
) -> Exit:
    """Shows one file's result; a file that cannot be read does not stop the others."""
    try:
        written = checks.file(path)
    except SageauditError as error:
        say(str(error))
        return exit_of(error)
    show(written)
    return _gate(written, fail_on) if fail_on else Exit.DONE


def _gate(written: CheckedFile, fail_on: str) -> Exit:
    """A request that could not be judged does not pass: no finding is no proof then."""
    least = Severity(fail_on).rank
    rows = [row for job in written["jobs"] for row in job["findings"]]
    if any(row["not_counted"] is None and Severity(row["severity"]).rank >= least for row in rows):
        return Exit.FINDINGS
    if any(job["unreadable"] for job in written["jobs"]):
        say(f"{written['file']}: could not be judged, so --fail-on does not pass it")
        return Exit.NOT_JUDGED
    return Exit.DONE


def _show(written: CheckedFile, output: str, *, no_color: bool) -> None:
    """Prints a file's document in one format."""
    if output == "json":
        echo_json(written)
    elif output == "table":
        views.show(written, console_for(no_color=no_color))
    elif text := {"markdown": views.markdown, "github": views.github}[output](written):
        click.echo(text)
