"""Notices on the queue -> one post a channel, whatever is delivered twice, dies or waits."""

from __future__ import annotations

import contextlib
import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.delivering import LEASE_S
from sageaudit.domain.audit.record import Claim
from sageaudit.errors import (
    ChannelBroken,
    ChannelUnavailable,
    MaybeSent,
    RateLimited,
    Throttled,
)
from tests.fakes.delivering import (
    NOON,
    PAYLOADS,
    PK,
    Clock,
    Killed,
    Lambda,
    RecordingChannel,
    RecordingQueue,
    Stepped,
    batch,
    counted,
    deliverer,
    dying,
    failures,
    notice_body,
    sqs_record,
)
from tests.fakes.memory_ledger import MemoryLedger

NOTICE = f"{PK}|1|slack"
RECORD = sqs_record(notice_body())
WEBHOOK = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
DONE: dict[str, list[Any]] = {"batchItemFailures": []}


def repeats(channel: RecordingChannel) -> list[bool]:
    """Which posts say that they may be a repeat."""
    return ["(possible repeat)" in str(payload) for payload in channel.posted]


def test_a_notice_is_posted_and_marked() -> None:
    """A second delivery of it is done without a post."""
    channel, ledger = RecordingChannel(), MemoryLedger()
    handle = deliverer(ledger, {"slack": channel})
    assert handle(batch(RECORD), None) == DONE
    assert channel.posted == [PAYLOADS["slack"]]
    assert handle(batch(RECORD), None) == DONE
    assert len(channel.posted) == 1
    assert ledger.claim_send(NOTICE, NOON, 1) is Claim.DONE


def test_fifty_deliveries_interleaved_at_every_step_post_once_a_channel() -> None:
    """Each step of a delivery starts the next delivery, until fifty are under way at once."""
    channels = {"sns": RecordingChannel(), "slack": RecordingChannel()}
    ledger, left = MemoryLedger(), [50]

    def step() -> None:
        if left[0]:
            left[0] -= 1
            deliver_both()

    def deliver_both() -> None:
        stepped = {name: Stepped(channel, step) for name, channel in channels.items()}
        handle = deliverer(Stepped(ledger, step), stepped, queue=Stepped(RecordingQueue(), step))
        handle(batch(sqs_record(notice_body("sns")), sqs_record(notice_body("slack"))), None)

    deliver_both()
    assert left == [0]
    assert {name: repeats(channel) for name, channel in channels.items()} == {
        "sns": [False],
        "slack": [False],
    }


def test_killed_between_any_two_steps_and_delivered_again_it_is_posted_once() -> None:
    """Only where it died after the post and before the mark is there a second, marked as such."""
    outcomes = []
    for steps in itertools.count():
        channel, ledger, clock = RecordingChannel(), MemoryLedger(), Clock()
        step = dying(steps)
        first = deliverer(Stepped(ledger, step), {"slack": Stepped(channel, step)}, clock=clock)
        try:
            first(batch(RECORD), None)
        except Killed:
            clock.move(360)
            again = deliverer(ledger, {"slack": channel}, clock=clock)
            assert again(batch(RECORD), None) == DONE
            assert again(batch(RECORD), None) == DONE
        else:
            break
        outcomes.append(repeats(channel))
    before_claim, held, after_post, marked = [False], [True], [False, True], [False]
    assert outcomes == [before_claim, held, held, after_post, after_post, marked]


FAULTS = [
    None,
    RateLimited(30),
    MaybeSent("no answer"),
    ChannelUnavailable("503"),
    ChannelBroken("410"),
]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(FAULTS), st.integers(0, 8), st.sampled_from([0, 40, 400])),
        max_size=8,
    )
)
def test_no_order_of_faults_posts_more_than_once_unmarked(
    deliveries: list[tuple[Exception | None, int, int]],
) -> None:
    """Deliveries that fail, die at any step and come at any time: one post, one marked repeat."""
    channel, ledger, clock = RecordingChannel(), MemoryLedger(), Clock()
    for fault, steps, seconds in [*deliveries, (None, 99, 400), (None, 99, 400)]:
        channel.answers = [] if fault is None else [fault]
        step = dying(steps)
        handle = deliverer(Stepped(ledger, step), {"slack": Stepped(channel, step)}, clock=clock)
        with contextlib.suppress(Killed):
            handle(batch(RECORD), None)
        clock.move(seconds)
    posts = repeats(channel)
    assert posts in ([], [False], [True], [False, True])
    assert ledger.claim_send(NOTICE, clock(), 1) is Claim.DONE


