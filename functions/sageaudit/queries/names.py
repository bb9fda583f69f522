"""Finds families and jobs by their names, and suggests names for a mistyped filter.

A job of any age is found by its ARN or name, in one list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import chain, islice
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
"""The number of newest jobs in which a mistyped name is looked for."""
_MAX_SEARCHED_JOBS = 20_000
"""The number of newest jobs in which a shortened name is looked for."""
_LOOKBACK = timedelta(days=365)
_MOST_NAMES = 3
"""The number of names or ARNs that are listed if a name is ambiguous."""


def resolve_question(history: History, question: Question) -> tuple[HistoryLists, Question]:
    """Returns the lists of the question's window, and the question with its family's full name.

    Raises BadUsage if several families match.
    """
    lists = HistoryLists(history, question.window)
    return lists, resolve_family(lists, question)


def resolve_family(lists: HistoryLists, question: Question) -> Question:
    """Returns the question with the full name of its family.

    The question may have the end of a family's name (after a `/`), or a name that a list shortened.
    A text that matches no family is kept. Raises BadUsage if several families match.
    """
    text = question.family
    if text is None or next(lists.daily_sums(Scope.FAMILY, name=text), None) is not None:
        return question
    rollup_label = next(
        (rollup_label for rollup_label in ROLL_UP_LABELS if text.startswith(rollup_label)), ""
    )
    suffix = f"/{text.removeprefix(rollup_label)}"
    matching_names = sorted(
        {
            name
            for name in _names(lists, Scope.FAMILY)
            if name.endswith(suffix) or is_shortened(text, name)
        }
    )
    if len(matching_names) > 1:
        suffix_text = (
            f" and {len(matching_names) - _MAX_SUGGESTIONS} more"
            if len(matching_names) > _MAX_SUGGESTIONS
            else ""
        )
        raise BadUsage(
            f"family {text} is {'cut from' if ELLIPSIS in text else 'the end of'}"
            f" {', '.join(matching_names[:_MAX_SUGGESTIONS])}{suffix_text}: give more of the name"
        )
    return question.with_changed_filters(family=matching_names[0]) if matching_names else question


def is_shortened(text: str, name: str) -> bool:
    """Returns whether a list may have cut `name` to `text`, as `begin…end`."""
    prefix, ellipsis, suffix = text.partition(ELLIPSIS)
    has_ends = (
        name.startswith(prefix) and name.endswith(suffix) and len(name) > len(prefix) + len(suffix)
    )
    return bool(ellipsis) and has_ends


def no_match_reason(
    lists: HistoryLists, question: Question, option_name: Callable[[str], str] = str
) -> str:
    """Returns which filter matches nothing in the window, and which name was probably meant.

    Each filter is tried alone. Daily sums are used if they have its values, else all audits are
    read. `option_name` returns the caller's name of a filter.
    """
    accounts = [*lists.daily_sums(Scope.ACCOUNT)]
    if not accounts:
        return covered_days_text(lists.history, lists.window)
    known_values: dict[str, set[str]] = {
        "account": {row.account for row in accounts},
        "region": {row.region for row in accounts},
        "rule": {rule for row in accounts for rule in row.sums.rules},
    }
    rows: list[ListRow] = []
    for name, filter_value in question.filters.items():
        if name in {Scope.FAMILY, Scope.OWNER, Scope.TYPE}:
            known_values[name] = {*_names(lists, Scope(name))}
        values = known_values.get(name)
        is_match = values is not None and filter_value in values
        if values is None:
            rows = rows or [*answer.iterate_rows(lists, Question(lists.window))]
            is_match, values = _match_audits(rows, name, filter_value)
        if not is_match:
            last_parts = (
                {value.rpartition("/")[2] for value in values} if name == "family" else set()
            )
            value_text = _filter_text(name, filter_value)
            candidates = sorted(values | last_parts)
            suggestion = "" if value_text in values else did_you_mean(value_text, candidates)
            return (
                f"{option_name(name)}{value_text and f' {value_text}'} matches nothing{suggestion}"
            )
    return "each filter matches some audits, but none matches all of them"


def _match_audits(rows: Sequence[ListRow], name: str, filter_value: Any) -> tuple[bool, set[str]]:
    """Returns whether an audit passes a filter. If none does, also returns the values of the
    audits.
    """
    column, values = FILTERS[name], {*FILTERS[name].choices}
    for row in rows:
        if column.is_match(row, filter_value):
            return True, values
        if name == "tag":
            values |= {_filter_text(name, {tag: value}) for tag, value in row.tags.items()}
        elif not column.choices and column.matches is None:
            values.add(str(column.value_of(row) or ""))
    return False, values


def _filter_text(name: str, filter_value: Any) -> str:
    if name == "tag":
        return " and ".join(f"{tag}={value or ''}" for tag, value in filter_value.items())
    return "" if filter_value is True else str(filter_value)


def covered_days_text(history: History, window: Window) -> str:
    """Returns on which days the history has audits, for a window without audits."""
    days = audited_days(history)
    if days is None:
        return "the history is empty: `sageaudit scan` audits jobs"
    first, last = days[0], days[-1]
    if first == last:
        return f"the history has audits of {first} only"
    nearest_day = min(days, key=lambda day: max(window.first_day - day, day - window.last_day))
    span_text = f"the history has audits of {len(days)} days from {first} to {last}"
    return (
        span_text if nearest_day in {first, last} else f"{span_text}, the nearest of {nearest_day}"
    )


def _names(lists: HistoryLists, scope: Scope) -> Iterator[str]:
    return (row.name for row in lists.daily_sums(scope) if row.name)


class JobQuery(Struct, frozen=True):
    """The job to find: an ARN or a name, and what else is known about it."""

    job: str
    kind: JobKind | None = None
    account: str | None = None
    region: str | None = None

    @property
    def name(self) -> str:
        """The job's name. A name from an ARN is in lower case."""
        ref = JobRef.from_arn(self.job)
        return ref.name if ref else self.job

    def is_match(self, summary: AuditSummary) -> bool:
        """Returns whether a run with the query's name is a run of the job."""
        pairs = (
            (self.kind, summary.kind),
            (self.account, summary.account),
            (self.region, summary.region),
        )
        return all(own_value is None or own_value == value for own_value, value in pairs) and (
            self.name == self.job or summary.key.arn.lower() == self.job.lower()
        )


