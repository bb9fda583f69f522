"""Just inside and just outside of the times in which a notice is posted."""

import pytest

from local.functions import ProcessKilled
from sageaudit.errors import ChannelUnavailable, PossiblySent
from sageaudit.ports import Circuit
from tests.fakes.calls import Clock
from tests.fakes.deliver_function import RecordingChannel, deliverer, notice_body, slow_claims
from tests.fakes.lambda_events import Lambda, batch, failures, sqs_record
from tests.fakes.memory_ledger import MemorySendLedger
from tests.fakes.queues import FakeQueue

RECORD = sqs_record(notice_body())


@pytest.mark.parametrize(("claim_s", "is_posted"), [(40, True), (40.001, False)])
def test_a_post_starts_within_40_s_of_its_delivery(claim_s: float, is_posted: bool) -> None:
    """The ledger may be slow: the post and its mark need the rest of the function's time."""
    clock, channel = Clock(), RecordingChannel()
    ledger = slow_claims(MemorySendLedger(), clock, claim_s)
    deliverer(ledger, {"slack": channel}, clock=clock)(batch(RECORD), None)
    assert bool(channel.posted) is is_posted


@pytest.mark.parametrize(("after_s", "is_posted"), [(179, False), (180, True)])
def test_a_delivery_that_died_holds_its_notice_for_three_minutes(
    after_s: int, is_posted: bool
) -> None:
    """The function ends after two: then nobody posts it any more."""
    clock, channel, ledger = Clock(), RecordingChannel(), MemorySendLedger()
    dies = RecordingChannel([ProcessKilled()])

    with pytest.raises(ProcessKilled):
        deliverer(ledger, {"slack": dies}, clock=clock)(batch(RECORD), None)
    clock.move(after_s)
    deliverer(ledger, {"slack": channel}, clock=clock)(batch(RECORD), None)
    assert bool(channel.posted) is is_posted


def test_a_notice_that_may_be_posted_is_repeated_after_five_minutes() -> None:
    """Else the same outage would take both tries."""
    queue = FakeQueue()
    channel = RecordingChannel([PossiblySent("no answer")])
    handle = deliverer(MemorySendLedger(), {"slack": channel}, queues={"slack": queue})
    assert failures(handle(batch(RECORD), Lambda(iter([60_000])))) == ["m1"]
    assert queue.waits_s == [300]


@pytest.mark.parametrize(
    ("failed_before", "pause_s"), [(2, 60), (3, 120), (7, 1_920), (8, 3_600), (20, 3_600)]
)
def test_a_silent_channel_is_left_alone_from_a_minute_to_an_hour(
    failed_before: int, pause_s: int
) -> None:
    """Twice as long after each post without an answer."""
    ledger, clock = MemorySendLedger(), Clock()
    ledger.replace_circuit("slack", Circuit(), Circuit(failed_before), clock())
    channel = RecordingChannel([ChannelUnavailable("no connection")])
    deliverer(ledger, {"slack": channel}, clock=clock)(batch(RECORD), None)
    now_s = int(clock().timestamp())
    assert ledger.circuit("slack") == Circuit(failed_before + 1, now_s + pause_s)


@pytest.mark.parametrize(("silent_s", "is_posted"), [(1_799, False), (1_800, True)])
def test_a_repeat_tests_a_silent_channel_only_after_half_an_hour(
    silent_s: int, is_posted: bool
) -> None:
    """It is its notice's last try, which another notice had better make."""
    ledger, clock = MemorySendLedger(), Clock()
    channel = RecordingChannel([PossiblySent("no answer")])
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    handle(batch(RECORD), None)
    clock.move(600)
    closed = Circuit(3, int(clock().timestamp()))
    ledger.replace_circuit("slack", ledger.circuit("slack"), closed, clock())
    clock.move(silent_s)
    handle(batch(RECORD), None)
    assert bool(channel.posted) is is_posted


@pytest.mark.parametrize(("died", "is_posted"), [(1, True), (2, False)])
def test_a_notice_has_two_tries(died: int, is_posted: bool) -> None:
    """Nobody knows whether those that died had posted it: after two a person has to look."""
    clock, channel, ledger = Clock(), RecordingChannel(), MemorySendLedger()
    dead_letters = FakeQueue()
    dies = RecordingChannel([ProcessKilled()] * died)

    for _ in range(died):
        with pytest.raises(ProcessKilled):
            deliverer(ledger, {"slack": dies}, clock=clock)(batch(RECORD), None)
        clock.move(180)
    handle = deliverer(ledger, {"slack": channel}, clock=clock, dead_letters=dead_letters)
    handle(batch(RECORD), None)
    assert (bool(channel.posted), bool(dead_letters.sent)) == (is_posted, not is_posted)
