"""Whatever question is asked, in a file or in a table: one number, that of the audits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from tests.adapters.history.faults import everything
from tests.adapters.history.one_number import (
    AMOUNTS,
    of_many_families,
    of_one_family,
    right,
    truth_of,
)
from tests.adapters.history.tables import new_table
from tests.fakes.filled_table import fill
from tests.fakes.many_audits import several_versions

COUNT = 1_000
"""`python -m tests.adapters.history.one_number 100000` asks the same of a hundred times as many."""


DAYS = 19


@pytest.mark.parametrize("ask", [of_many_families, of_one_family])
def test_every_question_adds_up_to_the_audits(ask: Any) -> None:
    """To the micro-dollar, and a report's headline to the cent; both histories say the same."""
    answers = list(ask(COUNT, DAYS))
    assert len(answers) >= 5
    assert [answer[0].question for answer in answers if not right(answer)] == []


def test_the_audits_are_of_every_sort() -> None:
    """With dollars of each kind, tuning jobs, older versions, and amounts that nobody knows."""
    audits = list(several_versions(COUNT))
    truth = truth_of(audits)
    newest = [versions[-1].document for versions in audits]
    assert all(getattr(truth.dollars, name) > 0 for name in AMOUNTS)
    assert {len(versions) for versions in audits} == {1, 2}
    assert {document["rollup"] for document in newest} == {True, False}
    assert sum(document["bill"]["total_usd"] is None for document in newest) > 10
    assert sum("estimated" in document["bill"] for document in newest) > 100
    assert truth.dollars.jobs == sum(not document["rollup"] for document in newest)


def test_a_filled_table_is_as_recording_leaves_it(client: Any) -> None:
    """But for the rows of families, and for sums that came to zero."""
    filled, recorded = new_table(client), new_table(client)
    audits = list(several_versions(24, days=3, families=3))
    fill(filled, audits)
    history = DynamoHistory(client, recorded)
    for versions in audits:
        for entry in versions:
            history.record(entry)
    assert _items(client, filled) == _items(client, recorded)


def _items(client: Any, table: str) -> dict[tuple[str, str], Any]:
    """By their keys, with numbers by value; DynamoDB keeps one at zero that was taken back."""
    return {
        (item["pk"]["S"], item["sk"]["S"]): {
            name: Decimal(value["N"]) if "N" in value else value
            for name, value in item.items()
            if "N" not in value or Decimal(value["N"])
        }
        for item in everything(client, table)
        if not item["pk"]["S"].startswith("RUNS#")
    }
