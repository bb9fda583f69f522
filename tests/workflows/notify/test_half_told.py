"""A message that some channels may have and others have not: what later tries and versions do.

In each story Slack's queue took the notice of version 1, and SNS's queue did not yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from notify.handler import decide_message
from sageaudit.adapters.lambda_runtime.batch import ComesBack
from sageaudit.adapters.lambda_runtime.message import SqsMessage
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.domain.alert.backoff import GIVE_UP_AFTER
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.errors import AccessDenied, AwsError, Throttled, Unavailable
from sageaudit.ports import History, Queue, TellLedger
from sageaudit.workflows.notify.decide import (
    LEASE_S,
    Later,
    NewAudit,
    NotifyDependencies,
    Queued,
    Quiet,
    notify,
)
from tests.fakes.delivering import Killed, Stepped
from tests.fakes.telling import MORNING, FamilyStory, run_document

M, H = timedelta(minutes=1), timedelta(hours=1)
LEASE = timedelta(seconds=LEASE_S)
RUN = "train-bert-0001"
SIXTY, TWENTY, NOTHING = (run_document(RUN, avoidable=usd) for usd in ("60", "20", "0"))
ANOTHER = run_document("train-bert-0002", avoidable="70")


def subjects(story: FamilyStory) -> list[str]:
    """What SNS has, in order."""
    return [json.loads(body)["payload"]["subject"] for body, _ in story.sns.sent]


def on_slack(story: FamilyStory) -> list[str]:
    """What Slack has, each notice once: its first line."""
    notices = {json.loads(body)["notice_id"]: body for body, _ in story.queue.sent}
    return [json.loads(body)["payload"]["text"].split("\n", 1)[0] for body in notices.values()]


def new(story: FamilyStory, whole: AuditDocument, at: datetime, version: int = 1) -> NewAudit:
    """An audit that was written and not yet decided about."""
    audit = story.audit(whole, at, version=version)
    story.history.documents[audit.key, version] = whole
    return audit


def half_told(at: datetime = MORNING) -> tuple[FamilyStory, NewAudit]:
    """Version 1 has $60; Slack's queue has its notice."""
    story = FamilyStory()
    first = new(story, SIXTY, at)
    story.sns.answers[:] = [Throttled("sns")]
    assert isinstance(story.decided(first, at), Throttled)
    return story, first


def assert_corrected(story: FamilyStory) -> None:
    """Both channels have the message and then a correction of it."""
    for texts in (subjects(story), on_slack(story)):
        assert len(texts) == 2, texts
        assert "Correction" not in texts[0]
        assert "Correction" in texts[1]


def test_a_try_that_queues_nothing_gives_back_no_claim_of_an_earlier_try() -> None:
    """SNS gets the notice that Slack has, though another run was told in between."""
    story, first = half_told()
    story.sns.answers[:], story.queue.answers[:] = [Throttled("sns")], [Throttled("slack")]
    assert isinstance(story.decided(first, MORNING + M), Throttled)
    assert isinstance(story.audited(ANOTHER, MORNING + 2 * M), Later)
    assert isinstance(story.audited(ANOTHER, MORNING + 2 * M, now=MORNING + 2 * M + LEASE), Queued)
    assert isinstance(story.decided(first, MORNING + 10 * M), Queued)
    assert f"{first.name}|sns" in story.notice_ids()


def test_a_newer_version_waits_after_such_a_try_and_then_corrects() -> None:
    """Slack has no two messages that contradict each other without a mark."""
    story, first = half_told()
    story.sns.answers[:], story.queue.answers[:] = [Throttled("sns")], [Throttled("slack")]
    story.decided(first, MORNING + M)
    second = new(story, TWENTY, MORNING + 2 * M, 2)
    assert isinstance(story.decided(second, MORNING + 2 * M), Later)
    assert isinstance(story.decided(second, MORNING + 2 * H), Later)
    assert isinstance(story.decided(first, MORNING + 3 * H), Queued)
    assert isinstance(story.decided(second, MORNING + 4 * H), Queued)
    assert_corrected(story)


