"""Notices on the queue -> one post a channel, whatever is delivered twice, dies or waits."""

from __future__ import annotations

import contextlib
import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.audit.record import Claim
from sageaudit.errors import (
    ChannelBroken,
    ChannelUnavailable,
    MaybeSent,
    RateLimited,
    Throttled,
    UnexpectedAnswer,
)
from sageaudit.ports import Circuit
from sageaudit.workflows.deliver.run import LEASE_S, LONGEST_PAUSE_S, REPEAT_AFTER_S
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
    assert outcomes == [before_claim] * 5 + [held] * 2 + [after_post] * 2 + [marked]


@pytest.mark.parametrize(
    ("error", "reason", "then"),
    [
        (ChannelBroken("slack: 410 gone"), "channel_broken", [False]),
        (UnexpectedAnswer("a proxy's page"), "unexpected_answer", [True]),
    ],
)
def test_killed_while_it_is_given_up_nothing_is_lost(
    error: Exception, reason: str, then: list[bool]
) -> None:
    """At every step: it is in the dead letters, once or twice, and can be sent from there."""
    for steps in itertools.count():
        channel = RecordingChannel([error, error, error])
        ledger, clock, dead = MemoryLedger(), Clock(), RecordingQueue()
        step = dying(steps)
        first = deliverer(
            Stepped(ledger, step),
            {"slack": Stepped(channel, step)},
            dead_letters=Stepped(dead, step),
            clock=clock,
        )
        again = deliverer(ledger, {"slack": channel}, dead_letters=dead, clock=clock)
        try:
            first(batch(RECORD), None)
        except Killed:
            clock.move(360)
            assert again(batch(RECORD), None) == DONE
            killed = True
        else:
            killed = False
        assert {attributes["reason"] for _, attributes in dead.sent} == {reason}
        assert 1 <= len(dead.sent) <= 2
        channel.answers = []
        clock.move(360)
        assert again(batch(RECORD), None) == DONE
        assert repeats(channel) in (then, [True])
        if not killed:
            assert repeats(channel) == then
            break


