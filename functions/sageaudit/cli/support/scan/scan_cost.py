"""What a scan itself costs, and how long AWS's rates make it take at least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from sageaudit.adapters.aws.pace import DESCRIBES_A_SECOND
from sageaudit.domain.job.listed import Listed

USD_PER_METRIC = Decimal("0.01") / 1000
"""GetMetricData: $0.01 per 1,000 metrics requested; not in the free tier.

Sources: re:Post, knowledge-center/cloudwatch-getmetricdata-api (no free tier);
support.site24x7.com, aws-cloudwatch-metrics-cost-calculation (the price).
"""
METRICS_A_HOST = 5
"""CPU, memory, disk, GPU and GPU memory; a host without GPUs has three."""


@dataclass(frozen=True, slots=True)
class ScanCost:
    """What auditing these jobs costs. The number of hosts is known after Describe: one is assumed.

    List*, Describe*, ListTags and GetProducts cost nothing.
    """

    jobs: int
    metrics: int
    least_s: float
    """AWS's rates allow no less."""

    @property
    def usd(self) -> Decimal:
        """For the metrics requested."""
        return usd_of(self.metrics)


def scan_cost(jobs: Iterable[Listed]) -> ScanCost:
    """The cost of asking AWS about these jobs."""
    of_place: Counter[tuple[str, str]] = Counter()
    metrics = count = 0
    for job in jobs:
        count += 1
        of_place[job.ref.account, job.ref.region] += 1
        metrics += METRICS_A_HOST if not job.ref.kind.row.rollup else 0
    return ScanCost(count, metrics, max(of_place.values(), default=0) / DESCRIBES_A_SECOND)


def usd_of(metrics: int) -> Decimal:
    """What GetMetricData costs for so many metrics."""
    return metrics * USD_PER_METRIC
