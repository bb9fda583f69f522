"""What the ledgers promise: one message for a family and day, one send for a notice."""

from __future__ import annotations

from datetime import date, timedelta

from sageaudit.domain.audit.record import Claim
from sageaudit.ports import Circuit, LastNotice, SendLedger, TellLedger
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
