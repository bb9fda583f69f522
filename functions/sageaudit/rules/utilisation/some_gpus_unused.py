"""All the GPU work of an instance fits on fewer of its GPUs.

## What it checks
On an instance with several GPUs: the busiest host's P99.5 of GPU use and of GPU memory, each summed
over its GPUs and with 20% above it, fit on at most half of them.

## Why it costs
All GPUs of an instance are billed; code that is not distributed works on the first one.

## Saving
Derived: the same seconds on a smaller size with fewer of the same GPU that holds P99.5 plus 20% of
all that was used. Without such a size: no figure.

## When it is wrong
CloudWatch has only the sum of an instance's GPUs: one at 80% and four at 20% look alike, so this
says that the work fits on fewer, never that a GPU was unused. One-minute means hide peaks. Work
that is spread over all GPUs may take longer on fewer.

## What to do
Take the smaller size. Or distribute the work: SageMaker's data parallel library (SMDDP) on p4d and
p4de, else PyTorch DDP with one process for each GPU.

## Sources
Jobstats and Job Defense Shield: n of m GPUs unused. cloud-finops-skills, multi-GPU underutilised:
one above 30%, others under 5%. SMDDP's supported types: SageMaker guide, p4d.24xlarge and
p4de.24xlarge. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    NotApplicable,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.bill.resize import Resize, impossible, resize
from sageaudit.domain.job.family import repository
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.request_paths import TYPE_PATHS
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import Metric
from sageaudit.rules.card import HEADROOM, JobCase, Threshold, rule
from sageaudit.rules.utilisation.gpu_underused import never_worked, unmovable

FITS_ON = Threshold(
    "fits_on_at_most", 50, "percent of the GPUs", "sizes have 8, 4, 2 and 1 GPUs", "our choice"
)
_SMDDP_FAMILIES = frozenset({"p4d", "p4de"})


@dataclass(frozen=True, slots=True)
class _Need:
    """What the busiest host needs, headroom included, and how many GPUs hold it."""

    gpus: float
    memory_gib: float
    fits_on: int


def _not_applicable(case: JobCase) -> str | None:
    types = [case.market.types.get(group.instance_type) for group in case.job.groups]
    if len(types) > 1:
        return "its instances are of several types"
    return "its instances have one GPU" if types and types[0] and types[0].gpus == 1 else None


@rule(
    id="SA204",
    scope=JobCase,
    kinds=set(TYPE_PATHS),
    thresholds=(FITS_ON, HEADROOM),
    needs=(Metric.GPU, Metric.GPU_MEMORY),
    coarsest_period_s=300,
    not_applicable=(_not_applicable,),
    subsumes={"gpu-underused", "trainium-candidate"},
)
def check(case: JobCase) -> Outcome:
    """Replays the run on smaller sizes with fewer of the same GPU."""
    if never_worked(case.whole):
        return NotApplicable("the GPU did nothing: gpu-idle speaks of it")
    if why := impossible(case.job, case.market):
        return Unknown("not_replayable", why)
    resized = _resize(case)
    today = resized.today
    need = _need(resized)
    if isinstance(need, Unknown):
        return need
    if 100 * need.fits_on > case.limit(FITS_ON) * today.gpus:
        return Clear()
    to = None if unmovable(case) else _smaller(resized)
    spread = _distribute(case.job, today)
    move = (
        (Parameter(TYPE_PATHS[case.job.kind], today.name, to.type.name),) if to is not None else ()
    )
    return Found(
        confidence=Confidence.DERIVED if to else Confidence.HEURISTIC,
        bucket=Bucket.AVOIDABLE if to else Bucket.NONE,
        summary=(
            f"What {today.gpus} GPUs did over {case.usage.minutes:.0f} active minutes on "
            f"{case.job.instances} fits on {need.fits_on}: with headroom it needs at most "
            f"{need.gpus:.1f} GPUs and {need.memory_gib:.1f} GiB of their memory."
        ),
        evidence={
            "gpus": today.gpus,
            "gpus_needed": round(need.gpus, 2),
            "gpu_memory_needed_gib": round(need.memory_gib, 1),
            "memory_of_each_gpu_gib": today.gpu_memory_gib,
            "fits_on_gpus": need.fits_on,
            "active_minutes": round(case.usage.minutes),
        },
        fix=move or spread,
        alternatives=(spread,) if move and spread else (),
        change=to.change if to else None,
        caution=_caution(case, resized, to),
    )


def _resize(case: JobCase) -> Resize:
    """On sizes with fewer of today's GPU."""
    today = case.market.types[case.job.groups[0].instance_type]
    same = (today.gpu_model, today.gpu_memory_gib)
    return resize(
        case.job,
        case.usage,
        case.market,
        headroom_percent=Decimal(str(case.limit(HEADROOM))),
        only=lambda kind: (
            (kind.gpu_model, kind.gpu_memory_gib) == same and 0 < kind.gpus < today.gpus
        ),
    )


def _need(resized: Resize) -> _Need | Unknown:
    gpus, memory = resized.need.gpus, resized.need.gpu_memory_gib
    each = resized.today.gpu_memory_gib
    if gpus.needed is None or memory.needed is None or not each:
        unknown = f"the memory of a {resized.today.gpu_model} is not known"
        return Unknown("not_recorded", gpus.unknown or memory.unknown or unknown)
    fits_on = max(math.ceil(gpus.needed), math.ceil(memory.needed / float(each)), 1)
    return _Need(gpus.needed, memory.needed, fits_on)


def _smaller(resized: Resize) -> Candidate | None:
    for one in resized.worthwhile:
        if not one.type.legacy or resized.today.legacy:
            return one
    return None


def _distribute(job: Job, today: InstanceType) -> tuple[Parameter, ...]:
    """What launches one process a GPU in AWS's own PyTorch containers, where nothing does yet."""
    pytorch = "pytorch" in (repository(job.image) or "")
    if job.kind is not JobKind.TRAINING or job.hints.distribution or not pytorch:
        return ()
    if today.family not in _SMDDP_FAMILIES:
        return (Parameter("HyperParameters.sagemaker_torch_distributed_enabled", None, "true"),)
    return (
        Parameter("HyperParameters.sagemaker_distributed_dataparallel_enabled", None, "true"),
        Parameter("HyperParameters.sagemaker_instance_type", None, today.name),
    )


def _caution(case: JobCase, resized: Resize, to: Candidate | None) -> str:
    sums = "CloudWatch has only the sum of an instance's GPUs, and minute means hide peaks"
    if to is not None:
        return f"{to.because} {sums}: try it once."
    why = unmovable(case) or _why_none(resized)
    return f"No figure: {why}. {sums}. Or distribute the work over all of them."


def _why_none(resized: Resize) -> str:
    """The dearest cheaper size says what binds."""
    refused = [one for one in resized.candidates if one.refused and resized.cheaper(one)]
    if not refused or refused[-1].refused is None:
        return f"no cheaper size with fewer {resized.today.gpu_model} is priced here"
    return f"{refused[-1].type.name} is refused ({refused[-1].refused.reason})"
