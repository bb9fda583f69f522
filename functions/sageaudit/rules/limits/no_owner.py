"""Runs of the account have no owner.

## What it checks
A figure of the account, never of one job: at least 10% of its audited runs, or of their dollars,
carry none of the policy's `owner_tags`.

## Why it costs
Nothing by itself. A finding without an owner is told to nobody in particular, and nobody mends it.

## Saving
None: it is a measure of how much of the spend can be brought to somebody.

## When it is wrong
Where the tags of other accounts' jobs may not be read, all their jobs seem to have no owner. Jobs
that a service starts (Debugger rules, AutoML, monitoring) carry only the tags that it passes on.

## What to do
Tag at the source: the pipeline, the SDK's session defaults, or a tag policy that refuses jobs
without the tag. Studio tags jobs with the user's profile by itself.

## Sources
SageMaker Studio administration best practices: jobs get `sagemaker:user-profile-arn`. The 10% is
our choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.kinds import JobKind
from sageaudit.rules.card import AccountCase, Threshold, rule

SHARE_FROM = Threshold(
    "share_from_percent", 10, "percent of runs or dollars", "a tenth of the account", "our choice"
)
_ZERO = Decimal(0)


def _excuse(case: AccountCase) -> str | None:
    return None if case.policy.owner_tags else "the policy names no owner tags"


@rule(
    id="SA605",
    scope=AccountCase,
    kinds=set(JobKind),
    thresholds=(SHARE_FROM,),
    excuse=_excuse,
)
def check(case: AccountCase) -> Outcome:
    """Counts runs and known dollars."""
    if not case.runs:
        return Unknown("no_runs", "there are no audited runs to count")
    without = [run for run in case.runs if run.owner is None]
    percent = Decimal(100) * len(without) / len(case.runs)
    total_usd, without_usd = _usd(case.runs), _usd(without)
    usd_percent = 100 * without_usd / total_usd if total_usd else _ZERO
    if not without or max(percent, usd_percent) < case.limit(SHARE_FROM):
        return Clear()
    family, family_usd = _dearest_family(without)
    return Found(
        confidence=Confidence.MEASURED,
        bucket=Bucket.NONE,
        summary=(
            f"{len(without)} of {len(case.runs)} runs in {case.days} days ({percent:.0f}%) have no "
            f"owner: ${without_usd:,.2f} of ${total_usd:,.2f} ({usd_percent:.0f}%)."
        ),
        evidence={
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
        fix=(Parameter(f"Tags[{case.policy.owner_tags[0]}].Value", None, "<team or person>"),),
        caution="No figure: it is a measure of the account, not a saving.",
    )


def _usd(runs: Sequence[EarlierRun]) -> Decimal:
    """The dollars that are known."""
    return sum((run.total_usd for run in runs if run.total_usd is not None), _ZERO)


def _dearest_family(runs: Sequence[EarlierRun]) -> tuple[str, Decimal]:
    """Where tagging helps most; the first name where several cost the same."""
    usd: defaultdict[str, Decimal] = defaultdict(Decimal)
    for run in runs:
        usd[run.family] += run.total_usd or _ZERO
    return min(usd.items(), key=lambda pair: (-pair[1], pair[0]))
