"""History in one SQLite file, for a person's own machine. docs/data-model.md has its tables.

It decides as the other histories do (`adapters/history/`), and its cursors are theirs. A list
reads a page at a time, and no transaction stays open between pages: rows that are recorded
meanwhile may be in it or not, and never block the writer.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sageaudit.adapters.files.exact_json import from_json, to_json, whole_text
from sageaudit.adapters.history.daily_sums import changes
from sageaudit.adapters.history.detail import DETAIL_DAYS, packed_detail, read_detail
from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.families import FamilyRow, family_row, out_of_date
from sageaudit.adapters.history.moments import moment_text
from sageaudit.adapters.history.paging import last_seen, list_end, page_of, readable, tried
from sageaudit.adapters.history.rows import finding_rows, head_of, row_text
from sageaudit.adapters.history.sort_keys import before_sk, run_id
from sageaudit.adapters.history.sqlite import statements, sums
from sageaudit.adapters.history.sqlite.columns import from_columns, to_columns
from sageaudit.adapters.history.sqlite.history_file import HistoryFile
from sageaudit.adapters.history.sqlite.refusals import damaged
from sageaudit.adapters.history.stored_document import digest_of, read_text, stored_text
from sageaudit.adapters.history.versions import RecordStep, next_step, unchanged
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import (
    FAMILY_RUNS,
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

_PAGE_ROWS = 500
"""Rows of one read of a list, some 1 MB."""
_LAST = "~"
"""Sorts after every moment and every run."""
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, zlib.error)

Form = TypeVar("Form", Head, FindingRow)


class SqliteHistory:
    """Implements History in one file. Threads may share it; they take turns.

    Every method raises HistoryFileError: BadHistory, HistoryDenied, HistoryBusy, or itself for a
    disk that is full or fails. What was recorded before stays.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Opens the file; one that is absent is made, or raises NoHistory without `create`."""
        self._file = HistoryFile(path, create=create)
        self._clock = clock
        self._forgot = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. A second time does nothing."""
        self._file.close()

    def record(self, entry: Entry) -> Recorded:
        """Writes HEAD, version, findings, detail and sums in one transaction, or nothing.

        Nothing is written for a delivery that is a duplicate or older than the newest version.
        """
        digest = digest_of(entry.document)
        with self._file.writing() as connection:
            self._forget_expired(connection)
            row = connection.execute(statements.HEAD, {"run_key": run_id(entry.key)})
            known = row.fetchone()
            newest = None if known is None else self._read(Head, known)
            step = next_step(newest, entry, digest)
            if newest is None or step is RecordStep.WRITE:
                return self._write(connection, entry, digest, newest)
            if step is RecordStep.CONFIRM:
                head = head_of(entry, newest.version, digest=digest, findings=finding_rows(entry))
                self._put_head(connection, entry, head, newest)
            if step is RecordStep.ADVANCE:
                modified_at = moment_text(entry.last_modified_at)
                values = {"run_key": run_id(entry.key), "last_modified_at": modified_at}
                connection.execute(statements.ADVANCE, values)
            return unchanged(step, newest)

    def _write(
        self, connection: sqlite3.Connection, entry: Entry, digest: str, newest: Head | None
    ) -> Recorded:
        version = 1 if newest is None else newest.version + 1
        findings = finding_rows(entry)
        head = head_of(entry, version, digest=digest, findings=findings)
        of_run = {"run_key": run_id(entry.key)}
        self._put_head(connection, entry, head, newest)
        text = stored_text(entry.document, version)
        connection.execute(statements.PUT_AUDIT, of_run | {"version": version, "document": text})
        connection.execute(statements.FORGET_FINDINGS, of_run)
        rows = [of_run | to_columns(finding) for finding in findings]
        connection.executemany(statements.PUT_FINDING, rows)
        if entry.detail is not None:
            packed = packed_detail(entry.detail)
            values = of_run | packed | {"expires_at": self._expires_at()}
            connection.execute(statements.PUT_DETAIL, values)
        return Recorded(Verdict.RECORDED, version, head)

    def _put_head(
        self, connection: sqlite3.Connection, entry: Entry, head: Head, newest: Head | None
    ) -> None:
        """The head, its place in its family, and what it changes in the daily sums."""
        of_run = {"run_key": run_id(head.key)}
        connection.execute(statements.PUT_HEAD, of_run | to_columns(head))
        row = family_row(entry, head)
        if row is None:
            connection.execute(statements.FORGET_FAMILY_ROW, of_run)
        else:
            compared = None if row.compared is None else to_json(row.compared)
            values = {"compared": compared, "since": row.since, "expires_at": self._expires_at()}
            connection.execute(statements.PUT_FAMILY_ROW, of_run | values)
        for change in changes(newest, head):
            sums.add(connection, change)

    def _forget_expired(self, connection: sqlite3.Connection) -> None:
        """Deletes what has expired, once for each opening, and gives its space back."""
        if self._forgot:
            return
        self._forgot = True
        gone = sum(
            connection.execute(statement, {"now": self._now()}).rowcount
            for statement in statements.FORGET_EXPIRED
        )
        if gone:
            connection.execute(statements.GIVE_SPACE_BACK).fetchall()

    def _now(self) -> str:
        return moment_text(self._clock())

    def _expires_at(self) -> str:
        return moment_text(self._clock() + timedelta(days=DETAIL_DAYS))

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

        In the usual order of audits it only reads.
        """
        asked = {
            **_family(account, region, family),
            "run_key": run_id(key),
            "ended_at": moment_text(ended_at),
            "now": self._now(),
            "rows": FAMILY_RUNS,
        }
        with self._file.reading() as connection:
            own = connection.execute(statements.FAMILY_ROW, asked).fetchone()
            if own is None:
                return ()
            before = connection.execute(statements.FAMILY_BEFORE, asked).fetchall()
            after = connection.execute(statements.FAMILY_AFTER, asked).fetchall()
        with self._whole_rows():
            rows = _family_row(own), map(_family_row, before), map(_family_row, after)
            found = tuple(out_of_date(*rows))
        if found:
            self._make_due(found, due_at)
        return found

    def make_due(self, key: JobKey, due_at: datetime) -> None:
        """Sets `due_at` of an audit that is not due earlier, and does nothing without one."""
        self._make_due([key], due_at)

    def _make_due(self, runs: Sequence[JobKey], due_at: datetime) -> None:
        due = {"due_at": moment_text(due_at)}
        with self._file.writing() as connection:
            values = [due | {"run_key": run_id(run)} for run in runs]
            connection.executemany(statements.MAKE_DUE, values)

    def head(self, key: JobKey) -> Head | None:
        """The summary of the newest version; None for an unknown run."""
        row = self._file.row(statements.HEAD, {"run_key": run_id(key)})
        return None if row is None else self._read(Head, row)

    def audit(self, key: JobKey, version: int | None = None) -> AuditDocument | None:
        """The document of a version, by default the newest; None where there is none."""
        query = statements.NEWEST_AUDIT if version is None else statements.AUDIT
        row = self._file.row(query, {"run_key": run_id(key), "version": version})
        with self._whole_rows():
            return None if row is None else read_text(row["document"])

    def detail(self, key: JobKey) -> Detail | None:
        """The stored data to judge the job again; None where it is absent or expired."""
        row = self._file.row(statements.DETAIL, {"run_key": run_id(key), "now": self._now()})
        with self._whole_rows():
            return None if row is None else read_detail(dict(row))

    def by_day(
        self,
        day: date,
        *,
        before: datetime | Position | None = None,
        page_size: int | None = None,
    ) -> Iterator[Head]:
        """Jobs that ended on a day in UTC, newest first."""
        asked = {"day": day.isoformat()}
        last = min(before_sk(before), f"{day.isoformat()}{_LAST}")
        return self._heads(statements.BY_DAY, asked, last, page_size)

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
        asked = _family(account, region, family)
        rows = page_size or limit
        return islice(self._heads(statements.BY_FAMILY, asked, before_sk(before), rows), limit)

    def by_owner(
        self,
        owner: str,
        *,
        limit: int,
        cursor: str | None = None,
        before: datetime | Position | None = None,
    ) -> Page[Head]:
        """One owner's jobs, newest first."""
        name = f"by-owner {keys.owner_pk(owner)}"
        last = list_end(name, cursor, before)
        asked = {"owner": row_text(owner)}
        return page_of(name, self._walk(Head, statements.BY_OWNER, asked, last, limit + 1), limit)

    def by_account(
        self,
        account: str,
        month: str,
        *,
        before: datetime | Position | None = None,
        page_size: int | None = None,
    ) -> Iterator[Head]:
        """One account's jobs of a month, newest first."""
        asked = {"account": whole_text(account), "month": month}
        last = min(before_sk(before), f"{month}{_LAST}")
        return self._heads(statements.BY_ACCOUNT, asked, last, page_size)

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
        name = f"by-rule {keys.rule_pk(rule, month)}"
        last = min(list_end(name, cursor, before), f"{month}{_LAST}")
        asked = {"rule": whole_text(rule), "month": month}
        walked = self._walk(FindingRow, statements.BY_RULE, asked, last, limit + 1)
        return page_of(name, walked, limit)

    def due(self, before: datetime, *, limit: int, cursor: str | None = None) -> Page[Head]:
        """Jobs whose recheck time is at or before `before`, the oldest first."""
        asked = {"until": moment_text(before)}
        last = last_seen("due", cursor) or ""
        walked = self._rows(statements.DUE, asked, last, limit + 1, by="due_at")
        rows = ((sk, tried(partial(self._read, Head), row)) for sk, row in walked)
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
        """The daily sums of one scope: one row for each day, account, region and name."""
        asked = {
            "scope": scope.value,
            "since": since.isoformat(),
            "until": until.isoformat(),
            "account": account and whole_text(account),
            "region": region and whole_text(region),
            "name": None if name is None else row_text(name),
        }
        of_days, of_rules = (
            (statements.SUMS, statements.RULE_SUMS)
            if name is None
            else (statements.SUMS_OF_NAME, statements.RULE_SUMS_OF_NAME)
        )
        with self._file.reading() as connection:
            days = connection.execute(of_days, asked).fetchall()
            rules = connection.execute(of_rules, asked).fetchall()
        return sums.read(days, rules)

    def _heads(
        self, query: str, asked: dict[str, Any], last: str, rows: int | None
    ) -> Iterator[Head]:
        return (head for _, head in self._walk(Head, query, asked, last, rows or _PAGE_ROWS))

    def _walk(
        self, form: type[Form], query: str, asked: dict[str, Any], last: str, rows: int
    ) -> Iterator[tuple[str, Form]]:
        walked = self._rows(query, asked, last, rows, by="ended_at")
        return ((sort_key, self._read(form, row)) for sort_key, row in walked)

    def _rows(
        self, query: str, asked: dict[str, Any], last: str, rows: int, *, by: str
    ) -> Iterator[tuple[str, sqlite3.Row]]:
        """Rows with their sort keys, from after `last` on: first `rows` of them, then more."""
        size = min(max(rows, 1), _PAGE_ROWS)
        moment, _, after = last.partition("#")
        while True:
            page = self._file.rows(query, asked | {by: moment, "after": after, "rows": size})
            for row in page:
                moment, after = row[by], row["run_key"]
                yield f"{moment}#{after}", row
            if len(page) < size:
                return
            size = _PAGE_ROWS

    def _read(self, form: type[Form], row: sqlite3.Row) -> Form:
        with self._whole_rows():
            return from_columns(form, row)

    @contextmanager
    def _whole_rows(self) -> Iterator[None]:
        """Raises BadHistory for a row that was damaged or changed by hand."""
        try:
            yield
        except _UNREADABLE as error:
            raise damaged(self._file.path, error) from error


def _family(account: str, region: str, family: str) -> dict[str, str]:
    return {
        "account": whole_text(account),
        "region": whole_text(region),
        "family": row_text(family),
    }


def _family_row(row: sqlite3.Row) -> FamilyRow:
    key = from_columns(JobKey, row)
    compared = row["compared"]
    return FamilyRow(
        key=key,
        ended_sk=f"{row['ended_at']}#{row['run_key']}",
        stamp=row["stamp"],
        compared=None if compared is None else tuple(from_json(compared)),
        since=row["since"],
    )
