"""What the same job cost and how long it took, by its number of instances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.job.job import Job


@dataclass(frozen=True, slots=True)
class OnCount:
    """The runs on one number of instances: medians, and the slowest of them."""

    count: int
    runs: int
    usd: Decimal
    seconds: Decimal
    slowest_s: Decimal


def by_count(samples: Iterable[tuple[int, Decimal, Decimal]], least_runs: float) -> list[OnCount]:
    """Of runs as (count, dollars, seconds); only counts with so many runs, the cheapest first."""
    runs = defaultdict[int, list[tuple[Decimal, Decimal]]](list)
    for count, usd, seconds in samples:
        runs[count].append((usd, seconds))
    counts = []
    for count, sample in runs.items():
        if len(sample) >= least_runs:
            dollars, took = [usd for usd, _ in sample], [seconds for _, seconds in sample]
            counts.append(OnCount(count, len(sample), median(dollars), median(took), max(took)))
    return sorted(counts, key=lambda on_count: (on_count.usd, on_count.count))


def same_work(job: Job, run: EarlierRun) -> bool:
    """The same code, hyperparameters and inputs, completed on the same type, bought the same way.

    Whether the inputs held the same data is another question (`data_pinned`).
    """
    facts = run.facts
    return (
        run.status == "Completed"
        and run.kind == job.kind.value
        and job.fingerprint is not None
        and facts.fingerprint == job.fingerprint
        and len(job.groups) == 1
        and facts.instance_type == job.groups[0].instance_type
        and facts.purchase is job.purchase
    )
