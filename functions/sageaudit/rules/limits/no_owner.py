"""Runs of the account have no owner.

What it checks: At least 10% of the account's audited runs, or of their dollars, have none of the
    policy's `owner_tags`. It judges the account, never a single job.
Why it costs: Nothing by itself. Without an owner nobody receives a finding, and nobody acts on it.
Saving: None: it measures how much of the spend has no owner.
When it is wrong: If the tags of other accounts' jobs may not be read, all their jobs seem to have
    no owner. Jobs that a service starts (Debugger rules, AutoML, monitoring) have only the tags
    that it passes on.
What to do: Tag at the source: the pipeline, the SDK's session defaults, or a tag policy that
    refuses jobs without the tag. Studio tags jobs with the user's profile by itself.
Sources: SageMaker Studio administration best practices: jobs get `sagemaker:user-profile-arn`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from sageaudit.rules import api

SHARE_FROM = api.Threshold(
    "share_from_percent", 10, "percent of runs or dollars", "a tenth of the account"
)
_ZERO = Decimal(0)


def _no_owner_tags(case: api.AccountCase) -> str | None:
    return None if case.policy.owner_tags else "the policy names no owner tags"


@api.rule(
    id="SA605",
    scope=api.AccountCase,
    kinds=set(api.JobKind),
    thresholds=(SHARE_FROM,),
    not_applicable=(_no_owner_tags,),
)
def check(case: api.AccountCase) -> api.Outcome:
    """Counts runs and known dollars."""
    if not case.runs:
        return api.Unknown("no_runs", "there are no audited runs to count")
    without = [run for run in case.runs if run.owner is None]
    percent = Decimal(100) * len(without) / len(case.runs)
    total_usd, without_usd = _known_usd(case.runs), _known_usd(without)
    usd_percent = 100 * without_usd / total_usd if total_usd else _ZERO
    if not without or max(percent, usd_percent) < case.limit(SHARE_FROM):
        return api.Clear()
    family, family_usd = _dearest_family(without)
    return api.fact(
        f"{len(without)} of {len(case.runs)} runs in {case.days} days ({percent:.0f}%) have no "
        f"owner: ${without_usd:,.2f} of ${total_usd:,.2f} ({usd_percent:.0f}%).",
        {
            "days": case.days,
            "runs": len(case.runs),
            "runs_without_owner": len(without),
            "runs_percent": round(percent, 1),
            "total_usd": total_usd,
            "without_owner_usd": without_usd,
            "usd_percent": round(usd_percent, 1),
            "runs_of_unknown_cost": sum(run.total_usd is None for run in case.runs),
            "dearest_family": family,
            "dearest_family_usd": family_usd,
        },
        fix=(api.Parameter(f"Tags[{case.policy.owner_tags[0]}].Value", None, "<team or person>"),),
        caution="It measures the account and saves nothing.",
    )


def _known_usd(runs: Sequence[api.EarlierRun]) -> Decimal:
    return sum((run.total_usd for run in runs if run.total_usd is not None), _ZERO)


def _dearest_family(runs: Sequence[api.EarlierRun]) -> tuple[str, Decimal]:
    """The family where tags help most; the first name if several cost the same."""
    family_usd: defaultdict[str, Decimal] = defaultdict(Decimal)
    for run in runs:
        family_usd[run.family] += run.total_usd or _ZERO
    return min(family_usd.items(), key=lambda pair: (-pair[1], pair[0]))
