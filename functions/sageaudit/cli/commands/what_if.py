"""`sageaudit what-if`: one job's recorded use, replayed on every other instance type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from sageaudit.adapters.files import policy_file, recording
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.prices import packaged
from sageaudit.cli import options
from sageaudit.cli.sources import live, recorded_run
from sageaudit.cli.sources.recorded_run import Run
from sageaudit.cli.views import candidates
from sageaudit.domain.audit.document import rounded
from sageaudit.domain.bill.bill import Bill, bill, billed_seconds
from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.resize import HEADROOM_PERCENT, Resize, impossible, resize
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.ref import JobKind
from sageaudit.domain.policy.discounts import own
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.demand import Need
from sageaudit.errors import BadRecording, BadUsage, Malformed

_HOUR_S = Decimal(3600)
_MOST_HEADROOM = 1000
_PLAN = (
    "Its training plan is prepaid: another type is bought on demand beside it and saves no cash."
)
_EPILOG = """\b
Examples:
  sageaudit what-if --recording job.json
  sageaudit what-if my-training-job --region eu-west-1 --type ml.g6.2xlarge --type ml.g5.xlarge
  sageaudit what-if my-training-job --headroom 30 --all --output json"""


@click.command(name="what-if", epilog=_EPILOG)
@click.argument("job", required=False, metavar="[ARN|NAME]")
@click.option(
    "--recording",
    "path",
    type=click.Path(path_type=Path),
    help="A recorded job: a Describe* answer as the AWS CLI prints it, or a recording.",
)
@click.option("--type", "types", multiple=True, help="Only this instance type; may be given again.")
@click.option(
    "--headroom",
    type=click.FloatRange(0, _MOST_HEADROOM),
    default=float(HEADROOM_PERCENT),
    show_default=True,
    help="Percent that a type must hold above the run's P99.5.",
)
@options.KIND
@options.JOB_REGION
@options.PROFILE
@click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path), help="A policy.toml with discounts."
)
@click.option("--all", "everything", is_flag=True, help="Every type, the refused ones too.")
@click.option(
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="json: every type, for scripts.",
)
@options.NO_COLOR
def what_if(
    job: str | None,
    path: Path | None,
    types: tuple[str, ...],
    headroom: float,
    kind: str | None,
    region: str | None,
    profile: str | None,
    policy_path: Path | None,
    everything: bool,
    output: str,
    no_color: bool,
) -> None:
    """What a job would have cost on other instance types, and which would not have held it.

    Recorded use is scaled to each type; types that break the headroom are refused with the
    constraint that binds. Reads only, with your own credentials; nothing is written anywhere.
    """
    if (job is None) == (path is None):
        raise click.UsageError("name one job, or one file with --recording")
    if not math.isfinite(headroom):
        raise click.BadParameter(f"{headroom} is no percentage", param_hint="--headroom")
    policy = policy_file.load(policy_path) if policy_path else Policy()
    for name in types:
        if name not in packaged.types():
            raise BadUsage(f"{name} is not in the catalogue of instance types: it is unknown")
    if path is not None:
        run = _recorded(path)
    else:
        wanted = JobKind(kind) if kind else None
        run = live.Account(profile, region).ran(job or "", wanted, policy)
    run = replace(run, market=own(run.market, policy.discounts))
    document = document_of(run, types, Decimal(f"{headroom:g}"))
    if output == "json":
        click.echo(to_json(document))
    else:
        candidates.show(document, Console(no_color=no_color or None), everything=everything)


def _recorded(path: Path) -> Run:
    recorded = recording.read(path)
    if not isinstance(recorded, recording.Recording):
        raise BadUsage(f"{path} holds several jobs: give the recording of one")
    try:
        return recorded_run.of_recording(recorded)
    except Malformed as error:
        raise BadRecording(f"{path}: {error}") from error


def document_of(run: Run, types: tuple[str, ...], headroom_percent: Decimal) -> dict[str, Any]:
    """What is printed. Unknown is null; candidates that fit come first, by cost."""
    why = impossible(run.job, run.market)
    done = None
    if why is None:
        done = resize(
            run.job,
            run.usage.active(),
            run.market,
            headroom_percent=headroom_percent,
            only=lambda kind: not types or kind.name in types,
        )
    return {
        "schema": 1,
        "job": {
            "name": run.job.name,
            "arn": run.job.arn,
            "kind": run.job.kind.value,
            "status": run.job.status,
            "region": run.job.region,
        },
        "today": _today(run.job, done.bill if done else bill(run.job, run.market)),
        "headroom_percent": headroom_percent,
        "needs": _needs(done) if done else None,
        "impossible": why,
        "notes": [_PLAN] if run.job.purchase is Purchase.TRAINING_PLAN else [],
        "candidates": [_candidate(one, done, run.job) for one in done.candidates] if done else [],
    }


def _today(job: Job, billed: Bill) -> dict[str, Any]:
    return {
        "instances": job.instances,
        "hours": _hours(job),
        "usd": rounded(billed.total_usd),
        "basis": billed.basis,
        "missing": list(billed.missing),
    }


def _needs(done: Resize) -> Mapping[str, Any]:
    """Peaks of the busiest host with headroom; null with the reason where they are not known."""
    needs = {
        "vcpu": done.need.vcpu,
        "memory_gib": done.need.memory_gib,
        "gpus": done.need.gpus,
        "gpu_memory_gib": done.need.gpu_memory_gib,
    }
    busy = done.need.gpu_busy
    return {name: _amount(need) for name, need in needs.items()} | {
        "gpu_busy_percent": None if busy is None else busy * 100,
        "unknown": {name: need.unknown for name, need in needs.items() if need.unknown},
    }


def _amount(need: Need) -> Decimal | None:
    return None if need.needed is None else Decimal(str(round(need.needed, 2)))


def _candidate(one: Candidate, done: Resize, job: Job) -> dict[str, Any]:
    saves, at_best, hours = done.saves(one), done.saves_at_best(one), _hours(job)
    ends = None if saves is None or at_best is None else sorted((saves, at_best))
    counted = one.takes.counted if one.takes else None
    return {
        "type": one.type.name,
        "vcpu": one.type.vcpu,
        "memory_gib": one.type.memory_gib,
        "gpus": one.type.gpus,
        "gpu": one.type.gpu_model,
        "usd_per_hour": None if one.rate is None else one.rate.usd,
        "price_as_of": None if one.rate is None else one.rate.as_of,
        "price_kind": None if one.rate is None else one.rate.kind,
        "fits": one.refused is None,
        "constraint": one.refused.constraint.value if one.refused else None,
        "reason": one.refused.reason if one.refused else None,
        "assumption": one.takes.because if one.takes else None,
        "times_as_long": counted,
        "times_as_long_at_best": one.takes.best if one.takes else None,
        "hours": None if hours is None or counted is None else rounded(hours * counted),
        "usd": rounded(one.usd),
        "saving_usd": rounded(saves),
        "saving_range_usd": [rounded(end) for end in ends] if ends else None,
        "break_even_times_as_long": rounded(one.break_even),
    }


def _hours(job: Job) -> Decimal | None:
    """Billed wall-clock hours of each instance."""
    seconds, _ = billed_seconds(job)
    return None if seconds is None else rounded(seconds / _HOUR_S)
