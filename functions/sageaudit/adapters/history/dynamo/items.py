"""Converts rows to DynamoDB items and back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime

from sageaudit.adapters.history.codec import (
    READERS_BY_TYPE,
    RUN_READERS,
    FieldReader,
    Item,
    detail_to_item,
    epoch_s,
    from_item,
    make_row,
    moment_sk,
    read_detail,
    read_fields,
    to_attributes,
    to_item,
)
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.keys import PARTITION_KEY, SORT_KEY, TTL_ATTRIBUTE
from sageaudit.adapters.history.record_steps import (
    FamilyPlace,
    FamilyRow,
    read_compared,
    read_stored_bytes,
    to_stored_bytes,
)
from sageaudit.adapters.history.rows import rule_finding
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import Detail, FindingRow, RuleFinding
from sageaudit.domain.audit.sum_parts import SumPart
from sageaudit.domain.audit.summary import AuditSummary, JobKey, PartialSummary

FAMILY_PLACE = (PARTITION_KEY, SORT_KEY, "stamp")
"""The attributes of a RUNS# item that show a run's place in its family."""


def head_item(summary: AuditSummary, revision: int) -> Item:
    """Returns the HEAD item: the newest version's summary, with the keys of all job indexes.

    `revision` counts the writes of HEAD. Each write requires the revision that was read. So a
    version is added to the daily sums only once.
    """
    return {
        PARTITION_KEY: keys.job_pk(summary.key),
        SORT_KEY: keys.HEAD_SK,
        "revision": revision,
        **to_item(summary),
        **_head_index_keys(summary),
    }


def _head_index_keys(summary: AuditSummary) -> Item:
    # Only an audit with a recheck time has `due_*`, so that the index lists only due audits.
    index_keys = {
        "day_pk": keys.day_pk(summary.ended_at, summary.key),
        "family_pk": keys.family_pk(summary.account, summary.region, summary.family),
        "owner_pk": None if summary.owner is None else keys.owner_pk(summary.owner),
        "name_pk": keys.name_pk(summary.job),
        "account_pk": keys.account_pk(summary.account),
        "ended_sk": moment_sk(summary.ended_at, summary.key),
        "due_pk": None if summary.due_at is None else keys.due_pk(summary.key),
        "due_sk": None if summary.due_at is None else moment_sk(summary.due_at, summary.key),
    }
    return _without_none(index_keys)


def read_head(item: Item) -> AuditSummary:
    """Reads the summary in a HEAD item. Raises PARSE_ERRORS."""
    return from_item(AuditSummary, item)


def read_part(
    readers: Collection[FieldReader], label: Callable[[AuditSummary], object], item: Item
) -> SumPart:
    """Reads what the audit of a HEAD item adds to sums, from the fields of `readers`.

    Raises PARSE_ERRORS.
    """
    summary = read_partial(readers, item)
    return SumPart.from_summary(label(summary), summary)


def read_partial(readers: Collection[FieldReader], item: Item) -> PartialSummary:
    """Reads the fields of `readers` from a HEAD item. Raises PARSE_ERRORS."""
    return make_row(PartialSummary, read_fields(readers, item))


def summary_readers(field_names: Collection[str]) -> tuple[FieldReader, ...]:
    """Returns the readers of these fields of a summary."""
    return tuple(reader for reader in READERS_BY_TYPE[AuditSummary] if reader.name in field_names)


def head_attributes(field_names: Collection[str]) -> tuple[str, ...]:
    """Returns the attributes of a HEAD item that have these fields, and its keys."""
    key_names = JobKey.__struct_fields__ if "key" in field_names else ()
    return (PARTITION_KEY, SORT_KEY, *key_names, *(name for name in field_names if name != "key"))


def read_revision(item: Item) -> int:
    """Reads the revision of a HEAD item. Raises PARSE_ERRORS."""
    return int(item["revision"])


def audit_item(summary: AuditSummary, document: AuditDocument) -> Item:
    """Returns the item of a version's document, which is never changed later."""
    return {
        PARTITION_KEY: keys.job_pk(summary.key),
        SORT_KEY: keys.audit_sk(summary.version),
        "document": to_stored_bytes(document, summary.version),
    }


def read_audit(item: Item) -> AuditDocument:
    """Reads the document of an AUDIT# item. Raises PARSE_ERRORS."""
    return read_stored_bytes(item["document"])


def finding_item(row: RuleFinding) -> Item:
    """Returns the item of one finding of the newest version."""
    return {
        PARTITION_KEY: keys.job_pk(row.key),
        SORT_KEY: keys.finding_sk(row.finding.rule_id),
        **to_attributes(row.summary, RUN_READERS),
        **to_item(row.finding),
        "rule_pk": keys.rule_pk(row.finding.rule),
        "ended_sk": moment_sk(row.ended_at, row.key),
    }


def read_finding(item: Item) -> RuleFinding:
    """Reads the row of a FINDING# item. Raises PARSE_ERRORS."""
    return rule_finding(from_item(FindingRow, item), **read_fields(RUN_READERS, item))


def family_item(summary: AuditSummary, row: FamilyRow, expires_at: datetime) -> Item:
    """Returns the item of a run in its family's list.

    It expires together with the run's detail, without which a run cannot be judged again.
    """
    optional_attributes = {
        "stamp": row.stamp,
        "compared": row.compared_text,
        "since": row.compared_since or None,
    }
    return {
        PARTITION_KEY: keys.family_runs_pk(summary.account, summary.region, summary.family),
        SORT_KEY: row.ended_sk,
        TTL_ATTRIBUTE: epoch_s(expires_at),
        **to_item(row.key),
        **_without_none(optional_attributes),
    }


def read_family_place(item: Item) -> FamilyPlace:
    """Reads a run's place from a RUNS# item. Raises PARSE_ERRORS."""
    return FamilyPlace(ended_sk=item[SORT_KEY], stamp=item["stamp"])


def read_family_row(item: Item) -> FamilyRow:
    """Reads the row of a RUNS# item. Raises PARSE_ERRORS."""
    return FamilyRow(
        key=from_item(JobKey, item),
        ended_sk=item[SORT_KEY],
        stamp=item["stamp"],
        compared=read_compared(item.get("compared")),
        compared_since=item.get("since", ""),
    )


def detail_item(key: JobKey, detail: Detail, expires_at: datetime) -> Item:
    """Returns the item of the data that a new audit of the job needs."""
    return {PARTITION_KEY: keys.job_pk(key), SORT_KEY: keys.DETAIL_SK} | _without_none(
        {TTL_ATTRIBUTE: epoch_s(expires_at), **detail_to_item(detail)}
    )


def read_detail_item(item: Item) -> Detail:
    """Reads the data of a DETAIL item. Raises PARSE_ERRORS."""
    return read_detail(item)


def _without_none(item: Item) -> Item:
    return {name: value for name, value in item.items() if value is not None}


def item_key(item: Item) -> str:
    """Returns the keys of an item as text, for messages."""
    return f"{item.get(PARTITION_KEY)} {item.get(SORT_KEY)}"
