"""What the same job cost and how long it took, by its number of instances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from sageaudit.rules import api


@dataclass(frozen=True, slots=True)
class OnCount:
    """The runs on one number of instances: medians, and the slowest of them."""

    count: int
    runs: int
    usd: Decimal
    seconds: Decimal
    slowest_s: Decimal


@dataclass(frozen=True, slots=True)
class CheaperCount:
    """The runs on today's number of instances, and on the cheapest smaller one.

    `same_data`: all of them are known to have read the same data.
    """

    today: OnCount
    fewer: OnCount
    same_data: bool

    @property
    def dearer_percent(self) -> Decimal:
        """How much more the median run costs today."""
        return 100 * (self.today.usd / self.fewer.usd - 1)


def cheaper_count(case: api.FamilyCase, least_runs: float) -> CheaperCount | None:
    """Among the family's runs of the same work; None without `least_runs` on both counts."""
    job, count = case.job, case.job.groups[0].count
    if job.status != "Completed" or not job.elapsed_s:
        return None
    like = [run for run in case.runs if same_work(job, run)]
    samples = [(run.facts.instance_count, run.total_usd, run.facts.elapsed_s) for run in like]
    samples.append((count, case.bill.total_usd, job.elapsed_s))
    counts = by_count([(n, usd, s) for n, usd, s in samples if n and usd and s], least_runs)
    today = next((runs for runs in counts if runs.count == count), None)
    fewer = next((runs for runs in counts if runs.count < count), None)
    if today is None or fewer is None:
        return None
    same_data = all([job.data_pinned is True, *(run.facts.data_pinned is True for run in like)])
    return CheaperCount(today, fewer, same_data)


def by_count(samples: Iterable[tuple[int, Decimal, Decimal]], least_runs: float) -> list[OnCount]:
    """Groups runs (count, dollars, seconds); only counts with enough runs, the cheapest first."""
    runs = defaultdict[int, list[tuple[Decimal, Decimal]]](list)
    for count, usd, seconds in samples:
        runs[count].append((usd, seconds))
    counts = []
    for count, sample in runs.items():
        if len(sample) >= least_runs:
            dollars, took = [usd for usd, _ in sample], [seconds for _, seconds in sample]
            counts.append(OnCount(count, len(sample), median(dollars), median(took), max(took)))
    return sorted(counts, key=lambda on_count: (on_count.usd, on_count.count))


def same_work(job: api.Job, run: api.EarlierRun) -> bool:
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
