"""Families whose jobs keep warm pools; the pool of the last run is judged."""

from __future__ import annotations

from tests.labelled.warm_pools import Loop, loop_saga

MINUTES = (240, 200, 290, 220, 260, 230)
"""Somebody edits, and runs again."""
STILL_SLOW = ("slow-start", "short-experiment")
DEARER = "cost-regression"
"""With its pool the last run did cost many times what the runs before it cost."""

STORIES = (
    loop_saga(
        "an-hour-of-pool-before-each-short-test",
        Loop(3600, (3100, 3300, 2900, 3200, 3000)),
        "warm-pool-idle",
        either=STILL_SLOW,
    ),
    loop_saga(
        "twenty-five-minutes-of-pool-for-each-minute-of-work",
        Loop(3600, (1500, 1450, 1550, 1500, 1480), work_min=1),
        "warm-pool-idle",
        either=STILL_SLOW,
    ),
    loop_saga(
        "an-edit-loop-that-comes-back-within-minutes",
        Loop(600, MINUTES),
        either=STILL_SLOW,
    ),
    loop_saga(
        "an-edit-loop-whose-last-pool-stood-an-hour",
        Loop(3600, (*MINUTES, None)),
        "warm-pool-idle",
        either=(*STILL_SLOW, DEARER),
    ),
    loop_saga(
        "an-edit-loop-that-ends-as-it-must",
        Loop(300, (*MINUTES, None)),
        either=STILL_SLOW,
    ),
    loop_saga(
        "a-lunch-break-on-the-pool",
        Loop(5400, (*MINUTES, 4500)),
        "warm-pool-idle",
        either=(*STILL_SLOW, DEARER),
    ),
)
