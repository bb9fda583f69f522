"""Finds the newest audited run of a job by its ARN or name, whatever its age, in one list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from sageaudit.domain.audit.record import Head, RunQuery
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import AmbiguousName, JobNotFound
from sageaudit.ports import History
from sageaudit.queries.lists import Lists
from sageaudit.queries.periods import ONE_DAY, audited_days, window_of
from sageaudit.queries.question import Question

_COMPARED, _BACK = 1_000, timedelta(days=30)
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
    def name(self) -> str:
        """The job's name; that of an ARN is in lower case."""
        ref = JobRef.from_arn(self.job)
        return ref.name if ref else self.job

    def matches(self, head: Head) -> bool:
        """Whether this run of the name is one of the job."""
        others = ((self.kind, head.kind), (self.account, head.account), (self.region, head.region))
        return all(wanted is None or wanted == value for wanted, value in others) and (
            self.name == self.job or head.key.arn.lower() == self.job.lower()
        )


def find(history: History, wanted: Wanted) -> Head:
    """The newest run of the job.

    Raises JobNotFound, or AmbiguousName where jobs of several kinds, accounts or regions have the
    name.
    """
    runs = [run for run in history.runs(RunQuery.of_name(wanted.name)) if wanted.matches(run)]
    arns = list(dict.fromkeys(run.key.arn for run in runs))
    if len(arns) > 1:
        listed = " and ".join(arns[:_NAMED]) + (" and others" if len(arns) > _NAMED else "")
        raise AmbiguousName(f"{wanted.job} is several jobs, {listed}: give the ARN of one")
    if runs:
        return runs[0]
    raise JobNotFound(f"no audit of {wanted.job} is in this history{_near(history, wanted)}")


def _near(history: History, wanted: Wanted) -> str:
    """The name that was probably meant, of the newest jobs."""
    if (days := audited_days(history)) is None:
        return ""
    lists = Lists(history, window_of(days[-1] - _BACK, days[-1] + ONE_DAY))
    newest = islice(lists.heads(Question(lists.window, account=wanted.account)), _COMPARED)
    return did_you_mean(wanted.name, dict.fromkeys(head.job for head in newest))
