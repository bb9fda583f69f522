"""A minute that ends 1,000 jobs of one family: each recording gets through (docs/data-model.md).

A fake of DynamoDB's rule: of two transactions that touch one item at a time, the one that reaches
it later is cancelled, and its other items are free again only when it has ended. The shards and the
waits are the adapter's own.
"""

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import pytest

from sageaudit.adapters.history.dynamo import keys
from sageaudit.adapters.history.dynamo.run_writer import RETRY_DELAYS_S
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.audit.sums import Scope
from tests.fakes.entries import NOON

FASTEST_S, SLOWEST_S = 0.015, 0.060
"""How long a transaction of some ten items holds them; our choice, on the slow side."""


@dataclass
class Outcome:
    """What became of the recordings. `tries`: how many needed 1, 2, ... of them."""

    conflicts: int = 0
    failed: int = 0
    tries: Counter[int] = field(default_factory=Counter)
    shards: set[int] = field(default_factory=set)


def recorded(jobs: int, *, within_s: float, workers: int, seed: int = 1) -> Outcome:
    """Records `jobs` of one family, owner, type and day; `workers` at a time at most."""
    chance, number, outcome = random.Random(seed), count(), Outcome()
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
            outcome.tries[tries + 1] += 1
            outcome.shards.add(touched[1][1])
        elif tries == len(RETRY_DELAYS_S):
            outcome.failed += 1
        else:
            outcome.conflicts += 1
            heapq.heappush(waiting, (ends + RETRY_DELAYS_S[tries], next(number), key, tries + 1))
    return outcome


def _key(number: int) -> JobKey:
    arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-job/sweep-{number:04d}"
    return JobKey(arn, NOON)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("workers", [5, 50, 1_000])
def test_a_sweep_within_a_minute_is_recorded_without_a_failure(workers: int, seed: int) -> None:
    """5 is the stack's own limit of audits at one time, 1,000 is none."""
    outcome = recorded(1_000, within_s=60, workers=workers, seed=seed)
    assert outcome.failed == 0
    assert outcome.tries.total() == 1_000
    assert outcome.conflicts < 700


def test_the_stacks_own_limit_keeps_conflicts_rare() -> None:
    """One recording in eight is tried a second time."""
    outcome = recorded(1_000, within_s=60, workers=5)
    assert outcome.conflicts < 150
    assert max(outcome.tries) <= 3
