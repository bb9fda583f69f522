"""The names that a history knows: of families, of what a mistyped filter meant, and of jobs.

A job is found by its ARN or name, whatever its age, in one list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.nearest import did_you_mean
from sageaudit.errors import AmbiguousName, BadUsage, JobNotFound
from sageaudit.output.text.notes import ROLL_UP_LABELS
from sageaudit.output.text.untrusted import ELLIPSIS
from sageaudit.ports import History
from sageaudit.queries import answer
from sageaudit.queries.answer import ListRow
from sageaudit.queries.columns import FILTERS
from sageaudit.queries.lists import HistoryLists, audited_days
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, Window, make_window
from sageaudit.structs import replace

_MAX_SUGGESTIONS = 5
_MAX_COMPARED_JOBS = 1_000
"""Number of newest jobs in which a mistyped name is looked for."""
_MAX_SEARCHED_JOBS = 20_000
"""Number of newest jobs in which a shortened name is looked for."""
_LOOKBACK = timedelta(days=365)
_MOST_NAMES = 3
"""Number of names or ARNs that are listed if a name is ambiguous."""


def resolve(history: History, question: Question) -> tuple[HistoryLists, Question]:
    """Returns the lists of the question's window, and the question with its family resolved.

    Raises BadUsage as `resolve_family` does.
    """
    lists = HistoryLists(history, question.window)
    return lists, resolve_family(lists, question)


def resolve_family(lists: HistoryLists, question: Question) -> Question:
    """The question about the family that is meant: the one of this name, or the only one of the
    window whose name ends in `/` and the text, or is what a list cut to the text.

    A text that fits no family stays as it is. Raises BadUsage if it fits several.
    """
    text = question.family
    if text is None or next(lists.daily_sums(Scope.FAMILY, name=text), None) is not None:
        return question
    label = next((label for label in ROLL_UP_LABELS if text.startswith(label)), "")
    end = f"/{text.removeprefix(label)}"
    meant = sorted(
        {
            name
            for name in _names(lists, Scope.FAMILY)
            if name.endswith(end) or is_shortened(text, name)
        }
    )
    if len(meant) > 1:
        more = f" and {len(meant) - _MAX_SUGGESTIONS} more" if len(meant) > _MAX_SUGGESTIONS else ""
        raise BadUsage(
            f"family {text} is {'cut from' if ELLIPSIS in text else 'the end of'}"
            f" {', '.join(meant[:_MAX_SUGGESTIONS])}{more}: give more of the name"
        )
    return question.with_changed_filters(family=meant[0]) if meant else question


def is_shortened(text: str, name: str) -> bool:
    """Whether a list may have cut this name to the text, as `begin…end`."""
    begin, dots, end = text.partition(ELLIPSIS)
    fits = name.startswith(begin) and name.endswith(end) and len(name) > len(begin) + len(end)
    return bool(dots) and fits


def why_no_match(
    lists: HistoryLists, question: Question, option_name: Callable[[str], str] = str
) -> str:
    """Says which filter matches nothing in the window, and which name was probably meant.

    Each filter is tried alone, on daily sums if these know its values, else on all audits.
    """
    accounts = [*lists.daily_sums(Scope.ACCOUNT)]
    if not accounts:
        return covered_days_text(lists.history, lists.window)
    sums: dict[str, set[str]] = {
        "account": {row.account for row in accounts},
        "region": {row.region for row in accounts},
        "rule": {rule for row in accounts for rule in row.sums.rules},
    }
    every: list[ListRow] = []
    for name, wanted in question.filters.items():
        if name in {Scope.FAMILY, Scope.OWNER, Scope.TYPE}:
            sums[name] = {*_names(lists, Scope(name))}
        values = sums.get(name)
        is_match = values is not None and wanted in values
        if values is None:
            every = every or [*answer.iterate_rows(lists, Question(lists.window))]
            is_match, values = _match_audits(every, name, wanted)
        if not is_match:
            ends = {value.rpartition("/")[2] for value in values} if name == "family" else set()
            words = _filter_text(name, wanted)
            meant = "" if words in values else did_you_mean(words, sorted(values | ends))
            return f"{option_name(name)}{words and f' {words}'} matches nothing{meant}"
    return "each filter matches some audits, but none matches all of them"


def _match_audits(rows: Sequence[ListRow], name: str, wanted: Any) -> tuple[bool, set[str]]:
    """Whether an audit passes a filter, and the values of all audits."""
    column, values = FILTERS[name], {*FILTERS[name].words}
    for row in rows:
        if column.is_match(row, wanted):
            return True, values
        if name == "tag":
            values |= {_filter_text(name, {tag: value}) for tag, value in row.tags.items()}
        elif not column.words and column.fits is None:
            values.add(str(column.value_of(row) or ""))
    return False, values


def _filter_text(name: str, wanted: Any) -> str:
    """Returns a filter's value as it is written on the command line."""
    if name == "tag":
        return " and ".join(f"{tag}={value or ''}" for tag, value in wanted.items())
    return "" if wanted is True else str(wanted)


