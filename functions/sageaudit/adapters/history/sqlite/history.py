"""A history in one SQLite file or in memory. docs/data-model.md describes its tables.

A list is read page by page, and no transaction stays open between pages. So a list never blocks a
writer, and may or may not include rows that are recorded meanwhile.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from sageaudit.adapters.files.exact_json import replace_surrogates
from sageaudit.adapters.history.codec import (
    detail_to_item,
    epoch_s,
    moment_text,
    run_key,
    sk_before,
)
from sageaudit.adapters.history.record_steps import (
    RecordStep,
    document_digest,
    family_row,
    find_outdated,
    next_step,
    sum_differences,
    to_stored_bytes,
    unchanged_result,
)
from sageaudit.adapters.history.rows import clip_text, finding_rows, make_summary
from sageaudit.adapters.history.sqlite import rows, schema
from sageaudit.adapters.history.sqlite.file import HistoryFile
from sageaudit.adapters.history.stored_items import StoredItems
from sageaudit.domain.advice.advice import Decision
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    DETAIL_DAYS,
    MAX_EARLIER_RUNS,
    AuditEntry,
    Detail,
    RecordOutcome,
    RecordResult,
    Row,
    RunIndex,
    RunQuery,
)
from sageaudit.domain.audit.sum_parts import SumPart
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import Scope, SumRow
from sageaudit.domain.moments import parse_moment
from sageaudit.errors import UnreadableItem

_DETAIL_S = timedelta(days=DETAIL_DAYS) // timedelta(seconds=1)
_PAGE_ROWS = 500
"""The rows that one read of a list returns: about 1 MB."""

ReadT = TypeVar("ReadT")


class SqliteHistory:
    """Implements History and Decisions. Threads may share an instance.

    Every method raises HistoryFileError, or a subclass such as BadHistory, HistoryDenied or
    HistoryBusy.
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        create: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Opens the file. Without `create`, a missing file raises NoHistory.

        Without a path the history is in memory, and lost when it is closed.
        """
        self._file = HistoryFile(path, create=create)
        self._rows = StoredItems(rows.row_key)
        self._clock = clock
        self._has_deleted_expired = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. A second call does nothing."""
        self._file.close()

    def record(self, entry: AuditEntry) -> RecordResult:
        """Records an audit in one transaction. Writes nothing for a duplicate or an older state."""
        digest = document_digest(entry.document)
        with self._file.write_transaction() as connection:
            self._delete_expired(connection)
            stored_row = self._file.query_first(schema.SUMMARY, {"run_key": run_key(entry.key)})
            newest = None if stored_row is None else self._rows.read(rows.read_summary, stored_row)
            step = next_step(newest, entry, digest)
            if newest is None or step is RecordStep.WRITE:
                return self._write(connection, entry, digest, newest)
            if step is RecordStep.CONFIRM:
                summary = make_summary(entry, newest.version, digest)
                self._put_summary(connection, entry, summary, newest)
            if step is RecordStep.ADVANCE:
                modified_at = moment_text(entry.last_modified_at)
                values = {"run_key": run_key(entry.key), "last_modified_at": modified_at}
                connection.execute(schema.ADVANCE, values)
            return unchanged_result(step, newest)

    def _write(
        self,
        connection: sqlite3.Connection,
        entry: AuditEntry,
        digest: str,
        newest_summary: AuditSummary | None,
    ) -> RecordResult:
        version = 1 if newest_summary is None else newest_summary.version + 1
        summary = make_summary(entry, version, digest)
        run_values = {"run_key": run_key(entry.key)}
        self._put_summary(connection, entry, summary, newest_summary)
        document = to_stored_bytes(entry.document, version)
        connection.execute(
            schema.PUT_AUDIT, run_values | {"version": version, "document": document}
        )
        connection.execute(schema.DELETE_FINDINGS, run_values)
        finding_values = run_values | {"ended_at": moment_text(summary.ended_at)}
        columns = [finding_values | rows.to_columns(finding) for finding in finding_rows(entry)]
        connection.executemany(schema.PUT_FINDING, columns)
        if entry.detail is not None:
            values = run_values | detail_to_item(entry.detail) | self._expiry()
            connection.execute(schema.PUT_DETAIL, values)
        return RecordResult(RecordOutcome.RECORDED, version, summary)

    def _put_summary(
        self,
        connection: sqlite3.Connection,
        entry: AuditEntry,
        summary: AuditSummary,
        newest_summary: AuditSummary | None,
    ) -> None:
        run_values = {"run_key": run_key(summary.key)}
        connection.execute(schema.PUT_SUMMARY, run_values | rows.summary_columns(summary))
        family_place = family_row(entry, summary)
        if family_place is None:
            connection.execute(schema.DELETE_FAMILY_ROW, run_values)
        else:
            values = run_values | rows.family_row_columns(family_place) | self._expiry()
            connection.execute(schema.PUT_FAMILY_ROW, values)
        for change in sum_differences(newest_summary, summary):
            connection.execute(schema.ADD_SUMS, rows.sum_columns(change))
            connection.executemany(schema.ADD_RULE_SUMS, rows.rule_sum_columns(change))

    def _delete_expired(self, connection: sqlite3.Connection) -> None:
        # Runs once after each opening, and frees the rows' space.
        if self._has_deleted_expired:
            return
        self._has_deleted_expired = True
        deleted_count = sum(
            connection.execute(statement, {"now": self._now()}).rowcount
            for statement in schema.DELETE_EXPIRED
        )
        if deleted_count:
            connection.execute(schema.VACUUM).fetchall()

    def _now(self) -> int:
        return epoch_s(self._clock())

    def _expiry(self) -> dict[str, int]:
        return {"expires_at": self._now() + _DETAIL_S}

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
        """Schedules the family's audits that were judged without an earlier run. Returns their
        keys.

        It usually only reads.
        """
        parameters = {
            "account": replace_surrogates(account),
            "region": replace_surrogates(region),
            "family": clip_text(family),
            "run_key": run_key(key),
            "ended_at": moment_text(ended_at),
            "now": self._now(),
            "rows": MAX_EARLIER_RUNS,
        }
        with self._file.read_transaction():
            own_row = self._file.query_first(schema.FAMILY_ROW, parameters)
            if own_row is None:
                return ()
            earlier_rows = self._file.query_all(schema.FAMILY_BEFORE, parameters)
            later_rows = self._file.query_all(schema.FAMILY_AFTER, parameters)
        outdated_keys = tuple(
            find_outdated(
                self._rows.read(rows.read_family_row, own_row),
                self._rows.read_each(rows.read_family_place, earlier_rows),
                self._rows.read_each(rows.read_family_row, later_rows),
            )
        )
        if outdated_keys:
            self._make_due(outdated_keys, due_at)
        return outdated_keys

    def schedule_reaudit(self, key: JobKey, due_at: datetime) -> None:
        """Sets an audit's `due_at`, unless it is due earlier or there is no audit."""
        self._make_due([key], due_at)

    def _make_due(self, runs: Sequence[JobKey], due_at: datetime) -> None:
        due_value = {"due_at": moment_text(due_at)}
        with self._file.write_transaction() as connection:
            values = [due_value | {"run_key": run_key(run)} for run in runs]
            connection.executemany(schema.SCHEDULE_REAUDIT, values)

    def summary(self, key: JobKey) -> AuditSummary | None:
        """Returns the summary of a run's newest version; None for an unknown run."""
        row = self._file.query_first(schema.SUMMARY, {"run_key": run_key(key)})
        return None if row is None else self._rows.read(rows.read_summary, row)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """Returns the document of a version, by default the newest; None if it does not exist."""
        query = schema.NEWEST_AUDIT if version is None else schema.AUDIT
        row = self._file.query_first(query, {"run_key": run_key(key), "version": version})
        return None if row is None else self._rows.read(rows.read_audit, row)

    def detail(self, key: JobKey) -> Detail | None:
        """Returns the data that a new audit of the job needs; None if it is absent or expired."""
        row = self._file.query_first(schema.DETAIL, {"run_key": run_key(key), "now": self._now()})
        return None if row is None else self._rows.read(rows.read_stored_detail, row)

    def runs(
        self,
        query: RunQuery[Row],
        *,
        ended_before: datetime | None = None,
        page_size: int | None = None,
        fields: Collection[str] | None = None,
    ) -> Iterator[Row]:
        """Yields the rows of a list, a page at a time. Only the columns of `fields` are read."""
        read: Callable[[sqlite3.Row], Any] = rows.read_summary
        columns = schema.RUN_ROW_COLUMNS
        if query.index is RunIndex.RULE:
            read = rows.read_finding
        elif fields is not None:
            reader = rows.partial_reader(frozenset({*fields, "key", "ended_at", "due_at"}))
            read, columns = reader.read, reader.columns
            if query.index is RunIndex.FAMILY:
                read = reader.read_cached
        values = self._rows.read_each(read, self._walk(query, ended_before, page_size, columns))
        return cast("Iterator[Row]", values)

    def sum_parts(
        self,
        query: RunQuery[AuditSummary],
        label: Callable[[AuditSummary], object],
        fields: Collection[str],
        *,
        ended_before: datetime | None = None,
        with_usage: bool = False,
    ) -> Iterator[SumPart]:
        """Yields what the audits of a list add to sums, a page at a time.

        Only the columns of `fields` are read, and of the numbers to add up.
        """
        reader = rows.PartReader(label, fields, with_usage=with_usage)
        runs = self._walk(query, ended_before, None, reader.columns)
        return self._rows.read_each(reader.read, runs)

    def _walk(
        self,
        query: RunQuery[Any],
        ended_before: datetime | None,
        page_size: int | None,
        columns: Iterable[str] = schema.RUN_ROW_COLUMNS,
    ) -> Iterator[sqlite3.Row]:
        # The first page has `page_size` rows, further pages have 500.
        parameter_names, statement = schema.list_query(query.index, columns)
        parameters = dict(zip(parameter_names, map(clip_text, query.values), strict=True))
        sort_column, page_start = "ended_at", sk_before(ended_before)
        if query.index is RunIndex.DUE:
            sort_column, page_start = "due_at", ""
            parameters["until"] = moment_text(parse_moment(parameters["until"]))
        if "period" in parameters:
            page_start = min(page_start, f"{parameters['period']}~")
        size = min(max(page_size or _PAGE_ROWS, 1), _PAGE_ROWS)
        last_moment, _, last_run_key = page_start.partition("#")
        while True:
            page = self._file.query_all(
                statement,
                {**parameters, "moment": last_moment, "after": last_run_key, "rows": size},
            )
            yield from page
            if len(page) < size:
                return
            last_moment, last_run_key, size = page[-1][sort_column], page[-1]["run_key"], _PAGE_ROWS

    def daily_sums(
        self,
        scope: Scope,
        since: date,
        until: date,
        *,
        account: str | None = None,
        region: str | None = None,
        name: str | None = None,
    ) -> Iterator[SumRow]:
        """Yields a scope's daily sums, one row per day, account, region and name."""
        parameters = {
            "scope": scope.value,
            "since": since.isoformat(),
            "until": until.isoformat(),
            "account": account and replace_surrogates(account),
            "region": region and replace_surrogates(region),
            "name": None if name is None else clip_text(name),
        }
        with self._file.read_transaction():
            days = self._file.query_all(schema.SUMS, parameters)
            rules = self._file.query_all(schema.RULE_SUMS, parameters)
        return rows.read_sums(days, rules, self._rows)

    def decisions(self) -> Sequence[Decision]:
        """Returns all readable decisions."""
        decision_rows = self._file.query_all(schema.DECISIONS, {})
        return [*self._rows.read_each(rows.read_decision, decision_rows)]

    def save_decision(self, decision: Decision) -> None:
        """Stores a decision. It replaces one of the same time about the same recommendation."""
        with self._file.write_transaction() as connection:
            connection.execute(schema.PUT_DECISION, rows.to_columns(decision))

    def unreadable_items(self) -> tuple[UnreadableItem, ...]:
        """Returns the rows that were left out since they were last taken."""
        return self._rows.left_out

    def take_unreadable(self) -> tuple[UnreadableItem, ...]:
        """Returns `unreadable_items`, and forgets them."""
        return self._rows.take_left_out()
