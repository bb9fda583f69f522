"""Each fault of docs/decisions/0024: crashes at any step, lost answers, other orders, two at once.

The real function reads a stream with audits and notices; `deliver` would post each notice once.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sageaudit.domain.alert.alert import start_of_hour
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig, Routes
from sageaudit.errors import AccessDenied, AwsError, Throttled, Unavailable
from sageaudit.output.text import plain
from sageaudit.output.text.card import held_messages_card
from tests.fakes.calls import NOON, at_step, die, die_at_step
from tests.fakes.documents import document, job
from tests.fakes.family import FamilyStory, run_document
from tests.fakes.stream import Stream

RUN, ANOTHER = "train-bert-0001", "train-bert-0002"
SIXTY, TWENTY, NOTHING = (run_document(RUN, avoidable=usd) for usd in ("60", "20", "0"))


def each_step(do: Callable[[Stream], Any], begin: Callable[[Stream], Any]) -> Iterator[Stream]:
    """For each step of reading a stream after `begin`: one in which `do` happened there."""
    for number in range(200):
        stream, met = Stream(), list[int]()

        def happens(stream: Stream = stream, met: list[int] = met) -> None:
            met.append(1)
            do(stream)

        begin(stream)
        step = at_step(number, happens)
        for _ in range(3):
            stream.read(step)
        if not met:
            assert number > 8
            return
        stream.settle()
        yield stream
    raise AssertionError("it never ended")


def test_killed_at_any_step_each_channel_has_the_message_once() -> None:
    """Before the transaction nothing was written; after it the stream has the notices."""
    for stream in each_step(lambda _: die(), lambda stream: stream.write_audit(SIXTY)):
        assert stream.versions("sns") == stream.versions("slack") == {1: False}


def test_a_correction_that_was_killed_at_any_step_is_sent_once() -> None:
    """The same text under the same ids."""

    def begin(stream: Stream) -> None:
        stream.write_audit(SIXTY)
        stream.settle()
        stream.write_audit(TWENTY, version=2)

    for stream in each_step(lambda _: die(), begin):
        assert stream.versions("sns") == stream.versions("slack") == {1: False, 2: True}


@pytest.mark.parametrize(("second", "messages"), [("6", {1}), ("5000", {1, 2})])
def test_of_two_runs_at_once_the_second_has_a_message_only_if_it_is_worse(
    second: str, messages: set[int]
) -> None:
    """Another process decides about the second run at any step of the first one's."""
    first_run, second_run = (
        run_document(RUN, avoidable="6"),
        run_document(ANOTHER, avoidable=second),
    )

    for stream in each_step(
        lambda s: s.write_and_read(second_run), lambda s: s.write_audit(first_run)
    ):
        ids = {body["notice_id"].split("|")[0] for body in stream.posted("sns")}
        assert len(ids) in messages
        assert second == "6" or any(ANOTHER in notice_id for notice_id in ids)
        assert stream.posted("sns") != []


def test_a_newer_version_at_any_step_leaves_nothing_wrong() -> None:
    """The older one is overtaken, or corrected; the newer one waits for nothing."""

    def newer(stream: Stream) -> None:
        stream.write_and_read(NOTHING, version=2)
        assert not stream.decisions.sent

    outcomes = set()
    for stream in each_step(newer, lambda stream: stream.write_audit(SIXTY)):
        assert stream.versions("sns") == stream.versions("slack")
        outcomes.add(json.dumps(stream.versions("sns")))
    assert outcomes == {"{}", '{"1": false, "2": true}'}


def test_who_loses_too_often_comes_back() -> None:
    """A family whose day is always written by somebody else."""
    stream = Stream()
    stream.write_audit(SIXTY)
    write, stream.story.ledger.write_alert = stream.story.ledger.write_alert, lambda *_, **__: False
    stream.read()
    [(letter, attributes)] = stream.decisions.sent
    assert json.loads(letter)["sk"] == "AUDIT#00001"
    assert attributes["why"] == "Too many audits of one family are decided at the same time."
    stream.story.ledger.write_alert = write
    stream.settle()
    assert stream.versions() == {1: False}


