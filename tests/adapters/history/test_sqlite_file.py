"""The file of an embedded history: what it holds, and what is refused in one sentence."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from sageaudit.adapters.history.sqlite import file, schema
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.history.sqlite.rows import column_names
from sageaudit.domain.audit.record import RecordOutcome, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import RuleSums, Sums
from sageaudit.errors import (
    BadHistory,
    HistoryBusy,
    HistoryFileError,
    NoHistory,
    UnreadableItem,
)
from sageaudit.exits import Exit, exit_for
from tests.fakes.entries import NOON, entry, finding, key, with_detail

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
TODAY = RunQuery.for_day(NOON.date())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a history may be made."""
    return tmp_path / "history.db"


@pytest.fixture
def recorded(path: Path) -> Path:
    """A closed history of one job."""
    with SqliteHistory(path) as history:
        history.record(with_detail(entry()))
    return path


def read(path: Path, *, create: bool) -> None:
    """Opens a history and reads what is in it."""
    with SqliteHistory(path, create=create) as history:
        history.audit(key())
        history.detail(key())
        _ = [*history.runs(TODAY)]


def refused(path: Path, *, create: bool = False) -> HistoryFileError:
    """The error of opening and reading a file."""
    with pytest.raises(HistoryFileError) as raised:
        read(path, create=create)
    sentence = str(raised.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return raised.value


@pytest.fixture
def sql(recorded: Path) -> Iterator[sqlite3.Connection]:
    """The file as a person opens it with SQL."""
    with closing(sqlite3.connect(recorded, isolation_level=None)) as connection:
        yield connection


def test_a_history_is_kept_when_it_is_closed(recorded: Path) -> None:
    """The next process reads what this one wrote; nothing is left beside the file."""
    assert [each.name for each in recorded.parent.iterdir()] == ["history.db"]
    with SqliteHistory(recorded, create=False) as history:
        assert history.summary(key()) is not None
        assert history.detail(key()) is not None


def test_only_its_owner_reads_a_history(recorded: Path) -> None:
    """Also what SQLite keeps beside it while it is written."""
    with SqliteHistory(recorded) as history:
        history.record(entry("another"))
        files = list(recorded.parent.iterdir())
        assert len(files) == 3
        assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}


def test_a_person_asks_sql(sql: sqlite3.Connection) -> None:
    """Dollars in the views, exact millionths in the tables, and objects are JSON."""
    [job] = sql.execute("SELECT job, family, total_usd, avoidable_usd, lost_usd FROM jobs")
    assert job == ("train-1", "training/resnet", 4.545, 1.5, 0.0)
    assert sql.execute("SELECT sum(total_micro_usd) FROM runs").fetchone() == (4_545_000,)
    [found] = sql.execute("SELECT rule, saving_usd, job FROM job_findings")
    assert found == ("gpu-underused", 1.5, "train-1")
    assert sql.execute("SELECT arn, reason FROM jobs").fetchone() == (key().arn, None)
    assert sql.execute("SELECT arn FROM job_findings").fetchone() == (key().arn,)
    assert sql.execute("PRAGMA application_id").fetchone() == (0x53674175,)
    assert sql.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_field_of_the_rows_has_its_column(sql: sqlite3.Connection) -> None:
    """A new field of a head or a sum needs a column."""
    for table, form in {
        "runs": AuditSummary,
        "daily_sums": Sums,
        "daily_rule_sums": RuleSums,
    }.items():
        columns = {row[1] for row in sql.execute(f"PRAGMA table_info({table})")}
        assert {*column_names(form)} - {"rules"} <= columns


def test_sql_adds_dollars_exactly(path: Path) -> None:
    """Millionths are integers: ten dimes are a dollar, which ten floats of 0.1 are not."""
    with SqliteHistory(path) as history:
        for number in range(10):
            history.record(entry(f"job-{number}", bill={"total_usd": Decimal("0.1")}))
    with closing(sqlite3.connect(path)) as connection:
        [summed] = connection.execute("SELECT sum(total_micro_usd) FROM runs").fetchone()
    assert summed == 1_000_000


