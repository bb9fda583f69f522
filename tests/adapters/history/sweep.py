"""A sweep that ends many jobs of one family: how often their transactions conflict.

    python -m tests.adapters.history.sweep

A fake of DynamoDB's rule: of two transactions that touch one item at a time, the one that reaches
it later is cancelled, and its other items are free again only when it has ended. The shards and the
waits are the adapter's own.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.history import WAITS_S
from sageaudit.domain.audit.record import JobKey
from sageaudit.domain.audit.sums import Scope
from tests.adapters.history.entries import NOON

FASTEST_S, SLOWEST_S = 0.015, 0.060
"""How long a transaction of some ten items holds them; our choice, on the slow side."""


@dataclass
class Swept:
    """What became of the recordings. `tries`: how many needed 1, 2, ... of them."""

    conflicts: int = 0
    failed: int = 0
    tries: Counter[int] = field(default_factory=Counter)
    shards: set[int] = field(default_factory=set)


def sweep(jobs: int, *, within_s: float, workers: int, seed: int = 1) -> Swept:
    """Records `jobs` of one family, owner, type and day; `workers` at a time at most."""
    chance, number, swept = random.Random(seed), count(), Swept()
    held: dict[tuple[Scope, int], float] = {}
    free = [0.0] * workers
    arrivals = sorted(chance.uniform(0, within_s) for _ in range(jobs))
    waiting: list[tuple[float, int, JobKey, int]] = []
    for place, at in enumerate(arrivals):
        begun = max(at, heapq.heappop(free))
        # A worker reads, judges and writes: it is busy for a second or more with each job.
        heapq.heappush(free, begun + chance.uniform(0.5, 2.0))
        heapq.heappush(waiting, (begun, next(number), _key(place), 0))
    while waiting:
        now, _, key, tries = heapq.heappop(waiting)
        touched = [(scope, keys.sums_shard(key, scope, tries)) for scope in Scope]
        ends = now + chance.uniform(FASTEST_S, SLOWEST_S)
        conflict = any(held.get(item, 0.0) > now for item in touched)
        for item in touched:
            held[item] = max(held.get(item, 0.0), ends)
        if not conflict:
            swept.tries[tries + 1] += 1
            swept.shards.add(touched[1][1])
        elif tries == len(WAITS_S):
            swept.failed += 1
        else:
            swept.conflicts += 1
            heapq.heappush(waiting, (ends + WAITS_S[tries], next(number), key, tries + 1))
    return swept


def _key(number: int) -> JobKey:
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-job/sweep-{number:04d}"
    return JobKey(arn, NOON)


def _lines() -> Iterator[str]:
    for workers, within_s in ((5, 60.0), (20, 60.0), (50, 60.0), (1_000, 60.0), (1_000, 10.0)):
        of = sweep(1_000, within_s=within_s, workers=workers)
        tries = ", ".join(f"{times} in {number}" for number, times in sorted(of.tries.items()))
        yield (
            f"{workers} workers, 1,000 jobs in {within_s:.0f} s: {of.conflicts} conflicts, "
            f"{of.failed} failed; tries: {tries}; shards {len(of.shards)}"
        )


if __name__ == "__main__":
    sys.stdout.write("\n".join(_lines()) + "\n")
