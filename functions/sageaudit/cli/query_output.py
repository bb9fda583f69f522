"""What commands print about a question: rows, their period, progress, and why there are none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rich.console import Console

from sageaudit.cli.messages import print_message
from sageaudit.cli.query_options import OutputOptions, option_name
from sageaudit.cli.views import cells
from sageaudit.cli.views.formats import JsonTail, ListLayout
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.nearest import did_you_mean
from sageaudit.output.text.headline import judged_text
from sageaudit.output.text.words import capitalised, count_text
from sageaudit.queries.lists import HistoryLists, ReadCounts
from sageaudit.queries.names import no_match_reason
from sageaudit.queries.question import Question
from sageaudit.queries.total import SumsRow, combine
from sageaudit.queries.window import Window

T = TypeVar("T")
_PROGRESS_EVERY_ROWS = 100
"""The progress is updated after this many rows."""


def json_tail(read_counts: ReadCounts, *, has_more: bool = False) -> JsonTail:
    """Returns a function that makes the JSON keys after the rows.

    `has_more` means that not all rows are printed.
    """
    return lambda: {"more": has_more, "read": {"rows": read_counts.rows, "sums": read_counts.sums}}


def period_text(window: Window) -> str:
    """Returns the period of a list: `Jobs that ended from 2026-11-01 to 2026-11-30 (UTC)`."""
    return f"Jobs that ended from {window.text} (UTC)"


def total_lines(rows: Sequence[SumsRow], *, is_truncated: bool) -> Iterator[str]:
    """Yields how much of all rows was judged, and their sums if not all of them are shown.

    Usage types are parts of bills, of which nothing is judged.
    """
    total = combine(rows)
    if is_truncated:
        yield f"all {len(rows):,} rows: {total_text(total)}"
    if not total.is_usage_type:
        yield capitalised(judged_text(total.sums))


def total_text(total: SumsRow) -> str:
    """Returns `3 jobs, $9.00 spent, $2.00 avoidable or lost`; for usage types, only the spend."""
    amounts = cells.row_amounts(total)
    if total.is_usage_type:
        return f"{amounts.spend} spent"
    return (
        f"{count_text(total.jobs, 'job')}, {amounts.spend} spent, {amounts.waste} avoidable or lost"
    )


def explain_empty_result(lists: HistoryLists, question: Question) -> None:
    """Prints that no audit matches, and which filter is the reason."""
    print_message(empty_result_text(lists, question, option_name))


def empty_result_text(
    lists: HistoryLists, question: Question, filter_name: Callable[[str], str] = str
) -> str:
    """Returns that no audit matches, and which filter is the reason.

    `filter_name` returns the caller's name of a filter.
    """
    hint = _unknown_rule_hint(question.rule) or no_match_reason(lists, question, filter_name)
    return f"no audit of {question.window.text} matches; {hint}"


def _unknown_rule_hint(name: str | None) -> str:
    """Returns "" for a rule's name and for None."""
    if name is None:
        return ""
    from sageaudit.rules import catalogue  # noqa: PLC0415 - few questions name a rule

    rule_names = [rule.info.name for rule in catalogue.load()]
    suggestion = did_you_mean(name, rule_names) or ":"
    hint = f"there is no rule {name}{suggestion} `sageaudit rules` lists them all"
    return "" if name in rule_names else hint


def explain_rollups(kinds: Collection[str]) -> None:
    """Prints what the amounts of roll-ups of these kinds leave out."""
    for text in rollup_texts(kinds):
        print_message(text)


def rollup_texts(kinds: Collection[str]) -> Iterator[str]:
    """Yields what the amounts of roll-ups of these kinds leave out."""
    for spec in (kind.spec for kind in JobKind if kind.value in kinds):
        children = spec.rollup.children_label if spec.rollup else "jobs"
        yield f"{spec.label_with_article}'s row leaves out the amounts of its {children}"


def show_rows(
    rows: Sequence[Any],
    all_rows: Sequence[Any],
    layout: ListLayout,
    output_options: OutputOptions,
    tail: JsonTail,
    header_line: str,
) -> None:
    """Prints `rows`, and how many of `all_rows` they are.

    `tail` makes the JSON keys after the rows; `more` is added.
    """
    has_more = len(rows) < len(all_rows)
    output_options.write_rows(rows, layout, lambda: {**tail(), "more": has_more}, header_line)
    if has_more:
        print_message(f"{len(rows):,} of {len(all_rows):,} rows: --all prints all of them")


def with_progress(rows: Iterable[T], noun: str, activity: str) -> Iterator[T]:
    """Yields the rows, and shows on stderr how many were read: `reading: 1,200 audits`."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from rows
        return
    with console.status(f"{activity} ...") as status:
        for number, row in enumerate(rows, 1):
            yield row
            if number % _PROGRESS_EVERY_ROWS == 0:
                status.update(f"{activity}: {count_text(number, noun)}")