def test_details_expire_after_90_days(path: Path) -> None:
    """They read as absent then, and the next recording deletes them; audits stay."""
    with SqliteHistory(path, clock=lambda: NOON) as history:
        history.record(with_detail(entry()))
    later = NOON + timedelta(days=90)
    with SqliteHistory(path, clock=lambda: later - timedelta(seconds=1)) as history:
        assert history.detail(key()) is not None
        history.record(entry("before"))
        assert history.detail(key()) is not None
    with SqliteHistory(path, clock=lambda: later) as history:
        assert history.detail(key()) is None
        history.record(entry("another"))
        assert history.audit(key()) is not None
    assert details_in(path) == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_expired_details_are_looked_for_once_for_each_opening(path: Path) -> None:
    """The first recording deletes them: a scan that records thousands does not search each time."""
    now = NOON
    with SqliteHistory(path, clock=lambda: now) as history:
        history.record(with_detail(entry()))
        now = NOON + timedelta(days=90)
        history.record(entry("same-opening"))
        assert details_in(path) == 1
    with SqliteHistory(path, clock=lambda: now) as history:
        history.record(entry("next-opening"))
        assert details_in(path) == 0


def details_in(path: Path) -> int:
    """The number of details in the file, expired ones too."""
    with closing(sqlite3.connect(path)) as connection:
        [count] = connection.execute("SELECT count(*) FROM details").fetchone()
    return int(count)


def test_what_does_not_exist_is_said(path: Path) -> None:
    """Reading makes no file; a folder is not made for a mistyped path."""
    assert exit_for(refused(path)) is Exit.NOT_FOUND
    assert exit_for(refused(path.parent / "no-folder" / "h.db", create=True)) is Exit.NOT_FOUND
    assert not list(path.parent.iterdir())
    (path.parent / "file").touch()
    assert exit_for(refused(path.parent / "file" / "h.db", create=True)) is Exit.NOT_FOUND


def test_an_empty_file_becomes_a_history_when_it_is_written(path: Path) -> None:
    """Such as one that mktemp made; for a reader it has none yet."""
    path.touch()
    assert isinstance(refused(path), NoHistory)
    with SqliteHistory(path) as history:
        assert history.record(entry()).outcome is RecordOutcome.RECORDED


def test_a_path_that_can_be_no_file_is_bad_usage(tmp_path: Path) -> None:
    """A folder, a device, a link that leads nowhere or to itself, a name that is too long."""
    loop, dangling = tmp_path / "loop.db", tmp_path / "link.db"
    loop.symlink_to(loop.name)
    dangling.symlink_to("absent.db")
    for path in (tmp_path, Path("/dev/null"), loop, dangling, tmp_path / ("x" * 300)):
        error = refused(path, create=True)
        assert isinstance(error, BadHistory)
        assert exit_for(error) is Exit.USAGE
    assert "is a link to a file that does not exist" in str(refused(dangling, create=True))


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    "made_by",
    [b"jobs,usd\n", b"x" * 9_000, "CREATE TABLE runs (x)", "PRAGMA application_id = 7"],
    ids=["text", "pages", "tables", "application"],
)
def test_a_file_of_something_else_is_not_changed(
    path: Path, made_by: bytes | str, create: bool
) -> None:
    """Whether it is a database or not, and names its application or not."""
    if isinstance(made_by, bytes):
        path.write_bytes(made_by)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(made_by)
    content = path.read_bytes()
    assert exit_for(refused(path, create=create)) is Exit.USAGE
    assert path.read_bytes() == content


