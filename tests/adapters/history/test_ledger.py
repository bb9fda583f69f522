"""What the ledgers promise: a family's day is written by one at a time, a notice sent once."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.alert.family_day import DayClaim, FamilyDay
from sageaudit.domain.alert.news import IdleHours, News, Said
from sageaudit.domain.alert.rule import Tell, Why
from sageaudit.domain.alert.run_told import RunClaim, RunTold
from sageaudit.domain.audit.record import Claim
from sageaudit.domain.bill.finding import Severity
from sageaudit.ports import Circuit, SendLedger, TellLedger
from tests.adapters.history.entries import NOON

DAY = date(2026, 11, 20)
NOTICE = "JOB#arn#1|1|slack"
LATER = NOON + timedelta(seconds=61)
MUCH_LATER = LATER + timedelta(seconds=61)


NEWS = News(
    Severity.HIGH,
    Decimal("2.04"),
    None,
    Decimal("0.50"),
    IdleHours("gpu_hours", Decimal("40.25"), None),
)
UNKNOWN = News(Severity.LOW, None, None)
SAID = Said(1, NEWS, NOON)
FIRST = RunTold().told(SAID)
TELL = Tell(nth=2, why=Why.TEN_TIMES, after=Said(3, UNKNOWN, None))
CORRECTS = Tell(idle=True, corrects=SAID)


def claim(version: int = 1, news: News = NEWS, *, corrects: bool = False) -> DayClaim:
    """For a minute."""
    return DayClaim(version, news, LATER, corrects)


def test_a_familys_day_comes_back_as_it_was_written(told: TellLedger) -> None:
    """Claims and figures, the unknown ones too; other days and families are their own."""
    assert told.family_day("resnet", DAY) == FamilyDay()
    claimed = FamilyDay().claimed("a", claim(), NOON)
    assert told.write("resnet", DAY, claimed)
    assert told.family_day("resnet", DAY) == claimed
    both = claimed.told("a", SAID, NOON, corrects=False).claimed(
        "b", claim(2, UNKNOWN, corrects=True), NOON
    )
    both = replace(both, revision=claimed.revision + 1)
    assert told.write("resnet", DAY, both)
    assert told.family_day("resnet", DAY) == both
    assert told.family_day("bert", DAY) == FamilyDay()
    assert told.family_day("resnet", DAY + timedelta(days=1)) == FamilyDay()


def test_a_day_that_was_written_since_is_not_overwritten(told: TellLedger) -> None:
    """Of two that read the same day, the first one writes it; nothing of the second is kept."""
    first, second = (FamilyDay().claimed(run, claim(), NOON) for run in ("a", "b"))
    assert told.write("resnet", DAY, first)
    assert not told.write("resnet", DAY, second, ("b", FIRST))
    assert told.family_day("resnet", DAY) == first
    assert told.run_told("b") == RunTold()
    assert told.write("resnet", DAY, first.told("a", SAID, NOON, corrects=False), ("a", FIRST))
    assert not told.write("resnet", DAY, first.told("a", SAID, NOON, corrects=False))


def test_any_text_can_be_a_family_or_a_run(told: TellLedger) -> None:
    """Long and hostile names are kept apart."""
    for family in ("😀" * 1_000 + "a", "😀" * 1_000 + "b", ""):
        day = FamilyDay().claimed(family, claim(), NOON)
        assert told.write(family, DAY, day, (f"{family} run", FIRST))
        assert told.family_day(family, DAY) == day
    assert told.run_told("😀" * 1_000 + "a run") == FIRST
    assert told.run_told("😀" * 1_000 + "c run") == RunTold()


@pytest.mark.parametrize("tell", [Tell(), TELL, CORRECTS])
def test_what_is_told_of_a_run_comes_back_as_it_was_written(told: TellLedger, tell: Tell) -> None:
    """What its message says, so that it can be written again; and what was told before."""
    day = FamilyDay().claimed("a", claim(), NOON)
    claimed = RunTold().claimed(RunClaim(1, NEWS, tell, NOON, LATER))
    assert told.write("resnet", DAY, day, ("a", claimed))
    assert told.run_told("a") == claimed
    assert told.write_run("a", claimed.began())
    second = claimed.began().claimed(RunClaim(2, UNKNOWN, CORRECTS, LATER, MUCH_LATER))
    assert told.write_run("a", second)
    assert told.run_told("a") == second
    assert second.said == SAID
    done = second.told(Said(2, UNKNOWN, LATER))
    assert told.write_run("a", done)
    assert told.run_told("a") == done


def test_a_run_whose_claim_was_given_back_is_read(told: TellLedger) -> None:
    """Nothing was told of it, and its row stays."""
    claimed = RunTold().claimed(RunClaim(1, NEWS, TELL, NOON, LATER))
    assert told.write_run("a", claimed)
    assert told.write_run("a", claimed.released())
    assert told.run_told("a") == RunTold(2)


def test_a_run_that_was_written_since_is_not_overwritten(told: TellLedger) -> None:
    """Alone or with its family's day, which then stays as well."""
    day = FamilyDay().claimed("a", claim(), NOON)
    assert told.write("resnet", DAY, day, ("a", FIRST))
    assert not told.write_run("a", FIRST)
    later = day.told("a", SAID, NOON, corrects=False)
    assert not told.write("resnet", DAY, later, ("a", RunTold(5, SAID)))
    assert (told.run_told("a"), told.family_day("resnet", DAY)) == (FIRST, day)


