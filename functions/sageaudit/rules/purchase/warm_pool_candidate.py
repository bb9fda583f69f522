"""Runs follow one another closely, and each waits for instances and pulls its image anew.

What it checks: The family's last runs on the same instances (10 at most, at least 4) kept no warm
    pool. Had each kept one for as long as is best for the times between them (gaps), starts would
    have been spared: at least 10 minutes of waiting and image pulls together, and at least a tenth
    of what these runs worked. The best keep-alive is the one of warm-pool-idle: a second of a start
    counts as much as a second of pool. The pool of the last run is taken as never used.
Why it costs: An image pull is billed on every instance. Waiting for instances is not billed, but
    people wait. A pool is billed at the rate of the job while it waits, and its volumes too.
Saving: Possible, and only if the pulls cost more than the pool: the billed pulls of the spared
    starts less the pool, both as their mean over these runs. If the pool costs more, there are no
    dollars: the finding says what less waiting would have cost. Where channels copy or mount data,
    the pull cannot be told from it, and only the waiting counts.
When it is wrong: A pool is taken over only by a job with the same role, instances, volume, network
    and encryption; the history knows only the instances. A changed image is pulled again. Where
    nobody waits for a run, less waiting is worth nothing.
What to do: Set KeepAlivePeriodInSeconds to the value in the fix, and ask for a quota of warm pools,
    which is 0 at first. After some runs warm-pool-idle says what the pools cost.
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

MIN_EARLIER_RUNS = api.Threshold("min_earlier_runs", 3, "earlier runs", "fewer show no habit")
MIN_SAVED_START = api.Threshold(
    "min_saved_start_s", 600, "seconds", "less is not worth a pool to look after"
)
MIN_SHARE = api.Threshold("min_share_percent", 10, "percent of the work", "less is not noticed")
_MAX_RUNS = 10
"""Older runs say little of how closely the next ones follow: our choice."""
_ZERO = Decimal(0)


class _StartTimes(Struct, frozen=True):
    """One run: its times, its billed image pull (0 where it is not known), and its work."""

    times: RunTimes
    pull_s: Decimal
    work_s: Decimal

    @property
    def total_s(self) -> Decimal:
        """From the request to the work."""
        return self.times.waited_s + self.pull_s


def _pool_reason(case: api.FamilyCase) -> str | None:
    return None if case.job.warm_pool is None else "it keeps a warm pool: see warm-pool-idle"


def _spot(case: api.FamilyCase) -> str | None:
    spot = case.job.purchase is api.Purchase.SPOT
    return "managed spot keeps no warm pool" if spot else None


@api.rule(
    id="SA409",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(MIN_EARLIER_RUNS, MIN_SAVED_START, MIN_SHARE, PULL_AT_MOST),
    not_applicable=(
        _pool_reason,
        _spot,
        api.prepaid,
        api.serverless,
        api.mixed_types,
        api.search_trial,
        api.never_started,
    ),
    min_earlier_runs=3,
    report_once_per_family=True,
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Minutes that a pool would have spared, against what it would have cost."""
    if case.job.groups_unknown or not case.job.groups:
        return api.Unknown("instances_unknown", "its instances are not known")
    starts = _starts(case)
    if len(starts) <= case.threshold(MIN_EARLIER_RUNS):
        reason = f"{len(starts)} runs on these instances without a pool have known times"
        return api.Unknown("too_few_runs", reason)
    gaps = [None, *gaps_between([one.times for one in starts])]
    keep_s = best_keep_alive(gaps, median(one.total_s for one in starts))
    spared = [
        one for one, gap in zip(starts, gaps[1:], strict=False) if gap is not None and gap < keep_s
    ]
    spared_s = sum((one.total_s for one in spared), _ZERO)
    worked_s = sum((one.work_s for one in starts), _ZERO)
    share = 100 * spared_s / worked_s if worked_s else _ZERO
    if spared_s < case.threshold(MIN_SAVED_START) or share < case.threshold(MIN_SHARE):
        return api.Clear()
    kept_s = Decimal(keep_s)
    pool_s = sum((kept_s if gap is None else min(gap, kept_s) for gap in gaps), _ZERO)
    return _finding(case, starts, spared, keep_s, pool_s)


def _finding(
    case: api.FamilyCase,
    starts: Sequence[_StartTimes],
    avoided_starts: Sequence[_StartTimes],
    keep_s: int,
    pool_s: Decimal,
) -> api.Detection:
    waited_s = sum((one.times.waited_s for one in avoided_starts), _ZERO)
    pulled_s = sum((one.pull_s for one in avoided_starts), _ZERO)
    pulls = f" and {api.duration_text(pulled_s)} of billed image pulls{_cost_text(case, pulled_s)}"
    summary = (
        f"A warm pool kept for {api.duration_text(Decimal(keep_s))} would have spared"
        f" {len(avoided_starts)} of "
        f"the family's last {len(starts)} starts: {api.duration_text(waited_s)} of waiting"
        f"{pulls if pulled_s else ''}, for {api.duration_text(pool_s)} of"
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
    quota = "The quota of warm pools is 0 until you ask for one."
    if pulled_s <= pool_s:
        more = _cost_text(case, pool_s - pulled_s).strip(" ()")
        return api.recommendation(
            summary,
            evidence,
            fix=fix,
            caution=f"The pool costs {f'{more} more' if more else 'more'} than the pulls that it "
            f"spares: it buys less waiting, no dollars. {quota}",
        )
    return api.possible_saving(
        summary,
        evidence,
        fix=fix,
        change=api.RetainPool(pulled_s / len(starts), pool_s / len(starts), keep_s),
        caution="The dollars are the mean of these runs, if the next ones follow as closely and "
        f"their image does not change. {quota}",
    )


def _starts(case: api.FamilyCase) -> list[_StartTimes]:
    """This run and the earlier ones on the same instances without a pool, newest first."""
    pulls = _is_pull_time_known(case)
    job = case.job
    own: Mapping[str, Decimal] = {name: job.phase_s(name) or _ZERO for name in DOWNLOADS}
    rows = [(run_times(job), own, job.elapsed_s)]
    rows += [
        (run_times_from_summary(run), run.phase_s, run.elapsed_s)
        for run in case.comparable_runs
        if run.purchase is api.Purchase.ON_DEMAND and not run.retained_s
    ]
    known = []
    for times, phase_s, elapsed_s in rows[:_MAX_RUNS]:
        pull_s = sum((phase_s.get(name, _ZERO) for name in DOWNLOADS), _ZERO)
        pull_s = pull_s if pulls and pull_s <= case.threshold(PULL_AT_MOST) else _ZERO
        if times is not None and elapsed_s is not None:
            known.append(_StartTimes(times, pull_s, elapsed_s - pull_s))
    return known


def _is_pull_time_known(case: api.FamilyCase) -> bool:
    """Whether Downloading is the image pull alone: no channel copies or mounts data."""
    streams = all(
        channel.source is api.DataSource.S3 and channel.mode in {"FastFile", "Pipe"}
        for channel in case.job.channels
    )
    return streams and has_image_pull_in_download(case.job)


def _cost_text(case: api.FamilyCase, seconds: Decimal) -> str:
    """These seconds of all its instances, in dollars for a sentence; empty without a rate."""
    group = case.job.groups[0]
    rates = [line.rate for line in case.bill.lines if line.item == "compute"]
    if not rates or rates[0] is None:
        return ""
    return f" (${seconds * group.count * rates[0].usd / 3600:,.2f})"
