"""A row that cannot be read: the table and the file say so, and list what else is due."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from sageaudit.adapters.history.codec import run_key
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RunQuery
from sageaudit.errors import UnreadableItem
from sageaudit.ports import History
from tests.adapters.history.tables import new_table
from tests.fakes.entries import NOON, key, unsettled_entry


@dataclass
class Damaged:
    """A history, and what makes the head of a job unreadable."""

    history: History
    spoil: Callable[[str], None]


@pytest.fixture(params=["dynamo", "sqlite"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Damaged]:
    """An empty one."""
    if request.param == "dynamo":
        client = request.getfixturevalue("client")
        table = new_table(client)

        def remove(name: str) -> None:
            client.update_item(
                TableName=table,
                Key={"pk": {"S": keys.job_pk(key(name))}, "sk": {"S": keys.HEAD_SK}},
                UpdateExpression="REMOVE last_modified_at",
            )

        yield Damaged(DynamoHistory(client, table), remove)
        return
    path = tmp_path / "history.db"

    def change(name: str) -> None:
        with closing(sqlite3.connect(path)) as sql, sql:
            spoilt = "UPDATE runs SET last_modified_at = 'soon' WHERE run_key = ?"
            assert sql.execute(spoilt, (run_key(key(name)),)).rowcount == 1

    with SqliteHistory(path) as history:
        yield Damaged(history, change)


def test_a_due_audit_that_cannot_be_read_leaves_the_others(kept: Damaged) -> None:
    """The list goes on after it; each is either in it or said to be unreadable.

    One that is asked for by its name is unreadable, and not taken for an absent one.
    """
    for hour in range(1, 6):
        kept.history.record(unsettled_entry(f"h{hour}", due_at=f"2026-11-20T1{2 + hour}:00:00Z"))
    kept.spoil("h1")
    kept.spoil("h3")
    for page_size in (1, 2, 50):
        due = RunQuery.due_until(NOON + timedelta(days=1))
        rows = list(kept.history.runs(due, page_size=page_size))
        assert [row.job for row in rows] == ["h2", "h4", "h5"]
        left_out = kept.history.take_unreadable()
        assert ["/h1" in left_out[0].key, "/h3" in left_out[1].key] == [True, True]
        assert kept.history.take_unreadable() == ()
    with pytest.raises(UnreadableItem, match=r"/h1.* cannot be read"):
        kept.history.summary(key("h1"))
