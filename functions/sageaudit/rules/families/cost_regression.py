"""The run cost far more than its family's runs do.

What it checks: The bill is above the family's newest level by at least 3 times its spread (the
    scaled median absolute deviation) and at least 25%. The level is the median of up to 10
    completed runs since the last change of type, count or purchase, or since the last lasting step
    of cost. After 3 runs a new cost becomes the level. Until then a run is compared with the level
    before. A rise is shown once, and again if it grows by a quarter. If now and then a few runs use
    other instances, these are compared with each other. At least 5 runs must have a known cost.
Why it costs: Each later run pays again for an unintended change of type, count, data or code.
Saving: None: this is an alarm. The evidence has the dollars above the median; other findings have
    the savings.
When it is wrong: A family may contain runs that are meant to differ: a quick test and the full
    training under one name. A tag of the policy's `family_tag` separates them.
What to do: Look at what changed (the finding names it if the history has it), and undo it if it was
    not intended.
Sources: Rousseeuw and Croux, 1993: the median absolute deviation times 1.4826 estimates a standard
    deviation that outliers do not move; 3 such deviations are the usual limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import takewhile
from statistics import median

from sageaudit.domain.audit.family_runs import (
    completed_runs,
    disk_gb,
    first_point_s,
    newest_level,
    summary_of_run,
)
from sageaudit.rules import api

MIN_SPREADS = api.Threshold(
    "min_spreads", 3, "scaled MADs", "the usual limit for outliers", "Rousseeuw and Croux"
)
MIN_RISE = api.Threshold(
    "min_rise_percent", 25, "percent above the median", "families without spread"
)
_COMPARED_RUNS = 5
_MIN_PHASE_GROWTH_S = 60
_MIN_DISK_GROWTH_GB = Decimal(1)
_CENT_USD = Decimal("0.01")
"""Less is shown as nothing."""


@api.rule(
    id="SA703",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_SPREADS, MIN_RISE),
    min_earlier_runs=_COMPARED_RUNS,
    used_by_later_runs=True,
    not_applicable=(api.search_trial, api.free, api.not_completed),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares with completed runs only: a failed run is cheap for another reason."""
    total_usd = case.bill.total_usd
    if total_usd is None:
        return api.BILL_UNKNOWN
    known = len(completed_runs(case.earlier_runs))
    if known < _COMPARED_RUNS:
        reason = f"{known} completed runs of known cost, {_COMPARED_RUNS} needed"
        return api.Unknown("too_few_runs", reason)
    spreads, percent = (Decimal(str(case.threshold(limit))) for limit in (MIN_SPREADS, MIN_RISE))
    own = summary_of_run(case.job)
    level = newest_level(own, case.earlier_runs, spreads=spreads, percent=percent)
    if level is None:
        return api.Unknown("no_usual_cost", "no three of its family's runs in a row are alike")
    usual_usd = level.usual_usd
    limit_usd = usual_usd + level.margin_usd(spreads, percent)
    if total_usd - usual_usd < _CENT_USD or total_usd < limit_usd:
        return api.Clear()
    changes = dict(_changes(case, own, level.runs))
    changed = "; ".join(changes.values()) or "nothing known"
    return api.measured_fact(
        f"Expected about ${usual_usd:,.2f} (the median of {len(level.runs)} earlier runs), got "
        f"${total_usd:,.2f}. Changed: {changed}.",
        {
            "total_usd": total_usd,
            "median_usd": usual_usd,
            "spread_usd": level.spread_usd,
            "above_median_usd": total_usd - usual_usd,
            "compared_runs": len(level.runs),
            **changes,
        },
        caution="It is an alarm; the findings on what grew have the savings.",
        reported_for_run=_reported_for_run(case, limit_usd, percent),
    )


def _reported_for_run(case: api.FamilyCase, limit_usd: Decimal, percent: Decimal) -> str | None:
    """The run that was told of the same rise of cost, if it has not grown since: one of the runs
    just before, as long as each of them cost as much as the limit.
    """
    before = takewhile(
        lambda run: (run.total_usd or 0) >= limit_usd, completed_runs(case.earlier_runs)
    )
    told = [
        (run.total_usd, run.job)
        for run in before
        if "cost-regression" in run.rules_with_findings and run.total_usd is not None
    ]
    total_usd = case.bill.total_usd
    if not told or total_usd is None or total_usd >= max(told)[0] * (1 + percent / 100):
        return None
    return told[0][1]


def _changes(
    case: api.FamilyCase, own: api.AuditSummary, completed: Sequence[api.AuditSummary]
) -> Iterator[tuple[str, str]]:
    """What differs from most of the earlier runs, in words."""
    job = case.job
    for key, word in (("instance_type", "type"), ("instance_count", "count")):
        usual, today = _most_common(completed, key), getattr(own, key)
        if None not in (usual, today) and usual != today:
            yield f"changed_{word}", f"{word} {usual} to {today}"
    purchase = _most_common(completed, "purchase")
    if purchase is not own.purchase:
        yield "changed_purchase", f"purchase {purchase} to {own.purchase}"
    fingerprints = {run.fingerprint for run in completed} - {None}
    if own.fingerprint and fingerprints and own.fingerprint not in fingerprints:
        yield "changed_settings", "image, data or hyperparameters"
    first_s = [run.first_point_s for run in completed if run.first_point_s is not None]
    own_first_s = first_point_s(job, case.whole_run)
    if first_s and own_first_s is not None:
        later_s = own_first_s - median(first_s)
        if later_s >= max(Decimal(_MIN_PHASE_GROWTH_S), median(first_s) / 2):
            yield (
                "changed_data",
                f"its data ({api.duration_text(later_s)} more until its first point)",
            )
    usual_gb = [run.disk_gb for run in completed if run.disk_gb]
    own_gb = disk_gb(job, case.whole_run)
    if (
        usual_gb
        and own_gb
        and own_gb - median(usual_gb) >= max(_MIN_DISK_GROWTH_GB, median(usual_gb) / 2)
    ):
        times = own_gb / median(usual_gb)
        yield "changed_disk", f"its data ({times:.1f} times as much disk used)"
    billed = {phase.name for phase in job.phases if phase.billed} & own.phase_s.keys()
    grown_s = {name: own.phase_s[name] - _usual_s(completed, name) for name in sorted(billed)}
    most = max(grown_s, key=lambda name: grown_s[name], default=None)
    if most is not None and grown_s[most] >= _MIN_PHASE_GROWTH_S:
        yield "changed_phase", f"{most} +{api.duration_text(grown_s[most])}"


def _most_common(runs: Sequence[api.AuditSummary], key: str) -> object:
    known = [value for run in runs if (value := getattr(run, key)) is not None]
    return Counter(known).most_common(1)[0][0] if known else None


def _usual_s(runs: Sequence[api.AuditSummary], phase: str) -> Decimal:
    return median([run.phase_s.get(phase, Decimal(0)) for run in runs])