def test_a_notice_is_claimed_first_once(sends: SendLedger) -> None:
    """While the lease lives, every other delivery comes back later."""
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.FIRST
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.BUSY
    assert sends.claim_send(NOTICE, NOON + timedelta(seconds=59), 60) is Claim.BUSY
    assert sends.claim_send("another", NOON, 60) is Claim.FIRST


def test_what_was_sent_is_done(sends: SendLedger) -> None:
    """Also long after its lease."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.mark_sent(NOTICE, NOON)
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.DONE
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_what_was_not_posted_is_first_again(sends: SendLedger) -> None:
    """Whether it waits, or was given up and is sent again by a person."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.mark_failed(NOTICE, NOON, "channel_is_archived \ud800" * 100)
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.FIRST
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.BUSY


def test_a_try_that_died_is_repeated_once(sends: SendLedger) -> None:
    """Nobody knows whether it was posted: one marked repeat, then a person has to look."""
    sends.claim_send(NOTICE, NOON, 60)
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.REPEAT
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.BUSY
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.SPENT
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.SPENT


def test_what_was_given_up_may_be_repeated_again(sends: SendLedger) -> None:
    """A person sends it again: as a repeat each time, since a try may have posted it."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.claim_send(NOTICE, LATER, 60)
    sends.mark_unknown(NOTICE, MUCH_LATER, "no answer")
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.REPEAT
    sends.mark_unknown(NOTICE, MUCH_LATER, "no answer")
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.REPEAT


def test_a_try_without_an_answer_is_repeated(sends: SendLedger) -> None:
    """At once, as far as the ledger goes: when is for the caller to say."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.mark_unknown(NOTICE, NOON, "no answer")
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.REPEAT


def test_a_repeat_that_was_sent_is_done(sends: SendLedger) -> None:
    """A late failure of the first try does not undo it."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.claim_send(NOTICE, LATER, 60)
    sends.mark_sent(NOTICE, LATER)
    sends.mark_failed(NOTICE, LATER, "late")
    sends.mark_unknown(NOTICE, LATER, "late")
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_the_first_try_cannot_make_a_repeat_first_again(sends: SendLedger) -> None:
    """It ran longer than its lease, by a clock that is ahead, and says late that it posted nothing.

    The repeat may have posted.
    """
    sends.claim_send(NOTICE, NOON, 60)
    sends.claim_send(NOTICE, LATER, 60)
    sends.mark_failed(NOTICE, LATER, "late")
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.BUSY
    sends.mark_unknown(NOTICE, LATER, "no answer")
    sends.mark_failed(NOTICE, LATER, "late")
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.REPEAT


def test_marking_without_a_claim_holds(sends: SendLedger) -> None:
    """A notice that is known to be sent is never claimed, one that may be is a repeat."""
    sends.mark_sent("sent", NOON)
    sends.mark_failed("failed", NOON, "no_service")
    sends.mark_unknown("unknown", NOON, "no answer")
    assert sends.claim_send("sent", NOON, 60) is Claim.DONE
    assert sends.claim_send("failed", NOON, 60) is Claim.FIRST
    assert sends.claim_send("unknown", NOON, 60) is Claim.REPEAT


def test_how_a_channel_answers_is_known_to_all(sends: SendLedger) -> None:
    """Changed by whoever knew it last, one by one."""
    fresh, failing, closed = Circuit(), Circuit(1, 0), Circuit(3, 1_779_282_600)
    assert sends.circuit("slack") == fresh
    assert sends.change_circuit("slack", fresh, failing, NOON)
    assert not sends.change_circuit("slack", fresh, closed, NOON)
    assert sends.circuit("slack") == failing
    assert sends.change_circuit("slack", failing, closed, NOON)
    assert sends.change_circuit("slack", closed, fresh, NOON)
    assert sends.change_circuit("slack", fresh, failing, NOON)
    assert sends.circuit("sns") == fresh
