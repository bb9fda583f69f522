"""A cheaper instance type certainly holds the run.

What it checks: All types are ranked together: the same GPU in another size, fewer GPUs, another
    GPU, none. One of them is cheaper by the hour, offers no less of what the run used, and costs
    less even if the run takes as long as it can there.
Why it costs: The more expensive type gives the run nothing that it uses.
Saving: Derived: the run billed on the type that saves most, at its longest run time; if it may be
    shorter, a range is shown. Never (1 - utilisation) x cost. Possible, if the family's runs cost
    less on a type that costs more by the hour. A family is recommended one type: of those that fit
    most of its newest ten runs, the cheapest at the slowest of them. It stays until another saves a
    tenth more.
When it is wrong: One-minute means hide short peaks. A vCPU of one family counts as one of another.
    The page cache gains from memory that no metric shows as used.
What to do: Take the type, first for one run. This rule reports only what no other rule explains: a
    well used GPU on a host that is too large, or a busy CPU with more memory than it needs.
Sources: Compute Optimizer: P99.5 with 20% headroom. Bounds of run times: domain/resize/moved_run.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type, type_fixed_reason

COVERED_BY_OLD_GENERATION = api.NotApplicable(
    "its type is of an old generation: see old-generation"
)


@api.rule(
    id="SA306",
    scope=api.JobCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(api.HEADROOM,),
    can_pool_runs=True,
    not_applicable=(type_fixed_reason, api.never_started, api.free),
)
def check(case: api.JobCase) -> api.Outcome:
    """Needs no metric: what does not shrink holds, recorded or not."""
    best = best_type(case)
    if best.resize is None:
        return api.Unknown("not_replayable", best.reason)
    if best.first is None:
        unrecorded = next((why for _, why in best.resize.unrecorded_refusals), None)
        return api.Unknown("not_recorded", unrecorded) if unrecorded else api.Clear()
    today, other = best.resize.current_type, best.first.type
    if today.is_legacy and not other.is_legacy:
        return COVERED_BY_OLD_GENERATION
    minutes = case.active_usage.minutes
    over = f" over {case.minutes_text(minutes)}" if case.active_usage.series else ""
    fits = f"{other.name} is large enough for what {case.job.instances} used{over}."
    if best.first.was_cheaper_per_run:
        fits = f"Runs of its family cost less on {other.name} than on {today.name}."
    return api.derived_saving(
        fits,
        {
            "instance_type": today.name,
            "cheaper_type": other.name,
            "vcpu": today.vcpu,
            "new_vcpu": other.vcpu,
            "memory_gib": today.memory_gib,
            "new_memory_gib": other.memory_gib,
            "times_as_long": best.first.change.time_factor,
            "active_minutes": round(minutes),
        },
        **best.details(case),
    )
