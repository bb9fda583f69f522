"""Facts about a bill besides its lines: kind of prices, Spot saving, and what is not included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.bill.bill import Bill, bill
from sageaudit.domain.job.job import Job, Phase, Purchase, sum_if_complete
from sageaudit.domain.money import format_rate, format_usd
from sageaudit.domain.prices.market import Market, PriceKind
from sageaudit.structs import replace

CHECKPOINTS_FROM_S = 3600
"""A run of at most this many seconds loses little if it starts again. AWS sets the same limit for
MaxWaitTimeInSeconds of built-in algorithms without checkpoints."""
_ZERO = Decimal(0)

NOT_INCLUDED_NOTE = "not included: S3, FSx, EFS, ECR, NAT, data transfer, CloudWatch, KMS"
SAVINGS_PLAN_NOTE = (
    "a Savings Plan is paid used or not: these are not its rates, and the cash effect depends on"
    " its utilisation"
)
PREPAID_ESTIMATE_PREFIX = "its value on demand: "
"""The beginning of a note that the value of prepaid capacity is at an estimated rate."""
_KIND_PRIORITY: tuple[PriceKind, ...] = ("estimate", "own", "list")
"""A bill's `price_kind` is the first of these kinds that one of its rates has."""
AMORTISED_NOTE = (
    "amortised rates count a Savings Plan's cost, which is paid used or not: the cash effect"
    " depends on its utilisation"
)
_ECR = re.compile(
    r"\A\d{12}\.dkr[.-]ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com|on\.aws)"
)


def lacks_checkpoints(job: Job) -> bool:
    """Returns whether a run of over `CHECKPOINTS_FROM_S` seconds shows no checkpoints."""
    return restarts_from_scratch(job) and (job.elapsed_s or _ZERO) > CHECKPOINTS_FROM_S


def restarts_from_scratch(job: Job) -> bool:
    """Returns whether the run shows no checkpoints, so that an interruption loses all work."""
    return not (job.checkpointed or job.hints.own_checkpoints)


class Attempts(Struct, frozen=True):
    """The attempts of an interrupted run.

    `training_s`: the training seconds of all attempts. `repeated_s`: the training seconds before
    the last attempt. `max_repeated_share`: `repeated_s` as a share (0..1) of all billed phases.
    `min_repeated_share`: the billed seconds beyond the last attempt, as a share of all billed
    seconds.
    """

    training_s: Decimal
    repeated_s: Decimal
    min_repeated_share: Decimal
    max_repeated_share: Decimal


def attempts(job: Job) -> Attempts | None:
    """Returns the attempts; None if no training was interrupted, or if seconds are unknown."""
    last_s, training_s = last_attempt_s(job), job.phase_s("Training")
    phases_s = job.billed_phases_s
    if last_s is None or not training_s or not phases_s or not job.billable_s:
        return None
    last_training_s = sum(
        (p.seconds or _ZERO for p in _last_attempt_phases(job) if p.name == "Training"), _ZERO
    )
    repeated_s = training_s - last_training_s
    if repeated_s <= 0:
        return None
    min_share = max(job.billable_s - last_s, _ZERO) / job.billable_s
    max_share = repeated_s / phases_s
    return Attempts(training_s, repeated_s, min(min_share, max_share), max_share)


def last_attempt_s(job: Job) -> Decimal | None:
    """Returns the seconds in which instances worked after the last interruption.

    They include the download. None without an interruption, or if a phase is unknown.
    """
    seconds = [
        phase.seconds for phase in _last_attempt_phases(job) if phase.billed or phase.is_repeated
    ]
    return sum_if_complete(seconds) if seconds else None


def _last_attempt_phases(job: Job) -> tuple[Phase, ...]:
    interruptions = [index for index, phase in enumerate(job.phases) if phase.name == "Interrupted"]
    return job.phases[interruptions[-1] :] if interruptions else ()


class BillFacts(Struct, frozen=True):
    """Facts about one bill.

    `price_kind`: "estimate" if any rate is one; None without rates. `spot_saved_usd`: what the
    unbilled seconds would have cost. None for a run that restarted from scratch, because an
    on-demand run would be shorter. `prepaid_value_usd`: what a training plan's capacity would have
    cost on demand.
    """

    price_kind: PriceKind | None
    spot_saved_usd: Decimal | None
    prepaid_value_usd: Decimal | None
    notes: tuple[str, ...]


