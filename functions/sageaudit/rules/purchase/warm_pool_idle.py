"""A warm pool cost more than it saved.

What it checks: Another keep-alive would have cost less over the times between the family's runs
    (gaps), and one of these is true:
    - No job reused the warm pool (Terminated), and it was retained for longer than this job's
      download took.
    - A job reused the pool after a long wait: at least two starts, or five times the run itself. A
      start is the longest wait plus the longest download of the family's runs on the same
      instances, at least 10 minutes.
Why it costs: A retained pool is billed for every second and instance at the job's rate, until
    another job uses it or it ends. It saves one start, of which only the download is billed.
Saving: The best keep-alive is the one that costs least over the family's gaps. It is 0 if fewer
    than 3 gaps are known.
    - Pool that was never reused: measured. The saving is the retained seconds minus the best
      keep-alive.
    - Reused pool: derived. One start is subtracted too, although only its download would be billed.
      The range goes up to all retained seconds.
When it is wrong: People's waiting time may cost more than the pool. The last job of a chain always
    leaves an unused pool: shorten the period, but keep it.
What to do: Set KeepAlivePeriodInSeconds to the value in the fix.
    - With 3 or more known gaps, this value would have cost least. If it is 0, remove the parameter.
    - With fewer gaps, a reused pool gets the time of one start, and a pool that was never reused is
      removed.
    - Only a job with the same role, type, count, volume, network and encryption settings can reuse
      a pool.
Sources: API reference, WarmPoolStatus: Available, Terminated, Reused, InUse; billed seconds x
    InstanceCount. SageMaker guide, managed warm pools. A published bill of 2023-12: 44 h of
    training, 167 h of pool. Recorded jobs: 39 to 239 s in Starting, 96 to 314 s in Downloading.
"""

from __future__ import annotations

import math
from decimal import Decimal

from sageaudit.rules import api
from sageaudit.rules.purchase.warm_pool_model import (
    best_keep_alive,
    gaps_between,
    run_times,
    run_times_from_summary,
)

START_AT_LEAST = api.Threshold(
    "min_start_s", 600, "seconds", "239 s Starting and 314 s Downloading", "recorded jobs"
)
MIN_START_FACTOR = api.Threshold(
    "min_start_ratio", 2, "retained / start", "half of it saves nothing"
)
MIN_WORK_FACTOR = api.Threshold(
    "min_work_ratio", 5, "retained / billed run", "the pool is most of the bill"
)
MIN_GAPS = api.Threshold("min_gaps", 3, "gaps", "fewer show no pattern")
_KEEP_ALIVE = "ResourceConfig.KeepAlivePeriodInSeconds"
_ZERO = Decimal(0)


def _no_pool_reason(case: api.FamilyCase) -> str | None:
    return "it keeps no warm pool" if case.job.warm_pool is None else None


