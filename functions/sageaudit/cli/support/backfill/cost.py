"""What the functions use for one audit, at list prices: an estimate, to the first digit."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

PRICES_AS_OF = "2025"
"""List prices of us-east-1, without free tiers."""
HOSTS = 4
"""Of the job that is counted with: our choice."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one audit uses of a service, at a price in USD a unit."""

    name: str
    unit: str
    usd: str
    per_job: float

    def of(self, jobs: int) -> Decimal:
        """USD of so many jobs."""
        return Decimal(self.usd) * Decimal(str(self.per_job)) * jobs


QUEUES = Use("SQS, most of it by waiting functions", "request", "0.0000004", 30)
FUNCTIONS = Use("Lambda", "GB-second (Arm)", "0.0000133334", 11)
METRICS = Use("CloudWatch GetMetricData", "metric", "0.00001", 5 * HOSTS)
WRITES = Use("DynamoDB writes, in transactions", "write unit", "0.000000625", 60)
LOGS = Use("CloudWatch Logs", "GB", "0.50", 1e-5)
STORAGE = Use("DynamoDB storage and recovery", "GB-month", "0.45", 15e-6)
AUDIT = (METRICS, FUNCTIONS, WRITES, QUEUES, LOGS)
"""What is used once."""
