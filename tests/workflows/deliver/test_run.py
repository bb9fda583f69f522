"""Notices on the queue -> one post a channel, whatever is delivered twice, dies or waits."""

import contextlib
import itertools
import json
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.functions import ProcessKilled
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.domain.alert.alert import ChannelHour, start_of_hour
from sageaudit.domain.audit.record import SendClaim
from sageaudit.errors import (
    ChannelBroken,
    ChannelUnavailable,
    PossiblySent,
    RateLimited,
    UnexpectedResponse,
)
from sageaudit.output.text.card import Notice, to_json
from sageaudit.ports import Circuit
from sageaudit.workflows.deliver import LATEST_POST_START_S, LEASE_S, MAX_PAUSE_S
from tests.fakes.calls import NOON, CallProxy, Clock, die_at_step, with_steps
from tests.fakes.deliver_function import RecordingChannel, deliverer, notice_body, slow_claims
from tests.fakes.lambda_events import PK, Lambda, batch, failures, parse_counts, sqs_record
from tests.fakes.memory_ledger import MemorySendLedger
from tests.fakes.queues import FakeQueue

NOTICE = f"{PK}|1|slack"
RECORD = sqs_record(notice_body())
WEBHOOK = "https://hooks.slack.com/services/T0001/B0001/s3cr3ts3cr3t"
DONE: dict[str, list[Any]] = {"batchItemFailures": []}


def repeats(channel: RecordingChannel) -> list[bool]:
    """Which posts say that they may be a repeat."""
    return ["(possible repeat)" in str(payload) for payload in channel.posted]


def test_fifty_deliveries_interleaved_at_every_step_post_once_a_channel() -> None:
    """Each step of a delivery starts the next delivery, until fifty are under way at once."""
    channels = {"sns": RecordingChannel(), "slack": RecordingChannel()}
    ledger, left = MemorySendLedger(), [50]

    def step() -> None:
        if left[0]:
            left[0] -= 1
            deliver_both()

    def deliver_both() -> None:
        handle = deliverer(
            with_steps(ledger, step),
            {name: with_steps(channel, step) for name, channel in channels.items()},
            queues=dict.fromkeys(channels, with_steps(FakeQueue(), step)),
        )
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
        channel, ledger, clock = RecordingChannel(), MemorySendLedger(), Clock()
        step = die_at_step(steps)
        first = deliverer(
            with_steps(ledger, step), {"slack": with_steps(channel, step)}, clock=clock
        )
        try:
            first(batch(RECORD), None)
        except ProcessKilled:
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
        (UnexpectedResponse("a proxy's page"), "unexpected_answer", [True]),
    ],
)
def test_killed_while_it_is_given_up_nothing_is_lost(
    error: Exception, reason: str, then: list[bool]
) -> None:
    """At every step: it is in the dead letters, once or twice, and can be sent from there."""
    for steps in itertools.count():
        channel = RecordingChannel([error, error, error])
        ledger, clock, dead = MemorySendLedger(), Clock(), FakeQueue()
        step = die_at_step(steps)
        first = deliverer(
            with_steps(ledger, step),
            {"slack": with_steps(channel, step)},
            dead_letters=with_steps(dead, step),
            clock=clock,
        )
        again = deliverer(ledger, {"slack": channel}, dead_letters=dead, clock=clock)
        try:
            first(batch(RECORD), None)
        except ProcessKilled:
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


FAULTS = [
    None,
    RateLimited(30),
    PossiblySent("no answer"),
    ChannelUnavailable("no connection"),
    ChannelBroken("410"),
    UnexpectedResponse("a proxy's page"),
]


