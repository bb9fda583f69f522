"""Reports and recommendations read only some fields of audits, and are the same as from all."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

from local import example
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.domain.advice.advice import State
from sageaudit.domain.advice.totals import LOOK_BACK_DAYS
from sageaudit.domain.audit.summary import AuditSummary, PartialSummary
from sageaudit.domain.sweep import Period
from sageaudit.ports import History
from sageaudit.queries.answer import find_recommendations
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question
from sageaudit.queries.window import ONE_DAY, make_window
from sageaudit.workflows.report import ReportSource, make_account_report
from tests.fakes.random_history import NOW
from tests.fakes.reports import page_of


class WholeReads:
    """A history that reads all fields of every audit, whichever were asked for."""

    def __init__(self, history: History) -> None:
        self._history = history

    def __getattr__(self, name: str) -> Any:
        return getattr(self._history, name)

    def runs(
        self, query: Any, *, fields: Collection[str] | None = None, **pages: Any
    ) -> Iterator[Any]:
        """Yields the whole rows, and checks that only some fields were asked for."""
        assert fields is None or {*fields} < {*AuditSummary.__struct_fields__}
        return self._history.runs(query, **pages)


def both(history: History) -> tuple[History, History]:
    """Returns the history, and the same with whole reads."""
    return history, cast("History", WholeReads(history))


def test_a_report_is_the_same_from_partial_reads(company: Path, recordings_history: Path) -> None:
    """The page of a company with recommendations, and that of all recorded jobs."""
    month = Period(example.LAST_DAY.replace(day=1), example.LAST_DAY)
    years = Period(month.since.replace(year=2018), NOW.date())
    for path, period in ((company, month), (recordings_history, years)):
        with SqliteHistory(path, create=False) as history:
            partly, whole = (
                make_account_report(
                    ReportSource(reads, packaged.instance_types()),
                    period,
                    None,
                    period.created_before,
                    history.decisions(),
                )
                for reads in both(history)
            )
        assert {type(summary) for summary in partly.summaries} == {PartialSummary}
        assert page_of(partly) == page_of(whole)
        assert partly.top_changes == whole.top_changes


def test_recommendations_are_the_same_from_partial_reads(company: Path) -> None:
    """They have the same states, amounts and comparisons, and the filters select the same."""
    end = example.LAST_DAY + ONE_DAY
    window = make_window(end - LOOK_BACK_DAYS * ONE_DAY, end)
    with SqliteHistory(company, create=False) as history:
        for question in (Question(window), Question.with_filters(window, kind="training")):
            partly, whole = (
                find_recommendations(
                    HistoryLists(reads, window), question, history.decisions(), window.until
                )
                for reads in both(history)
            )
            assert partly == whole
            assert {State.OPEN, State.FOLLOWED} <= {row.state for row in partly}
