"""All the GPU work of an instance fits on fewer of its GPUs.

What it checks: On an instance with several GPUs: the busiest host's P99.5 of GPU use and of GPU
    memory, each summed over its GPUs and with 20% above it, fit on at most half of them.
Why it costs: All GPUs are billed; code that is not distributed works on the first one.
Saving: Derived: the same run time on a smaller size with fewer of the same GPU that holds P99.5
    plus 20% of all that was used. Without such a size: no figure.
When it is wrong: CloudWatch has only the sum of an instance's GPUs: one at 80% and four at 20% look
    alike. So this says that the work fits on fewer, never that a GPU was unused. One-minute means
    hide peaks. Work that is spread over all GPUs may take longer on fewer.
What to do: Take the smaller size. Or distribute the work: SageMaker's data parallel library (SMDDP)
    on p4d and p4de, else PyTorch DDP with one process for each GPU.
Sources: Jobstats and Job Defense Shield: n of m GPUs unused. cloud-finops-skills, multi-GPU
    underutilised: one above 30%, others under 5%. SMDDP's types: SageMaker guide, p4d.24xlarge and
    p4de.24xlarge. Compute Optimizer: P99.5 with 20% headroom.
"""

from __future__ import annotations

from sageaudit.domain.bill.candidate import Candidate
from sageaudit.domain.bill.resize import Resize, impossible
from sageaudit.rules import api
from sageaudit.rules.types.another_type import cannot_move, cheaper, move, resized, why_none
from sageaudit.rules.utilisation.gpu_use import LEFT_TO_GPU_IDLE, never_worked
from sageaudit.rules.utilisation.several_gpus import (
    distribute,
    fewer_of_the_same,
    gpus_needed,
    one_gpu,
)

FITS_ON = api.Threshold(
    "fits_on_at_most", 50, "percent of the GPUs", "sizes have 8, 4, 2 and 1 GPUs", "our choice"
)


@api.rule(
    id="SA204",
    scope=api.JobCase,
    kinds=api.ON_INSTANCES,
    thresholds=(FITS_ON, api.HEADROOM),
    needs=(api.Metric.GPU, api.Metric.GPU_MEMORY),
    finds_waste=True,
    coarsest_period_s=300,
    not_applicable=(api.mixed_types, one_gpu),
    subsumes={"gpu-underused", "trainium-candidate"},
)
def check(case: api.JobCase) -> api.Outcome:
    """Compares with smaller sizes that have fewer of the same GPU."""
    if never_worked(case.whole):
        return LEFT_TO_GPU_IDLE
    if reason := impossible(case.job, case.market):
        return api.Unknown("not_replayable", reason)
    today = case.market.types[case.job.groups[0].instance_type]
    run = resized(case, lambda other: fewer_of_the_same(other, today))
    need = gpus_needed(run)
    if isinstance(need, api.Unknown):
        return need
    if 100 * need.fits_on > case.limit(FITS_ON) * today.gpus:
        return api.Clear()
    smaller = None if cannot_move(case) else next(cheaper(run), None)
    spread = distribute(case.job, today)
    details = move(case, smaller, _caution(case, run, smaller))
    if smaller is None:
        details["fix"] = spread
    elif spread:
        details["alternatives"] = (spread,)
    on = "one" if need.fits_on == 1 else str(need.fits_on)
    return api.derived(
        f"The work of all {today.gpus} GPUs over {case.usage.minutes:.0f} active minutes on "
        f"{case.job.instances} fits on {on} (with headroom {need.gpus:.1f} GPUs and "
        f"{need.memory_gib:.1f} GiB of GPU memory).",
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


def _caution(case: api.JobCase, run: Resize, smaller: Candidate | None) -> str:
    sums = "CloudWatch has only the sum of an instance's GPUs, and one-minute means hide peaks"
    if smaller is not None:
        return f"{smaller.because} {sums}: try it once."
    none = f"no cheaper size with fewer {run.today.gpu_model} is priced here"
    reason = cannot_move(case) or why_none(run, none)
    return f"No figure: {reason}. {sums}. Or distribute the work over all of them."
