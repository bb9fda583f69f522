"""Runs follow one another closely, and each waits for instances and pulls its image again.

What it checks: The family's last runs on the same instances (4 to 10 of them) kept no warm pool.
    Warm pools would have avoided at least 10 minutes of waiting and image pulls, and at least a
    tenth of these runs' working time.
    - This assumes the best keep-alive for the times between the runs (gaps): a second of start
      counts as much as a second of pool.
    - The last run's pool counts as never used.
Why it costs: An image pull is billed on every instance. Waiting for instances is not billed, but
    people wait.
Saving: Possible, if the image pulls cost more than the pool, which is billed at the job's rate
    while it waits. The saving is the billed pulls of the avoided starts minus the pool, as means
    over these runs.
    - If the pool costs more, there is no saving. The finding says what the shorter waits would have
      cost.
    - If channels copy or mount data, the time of the pull alone is not known. Then only the waiting
      counts.
When it is wrong: Only a job with the same role, instances, volume, network and encryption can use a
    pool; the history has only the instances. A changed image is pulled again. If nobody waits for a
    run, less waiting has no value.
What to do: Set KeepAlivePeriodInSeconds to the value in the fix. Request a quota for warm pools,
    which is 0 by default. After some runs, warm-pool-idle shows what the pools cost.
Sources: SageMaker guide, managed warm pools: billed while retained, at most 3,600 s; not with
    managed spot or heterogeneous clusters. Recorded jobs: 39 to 239 s in Starting, 96 to 314 s in
    image pulls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from statistics import median

from msgspec import Struct

from sageaudit.domain.job.course import DOWNLOADS
from sageaudit.rules import api
from sageaudit.rules.phases.phase_share import PULL_AT_MOST, has_image_pull_in_download
from sageaudit.rules.purchase.warm_pool_model import (
    RunTimes,
    best_keep_alive,
    gaps_between,
    run_times,
    run_times_from_summary,
)

MIN_EARLIER_RUNS = api.Threshold("min_earlier_runs", 3, "earlier runs", "fewer show no pattern")
MIN_SAVED_START = api.Threshold(
    "min_saved_start_s", 600, "seconds", "less is not worth managing a pool"
)
MIN_SHARE = api.Threshold("min_share_percent", 10, "percent of the work", "less is hardly noticed")
_MAX_RUNS = 10
"""Older runs say little about the next gaps. Our choice."""
_ZERO = Decimal(0)


class _StartTimes(Struct, frozen=True):
    """When a run was requested and ended, and the seconds of its image pull and of its work.

    `pull_s`: the billed image pull; 0 if it is not known.
    """

    times: RunTimes
    pull_s: Decimal
    work_s: Decimal

    @property
    def total_s(self) -> Decimal:
        """The seconds from the request until the work begins."""
        return self.times.waited_s + self.pull_s


def _pool_reason(case: api.FamilyCase) -> str | None:
    return None if case.job.warm_pool is None else "it keeps a warm pool: see warm-pool-idle"


def _spot_reason(case: api.FamilyCase) -> str | None:
    is_spot = case.job.purchase is api.Purchase.SPOT
    return "managed spot keeps no warm pool" if is_spot else None


@api.rule(
    id="SA409",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_EARLIER_RUNS, MIN_SAVED_START, MIN_SHARE, PULL_AT_MOST),
    not_applicable=(
        _pool_reason,
        _spot_reason,
        api.prepaid_reason,
        api.serverless_reason,
        api.mixed_types_reason,
        api.search_trial_reason,
        api.never_started_reason,
    ),
    min_earlier_runs=3,
    report_once_per_family=True,
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares the start time that a pool would have saved with what the pool would have cost."""
    if case.job.groups_unknown or not case.job.groups:
        return api.Unknown("instances_unknown", "its instances are not known")
    starts = _starts(case)
    if len(starts) <= case.threshold(MIN_EARLIER_RUNS):
        reason = f"{len(starts)} runs on these instances without a pool have known times"
        return api.Unknown("too_few_runs", reason)
    gaps = [None, *gaps_between([start.times for start in starts])]
    keep_s = best_keep_alive(gaps, median(start.total_s for start in starts))
    avoided_starts = [
        start
        for start, gap in zip(starts, gaps[1:], strict=False)
        if gap is not None and gap < keep_s
    ]
    avoided_s = sum((start.total_s for start in avoided_starts), _ZERO)
    worked_s = sum((start.work_s for start in starts), _ZERO)
    share = 100 * avoided_s / worked_s if worked_s else _ZERO
    if avoided_s < case.threshold(MIN_SAVED_START) or share < case.threshold(MIN_SHARE):
        return api.Clear()
    kept_s = Decimal(keep_s)
    pool_s = sum((kept_s if gap is None else min(gap, kept_s) for gap in gaps), _ZERO)
    return _finding(case, starts, avoided_starts, keep_s, pool_s)


