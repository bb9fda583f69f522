"""A warm pool was kept and paid for, and never reused.

What it checks: The job's warm pool is Terminated, and was retained for longer than the next job
    needs to download its image and data.
Why it costs: A retained pool is billed for every second and instance at the rate of the job, until
    another job uses it or it ends.
Saving: Measured: the retained seconds less the Downloading phase of this run, which is the most
    that the next job pays for its image pull without a pool (SageMaker does not separate image pull
    and data copy).
When it is wrong: The last job of a chain always leaves a pool that no job uses. If the runs before
    it reused their pools, shorten the period rather than remove it.
What to do: Remove KeepAlivePeriodInSeconds, or set it only on jobs that another job follows within
    it. A pool is reused only by a job with the same role, type, count, volume, network and
    encryption settings.
Sources: API reference, WarmPoolStatus: Available, Terminated, Reused, InUse; billed seconds x
    InstanceCount. SageMaker guide, managed warm pools. A published bill of 2023-12: 44 h of
    training, 167 h of pool.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api


def _no_pool(case: api.JobCase) -> str | None:
    return "it keeps no warm pool" if case.job.warm_pool is None else None


@api.rule(
    id="SA404",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    not_applicable=(_no_pool, api.prepaid),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges a pool only when its status and its seconds are final."""
    job, pool = case.job, case.job.warm_pool
    if pool is None or pool.status == "Reused":
        return api.Clear()
    if pool.status is None:
        return api.Unknown("pool_status_missing", "whether a warm pool was kept is not known")
    if not pool.final:
        reason = f"the warm pool is {pool.status}: its billed seconds still grow"
        return api.Unknown("pool_not_settled", reason)
    if pool.retained_s is None:
        reason = "how long the warm pool was retained is not known"
        return api.Unknown("retained_missing", reason)
    download_s = _download_s(job)
    if download_s is None:
        return api.PHASES_MISSING
    if pool.retained_s <= download_s:
        return api.Clear()
    path = "ResourceConfig.KeepAlivePeriodInSeconds"
    asked_s = pool.keep_alive_s
    return api.measured(
        f"The warm pool was retained for {api.duration(pool.retained_s)} on "
        f"{job.instances or 'unknown instances'} and never reused; the next job downloads again "
        f"in {api.duration(download_s)}.",
        {"retained_s": pool.retained_s, "keep_alive_s": asked_s, "downloading_s": download_s},
        fix=() if asked_s is None else (api.Parameter(path, asked_s, None),),
        change=api.ShortenPool(download_s),
        caution="The last job of a chain always leaves its pool: then shorten it instead.",
    )


def _download_s(job: api.Job) -> Decimal | None:
    """Billed seconds before the code starts; None when the run is not split."""
    names = {phase.name for phase in job.phases}
    return job.phase_s("Downloading") if names & {"Training", "Downloading"} else None
