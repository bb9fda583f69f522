"""The instances are of an old generation, and a newer one may do the work for less.

What it checks: The catalogue marks the type's family as legacy: m4, c4, p2, p3, p3dn.
Why it costs: A newer generation has faster vCPUs or GPUs, usually at a lower hourly rate.
Saving: Derived, if prices are known: the run on the type that certainly saves most. The longest run
    time is counted, and the range is shown.
    - A CPU type takes the same time. A GPU type may take longer, by the ratio that was measured on
      training work (docs/evidence/gpu-throughput.md).
    - Metrics are needed only for resources of which the new type has less.
When it is wrong: Code that was built for the old GPU must be built again for the new one. There is
    no finding if the image works on no newer type, because of its CUDA version or its algorithm.
    Newer types that may fit are named without a figure if one of these is true:
    - The old GPUs have NVLink and the new ones do not.
    - The run has several instances that may exchange data.
    - No ratio was measured.
    - The new type has less of a resource that was not recorded.
What to do: Try a current type. An image with a recent framework runs on it without changes.
Sources: The catalogue's own table of legacy families and their successors (`legacy_family`,
    `successors`), with EC2's sizes. GPU ratios: docs/evidence/gpu-throughput.md.
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
    not_applicable=(type_fixed_reason, api.never_started_reason, api.free_reason),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(*api.TYPE_PARAMETERS, *api.IMAGE_PATHS.values()),
)
def check(case: api.JobCase) -> api.Outcome:
    """Finds old types in the catalogue. Judges their successors by prices and recorded use."""
    groups = case.job.groups
    name = groups[0].instance_type if groups else None
    current_type = case.market.types.get(name) if name else None
    if current_type is None:
        reason = f"{name} is not in the catalogue" if name else "the instance type is not known"
        return api.Unknown("type_unknown", reason)
    if not current_type.is_legacy:
        return api.Clear()
    recommendation = best_type(case, include_legacy=False)
    new_type = recommendation.first.type if recommendation.first else None
    if new_type is None and is_image_unfit_for_successors(case, current_type):
        return api.Clear()
    hint = (
        _short_run_text(case, recommendation)
        if new_type
        else successors_sentence(case, current_type, recommendation.refused_types)
    )
    details = recommendation.details(case, hint)
    current_rate, new_rate = (
        hourly_rate(case, current_type),
        hourly_rate(case, new_type) if new_type else None,
    )
    verb_text = "It ran on" if case.duration_basis is None else "It asks for"
    rates_text = (
        f"{rate_text(new_rate)} an hour instead of {rate_text(current_rate)}"
        if current_rate and new_rate
        else ""
    )
    time_factor = recommendation.first.change.time_factor if recommendation.first else Decimal(1)
    generation_text = ", an old generation"
    if new_type and rates_text:
        generation_text += f": {new_type.name} costs {rates_text}"
    if new_type and rates_text and new_type.gpus and time_factor >= MIN_SHOWN_FACTOR:
        time_text = (
            f"Its GPU is not faster: the saving assumes {time_factor:.2f} times the run time"
        )
        generation_text = f": {new_type.name} costs {rates_text}. {time_text}"
    return api.derived_saving(
        f"{verb_text} {case.job.instances}{generation_text}.",
        {
            "instance_type": current_type.name,
            "successor": new_type.name if new_type else None,
            "usd_per_hour": current_rate.usd if current_rate else None,
            "successor_usd_per_hour": new_rate.usd if new_rate else None,
        },
        **details,
    )


def _short_run_text(case: api.JobCase, recommendation: TypeRecommendation) -> str:
    """Returns a sentence if the run is too short to choose a smaller type, else ""."""
    lines = case.active_usage.series.get(api.Metric.GPU, {}).values()
    points = [value for line in lines for value in line.present]
    if (
        recommendation.resize is None
        or not recommendation.resize.demand.gpus.unknown_because
        or not points
    ):
        return ""
    if case.active_usage.minutes >= MIN_ACTIVE_MINUTES:
        return ""
    return (
        f"In its {case.active_usage.minutes:.0f} active minutes the GPU averaged"
        f" {api.mean(points):.0f}%: "
        "too few to choose a smaller type by."
    )