def _finding(
    case: api.FamilyCase,
    starts: Sequence[_StartTimes],
    avoided_starts: Sequence[_StartTimes],
    keep_s: int,
    pool_s: Decimal,
) -> api.Detection:
    waited_s = sum((start.times.waited_s for start in avoided_starts), _ZERO)
    pulled_s = sum((start.pull_s for start in avoided_starts), _ZERO)
    pulls_text = (
        f" and {api.duration_text(pulled_s)} of billed image pulls{_cost_text(case, pulled_s)}"
    )
    summary = (
        f"A warm pool kept for {api.duration_text(Decimal(keep_s))} would have avoided"
        f" {len(avoided_starts)} of "
        f"the family's last {len(starts)} starts: {api.duration_text(waited_s)} of waiting"
        f"{pulls_text if pulled_s else ''}, for {api.duration_text(pool_s)} of"
        f" pool{_cost_text(case, pool_s)}."
    )
    evidence: api.Numbers = {
        "runs": len(starts),
        "spared_starts": len(avoided_starts),
        "spared_waiting_s": waited_s,
        "spared_pulls_s": pulled_s,
        "pool_s": pool_s,
    }
    fix = (api.Parameter("ResourceConfig.KeepAlivePeriodInSeconds", None, keep_s),)
    quota_text = "The quota for warm pools is 0 until you request one."
    if pulled_s <= pool_s:
        extra_text = _cost_text(case, pool_s - pulled_s).strip(" ()")
        return api.recommendation(
            summary,
            evidence,
            fix=fix,
            caution=(
                f"The pool costs {f'{extra_text} more' if extra_text else 'more'} than the pulls "
                f"that it avoids: it saves waiting, not dollars. {quota_text}"
            ),
        )
    return api.possible_saving(
        summary,
        evidence,
        fix=fix,
        change=api.RetainPool(pulled_s / len(starts), pool_s / len(starts), keep_s),
        caution=(
            "The dollars are the mean of these runs. They hold if the next runs follow as closely "
            f"with the same image. {quota_text}"
        ),
    )


def _starts(case: api.FamilyCase) -> list[_StartTimes]:
    """Returns the times of this run and of comparable earlier runs, newest first.

    Earlier runs with a warm pool, or not on demand, are left out.
    """
    is_pull_known = _is_pull_time_known(case)
    job = case.job
    own_phase_s: Mapping[str, Decimal] = {name: job.phase_s(name) or _ZERO for name in DOWNLOADS}
    rows = [(run_times(job), own_phase_s, job.elapsed_s)]
    rows += [
        (run_times_from_summary(run), run.phase_s, run.elapsed_s)
        for run in case.comparable_runs
        if run.purchase is api.Purchase.ON_DEMAND and not run.retained_s
    ]
    starts = []
    for times, phase_s, elapsed_s in rows[:_MAX_RUNS]:
        pull_s = sum((phase_s.get(name, _ZERO) for name in DOWNLOADS), _ZERO)
        pull_s = pull_s if is_pull_known and pull_s <= case.threshold(PULL_AT_MOST) else _ZERO
        if times is not None and elapsed_s is not None:
            starts.append(_StartTimes(times, pull_s, elapsed_s - pull_s))
    return starts


def _is_pull_time_known(case: api.FamilyCase) -> bool:
    is_streaming = all(
        channel.source is api.DataSource.S3 and channel.mode in {"FastFile", "Pipe"}
        for channel in case.job.channels
    )
    return is_streaming and has_image_pull_in_download(case.job)


def _cost_text(case: api.FamilyCase, seconds: Decimal) -> str:
    group = case.job.groups[0]
    rates = [line.rate for line in case.bill.lines if line.item == "compute"]
    if not rates or rates[0] is None:
        return ""
    return f" ({api.format_usd(seconds * group.count * rates[0].usd / 3600)})"