@pytest.mark.parametrize("error", [Throttled("busy"), Unavailable("lost")])
def test_a_channel_whose_queue_fails_holds_up_no_other(error: AwsError) -> None:
    """Its notice comes again by its keys, and no message of the family takes its place."""
    stream = Stream()
    stream.story.sns.errors = [error] * 3
    stream.write_audit(SIXTY)
    stream.read()
    stream.read()
    assert stream.versions("slack") == {1: False}
    [(letter, _)] = stream.decisions.sent
    assert json.loads(letter)["sk"] == "NOTICE#00001#sns"
    stream.write_audit(run_document(ANOTHER, avoidable="70"))
    stream.read()
    stream.read_decisions()
    assert len(stream.decisions.sent) == 1
    stream.settle()
    assert stream.versions("sns") == stream.versions("slack") == {1: False}


def test_while_no_queue_answers_the_stream_keeps_its_records() -> None:
    """In their order, from the one that could be kept nowhere."""
    stream = Stream()
    for queue in (stream.story.sns, stream.story.slack, stream.decisions):
        queue.errors = [Throttled("busy")] * 5
    stream.write_audit(SIXTY)
    for _ in range(3):
        stream.read()
    assert [record["dynamodb"]["NewImage"]["sk"]["S"] for record in stream.records] == [
        "NOTICE#00001#sns",
        "NOTICE#00001#slack",
    ]
    stream.settle()
    assert stream.versions("sns") == stream.versions("slack") == {1: False}


def test_a_channel_that_was_switched_off_since_keeps_its_notice_for_a_redrive() -> None:
    """With its reason; the other channel has it."""
    stream = Stream()
    stream.write_audit(SIXTY)
    stream.read(most=1)
    stream.channels = ("sns",)
    stream.read()
    [(letter, attributes)] = stream.undecided.sent
    assert (json.loads(letter)["sk"], attributes["reason"]) == ("NOTICE#00001#slack", "no_channel")
    assert stream.versions("sns") == {1: False}


FEW = Policy(
    floor_usd=Decimal(1),
    channels={
        "sns": ChannelConfig("sns", max_per_hour=1),
        "slack": ChannelConfig("slack", "webhook"),
    },
    routes=Routes(("sns", "slack")),
)
"""One message an hour on the topic."""


def other_families(stream: Stream, *dollars: str) -> None:
    """One run of a family of its own, for each amount."""
    for number, usd in enumerate(dollars):
        name, family = f"run-{number}", f"family-{number}"
        stream.write_audit(document(job=job(name=name, family=family), avoidable_usd=Decimal(usd)))


def test_above_its_most_a_channel_has_one_notice_for_what_is_held_in_the_hour() -> None:
    """The first message that is held stands for them all; another channel has each."""
    stream = Stream(FamilyStory(FEW))
    other_families(stream, "2", "3", "9", "4", "5", "6")
    stream.settle()
    own, held = stream.posted("sns")
    assert (own["payload"]["subject"][:9], held["payload"]) == ("family-0 ", {})
    assert held["held_hour"] == "2026-05-20T13"
    assert len(stream.posted("slack")) == 6
    hour = stream.story.ledger.channel_hour("sns", start_of_hour(NOON))
    assert (hour.sent, hour.held) == (1, 5)
    card = plain.make_payload(held_messages_card(hour))
    assert card["attributes"]["message_kind"]["value"] == "held"
    assert card["message"].split("\n")[:-1] == [
        "And 5 more messages since 13:00 UTC",
        *(headline for headline, _ in hour.largest_messages),
        "and 2 others",
        "All open recommendations: sageaudit advice",
        "All jobs: sageaudit history --since 2026-05-20",
    ]
    stream.clock.move(3600)
    stream.write_audit(document(job=job(name="later", family="later"), avoidable_usd=Decimal(7)))
    stream.settle()
    assert stream.posted("sns")[-1]["payload"]["subject"].startswith("later wasted ")


def test_a_correction_is_never_held() -> None:
    """No list of open advices has it; it is not counted either."""
    stream = Stream(FamilyStory(FEW))
    other_families(stream, "20", "3", "9")
    stream.settle()
    run = job(name="run-0", family="family-0")
    stream.write_audit(document(job=run, avoidable_usd=Decimal(40)), version=2)
    stream.settle()
    posted = [notice["payload"] for notice in stream.posted("sns") if notice["payload"]]
    kinds = [notice["attributes"]["message_kind"]["value"] for notice in posted]
    assert sorted(kinds) == ["correction", "first"]
    hour = stream.story.ledger.channel_hour("sns", start_of_hour(NOON))
    assert (hour.sent, hour.held) == (1, 2)


