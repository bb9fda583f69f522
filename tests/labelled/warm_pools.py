"""A family whose jobs keep warm pools: what each pool waited for, and what it was worth.

The machine: a run that is requested while the pool of the one before stands takes it over and
begins in seconds; any other run waits for new instances and pulls its image, which is billed. It
knows no threshold of this project.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from tests.labelled.machine import BEGIN, Plot, alike, training
from tests.labelled.sagas import Saga
from tests.labelled.story import BUSY_A10G

COLD_STARTING_S, COLD_DOWNLOADING_S = 150, 240
WARM_STARTING_S, WARM_DOWNLOADING_S = 12, 20


@dataclass(frozen=True)
class Loop:
    """Runs of `work_min` minutes; `gaps_s` from the end of each to the next request, in order.

    The last gap is that of the run which is judged; None: nobody came back.
    """

    keep_alive_s: int
    gaps_s: Sequence[int | None]
    work_min: int = 4
    instance: str = "ml.g5.2xlarge"

    def retained_s(self, gap_s: int | None, keep_s: int) -> int:
        """How long the pool of one run stands."""
        return keep_s if gap_s is None else min(gap_s, keep_s)

    def billed_s(self, keep_s: int) -> int:
        """What all pools and all downloads of the next runs are billed under a keep-alive."""
        pools = sum(self.retained_s(gap, keep_s) for gap in self.gaps_s)
        warm = [gap is not None and gap < keep_s for gap in self.gaps_s]
        return pools + sum(WARM_DOWNLOADING_S if one else COLD_DOWNLOADING_S for one in warm)


def loop_saga(name: str, loop: Loop, *wasteful: str, either: tuple[str, ...] = ()) -> Saga:
    """The saga of a loop's runs."""
    return Saga(
        name, lambda seed: recordings(name, loop, seed), frozenset(wasteful), frozenset(either)
    )


def recordings(name: str, loop: Loop, seed: int) -> list[dict[str, Any]]:
    """One recording for each run, in order; all pools are final."""
    begin, warm, made = BEGIN, False, []
    for number, gap_s in enumerate(loop.gaps_s):
        starting = WARM_STARTING_S if warm else COLD_STARTING_S
        downloading = WARM_DOWNLOADING_S if warm else COLD_DOWNLOADING_S
        plot = Plot(
            loop.instance,
            alike(1, replace(BUSY_A10G, minutes=loop.work_min, cores=6.0)),
            name=name,
            begin=begin,
            starting_s=starting,
            downloading_s=downloading,
        )
        one = training(plot, 100 * seed + number)
        reused = gap_s is not None and gap_s < loop.keep_alive_s
        one["describe"]["ResourceConfig"]["KeepAlivePeriodInSeconds"] = loop.keep_alive_s
        one["describe"]["WarmPoolStatus"] = {
            "Status": "Reused" if reused else "Terminated",
            "ResourceRetainedBillableTimeInSeconds": loop.retained_s(gap_s, loop.keep_alive_s),
        }
        made.append(one)
        ran_s = starting + one["describe"]["TrainingTimeInSeconds"]
        begin += timedelta(seconds=ran_s + (gap_s or 0))
        warm = reused
    return made
