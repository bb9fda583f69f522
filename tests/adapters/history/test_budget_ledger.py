"""What was sent about a budget is written with its notices, once; and tags have daily sums."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.alert_ledger import DynamoAlertLedger
from sageaudit.adapters.history.dynamo.budget_ledger import DynamoBudgetLedger
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.sums import Scope
from sageaudit.domain.budget import SentBudgetMessages, Threshold
from sageaudit.errors import UnreadableItem
from sageaudit.ports import BudgetLedger, History
from sageaudit.queries.by import sum_all
from sageaudit.queries.lists import HistoryLists
from sageaudit.queries.question import Question
from sageaudit.queries.window import make_window
from sageaudit.structs import replace
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.entries import NOON, entry
from tests.fakes.memory_budgets import MemoryBudgetLedger

SELECTOR = ("tag", "team=vision#1")
FIRST = SentBudgetMessages("2026-11", SELECTOR, {Threshold.NEAR: Decimal("812.40")}, 1)
SECOND = replace(FIRST, sent={**FIRST.sent, Threshold.EXCEEDED: Decimal(1000)}, messages=2)
SINCE, UNTIL = date(2026, 11, 1), date(2026, 11, 30)


@pytest.fixture(params=["dynamo", "memory"])
def ledger(request: pytest.FixtureRequest) -> Iterator[BudgetLedger]:
    """The ledger in a table, and its fake."""
    if request.param == "memory":
        yield MemoryBudgetLedger()
        return
    with dynamodb() as client:
        yield DynamoBudgetLedger(client, new_table(client))


def test_a_message_is_written_once(ledger: BudgetLedger) -> None:
    """Of two checks at the same time, one writes."""
    assert ledger.budget_messages("2026-11", SELECTOR) == SentBudgetMessages("2026-11", SELECTOR)
    assert ledger.write_budget_message(FIRST, {"sns": "{}"}, NOON)
    assert not ledger.write_budget_message(FIRST, {"sns": "other"}, NOON)
    assert ledger.budget_messages("2026-11", SELECTOR) == FIRST
    assert ledger.write_budget_message(SECOND, {"sns": "{}"}, NOON)
    assert ledger.budget_messages("2026-11", SELECTOR) == SECOND


def test_each_month_and_each_budget_has_its_own_messages(ledger: BudgetLedger) -> None:
    """A name may be that of an owner and of a family."""
    assert ledger.write_budget_message(FIRST, {}, NOON)
    for month, selector in (("2026-12", SELECTOR), ("2026-11", ("owner", SELECTOR[1]))):
        assert ledger.budget_messages(month, selector).messages == 0


def test_a_notice_is_stored_with_the_message() -> None:
    """In the partition of the budget's month, where the stream finds it."""
    with dynamodb() as client:
        place = client, new_table(client)
        DynamoBudgetLedger(*place).write_budget_message(FIRST, {"sns": "a body"}, NOON)
        pk = keys.budget_pk("2026-11", SELECTOR)
        assert pk == "BUDGET#2026-11#tag#team=vision#1"
        notice = DynamoAlertLedger(*place).notice(pk, keys.notice_sk(1, "sns"))
        assert notice == ("sns", "a body")


def test_an_item_that_cannot_be_read_costs_only_its_budget() -> None:
    """The error names it."""
    with dynamodb() as client:
        place = client, new_table(client)
        ledger = DynamoBudgetLedger(*place)
        pk = keys.budget_pk("2026-11", SELECTOR)
        odd = {"pk": {"S": pk}, "sk": {"S": "SENT"}, "messages": {"N": "1"}, "sent": {"S": "?"}}
        client.put_item(TableName=place[1], Item=odd)
        with pytest.raises(UnreadableItem, match="BUDGET#2026-11"):
            ledger.budget_messages("2026-11", SELECTOR)
        assert ledger.budget_messages("2026-11", ("", "")).messages == 0


@contextmanager
def histories(kind: str) -> Iterator[History]:
    """Opens an empty history of a kind."""
    if kind == "file":
        with SqliteHistory() as file_history:
            yield file_history
        return
    with dynamodb() as client:
        yield DynamoHistory(client, new_table(client))


def tagged(name: str, usd: float, tags: dict[str, str | None], **changes: Any) -> Any:
    """Returns an entry of a job with these tags and bill."""
    return entry(name, job={"tags": tags}, bill={"total_usd": Decimal(str(usd))}, **changes)


@pytest.mark.parametrize("kind", ["file", "table"])
def test_a_cost_tag_has_daily_sums_that_equal_the_bills(kind: str) -> None:
    """A job without the tag is in none, and a job with two tags in those of both."""
    with histories(kind) as history:
        history.record(tagged("a", 1.25, {"team": "vision", "project": "x"}))
        history.record(tagged("b", 2.5, {"team": "vision", "project": None}))
        history.record(tagged("c", 4, {"team": None, "project": "x"}))
        rows = [*history.daily_sums(Scope.TAG, SINCE, UNTIL)]
        assert {row.name: row.sums.total_usd for row in rows} == {
            "team=vision": Decimal("3.75"),
            "project=x": Decimal("5.25"),
        }
        [row] = history.daily_sums(Scope.TAG, SINCE, UNTIL, name="team=vision")
        window = make_window(SINCE, UNTIL + timedelta(days=1))
        lists = HistoryLists(history, window)
        asked = Question.with_filters(window, tag={"team": "vision"})
        assert sum_all(lists, asked) == row.sums


@pytest.mark.parametrize("kind", ["file", "table"])
def test_a_tag_that_is_shown_later_has_the_bills_of_jobs_that_are_audited_again(kind: str) -> None:
    """What the first audit did not add is not subtracted; a tag that is not shown any more is."""
    team: dict[str, str | None] = {"team": "vision"}
    with histories(kind) as history:
        for version, tags in enumerate(({}, team, team, {})):
            again = tagged("a", 1.25, tags)
            history.record(replace(again, force_new_version=version > 0))
            rows = [*history.daily_sums(Scope.TAG, SINCE, UNTIL)]
            expected = {"team=vision": Decimal("1.25")} if tags else {}
            assert {row.name: row.sums.total_usd for row in rows} == expected


@pytest.mark.parametrize("kind", ["file", "table"])
def test_two_tags_with_one_name_of_sums_count_a_job_once(kind: str) -> None:
    """Also if it is audited again."""
    tags: dict[str, str | None] = {"team": "a=b", "team=a": "b"}
    with histories(kind) as history:
        for usd in (1, 2, 3):
            history.record(replace(tagged("a", usd, tags), force_new_version=True))
            [row] = history.daily_sums(Scope.TAG, SINCE, UNTIL)
            assert (row.name, row.sums.total_usd) == ("team=a=b", usd)


@pytest.mark.parametrize("kind", ["file", "table"])
def test_a_new_version_moves_a_job_from_one_value_of_a_tag_to_another(kind: str) -> None:
    """The tag or the bill was corrected."""
    with histories(kind) as history:
        history.record(tagged("a", 1.25, {"team": "vision"}))
        later = datetime(2026, 11, 21, tzinfo=UTC) - NOON
        versions: tuple[tuple[str | None, int], ...] = (("nlp", 2), ("nlp", 3), (None, 3))
        for team, usd in versions:
            modified_s = int(later.total_seconds()) + usd * 10 + (team is None)
            history.record(tagged("a", usd, {"team": team}, modified_s=modified_s))
            rows = [*history.daily_sums(Scope.TAG, SINCE, UNTIL)]
            expected = {f"team={team}": Decimal(usd)} if team else {}
            assert {row.name: row.sums.total_usd for row in rows} == expected
