"""Lists the jobs of one account in several regions at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial

from msgspec import Struct

from sageaudit.domain.job.kinds import BILLED_KINDS, JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.sweep import Listed, Period, chosen, with_listed_children
from sageaudit.errors import AwsError
from sageaudit.ports import JobLists, Workers


class ListRefusal(Struct, frozen=True):
    """A kind of job that could not be listed in a region."""

    region: str
    kind: JobKind
    error: AwsError


class ListedJobs(Struct, frozen=True):
    """The jobs of a period, in any order, and what could not be listed.

    `answered`: at least one list was read, so that no jobs means that there are none.
    """

    jobs: tuple[Listed, ...]
    refusals: tuple[ListRefusal, ...]
    answered: bool


Launched = Callable[[JobRef], Iterable[JobRef]]
"""The jobs that a roll-up launched. Raises AwsError."""


def list_jobs(
    lists: JobLists,
    launched: Launched,
    regions: Iterable[str],
    kinds: Collection[JobKind],
    period: Period,
    workers: Workers,
) -> ListedJobs:
    """The jobs of these kinds that ended in the period or have not ended, of all regions.

    A refusal of one kind in one region does not stop the others. With a roll-up come the jobs that
    it launched, whatever their kind and day.
    """
    asked = _with_children(kinds)
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
        rows = [row for answer in answers if not isinstance(answer, ListRefusal) for row in answer]
        children = set[JobRef]()
        for row in with_listed_children(rows, period, kinds):
            try:
                children.update(launched(row.ref))
            except AwsError as error:
                refusals.append(ListRefusal(row.ref.region, row.ref.kind, error))
        jobs += chosen(rows, period, kinds, children)
        answered |= not all(isinstance(answer, ListRefusal) for answer in answers)
    return ListedJobs(tuple(jobs), tuple(refusals), answered)


def _with_children(kinds: Collection[JobKind]) -> list[JobKind]:
    """These kinds and those of the jobs that they launch."""
    asked = dict.fromkeys(kinds)
    for rollup in (kind.row.rollup for kind in kinds):
        if rollup is not None:
            asked |= dict.fromkeys([rollup.child_kind] if rollup.child_kind else BILLED_KINDS)
    return [*asked]


def _listed(
    lists: JobLists, kind: JobKind, region: str, period: Period
) -> list[Listed] | ListRefusal:
    try:
        return list(lists.listed(kind, region, period))
    except AwsError as error:
        return ListRefusal(region, kind, error)
