"""What a job would have cost on other instance types, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from sageaudit.adapters.prices import packaged
from sageaudit.domain.audit.finding_document import round_usd
from sageaudit.domain.bill.bill import Bill, bill, billed_seconds
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.nearest import did_you_mean
from sageaudit.domain.policy.discounts import with_own_prices
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.prices.known_prices import pricing_day
from sageaudit.domain.resize.candidate import Candidate
from sageaudit.domain.resize.resize import HEADROOM_PERCENT, Resize, resize, resize_refusal
from sageaudit.domain.usage.demand import ResourceNeed
from sageaudit.errors import BadUsage
from sageaudit.structs import replace
from sageaudit.workflows.recordings.jobs import MeasuredJob

_HOUR_S = Decimal(3600)
_PLAN = "Its training plan is prepaid: another type would be billed on demand on top of the plan."


def check_types(types: Iterable[str]) -> None:
    """Raises BadUsage for an instance type that is not in the catalogue."""
    for name in types:
        if name not in packaged.instance_types():
            suggestion = did_you_mean(name, packaged.instance_types())
            raise BadUsage(f"{name} is not in the catalogue of instance types{suggestion}")


def at_own_prices(run: MeasuredJob, policy: Policy) -> MeasuredJob:
    """Returns the job with a market that has the policy's discounts and own rates."""
    day = pricing_day(run.job, run.now)
    return replace(run, market=with_own_prices(run.market, policy.discounts, day))


def what_if_document(run: MeasuredJob, types: tuple[str, ...]) -> dict[str, Any]:
    """Returns the document of --output json. Types that fit come first; unknown values are null."""
    run = replace(run, market=run.market.relative_to(run.job))
    refusal = resize_refusal(run.job, run.market)
    resized = None
    if refusal is None:
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
        "current": _current_document(
            run.job, resized.bill if resized else bill(run.job, run.market)
        ),
        "headroom_percent": HEADROOM_PERCENT,
        "needs": _needs_document(resized) if resized else None,
        "impossible": refusal,
        "notes": [_PLAN] if run.job.purchase is Purchase.TRAINING_PLAN else [],
        "candidates": [
            _candidate_document(candidate, resized, run.job) for candidate in resized.candidates
        ]
        if resized
        else [],
    }


def _current_document(job: Job, job_bill: Bill) -> dict[str, Any]:
    return {
        "instances": job.instances,
        "hours": _hours(job),
        "usd": round_usd(job_bill.total_usd),
        "basis": job_bill.basis,
        "missing": list(job_bill.missing),
        "estimated": list(job_bill.estimated),
    }


def _needs_document(resized: Resize) -> Mapping[str, Any]:
    """Returns the busiest host's peaks plus headroom. An unknown need is null, with its reason."""
    needs = {
        "vcpu": resized.demand.vcpu,
        "memory_gib": resized.demand.memory_gib,
        "gpus": resized.demand.gpus,
        "gpu_memory_gib": resized.demand.gpu_memory_gib,
    }
    busiest_share = resized.demand.busiest_gpu_share
    return {name: _amount(need) for name, need in needs.items()} | {
        "gpu_busy_percent": None if busiest_share is None else busiest_share * 100,
        "unknown": {
            name: need.unknown_because for name, need in needs.items() if need.unknown_because
        },
    }


def _amount(need: ResourceNeed) -> Decimal | None:
    return None if need.needed is None else Decimal(str(round(need.needed, 2)))


def _candidate_document(candidate: Candidate, resized: Resize, job: Job) -> dict[str, Any]:
    saving_usd, best_saving_usd, hours = (
        resized.saving_usd(candidate),
        resized.best_saving_usd(candidate),
        _hours(job),
    )
    range_ends = (
        None
        if saving_usd is None or best_saving_usd is None
        else sorted((saving_usd, best_saving_usd))
    )
    counted_factor = candidate.runtime_factor.counted if candidate.runtime_factor else None
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
        "times_as_long": counted_factor,
        "times_as_long_at_best": candidate.runtime_factor.best
        if candidate.runtime_factor
        else None,
        "hours": None
        if hours is None or counted_factor is None
        else round_usd(hours * counted_factor),
        "usd": round_usd(candidate.usd),
        "saving_usd": round_usd(saving_usd),
        "saving_range_usd": [round_usd(end) for end in range_ends] if range_ends else None,
        "break_even_times_as_long": round_usd(candidate.break_even_factor),
    }


def _hours(job: Job) -> Decimal | None:
    """Returns the billed wall-clock hours of each instance."""
    seconds, _ = billed_seconds(job)
    return None if seconds is None else round_usd(seconds / _HOUR_S)
