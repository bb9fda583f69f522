"""What the ledgers promise: one message for a family and day, one send for a notice."""

from __future__ import annotations

from datetime import date, timedelta

from sageaudit.domain.audit.record import Claim
from sageaudit.ports import LastNotice, SendLedger, TellLedger
from tests.contract.entries import NOON

DAY = date(2026, 11, 20)
NOTICE = "JOB#arn#1|1|slack"
LATER = NOON + timedelta(seconds=61)
MUCH_LATER = LATER + timedelta(seconds=61)


def test_a_family_speaks_once_a_day(told: TellLedger) -> None:
    """The first audit has the day; asked again it still has; the next day is new."""
    assert told.claim_family_day("resnet", DAY, "a|1")
    assert not told.claim_family_day("resnet", DAY, "b|1")
    assert told.claim_family_day("resnet", DAY, "a|1")
    assert told.claim_family_day("bert", DAY, "b|1")
    assert told.claim_family_day("resnet", DAY + timedelta(days=1), "b|1")


def test_any_text_can_be_a_family(told: TellLedger) -> None:
    """Long and hostile names are kept apart."""
    assert told.claim_family_day("😀" * 1_000 + "a", DAY, "a|1")
    assert told.claim_family_day("😀" * 1_000 + "b", DAY, "b|1")
    assert told.claim_family_day("", DAY, "c|1")


def test_what_was_told_of_a_job_is_known(told: TellLedger) -> None:
    """The newest version that was sent, job by job."""
    assert told.last_notice("job") is None
    told.remember_notice("job", LastNotice(1, "high $2.04"))
    told.remember_notice("job", LastNotice(1, "high $2.04"))
    assert told.last_notice("job") == LastNotice(1, "high $2.04")
    told.remember_notice("job", LastNotice(3, "low $0.10"))
    told.remember_notice("job", LastNotice(2, "high $2.04"))
    assert told.last_notice("job") == LastNotice(3, "low $0.10")
    assert told.last_notice("another") is None


def test_any_text_can_be_a_job(told: TellLedger) -> None:
    """A name of any length, and news in any signs."""
    told.remember_notice("😀" * 1_000 + "a", LastNotice(1, "…"))
    assert told.last_notice("😀" * 1_000 + "a") == LastNotice(1, "…")
    assert told.last_notice("😀" * 1_000 + "b") is None


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


def test_what_failed_for_good_is_done(sends: SendLedger) -> None:
    """A permanent failure is not tried again."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.mark_failed(NOTICE, NOON, "channel_is_archived \ud800" * 100)
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_a_try_that_died_is_repeated_once(sends: SendLedger) -> None:
    """Nobody knows whether it was posted: one marked repeat, then never again."""
    sends.claim_send(NOTICE, NOON, 60)
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.REPEAT
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.BUSY
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_a_repeat_that_was_sent_is_done(sends: SendLedger) -> None:
    """A late failure of the first try does not undo it."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.claim_send(NOTICE, LATER, 60)
    sends.mark_sent(NOTICE, LATER)
    sends.mark_failed(NOTICE, LATER, "late")
    sends.release(NOTICE)
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_a_released_claim_is_first_again(sends: SendLedger) -> None:
    """The channel refused before anything was posted: the next try is no repeat."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.release(NOTICE)
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.FIRST
    assert sends.claim_send(NOTICE, NOON, 60) is Claim.BUSY


def test_a_released_repeat_stays_a_repeat(sends: SendLedger) -> None:
    """The first try may have been posted, whatever the channel said to the second."""
    sends.claim_send(NOTICE, NOON, 60)
    sends.claim_send(NOTICE, LATER, 60)
    sends.release(NOTICE)
    assert sends.claim_send(NOTICE, LATER, 60) is Claim.REPEAT


def test_releasing_what_is_not_held_does_nothing(sends: SendLedger) -> None:
    """A notice that nobody claimed, that was sent or was released already."""
    sends.release(NOTICE)
    sends.claim_send(NOTICE, NOON, 60)
    sends.release(NOTICE)
    sends.release(NOTICE)
    sends.claim_send(NOTICE, NOON, 60)
    sends.mark_sent(NOTICE, NOON)
    sends.release(NOTICE)
    assert sends.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_marking_without_a_claim_holds(sends: SendLedger) -> None:
    """A notice that is known to be sent, or to have failed, is never claimed."""
    sends.mark_sent("sent", NOON)
    sends.mark_failed("failed", NOON, "no_service")
    assert sends.claim_send("sent", NOON, 60) is Claim.DONE
    assert sends.claim_send("failed", NOON, 60) is Claim.DONE
