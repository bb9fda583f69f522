"""History in DynamoDB. docs/data-model.md describes the keys and the query of each list."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

from sageaudit.adapters.history.daily_sums import SumFilter
from sageaudit.adapters.history.detail import DETAIL_DAYS
from sageaudit.adapters.history.dynamo import items, keys, walks
from sageaudit.adapters.history.dynamo.calls import (
    ConditionFailed,
    Dynamo,
    delete_action,
    put_action,
)
from sageaudit.adapters.history.dynamo.family_table import (
    family_actions,
    make_due,
    out_of_date_runs,
)
from sageaudit.adapters.history.dynamo.known_head import KnownHead, put_head
from sageaudit.adapters.history.dynamo.sum_table import Directory, read_rows, sum_actions
from sageaudit.adapters.history.dynamo.table import AUDIT_PREFIX, PARTITION_KEY, SORT_KEY
from sageaudit.adapters.history.moments import moment_text
from sageaudit.adapters.history.paging import last_seen, list_end, page_of, readable, tried
from sageaudit.adapters.history.rows import finding_rows, head_of
from sageaudit.adapters.history.sort_keys import before_sk
from sageaudit.adapters.history.stored_document import digest_of
from sageaudit.adapters.history.versions import RecordStep, next_step, unchanged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    Detail,
    Entry,
    FindingRow,
    Head,
    JobKey,
    Page,
    Position,
    Recorded,
    Verdict,
)
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.errors import Throttled

RECORD_PERMISSIONS = (
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
)
"""What `record` calls; IAM has no action TransactWriteItems, only its parts."""
READ_PERMISSIONS = ("dynamodb:GetItem", "dynamodb:Query")
"""What every other method calls: Query on the table and on its indexes."""
INDEX_PERMISSIONS = ("dynamodb:Query",)
"""What a list calls, on its index alone."""
SUMS_PERMISSIONS = ("dynamodb:GetItem", "dynamodb:Query")
"""What `sums` and `head` call, on the table alone."""
PERMISSIONS = tuple(sorted({*RECORD_PERMISSIONS, *READ_PERMISSIONS}))

WAITS_S = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between tries of one recording: a conflict lasts for another delivery's write."""


