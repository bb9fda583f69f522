"""A cheaper instance type certainly holds the run.

What it checks: All types are ranked together: the same GPU in another size, fewer GPUs, another
    GPU, none. One of them is cheaper by the hour, offers no less of what the run used, and costs
    less even if the run takes as long as it can there.
Why it costs: The dearer type gives the run nothing that it uses.
Saving: Derived: the run billed on the type that saves most, at its longest run time; if it may be
    shorter, a range is shown. Never (1 - utilisation) x cost. Possible, if the family's runs cost
    less on a type that is dearer by the hour. A family is advised one type: of those that hold most
    of its newest ten runs, the cheapest at the slowest of them. It stays until another saves a
    tenth more.
When it is wrong: One-minute means hide short peaks. A vCPU of one family counts as one of another.
    The page cache gains from memory that no metric shows as used.
What to do: Take the type, first for one run. This rule reports only what no other rule explains: a
    well used GPU on a host that is too large, or a busy CPU with more memory than it needs.
Sources: Compute Optimizer: P99.5 with 20% headroom. Bounds of run times: domain/resize/moved_run.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type, no_other_type

LEFT_TO_OLD_GENERATION = api.NotApplicable("its type is of an old generation: see old-generation")


@api.rule(
    id="SA306",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(api.HEADROOM,),
    pools=True,
    not_applicable=(no_other_type, api.never_started, api.free),
)
def check(case: api.JobCase) -> api.Outcome:
    """Needs no metric: what does not shrink holds, recorded or not."""
    best = best_type(case)
    if best.run is None:
        return api.Unknown("not_replayable", best.why)
    if best.first is None:
        unrecorded = next((why for _, why in best.run.unrecorded), None)
        return api.Unknown("not_recorded", unrecorded) if unrecorded else api.Clear()
    today, other = best.run.today, best.first.type
    if today.legacy and not other.legacy:
        return LEFT_TO_OLD_GENERATION
    minutes = case.usage.minutes
    over = f" over {case.span(minutes)}" if case.usage.series else ""
    fits = f"{other.name} is large enough for what {case.job.instances} used{over}."
    if best.first.cost_less:
        fits = f"Runs of its family cost less on {other.name} than on {today.name}."
    return api.derived(
        fits,
        {
            "instance_type": today.name,
            "cheaper_type": other.name,
            "vcpu": today.vcpu,
            "new_vcpu": other.vcpu,
            "memory_gib": today.memory_gib,
            "new_memory_gib": other.memory_gib,
            "times_as_long": best.first.change.slower,
            "active_minutes": round(minutes),
        },
        **best.details(case),
    )
