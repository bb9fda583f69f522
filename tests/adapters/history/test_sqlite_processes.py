"""An embedded history between processes: two that write, one that is killed, one without rights."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.domain.audit.record import RecordOutcome, RunQuery
from sageaudit.domain.audit.sums import Scope, sum_rows
from sageaudit.errors import HistoryFileError
from sageaudit.exits import Exit, exit_for
from sageaudit.structs import replace
from tests.fakes.entries import DETAIL, NOON, entry, key, with_detail

SPAWNED = multiprocessing.get_context("spawn")
JOBS = 60
NOBODY = 65_534
DAY = NOON.date()


def in_processes(target: Callable[..., None], *arguments: tuple[Any, ...]) -> list[Any]:
    """What a function puts into its queue, called in a process for each of these arguments."""
    queue = SPAWNED.Queue()
    started = [SPAWNED.Process(target=target, args=(queue, *given)) for given in arguments]
    for process in started:
        process.start()
    answers = [queue.get(timeout=300) for _ in started]
    for process in started:
        process.join(timeout=300)
    return answers


def write(queue: Any, path: Path, ready: Barrier, writer: int) -> None:
    """Records jobs of its own, and each time another version of a job that all processes record."""
    recorded = 0
    ready.wait(timeout=300)
    with SqliteHistory(path) as history:
        for number in range(JOBS):
            history.record(with_detail(entry(f"{writer}-{number}")))
            usd = Decimal(number * 2 + writer)
            shared = entry("shared", force_new_version=True, avoidable_usd=usd)
            recorded += history.record(shared).outcome is RecordOutcome.RECORDED
    queue.put(recorded)


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    """They also make the file at once: no job is lost, versions and sums are right."""
    path, ready = tmp_path / "history.db", SPAWNED.Barrier(2)
    versions = sum(in_processes(write, (path, ready, 0), (path, ready, 1)))
    with SqliteHistory(path, create=False) as history:
        heads = {head.job: head for head in history.runs(RunQuery.for_day(DAY))}
        assert len(heads) == 2 * JOBS + 1
        assert heads["shared"].version == versions
        stored = [history.audit(key("shared"), version) for version in range(1, versions + 1)]
        assert [document and document["audit"]["version"] for document in stored] == [
            *range(1, versions + 1)
        ]
        sums = sum_rows(history.daily_sums(Scope.ACCOUNT, DAY, DAY))
        assert sums.jobs == 2 * JOBS + 1
        assert sums.avoidable_usd == sum(head.avoidable_usd or 0 for head in heads.values())


def write_until_killed(queue: Any, path: Path) -> None:
    """Records jobs without an end, and is killed in the middle of one of its writes."""
    with SqliteHistory(path) as history:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        number = 0
        while True:
            history.record(with_detail(entry(f"job-{number}")))
            queue.put(number)
            number += 1


def test_a_process_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    """What it had recorded is there, all of each job, and the next one writes on."""
    path, queue = tmp_path / "history.db", SPAWNED.SimpleQueue()
    killed = SPAWNED.Process(target=write_until_killed, args=(queue, path))
    killed.start()
    killed.join(timeout=300)
    assert killed.exitcode == -signal.SIGKILL
    reported_count = 0
    while not queue.empty():
        reported_count = queue.get() + 1
    assert reported_count
    with SqliteHistory(path, create=False) as history:
        heads = list(history.runs(RunQuery.for_day(DAY)))
        assert len(heads) in {reported_count, reported_count + 1}
        assert all(history.audit(head.key) and history.detail(head.key) for head in heads)
        assert sum_rows(history.daily_sums(Scope.ACCOUNT, DAY, DAY)).jobs == len(heads)
        assert history.record(entry("next")).outcome is RecordOutcome.RECORDED


def read_without_rights(queue: Any, path: Path, mode: int, folder_mode: int) -> None:
    """Reads a history and writes it, as a user to whom these modes apply.

    It is read once before, so that nothing is imported without rights: the checkout may stand where
    this user may not enter.
    """
    with SqliteHistory(path, create=False) as history:
        list(history.runs(RunQuery.for_day(DAY)))
    path.chmod(mode)
    path.parent.chmod(folder_mode)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
        os.chown(path.parent, NOBODY, NOBODY)
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    answers: list[Any] = []
    for create in (False, True):
        try:
            with SqliteHistory(path, create=create) as history:
                answers.append(len(list(history.runs(RunQuery.for_day(DAY)))))
                history.record(entry("another"))
        except HistoryFileError as error:
            answers.append((int(exit_for(error)), str(error)))
    queue.put(answers)


@pytest.fixture
def recorded() -> Iterator[Path]:
    """A closed history in a folder that every user may enter, as a private TMPDIR is not."""
    with TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder) / "folder" / "history.db"
        path.parent.mkdir()
        path.parent.parent.chmod(0o755)
        with SqliteHistory(path) as history:
            history.record(entry())
        yield path
        path.parent.chmod(0o700)


@pytest.mark.parametrize("folder_mode", [0o700, 0o500])
def test_a_read_only_file_is_read(recorded: Path, folder_mode: int) -> None:
    """Also in a folder where nothing can be made; only writing is refused."""
    [answers] = in_processes(read_without_rights, (recorded, 0o400, folder_mode))
    assert [answers[0], answers[2]] == [1, 1]
    for code, sentence in (answers[1], answers[3]):
        assert code == Exit.DENIED
        assert "cannot be written: give yourself write permission" in sentence


def test_a_file_that_may_not_be_read_is_said(recorded: Path) -> None:
    """Denied, as a permission in AWS would be."""
    [answers] = in_processes(read_without_rights, (recorded, 0o000, 0o700))
    assert [code for code, _ in answers] == [Exit.DENIED, Exit.DENIED]
    [answers] = in_processes(read_without_rights, (recorded, 0o600, 0o000))
    assert [code for code, _ in answers] == [Exit.DENIED, Exit.DENIED]


def test_threads_share_a_history(tmp_path: Path) -> None:
    """They write and read lists at once: every job is there, and no list has one twice."""
    with SqliteHistory(tmp_path / "history.db") as history, ThreadPoolExecutor(8) as pool:

        def work(number: int) -> int:
            history.record(replace(entry(f"job-{number}"), detail=DETAIL))
            names = [head.job for head in history.runs(RunQuery.for_day(DAY))]
            assert f"job-{number}" in names
            return len(names) - len(set(names))

        assert sum(pool.map(work, range(200))) == 0
        assert len(list(history.runs(RunQuery.for_day(DAY)))) == 200


def test_a_list_goes_on_while_the_history_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pages: what was there is listed once each, and what is new does not disturb."""
    monkeypatch.setattr("sageaudit.adapters.history.sqlite.history._PAGE_ROWS", 3)
    with SqliteHistory(tmp_path / "history.db") as history:
        for number in range(10):
            history.record(entry(f"job-{number}"))
        listed = []
        for head in history.runs(RunQuery.for_day(DAY)):
            listed.append(head.job)
            history.record(entry(f"{head.job}-again"))
            history.record(entry(head.job, modified_s=60, job={"status": "Stopped"}))
        own = [name for name in listed if not name.endswith("again")]
        assert sorted(own) == [f"job-{number}" for number in range(10)]
