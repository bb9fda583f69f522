"""Audits of recordings, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from sageaudit.adapters.files import policy_file
from sageaudit.adapters.files.exact_json import to_json
from sageaudit.adapters.files.recording import parsed
from sageaudit.cli.support.recordings.recorded_audits import audit_recorded, audit_recording
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, stands
from sageaudit.domain.bill.finding import Bucket, Confidence, Scalar, Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, Malformed

_Path = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Fix:
    """One change of the request: `parameter` is its path; `old` None where it was not set."""

    parameter: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class FindingResult:
    """One finding. `saving_usd` is its share of the bill, None where it is not known.

    `counted`: it is in the audit's avoidable or lost dollars. `stands` is False where it is exempt,
    or another finding includes it. A `fix` of several changes applies together.
    """

    rule: str
    id: str
    severity: Severity
    confidence: Confidence
    bucket: Bucket
    summary: str
    saving_usd: Decimal | None
    least_usd: Decimal | None
    most_usd: Decimal | None
    counted: bool
    stands: bool
    estimated: bool
    caution: str | None
    fix: tuple[Fix, ...]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """One audit. Amounts are USD; None means not known, never 0.

    `document` is the whole audit as docs/schema/audit.schema.json describes it; the properties
    are what is asked most.
    """

    document: AuditDocument

    @property
    def job(self) -> str:
        """The job's name."""
        return self.document["job"]["name"]

    @property
    def arn(self) -> str | None:
        """The job's ARN."""
        return self.document["job"]["arn"]

    @property
    def kind(self) -> str:
        """Training, processing, transform or tuning, in small letters."""
        return self.document["job"]["kind"]

    @property
    def status(self) -> str:
        """The job's status, in AWS's words."""
        return self.document["job"]["status"]

    @property
    def family(self) -> str:
        """The name that the runs of one workload share."""
        return self.document["job"]["family"]

    @property
    def owner(self) -> str | None:
        """The value of the first of the policy's owner tags."""
        return self.document["job"]["owner"]

    @property
    def started_at(self) -> datetime | None:
        """In UTC."""
        return _time(self.document["job"]["started_at"])

    @property
    def ended_at(self) -> datetime | None:
        """In UTC."""
        return _time(self.document["job"]["ended_at"])

    @property
    def total_usd(self) -> Decimal | None:
        """What the job cost."""
        return self.document["bill"]["total_usd"]

    @property
    def avoidable_usd(self) -> Decimal | None:
        """What another setting would have saved."""
        return self.document["avoidable_usd"]

    @property
    def lost_usd(self) -> Decimal | None:
        """What was paid for work without a result."""
        return self.document["lost_usd"]

    @property
    def possible_usd(self) -> Decimal | None:
        """What is worth a trial; in no sum."""
        return self.document["possible_usd"]

    @property
    def judged(self) -> str | None:
        """How much of the job could be judged: yes, partly or no."""
        return self.document["judged"]

    @property
    def not_judged(self) -> tuple[str, ...]:
        """What was not judged, why, and what to do."""
        return tuple(self.document["not_judged"])

    @property
    def findings(self) -> tuple[FindingResult, ...]:
        """The findings, the dearest first."""
        return tuple(map(_finding, self.document["findings"]))

    @property
    def children(self) -> tuple[AuditResult, ...]:
        """The audits of a tuning job's training jobs, where the recording has them."""
        return tuple(map(AuditResult, self.document["children"] or ()))

    def to_json(self) -> str:
        """One line of JSON, as `sageaudit audit --output json` prints it; decimals stay exact."""
        return to_json(self.document)

    def __repr__(self) -> str:
        return f"<audit of {self.job}: {len(self.document['findings'])} findings>"


def audit(
    recording: _Path | Mapping[str, Any], *, policy: _Path | Policy | None = None
) -> AuditResult:
    """Audits a recorded job, without a call to AWS.

    `recording` is a file that `sageaudit record` wrote, a Describe* response as the AWS CLI prints
    it, or the parsed JSON of either. `policy` is a policy file; by default that of a new
    installation. Raises BadRecording or BadPolicy, each a SageauditError.
    """
    chosen = policy if isinstance(policy, Policy) else policy_of(policy)
    if not isinstance(recording, Mapping):
        return AuditResult(audit_recording(Path(recording), chosen))
    try:
        return AuditResult(audit_recorded(parsed(recording), chosen))
    except Malformed as error:
        raise BadRecording(str(error)) from error


def policy_of(path: _Path | None) -> Policy:
    """A policy file's policy. Raises BadPolicy."""
    return Policy() if path is None else policy_file.load(Path(path))


def _finding(row: FindingDocument) -> FindingResult:
    bucket, span = Bucket(row["bucket"]), row["saving_range_usd"]
    standing = stands(row)
    return FindingResult(
        rule=row["rule"],
        id=row["id"],
        severity=Severity(row["severity"]),
        confidence=Confidence(row["confidence"]),
        bucket=bucket,
        summary=row["summary"],
        saving_usd=row["saving_usd"],
        least_usd=span[0] if span else row["saving_usd"],
        most_usd=span[1] if span else row["saving_usd"],
        counted=standing and bucket.counted and row["saving_usd"] is not None,
        stands=standing,
        estimated=row.get("estimated", False),
        caution=row["caution"],
        fix=tuple(
            Fix(one["parameter"], cast("Scalar", one["old"]), cast("Scalar", one["new"]))
            for one in row["fix"]
        ),
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
