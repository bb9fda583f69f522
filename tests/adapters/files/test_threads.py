"""Threads make calls at the same time, and do not outlive their owner."""

import threading
import time
from concurrent.futures import CancelledError
from typing import NoReturn

import pytest

from sageaudit.adapters.threads import DaemonThreads


def test_calls_are_made_at_the_same_time() -> None:
    """Two that wait for each other both end."""
    barrier = threading.Barrier(2, timeout=60)
    with DaemonThreads(2) as threads:
        calls = [threads.submit(barrier.wait) for _ in range(2)]
        assert sorted(call.result() for call in calls) == [0, 1]


def test_no_more_threads_than_allowed() -> None:
    """The third call waits."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def call() -> None:
        begun.release()
        go.wait(10)

    with DaemonThreads(2) as threads:
        calls = [threads.submit(call) for _ in range(3)]
        assert begun.acquire(timeout=60)
        assert begun.acquire(timeout=60)
        assert not begun.acquire(timeout=0.1)
        go.set()
        for future in calls:
            future.result()


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    """Also one that is no Exception."""

    def fail() -> NoReturn:
        raise KeyboardInterrupt

    with DaemonThreads(1) as threads, pytest.raises(KeyboardInterrupt):
        threads.submit(fail).result()


def test_the_first_done_is_returned_and_none_after_a_while() -> None:
    """So that the caller can look whether it shall stop."""
    go = threading.Event()
    with DaemonThreads(2) as threads:
        slow = threads.submit(lambda: go.wait(10))
        assert threads.wait_for_any([slow]) == set()
        fast = threads.submit(lambda: True)
        fast.result()
        assert threads.wait_for_any([slow, fast]) == {fast}
        go.set()


def test_the_end_waits_for_no_call() -> None:
    """Those that were not begun are cancelled; the threads are daemons."""
    go = threading.Event()
    begun_s = time.monotonic()
    with DaemonThreads(1) as threads:
        threads.submit(lambda: go.wait(10))
        second = threads.submit(lambda: True)
    assert time.monotonic() - begun_s < 5
    go.set()
    with pytest.raises(CancelledError):
        second.result(timeout=60)
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "sageaudit")
