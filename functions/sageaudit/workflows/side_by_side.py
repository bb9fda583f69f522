"""Runs the calls of many lanes at the same time, and the calls of one lane one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sageaudit.ports import PendingCall, Workers

T = TypeVar("T")
MAX_RUNNING = 32
"""The maximum number of calls that run at the same time. They mostly wait for AWS."""
MAX_LANES = 128
"""The maximum number of lanes that have begun and not ended. Each has one or two clients, and
`AccountClients` keeps 256."""


def run_side_by_side(lanes: Iterable[Iterator[Callable[[], T]]], workers: Workers) -> Iterator[T]:
    """Yields the results of all calls, as they finish. Raises what a call raises.

    Round-robin: after each call, a lane waits until the other lanes that have begun have had a
    turn. So a slow lane delays itself, and takes up one of the workers.
    """
    not_begun, waiting = deque(lanes), deque[Iterator[Callable[[], T]]]()
    lane_by_call: dict[PendingCall[T], Iterator[Callable[[], T]]] = {}
    while not_begun or waiting or lane_by_call:
        while not_begun and len(waiting) + len(lane_by_call) < MAX_LANES:
            waiting.append(not_begun.popleft())
        while waiting and len(lane_by_call) < MAX_RUNNING:
            lane = waiting.popleft()
            if (call := next(lane, None)) is not None:
                lane_by_call[workers.submit(call)] = lane
        if lane_by_call:
            for pending in workers.wait_for_any(lane_by_call.keys()):
                waiting.append(lane_by_call.pop(pending))
                yield pending.result()