class DynamoHistory:
    """Implements History in a DynamoDB table. `client` is boto3's low-level DynamoDB client."""

    def __init__(
        self,
        client: Any,
        table_name: str,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table = Dynamo(client, table_name)
        self._directory = Directory(self._table)
        self._clock = clock
        self._sleep = sleep

    def record(self, entry: Entry) -> Recorded:
        """Writes HEAD, version, findings, detail and sums in one transaction. Raises AwsError.

        Nothing is written for a delivery that is a duplicate or older than the newest version.
        """
        digest = digest_of(entry.document)
        for conflicts, wait_s in enumerate(WAITS_S):
            try:
                return self._try_to_record(entry, digest, conflicts)
            except ConditionFailed:
                continue  # another delivery has written since HEAD was read: decide again
            except Throttled:
                self._sleep(wait_s)
        try:
            return self._try_to_record(entry, digest, len(WAITS_S))
        except ConditionFailed as error:
            raise Throttled(f"Too many concurrent writes of {entry.key.arn}.") from error

    def _try_to_record(self, entry: Entry, digest: str, tries: int) -> Recorded:
        item = self._table.get(keys.job_pk(entry.key), keys.HEAD_SK)
        findings = finding_rows(entry)
        if item is None:
            head = head_of(entry, 1, digest=digest, findings=findings)
            return self._write(entry, None, head, tries)
        known = KnownHead.of(item)
        step = next_step(known.head, entry, digest)
        version = known.head.version + (step is RecordStep.WRITE)
        head = head_of(entry, version, digest=digest, findings=findings)
        if step is RecordStep.WRITE:
            return self._write(entry, known, head, tries)
        if step is RecordStep.CONFIRM:
            self._confirm(entry, known, head, tries)
        if step is RecordStep.ADVANCE:
            self._advance(entry, known)
        return unchanged(step, known.head)

    def _write(self, entry: Entry, known: KnownHead | None, head: Head, tries: int) -> Recorded:
        newest = known.head if known else None
        vanished = set(newest.finding_ids if newest else ()) - set(head.finding_ids)
        audit = items.audit_item(head, entry.document)
        actions = [
            put_head(head, known),
            put_action(audit, f"attribute_not_exists({PARTITION_KEY})"),
            *(put_action(items.finding_item(finding)) for finding in finding_rows(entry)),
            *(
                delete_action(keys.job_pk(entry.key), keys.finding_sk(rule_id))
                for rule_id in sorted(vanished)
            ),
            *family_actions(entry, head, newest, self._expires_at()),
            *sum_actions(newest, head, tries),
        ]
        if entry.detail is not None:
            expires_at = self._expires_at()
            actions.append(put_action(items.detail_item(entry.key, entry.detail, expires_at)))
        self._directory.name(head)
        self._table.transact(actions)
        return Recorded(Verdict.RECORDED, head.version, head)

    def _confirm(self, entry: Entry, known: KnownHead, head: Head, tries: int) -> None:
        """The same version, judged with the family's runs as they are now: it is not due."""
        moved = family_actions(entry, head, known.head, self._expires_at())
        added = sum_actions(known.head, head, tries)
        self._directory.name(head)
        self._table.transact([put_head(head, known), *moved, *added])

    def _expires_at(self) -> datetime:
        return self._clock() + timedelta(days=DETAIL_DAYS)

    def _advance(self, entry: Entry, known: KnownHead) -> None:
        condition, values = known.as_read
        self._table.update(
            keys.job_pk(entry.key),
            keys.HEAD_SK,
            "SET last_modified_at = :new",
            condition=condition,
            values=values | {":new": moment_text(entry.last_modified_at)},
            names={},
        )

    def recheck_family(
        self,
        key: JobKey,
        *,
        account: str,
        region: str,
        family: str,
        ended_at: datetime,
        due_at: datetime,
    ) -> tuple[JobKey, ...]:
        """Sets `due_at` of the family's audits that were judged without a run that ended before.

        Three reads and, in the usual order of audits, no write.
        """
        partition = keys.family_runs_pk(account, region, family)
        found = out_of_date_runs(self._table, partition, key, ended_at)
        for run in found:
            make_due(self._table, run, due_at)
        return found

    def make_due(self, key: JobKey, due_at: datetime) -> None:
        """Sets `due_at` of an audit that is not due earlier, and does nothing without one."""
        make_due(self._table, key, due_at)

    def head(self, key: JobKey) -> Head | None:
        """HEAD, the summary of the newest version; None for an unknown run."""
        item = self._table.get(keys.job_pk(key), keys.HEAD_SK)
        return None if item is None else items.read_head(item)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """The document of a version, by default the newest; None where there is none."""
        if version is not None:
            item = self._table.get(keys.job_pk(key), keys.audit_sk(version))
            return None if item is None else items.read_audit(item)
        newest = self._table.pages(
            KeyConditionExpression="#p = :p AND begins_with(#s, :audit)",
            ExpressionAttributeNames={"#p": PARTITION_KEY, "#s": SORT_KEY},
            ExpressionAttributeValues={":p": keys.job_pk(key), ":audit": AUDIT_PREFIX},
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=1,
        )
        page = next(newest)
        return items.read_audit(page[0]) if page else None

    def detail(self, key: JobKey) -> Detail | None:
        """The stored data to judge the job again; None where it is absent or expired."""
        item = self._table.get(keys.job_pk(key), keys.DETAIL_SK)
        return None if item is None else items.read_stored_detail(item)

    def by_day(
        self,
        day: date,
        *,
        before: datetime | Position | None = None,
        page_size: int | None = None,
    ) -> Iterator[Head]:
        """Jobs that ended on a day (UTC), newest first, merged from the day's shards."""
        return self._heads("by-day", keys.day_pks(day), before, page_size)

    def by_family(
        self,
        account: str,
        region: str,
        family: str,
        *,
        before: datetime | Position | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> Iterator[Head]:
        """The runs of one family, newest first."""
        partition = keys.family_pk(account, region, family)
        heads = self._heads("by-family", [partition], before, page_size or limit)
        return islice(heads, limit)

    def by_owner(
        self,
        owner: str,
        *,
        limit: int,
        cursor: str | None = None,
        before: datetime | Position | None = None,
    ) -> Page[Head]:
        """One owner's jobs, newest first."""
        partition = keys.owner_pk(owner)
        asked = f"by-owner {partition}"
        last = list_end(asked, cursor, before)
        walked = walks.newest_first(self._table, "by-owner", [partition], last, limit + 1)
        return page_of(asked, ((sk, items.read_head(item)) for sk, item in walked), limit)

    def by_account(
        self,
        account: str,
        month: str,
        *,
        before: datetime | Position | None = None,
        page_size: int | None = None,
    ) -> Iterator[Head]:
        """One account's jobs of a month, newest first."""
        return self._heads("by-account", [keys.account_pk(account, month)], before, page_size)

    def by_rule(
        self,
        rule: str,
        month: str,
        *,
        limit: int,
        cursor: str | None = None,
        before: datetime | Position | None = None,
    ) -> Page[FindingRow]:
        """One rule's findings of a month, newest first."""
        partition = keys.rule_pk(rule, month)
        asked = f"by-rule {partition}"
        last = list_end(asked, cursor, before)
        walked = walks.newest_first(self._table, "by-rule", [partition], last, limit + 1)
        return page_of(asked, ((sk, items.read_finding(item)) for sk, item in walked), limit)

    def due(self, before: datetime, *, limit: int, cursor: str | None = None) -> Page[Head]:
        """Jobs whose recheck time is at or before `before`, the oldest first."""
        walked = walks.due_first(self._table, before, last_seen("due", cursor), limit)
        rows = ((sk, tried(items.read_head, item)) for sk, item in walked)
        return readable(page_of("due", rows, limit))

    def sums(
        self,
        scope: Scope,
        since: date,
        until: date,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """The daily sums of one scope, a row for each name and day."""
        return read_rows(self._table, scope, since, until, SumFilter(account, region, name))

    def _heads(
        self,
        index: str,
        partitions: Sequence[str],
        before: datetime | Position | None,
        page_size: int | None,
    ) -> Iterator[Head]:
        last = before_sk(before)
        walked = walks.newest_first(self._table, index, partitions, last, page_size)
        return (items.read_head(item) for _, item in walked)
