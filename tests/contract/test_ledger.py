"""What Ledger promises: one message for a family and day, one send for a notice."""

from __future__ import annotations

from datetime import date, timedelta

from sageaudit.domain.audit.record import Claim
from sageaudit.ports import LastNotice, Ledger
from tests.contract.entries import NOON

DAY = date(2026, 11, 20)
NOTICE = "JOB#arn#1|1|slack"
LATER = NOON + timedelta(seconds=61)
MUCH_LATER = LATER + timedelta(seconds=61)


def test_a_family_speaks_once_a_day(ledger: Ledger) -> None:
    """The first audit has the day; asked again it still has; the next day is new."""
    assert ledger.claim_family_day("resnet", DAY, "a|1")
    assert not ledger.claim_family_day("resnet", DAY, "b|1")
    assert ledger.claim_family_day("resnet", DAY, "a|1")
    assert ledger.claim_family_day("bert", DAY, "b|1")
    assert ledger.claim_family_day("resnet", DAY + timedelta(days=1), "b|1")


def test_any_text_can_be_a_family(ledger: Ledger) -> None:
    """Long and hostile names are kept apart."""
    assert ledger.claim_family_day("😀" * 1_000 + "a", DAY, "a|1")
    assert ledger.claim_family_day("😀" * 1_000 + "b", DAY, "b|1")
    assert ledger.claim_family_day("", DAY, "c|1")


def test_what_was_told_of_a_job_is_known(ledger: Ledger) -> None:
    """The newest version that was sent, job by job."""
    assert ledger.last_notice("job") is None
    ledger.remember_notice("job", LastNotice(1, "high $2.04"))
    ledger.remember_notice("job", LastNotice(1, "high $2.04"))
    assert ledger.last_notice("job") == LastNotice(1, "high $2.04")
    ledger.remember_notice("job", LastNotice(3, "low $0.10"))
    ledger.remember_notice("job", LastNotice(2, "high $2.04"))
    assert ledger.last_notice("job") == LastNotice(3, "low $0.10")
    assert ledger.last_notice("another") is None


def test_any_text_can_be_a_job(ledger: Ledger) -> None:
    """A name of any length, and news in any signs."""
    ledger.remember_notice("😀" * 1_000 + "a", LastNotice(1, "…"))
    assert ledger.last_notice("😀" * 1_000 + "a") == LastNotice(1, "…")
    assert ledger.last_notice("😀" * 1_000 + "b") is None


def test_a_notice_is_claimed_first_once(ledger: Ledger) -> None:
    """While the lease lives, every other delivery comes back later."""
    assert ledger.claim_send(NOTICE, NOON, 60) is Claim.FIRST
    assert ledger.claim_send(NOTICE, NOON, 60) is Claim.BUSY
    assert ledger.claim_send(NOTICE, NOON + timedelta(seconds=59), 60) is Claim.BUSY
    assert ledger.claim_send("another", NOON, 60) is Claim.FIRST


def test_what_was_sent_is_done(ledger: Ledger) -> None:
    """Also long after its lease."""
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.mark_sent(NOTICE, NOON)
    assert ledger.claim_send(NOTICE, NOON, 60) is Claim.DONE
    assert ledger.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_what_failed_for_good_is_done(ledger: Ledger) -> None:
    """A permanent failure is not tried again."""
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.mark_failed(NOTICE, NOON, "channel_is_archived \ud800" * 100)
    assert ledger.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_a_try_that_died_is_repeated_once(ledger: Ledger) -> None:
    """Nobody knows whether it was posted: one marked repeat, then never again."""
    ledger.claim_send(NOTICE, NOON, 60)
    assert ledger.claim_send(NOTICE, LATER, 60) is Claim.REPEAT
    assert ledger.claim_send(NOTICE, LATER, 60) is Claim.BUSY
    assert ledger.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_a_repeat_that_was_sent_is_done(ledger: Ledger) -> None:
    """A late failure of the first try does not undo it."""
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.claim_send(NOTICE, LATER, 60)
    ledger.mark_sent(NOTICE, LATER)
    ledger.mark_failed(NOTICE, LATER, "late")
    ledger.release(NOTICE)
    assert ledger.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_a_released_claim_is_first_again(ledger: Ledger) -> None:
    """The channel refused before anything was posted: the next try is no repeat."""
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.release(NOTICE)
    assert ledger.claim_send(NOTICE, NOON, 60) is Claim.FIRST
    assert ledger.claim_send(NOTICE, NOON, 60) is Claim.BUSY


def test_a_released_repeat_stays_a_repeat(ledger: Ledger) -> None:
    """The first try may have been posted, whatever the channel said to the second."""
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.claim_send(NOTICE, LATER, 60)
    ledger.release(NOTICE)
    assert ledger.claim_send(NOTICE, LATER, 60) is Claim.REPEAT


def test_releasing_what_is_not_held_does_nothing(ledger: Ledger) -> None:
    """A notice that nobody claimed, that was sent or was released already."""
    ledger.release(NOTICE)
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.release(NOTICE)
    ledger.release(NOTICE)
    ledger.claim_send(NOTICE, NOON, 60)
    ledger.mark_sent(NOTICE, NOON)
    ledger.release(NOTICE)
    assert ledger.claim_send(NOTICE, MUCH_LATER, 60) is Claim.DONE


def test_marking_without_a_claim_holds(ledger: Ledger) -> None:
    """A notice that is known to be sent, or to have failed, is never claimed."""
    ledger.mark_sent("sent", NOON)
    ledger.mark_failed("failed", NOON, "no_service")
    assert ledger.claim_send("sent", NOON, 60) is Claim.DONE
    assert ledger.claim_send("failed", NOON, 60) is Claim.DONE
