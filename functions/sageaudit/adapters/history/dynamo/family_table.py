"""Writes and reads a family's rows in the table, and makes audits due.

All reads are strongly consistent, and each run is checked after it was recorded: of two that are
recorded at the same time, the later check sees both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice

from sageaudit.adapters.history.codec import Item
from sageaudit.adapters.history.dynamo import items, keys
from sageaudit.adapters.history.dynamo.calls import (
    ConditionFailed,
    Dynamo,
    delete_action,
    put_action,
)
from sageaudit.adapters.history.dynamo.table import PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.families import FamilyRow, family_row, out_of_date
from sageaudit.adapters.history.moments import moment_text
from sageaudit.adapters.history.sort_keys import due_sk, ended_after, ended_before, ended_sk
from sageaudit.domain.audit.record import FAMILY_RUNS, Entry, Head, JobKey


def family_actions(
    entry: Entry, head: Head, newest: Head | None, expires_at: datetime
) -> list[Item]:
    """Puts the run's row in its family; deletes that of another family or end."""
    row = family_row(entry, head)
    new = None if row is None else items.family_item(head, row, expires_at)
    actions = [] if new is None else [put_action(new)]
    if newest is not None and newest.stamp is not None:
        old = (
            keys.family_runs_pk(newest.account, newest.region, newest.family),
            ended_sk(newest.ended_at, newest.key),
        )
        if new is None or old != (new[PARTITION_KEY], new[SORT_KEY]):
            actions.append(delete_action(*old))
    return actions


def out_of_date_runs(
    table: Dynamo, partition: str, key: JobKey, ended_at: datetime
) -> tuple[JobKey, ...]:
    """The run itself or runs after it that were judged without one that ended before."""
    item = table.get(partition, ended_sk(ended_at, key))
    if item is None:
        return ()
    before = _rows(table, partition, "<", ended_before(ended_at))
    after = _rows(table, partition, ">", ended_after(ended_at))
    return tuple(out_of_date(items.read_family_row(item), before, after))


def _rows(table: Dynamo, partition: str, side: str, moment: str) -> Iterator[FamilyRow]:
    """The runs next to a moment: before it the newest first, after it the oldest first."""
    pages = table.pages(
        KeyConditionExpression=f"#p = :p AND #s {side} :moment",
        ExpressionAttributeNames={"#p": PARTITION_KEY, "#s": SORT_KEY},
        ExpressionAttributeValues={":p": partition, ":moment": moment},
        ScanIndexForward=side == ">",
        ConsistentRead=True,
        Limit=FAMILY_RUNS,
    )
    rows = (items.read_family_row(item) for page in pages for item in page)
    return islice(rows, FAMILY_RUNS)


def make_due(table: Dynamo, key: JobKey, due_at: datetime) -> None:
    """Sets the recheck time of an audit; one that is due earlier stays so.

    A condition and no transaction: whoever records the audit meanwhile checks it again afterwards.
    """
    values = {
        ":at": moment_text(due_at),
        ":pk": keys.due_pk(key),
        ":sk": due_sk(due_at, key),
    }
    with suppress(ConditionFailed):
        table.update(
            keys.job_pk(key),
            keys.HEAD_SK,
            "SET due_at = :at, due_pk = :pk, due_sk = :sk",
            condition=f"attribute_exists({PARTITION_KEY}) AND "
            "(attribute_not_exists(due_at) OR due_at > :at)",
            values=values,
            names={},
        )
