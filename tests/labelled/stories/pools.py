"""Families whose jobs keep warm pools; the pool of the last run is judged.

The machine: a run that is requested while the pool of the one before stands takes it over and
begins in seconds; any other run waits for new instances and pulls its image, which is billed. It
knows no threshold of this project.
"""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from sageaudit.structs import replace
from tests.labelled.machine import BEGIN, Json, Plot, alike, training
from tests.labelled.story import BUSY_A10G, FAMILY, Story

COLD_STARTING_S, COLD_DOWNLOADING_S = 150, 240
WARM_STARTING_S, WARM_DOWNLOADING_S = 12, 20


class Loop(Struct, frozen=True):
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


def looped(
    name: str,
    loop: Loop,
    *wasteful: str,
    either: tuple[str, ...] = (),
    fine: tuple[str, ...] = (),
) -> Story:
    """The story of a loop's runs."""

    def tell(seed: int) -> list[Json]:
        return recordings(name, loop, seed)

    return Story(name, tell, frozenset(wasteful), frozenset(either), frozenset(fine), kind=FAMILY)


def recordings(name: str, loop: Loop, seed: int) -> list[Json]:
    """One recording for each run, in order; all pools are final."""
    begin, warm, made = BEGIN, False, []
    pool = loop.keep_alive_s > 0
    for number, gap_s in enumerate(loop.gaps_s):
        starting = WARM_STARTING_S if warm else COLD_STARTING_S
        downloading = WARM_DOWNLOADING_S if warm else COLD_DOWNLOADING_S
        reused = gap_s is not None and gap_s < loop.keep_alive_s
        status = {
            "Status": "Reused" if reused else "Terminated",
            "ResourceRetainedBillableTimeInSeconds": loop.retained_s(gap_s, loop.keep_alive_s),
        }
        plot = Plot(
            loop.instance,
            alike(1, replace(BUSY_A10G, minutes=loop.work_min, cores=6.0)),
            name=name,
            begin=begin,
            starting_s=starting,
            downloading_s=downloading,
            resources={"KeepAlivePeriodInSeconds": loop.keep_alive_s} if pool else {},
            describe={"WarmPoolStatus": status} if pool else {},
        )
        made.append(training(plot, 100 * seed + number))
        begin += timedelta(seconds=starting + plot.span_s + (gap_s or 0))
        warm = reused
    return made


MINUTES = (240, 200, 290, 220, 260, 230)
"""Somebody edits, and runs again."""
DEARER = "cost-regression"
"""With its pool the last run did cost many times what the runs before it cost."""

STORIES = (
    looped("an-hour-of-pool-before-each-short-test", Loop(3600, (3100, 3300, 2900, 3200, 3000)),
        "warm-pool-idle"),
    looped("twenty-five-minutes-of-pool-for-each-minute-of-work",
        Loop(3600, (1500, 1450, 1550, 1500, 1480), work_min=1), "warm-pool-idle"),
    looped("an-edit-loop-that-comes-back-within-minutes", Loop(600, MINUTES)),
    looped("an-edit-loop-whose-last-pool-stood-an-hour", Loop(3600, (*MINUTES, None)),
        "warm-pool-idle", either=(DEARER,)),
    looped("an-edit-loop-that-ends-as-it-must", Loop(300, (*MINUTES, None))),
    looped("a-lunch-break-on-the-pool", Loop(5400, (*MINUTES, 4500)), "warm-pool-idle",
        either=(DEARER,)),
    looped("a-script-that-starts-the-next-run-at-once", Loop(0, (20, 25, 15, 30, 20, None), 20),
        "warm-pool-candidate"),
    looped("an-edit-loop-that-waits-for-new-machines-each-time", Loop(0, (*MINUTES, None)),
        "warm-pool-candidate", either=("image-pull-heavy",)),
    looped("the-same-loop-once-an-hour", Loop(0, (3100, 3300, 2900, 3200, 3000, None)),
        either=("image-pull-heavy",), fine=("warm-pool-candidate",)),
    looped("long-runs-that-begin-at-once", Loop(0, (20, 25, 15, 30, 20, None), 600),
        fine=("warm-pool-candidate",)),
)  # fmt: skip