@pytest.mark.parametrize("version", [schema.VERSION - 1, schema.VERSION + 1])
def test_a_file_of_another_version_is_left_alone(
    sql: sqlite3.Connection, recorded: Path, version: int
) -> None:
    """There is no way from one schema to another: the sentence says so."""
    sql.execute(f"PRAGMA user_version = {version}")
    assert "another version of sageaudit" in str(refused(recorded, create=True))
    assert sql.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_a_damaged_file_is_said(recorded: Path) -> None:
    """Wherever the damage is: cut off, pages that were overwritten, or names that are no text."""
    whole = recorded.read_bytes()
    overwritten = whole[:4096] + bytes([7]) * (len(whole) - 4096)
    no_names = whole.replace(b"CREATE TABLE runs (", b"CREATE TABLE \xffuns \xff")
    for damaged in (whole[: len(whole) // 2], overwritten, no_names):
        recorded.write_bytes(damaged)
        error = refused(recorded)
        assert exit_for(error) is Exit.USAGE
        assert "damaged" in str(error)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audits SET document = '{'",
        "UPDATE runs SET ended_at = replace(ended_at, ':', '?')",
        "UPDATE runs SET phase_s = 'x'",
        "UPDATE runs SET settings = '[]'",
        "UPDATE runs SET sums = '7'",
        "UPDATE runs SET digest = NULL",
        "UPDATE runs SET tags = 'x'",
        "UPDATE runs SET judged = 'perhaps'",
        "UPDATE runs SET job = x'ff'",
        "UPDATE details SET description = x'1f8b00'",
    ],
)
def test_a_row_that_somebody_changed_is_named_and_stops_no_other(
    sql: sqlite3.Connection, recorded: Path, change: str
) -> None:
    """No stack trace, and no wrong answer: what is asked for by its key is unreadable."""
    with SqliteHistory(recorded) as history:
        history.record(entry("another"))
        sql.execute(f"{change} WHERE run = 1")
        assert "another" in [run.job for run in history.runs(TODAY)]
        read_by_key = (history.summary, history.audit, history.detail)
        named = [*history.take_unreadable()]
        for read in read_by_key:
            try:
                read(key())
            except UnreadableItem as error:
                named.append(error)
        assert named
        assert {"/train-1#" in item.key for item in named} == {True}


def test_a_text_that_is_not_utf_8_spoils_only_itself(
    sql: sqlite3.Connection, recorded: Path
) -> None:
    """Its row is read, with the sign for what is unknown in its place."""
    with SqliteHistory(recorded) as history:
        history.record(entry("another"))
        sql.execute("UPDATE runs SET job = CAST(x'61ff' AS TEXT) WHERE run = 1")
        assert sorted(run.job for run in history.runs(TODAY)) == ["another", "a\ufffd"]


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE audits",
        "CREATE TRIGGER grow AFTER UPDATE ON runs BEGIN DELETE FROM audits; END",
        f"DROP TABLE decisions; CREATE VIEW decisions AS {ENDLESS}",
    ],
)
def test_a_file_with_other_tables_is_refused(
    sql: sqlite3.Connection, recorded: Path, change: str
) -> None:
    """A view in the place of a table may never end, and a trigger changes what is written."""
    sql.executescript(change)
    assert isinstance(refused(recorded), BadHistory)


def test_a_full_disk_loses_nothing(recorded: Path) -> None:
    """What does not fit is refused whole; what was recorded before reads back; then it goes on."""
    with SqliteHistory(recorded) as history:
        connection = history._file._connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        large = entry(
            "large", findings=[finding(evidence={"text": Random(1).randbytes(50_000).hex()})]
        )
        with pytest.raises(HistoryFileError, match=r"is full: free some space") as raised:
            history.record(large)
        assert exit_for(raised.value) is Exit.FAILURE
        assert history.summary(key("large")) is None
        assert history.audit(key()) is not None
        connection.execute("PRAGMA max_page_count = 100000")
        assert history.record(large).outcome is RecordOutcome.RECORDED


def test_a_writer_that_does_not_end_is_said(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while; readers do not wait for it at all."""
    monkeypatch.setattr(file, "WAIT_S", 0.05)
    with closing(sqlite3.connect(recorded, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with SqliteHistory(recorded) as history:
            assert history.summary(key()) is not None
            with pytest.raises(HistoryBusy, match="by another process") as raised:
                history.record(entry("another"))
    assert exit_for(raised.value) is Exit.UNAVAILABLE


def test_a_drive_without_shared_memory_gets_another_journal(path: Path) -> None:
    """Such as a network drive: WAL mode is not possible there, and nothing else changes."""
    Path(f"{path}-shm").mkdir()
    with SqliteHistory(path) as history:
        assert history.record(entry()).outcome is RecordOutcome.RECORDED
    with SqliteHistory(path) as history:
        assert history.record(entry("another")).outcome is RecordOutcome.RECORDED
        assert len(list(history.runs(TODAY))) == 2
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_history_in_memory_is_lost_when_it_is_closed() -> None:
    """Each is another one; nothing is written anywhere."""
    with SqliteHistory() as first, SqliteHistory() as second:
        first.record(entry())
        assert first.summary(key()) is not None
        assert second.summary(key()) is None
