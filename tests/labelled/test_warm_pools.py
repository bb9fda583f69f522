"""A pool's counted dollars are what a shorter keep-alive would have saved, given the real gaps."""

from decimal import Decimal

import pytest

from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.structs import replace
from tests.labelled.audits import audit_in_turn
from tests.labelled.stories.pools import EDIT_GAPS_S, HOURLY_GAPS_S, Loop, recordings

USD_PER_S = Decimal("1.515") / 3600
"""Price of ml.g5.2xlarge in us-east-1 in May 2026; its disk is local."""
COMES_BACK_AFTER_AN_HOUR = Loop(keep_alive_s=3600, gaps_s=HOURLY_GAPS_S)
LAST_POOL_RUNS_OUT = Loop(keep_alive_s=3600, gaps_s=(*EDIT_GAPS_S, None))


def pool_finding(loop: Loop) -> FindingDocument | None:
    """Returns the last run's finding about its pool."""
    findings = audit_in_turn(recordings("dev-loop", loop, 1))[-1]["findings"]
    return next((finding for finding in findings if finding["rule"] == "warm-pool-idle"), None)


@pytest.mark.parametrize(
    "loop",
    [
        COMES_BACK_AFTER_AN_HOUR,
        LAST_POOL_RUNS_OUT,
        Loop(keep_alive_s=5400, gaps_s=(*EDIT_GAPS_S, 4500)),
        Loop(keep_alive_s=3600, gaps_s=(None,)),
        Loop(keep_alive_s=3600, gaps_s=(3420,)),
    ],
    ids=[
        "the next run comes after most of an hour",
        "the last of many pools runs out",
        "a lunch break follows quick edits",
        "after one run nobody comes",
        "after one run the next comes an hour later",
    ],
)
def test_no_more_is_counted_than_a_shorter_keep_alive_saves(loop: Loop) -> None:
    """For the last pool, the best keep-alive saves at least the counted dollars."""
    finding = pool_finding(loop)
    assert finding is not None
    last = replace(loop, gaps_s=loop.gaps_s[-1:])
    best_s = min(last.billed_s(60 * minutes) for minutes in range(91))
    saved_usd = (last.billed_s(loop.keep_alive_s) - best_s) * USD_PER_S
    counted_usd = finding["saving_usd"]
    assert counted_usd is not None
    assert Decimal("0.7") * saved_usd <= counted_usd <= saved_usd


@pytest.mark.parametrize(
    "loop",
    [COMES_BACK_AFTER_AN_HOUR, LAST_POOL_RUNS_OUT],
    ids=["the next run comes after most of an hour", "the last of many pools runs out"],
)
def test_the_advised_keep_alive_costs_the_family_less(loop: Loop) -> None:
    """With the recommended keep-alive, the family costs less than half, downloads included."""
    finding = pool_finding(loop)
    assert finding is not None
    [fix] = finding["fix"]
    assert loop.billed_s(fix["new"] or 0) < loop.billed_s(loop.keep_alive_s) / 2


@pytest.mark.parametrize(
    "loop",
    [
        Loop(keep_alive_s=600, gaps_s=EDIT_GAPS_S),
        Loop(keep_alive_s=300, gaps_s=(*EDIT_GAPS_S, None)),
        Loop(keep_alive_s=1800, gaps_s=(140,)),
        Loop(keep_alive_s=3600, gaps_s=(900,)),
    ],
    ids=[
        "the next edit comes within minutes",
        "the last pool of quick edits ends after five minutes",
        "after one run the next comes within three minutes",
        "after one run the next comes after a quarter of an hour",
    ],
)
def test_a_pool_that_is_worth_its_wait_is_left_alone(loop: Loop) -> None:
    """A pool without a finding was reused before it cost several starts, or is short."""
    assert pool_finding(loop) is None
