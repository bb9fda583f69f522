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
from sageaudit.cli.messages import print_message
from sageaudit.cli.options import JobOptions
from sageaudit.domain.audit.finding_document import round_usd
from sageaudit.domain.bill.bill import Bill, bill, billed_seconds
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.discounts import with_own_prices
from sageaudit.domain.prices.known_prices import pricing_day
from sageaudit.domain.resize.candidate import Candidate
from sageaudit.domain.resize.resize import HEADROOM_PERCENT, Resize, resize, resize_refusal
from sageaudit.domain.usage.demand import ResourceNeed
from sageaudit.errors import BadRecording, BadUsage, MalformedData
from sageaudit.output.terminal import candidates
from sageaudit.structs import replace
from sageaudit.workflows import live
from sageaudit.workflows.recordings.jobs import MeasuredJob, measure_recording

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
@options.PRINT_OPTIONS
def what_if(
    job: str | None,
    path: Path | None,
    types: tuple[str, ...],
    target: JobOptions,
    printed: options.PrintOptions,
) -> None:
    """Shows what a job would have cost on other instance types.

    The job's measured use plus 20% is compared with each type. The cheapest that fit are shown, and
    how many are refused for which reason; --output json has every type. Reads only, with your own
    credentials; nothing is written anywhere.
    """
    if (job is None) == (path is None):
        raise click.UsageError("name one job, or one file with --recording")
    for name in types:
        if name not in packaged.instance_types():
            perhaps = did_you_mean(name, packaged.instance_types())
            raise BadUsage(f"{name} is not in the catalogue of instance types{perhaps}")
    if path is not None:
        run = _measure_recording(path)
    else:
        account = live.LiveAccount(target.profile, target.region, warn=print_message)
        run = account.measure(job or "", target.kind, target.policy)
    run = replace(
        run,
        market=with_own_prices(run.market, target.policy.discounts, pricing_day(run.job, run.now)),
    )
    printed.print_document(what_if_document(run, types), candidates.show)


def _measure_recording(path: Path) -> MeasuredJob:
    recorded = recording.read(path)
    if not isinstance(recorded, recording.Recording):
        jobs = [measure_recording(child).job for child in recorded.children]
        parents = (rollup_from_arn(job.parent.arn) for job in jobs if job.parent)
        kind = next((parent.kind for parent in parents if parent), JobKind.TUNING)
        raise BadUsage(live.choose_one_message([job.name for job in jobs], f"{path}", kind))
    try:
        return measure_recording(recorded)
    except MalformedData as error:
        raise BadRecording(f"{path}: {error}") from error


def what_if_document(run: MeasuredJob, types: tuple[str, ...]) -> dict[str, Any]:
    """The document of --output json; unknown values are null, types that fit come first."""
    run = replace(run, market=run.market.relative_to(run.job))
    reason = resize_refusal(run.job, run.market)
    resized = None
    if reason is None:
        resized = resize(run.job, run.usage, run.market, type_names=types or None)
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
        "needs": _needs_document(resized) if resized else None,
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
        "usd": round_usd(billed.total_usd),
        "basis": billed.basis,
        "missing": list(billed.missing),
        "estimated": list(billed.estimated),
    }


def _needs_document(resized: Resize) -> Mapping[str, Any]:
    """The busiest host's peaks plus headroom; an unknown need is null, with its reason."""
    needs = {
        "vcpu": resized.demand.vcpu,
        "memory_gib": resized.demand.memory_gib,
        "gpus": resized.demand.gpus,
        "gpu_memory_gib": resized.demand.gpu_memory_gib,
    }
    busy = resized.demand.busiest_gpu_share
    return {name: _amount(need) for name, need in needs.items()} | {
        "gpu_busy_percent": None if busy is None else busy * 100,
        "unknown": {
            name: need.unknown_because for name, need in needs.items() if need.unknown_because
        },
    }


def _amount(need: ResourceNeed) -> Decimal | None:
    return None if need.needed is None else Decimal(str(round(need.needed, 2)))


def _candidate(candidate: Candidate, resized: Resize, job: Job) -> dict[str, Any]:
    saves, at_best, hours = (
        resized.saving_usd(candidate),
        resized.best_saving_usd(candidate),
        _hours(job),
    )
    ends = None if saves is None or at_best is None else sorted((saves, at_best))
    counted = candidate.runtime_factor.counted if candidate.runtime_factor else None
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
        "estimated": candidate.has_estimated_rate,
        "fits": candidate.refusal is None,
        "feasible_unpriced": candidate.feasible_unpriced,
        "constraint": candidate.refusal.constraint.value if candidate.refusal else None,
        "reason": candidate.refusal.reason if candidate.refusal else None,
        "assumption": candidate.runtime_factor.explanation if candidate.runtime_factor else None,
        "times_as_long": counted,
        "times_as_long_at_best": candidate.runtime_factor.best
        if candidate.runtime_factor
        else None,
        "hours": None if hours is None or counted is None else round_usd(hours * counted),
        "usd": round_usd(candidate.usd),
        "saving_usd": round_usd(saves),
        "saving_range_usd": [round_usd(end) for end in ends] if ends else None,
        "break_even_times_as_long": round_usd(candidate.break_even_factor),
    }


def _hours(job: Job) -> Decimal | None:
    """Billed wall-clock hours of each instance."""
    seconds, _ = billed_seconds(job)
    return None if seconds is None else round_usd(seconds / _HOUR_S)