def find_job(history: History, job_query: JobQuery) -> AuditSummary:
    """Returns the newest run of the job.

    A name that was shortened with "…" is looked for among the newest jobs. Raises BadUsage for
    another ARN than a job's, JobNotFound, or AmbiguousName if several jobs have the name.
    """
    if job_query.job.startswith("arn:") and job_query.name == job_query.job:
        raise BadUsage(f"{job_query.job} is not the ARN of a SageMaker job that is audited")
    query = _resolve_shortened(history, job_query) if ELLIPSIS in job_query.job else job_query
    runs = [run for run in history.runs(RunQuery.for_name(query.name)) if query.is_match(run)]
    arns = list(dict.fromkeys(run.key.arn for run in runs))
    if len(arns) > 1:
        raise AmbiguousName(
            f"{job_query.job} is several jobs, {_first_names_text(arns)}: give the ARN of one"
        )
    if runs:
        return runs[0]
    raise JobNotFound(
        f"no audit of {job_query.job} is in this history{_did_you_mean(history, job_query)}"
    )


def _resolve_shortened(history: History, job_query: JobQuery) -> JobQuery:
    """Returns the query with the full name of a shortened name; unchanged if no job has such a
    name.

    Raises AmbiguousName if several jobs could be meant.
    """
    names = {
        summary.job
        for summary in _newest_jobs(history, job_query)
        if is_shortened(job_query.job, summary.job)
    }
    if len(names) > 1:
        names_text = _first_names_text(sorted(names))
        raise AmbiguousName(f"{job_query.job} is cut from {names_text}: give more of the name")
    return replace(job_query, job=names.pop()) if names else job_query


def _first_names_text(names: Sequence[str]) -> str:
    suffix = " and others" if len(names) > _MOST_NAMES else ""
    return " and ".join(names[:_MOST_NAMES]) + suffix


def _did_you_mean(history: History, job_query: JobQuery) -> str:
    newest_jobs = islice(_newest_jobs(history, job_query), _MAX_COMPARED_JOBS)
    return did_you_mean(job_query.name, dict.fromkeys(summary.job for summary in newest_jobs))


def _newest_jobs(history: History, job_query: JobQuery) -> Iterator[AuditSummary]:
    # A day without audits takes a table eight queries too, so it is left out.
    days = audited_days(history) or []
    windows = (
        make_window(day, day + ONE_DAY) for day in reversed(days) if day >= days[-1] - _LOOKBACK
    )
    summaries = chain.from_iterable(
        HistoryLists(history, window).audits(
            Question.with_filters(window, account=job_query.account)
        )
        for window in windows
    )
    return islice(summaries, _MAX_SEARCHED_JOBS)
