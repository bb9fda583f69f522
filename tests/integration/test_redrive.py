"""Dead letters of the whole flow on the local AWS, and what a redrive makes of them."""

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from local import REGION
from local.recorded import RecordedJob
from local.slack import Answer
from sageaudit.adapters.aws import sqs
from sageaudit.cli.main import main
from sageaudit.workflows.redrive import HIDDEN_S
from tests.integration.whole_flow import Scene, a_failed_job, delivered, renamed, scene

GONE = Answer(404, "no_service")
Redrive = Callable[..., dict[str, Any]]


@pytest.fixture
def redrive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Redrive:
    """Calls the command for the local stack; returns what it prints as JSON."""
    monkeypatch.setattr(sqs, "LONG_POLL_S", 0)  # the local clock stands still

    def call(current_scene: Scene, *words: str) -> dict[str, Any]:
        stack = ("--stack", "sageaudit", "--region", REGION, "--output", "json")
        monkeypatch.setattr(sys, "argv", ["sageaudit", "redrive", *words, *stack])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert int(str(stopped.value.code)) == 0, printed.err
        current_scene.aws.clock.advance(1)  # moto shows a released message only after its moment
        document: dict[str, Any] = json.loads(printed.out)
        return document

    return call


def failures(*names: str) -> list[RecordedJob]:
    """Failed jobs of as many families."""
    return [renamed(a_failed_job(), name) for name in names]


def sent(current_scene: Scene, queue: str, body: str, **attributes: str) -> None:
    """A message in one of the stack's queues."""
    current_scene.aws.session.client("sqs").send_message(
        QueueUrl=current_scene.aws.physical_id(queue),
        MessageBody=body,
        MessageAttributes={
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        },
    )


def test_a_webhook_revoked_for_three_days_loses_nothing(redrive: Redrive) -> None:
    """A redrive before it is mended gives its letter back; after it, each is posted once, unmarked.

    SNS had each already.
    """
    jobs = failures("aaa", "bbb")
    with scene(jobs[0].ended_at) as current_scene:
        current_scene.slack.queue_answers(*[GONE] * 3)
        for job in jobs:
            current_scene.aws.end_job(job)
        current_scene.aws.advance(current_scene.aws.clock.now() + timedelta(days=3))
        assert (current_scene.slack.posts, len(current_scene.aws.mails)) == ([], 2)
        shown = redrive(current_scene, "notices", "--dry-run")
        assert shown["counts"]["moves"] == 2
        assert {letter["reason"] for letter in shown["letters"]} == {"channel_broken"}
        assert all(letter["why"] for letter in shown["letters"])
        # moto counts the 12 hours that a message may be hidden from its send, AWS from its receive:
        # it does not show an old one again at once
        current_scene.aws.clock.advance(HIDDEN_S)
        assert redrive(current_scene, "notices", "--limit", "1")["counts"]["moved"] == 1
        current_scene.aws.advance()
        assert current_scene.slack.posts == []
        current_scene.aws.clock.advance(HIDDEN_S)
        assert redrive(current_scene, "notices")["counts"]["moved"] == 2
        current_scene.aws.advance()
        assert len({*current_scene.headlines()}) == len(current_scene.headlines()) == 2
        assert not any("repeat" in headline for headline in current_scene.headlines())
        assert len(current_scene.aws.mails) == 2
        assert redrive(current_scene, "notices")["letters"] == []


def test_jobs_and_audits_that_were_given_up_are_audited_and_notified_after_a_redrive(
    redrive: Redrive,
) -> None:
    """As SQS moves them, without a reason, and as a function does; what is malformed stays."""
    crashed, aged = failures("aaa", "bbb")
    with scene(crashed.ended_at) as current_scene:
        for job, attributes in ((crashed, {}), (aged, {"reason": "abandoned", "why": "throttled"})):
            current_scene.aws.sagemaker.add(job)
            sent(current_scene, "TriggerFinishedJobsDeadLetters", delivered(job), **attributes)
        shown = redrive(current_scene, "finished", "--dry-run")
        assert {letter["subject"] for letter in shown["letters"]} == {crashed.arn, aged.arn}
        assert {letter["reason"] for letter in shown["letters"]} == {"no_reason", "abandoned"}
        assert redrive(current_scene, "finished")["counts"]["moved"] == 2
        current_scene.aws.advance()
        assert [current_scene.versions(job) for job in (crashed, aged)] == [1, 1]
        assert len(current_scene.slack.posts) == len(current_scene.aws.mails) == 2
        created_ms = int(aged.key.created_at.timestamp() * 1000)
        pk = f"JOB#{aged.arn}#{created_ms}"
        for keys in ({"pk": pk, "sk": "AUDIT#00001"}, {"pk": "JOB#nobody", "sk": "AUDIT#00001"}):
            sent(
                current_scene,
                "NoticesUndecidedAudits",
                json.dumps(keys),
                reason="abandoned",
                why="x",
            )
        notice = {"pk": f"ALERT#{pk}", "sk": "NOTICE#00001#slack"}
        sent(
            current_scene, "NoticesUndecidedAudits", json.dumps(notice), reason="abandoned", why="x"
        )
        counts = redrive(current_scene, "undecided")["counts"]
        assert (counts["moved"], counts["stays"]) == (2, 1)
        current_scene.aws.advance()
        assert len(current_scene.slack.posts) == len(current_scene.aws.mails) == 2, (
            "they were notified before"
        )
