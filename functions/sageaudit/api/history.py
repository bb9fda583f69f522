"""Queries of a history from Python: of a file that `scan` writes, or of a deployment's table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, TypeVar, Unpack

from sageaudit.adapters.history.opened import HistorySource, open_history
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RuleFinding
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.errors import BadUsage
from sageaudit.queries import answer
from sageaudit.queries.by import default_since, sum_by
from sageaudit.queries.changes import SpendChange, find_changes
from sageaudit.queries.columns import FILTERS, make_question, parse_columns
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.names import JobQuery, find_job, resolve_question
from sageaudit.queries.question import Question, SortOrder
from sageaudit.queries.total import SumsRow
from sageaudit.queries.window import parse_window

_MONTH = "30d"
_ARGUMENT_FORMAT = "{}={!r}"


class AuditFilters(TypedDict, total=False):
    """The filters of a query. A missing filter excludes nothing."""

    family: str | None
    """A family's name. Its last part is enough if no other family ends in it."""
    owner: str | None
    account: str | None
    region: str | None
    kind: str | None
    type: str | None
    count: int | None
    purchase: str | None
    status: str | None
    """The job's status: Completed, Failed, Stopped or "never started"."""
    tag: Mapping[str, str] | str | None
    """A cost tag, as `{"team": "growth"}` or "team=growth". An empty value selects
    jobs without it.
    """
    judged: str | None
    reason: str | None
    """The kind of failure, such as "code error"."""
    image: str | None
    """A part of the image's name."""
    no_owner: bool
    no_price: bool
    interrupted: bool
    severity: str | None
    """The lowest severity of a finding."""
    min_usd: Decimal | int | str | None
    """The minimum of avoidable plus lost dollars. With `rule`: the minimum saving of its finding.
    """
    min_bill: Decimal | int | str | None
    """The minimum bill in USD."""
    min_percent: Decimal | int | str | None
    """The minimum percentage of the bill that is avoidable or lost."""
    min_hours: Decimal | int | str | None
    """The minimum hours from start to end."""


class SumFilters(AuditFilters, total=False):
    """The filters of sums. `rule` limits them to one rule's findings."""

    rule: str | None


