"""Families whose jobs keep warm pools; the pool of the last run is judged.

A run that is requested while the previous run's pool is alive reuses it and starts in seconds. Any
other run waits for new instances and pulls its image, which is billed. Nothing here knows a
threshold of this project.
"""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from sageaudit.structs import replace
from tests.labelled.machine import Json, one_host
from tests.labelled.made_up_job import BEGIN, Plot, training
from tests.labelled.story import BUSY_A10G, FAMILY, Story

COLD_STARTING_S, COLD_DOWNLOADING_S = 150, 240
WARM_STARTING_S, WARM_DOWNLOADING_S = 12, 20


class Loop(Struct, frozen=True):
    """Runs of `work_min` minutes. `gaps_s`: from the end of each run to the next request.

    The last gap belongs to the run that is judged; None: no further run came.
    """

    keep_alive_s: int
    gaps_s: Sequence[int | None]
    work_min: int = 4
    instance: str = "ml.g5.2xlarge"

    def retained_s(self, gap_s: int | None, keep_s: int) -> int:
        """Returns how long the pool of one run lives."""
        return keep_s if gap_s is None else min(gap_s, keep_s)

    def billed_s(self, keep_s: int) -> int:
        """Returns the billed seconds of all pools and the next runs' downloads."""
        pools = sum(self.retained_s(gap, keep_s) for gap in self.gaps_s)
        warm = [gap is not None and gap < keep_s for gap in self.gaps_s]
        return pools + sum(
            WARM_DOWNLOADING_S if is_warm else COLD_DOWNLOADING_S for is_warm in warm
        )


def edit_loop(
    name: str,
    loop: Loop,
    *,
    must_find: tuple[str, ...] = (),
    may_find: tuple[str, ...] = (),
    must_not_find: tuple[str, ...] = (),
) -> Story:
    """Returns the story of a loop's runs."""

    def recordings_of(seed: int) -> list[Json]:
        return recordings(name, loop, seed)

    return Story(
        name,
        recordings_of,
        frozenset(must_find),
        frozenset(may_find),
        frozenset(must_not_find),
        kind=FAMILY,
    )


def recordings(name: str, loop: Loop, seed: int) -> list[Json]:
    """Returns one recording per run, in order; all pools have ended."""
    begin, warm = BEGIN, False
    has_pool = loop.keep_alive_s > 0
    recorded = []
    for number, gap_s in enumerate(loop.gaps_s):
        starting = WARM_STARTING_S if warm else COLD_STARTING_S
        downloading = WARM_DOWNLOADING_S if warm else COLD_DOWNLOADING_S
        reused = gap_s is not None and gap_s < loop.keep_alive_s
        status = {
            "Status": "Reused" if reused else "Terminated",
            "ResourceRetainedBillableTimeInSeconds": loop.retained_s(gap_s, loop.keep_alive_s),
        }
        plot = Plot(
            instance=loop.instance,
            hosts=one_host(replace(BUSY_A10G, minutes=loop.work_min, cores=6.0)),
            name=name,
            begin=begin,
            starting_s=starting,
            downloading_s=downloading,
            resources={"KeepAlivePeriodInSeconds": loop.keep_alive_s} if has_pool else {},
            describe={"WarmPoolStatus": status} if has_pool else {},
        )
        recorded.append(training(plot, 100 * seed + number))
        begin += timedelta(seconds=starting + plot.span_s + (gap_s or 0))
        warm = reused
    return recorded


EDIT_GAPS_S = (240, 200, 290, 220, 260, 230)
"""A person edits for some minutes and runs again."""
SCRIPT_GAPS_S = (20, 25, 15, 30, 20)
"""A script starts the next run at once."""
HOURLY_GAPS_S = (3100, 3300, 2900, 3200, 3000)
COST_REGRESSION = "cost-regression"
"""The last run with its pool cost many times what earlier runs cost."""

STORIES = (
    edit_loop(
        "an-hour-of-pool-before-each-short-test",
        Loop(keep_alive_s=3600, gaps_s=HOURLY_GAPS_S),
        must_find=("warm-pool-idle",),
    ),
    edit_loop(
        "twenty-five-minutes-of-pool-for-each-minute-of-work",
        Loop(keep_alive_s=3600, gaps_s=(1500, 1450, 1550, 1500, 1480), work_min=1),
        must_find=("warm-pool-idle",),
    ),
    edit_loop(
        "an-edit-loop-that-comes-back-within-minutes", Loop(keep_alive_s=600, gaps_s=EDIT_GAPS_S)
    ),
    edit_loop(
        "an-edit-loop-whose-last-pool-stood-an-hour",
        Loop(keep_alive_s=3600, gaps_s=(*EDIT_GAPS_S, None)),
        must_find=("warm-pool-idle",),
        may_find=(COST_REGRESSION,),
    ),
    edit_loop(
        "an-edit-loop-that-ends-as-it-must", Loop(keep_alive_s=300, gaps_s=(*EDIT_GAPS_S, None))
    ),
    edit_loop(
        "a-lunch-break-on-the-pool",
        Loop(keep_alive_s=5400, gaps_s=(*EDIT_GAPS_S, 4500)),
        must_find=("warm-pool-idle",),
        may_find=(COST_REGRESSION,),
    ),
    edit_loop(
        "a-script-that-starts-the-next-run-at-once",
        Loop(keep_alive_s=0, gaps_s=(*SCRIPT_GAPS_S, None), work_min=20),
        must_find=("warm-pool-candidate",),
    ),
    edit_loop(
        "an-edit-loop-that-waits-for-new-machines-each-time",
        Loop(keep_alive_s=0, gaps_s=(*EDIT_GAPS_S, None)),
        must_find=("warm-pool-candidate",),
        may_find=("image-pull-heavy",),
    ),
    edit_loop(
        "the-same-loop-once-an-hour",
        Loop(keep_alive_s=0, gaps_s=(*HOURLY_GAPS_S, None)),
        may_find=("image-pull-heavy",),
        must_not_find=("warm-pool-candidate",),
    ),
    edit_loop(
        "long-runs-that-begin-at-once",
        Loop(keep_alive_s=0, gaps_s=(*SCRIPT_GAPS_S, None), work_min=600),
        must_not_find=("warm-pool-candidate",),
    ),
)
