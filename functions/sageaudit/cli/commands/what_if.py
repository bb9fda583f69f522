"""`sageaudit what-if`: what one job would have cost on every other instance type."""

from __future__ import annotations

from pathlib import Path

import click

from sageaudit.adapters.files.recording import Recording
from sageaudit.cli import options
from sageaudit.cli.completion import complete_types
from sageaudit.cli.messages import print_message
from sageaudit.cli.options import JobOptions
from sageaudit.cli.views.what_if import at_own_prices, check_types, what_if_document
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.errors import BadRecording, BadUsage, MalformedData
from sageaudit.output.terminal import candidates
from sageaudit.workflows import live
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording, read_recording

_EPILOG = """\b
Examples:
  sageaudit what-if --recording job.json
  sageaudit what-if my-training-job --region eu-west-1 --type ml.g6.2xlarge --type ml.g5.xlarge
  sageaudit what-if my-training-job --output json"""


@click.command(name="what-if", epilog=_EPILOG)
@click.argument("job", required=False, metavar="[ARN|NAME]")
@options.RECORDING_OPTION
@click.option(
    "--type",
    "types",
    multiple=True,
    shell_complete=complete_types,
    help="Only this instance type; may be repeated.",
)
@options.JOB_OPTIONS
@options.PRINT_OPTIONS
def what_if(
    job: str | None,
    path: Path | None,
    types: tuple[str, ...],
    job_options: JobOptions,
    print_options: options.PrintOptions,
) -> None:
    """Shows what a job would have cost on other instance types.

    Each type is compared with the job's measured use plus 20%. It shows the cheapest types that
    fit, and the number of types that do not, by reason; --output json has every type. It only
    reads, with your own credentials, and writes nothing.
    """
    if (job is None) == (path is None):
        raise click.UsageError("name one job, or one file with --recording")
    check_types(types)
    if path is not None:
        run = _measure_recording(path)
    else:
        account = live.LiveAccount(job_options.profile, job_options.region, warn=print_message)
        run = account.measure(job or "", job_options.kind, job_options.policy)
    run = at_own_prices(run, job_options.policy)
    print_options.print_document(what_if_document(run, types), candidates.show)


def _measure_recording(path: Path) -> MeasuredJob:
    recorded = read_recording(path)
    if not isinstance(recorded, Recording):
        jobs = [measure_recording(child).job for child in recorded.children]
        parents = (rollup_from_arn(job.parent.arn) for job in jobs if job.parent)
        kind = next((parent.kind for parent in parents if parent), JobKind.TUNING)
        raise BadUsage(live.choose_one_message([job.name for job in jobs], f"{path}", kind))
    try:
        return measure_recording(recorded)
    except MalformedData as error:
        raise BadRecording(f"{path}: {error}") from error
