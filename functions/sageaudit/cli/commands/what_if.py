"""`sageaudit what-if`: what one job would have cost on every other instance type."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from sageaudit.adapters.files import recording
from sageaudit.adapters.prices import packaged
from sageaudit.cli import options
from sageaudit.cli.messages import say
from sageaudit.cli.options import JobOptions
from sageaudit.domain.audit.finding_document import rounded
from sageaudit.domain.bill.bill import Bill, bill, billed_seconds
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_of
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.discounts import own
from sageaudit.domain.prices.known_prices import day_of
from sageaudit.domain.resize.candidate import Candidate
from sageaudit.domain.resize.resize import HEADROOM_PERCENT, Resize, impossible, resize
from sageaudit.domain.usage.demand import Need
from sageaudit.errors import BadRecording, BadUsage, Malformed
from sageaudit.output.terminal import candidates
from sageaudit.structs import replace
from sageaudit.workflows import live
from sageaudit.workflows.recordings.jobs import MeasuredJob, run_of

_HOUR_S = Decimal(3600)
_PLAN = "Its training plan is prepaid: another type would be billed on demand on top of the plan."
_EPILOG = """\b
Examples:
  sageaudit what-if --recording job.json
  sageaudit what-if my-training-job --region eu-west-1 --type ml.g6.2xlarge --type ml.g5.xlarge
  sageaudit what-if my-training-job --output json"""


@click.command(name="what-if", epilog=_EPILOG)
@click.argument("job", required=False, metavar="[ARN|NAME]")
@options.RECORDING
@click.option("--type", "types", multiple=True, help="Only this instance type; may be repeated.")
@options.JOB
@options.PRINTED
def what_if(
    job: str | None,
    path: Path | None,
    types: tuple[str, ...],
    target: JobOptions,
    printed: options.Printed,
) -> None:
    """Shows what a job would have cost on other instance types.

    The job's measured use plus 20% is compared with each type. The cheapest that fit are shown, and
    how many are refused for which reason; --output json has every type. Reads only, with your own
    credentials; nothing is written anywhere.
    """
    if (job is None) == (path is None):
        raise click.UsageError("name one job, or one file with --recording")
    for name in types:
        if name not in packaged.types():
            perhaps = did_you_mean(name, packaged.types())
            raise BadUsage(f"{name} is not in the catalogue of instance types{perhaps}")
    if path is not None:
        run = _recorded(path)
    else:
        account = live.Account(target.profile, target.region, warn=say)
        run = account.run(job or "", target.kind, target.policy)
    run = replace(run, market=own(run.market, target.policy.discounts, day_of(run.job, run.now)))
    printed.show(document_of(run, types), candidates.show)


def _recorded(path: Path) -> MeasuredJob:
    recorded = recording.read(path)
    if not isinstance(recorded, recording.Recording):
        jobs = [run_of(child).job for child in recorded.children]
        parents = (rollup_of(job.parent.arn) for job in jobs if job.parent)
        kind = next((parent.kind for parent in parents if parent), JobKind.TUNING)
        raise BadUsage(live.one_of([job.name for job in jobs], f"{path}", kind))
    try:
        return run_of(recorded)
    except Malformed as error:
        raise BadRecording(f"{path}: {error}") from error


def document_of(run: MeasuredJob, types: tuple[str, ...]) -> dict[str, Any]:
    """The document of --output json; unknown values are null, types that fit come first."""
    run = replace(run, market=run.market.relative_to(run.job))
    reason = impossible(run.job, run.market)
    resized = None
    if reason is None:
        resized = resize(run.job, run.usage, run.market, only=types or None)
    return {
        "schema": 1,
        "job": {
            "name": run.job.name,
            "arn": run.job.arn,
            "kind": run.job.kind.value,
            "status": run.job.status,
            "region": run.job.region,
        },
        "today": _today(run.job, resized.bill if resized else bill(run.job, run.market)),
        "headroom_percent": HEADROOM_PERCENT,
        "needs": _needs(resized) if resized else None,
        "impossible": reason,
        "notes": [_PLAN] if run.job.purchase is Purchase.TRAINING_PLAN else [],
        "candidates": [_candidate(one, resized, run.job) for one in resized.candidates]
        if resized
        else [],
    }


def _today(job: Job, billed: Bill) -> dict[str, Any]:
    return {
        "instances": job.instances,
        "hours": _hours(job),
        "usd": rounded(billed.total_usd),
        "basis": billed.basis,
        "missing": list(billed.missing),
        "estimated": list(billed.estimated),
    }


def _needs(resized: Resize) -> Mapping[str, Any]:
    """The busiest host's peaks plus headroom; an unknown need is null, with its reason."""
    needs = {
        "vcpu": resized.need.vcpu,
        "memory_gib": resized.need.memory_gib,
        "gpus": resized.need.gpus,
        "gpu_memory_gib": resized.need.gpu_memory_gib,
    }
    busy = resized.need.gpu_busy
    return {name: _amount(need) for name, need in needs.items()} | {
        "gpu_busy_percent": None if busy is None else busy * 100,
        "unknown": {name: need.unknown for name, need in needs.items() if need.unknown},
    }


def _amount(need: Need) -> Decimal | None:
    return None if need.needed is None else Decimal(str(round(need.needed, 2)))


def _candidate(candidate: Candidate, resized: Resize, job: Job) -> dict[str, Any]:
    saves, at_best, hours = resized.saves(candidate), resized.saves_at_best(candidate), _hours(job)
    ends = None if saves is None or at_best is None else sorted((saves, at_best))
    counted = candidate.takes.counted if candidate.takes else None
    return {
        "type": candidate.type.name,
        "vcpu": candidate.type.vcpu,
        "memory_gib": candidate.type.memory_gib,
        "gpus": candidate.type.gpus,
        "gpu": candidate.type.gpu_model,
        "usd_per_hour": None if candidate.rate is None else candidate.rate.usd,
        "price_as_of": None if candidate.rate is None else candidate.rate.as_of,
        "price_kind": None if candidate.rate is None else candidate.rate.kind,
        "price_note": candidate.price_note,
        "estimated": candidate.by_estimate,
        "fits": candidate.refused is None,
        "feasible_unpriced": candidate.feasible_unpriced,
        "constraint": candidate.refused.constraint.value if candidate.refused else None,
        "reason": candidate.refused.reason if candidate.refused else None,
        "assumption": candidate.takes.because if candidate.takes else None,
        "times_as_long": counted,
        "times_as_long_at_best": candidate.takes.best if candidate.takes else None,
        "hours": None if hours is None or counted is None else rounded(hours * counted),
        "usd": rounded(candidate.usd),
        "saving_usd": rounded(saves),
        "saving_range_usd": [rounded(end) for end in ends] if ends else None,
        "break_even_times_as_long": rounded(candidate.break_even),
    }


def _hours(job: Job) -> Decimal | None:
    """Billed wall-clock hours of each instance."""
    seconds, _ = billed_seconds(job)
    return None if seconds is None else rounded(seconds / _HOUR_S)