@pytest.mark.parametrize(
    ("error", "stands"),
    [(Unavailable("no answer"), True), (AccessDenied("sqs:SendMessage", "no"), False)],
)
def test_a_claim_is_given_back_only_when_no_queue_can_have_a_notice(
    error: AwsError, stands: bool
) -> None:
    """After a time-out a queue may have it: then the audit is told, whatever came in between."""
    story = FamilyStory()
    first = new(story, SIXTY, MORNING)
    story.sns.answers[:], story.queue.answers[:] = [Throttled("sns")], [error]
    assert isinstance(story.decided(first, MORNING), AwsError)
    assert isinstance(story.audited(ANOTHER, MORNING + M), Later) is stands
    story.audited(ANOTHER, MORNING + M, now=MORNING + 10 * M)
    assert isinstance(story.decided(first, MORNING + 20 * M), Queued) is stands


def test_a_version_of_the_next_day_corrects_what_was_half_told_before_midnight() -> None:
    """The claim is the run's, not only that of its family's day."""
    night = MORNING.replace(hour=23, minute=59)
    story, first = half_told(night)
    second = new(story, TWENTY, night + 2 * M, 2)
    assert isinstance(story.decided(second, night + 2 * M), Later)
    assert isinstance(story.decided(first, night + 3 * M), Queued)
    assert isinstance(story.decided(second, night + 10 * M), Queued)
    assert_corrected(story)


def test_a_version_in_another_family_corrects_what_was_half_told_in_the_first() -> None:
    """The tags that name the family were read later."""
    story, first = half_told()
    moved = cast("AuditDocument", {**TWENTY, "job": {**TWENTY["job"], "family": "team-x"}})
    second = new(story, moved, MORNING + 2 * M, 2)
    assert isinstance(story.decided(second, MORNING + 2 * M), Later)
    assert isinstance(story.decided(first, MORNING + 3 * M), Queued)
    assert isinstance(story.decided(second, MORNING + 10 * M), Queued)
    assert_corrected(story)


def test_a_message_that_began_is_finished_though_the_family_fell_under_the_floor() -> None:
    """It is not decided again: SNS gets the words that Slack has."""
    story = FamilyStory()
    story.history.others_usd = Decimal(3)
    first = new(story, run_document(RUN, avoidable="3"), MORNING)
    story.sns.answers[:] = [Throttled("sns")]
    story.decided(first, MORNING)
    story.history.others_usd = Decimal(0)
    assert isinstance(story.decided(first, MORNING + M), Queued)
    assert isinstance(story.audited(NOTHING, MORNING + 2 * H, version=2), Queued)
    assert len(subjects(story)) == len(on_slack(story)) == 2


def given_up() -> tuple[FamilyStory, NewAudit]:
    """SNS's queue refused for as long as the audit was tried."""
    story, first = half_told()
    for hours in range(1, 85):
        story.sns.answers[:] = [Throttled("sns")]
        story.decided(first, MORNING + hours * H)
    story.sns.answers.clear()
    return story, first


def test_a_version_corrects_what_an_audit_that_was_given_up_told_on_one_channel() -> None:
    """A redrive then does not bring the old figures."""
    story, first = given_up()
    assert isinstance(story.audited(NOTHING, MORNING + 87 * H, version=2), Queued)
    assert isinstance(story.decided(first, MORNING + 88 * H), Quiet)
    assert len(subjects(story)) == 1
    assert "Correction" in subjects(story)[0]
    assert "Correction" in on_slack(story)[1]


def test_a_version_that_changes_nothing_leaves_it_to_a_redrive_to_finish() -> None:
    """What Slack has still holds; a third version corrects it all the same."""
    story, first = given_up()
    same = run_document(RUN, avoidable="60.30")
    assert isinstance(story.audited(same, MORNING + 87 * H, version=2), Quiet)
    assert isinstance(story.decided(first, MORNING + 88 * H), Queued)
    assert isinstance(story.audited(TWENTY, MORNING + 89 * H, version=3), Queued)
    assert_corrected(story)


def test_what_was_taken_over_stays_known_where_its_correction_could_not_be_queued() -> None:
    """The next try of version 2 corrects it still, and version 1 stays quiet."""
    story, first = given_up()
    story.sns.answers[:], story.queue.answers[:] = [Throttled("sns")], [Throttled("slack")]
    second = new(story, NOTHING, MORNING + 87 * H, 2)
    assert isinstance(story.decided(second, MORNING + 87 * H), Throttled)
    assert isinstance(story.decided(first, MORNING + 88 * H), Quiet)
    assert isinstance(story.decided(second, MORNING + 89 * H), Queued)
    assert "Correction" in on_slack(story)[1]