@dataclass
class Doubtful(RecordingChannel):
    """Posts, and then says that nobody knows."""

    def post(self, payload: dict[str, Any]) -> None:
        if self.answers and isinstance(self.answers[0], PossiblySent | UnexpectedResponse):
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
    channel, ledger, clock = Doubtful(), MemorySendLedger(), Clock()
    last = [(None, 99, 4_000)] * 3
    for fault, steps, seconds in [*deliveries, *last]:
        channel.answers = [] if fault is None else [fault]
        step = die_at_step(steps)
        handle = deliverer(
            with_steps(ledger, step), {"slack": with_steps(channel, step)}, clock=clock
        )
        with contextlib.suppress(ProcessKilled):
            handle(batch(RECORD), None)
        clock.move(seconds)
    posts = repeats(channel)
    assert False not in posts[1:]
    assert posts
    assert ledger.claim_send(NOTICE, clock(), 1) is SendClaim.DONE


def test_what_waits_behind_it_is_not_even_tried() -> None:
    """The channel said when; the others are as open as before."""
    slack, sns, queue = RecordingChannel([RateLimited(600)]), RecordingChannel(), FakeQueue()
    clock, queues = Clock(), {"slack": queue, "sns": queue}
    handle = deliverer(MemorySendLedger(), {"slack": slack, "sns": sns}, queues=queues, clock=clock)
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


def test_the_third_post_without_an_answer_closes_the_circuit() -> None:
    """For a minute; then one notice alone tests the channel, and its answer opens it for all."""
    ledger, clock, circuits = MemorySendLedger(), Clock(), list[Circuit]()

    def before(call: str) -> None:
        if call == "post":
            circuits.append(ledger.circuit("slack"))

    channel = RecordingChannel([ChannelUnavailable("no connection")] * 3)
    handle = deliverer(ledger, {"slack": CallProxy(channel, before)}, clock=clock)
    now_s = int(clock().timestamp())
    for version in (1, 2, 3, 4):
        handle(batch(sqs_record(notice_body(version=version))), None)
    assert circuits == [Circuit(), Circuit(1), Circuit(2)]
    assert ledger.circuit("slack") == Circuit(3, now_s + 60)
    clock.move(61)
    assert handle(batch(RECORD), None) == DONE
    assert circuits[3:] == [Circuit(3, now_s + 61 + LEASE_S)]
    assert ledger.circuit("slack") == Circuit()


@pytest.mark.parametrize("failures", [0, 3])
def test_a_pause_that_no_channel_can_ask_for_silences_nothing(failures: int) -> None:
    """A damaged row, or one of a clock that was ahead, is replaced by none."""
    ledger, channel, clock = MemorySendLedger(), RecordingChannel(), Clock()
    now_s = int(clock().timestamp())
    damaged = Circuit(failures, now_s + MAX_PAUSE_S + LEASE_S + 1)
    ledger.replace_circuit("slack", Circuit(), damaged, clock())
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    assert handle(batch(RECORD), None) == DONE
    assert ledger.circuit("slack") == Circuit()


def test_the_longest_pause_that_a_channel_can_have_is_kept() -> None:
    """An hour, and the lease of a test."""
    ledger, channel, clock = MemorySendLedger(), RecordingChannel(), Clock()
    open_until = int(clock().timestamp()) + MAX_PAUSE_S + LEASE_S
    ledger.replace_circuit("slack", Circuit(), Circuit(0, open_until), clock())
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
    channel, queue = RecordingChannel([RateLimited(retry_after_s)]), FakeQueue()
    handle = deliverer(MemorySendLedger(), {"slack": channel}, queues={"slack": queue})
    handle(batch(sqs_record(notice_body(), received=received)), None)
    assert queue.waits_s == [wait_s]