def test_killed_after_its_post_twice_a_person_has_to_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The third delivery posts nothing; sent again by a person, it is a repeat."""
    channel, ledger, clock, dead = RecordingChannel(), MemoryLedger(), Clock(), RecordingQueue()
    for before_the_mark in (8, 10):
        step = dying(before_the_mark)
        with pytest.raises(Killed):
            deliverer(Stepped(ledger, step), {"slack": Stepped(channel, step)}, clock=clock)(
                batch(RECORD), None
            )
        clock.move(LEASE_S)
    assert repeats(channel) == [False, True]
    handle = deliverer(ledger, {"slack": channel}, dead_letters=dead, clock=clock, service="killed")
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False, True]
    assert [attributes["reason"] for _, attributes in dead.sent] == ["unknown_outcome"]
    assert counted(capsys.readouterr().out)["NotifyUnknown", "slack"] == 1
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False, True, True]


FAULTS = [
    None,
    RateLimited(30),
    MaybeSent("no answer"),
    ChannelUnavailable("no connection"),
    ChannelBroken("410"),
    UnexpectedAnswer("a proxy's page"),
]


@dataclass
class Doubtful(RecordingChannel):
    """Posts, and then says that nobody knows."""

    def post(self, payload: dict[str, Any]) -> None:
        if self.answers and isinstance(self.answers[0], MaybeSent | UnexpectedAnswer):
            self.posted.append(payload)
        super().post(payload)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(FAULTS), st.integers(0, 14), st.sampled_from([0, 40, 400])),
        max_size=8,
    )
)
def test_no_order_of_faults_posts_more_than_once_unmarked(
    deliveries: list[tuple[Exception | None, int, int]],
) -> None:
    """Deliveries that fail, die at any step and come at any time, also from the dead letters.

    No message is a second one without saying so, and the notice is sent in the end.
    """
    channel, ledger, clock = Doubtful(), MemoryLedger(), Clock()
    last = [(None, 99, 4_000)] * 3
    for fault, steps, seconds in [*deliveries, *last]:
        channel.answers = [] if fault is None else [fault]
        step = dying(steps)
        handle = deliverer(Stepped(ledger, step), {"slack": Stepped(channel, step)}, clock=clock)
        with contextlib.suppress(Killed):
            handle(batch(RECORD), None)
        clock.move(seconds)
    posts = repeats(channel)
    assert False not in posts[1:]
    assert posts
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


@pytest.mark.parametrize("failures", [0, 3])
def test_a_pause_that_no_channel_can_ask_for_silences_nothing(failures: int) -> None:
    """A damaged row, or one of a clock that was ahead, is replaced by none."""
    ledger, channel, clock = MemoryLedger(), RecordingChannel(), Clock()
    now_s = int(clock().timestamp())
    damaged = Circuit(failures, now_s + LONGEST_PAUSE_S + LEASE_S + 1)
    ledger.change_circuit("slack", Circuit(), damaged, clock())
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    assert handle(batch(RECORD), None) == DONE
    assert ledger.circuit("slack") == Circuit()


def test_the_longest_pause_that_a_channel_can_have_is_kept() -> None:
    """An hour, and the lease of a test."""
    ledger, channel, clock = MemoryLedger(), RecordingChannel(), Clock()
    closed_until = int(clock().timestamp()) + LONGEST_PAUSE_S + LEASE_S
    ledger.change_circuit("slack", Circuit(), Circuit(0, closed_until), clock())
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert not channel.posted


@pytest.mark.parametrize(
    ("retry_after_s", "received", "wait_s"),
    [
        (30, 1, 30),
        (30, 2, 60),
        (30, 5, 480),
        (30, 20, 3_600),
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
    channel, queue = RecordingChannel([ChannelUnavailable("no connection")]), RecordingQueue()
    handle = deliverer(MemoryLedger(), {"slack": channel}, queue=queue)
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert queue.waits_s == [30]
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False]


def test_an_answer_that_never_came_is_repeated_once_and_marked() -> None:
    """Minutes later, when a short outage is over."""
    channel, queue, clock = RecordingChannel([MaybeSent("x")]), RecordingQueue(), Clock()
    handle = deliverer(MemoryLedger(), {"slack": channel}, queue=queue, clock=clock)
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    assert queue.waits_s == [REPEAT_AFTER_S]
    clock.move(REPEAT_AFTER_S)
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [True]


def test_a_service_that_asks_for_more_time_gets_it() -> None:
    """A 503 with Retry-After: nobody knows whether it posted, and it says when to come back."""
    channel, queue = RecordingChannel([MaybeSent("503", 1_200)]), RecordingQueue()
    deliverer(MemoryLedger(), {"slack": channel}, queue=queue)(batch(RECORD), None)
    assert queue.waits_s == [1_200]


def test_two_silences_are_for_a_person_to_judge(capsys: pytest.CaptureFixture[str]) -> None:
    """The notice is kept with its reason; a redrive sends it, marked as a possible repeat."""
    channel = RecordingChannel([MaybeSent("no answer"), MaybeSent("no answer came")])
    clock, dead = Clock(), RecordingQueue()
    handle = deliverer(
        MemoryLedger(), {"slack": channel}, clock=clock, dead_letters=dead, service="silent"
    )
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    clock.move(REPEAT_AFTER_S)
    assert handle(batch(RECORD), None) == DONE
    [(body, attributes)] = dead.sent
    assert body == notice_body()
    assert attributes["reason"] == "unknown_outcome"
    assert attributes["why"].endswith("The last answer: no answer came")
    assert counted(capsys.readouterr().out)["NotifyUnknown", "slack"] == 1
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [True]


def test_a_broken_channel_is_given_up_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """In the dead letters with its reason; the other channel's notice is its own."""
    slack, sns = RecordingChannel([ChannelBroken("slack: 410 gone")]), RecordingChannel()
    ledger, dead = MemoryLedger(), RecordingQueue()
    channels = {"slack": slack, "sns": sns}
    handle = deliverer(ledger, channels, dead_letters=dead, service="broken")
    event = batch(RECORD, sqs_record(notice_body("sns")))
    assert handle(event, None) == DONE
    assert dead.sent == [
        (notice_body(), {"reason": "channel_broken", "why": "slack: 410 gone"}),
    ]
    assert (slack.posted, len(sns.posted)) == ([], 1)
    printed = capsys.readouterr().out
    assert '"reason":"slack: 410 gone"' in printed
    assert json.loads(printed.splitlines()[0])["level"] == "ERROR"
    assert counted(printed) == {("NotifyFailed", "slack"): 1, ("NoticesSent", "sns"): 1}
    assert handle(event, None) == DONE
    assert repeats(slack) == [False]
    assert counted(capsys.readouterr().out)["DuplicateNotices", "sns"] == 1


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