def test_killed_at_any_step_each_message_of_an_hour_is_counted_once() -> None:
    """Also where another process decides about another family at that step."""

    def begin(stream: Stream) -> None:
        stream.story.policy = FEW
        other_families(stream, "2", "3", "4")

    fourth = document(job=job(name="run-9", family="family-9"), avoidable_usd=Decimal(8))
    for do in (lambda _: die(), lambda stream: stream.write_and_read(fourth)):
        for stream in each_step(do, begin):
            count = 3 + ("run-9" in str(stream.story.ledger.notices))
            hour = stream.story.ledger.channel_hour("sns", start_of_hour(NOON))
            assert (hour.sent, hour.held) == (1, count - 1)
            notices = stream.posted("sns")
            assert sorted("held_hour" in notice for notice in notices) == [False, True]
            assert len(stream.posted("slack")) == count


Event = tuple[int, AwsError | None, AwsError | None, AwsError | None, int, bool]
ERRORS = st.sampled_from(
    (None, AccessDenied("sqs:SendMessage", "no"), Throttled("busy"), Unavailable("lost"))
)
events = st.tuples(
    st.integers(0, 4),  # how many of the next versions are written before
    ERRORS,
    ERRORS,
    ERRORS,
    st.integers(0, 40),  # at which step the process ends, if it comes so far
    st.booleans(),  # whether the stream is read, or the queue of decisions
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(("0", "20", "60")), min_size=1, max_size=4),
    st.lists(events, max_size=12),
)
def test_whatever_happens_both_channels_end_with_the_newest_figures(
    figures: list[str], happened: list[Event]
) -> None:
    """Versions of one run; queues fail, answers are lost, processes end, records come again.

    Each message but the first is marked as a correction.
    """
    stream, left = Stream(), dict(enumerate(figures, start=1))

    def write() -> None:
        version = min(left)
        stream.write_audit(run_document(RUN, avoidable=left.pop(version)), version=version)

    write()
    for versions, sns, slack, decisions, ends, of_stream in happened:
        for _ in range(min(versions, len(left))):
            write()
        answers = ((stream.story.sns, sns), (stream.story.slack, slack))
        for queue, error in (*answers, (stream.decisions, decisions)):
            queue.errors = [error] if error else []
        stream.clock.move(60)
        read = stream.read if of_stream else stream.read_decisions
        read(die_at_step(ends))
    while left:
        write()
    stream.settle()
    shown = stream.versions("sns")
    assert shown == stream.versions("slack")
    sent = sorted(shown)
    assert [shown[version] for version in sent] == [version != sent[0] for version in sent]
    assert (figures[sent[-1] - 1] if sent else "0") == figures[-1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 40)), max_size=12))
def test_in_any_order_no_large_loss_is_lost(happened: list[tuple[int, int, int]]) -> None:
    """Runs of $60, $600, ... $600,000; queues fail, processes end.

    At the end the family's month was told to its tenth at least, and never twice as much.
    """
    stream = Stream()
    runs = {n: run_document(f"train-bert-{n:04d}", avoidable=str(6 * 10**n)) for n in range(1, 6)}

    for number, failing, ends in happened:
        stream.clock.move(30)
        if whole := runs.pop(number, None):
            stream.write_audit(whole)
        for place, queue in enumerate((stream.story.sns, stream.story.slack)):
            queue.errors = [Throttled("queue")] if failing >> place & 1 else []
        stream.read(die_at_step(ends))
    for whole in runs.values():
        stream.write_audit(whole)
    stream.settle()
    ids = [body["notice_id"] for body in stream.posted("sns")]
    group = "111122223333/us-east-1/train-bert"
    alerts = stream.story.ledger.past_alerts(
        stream.story.audit(document(), NOON).key, group
    ).subject_alerts
    assert max(alert.amount for alert in alerts) >= 60_000
    assert len({alert.run for alert in alerts}) == len(ids) == len(stream.posted("slack")) <= 5
