"""All the GPU work of an instance fits on fewer of its GPUs.

What it checks: On an instance with several GPUs: the busiest host's P99.5 of GPU use and of GPU
    memory, each summed over its GPUs, fit on at most half of them.
Why it costs: All GPUs are billed; code that is not distributed works on the first one.
Saving: Derived: the run on the type that certainly saves most. If the work of k GPUs, each busy for
    a share u of the time, moves to one GPU, the run takes at most 1 + u (k - 1) times as long. That
    is counted. But if the sum stays at the limit of one GPU and the job gives no sign of a
    distribution, one GPU did the work, and the same run time is counted. If the job is known to use
    all GPUs (DDP, Horovod, SMP and the like), such a move is only a possible saving. Without a type
    that certainly saves there is no figure.
When it is wrong: CloudWatch has only the sum of an instance's GPUs: one at 80% and four at 20% look
    alike. So this says that the work fits on fewer, never that a GPU was unused. One-minute means
    hide peaks. Work that is spread over all GPUs may take longer on fewer.
What to do: Spread the work over all GPUs (SageMaker's data parallel library, SMDDP, on p4d and
    p4de, else PyTorch DDP with one process for each GPU), or give each of them more of it: a larger
    batch. Or take the smaller size, where one holds the run.
Sources: Jobstats and Job Defense Shield: n of m GPUs unused. cloud-finops-skills, multi-GPU
    underutilised: one above 30%, others under 5%. SMDDP's types: SageMaker guide, p4d.24xlarge and
    p4de.24xlarge. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

from sageaudit.rules import api
from sageaudit.rules.types.another_type import best_type
from sageaudit.rules.utilisation.gpus import distribute, gpus_needed, left_to_gpu_idle, one_gpu

FITS_ON = api.Threshold(
    "fits_on_at_most", 50, "percent of the GPUs", "sizes have 8, 4, 2 and 1 GPUs"
)

SUMS = "CloudWatch shows only the sum of an instance's GPUs, not each one."
DISTRIBUTE = "Spread the work over all GPUs instead."
MORE_WORK = "Give each GPU more work instead: a larger batch."


@api.rule(
    id="SA204",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(FITS_ON, api.HEADROOM),
    needs=(api.Metric.GPU, api.Metric.GPU_MEMORY),
    pools=True,
    finds_waste=True,
    coarsest_period_s=300,
    not_applicable=(api.mixed_types, one_gpu),
    subsumes={"cheaper-type", "gpu-underused", "trainium-candidate"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Counts GPUs by use and by memory."""
    if left := left_to_gpu_idle(case):
        return left
    today = case.today
    need = gpus_needed(case.usage, today)
    if isinstance(need, api.Unknown):
        return need
    if 100 * need.fits_on > case.limit(FITS_ON) * today.gpus:
        return api.Clear()
    best, spread = best_type(case), distribute(case.job, today)
    more = MORE_WORK if case.job.hints.ranks else DISTRIBUTE
    details = best.details(case, SUMS if best.first else f"{SUMS} {more}")
    if best.first is None:
        details["fix"] = spread
    elif spread:
        details["alternatives"] = (*details.get("alternatives", ()), spread)
    on = "one" if need.fits_on == 1 else str(need.fits_on)
    return api.derived(
        f"The work of the {today.gpus} GPUs over {case.span(case.usage.minutes)} on "
        f"{case.job.instances} fits on {on} of them (at its peak {_gpus(need.gpus)} "
        f"GPUs and {need.memory_gib:.1f} GiB of GPU memory).",
        {
            "gpus": today.gpus,
            "gpus_needed": round(need.gpus, 2),
            "gpu_memory_needed_gib": round(need.memory_gib, 1),
            "memory_of_each_gpu_gib": today.gpu_memory_gib,
            "fits_on_gpus": need.fits_on,
            "active_minutes": round(case.usage.minutes),
        },
        **details,
    )


def _gpus(needed: float) -> str:
    """Never "0.0": a GPU that works a little works."""
    tenths = f"{needed:.1f}"
    return "under 0.1" if tenths == "0.0" else tenths
