"""`sageaudit record`: writes what an audit of a live job reads, as a file for later audits."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sageaudit.adapters.aws.service_model import instance_types
from sageaudit.adapters.files import recording_file
from sageaudit.adapters.files.local_files import fingerprint_key
from sageaudit.cli import options
from sageaudit.cli.messages import escape_json, print_message
from sageaudit.cli.options import JobOptions
from sageaudit.domain.job.ref import JOB_NAME
from sageaudit.rules import catalogue
from sageaudit.workflows import live
from sageaudit.workflows.recordings.jobs import read_recording

_EPILOG = """\b
Examples:
  sageaudit record my-training-job --region eu-west-1
  sageaudit record my-training-job -o job.json
  sageaudit audit --recording job.json
  sageaudit record my-training-job --anonymize -o to-share.json
  sageaudit record --recording job.json --anonymize -o to-share.json"""
_STDOUT = "-"


@click.command(epilog=_EPILOG)
@click.argument("job", required=False, metavar="[ARN|NAME]")
@click.option(
    "--recording",
    "path",
    type=click.Path(path_type=Path),
    help="Recording, or Describe* response, to write again instead of reading a job.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="File to write, or - for stdout; by default NAME.json in the current folder.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--anonymize",
    is_flag=True,
    help="Replace names, account IDs, addresses and free text, for sharing. Times, types, metrics"
    " and prices are kept, so that the dollars stay the same.",
)
@options.JOB_OPTIONS
def record(
    job: str | None,
    path: Path | None,
    out: Path | None,
    force: bool,
    anonymize: bool,
    job_options: JobOptions,
) -> None:
    """Writes a job's recording: everything that its audit reads.

    A recording has the Describe* response, tags, metrics, bucket regions and prices, for a tuning
    job also those of its training jobs. It keeps only flags of hyperparameters, environment and
    arguments, known words of messages, and tags that the policy names. It only reads from AWS, with
    your own credentials.
    """
    if (job is None) == (path is None):
        raise click.UsageError("name one job, or give its file with --recording")
    if out is not None and str(out) != _STDOUT:
        recording_file.check_can_write(out, replace=force)
    if path is not None:
        recorded = read_recording(path)
    else:
        recorded = live.LiveAccount(
            job_options.profile, job_options.region, warn=print_message
        ).record(job or "", job_options.kind)
    document = recording_file.make_document(
        recorded, fingerprint_key(), job_options.policy.tag_names
    )
    if anonymize:
        rules = frozenset(rule.info.name for rule in catalogue.ruleset().rules)
        document = recording_file.anonymize(
            document, secrets.token_bytes(32), rules, instance_types()
        )
    text = escape_json(recording_file.to_text(document))
    if str(out) == _STDOUT:
        click.echo(text, nl=False)
    else:
        target = out or Path(f"{_name(document)}.json")
        recording_file.write(target, text, replace=force)
        print_message(f"wrote {target} ({max(len(text) // 1000, 1)} KB)")
    if not anonymize:
        print_message("it names your account, data and people: add --anonymize before you share it")


def _name(document: Mapping[str, Any]) -> str:
    # A set without its tuning job gets its first job's name. An invalid job name becomes `job`.
    answer = document.get("describe") or document["children"][0]["describe"]
    name = next(str(value) for key, value in answer.items() if key.endswith("JobName"))
    return name if JOB_NAME.match(name) else "job"
