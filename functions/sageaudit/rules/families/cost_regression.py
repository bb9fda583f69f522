"""The run cost far more than its family's runs do.

## What it checks
The bill is above the median of the family's completed runs by at least 3 times their spread (the
scaled median absolute deviation) and at least 25%. At least 5 of them have a known cost.

## Why it costs
A change of type, count, data or code that nobody meant is paid for again by each run after it.

## Saving
None: it is an alarm, not a slice of the bill. What lies above the median is in the evidence; the
findings on what grew carry the dollars.

## When it is wrong
A family may hold runs that are meant to differ: a quick test and the full training under one name.
A tag of the policy's `family_tag` tells them apart.

## What to do
Look at what changed, which is named where the history knows it, and take it back if nobody meant
it.

## Sources
Rousseeuw and Croux, 1993: the median absolute deviation times 1.4826 estimates a standard
deviation that outliers do not move; 3 of them are the usual fence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from statistics import median

from sageaudit.domain.audit.earlier import EarlierRun, facts_of
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Scalar, Unknown
from sageaudit.domain.job.job import Job, ParentKind
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import FamilyCase, Threshold, rule

_COMPARED = 5
SPREADS = Threshold("spreads_from", 3, "scaled MADs", "an outlier's fence", "Rousseeuw and Croux")
OVER = Threshold(
    "over_percent", 25, "percent above the median", "families without spread", "our choice"
)
_MAD_TO_SIGMA = Decimal("1.4826")
_A_MINUTE_S = 60


def _excuse(case: FamilyCase) -> str | None:
    parent = case.job.parent
    if parent is not None and parent.kind in {ParentKind.TUNING, ParentKind.AUTOML}:
        return "the trials of one search are meant to differ"
    if case.job.free:
        return case.job.free
    return None if case.job.status == "Completed" else "the run did not complete"


@rule(
    id="SA703",
    scope=FamilyCase,
    kinds={JobKind.TRAINING, JobKind.PROCESSING, JobKind.TRANSFORM},
    thresholds=(SPREADS, OVER),
    min_earlier=_COMPARED,
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """Compares with completed runs only: a failed one is cheap for another reason."""
    total_usd = case.bill.total_usd
    if total_usd is None:
        return Unknown("bill_unknown", "the cost of this run is not known")
    done = [run for run in case.runs if run.status == "Completed"]
    costs = [run.total_usd for run in done if run.total_usd is not None]
    if len(costs) < _COMPARED:
        reason = f"{len(costs)} completed runs of known cost, {_COMPARED} needed"
        return Unknown("too_few_runs", reason)
    usual_usd = median(costs)
    spread_usd = _MAD_TO_SIGMA * median([abs(cost - usual_usd) for cost in costs])
    above_usd = total_usd - usual_usd
    fence_usd = max(
        spread_usd * Decimal(str(case.limit(SPREADS))),
        usual_usd * Decimal(str(case.limit(OVER))) / 100,
    )
    if above_usd <= 0 or above_usd < fence_usd:
        return Clear()
    changes = dict(_changes(case.job, done))
    told = "; ".join(str(change) for change in changes.values()) or "nothing known"
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=(
            f"It cost ${total_usd:,.2f}; the median of {len(costs)} earlier runs is "
            f"${usual_usd:,.2f}. Changed: {told}."
        ),
        evidence={
            "total_usd": total_usd,
            "median_usd": usual_usd,
            "spread_usd": spread_usd,
            "above_median_usd": above_usd,
            "compared_runs": len(costs),
            **changes,
        },
        caution="No figure: it is an alarm; the findings on what grew carry the dollars.",
    )


def _changes(job: Job, done: Sequence[EarlierRun]) -> Iterator[tuple[str, Scalar]]:
    """What is not as it is in most of the earlier runs, in words."""
    now = facts_of(job, reason_class=None, found=())
    for key, word in (("instance_type", "type"), ("instance_count", "count")):
        usual, today = _most(done, key), getattr(now, key)
        if None not in (usual, today) and usual != today:
            yield f"changed_{word}", f"{word} {usual} to {today}"
    [(bought, _)] = Counter(run.facts.purchase for run in done).most_common(1)
    if bought is not now.purchase:
        yield "changed_purchase", f"purchase {bought.value} to {now.purchase.value}"
    prints = {run.facts.fingerprint for run in done} - {None}
    if now.fingerprint and prints and now.fingerprint not in prints:
        yield "changed_settings", "image, data or hyperparameters"
    billed = {phase.name for phase in job.phases if phase.billed} & now.phase_s.keys()
    grown_s = {name: now.phase_s[name] - _usual_s(done, name) for name in sorted(billed)}
    name = max(grown_s, key=lambda phase: grown_s[phase], default=None)
    if name is not None and grown_s[name] >= _A_MINUTE_S:
        yield "changed_phase", f"{name} +{grown_s[name] / 60:.0f} min"


def _most(done: Sequence[EarlierRun], key: str) -> object:
    known = [value for run in done if (value := getattr(run.facts, key)) is not None]
    return Counter(known).most_common(1)[0][0] if known else None


def _usual_s(done: Sequence[EarlierRun], phase: str) -> Decimal:
    return median([run.facts.phase_s.get(phase, Decimal(0)) for run in done])
