"""The line about each job that ends: who gets one, once, and what it says."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from sageaudit.domain.alert.alert import start_of_hour
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig, Route, Routes
from sageaudit.structs import replace
from tests.fakes.calls import NOON, die
from tests.fakes.documents import document, job
from tests.fakes.family import FamilyStory, is_suppressed, run_document
from tests.fakes.sample_documents import rollup_document, unauditable_document
from tests.fakes.stream import Stream
from tests.workflows.notify.test_outbox import each_step

RUN = "train-bert-0001"
HEALTHY, SIXTY, NOT_MUCH = (run_document(RUN, avoidable=usd) for usd in ("0", "60", "0.40"))
CHANNELS = {"sns": ChannelConfig("sns"), "slack": ChannelConfig("slack", "webhook", job_lines=True)}
ASKED = Policy(channels=CHANNELS, routes=Routes(("sns",)))
"""Alerts go to the topic, and a line about each job to Slack."""
BOTH = replace(ASKED, routes=Routes(("sns", "slack")))
"""Slack gets alerts too."""


def stream_with_policy(policy: Policy = ASKED) -> Stream:
    """A stream whose jobs are decided about by this policy."""
    return Stream(FamilyStory(policy))


def lines(stream: Stream, channel: str = "slack") -> list[str]:
    """The first lines of what a channel is posted."""
    payloads = [notice["payload"] for notice in stream.posted(channel)]
    return [payload.get("text") or payload["subject"] for payload in payloads]


def lines_about(policy: Policy, *audits: AuditDocument, channel: str = "slack") -> list[str]:
    """The first lines that a channel gets about these audits."""
    stream = stream_with_policy(policy)
    for audit in audits:
        stream.write_audit(audit)
    stream.settle()
    return lines(stream, channel)


def test_a_healthy_job_has_a_line_on_the_channel_that_asks_for_one_and_no_alert() -> None:
    """By default nobody asks."""
    assert lines_about(ASKED, HEALTHY) == [f"{RUN} completed: $0.01, nothing to change"]
    assert lines_about(ASKED, HEALTHY, channel="sns") == []
    assert (
        lines_about(
            replace(ASKED, channels={**CHANNELS, "slack": ChannelConfig("slack", "w")}), HEALTHY
        )
        == []
    )


def test_a_line_needs_no_floor_and_the_present_rule_stays() -> None:
    """40 cents are under the floor of $5: a line, and no alert."""
    assert lines_about(ASKED, NOT_MUCH) == [
        f"{RUN} completed: $0.40, all avoidable: look at the audit"
    ]
    assert lines_about(ASKED, NOT_MUCH, channel="sns") == []
    assert len(lines_about(ASKED, SIXTY, channel="sns")) == 1


def test_the_alert_is_the_line_where_both_go_to_one_channel() -> None:
    """Two messages about one job would say the same."""
    [alert] = lines_about(BOTH, SIXTY)
    assert "$60" in alert
    assert lines_about(BOTH, HEALTHY) == [f"{RUN} completed: $0.01, nothing to change"]


def test_a_later_version_sends_no_line() -> None:
    """Whether it found more or less; it may cause an alert, which is news."""
    stream = stream_with_policy(BOTH)
    stream.write_audit(HEALTHY)
    stream.settle()
    for version, audit in ((2, NOT_MUCH), (3, HEALTHY), (4, SIXTY)):
        stream.write_audit(audit, version=version)
        stream.settle()
    first, alert = lines(stream)
    assert first == f"{RUN} completed: $0.01, nothing to change"
    assert alert.startswith("train-bert")


def test_a_line_that_comes_after_the_alert_of_a_later_version_is_left_out() -> None:
    """The first version was set aside for a while; what it would say has been said."""
    stream = stream_with_policy(BOTH)
    stream.write_audit(HEALTHY)
    stream.write_and_read(SIXTY, version=2)
    stream.settle()
    assert stream.versions("slack") == {2: False}


@pytest.mark.parametrize("policy", [ASKED, BOTH])
@pytest.mark.parametrize("audit", [HEALTHY, SIXTY])
def test_killed_at_any_step_each_channel_has_one_message(
    policy: Policy, audit: AuditDocument
) -> None:
    """The line is written in the transaction of the alert, or in one of its own."""

    def begin(stream: Stream) -> None:
        stream.story.policy = policy
        stream.write_audit(audit)

    for stream in each_step(lambda _: die(), begin):
        assert stream.versions("slack") == {1: False}
        assert stream.versions("sns") == ({1: False} if audit is SIXTY else {})


@pytest.mark.parametrize("policy", [ASKED, BOTH])
def test_delivered_at_any_step_to_another_process_it_is_written_once(policy: Policy) -> None:
    """Both decide about the same version at once."""
    for audit in (HEALTHY, SIXTY):

        def again(stream: Stream, audit: AuditDocument = audit) -> None:
            stream.write_and_read(audit)

        def begin(stream: Stream, audit: AuditDocument = audit) -> None:
            stream.story.policy = policy
            stream.write_audit(audit)

        for stream in each_step(again, begin):
            assert len(stream.posted("slack")) == 1


def test_an_alert_of_a_newer_version_at_any_step_leaves_no_line_after_it() -> None:
    """Slack has the alert, and a line only where that was written before."""
    outcomes = set()

    def begin(stream: Stream) -> None:
        stream.story.policy = BOTH
        stream.write_audit(HEALTHY)

    for stream in each_step(lambda s: s.write_and_read(SIXTY, version=2), begin):
        versions = [int(notice["notice_id"].split("|")[1]) for notice in stream.posted("slack")]
        outcomes.add(tuple(versions))
    assert outcomes == {(2,), (1, 2)}


def test_trials_have_no_line_and_the_tuning_job_says_how_many_they_were() -> None:
    """Their cost is its cost."""
    tuning = rollup_document()
    arn = "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/sweep-7"
    tuning["job"]["family"] = arn
    trials = (
        document(job=job(name=f"sweep-7-{n:03d}", parent=arn, family=arn)) for n in range(1, 13)
    )
    [line] = lines_about(ASKED, *trials, tuning)
    assert line.startswith("sweep-7 completed: 12 trials, $12.30, $3.80 avoidable: use")


def test_a_step_of_a_pipeline_has_a_line_of_its_own() -> None:
    """A pipeline is no roll-up: its cost is not the sum of its jobs."""
    pipeline = "arn:aws:sagemaker:us-east-1:111122223333:pipeline/nightly/execution/x"
    step = document(job=job(name="prepare", parent=pipeline), findings=[], avoidable_usd=Decimal(0))
    assert lines_about(ASKED, step) == ["prepare completed: $4.55, nothing to change"]


def test_a_job_that_could_not_be_audited_has_a_line_that_says_so() -> None:
    """No other message is about it."""
    assert lines_about(ASKED, unauditable_document()) == [
        (
            "train-bert-0412 completed: could not be audited: SageMaker has no training job of "
            "this name"
        )
    ]


@pytest.mark.parametrize(
    ("change", "ended_at"),
    [
        (lambda policy: replace(policy, mode="observe"), NOON),
        (lambda policy: policy, NOON - timedelta(days=31)),
        (lambda policy: policy, datetime(2026, 5, 1, tzinfo=UTC)),
    ],
    ids=["observe", "long ago", "before the installation"],
)
def test_in_mode_observe_and_about_the_past_there_is_no_line(
    change: Callable[[Policy], Policy], ended_at: datetime
) -> None:
    """As there is no alert."""
    stream = stream_with_policy(change(ASKED))
    stream.story.installed_at = datetime(2026, 5, 2, tzinfo=UTC)
    stream.write_audit(run_document(RUN, avoidable="60", ended_at=ended_at))
    stream.settle()
    assert stream.posted("slack") == stream.posted("sns") == []


@pytest.mark.parametrize(("owner", "count"), [("anna", 1), ("ben", 0), (None, 0)])
def test_a_route_asks_for_lines_about_its_own_jobs(owner: str | None, count: int) -> None:
    """Its other messages go by the routes as before."""
    route = Route(owner="anna", channels=("slack",), job_lines=True)
    channels = {**CHANNELS, "slack": ChannelConfig("slack", "webhook")}
    policy = Policy(channels=channels, routes=Routes(("sns",), (route,)))
    audit = document(job=job(name=RUN, owner=owner), findings=[], avoidable_usd=Decimal(0))
    assert len(lines_about(policy, audit)) == count


def test_lines_above_the_most_of_an_hour_are_held_and_counted() -> None:
    """One message after the hour stands for them."""
    few = replace(CHANNELS["slack"], max_per_hour=2)
    stream = stream_with_policy(replace(ASKED, channels={**CHANNELS, "slack": few}))
    for number in range(5):
        stream.write_audit(run_document(f"healthy-{number}", avoidable="0"))
    stream.settle()
    hour = stream.story.ledger.channel_hour("slack", start_of_hour(NOON))
    assert (hour.sent, hour.held) == (2, 3)
    posted: list[dict[str, Any]] = stream.posted("slack")
    assert [bool(notice["payload"]) for notice in posted] == [True, True, False]


def test_subscriptions_can_leave_the_lines_out() -> None:
    """By `message_kind` = `job`."""
    topic = replace(CHANNELS["sns"], job_lines=True)
    stream = stream_with_policy(replace(ASKED, channels={**CHANNELS, "sns": topic}))
    stream.write_audit(HEALTHY)
    stream.settle()
    [notice] = stream.posted("sns")
    assert notice["payload"]["attributes"]["message_kind"]["value"] == "job"
    assert "\n" not in notice["payload"]["message"].strip()
    assert json.dumps(notice["payload"]).count(RUN) == 2


def test_the_notification_says_which_channels_get_the_line() -> None:
    """Also where there is no alert."""
    story = FamilyStory(ASKED)
    assert is_suppressed(story.write_and_decide(HEALTHY, NOON))
    assert story.notification
    assert story.notification.job_line
    assert story.notification.job_line.destination.channels == ("slack",)
    assert is_suppressed(story.write_and_decide(HEALTHY, NOON))
    assert story.notification.job_line is None
