"""Idle capacity: device hours that were paid for and not worked. It is no saving and in no sum.

It exists also where no cheaper type holds the job, where a training plan's capacity is prepaid, and
in hours where nothing is priced. `usage/work_share.py` says what counts as worked.

paid     = devices of a host x hosts x billed seconds; on spot the billable ones, or all training
           seconds where those are not known (an upper bound, as the bill itself). The retained time
           of a warm pool is not in it: no job runs then, and it has a rule of its own.
list     = idle hours x the bill's hourly rate of an instance / its devices. Own prices in the
           policy apply, as in the bill. A plan's capacity is valued on demand. SageMaker bills spot
           by fewer seconds at the same rate, so idle billable hours at that rate are what was paid.
counted  = how much of the list value is in avoidable or lost already. The bill is changed finding
           by finding, as for their shares. A run that is dropped, or bought in another way, takes
           its idle share of the compute dollars; any other fix takes idle hours only, as the work
           stays. Storage and warm pools are no device hours.

Example by hand: 1 x ml.g4dn.12xlarge (4 GPUs, $4.80 an hour) for 10 hours, 1 of them Downloading,
9 with the GPUs at 40%: paid 40, worked 4 x 9 x 0.4 = 14.4, idle 25.6 GPU-hours, at $1.20 a GPU-hour
$30.72 of the bill's $48. Half an hour of the download is avoidable: $2.40 of the $30.72 are
counted. If a type at $1.20 holds the rest, it saves 9.5 x (4.80 - 1.20) = $34.20 more: $36.60
together are more than the idle hours are worth (the cheaper type has one GPU for the same work),
so all $30.72 are counted. Had the run failed, all its $48 are lost, and $30.72 of these are idle.
"""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.bill.bill import Bill, billed_seconds
from sageaudit.domain.bill.billed_job import BilledJob
from sageaudit.domain.bill.change import Change, DropRun, SetPurchase
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.bill.idle_capacity import LookAt, Unit, devices, idle_causes, worked_share
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements, Missing

_HOUR_S = Decimal(3600)
_ZERO = Decimal(0)


class IdleCapacity(Struct, frozen=True):
    """Exact hours of devices, and exact USD; `counted_usd` is never above `list_usd`.

    Both are None where the type has no rate. `look_at`: what may keep the devices waiting.
    """

    unit: Unit
    paid: Decimal
    worked: Decimal
    list_usd: Decimal | None
    counted_usd: Decimal | None
    look_at: tuple[LookAt, ...] = ()

    @property
    def idle(self) -> Decimal:
        """Paid for and not worked, at least 0."""
        return self.paid - self.worked


def idle_capacity(
    job: Job, usage: Measurements, billed: Bill, market: Market, savings: Savings
) -> IdleCapacity | Missing:
    """The figure of one job, or why there is none. `usage` is the whole run's; pure."""
    if job.free:
        return Missing("free", f"AWS does not bill it ({job.free})")
    if not job.finished:
        why = f"the job has not ended (status {job.status}): its cost is not final"
        return Missing("job_not_finished", why)
    each = devices(usage)
    if isinstance(each, Missing):
        return each
    unit, count = each
    seconds = _ZERO if job.never_started else billed_seconds(job)[0]
    if seconds is None:
        return Missing("no_billed_time", "; ".join(billed.missing) or "its billed time is unknown")
    share = worked_share(job, usage) if seconds else _ZERO
    if isinstance(share, Missing):
        return share
    paid = seconds * (job.instance_count or 0) * count / _HOUR_S
    worked = paid * share
    rate = _hourly_usd(job, market)
    list_usd = None if rate is None else (paid - worked) * rate / count
    counted_usd = None
    if list_usd is not None:
        in_totals = (savings.avoidable_usd or _ZERO) + (savings.lost_usd or _ZERO)
        counted_usd = min(_counted(job, billed, market, savings, 1 - share), list_usd, in_totals)
    causes = idle_causes(job, usage) if seconds else ()
    return IdleCapacity(unit, paid, worked, list_usd, counted_usd, causes)


def _hourly_usd(job: Job, market: Market) -> Decimal | None:
    """The rate of an instance. None where groups differ: the idle hours may be of either."""
    rates = {market.hourly(job.region, job.kind, group.instance_type) for group in job.groups}
    usd = {None if rate is None else rate.usd for rate in rates}
    return usd.pop() if len(usd) == 1 else None


def _counted(
    job: Job, billed: Bill, market: Market, savings: Savings, idle_share: Decimal
) -> Decimal:
    """USD of idle device time that the counted findings take, without a cap."""
    taken, left = _ZERO, billed.compute_usd
    today, applied = BilledJob(job, billed, market), None
    for change in _counted_changes(savings):
        today = today.after(applied) if applied else today
        after, applied = today.compute_usd(change), change
        if left is None or after is None:
            break
        cut = max(left - after, _ZERO)
        taken += cut * idle_share if isinstance(change, DropRun | SetPurchase) else cut
        left = after
    return taken


def _counted_changes(savings: Savings) -> list[Change]:
    """The changes behind avoidable and lost dollars, in the order in which they were billed."""
    counted = [
        (finding.found.change.stage, finding.rule.id, finding.found.change)
        for finding in savings.findings
        if finding.stands
        and finding.found.bucket.counted
        and finding.found.change is not None
        and finding.saving_usd
    ]
    return [change for _, _, change in sorted(counted, key=lambda row: row[:2])]
