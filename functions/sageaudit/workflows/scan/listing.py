"""Lists the jobs of one account in several regions at the same time."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import Listed, Period, chosen
from sageaudit.errors import AwsError
from sageaudit.ports import JobLists, Workers


@dataclass(frozen=True, slots=True)
class ListRefusal:
    """A kind of job that could not be listed in a region."""

    region: str
    kind: JobKind
    error: AwsError


@dataclass(frozen=True, slots=True)
class ListedJobs:
    """The jobs of a period, in any order, and what could not be listed.

    `answered`: at least one list was read, so that no jobs means that there are none.
    """

    jobs: tuple[Listed, ...]
    refusals: tuple[ListRefusal, ...]
    answered: bool


def list_jobs(
    lists: JobLists,
    regions: Iterable[str],
    kinds: Collection[JobKind],
    period: Period,
    workers: Workers,
) -> ListedJobs:
    """The jobs of these kinds that ended in the period or have not ended, of all regions.

    A refusal of one kind in one region does not stop the others. With tuning jobs come their
    training jobs, whatever their kind and day.
    """
    asked = [*kinds]
    if any(kind.row.rollup for kind in kinds) and JobKind.TRAINING not in kinds:
        asked.append(JobKind.TRAINING)
    lists_of = {
        region: [workers.submit(partial(_listed, lists, kind, region, period)) for kind in asked]
        for region in regions
    }
    jobs: list[Listed] = []
    refusals: list[ListRefusal] = []
    answered = False
    for pending in lists_of.values():
        answers = [one.result() for one in pending]
        refusals += [answer for answer in answers if isinstance(answer, ListRefusal)]
        rows = (row for answer in answers if not isinstance(answer, ListRefusal) for row in answer)
        jobs += chosen(rows, period, kinds)
        answered |= not all(isinstance(answer, ListRefusal) for answer in answers)
    return ListedJobs(tuple(jobs), tuple(refusals), answered)


def _listed(
    lists: JobLists, kind: JobKind, region: str, period: Period
) -> list[Listed] | ListRefusal:
    try:
        return list(lists.listed(kind, region, period))
    except AwsError as error:
        return ListRefusal(region, kind, error)
