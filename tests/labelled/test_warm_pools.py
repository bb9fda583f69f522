"""A pool's dollars are those that a machine which knows the gaps would have saved."""

from decimal import Decimal

import pytest

from sageaudit.domain.audit.finding_document import FindingDocument
from tests.labelled.audits import audited_in_turn
from tests.labelled.stories.pools import Loop, recordings

USD_PER_S = Decimal("1.515") / 3600
"""ml.g5.2xlarge in us-east-1, May 2026; its disk is local."""
HABIT = (240, 200, 290, 220, 260, 230)
LOOPS = {
    "comes back after an hour": Loop(3600, (3100, 3300, 2900, 3200, 3000)),
    "the last pool runs out": Loop(3600, (*HABIT, None)),
    "a lunch break": Loop(5400, (*HABIT, 4500)),
    "one run, nobody came": Loop(3600, (None,)),
    "one run, an hour later": Loop(3600, (3420,)),
}


def pool_finding(loop: Loop) -> FindingDocument | None:
    """What the audit of the last run says of its pool."""
    findings = audited_in_turn(recordings("dev-loop", loop, 1))[-1]["findings"]
    return next((one for one in findings if one["rule"] == "warm-pool-idle"), None)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_no_more_is_counted_than_a_shorter_keep_alive_saves(loop: Loop) -> None:
    """Of the last pool: by every keep-alive tried, the best saves at least what is counted."""
    finding = pool_finding(loop)
    assert finding is not None
    last = Loop(loop.keep_alive_s, loop.gaps_s[-1:], loop.work_min)
    best_s = min(last.billed_s(60 * minutes) for minutes in range(91))
    saved_usd = (last.billed_s(loop.keep_alive_s) - best_s) * USD_PER_S
    counted_usd = finding["saving_usd"]
    assert counted_usd is not None
    assert Decimal("0.7") * saved_usd <= counted_usd <= saved_usd


@pytest.mark.parametrize(
    "loop",
    [Loop(3600, (3100, 3300, 2900, 3200, 3000)), Loop(3600, (*HABIT, None))],
    ids=["comes back after an hour", "the last pool runs out"],
)
def test_the_advised_keep_alive_costs_the_family_less(loop: Loop) -> None:
    """The family billed again under the keep-alive that the fix names, downloads with it."""
    finding = pool_finding(loop)
    assert finding is not None
    [fix] = finding["fix"]
    assert loop.billed_s(fix["new"] or 0) < loop.billed_s(loop.keep_alive_s) / 2


@pytest.mark.parametrize(
    "loop",
    [Loop(600, HABIT), Loop(300, (*HABIT, None)), Loop(1800, (140,)), Loop(3600, (900,))],
    ids=["an edit loop", "its end", "soon", "a quarter of an hour"],
)
def test_a_pool_that_is_worth_its_wait_is_left_alone(loop: Loop) -> None:
    """It was taken over before it cost several starts, or ended as it must."""
    assert pool_finding(loop) is None
