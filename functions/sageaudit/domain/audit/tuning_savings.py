"""Dollars of a tuning job's findings: trials that were not necessary, each counted once.

A tuning job has no bill of its own. Its children's findings take their shares first; a tuning
finding takes from the rest of the bills of the trials that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.domain.audit.trial import Trial
from sageaudit.domain.bill.change import DropTrials
from sageaudit.domain.bill.counterfactual import Severities
from sageaudit.domain.bill.finding import Bucket, Exemption, Finding, Found, RuleName

_ZERO = Decimal(0)
_ORDER = (Bucket.LOST, Bucket.AVOIDABLE, Bucket.POSSIBLE, Bucket.NONE)


@dataclass(frozen=True, slots=True)
class TrialSavings:
    """Findings on the tuning job itself, and their counted shares by bucket."""

    findings: tuple[Finding, ...]

    def usd(self, bucket: Bucket) -> Decimal:
        """The shares of one bucket together."""
        return sum(
            (
                finding.saving_usd or _ZERO
                for finding in self.findings
                if finding.found.bucket is bucket
            ),
            _ZERO,
        )


def allocate_trials(
    founds: Iterable[tuple[RuleName, Found]],
    trials: Iterable[Trial],
    severities: Severities,
    exempt: Mapping[str, Exemption],
) -> TrialSavings:
    """Gives each finding what is left of the trials that it names. Pure; in any order."""
    bills = {trial.name: trial for trial in trials}
    left = {name: _left(trial) for name, trial in bills.items()}
    findings = []
    for name, found in sorted(founds, key=lambda pair: (_ORDER.index(pair[1].bucket), pair[0].id)):
        names = found.change.trials if isinstance(found.change, DropTrials) else frozenset()
        exemption = exempt.get(name.name)
        share = alone = None
        if found.change is not None:
            alone = _sum(bills[trial].total_usd for trial in names if trial in bills)
            share = _ZERO if exemption else _sum(_rest(left, found, trial) for trial in names)
        if share and found.bucket is not Bucket.NONE:
            left |= dict.fromkeys(names, (_ZERO, _ZERO))
        findings.append(
            Finding(
                rule=name,
                found=found,
                severity=severities.of(name, found.bucket, share, priced=found.change is not None),
                saving_usd=share,
                alone_usd=alone,
                range_usd=None,
                exempt=exemption,
                estimated=any(bills[trial].estimated for trial in names if trial in bills),
            )
        )
    return TrialSavings(tuple(findings))


def _left(trial: Trial) -> tuple[Decimal | None, Decimal | None]:
    """USD of a trial left for counted findings, and for possible ones."""
    if trial.total_usd is None or trial.claimed_usd is None:
        return None, None
    rest = trial.total_usd - trial.claimed_usd
    possible = None if trial.possible_usd is None else max(rest - trial.possible_usd, _ZERO)
    return rest, possible


def _rest(
    left: Mapping[str, tuple[Decimal | None, Decimal | None]], found: Found, trial: str
) -> Decimal | None:
    counted, possible = left.get(trial, (_ZERO, _ZERO))
    return possible if found.bucket is Bucket.POSSIBLE else counted


def _sum(values: Iterable[Decimal | None]) -> Decimal | None:
    parts = list(values)
    known = [part for part in parts if part is not None]
    return sum(known, _ZERO) if len(known) == len(parts) else None
