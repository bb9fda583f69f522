"""The trials (training jobs) of a tuning job: their cost, their objective, and the savings.

A tuning job has no bill of its own. Its findings can claim the part of the trials' bills that is in
none of the trials' own findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.bill.change import DropTrials
from sageaudit.domain.bill.counterfactual import Severities
from sageaudit.domain.bill.finding import Bucket, Detection, Exemption, Finding, RuleInfo
from sageaudit.domain.job.job import sum_if_complete
from sageaudit.domain.job.parts import Objective
from sageaudit.domain.moments import parse_moment

_ZERO = Decimal(0)
_ORDER = (Bucket.LOST, Bucket.AVOIDABLE, Bucket.POSSIBLE, Bucket.NONE)
"""The order in which findings claim dollars, by bucket."""


class Trial(Struct, frozen=True):
    """The cost and objective of one trial. None means unknown.

    `objective`: the final value of the tuning job's metric. `counted_usd`: the part of the bill in
    the trial's own avoidable and lost findings. `possible_usd`: the part in its possible findings;
    0 if unknown.
    """

    name: str
    status: str
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: Decimal | None
    total_usd: Decimal | None
    counted_usd: Decimal | None
    objective: Decimal | None
    possible_usd: Decimal = _ZERO
    estimated: bool = False
    """Whether the trial's dollars depend on an estimated rate."""


def trial_from_document(
    document: AuditDocument, final_metrics: Mapping[str, Decimal], objective: Objective | None
) -> Trial:
    """Returns the trial that an audit describes.

    `final_metrics`: the final values that the trial reported. `objective`: the tuning job's metric;
    None if unknown.
    """
    job = document["job"]
    avoidable, lost = document["avoidable_usd"], document["lost_usd"]
    if document["judged"] == Judged.NO:
        avoidable = _ZERO
    billed = [part["seconds"] for part in document["phases"] if part["billed"]]
    return Trial(
        name=job["name"],
        status=job["status"],
        started_at=_moment(job["started_at"]),
        ended_at=_moment(job["ended_at"]),
        elapsed_s=sum_if_complete(billed) if billed else None,
        total_usd=document["bill"]["total_usd"],
        counted_usd=None if avoidable is None or lost is None else avoidable + lost,
        objective=final_metrics.get(objective.metric) if objective else None,
        possible_usd=document["possible_usd"] or _ZERO,
        estimated=bool(document["bill"]["estimated"]),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else parse_moment(text)


class TrialSavings(Struct, frozen=True):
    """The findings on the tuning job itself, with their savings."""

    findings: tuple[Finding, ...]

    def usd(self, bucket: Bucket) -> Decimal:
        """Returns the sum of the findings' USD in one bucket."""
        findings = (finding for finding in self.findings if finding.detection.bucket is bucket)
        return sum((finding.saving_usd or _ZERO for finding in findings), _ZERO)


def allocate_trial_savings(
    detections: Iterable[tuple[RuleInfo, Detection]],
    trials: Iterable[Trial],
    severities: Severities,
    exemptions: Mapping[str, Exemption],
) -> TrialSavings:
    """Returns the tuning job's findings, each with the unclaimed USD of the trials that it names.

    A dollar can be claimed once. Lost findings claim first, then avoidable and possible findings.
    """
    trial_by_name = {trial.name: trial for trial in trials}
    unclaimed_by_name = {name: _unclaimed_usd(trial) for name, trial in trial_by_name.items()}
    findings = []
    for rule, detection in sorted(
        detections, key=lambda pair: (_ORDER.index(pair[1].bucket), pair[0].id)
    ):
        change = detection.change
        names = change.trials if isinstance(change, DropTrials) else frozenset()
        exemption = exemptions.get(rule.name)
        share_usd = alone_usd = None
        if change is not None:
            alone_usd = sum_if_complete(
                trial_by_name[trial].total_usd for trial in names if trial in trial_by_name
            )
            share_usd = (
                _ZERO
                if exemption
                else sum_if_complete(
                    _remaining_usd(unclaimed_by_name, detection, trial) for trial in names
                )
            )
        if share_usd and detection.bucket is not Bucket.NONE:
            unclaimed_by_name |= dict.fromkeys(names, (_ZERO, _ZERO))
        findings.append(
            Finding(
                rule=rule,
                detection=detection,
                severity=severities.severity_for(
                    rule, detection.bucket, share_usd, is_priced=change is not None
                ),
                saving_usd=share_usd,
                alone_usd=alone_usd,
                range_usd=None,
                exempt=exemption,
                estimated=any(
                    trial_by_name[trial].estimated for trial in names if trial in trial_by_name
                ),
            )
        )
    return TrialSavings(tuple(findings))


def _unclaimed_usd(trial: Trial) -> tuple[Decimal | None, Decimal | None]:
    """Returns the USD that counted findings can claim, then the USD for possible findings.

    Both are None if the trial's bill or counted dollars are unknown.
    """
    if trial.total_usd is None or trial.counted_usd is None:
        return None, None
    unclaimed_usd = trial.total_usd - trial.counted_usd
    return unclaimed_usd, max(unclaimed_usd - trial.possible_usd, _ZERO)


def _remaining_usd(
    unclaimed_by_name: Mapping[str, tuple[Decimal | None, Decimal | None]],
    detection: Detection,
    trial: str,
) -> Decimal | None:
    counted_usd, possible_usd = unclaimed_by_name.get(trial, (_ZERO, _ZERO))
    return possible_usd if detection.bucket is Bucket.POSSIBLE else counted_usd
