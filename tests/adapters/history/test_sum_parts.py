"""What audits add to sums is read without the audits, and is the same as from them."""

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.sum_parts import MicroSums, SumPart, from_micro_usd, to_micro_usd
from sageaudit.domain.audit.summary import AuditSummary, PartialSummary
from sageaudit.domain.audit.sums import RuleSums, Sums, add_sums
from sageaudit.ports import History
from sageaudit.queries.total import RunningSums
from sageaudit.structs import replace
from tests.fakes.random_history import ACCOUNTS, NOW, fill

QUERIES: dict[str, RunQuery[Any]] = {
    "day": RunQuery.for_day(NOW.date()),
    "family": RunQuery.for_family(ACCOUNTS[0], "us-east-1", "training/bert"),
    "owner": RunQuery.for_owner("ana"),
    "account": RunQuery.for_account(ACCOUNTS[0]),
}
FIELDS = ("key", "status", "instance_type", "tags", "rollup", "sums", "judged", "phase_s")
USD = st.integers(-(10**15), 10**15).map(from_micro_usd)


def label_of(summary: AuditSummary) -> tuple[Any, ...] | None:
    """Returns all that FIELDS has of an audit; None for a failed one, which is left out."""
    if summary.status == "Failed":
        return None
    return tuple(str(getattr(summary, name)) for name in FIELDS)


@pytest.mark.parametrize("query_name", QUERIES)
@pytest.mark.parametrize("with_usage", [True, False])
def test_parts_are_those_of_the_whole_summaries(
    history: History, query_name: str, *, with_usage: bool
) -> None:
    """They come in the same order, from both stores, of each list."""
    fill(history, 40, days=2)
    query, end = QUERIES[query_name], NOW - timedelta(hours=3)
    expected = [
        SumPart.from_summary(label_of(summary), summary)
        for summary in history.runs(query, ended_before=end)
    ]
    if not with_usage:
        expected = [replace(part, usage_quantities={}, usage_costs={}) for part in expected]
    parts = [*history.sum_parts(query, label_of, FIELDS, ended_before=end, with_usage=with_usage)]
    assert parts == expected
    assert any(part.label is not None for part in parts)


@pytest.mark.parametrize("query_name", QUERIES)
def test_a_partial_summary_has_the_fields_that_were_asked_for(
    history: History, query_name: str
) -> None:
    """The others have defaults."""
    fill(history, 20, days=2)
    query = QUERIES[query_name]
    whole = [*history.runs(query)]
    partly = [*history.runs(query, fields=frozenset(FIELDS))]
    assert [label_of(row) for row in partly] == [label_of(row) for row in whole]
    assert {type(row) for row in partly} == {PartialSummary}
    assert {row.job for row in partly} == {""}
    assert partly[0].ended_at == whole[0].ended_at


def test_a_label_is_made_once_for_equal_columns() -> None:
    """Only a few types are among many audits of a day, so few summaries are made."""
    made: Counter[str | None] = Counter()

    def instance_type(summary: AuditSummary) -> str:
        made[summary.instance_type] += 1
        return str(summary.instance_type)

    with SqliteHistory() as history:
        fill(history, 90, days=1)
        query = RunQuery.for_day(date(2026, 11, 20))
        parts = [*history.sum_parts(query, instance_type, ["instance_type"])]
    assert len(parts) > 20
    assert made == dict.fromkeys(("ml.g5.xlarge", "ml.m5.xlarge", None), 1)


@st.composite
def sums_of_audits(draw: st.DrawFn) -> Sums:
    """Returns sums with any amounts and counts, of up to three rules."""

    def numbers(form: type[Any]) -> dict[str, Any]:
        return {
            name: draw(USD if name.endswith("_usd") else st.integers(0, 9))
            for name in form.__struct_fields__
            if name != "rules"
        }

    rules = {name: RuleSums(**numbers(RuleSums)) for name in draw(st.sets(st.sampled_from("abc")))}
    return Sums(**numbers(Sums), rules=rules)


@given(st.lists(sums_of_audits(), max_size=4))
def test_whole_numbers_add_up_as_decimals_do(parts: list[Sums]) -> None:
    """The sums are the same to the last digit."""
    running = RunningSums()
    for sums in parts:
        part = SumPart("", NOW, MicroSums.from_sums(sums))
        running.add(part.sums, part.figures)
    assert running.sums == add_sums(parts)


@given(USD)
def test_an_amount_is_the_same_in_micro_dollars(usd: Decimal) -> None:
    """No digit is lost, as amounts are stored with six decimals."""
    assert from_micro_usd(to_micro_usd(usd)) == usd


@pytest.mark.parametrize("changes", [{"waiting_s": 10**30}, {"total_usd": Decimal(10) ** 20}])
def test_a_figure_that_no_job_has_makes_its_audit_unreadable(changes: dict[str, Any]) -> None:
    """A stored item that somebody has changed would otherwise stop the sums of all others."""
    with SqliteHistory() as history:
        fill(history, 20)
        summary = next(iter(history.runs(QUERIES["account"])))
    with pytest.raises(ValueError, match="too large"):
        SumPart.from_summary("label", replace(summary, **changes))