def test_a_notice_for_a_channel_that_is_off_is_kept() -> None:
    """Slack was taken out of the deployment while a notice waited; later it is on again."""
    dead, ledger, slack = RecordingQueue(), MemoryLedger(), RecordingChannel()
    assert deliverer(ledger, {}, dead_letters=dead)(batch(RECORD), None) == DONE
    [(_, attributes)] = dead.sent
    assert attributes["reason"] == "no_channel"
    assert attributes["why"].startswith("the channel slack is switched off")
    assert deliverer(ledger, {"slack": slack})(batch(RECORD), None) == DONE
    assert repeats(slack) == [False]
    assert deliverer(ledger, {}, dead_letters=dead)(batch(RECORD), None) == DONE
    assert len(dead.sent) == 1


def test_a_notice_in_the_queue_of_another_channel_is_refused() -> None:
    """It would be posted twice as fast as its channel takes them, and twice if it is in both."""
    dead, slack = RecordingQueue(), RecordingChannel()
    record = sqs_record(notice_body(), queue="another")
    assert (
        deliverer(MemoryLedger(), {"slack": slack}, dead_letters=dead)(batch(record), None) == DONE
    )
    assert dead.sent[0][1]["reason"] == "malformed_notice"
    assert slack.posted == []


def test_a_dead_letter_queue_that_does_not_answer_loses_nothing() -> None:
    """The record comes back."""
    dead = RecordingQueue(answers=[Throttled("later")])
    handle = deliverer(MemoryLedger(), {}, dead_letters=dead)
    assert failures(handle(batch(sqs_record("{")), None)) == ["m1"]


class Busy(MemoryLedger):
    """Does not answer one method about one notice."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    def _answer(self, method: str, notice_id: str) -> None:
        if (method, notice_id) == (self.method, NOTICE):
            raise Throttled("the table is busy")

    def claim_send(self, notice_id: str, *rest: Any) -> Claim:
        self._answer("claim_send", notice_id)
        return super().claim_send(notice_id, *rest)

    def mark_sent(self, notice_id: str, *rest: Any) -> None:
        self._answer("mark_sent", notice_id)
        super().mark_sent(notice_id, *rest)


def test_without_a_claim_nothing_is_posted() -> None:
    """A table that does not answer fails that record alone, and it comes back."""
    ledger, channel, clock = Busy("claim_send"), RecordingChannel(), Clock()
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    other = sqs_record(notice_body(version=2), message_id="m2")
    assert failures(handle(batch(RECORD, other), None)) == ["m1"]
    assert len(channel.posted) == 1
    ledger.method = ""
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False, False]


def test_what_was_posted_is_done_also_without_its_mark(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not posted again for its mark; where SQS delivers it twice, the second says so."""
    ledger, channel, clock = Busy("mark_sent"), RecordingChannel(), Clock()
    handle = deliverer(ledger, {"slack": channel}, clock=clock, service="unmarked")
    assert handle(batch(RECORD), None) == DONE
    printed = capsys.readouterr().out
    assert "posted, not marked" in printed
    assert counted(printed) == {("NoticesSent", "slack"): 1}
    assert failures(handle(batch(RECORD), None)) == ["m1"]
    clock.move(LEASE_S)
    ledger.method = ""
    assert handle(batch(RECORD), None) == DONE
    assert repeats(channel) == [False, True]


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
    context = Lambda(iter([60_000, 49_999, 49_000]))
    assert failures(handle(batch(*records), context)) == ["m2", "m3"]
    assert len(channel.posted) == 1


def test_an_empty_batch_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a line nor a warning."""
    assert deliverer(MemoryLedger(), {}, service="empty")(batch(), None) == DONE
    assert capsys.readouterr().out == ""
