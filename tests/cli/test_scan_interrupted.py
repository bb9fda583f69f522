"""After Ctrl-C at any time of a scan, finished audits are ranked, and the next scan continues."""

import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sageaudit.cli import main
from tests.fakes.command_line import Result, Run
from tests.fakes.live_account import LiveAccount, live_account
from tests.fakes.moto_jobs import add_training_job

JOBS = 3
MOMENTS = 40
SEED = 21


@pytest.fixture(scope="module")
def busy_account() -> Iterator[LiveAccount]:
    """Yields three jobs of one family, which no test changes."""
    with pytest.MonkeyPatch.context() as patch, live_account(patch, "eu-west-1") as live:
        for number in range(JOBS):
            add_training_job(live.session, f"bert-{number}", days_ago=JOBS - number, minutes=5)
        yield live


@pytest.fixture
def ctrl_c_at(busy_account: LiveAccount) -> Iterator[list[Callable[[str], bool]]]:
    """Sends Ctrl-C when a function of the request's name returns true."""
    at: list[Callable[[str], bool]] = []

    def press(event_name: str, **_: Any) -> None:
        if at and at[0](event_name):
            at.clear()
            signal.raise_signal(signal.SIGINT)

    busy_account.session.events.register_first("before-send", press)
    yield at
    busy_account.session.events.unregister("before-send", press)


def ranked_jobs(done: Result) -> int:
    """Returns the jobs of the ranking: those that were audited, without the rest."""
    assert (done.exit_code, "bug" in done.stderr) == (130, False), done.stderr
    if not done.stdout:
        assert "interrupted" in done.stderr
        return 0
    result = json.loads(done.stdout, parse_float=Decimal)
    jobs = result["scan"]["jobs"]
    assert result["ranking"]["total"]["jobs"] == jobs["audited"]
    assert jobs["audited"] + jobs["left"] == JOBS
    return int(jobs["audited"])


def test_ctrl_c_inside_the_price_list_ranks_finished_audits(
    run: Run, tmp_path: Path, ctrl_c_at: list[Callable[[str], bool]]
) -> None:
    """The audit in progress is left for the next scan."""
    ctrl_c_at.append(lambda name: "GetProducts" in name)
    done = run("scan", "--history", tmp_path / "history.db", "--output", "json")
    assert ranked_jobs(done) < JOBS
    assert "run the same command again" in done.stderr
    again = run("scan", "--history", tmp_path / "history.db", "--output", "json")
    assert again.document()["ranking"]["total"]["jobs"] == JOBS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_ranks_finished_audits(
    run: Run, tmp_path: Path, busy_account: LiveAccount
) -> None:
    """Forty seeded moments of a scan's time lie between any two steps of the program.

    Before the scan itself begins, Python may drop a signal that arrives in a callback of its own.
    """
    began = time.monotonic()
    assert run("scan", "--history", tmp_path / "whole.db").exit_code == 0
    took_s, moments = time.monotonic() - began, random.Random(SEED)
    stopped = 0
    for number in range(MOMENTS):
        words = ("scan", "--history", tmp_path / f"{number}.db", "--output", "json")
        with interrupted_after(moments.uniform(0.001, took_s)):
            done = run(*words)
        assert "bug" not in done.stderr, done.stderr
        stopped += done.exit_code == 130
        assert done.exit_code == 0 or ranked_jobs(done) <= JOBS
    assert stopped > MOMENTS / 4


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Sends Ctrl-C this many seconds after the program runs, but never after its end."""

    def press(_: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not main._run.__code__:
            frame = frame.f_back
        if frame is None:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
        else:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, press)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
