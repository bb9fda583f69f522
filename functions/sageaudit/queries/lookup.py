"""Finds the newest audited run of a job by its ARN or name, whatever its age, in one list."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice

from msgspec import Struct

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import AmbiguousName, JobNotFound
from sageaudit.output.text.untrusted import DOTS
from sageaudit.ports import History
from sageaudit.queries.lists import Lists, audited_days
from sageaudit.queries.names import is_cut
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, window_of
from sageaudit.structs import replace

_COMPARED, _SEARCHED, _BACK = 1_000, 20_000, timedelta(days=365)
"""Among how many of the newest jobs a mistyped name, and a name that was cut, are looked for."""
_NAMED = 3
"""ARNs that are listed where a name is ambiguous."""


class Wanted(Struct, frozen=True):
    """The job to find: an ARN or a name, and what else is known of it."""

    job: str
    kind: JobKind | None = None
    account: str | None = None
    region: str | None = None

    @property
    def name(self) -> str:
        """The job's name; that of an ARN is in lower case."""
        ref = JobRef.from_arn(self.job)
        return ref.name if ref else self.job

    def matches(self, head: AuditSummary) -> bool:
        """Whether this run of the name is one of the job."""
        others = ((self.kind, head.kind), (self.account, head.account), (self.region, head.region))
        return all(wanted is None or wanted == value for wanted, value in others) and (
            self.name == self.job or head.key.arn.lower() == self.job.lower()
        )


def find(history: History, wanted: Wanted) -> AuditSummary:
    """The newest run of the job.

    A name that a list cut with "…" is looked for among the newest jobs. Raises JobNotFound, or
    AmbiguousName if several jobs, or jobs of several kinds, accounts or regions, have the name.
    """
    named = _cut(history, wanted) if DOTS in wanted.job else wanted
    runs = [run for run in history.runs(RunQuery.of_name(named.name)) if named.matches(run)]
    arns = list(dict.fromkeys(run.key.arn for run in runs))
    if len(arns) > 1:
        listed = " and ".join(arns[:_NAMED]) + (" and others" if len(arns) > _NAMED else "")
        raise AmbiguousName(f"{wanted.job} is several jobs, {listed}: give the ARN of one")
    if runs:
        return runs[0]
    raise JobNotFound(f"no audit of {wanted.job} is in this history{_near(history, wanted)}")


def _cut(history: History, wanted: Wanted) -> Wanted:
    """The job whose name a list cut to this. Raises AmbiguousName if there are several."""
    names = {head.job for head in _newest(history, wanted) if is_cut(wanted.job, head.job)}
    if len(names) > 1:
        listed = " and ".join(sorted(names)[:_NAMED]) + (
            " and others" if len(names) > _NAMED else ""
        )
        raise AmbiguousName(f"{wanted.job} is cut from {listed}: give more of the name")
    return replace(wanted, job=names.pop()) if names else wanted


def _near(history: History, wanted: Wanted) -> str:
    """The name that was probably meant, of the newest jobs."""
    newest = islice(_newest(history, wanted), _COMPARED)
    return did_you_mean(wanted.name, dict.fromkeys(head.job for head in newest))


def _newest(history: History, wanted: Wanted) -> Iterator[AuditSummary]:
    """The jobs of the account that ended in the last days of the history, newest first."""
    if (days := audited_days(history)) is None:
        return iter(())
    lists = Lists(history, window_of(days[-1] - _BACK, days[-1] + ONE_DAY))
    heads = lists.heads(Question(lists.window, account=wanted.account))
    return islice(heads, _SEARCHED)