class AuditHistory:
    """An open history, to be used in a `with` block. Every query only reads.

    Times are texts such as `30d`, `2026-11-01` or `2026-11-01T10:00Z`, in UTC. A date in `until`
    includes that whole day; a time is exact. Raises BadUsage for an invalid time, and AwsError if a
    table does not answer.
    """

    def __init__(self, source: HistorySource) -> None:
        self.source = source

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        table: str | None = None,
        profile: str | None = None,
        region: str | None = None,
    ) -> Self:
        """Opens a file or a DynamoDB table, by default the file that `scan` writes.

        `profile` and `region` are the AWS profile and region for the table. Raises a SageauditError
        if there is no such history.
        """
        if path is not None:
            require_path("path", path, "a history")
        file = None if path is None else Path(path)
        return cls(open_history(file, table, profile, region, warn=warnings.warn))

    def close(self) -> None:
        """Closes the history."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<history {self.source.name}>"

    def audits(
        self,
        since: str = _MONTH,
        until: str | None = None,
        *,
        sort: str = "newest",
        **filters: Unpack[AuditFilters],
    ) -> tuple[AuditSummary, ...]:
        """Returns the audits of jobs that ended in this time, newest first by default.

        `sort` is newest, waste, total, avoidable, lost, possible or idle. A roll-up (a tuning job)
        leaves out the dollars of its training jobs, so that columns add up to the sums.
        """
        lists, question = self._make_question(since, until, sort, {**filters})
        if question.rule is not None:
            raise BadUsage("audits(...) takes no rule: use findings(rule)")
        return tuple(answer.iterate_audits(lists, question))

    def findings(
        self,
        rule: str,
        since: str = _MONTH,
        until: str | None = None,
        *,
        sort: str = "newest",
        **filters: Unpack[AuditFilters],
    ) -> tuple[RuleFinding, ...]:
        """Returns a rule's findings, by its name or id, each with its audit's summary.

        `sort` is newest, or waste for the largest saving first.
        """
        lists, question = self._make_question(since, until, sort, {**filters, "rule": rule})
        return tuple(
            answer.iterate_findings(lists, question, question.rule or rule, with_summaries=True)
        )

    def audit(
        self, job: AuditSummary | RuleFinding | str, *, version: int | None = None
    ) -> AuditDocument | None:
        """Returns the audit of `job`; None if the history lacks the job or this version.

        `job` is a row of another query, or a job's name or ARN. `version` selects an earlier
        version. Raises JobNotFound for a name that no job has, and UnreadableItem if the stored
        audit cannot be read.
        """
        history = self.source.history
        key = (
            job.key
            if isinstance(job, AuditSummary | RuleFinding)
            else find_job(history, JobQuery(job)).key
        )
        return history.audit(key, version)

    def by(
        self,
        columns: str,
        since: str | None = None,
        until: str | None = None,
        *,
        sort: str = "newest",
        read_runs: bool = False,
        **filters: Unpack[SumFilters],
    ) -> tuple[SumsRow, ...]:
        """Returns the sums by one or two columns, such as `family` or `owner,month`.

        With a day, week or month as column, rows are in order of time. Without one, the row with
        the most waste is first. With another `sort`, the largest amount is first. `since` is 30d by
        default, 56d for weeks, 180d for months. `read_runs` reads each audit, so that hours and
        medians are known.
        """
        names = parse_columns(columns)
        lists, question = self._make_question(since or default_since(names), until, sort, filters)
        return tuple(sum_by(lists, question, names, today=_now().date(), read_runs=read_runs))

    def changes(
        self,
        since: str = "7d",
        until: str | None = None,
        *,
        column: str = "family",
        **filters: Unpack[SumFilters],
    ) -> tuple[SpendChange, ...]:
        """Returns how much the spend of each value of `column` changed, the largest change first.

        The window is compared with the same number of days before it. Without `until`, it ends with
        yesterday. A finished week or month in `since` is the whole window.
        """
        [first_column, *_] = parse_columns(column)
        lists, question = self._make_question(since, until, "newest", filters, with_today=False)
        return tuple(find_changes(lists, question, first_column, today=_now().date()))

    def _make_question(
        self,
        since: str,
        until: str | None,
        sort: str,
        filters: Mapping[str, Any],
        *,
        with_today: bool = True,
    ) -> tuple[HistoryLists, Question]:
        """Returns the history's lists and the question.

        If `until` is None and `with_today` is False, the window ends with yesterday. Raises
        BadUsage for an invalid value, and TypeError for an unknown filter.
        """
        if unknown := filters.keys() - FILTERS.keys():
            raise TypeError(f"there is no filter {min(unknown)}: there are {', '.join(FILTERS)}")
        filter_values: dict[str, Any] = {**filters}
        if filter_values.get("rule") is not None:
            from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions are of a rule

            filter_values["rule"] = catalogue.resolve_rule_name(filter_values["rule"])
        for name, text in (("since", since), ("until", until)):
            if text is not None:
                require_text(name, text, "30d")
        window = parse_window(
            since, until, _now(), with_today=with_today, option_format=_ARGUMENT_FORMAT
        )
        question = make_question(window, parse_enum(SortOrder, sort, "sort"), filter_values)
        return resolve_question(self.source.history, question)


def require_open_history(history: object) -> None:
    """Raises BadUsage if the argument `history` is neither an open history nor None."""
    if history is not None and not isinstance(history, AuditHistory):
        raise BadUsage(f"history={history!r} is not an open history: use AuditHistory.open")


def require_text(name: str, value: object, example: str) -> None:
    """Raises BadUsage if the argument `name` is not a text."""
    if not isinstance(value, str):
        raise BadUsage(f"{name}={value!r} is not a text, such as {example!r}")


def require_path(name: str, value: object, what: str) -> None:
    """Raises BadUsage if the argument `name`, which should be `what` or its file, is no path."""
    if not isinstance(value, str | os.PathLike):
        raise BadUsage(f"{name}={value!r} is not {what} or the path of its file")


EnumT = TypeVar("EnumT", bound=Enum)


def parse_enum(enum_type: type[EnumT], text: str, option: str) -> EnumT:
    """Returns the member with the value `text`.

    If there is none, raises BadUsage that names `option` and lists all values.
    """
    try:
        return enum_type(text)
    except ValueError as error:
        values = ", ".join(str(member.value) for member in enum_type)
        raise BadUsage(f"{option}={text!r} is none of {values}") from error


def _now() -> datetime:
    return datetime.now(UTC)
