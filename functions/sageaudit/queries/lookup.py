"""Finds the newest audited run of a job by its ARN or name, with few reads.

No list is ordered by name, so it looks where the name says: in the families that have the name's
stem, by the daily sums; then on the days after a time in the name; then newest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sageaudit.domain.audit.record import Head
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.family import stem
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.errors import AmbiguousName, JobNotFound
from sageaudit.ports import History
from sageaudit.queries.lists import Lists, Reading, place
from sageaudit.queries.question import Question
from sageaudit.queries.window import Window

_DAY_IN_NAME = re.compile(r"(?<!\d)(20\d{2})-?(\d{2})-?(\d{2})(?!\d{3})")
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


@dataclass(frozen=True, slots=True)
class Found:
    """The newest run, how many older runs of the job were found beside it, and what was read."""

    head: Head
    older_runs: int
    reading: Reading


def find(history: History, wanted: Wanted, window: Window) -> Found:
    """The newest run of the job that ended in the window.

    Raises JobNotFound, or AmbiguousName where jobs of several kinds, accounts or regions have the
    name: those found while looking for the first.
    """
    reading = Reading()
    lists = Lists(history, window, reading)
    for place_to_look in (_in_families, _by_day_in_name, _newest_first):
        runs = list(place_to_look(lists, wanted))
        if runs:
            return _newest(runs, wanted, reading)
    raise JobNotFound(
        f"no audit of {wanted.job} since {window.first_day} is in this history: for a job that"
        " ended earlier, give --since"
    )


def _newest(runs: Iterable[Head], wanted: Wanted, reading: Reading) -> Found:
    ordered = sorted(runs, key=place, reverse=True)
    arns = list(dict.fromkeys(head.key.arn for head in ordered))
    if len(arns) > 1:
        listed = " and ".join(arns[:_NAMED]) + (" and others" if len(arns) > _NAMED else "")
        raise AmbiguousName(f"{wanted.job} is several jobs, {listed}: give the ARN of one")
    return Found(ordered[0], len(ordered) - 1, reading)


def _in_families(lists: Lists, wanted: Wanted) -> Iterator[Head]:
    """Runs in the families whose name ends in the stem of the job's name."""
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
    for family_account, family_region, family in sorted(families):
        heads = lists.family(family_account, family_region, family, lists.window.until)
        yield from filter(wanted.matches, heads)


def _may_hold(family: str, ends: set[str], name: str) -> bool:
    """A training job of a tuning job is named after it, and its family is the tuning job's ARN."""
    last = family.rpartition("/")[2]
    return last in ends or (family.startswith("arn:") and name.startswith(last))


def _by_day_in_name(lists: Lists, wanted: Wanted) -> Iterator[Head]:
    """The job, looked for on the days from the one in its name on: most jobs end on the first."""
    found = _DAY_IN_NAME.search(wanted.name)
    if found is None:
        return
    try:
        made = datetime.fromisoformat("-".join(found.groups())).replace(tzinfo=UTC)
    except ValueError:
        return
    begin = max(made - timedelta(days=1), lists.window.since)
    while begin < lists.window.until:
        for head in lists.history.by_day(begin.date()):
            lists.reading.rows += 1
            if wanted.matches(head):
                yield head
                return
        begin += timedelta(days=1)


def _newest_first(lists: Lists, wanted: Wanted) -> Iterator[Head]:
    """The first that matches, in the list of the account where it is known."""
    account = wanted.ref.account if wanted.ref else wanted.account
    heads = lists.heads(Question(lists.window, account=account))
    return iter(list(_first(filter(wanted.matches, heads))))


def _first(heads: Iterator[Head]) -> Iterator[Head]:
    found = next(heads, None)
    return iter(()) if found is None else iter((found,))