def test_a_version_that_would_itself_be_given_up_waits_no_longer() -> None:
    """It came just after version 1, whose time ends as its own does."""
    story, _ = half_told()
    second = new(story, TWENTY, MORNING + M, 2)
    assert isinstance(story.decided(second, MORNING + GIVE_UP_AFTER), Later)
    assert isinstance(story.decided(second, MORNING + M + GIVE_UP_AFTER), Queued)
    assert "Correction" in on_slack(story)[1]


def stepping(story: FamilyStory, step: Callable[[], None]) -> NotifyDependencies:
    """The family, with a step before and after each call to the table and the queues."""
    deps = story.dependencies()
    queues = {name: cast("Queue", Stepped(queue, step)) for name, queue in deps.queues.items()}
    return replace(
        deps,
        ledger=cast("TellLedger", Stepped(story.ledger, step)),
        history=cast("History", Stepped(story.history, step)),
        queues=queues,
    )


def interrupted(comes: int, ends: int | None) -> tuple[FamilyStory, bool]:
    """Version 2 is written and decided at one step of version 1; at another version 1 ends."""
    story, came, left = FamilyStory(), list[NewAudit](), list[NewAudit]()
    first, numbers = new(story, SIXTY, MORNING), iter(range(1_000))

    def step() -> None:
        number = next(numbers)
        if number == comes:
            second = new(story, NOTHING, MORNING, 2)
            came.append(second)
            left.extend(undecided(story, [second], MORNING))
        if number == ends:
            raise Killed

    try:
        notify(first, stepping(story, step), now=MORNING)
    except (Killed, AwsError):
        left.append(first)
    now = MORNING
    for _ in range(4):
        now += LEASE
        left = undecided(story, left, now)
    assert not left
    return story, bool(came)


def undecided(story: FamilyStory, audits: list[NewAudit], now: datetime) -> list[NewAudit]:
    """Which of these have to come again."""
    return [one for one in audits if isinstance(story.decided(one, now), Later | AwsError)]


@pytest.mark.parametrize("after", [None, 0, 1, 2, 3, 4, 6, 8])
def test_a_version_with_nothing_to_tell_comes_at_any_step_and_nothing_wrong_stays(
    after: int | None,
) -> None:
    """The older one is not told, or is corrected; also where its process ends some steps later."""
    for comes in range(100):
        story, came = interrupted(comes, None if after is None else comes + after)
        if not came:
            assert comes > 10
            return
        texts = on_slack(story)
        assert len(texts) in (0, 2), (comes, texts)
        assert all("Correction" in text for text in texts[1:])
        assert len(subjects(story)) >= len(texts)
    raise AssertionError("it never ended")


class Waiting:
    """A message of the queue of decisions, from delivery to delivery."""

    def __init__(self, audit: NewAudit) -> None:
        self.body = json.dumps(
            {"pk": audit.pk, "sk": f"AUDIT#{audit.version:05d}", "written_at": 1779267600}
        )

    def received(self, times: int) -> SqsMessage:
        attributes = {"ApproximateReceiveCount": str(times)}
        return SqsMessage({"messageId": "m", "body": self.body, "attributes": attributes})


def test_a_version_that_waits_for_days_is_received_less_than_a_hundred_times() -> None:
    """SQS moves a message away after 120 receives, without a reason; an hour is the longest."""
    story, _ = half_told()
    second = new(story, TWENTY, MORNING + M, 2)
    now, times, waits = MORNING + M, 0, list[int]()
    while now < MORNING + GIVE_UP_AFTER:
        times += 1
        message: Any = Waiting(second).received(times)
        with pytest.raises(ComesBack) as waiting:
            decide_message(message, story.dependencies(), Report({}), now=now)
        waits.append(waiting.value.wait_s)
        now += timedelta(seconds=waits[-1])
    assert waits[0] == LEASE_S - 60 + 1
    assert max(waits) <= 3_600
    assert times < 110
