"""Instances of an old generation, where a newer one does the work for less.

What it checks: The type's family is marked as legacy in the catalogue: m4, c4, p2, p3, p3dn.
Why it costs: A newer generation has faster vCPUs or GPUs, mostly at a lower hourly rate.
Saving: Derived, where prices are known: the run on the type that certainly saves most. A CPU type
    takes the same time. A GPU type may take longer, by the ratio that was measured on training work
    (docs/evidence/gpu-throughput.md): the longest run time is counted, the range shown. A resource
    needs a metric only if the new type has less of it.
When it is wrong: Code that was built for the old GPU must be built again for the new one. Newer
    types that may fit are named without a figure in four cases: the old GPUs have NVLink and the
    new ones do not; the run has several instances that may exchange data; no ratio was measured;
    the new type has less of a resource that was not recorded. There is no finding if the image
    works on none of them, because its CUDA is older than their GPUs, or its algorithm is not
    documented for them.
What to do: Try a current type that holds the run. An image with a recent framework runs on it as
    it is.
Sources: Editorial table of the catalogue (`legacy_family`, `successors`), whose sizes are EC2's.
    GPU ratios: docs/evidence/gpu-throughput.md.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.resize.candidate import MIN_SHOWN_FACTOR
from sageaudit.domain.usage.measurements import MIN_ACTIVE_MINUTES
from sageaudit.rules import api
from sageaudit.rules.types.another_type import (
    TypeRecommendation,
    best_type,
    hourly_rate,
    is_image_unfit_for_successors,
    rate_text,
    successors_sentence,
    type_fixed_reason,
)


@api.rule(
    id="SA301",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(api.HEADROOM,),
    can_pool_runs=True,
    not_applicable=(type_fixed_reason, api.never_started, api.free),
    request_severity=api.Severity.MEDIUM,
    required_parameters=api.TYPE_PARAMETERS,
)
def check(case: api.JobCase) -> api.Outcome:
    """The catalogue says what is old; prices and recorded use say what a successor is worth."""
    groups = case.job.groups
    name = groups[0].instance_type if groups else None
    today = case.market.types.get(name) if name else None
    if today is None:
        reason = f"{name} is not in the catalogue" if name else "the instance type is not known"
        return api.Unknown("type_unknown", reason)
    if not today.is_legacy:
        return api.Clear()
    best = best_type(case, include_legacy=False)
    newer = best.first.type if best.first else None
    if newer is None and is_image_unfit_for_successors(case, today):
        return api.Clear()
    named = (
        _short_run_text(case, best)
        if newer
        else successors_sentence(case, today, best.refused_types)
    )
    details = best.details(case, named)
    now, then = hourly_rate(case, today), hourly_rate(case, newer) if newer else None
    asks = "It ran on" if case.duration_basis is None else "It asks for"
    rates = f"{rate_text(then)} instead of {rate_text(now)} an hour" if now and then else ""
    times = best.first.change.time_factor if best.first else Decimal(1)
    old = ", an old generation"
    if newer and rates:
        old += f": {newer.name} costs {rates}"
    if newer and rates and newer.gpus and times >= MIN_SHOWN_FACTOR:
        gpu = f"a cheaper GPU, not a faster one (counted as {times:.2f} times as long)"
        old = f": {newer.name} has {gpu}, at {rates}"
    return api.derived_saving(
        f"{asks} {case.job.instances}{old}.",
        {
            "instance_type": today.name,
            "successor": newer.name if newer else None,
            "usd_per_hour": now.usd if now else None,
            "successor_usd_per_hour": then.usd if then else None,
        },
        **details,
    )


def _short_run_text(case: api.JobCase, best: TypeRecommendation) -> str:
    """What was recorded of the GPU in a run too short to choose a smaller type by; else empty."""
    lines = case.active_usage.series.get(api.Metric.GPU, {}).values()
    points = [value for line in lines for value in line.present]
    if best.resize is None or not best.resize.demand.gpus.unknown_because or not points:
        return ""
    if case.active_usage.minutes >= MIN_ACTIVE_MINUTES:
        return ""
    return (
        f"In its {case.active_usage.minutes:.0f} active minutes the GPU averaged"
        f" {api.mean(points):.0f}%: "
        "too few of them to choose a smaller type by."
    )