def facts(job: Job, job_bill: Bill, market: Market, *, savings_plan: bool) -> BillFacts:
    """Returns the facts of one bill.

    `savings_plan`: the policy says that the account has a Savings Plan.
    """
    kinds = {line.rate.kind for line in job_bill.lines if line.rate is not None}
    on_demand_bill = None
    if job.purchase is Purchase.TRAINING_PLAN:
        on_demand_bill = bill(replace(job, purchase=Purchase.ON_DEMAND), market)
    return BillFacts(
        price_kind=next((kind for kind in _KIND_PRIORITY if kind in kinds), None),
        spot_saved_usd=_spot_saved(job, job_bill),
        prepaid_value_usd=None if on_demand_bill is None else on_demand_bill.compute_usd,
        notes=tuple(_notes(job, job_bill, on_demand_bill, market, savings_plan=savings_plan)),
    )


def image_region(image: str | None) -> str | None:
    """Returns the region of an image's ECR registry; None for any other registry."""
    match = _ECR.match(image or "")
    return match["region"] if match else None


def _spot_saved(job: Job, job_bill: Bill) -> Decimal | None:
    """Returns what Spot saved, in USD; None if unknown, or if the job is not on Spot.

    Source: AWS, managed spot training: savings = 1 - billable / training seconds. Waits and
    repeated downloads do not count, because an on-demand run has neither.
    """
    if job.purchase is not Purchase.SPOT or job.billable_s is None or job.elapsed_s is None:
        return None
    if job.interruptions and restarts_from_scratch(job):
        return None
    on_demand_s = job.billed_phases_s if job.interruptions else job.elapsed_s
    if on_demand_s is None:
        return None
    rates = [line.rate for line in job_bill.lines if line.item == "compute"]
    costs = [rate.usd * group.count for group, rate in zip(job.groups, rates, strict=False) if rate]
    if not costs or len(costs) < len(rates):
        return None
    unbilled_s = max(on_demand_s - job.billable_s, Decimal(0))
    return sum(costs, Decimal(0)) * unbilled_s / 3600


def _spot_restart_notes(job: Job, job_bill: Bill, market: Market) -> Iterator[str]:
    last_s, spot_usd = last_attempt_s(job), job_bill.compute_usd
    if (
        job.purchase is not Purchase.SPOT
        or not restarts_from_scratch(job)
        or job.status != "Completed"
    ):
        return
    uninterrupted_job = replace(
        job, purchase=Purchase.ON_DEMAND, training_s=last_s, billable_s=last_s
    )
    usd = bill(uninterrupted_job, market).compute_usd if last_s else None
    if spot_usd is not None and usd is not None:
        yield (
            f"interrupted without checkpoints: spot cost {format_usd(spot_usd)}, and one "
            f"uninterrupted run on demand would have cost about {format_usd(usd)}"
        )


def _billed_seconds_note(job: Job) -> str:
    """Returns why a job has more billable seconds than training seconds.

    In one attempt, the billable seconds are at most the training seconds. AWS does not document how
    it counts either figure over several attempts.
    """
    attempts_known = bool(job.phases) or job.purchase is not Purchase.SPOT
    if attempts_known and not job.has_restarted:
        return "AWS's figures contradict each other"
    return "AWS does not say whether training seconds count every attempt"


def _notes(
    job: Job, job_bill: Bill, on_demand_bill: Bill | None, market: Market, *, savings_plan: bool
) -> Iterator[str]:
    yield from _spot_restart_notes(job, job_bill, market)
    if on_demand_bill is not None:
        yield from (f"{PREPAID_ESTIMATE_PREFIX}{estimate}" for estimate in on_demand_bill.estimated)
    if job.billable_s and job.training_s and job.billable_s > job.training_s:
        yield f"billable seconds exceed training seconds: {_billed_seconds_note(job)}"
    for line in job_bill.lines:
        item = line.item.replace("_", " ")
        if line.rate is not None and line.rate.other_usd is not None:
            low, high = sorted((line.rate.usd, line.rate.other_usd))
            ends_text = f"{format_rate(low)} and {format_rate(high)}"
            yield f"{item}: between two known prices, {ends_text} an hour"
        elif line.rate is not None and line.rate.price_age == "before_known":
            age_note = f"the earliest known price is of {line.rate.as_of}"
            yield f"{item}: {age_note}, after the job"
    if savings_plan and job_bill.lines:
        rates = [line.rate for line in job_bill.lines if line.rate is not None]
        amortised = any(rate.learned_basis == "amortised" for rate in rates)
        yield AMORTISED_NOTE if amortised else SAVINGS_PLAN_NOTE
    for name in job.custom_rules:
        yield f"custom Debugger rule {name} runs as a processing job of its own, billed there"
    region = image_region(job.image)
    if region and job.region and region != job.region:
        yield f"the image is pulled from {region}: its transfer is billed, but not included here"
    if job_bill.lines:
        yield NOT_INCLUDED_NOTE
