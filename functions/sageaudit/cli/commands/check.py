"""`sageaudit check`: judges requests of jobs before they run."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from sageaudit.adapters.files.git_revision import GitRevision
from sageaudit.adapters.files.text_file import display_name
from sageaudit.adapters.history.opened import HistorySource, open_history
from sageaudit.cli import options
from sageaudit.cli.check_outputs import CheckOutput, OutputParameter, OutputWriter
from sageaudit.cli.messages import can_ask, print_message
from sageaudit.cli.views.check.fixes import remaining_findings_text, show_fixes
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.request.recognise import FileFormat
from sageaudit.errors import BadUsage, HistoryFileError, NoHistory, SageauditError
from sageaudit.exits import Exit, exit_for, worst_exit
from sageaudit.output.terminal.layout import make_console
from sageaudit.workflows import check_files
from sageaudit.workflows.check.comparison import FileCheck, counted_findings
from sageaudit.workflows.check.run import RequestChecker
from sageaudit.workflows.check_write import FixPlan, plan_fixes

_EPILOG = """\b
Examples:
  sageaudit check request.json
  sageaudit check request.json --guides
  sageaudit check pipeline.json --region eu-west-1 --fail-on medium
  terraform show -json plan.out | sageaudit check - --fail-on medium
  sageaudit check request.json --table sageaudit --output github
  sageaudit check request.json --base main
  sageaudit check request.json --write"""


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
    "--base",
    metavar="REVISION",
    help="Git revision to compare with, such as main: shows the costs at that revision beside the"
    " new ones.",
)
@click.option(
    "--output",
    "outputs",
    type=OutputParameter(),
    multiple=True,
    help="Format: table for people (the default), json for scripts, github for annotations,"
    " markdown for a comment, sarif for code scanning, junit for test reports. With =FILE it is"
    " written to a file. May be repeated, with one format for stdout.",
)
@options.fail_on_option(
    "a request", " Without it, the exit code is not 0 only if AWS would refuse a request."
)
@click.option(
    "--write", is_flag=True, help="Show the fixes as a diff, ask, and write them into the file."
)
@click.option("--yes", is_flag=True, help="Write without asking.")
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
    base: str | None,
    outputs: tuple[CheckOutput, ...],
    fail_on: Severity | None,
    write: bool,
    yes: bool,
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
    writer = OutputWriter(outputs, files, fail_on, with_guides=guides, no_color=no_color)
    if write and (outputs or base):
        raise BadUsage("--write cannot be used with --output or --base")
    if yes and not write:
        raise BadUsage("--yes is only for --write")
    revision = GitRevision(base) if base is not None else None
    with _history(history, table, profile, region) as source:
        checker = check_files.make_checker(
            policy,
            source.history if source else None,
            form=file_format,
            pipeline=pipeline,
            region=options.check_region(region, "--region") if region else None,
            account=options.check_account_id(account, "--account") if account else None,
            profile=profile,
            with_guides=guides,
        )
        codes = []
        for path in dict.fromkeys(files):
            file_check, code = _check(checker, path, revision, fail_on)
            writer.add(file_check)
            if write and file_check.checked is not None:
                try:
                    plan = plan_fixes(checker, path, file_check.checked)
                    show_fixes(plan, make_console(no_color=no_color))
                    code = _write_fixes(plan, code, fail_on, is_sure=yes)
                except BadUsage as error:
                    print_message(str(error))
                    code = Exit.USAGE
            codes.append(code)
    writer.finish()
    return worst_exit(codes)


def _check(
    checker: RequestChecker, path: str, base: GitRevision | None, fail_on: Severity | None
) -> tuple[FileCheck, Exit]:
    """Checks one file. A file that cannot be checked does not stop the others."""
    try:
        file_check = check_files.check_with_base(checker, path, base)
    except HistoryFileError:  # every file would fail with it
        raise
    except SageauditError as error:
        print_message(str(error))
        failed_check = FileCheck(display_name(path), error=str(error), is_compared=base is not None)
        return failed_check, exit_for(error)
    return file_check, _exit_code(file_check, fail_on)


def _write_fixes(plan: FixPlan, code: Exit, fail_on: Severity | None, *, is_sure: bool) -> Exit:
    """Writes the fixes if the user wants it. `is_sure`: without a question.

    Returns the exit code of what is left; `code` is that of the file as it is. Raises BadUsage.
    """
    path = plan.file.path
    if not plan.fixes:
        return code
    if not is_sure and not can_ask():
        raise BadUsage(f"{path}: was not changed: there is no terminal to ask; use --yes")
    if not is_sure and not click.confirm(f"Write this to {path}?", err=True):
        return code
    plan.file.save(plan.after)
    print_message(f"{path}: written. {remaining_findings_text(plan)}")
    return _exit_code(FileCheck(str(path), plan.checked), fail_on)


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


def _exit_code(file_check: FileCheck, fail_on: Severity | None) -> Exit:
    # Without --fail-on, the code is a failure only if AWS would refuse a request.
    jobs = file_check.checked["jobs"] if file_check.checked else []
    findings = [finding for job in jobs for finding in counted_findings(job)]
    if fail_on is None:
        is_refused = any(finding["refused"] for finding in findings)
        return Exit.FINDINGS if is_refused else Exit.DONE
    severities = (finding["severity"] for finding in findings)
    could_judge = not any(job["unreadable"] for job in jobs)
    return options.exit_code(file_check.name, severities, fail_on, could_judge=could_judge)