def test_a_defect_fails_that_record_alone_and_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows whether the notice was posted: it keeps its lease, and its repeat is marked."""
    channel, clock = RecordingChannel([RuntimeError("nobody foresaw this")]), Clock()
    report = RecordReport({"POWERTOOLS_SERVICE_NAME": "defective"})
    handle = deliverer(MemorySendLedger(), {"slack": channel}, clock=clock, report=report)
    other = sqs_record(notice_body(version=2), message_id="m2")
    assert failures(handle(batch(RECORD, other), None)) == ["m1"]
    printed = capsys.readouterr().out
    assert {line["level"] for line in map(json.loads, printed.splitlines()) if "level" in line} == {
        "ERROR",
        "INFO",
    }
    assert "nobody foresaw this" in printed
    assert parse_counts(printed) == {
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
    handle = deliverer(MemorySendLedger(), {"slack": channel})
    records = [sqs_record(notice_body(version=n), message_id=f"m{n}") for n in (1, 2, 3)]
    context = Lambda(iter([60_000, 49_999, 49_000]))
    assert failures(handle(batch(*records), context)) == ["m2", "m3"]
    assert len(channel.posted) == 1


def test_without_time_left_to_post_it_comes_back_unposted() -> None:
    """A post that outlives its lease could be made twice."""
    clock, channel, queue = Clock(), RecordingChannel(), FakeQueue()
    ledger = MemorySendLedger()
    handle = deliverer(
        slow_claims(ledger, clock, LATEST_POST_START_S + 1),
        {"slack": channel},
        queues={"slack": queue},
        clock=clock,
    )
    assert len(failures(handle(batch(RECORD), None))) == 1
    assert (channel.posted, len(queue.waits_s)) == ([], 1)
    assert ledger.claim_send(NOTICE, clock(), LEASE_S) is SendClaim.FIRST


def of_an_hour(held: int = 2, *, count: int = 1) -> tuple[MemorySendLedger, dict[str, Any]]:
    """A ledger with an hour of Slack above its most, and the notice of what was held."""
    ledger, began = MemorySendLedger(), start_of_hour(NOON)
    largest_messages = tuple((f"family-{n}: <b>", Decimal(n)) for n in range(held))
    ledger.hours["slack", began] = ChannelHour("slack", began, 20, held, largest_messages)
    return ledger, sqs_record(to_json(Notice(NOTICE, "slack", {}, began)), received=count)


def test_what_was_held_in_an_hour_waits_for_its_end_and_is_posted_once() -> None:
    """What is held meanwhile is in it; a second delivery of it is a duplicate."""
    (ledger, record), clock = of_an_hour(), Clock()
    channel, queue = RecordingChannel(), FakeQueue()
    handle = deliverer(ledger, {"slack": channel}, queues={"slack": queue}, clock=clock)
    assert failures(handle(batch(record), None)) == ["m1"]
    assert queue.waits_s == [55 * 60]  # 13:10 to 14:05
    assert channel.posted == []
    ledger.hours["slack", start_of_hour(NOON)] = of_an_hour(3)[0].channel_hour(
        "slack", start_of_hour(NOON)
    )
    clock.move(55 * 60)
    for _ in range(2):
        assert handle(batch(record), None) == DONE
    [payload] = channel.posted
    assert payload["text"] == "And 3 more messages since 13:00 UTC"
    assert "family-2: &lt;b&gt;" in str(payload)


def test_killed_at_any_step_what_was_held_in_an_hour_is_posted_once_or_marked() -> None:
    """As any notice."""
    for steps in itertools.count():
        (ledger, record), clock, channel = of_an_hour(), Clock(), RecordingChannel()
        clock.move(3600)
        step = die_at_step(steps)
        first = deliverer(
            with_steps(ledger, step), {"slack": with_steps(channel, step)}, clock=clock
        )
        with suppress(ProcessKilled):
            first(batch(record), None)
            break
        clock.move(360)
        again = deliverer(ledger, {"slack": channel}, clock=clock)
        assert again(batch(record), None) == DONE
        assert repeats(channel) in ([False], [True], [False, True])
    assert steps > 6


def test_an_hour_that_the_table_does_not_show_comes_back() -> None:
    """Nobody is told of 0 more messages."""
    (ledger, record), clock = of_an_hour(), Clock()
    ledger.hours.clear()
    clock.move(3900)
    channel = RecordingChannel()
    handle = deliverer(ledger, {"slack": channel}, clock=clock)
    assert failures(handle(batch(record), None)) == ["m1"]
    assert channel.posted == []
