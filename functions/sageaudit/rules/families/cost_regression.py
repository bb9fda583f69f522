"""The run cost far more than its family's earlier runs.

What it checks: The bill is at least 25%, and at least 3 spreads, above the family's usual cost.
    - The usual cost is the median of up to 10 completed runs. These are the runs since the last
      change of type, count or purchase option, or since the last lasting change of cost.
    - The spread is the scaled median absolute deviation of these runs.
    - A new cost becomes the usual one after 3 runs. Until then, runs are compared with the older
      usual cost.
    - A rise is shown once, and again if it grows by a quarter.
    - If only some runs use other instances, those runs are compared with each other.
    - At least 5 runs must have a known cost.
Why it costs: After an unintended change of type, count, data or code, every later run costs more.
Saving: None. The evidence shows the dollars above the median; other findings have the savings.
When it is wrong: A family may contain runs that are meant to differ, such as a quick test and the
    full training. The policy's `family_tag` separates them.
What to do: Check what changed; the finding names it if the history shows it. Undo the change if it
    was not intended.
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
    "min_rise_percent", 25, "percent above the median", "for families without spread"
)
_MIN_COMPARED_RUNS = 5
_MIN_PHASE_GROWTH_S = 60
_MIN_DISK_GROWTH_GB = Decimal(1)
_CENT_USD = Decimal("0.01")
"""The smallest rise that is shown: a smaller one would read $0.00."""


@api.rule(
    id="SA703",
    scope=api.FamilyCase,
    kinds=api.INSTANCE_KINDS,
    thresholds=(MIN_SPREADS, MIN_RISE),
    min_earlier_runs=_MIN_COMPARED_RUNS,
    used_by_later_runs=True,
    not_applicable=(api.search_trial_reason, api.free_reason, api.not_completed_reason),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """Compares the run with completed runs. A failed run is cheap for another reason."""
    total_usd = case.bill.total_usd
    if total_usd is None:
        return api.BILL_UNKNOWN
    run_count = len(completed_runs(case.earlier_runs))
    if run_count < _MIN_COMPARED_RUNS:
        reason = f"{run_count} completed runs of known cost, the rule needs {_MIN_COMPARED_RUNS}"
        return api.Unknown("too_few_runs", reason)
    spreads, percent = (Decimal(str(case.threshold(limit))) for limit in (MIN_SPREADS, MIN_RISE))
    own_summary = summary_of_run(case.job)
    level = newest_level(own_summary, case.earlier_runs, spreads=spreads, percent=percent)
    if level is None:
        return api.Unknown(
            "no_usual_cost", "no three of its family's runs in a row have a similar cost"
        )
    usual_usd = level.usual_usd
    limit_usd = usual_usd + level.margin_usd(spreads, percent)
    if total_usd - usual_usd < _CENT_USD or total_usd < limit_usd:
        return api.Clear()
    changes = dict(_changes(case, own_summary, level.runs))
    *first_changes, last_change = changes.values() or ["nothing known"]
    others = f"{'; '.join(first_changes)}; and " if first_changes else ""
    return api.measured_fact(
        f"The run cost {api.format_usd(total_usd)}, but about {api.format_usd(usual_usd)} was "
        f"expected (the median of {len(level.runs)} earlier runs). What changed: "
        f"{others}{last_change}.",
        {
            "total_usd": total_usd,
            "median_usd": usual_usd,
            "spread_usd": level.spread_usd,
            "above_median_usd": total_usd - usual_usd,
            "compared_runs": len(level.runs),
            **changes,
        },
        caution=(
            "This finding has no saving of its own. Findings about the phase or use that grew say "
            "what can be saved."
        ),
        reported_for_run=_reported_for_run(case, limit_usd, percent),
    )


def _reported_for_run(case: api.FamilyCase, limit_usd: Decimal, percent: Decimal) -> str | None:
    """Returns the newest earlier run for which this rise was reported, or None.

    Reads the completed runs directly before this run, up to one that cost less than `limit_usd`.
    None if this run costs `percent` percent more than each reported run, because the rise has
    grown.
    """
    costly_runs = takewhile(
        lambda run: (run.total_usd or 0) >= limit_usd, completed_runs(case.earlier_runs)
    )
    reported_runs = [
        (run.total_usd, run.job)
        for run in costly_runs
        if "cost-regression" in run.rules_with_findings and run.total_usd is not None
    ]
    total_usd = case.bill.total_usd
    if (
        not reported_runs
        or total_usd is None
        or total_usd >= max(reported_runs)[0] * (1 + percent / 100)
    ):
        return None
    return reported_runs[0][1]


def _changes(
    case: api.FamilyCase, own_summary: api.AuditSummary, completed_runs: Sequence[api.AuditSummary]
) -> Iterator[tuple[str, str]]:
    job = case.job
    for key, label in (("instance_type", "type"), ("instance_count", "count")):
        usual_value, current_value = _most_common(completed_runs, key), getattr(own_summary, key)
        if None not in (usual_value, current_value) and usual_value != current_value:
            yield f"changed_{label}", f"the {label} ({usual_value} to {current_value})"
    purchase = _most_common(completed_runs, "purchase")
    if purchase is not own_summary.purchase:
        yield "changed_purchase", f"the purchase ({purchase} to {own_summary.purchase})"
    fingerprints = {run.fingerprint for run in completed_runs} - {None}
    if own_summary.fingerprint and fingerprints and own_summary.fingerprint not in fingerprints:
        yield "changed_settings", "the image, data or hyperparameters"
    first_points_s = [run.first_point_s for run in completed_runs if run.first_point_s is not None]
    own_first_s = first_point_s(job, case.whole_run)
    if first_points_s and own_first_s is not None:
        delay_s = own_first_s - median(first_points_s)
        if delay_s >= max(Decimal(_MIN_PHASE_GROWTH_S), median(first_points_s) / 2):
            yield (
                "changed_data",
                f"its data ({api.duration_text(delay_s)} more until its first point)",
            )
    usual_gb = [run.disk_gb for run in completed_runs if run.disk_gb]
    own_gb = disk_gb(job, case.whole_run)
    if (
        usual_gb
        and own_gb
        and own_gb - median(usual_gb) >= max(_MIN_DISK_GROWTH_GB, median(usual_gb) / 2)
    ):
        growth = own_gb / median(usual_gb)
        yield "changed_disk", f"its data ({growth:.1f} times as much disk used)"
    billed_phases = {
        phase.name for phase in job.phases if phase.billed
    } & own_summary.phase_s.keys()
    growth_s = {
        name: own_summary.phase_s[name] - _usual_s(completed_runs, name)
        for name in sorted(billed_phases)
    }
    longest = max(growth_s, key=lambda name: growth_s[name], default=None)
    if longest is not None and growth_s[longest] >= _MIN_PHASE_GROWTH_S:
        yield "changed_phase", f"{longest} ({api.duration_text(growth_s[longest])} longer)"


def _most_common(runs: Sequence[api.AuditSummary], key: str) -> object:
    values = [value for run in runs if (value := getattr(run, key)) is not None]
    return Counter(values).most_common(1)[0][0] if values else None


def _usual_s(runs: Sequence[api.AuditSummary], phase: str) -> Decimal:
    return median([run.phase_s.get(phase, Decimal(0)) for run in runs])