def covered_days_text(history: History, window: Window) -> str:
    """Says on which days the history has audits, if it has none in the window."""
    days = audited_days(history)
    if days is None:
        return "the history is empty: `sageaudit scan` audits jobs"
    first, last = days[0], days[-1]
    if first == last:
        return f"the history has audits of {first} alone"
    near = min(days, key=lambda day: max(window.first_day - day, day - window.last_day))
    span = f"the history has audits of {len(days)} days from {first} to {last}"
    return span if near in {first, last} else f"{span}, the nearest of {near}"


def _names(lists: HistoryLists, scope: Scope) -> Iterator[str]:
    return (row.name for row in lists.daily_sums(scope) if row.name)


class JobQuery(Struct, frozen=True):
    """The job to find: an ARN or a name, and what else is known of it."""

    job: str
    kind: JobKind | None = None
    account: str | None = None
    region: str | None = None

    @property
    def name(self) -> str:
        """The job's name; the name in an ARN is in lower case."""
        ref = JobRef.from_arn(self.job)
        return ref.name if ref else self.job

    def matches(self, head: AuditSummary) -> bool:
        """Whether this run with the name is a run of the job."""
        pairs = ((self.kind, head.kind), (self.account, head.account), (self.region, head.region))
        return all(wanted is None or wanted == value for wanted, value in pairs) and (
            self.name == self.job or head.key.arn.lower() == self.job.lower()
        )


def find_job(history: History, wanted: JobQuery) -> AuditSummary:
    """Returns the newest run of the job.

    A name that was shortened with "…" is looked for among the newest jobs. Raises JobNotFound, or
    AmbiguousName if several jobs, or jobs of several kinds, accounts or regions, have the name.
    """
    named = _resolve_shortened(history, wanted) if ELLIPSIS in wanted.job else wanted
    runs = [run for run in history.runs(RunQuery.for_name(named.name)) if named.matches(run)]
    arns = list(dict.fromkeys(run.key.arn for run in runs))
    if len(arns) > 1:
        raise AmbiguousName(f"{wanted.job} is several jobs, {_some(arns)}: give the ARN of one")
    if runs:
        return runs[0]
    raise JobNotFound(
        f"no audit of {wanted.job} is in this history{_did_you_mean(history, wanted)}"
    )


def _resolve_shortened(history: History, wanted: JobQuery) -> JobQuery:
    """Returns the job whose name was shortened to this. Raises AmbiguousName for several."""
    names = {head.job for head in _newest(history, wanted) if is_shortened(wanted.job, head.job)}
    if len(names) > 1:
        names_text = _some(sorted(names))
        raise AmbiguousName(f"{wanted.job} is cut from {names_text}: give more of the name")
    return replace(wanted, job=names.pop()) if names else wanted


def _some(names: Sequence[str]) -> str:
    """Returns the first names of several as text: `a and b and c and others`."""
    suffix = " and others" if len(names) > _MOST_NAMES else ""
    return " and ".join(names[:_MOST_NAMES]) + suffix


def _did_you_mean(history: History, wanted: JobQuery) -> str:
    """Returns the name among the newest jobs that was probably meant."""
    newest = islice(_newest(history, wanted), _MAX_COMPARED_JOBS)
    return did_you_mean(wanted.name, dict.fromkeys(head.job for head in newest))


def _newest(history: History, wanted: JobQuery) -> Iterator[AuditSummary]:
    """Yields the account's jobs of the history's last days, newest first."""
    if (days := audited_days(history)) is None:
        return iter(())
    lists = HistoryLists(history, make_window(days[-1] - _LOOKBACK, days[-1] + ONE_DAY))
    heads = lists.audits(Question.with_filters(lists.window, account=wanted.account))
    return islice(heads, _MAX_SEARCHED_JOBS)