@api.rule(
    id="SA404",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(START_AT_LEAST, MIN_START_FACTOR, MIN_WORK_FACTOR, MIN_GAPS),
    not_applicable=(_no_pool_reason, api.prepaid_reason),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Judges a pool only after its status and its billed seconds are final."""
    pool = case.job.warm_pool
    if pool is None:
        return api.Clear()
    if pool.status is None:
        return api.Unknown("pool_status_missing", "whether a warm pool was kept is not known")
    if not pool.is_final:
        reason = f"the warm pool is {pool.status}: its billed seconds still increase"
        return api.Unknown("pool_not_settled", reason)
    if pool.retained_s is None:
        reason = "how long the warm pool was retained is not known"
        return api.Unknown("retained_missing", reason)
    if pool.status == "Reused":
        return _check_reused_pool(case, pool.retained_s)
    return _check_unused_pool(case, pool.retained_s)


def _check_reused_pool(case: api.FamilyCase, retained_s: Decimal) -> api.Outcome:
    start_s, known_keep_s = _best_keep_alive(case, retained_s)
    keep_s = known_keep_s or 0
    job, waited_s = case.job, float(retained_s)
    is_many_starts = waited_s >= case.threshold(MIN_START_FACTOR) * float(start_s)
    work_s = float(job.elapsed_s or 0)
    is_long_by_work = work_s > 0 and waited_s >= case.threshold(MIN_WORK_FACTOR) * work_s
    if not (is_many_starts or is_long_by_work) or retained_s <= keep_s + start_s:
        return api.Clear()
    minutes = math.ceil(start_s / 60)
    return api.derived_saving(
        f"The warm pool waited {api.duration_text(retained_s)} on "
        f"{job.instances or 'unknown instances'} until another run reused it, to save a start "
        f"of at most {minutes} min.",
        {"work_s": job.elapsed_s, "retained_s": retained_s, "start_s": start_s},
        # With too few gaps: as long as a start, which costs at most twice the best choice.
        fix=_fix(case, 60 * minutes if known_keep_s is None else known_keep_s),
        change=api.ShortenPool(keep_s + start_s),
        best=api.ShortenPool(_ZERO),
        caution=(
            "A waiting pool is billed, Starting is not. Runs that come after the shorter "
            "keep-alive start without a pool, so people wait longer for them."
        ),
    )


def _check_unused_pool(case: api.FamilyCase, retained_s: Decimal) -> api.Outcome:
    job, pool = case.job, case.job.warm_pool
    download_s = _download_s(job)
    if download_s is None:
        return api.PHASES_MISSING
    known_keep_s = _best_keep_alive(case, None)[1]
    keep_s = Decimal(known_keep_s or 0)
    requested_s = pool.keep_alive_s if pool else None
    if retained_s <= max(keep_s, download_s):
        return api.Clear()
    return api.measured_saving(
        f"The warm pool was retained for {api.duration_text(retained_s)} on "
        f"{job.instances or 'unknown instances'} and never reused.",
        {
            "work_s": job.elapsed_s,
            "retained_s": retained_s,
            "keep_alive_s": requested_s,
            "downloading_s": download_s,
        },
        fix=_fix(case, int(keep_s)),
        change=api.ShortenPool(keep_s),
        caution="The last job of a chain always leaves a pool. If other jobs reuse it, shorten the "
        "keep-alive instead of removing it.",
    )


def _fix(case: api.FamilyCase, keep_s: int) -> tuple[api.Parameter, ...]:
    """Returns the parameter that sets the keep-alive to `keep_s` seconds, or removes it for 0.

    Empty if the keep-alive is already short enough: it can be changed while the pool waits.
    """
    pool = case.job.warm_pool
    if pool is None or pool.keep_alive_s is None or pool.keep_alive_s <= keep_s:
        return ()
    return (api.Parameter(_KEEP_ALIVE, pool.keep_alive_s, keep_s or None),)


def _download_s(job: api.Job) -> Decimal | None:
    """Returns the seconds of the download, or None if the run's phases are not known."""
    names = {phase.name for phase in job.phases}
    return job.phase_s("Downloading") if names & {"Training", "Downloading"} else None


def _best_keep_alive(case: api.FamilyCase, gap_s: Decimal | None) -> tuple[Decimal, int | None]:
    """Returns the seconds of a start, and the seconds of the cheapest keep-alive.

    The keep-alive is None if too few gaps are known. `gap_s`: the seconds until a job reused this
    run's pool; None if no job did.
    """
    runs = case.comparable_runs  # only such a run can reuse the pool
    times_of_runs = (run_times(case.job), *map(run_times_from_summary, runs))
    starts = [times for times in times_of_runs if times is not None]
    gaps = [gap_s, *gaps_between(starts)]
    downloads = [_download_s(case.job), *(run.phase_s.get("Downloading") for run in runs)]
    waited_s = max((times.waited_s for times in starts), default=_ZERO)
    downloading_s = max((seconds for seconds in downloads if seconds is not None), default=_ZERO)
    start_s = max(Decimal(str(case.threshold(START_AT_LEAST))), waited_s + downloading_s)
    has_enough_gaps = len(gaps) >= case.threshold(MIN_GAPS)
    return start_s, best_keep_alive(gaps, start_s) if has_enough_gaps else None