def test_told_to_wait_the_message_waits_and_the_next_try_is_the_first() -> None:
    """No sleep: the record fails and its visibility is what Slack said."""
    channel, queue = RecordingChannel([RateLimited(42)]), RecordingQueue()
    clock = Clock()
    handle = deliverer(MemoryLedger(), {"slack": channel}, queue=queue, clock=clock)
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert queue.waits_s == [42]
    clock.move(42)
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False]


def test_what_waits_behind_it_is_not_even_tried() -> None:
    """The channel said when; the others are as open as before."""
    slack, sns, queue = RecordingChannel([RateLimited(600)]), RecordingChannel(), RecordingQueue()
    clock = Clock()
    handle = deliverer(MemoryLedger(), {"slack": slack, "sns": sns}, queue=queue, clock=clock)
    event = batch(
        sqs_record(notice_body(version=1), message_id="m1"),
        sqs_record(notice_body(version=2), message_id="m2", received=6),
        sqs_record(notice_body("sns"), message_id="m3"),
    )
    assert failures(handle(event, None)) == ["m1", "m2"]
    assert queue.waits_s == [600, 960]
    assert (len(slack.posted), len(sns.posted)) == (0, 1)
    clock.move(601)
    assert handle(event, None) == DONE
    assert repeats(slack) == [False, False]


@pytest.mark.parametrize(
    ("retry_after_s", "received", "wait_s"),
    [
        (30, 1, 30),
        (30, 2, 60),
        (30, 5, 480),
        (30, 20, 1_800),
        (3_600, 9, 3_600),
        (43_200, 1, 42_300),
    ],
)
def test_each_wait_is_longer_than_the_last_and_never_shorter_than_slack_said(
    retry_after_s: int, received: int, wait_s: int
) -> None:
    """A wait uses up a receive: few long ones last longer than many short ones."""
    channel, queue = RecordingChannel([RateLimited(retry_after_s)]), RecordingQueue()
    handle = deliverer(MemoryLedger(), {"slack": channel}, queue=queue)
    handle(batch(sqs_record(notice_body(), received=received)), None)
    assert queue.waits_s == [wait_s]


def test_an_outage_lets_the_next_try_be_the_first() -> None:
    """Nothing was posted, and the ledger says so."""
    channel, queue = RecordingChannel([ChannelUnavailable("503")]), RecordingQueue()
    handle = deliverer(MemoryLedger(), {"slack": channel}, queue=queue)
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert queue.waits_s == [30]
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False]


def test_an_answer_that_never_came_is_repeated_once_and_marked() -> None:
    """Not before the lease has run out; a second silence is the end of it."""
    channel = RecordingChannel([MaybeSent("x")])
    queue, clock = RecordingQueue(), Clock()
    handle = deliverer(MemoryLedger(), {"slack": channel}, queue=queue, clock=clock)
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert queue.waits_s == [LEASE_S, LEASE_S]
    assert channel.posted == []
    clock.move(LEASE_S)
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [True]


def test_two_silences_are_the_end_of_it() -> None:
    """At most one repeat is ever sent."""
    channel, clock = RecordingChannel([MaybeSent("x"), MaybeSent("x")]), Clock()
    handle = deliverer(MemoryLedger(), {"slack": channel}, clock=clock)
    for _ in range(2):
        assert failures(handle(batch(RECORD), None)) == ["m1"]
        clock.move(LEASE_S)
    assert handle(batch(RECORD), None) == DONE
    assert channel.posted == []


def test_a_broken_channel_is_given_up_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Done for SQS; the other channel's notice is its own."""
    slack, sns = RecordingChannel([ChannelBroken("slack: 410 gone")]), RecordingChannel()
    ledger = MemoryLedger()
    handle = deliverer(ledger, {"slack": slack, "sns": sns}, service="broken")
    event = batch(RECORD, sqs_record(notice_body("sns")))
    assert handle(event, None) == DONE
    assert handle(event, None) == DONE
    assert (slack.posted, len(sns.posted)) == ([], 1)
    printed = capsys.readouterr().out
    assert '"reason":"slack: 410 gone"' in printed
    assert json.loads(printed.splitlines()[0])["level"] == "ERROR"
    assert counted(printed.split("\n", 1)[1])["DuplicateNotices", "slack"] == 1


