"""Finds the newest audited run of a job by its ARN or name, with few reads.

No list is ordered by name, so it looks where the name says: in the families that have the name's
stem, by the daily sums; then on the days after a time in the name; then newest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice

from sageaudit.domain.audit.record import Head, RunQuery
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.family import stem
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.listed import LONGEST_LIFE
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import AmbiguousName, JobNotFound
from sageaudit.queries.lists import Lists, place
from sageaudit.queries.question import Question
from sageaudit.queries.window import Window

_DAY_IN_NAME = re.compile(r"(?<!\d)(20\d{2})-?(\d{2})-?(\d{2})(?!\d{3})")
_PAGE = 50
_COMPARED = 1_000
"""Names of the newest jobs among which that of a mistyped one is looked for."""
_NAMED = 3
"""ARNs that are listed where a name is ambiguous."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The job to find: an ARN or a name, and what else is known of it."""

    job: str
    kind: JobKind | None = None
    account: str | None = None
    region: str | None = None

    @property
    def ref(self) -> JobRef | None:
        """What an ARN tells; None for a name."""
        return JobRef.from_arn(self.job)

    @property
    def name(self) -> str:
        """The job's name; that of an ARN is in lower case."""
        return self.ref.name if self.ref else self.job

    def matches(self, head: Head) -> bool:
        """Whether this is a run of the job."""
        if self.ref is not None:
            return head.key.arn.lower() == self.job.lower()
        others = ((self.kind, head.kind), (self.account, head.account), (self.region, head.region))
        return head.name.lower() == self.job.lower() and all(
            wanted is None or wanted == value for wanted, value in others
        )


def find(lists: Lists, wanted: Wanted) -> Head:
    """The newest run of the job that ended in the window of these lists.

    Raises JobNotFound, or AmbiguousName where jobs of several kinds, accounts or regions have the
    name: those found while looking for the first.
    """
    lists = replace(lists, page_size=_PAGE)
    for place_to_look in (_in_families, _by_day_in_name):
        runs = list(place_to_look(lists, wanted))
        if runs:
            return _newest(runs, wanted)
    return _newest_first(lists, wanted)


def _newest(runs: Iterable[Head], wanted: Wanted) -> Head:
    ordered = sorted(runs, key=place, reverse=True)
    arns = list(dict.fromkeys(head.key.arn for head in ordered))
    if len(arns) > 1:
        listed = " and ".join(arns[:_NAMED]) + (" and others" if len(arns) > _NAMED else "")
        raise AmbiguousName(f"{wanted.job} is several jobs, {listed}: give the ARN of one")
    return ordered[0]


def _in_families(lists: Lists, wanted: Wanted) -> Iterator[Head]:
    """The newest run in each family whose name ends in the stem of the job's name."""
    ref = wanted.ref
    account = ref.account if ref else wanted.account
    region = ref.region if ref else wanted.region
    ends = {wanted.name.lower(), stem(wanted.name).lower()}
    rows = lists.sums(Scope.FAMILY, account=account, region=region)
    families = {
        (row.account, row.region, row.name)
        for row in rows
        if row.name and _may_hold(row.name.lower(), ends, wanted.name.lower())
    }
    narrow = _around(lists, _day_in(wanted.name))
    for place_of_family in sorted(families):
        heads = narrow.family(*place_of_family, narrow.window.until)
        yield from islice(filter(wanted.matches, heads), 1)


def _around(lists: Lists, made: datetime | None) -> Lists:
    """The lists of the days on which a job made on that day may have ended."""
    if made is None:
        return lists
    since = max(lists.window.since, made - timedelta(days=1))
    until = min(lists.window.until, made + LONGEST_LIFE + timedelta(days=2))
    return replace(lists, window=Window(since, until))


def _day_in(name: str) -> datetime | None:
    """The midnight before a time in a job's name, as the SDK and tuning jobs write it."""
    found = _DAY_IN_NAME.search(name)
    try:
        return found and datetime.fromisoformat("-".join(found.groups())).replace(tzinfo=UTC)
    except ValueError:
        return None


def _may_hold(family: str, ends: set[str], name: str) -> bool:
    """A training job of a tuning job is named after it, and its family is the tuning job's ARN."""
    last = family.rpartition("/")[2]
    return last in ends or (family.startswith("arn:") and name.startswith(last))


def _by_day_in_name(lists: Lists, wanted: Wanted) -> Iterator[Head]:
    """The job, looked for on the days from the one in its name on: most jobs end on the first."""
    made = _day_in(wanted.name)
    if made is None:
        return
    days = _around(lists, made).window
    begin = days.since
    while begin < days.until:
        for head in lists.history.runs(RunQuery.of_day(begin.date())):
            lists.read.rows += 1
            if wanted.matches(head):
                yield head
                return
        begin += timedelta(days=1)


def _newest_first(lists: Lists, wanted: Wanted) -> Head:
    """The first that matches, in the list of the account where it is known."""
    account = wanted.ref.account if wanted.ref else wanted.account
    names: dict[str, None] = {}
    for head in lists.heads(Question(lists.window, account=account)):
        if wanted.matches(head):
            return head
        if len(names) < _COMPARED:
            names[head.name] = None
    near = did_you_mean(wanted.name, names)
    earlier = f"{near} For one that" if near else ": for a job that"
    raise JobNotFound(
        f"no audit of {wanted.job} since {lists.window.first_day} is in this history{earlier}"
        " ended earlier, give --since"
    )
