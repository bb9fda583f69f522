"""Counts the outcomes of a scan's jobs, without keeping the jobs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.adapters.aws.pace import DESCRIBES_PER_SECOND
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.sweep import ListedJob
from sageaudit.errors import AccessDenied, AwsError, NoCredentials, SageauditError, Throttled
from sageaudit.exits import Exit, exit_for, worst_exit
from sageaudit.workflows.scan.lanes import JobOutcome, ScanResult

_MAX_REASONS = 100
"""How many reasons are counted separately. There are only a few sentences, with
different figures.
"""
_OTHERS = "(other reasons)"
_FIGURE = re.compile(r"\d[\d,.]*(?<=\d)")


class ScanTally(Struct):
    """The counts of a scan. `sums` are the amounts of all jobs with an audit, also of earlier
    audits.

    A progress bar shows these sums. The ranking reads the history's own sums.
    """

    results: Counter[ScanResult] = field(default_factory=Counter)
    sums: Sums = field(default_factory=Sums)
    not_judged: Counter[str] = field(default_factory=Counter)
    """The number of jobs by the reason why they were not fully judged.

    Reasons that differ only by figures are counted together, with the first job's figures.
    """
    job_count_by_refusal: Counter[str] = field(default_factory=Counter)
    """The number of jobs by the error that prevented their audit."""
    codes: set[Exit] = field(default_factory=set)
    _reason_by_pattern: dict[str, str] = field(default_factory=dict)

    @property
    def job_count(self) -> int:
        """The number of jobs with a result."""
        return self.results.total()

    def add(self, outcome: JobOutcome) -> None:
        """Counts the outcome of one job."""
        self.results[outcome.result] += 1
        if outcome.sums is not None:
            self.sums += outcome.sums
        for reason in outcome.not_judged:
            self.not_judged[self._canonical_reason(reason)] += 1
        if outcome.error is not None:
            self.refuse(str(outcome.error), exit_for(outcome.error))

    def refuse(self, reason: str, code: Exit, times: int = 1) -> None:
        """Counts an error `times` times, with its exit code."""
        is_listed = (
            reason in self.job_count_by_refusal or len(self.job_count_by_refusal) < _MAX_REASONS
        )
        self.job_count_by_refusal[reason if is_listed else _OTHERS] += times
        self.codes.add(code)

    def merge(self, other: ScanTally, error: SageauditError | None) -> None:
        """Adds the refusals of one account. `error` says why none of its jobs could be listed."""
        for reason, count in other.job_count_by_refusal.items():
            self.refuse(reason, other.exit_code, count)
        self.codes |= {*other.codes, *([exit_for(error)] if error else [])}

    @property
    def exit_code(self) -> Exit:
        """The exit code of the worst failure."""
        return worst_exit(self.codes)

    def _canonical_reason(self, reason: str) -> str:
        """Returns the first reason that differs from `reason` only by its figures."""
        pattern = _FIGURE.sub("#", reason)
        if pattern not in self._reason_by_pattern and len(self._reason_by_pattern) >= _MAX_REASONS:
            return _OTHERS
        return self._reason_by_pattern.setdefault(pattern, reason)


USD_PER_METRIC = Decimal("0.01") / 1000
"""The price of requesting one metric by GetMetricData: $0.01 per 1,000; not in the free tier.

Sources: re:Post, knowledge-center/cloudwatch-getmetricdata-api (no free tier);
support.site24x7.com, aws-cloudwatch-metrics-cost-calculation (the price).
"""
METRICS_PER_HOST = 5
"""The maximum number of a host's metrics. Without GPUs there are at most three."""


class ScanCost(Struct, frozen=True):
    """The cost of auditing a number of jobs.

    It assumes one host per job, as only Describe returns the number of hosts. List*, Describe*,
    ListTags and GetProducts cost nothing.
    """

    jobs: int
    metrics: int
    min_seconds: float
    """The shortest duration that AWS's rate limits allow."""

    @property
    def usd(self) -> Decimal:
        """The cost of the requested metrics."""
        return metrics_cost_usd(self.metrics)


def scan_cost(jobs: Iterable[ListedJob]) -> ScanCost:
    """Returns the cost of requesting these jobs from AWS."""
    jobs_by_region: Counter[tuple[str, str]] = Counter()
    metrics = count = 0
    for job in jobs:
        count += 1
        jobs_by_region[job.ref.account, job.ref.region] += 1
        metrics += METRICS_PER_HOST if not job.ref.kind.spec.rollup else 0
    return ScanCost(count, metrics, max(jobs_by_region.values(), default=0) / DESCRIBES_PER_SECOND)


def metrics_cost_usd(metrics: int) -> Decimal:
    """Returns the cost of GetMetricData for this many metrics."""
    return metrics * USD_PER_METRIC


class AccountStatus(Struct):
    """The status of one account. `error` says why none of its jobs could be listed."""

    account: str
    name: str | None = None
    error: AwsError | None = None
    listed_job_count: int = 0
    tally: ScanTally = field(default_factory=ScanTally)
    sums: Sums = field(default_factory=Sums)
    """The sums of the account's audits in the history, for the scanned days and regions."""

    @property
    def unread_job_count(self) -> int:
        """The number of the account's jobs that the scan did not reach."""
        return self.listed_job_count - self.tally.job_count

    @property
    def word(self) -> str:
        """The status in one word, on which scripts may rely."""
        if self.error is not None:
            return _status_of_error(self.error)
        if (
            self.unread_job_count
            or self.tally.job_count_by_refusal
            or self.tally.results[ScanResult.NOT_ASKED]
        ):
            return "partly"
        return "audited" if self.listed_job_count else "no_jobs"

    @property
    def reasons(self) -> list[str]:
        """Why not all of the account's jobs were audited, each reason once."""
        return [str(self.error)] if self.error else [*self.tally.job_count_by_refusal]


def _status_of_error(error: AwsError) -> str:
    if isinstance(error, AccessDenied):
        return "role_refused" if error.action == "sts:AssumeRole" else "denied"
    if isinstance(error, NoCredentials):
        return "no_credentials"
    return "throttled" if isinstance(error, Throttled) else "unavailable"