def test_what_happened_is_counted_by_channel(capsys: pytest.CaptureFixture[str]) -> None:
    """Sent, already sent, given up, refused."""
    channels = {"slack": RecordingChannel(), "sns": RecordingChannel([ChannelBroken("x")])}
    handle = deliverer(MemoryLedger(), channels, service="counting")
    handle(batch(RECORD, RECORD, sqs_record(notice_body("sns")), sqs_record("{")), None)
    assert counted(capsys.readouterr().out) == {
        ("NoticesSent", "slack"): 1,
        ("DuplicateNotices", "slack"): 1,
        ("NotifyFailed", "sns"): 1,
        ("RejectedEvents", None): 1,
    }


@pytest.mark.parametrize("body", ["", "null", "[1]", '{"schema":1}', "\x1b[31m<!channel>"])
def test_a_malformed_message_goes_to_the_dead_letters_and_the_batch_goes_on(body: str) -> None:
    """As it came, with its reason."""
    channel, dead = RecordingChannel(), RecordingQueue()
    handle = deliverer(MemoryLedger(), {"slack": channel}, dead_letters=dead)
    assert handle(batch(sqs_record(body), RECORD), None) == DONE
    [(kept, attributes)] = dead.sent
    assert kept == body
    assert attributes["reason"] == "malformed_notice"
    assert attributes["why"]
    assert len(channel.posted) == 1


def test_a_notice_for_a_channel_that_is_not_set_up_is_kept() -> None:
    """Slack was taken out of the deployment while a notice waited."""
    dead = RecordingQueue()
    assert deliverer(MemoryLedger(), {}, dead_letters=dead)(batch(RECORD), None) == DONE
    assert dead.sent[0][1] == {"reason": "no_channel", "why": "slack is not set up"}


def test_a_dead_letter_queue_that_does_not_answer_loses_nothing() -> None:
    """The record comes back."""
    dead = RecordingQueue(answers=[Throttled("later")])
    handle = deliverer(MemoryLedger(), {}, dead_letters=dead)
    assert failures(handle(batch(sqs_record("{")), None)) == ["m1"]


@pytest.mark.parametrize("method", ["claim_send", "mark_sent"])
def test_a_table_that_does_not_answer_fails_that_record_alone(method: str) -> None:
    """One that was posted and not marked keeps its lease, so that its repeat is marked."""

    class Busy(MemoryLedger):
        broken = True

        def _answer(self, notice_id: str) -> None:
            if self.broken and notice_id == NOTICE:
                raise Throttled("the table is busy")

        def claim_send(self, notice_id: str, *rest: Any) -> Claim:
            if method == "claim_send":
                self._answer(notice_id)
            return super().claim_send(notice_id, *rest)

        def mark_sent(self, notice_id: str, *rest: Any) -> None:
            if method == "mark_sent":
                self._answer(notice_id)
            super().mark_sent(notice_id, *rest)

    ledger, channel, clock = Busy(), RecordingChannel(), Clock()
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    other = sqs_record(notice_body(version=2), message_id="m2")
    assert failures(handle(batch(RECORD, other), None)) == ["m1"]
    ledger.broken = False
    clock.move(LEASE_S)
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == ([False, False] if method == "claim_send" else [False, False, True])


def test_a_defect_fails_that_record_alone_and_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows whether the notice was posted: it keeps its lease, and its repeat is marked."""
    channel, clock = RecordingChannel([RuntimeError("nobody foresaw this")]), Clock()
    handle = deliverer(MemoryLedger(), {"slack": channel}, clock=clock, service="defective")
    other = sqs_record(notice_body(version=2), message_id="m2")
    assert failures(handle(batch(RECORD, other), None)) == ["m1"]
    printed = capsys.readouterr().out
    assert {line["level"] for line in map(json.loads, printed.splitlines()) if "level" in line} == {
        "ERROR",
        "INFO",
    }
    assert "nobody foresaw this" in printed
    assert counted(printed) == {
        ("DeliveryFailed", None): 1,
        ("Defects", None): 1,
        ("NoticesSent", "slack"): 1,
    }
    clock.move(LEASE_S)
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False, True]


def test_when_the_time_is_up_the_rest_comes_back_untouched() -> None:
    """A function that is cut off answers nothing, and the whole batch would come back."""
    channel = RecordingChannel()
    handle = deliverer(MemoryLedger(), {"slack": channel})
    records = [sqs_record(notice_body(version=n), message_id=f"m{n}") for n in (1, 2, 3)]
    context = Lambda(iter([60_000, 14_999, 14_000]))
    assert failures(handle(batch(*records), context)) == ["m2", "m3"]
    assert len(channel.posted) == 1


def test_an_empty_batch_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a line nor a warning."""
    assert deliverer(MemoryLedger(), {}, service="empty")(batch(), None) == DONE
    assert capsys.readouterr().out == ""
