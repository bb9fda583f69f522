"""Dead letters of the whole flow on the local AWS, and what a redrive makes of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from local import ACCOUNT, REGION
from local.recorded import RecordedJob
from local.slack import Answer
from sageaudit.adapters.aws import dead_letters
from sageaudit.cli.main import main
from sageaudit.cli.support.redrive.redriving import HOLD_S
from tests.integration.whole_flow import Scene, a_failed_job, scene

GONE = Answer(404, "no_service")
SERVER_ERROR = Answer(500, "server_error")
NOTICES = "NoticesNoticesDeadLetters"
Redrive = Callable[..., dict[str, Any]]


@pytest.fixture
def redrive(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Redrive:
    """Calls the command for the local stack; returns what it prints as JSON."""
    monkeypatch.setattr(dead_letters, "LONG_POLL_S", 0)  # the local clock stands still

    def call(one: Scene, *words: str, exit_code: int = 0) -> dict[str, Any]:
        stack = ("--stack", "sageaudit", "--region", REGION, "--output", "json")
        monkeypatch.setattr(sys, "argv", ["sageaudit", "redrive", *words, *stack])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert int(str(stopped.value.code)) == exit_code, printed.err
        one.aws.clock.forward(1)  # moto shows a released message only after its moment
        document: dict[str, Any] = json.loads(printed.out)
        return document

    return call


def failures(count: int) -> list[RecordedJob]:
    """Failed jobs of as many families: each of them is told."""
    job = a_failed_job()
    return [
        replace(
            job,
            describe={
                **job.describe,
                "TrainingJobName": f"{letter * 6}",
                "TrainingJobArn": job.arn.rpartition("/")[0] + f"/{letter * 6}",
            },
        )
        for letter in "abcdefghij"[:count]
    ]


def ended(one: Scene, *jobs: RecordedJob) -> None:
    """These jobs end, and all that follows from it happens."""
    for job in jobs:
        one.aws.ends(job)
    one.aws.advance()


def test_a_webhook_revoked_for_three_days_loses_nothing(redrive: Redrive) -> None:
    """After a new webhook, one redrive posts each message once, unmarked; SNS had each already."""
    jobs = failures(5)
    with scene(jobs[0].ended_at) as one:
        one.slack.will_answer(*[GONE] * 5)
        ended(one, *jobs)
        one.aws.advance(one.aws.clock.now() + timedelta(days=3))
        assert (one.slack.posts, len(one.aws.mails)) == ([], 5)
        shown = redrive(one, "notices", "--dry-run")
        assert shown["counts"]["moves"] == 5
        assert shown["posts_at_most"] == {"slack": 5}
        assert {letter["reason"] for letter in shown["letters"]} == {"channel_broken"}
        assert all(letter["why"] for letter in shown["letters"])
        # moto counts the 12 hours that a message may be hidden from its send, AWS from its receive:
        # it does not show an old one again at once
        one.aws.clock.forward(HOLD_S)
        again = redrive(one, "notices")
        assert again["counts"]["moved"] == 5
        one.aws.advance()
        assert len({*one.headlines()}) == len(one.headlines()) == 5
        assert not any("repeat" in headline for headline in one.headlines())
        assert len(one.aws.mails) == 5
        assert redrive(one, "notices")["letters"] == []


def test_a_message_whose_outcome_is_unknown_twice_is_sent_again_with_its_mark(
    redrive: Redrive,
) -> None:
    """Nobody knows whether Slack has it already."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(Answer(hangs=True), Answer(hangs=True))
        ended(one, job)
        assert len(one.slack.posts) == 2
        shown = redrive(one, "notices", "--dry-run")
        [letter] = shown["letters"]
        assert letter["reason"] == "unknown_outcome"
        redrive(one, "notices")
        one.aws.advance()
        assert len(one.slack.posts) == 3
        assert one.headlines()[2].startswith("(possible repeat) ")
        assert redrive(one, "notices")["letters"] == []


def test_a_letter_and_its_copy_are_posted_once(redrive: Redrive) -> None:
    """As two people leave it who redrive at the same time, or a process that dies midway."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(GONE)
        ended(one, job)
        _copy(one, NOTICES)
        assert redrive(one, "notices", "--dry-run")["posts_at_most"] == {"slack": 1}
        assert redrive(one, "notices")["counts"]["moved"] == 2
        one.aws.advance()
        assert len(one.slack.posts) == 1
        assert redrive(one, "notices")["letters"] == []


def test_a_message_that_was_sent_meanwhile_is_not_posted_again(redrive: Redrive) -> None:
    """Only that mark in the ledger stops a redrive."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(GONE)
        ended(one, job)
        _copy(one, NOTICES)
        redrive(one, "notices", "--limit", "1")
        one.aws.advance()
        assert len(one.slack.posts) == 1
        assert redrive(one, "notices")["counts"]["moved"] == 1
        one.aws.advance()
        assert len(one.slack.posts) == 1


def test_a_letter_of_six_days_has_all_its_tries_again(redrive: Redrive) -> None:
    """Its age begins anew: at a second outage it waits, and is not given up at once."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(GONE)
        ended(one, job)
        one.aws.advance(one.aws.clock.now() + timedelta(days=6))
        redrive(one, "notices")
        one.slack.will_answer(*[Answer(429, "rate_limited", {"Retry-After": "600"})] * 5)
        one.aws.advance(one.aws.clock.now() + timedelta(minutes=30))
        assert not one.slack.posts
        assert redrive(one, "notices", "--dry-run")["letters"] == []
        one.aws.advance()
        assert len(one.slack.posts) == 1


def test_a_channel_that_is_still_broken_gives_its_letters_back(redrive: Redrive) -> None:
    """With their reason; nothing is lost, however often."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(*[GONE] * 3)
        ended(one, job)
        for _ in range(2):
            redrive(one, "notices")
            one.aws.advance()
            [letter] = redrive(one, "notices", "--dry-run")["letters"]
            assert letter["reason"] == "channel_broken"
        assert not one.slack.posts


def test_a_job_whose_event_was_given_up_is_audited_and_told_after_a_redrive(
    redrive: Redrive,
) -> None:
    """Both as SQS moves it, without a reason, and as the audit function gives it up, with one."""
    crashed, aged = failures(2)
    with scene(crashed.ended_at) as one:
        for job, attributes in ((crashed, {}), (aged, {"reason": "gave_up", "why": "throttled"})):
            one.aws.sagemaker.add(job)
            _dead_event(one, job, attributes)
        shown = redrive(one, "finished", "--dry-run")
        assert {letter["job"] for letter in shown["letters"]} == {crashed.arn, aged.arn}
        assert {letter["reason"] for letter in shown["letters"]} == {"no_reason", "gave_up"}
        assert redrive(one, "finished")["counts"]["moved"] == 2
        one.aws.advance()
        assert [one.versions(job) for job in (crashed, aged)] == [1, 1]
        assert len(one.slack.posts) == len(one.aws.mails) == 2
        assert redrive(one, "finished")["letters"] == []


def test_an_audit_without_a_decision_is_decided_about_after_a_redrive(redrive: Redrive) -> None:
    """Whatever kept notify from it."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        ended(one, job)
        body = json.dumps({"pk": "JOB#nobody", "sk": "AUDIT#00001"})
        url = one.aws.physical("NoticesDecisions")
        one.aws.session.client("sqs").send_message(QueueUrl=url, MessageBody=body)
        one.aws.advance()
        [letter] = redrive(one, "undecided", "--dry-run")["letters"]
        assert (letter["reason"], letter["fate"]) == ("malformed_audit", "stays")
        dead = one.aws.physical("NoticesUndecidedAudits")
        told = f"JOB#{job.arn}#{int(job.key.created_at.timestamp() * 1000)}"
        good = json.dumps({"pk": told, "sk": "AUDIT#00001"})
        one.aws.session.client("sqs").send_message(QueueUrl=dead, MessageBody=good)
        counts = redrive(one, "undecided")["counts"]
        assert {fate: count for fate, count in counts.items() if count} == {"moved": 1, "stays": 1}
        one.aws.advance()
        assert len(one.slack.posts) == 1, "it was told before"
        assert redrive(one, "undecided")["counts"]["stays"] == 1


def test_what_is_malformed_comes_back_with_the_same_reason(redrive: Redrive) -> None:
    """Only --all sends it; its neighbours are delivered."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(GONE)
        ended(one, job)
        dead = one.aws.physical(NOTICES)
        for body in ("null", "[1]", "x" * 200_000):
            one.aws.session.client("sqs").send_message(QueueUrl=dead, MessageBody=body)
        assert redrive(one, "notices")["counts"]["stays"] == 3
        one.aws.advance()
        assert len(one.slack.posts) == 1
        finished = one.aws.physical("TriggerFinishedJobsDeadLetters")
        one.aws.session.client("sqs").send_message(QueueUrl=finished, MessageBody="{not json")
        assert redrive(one, "finished", "--all")["counts"]["moved"] == 1
        one.aws.advance()
        [letter] = redrive(one, "finished", "--dry-run")["letters"]
        assert (letter["reason"], letter["fate"]) == ("not_json", "stays")


def _dead_event(one: Scene, job: RecordedJob, attributes: dict[str, str]) -> None:
    """The event of a job among the dead letters, as EventBridge writes it."""
    entry = job.event()
    body = {
        "source": entry["Source"],
        "detail-type": entry["DetailType"],
        "account": ACCOUNT,
        "region": REGION,
        "detail": json.loads(entry["Detail"]),
    }
    one.aws.session.client("sqs").send_message(
        QueueUrl=one.aws.physical("TriggerFinishedJobsDeadLetters"),
        MessageBody=json.dumps(body),
        MessageAttributes={
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        },
    )


def _copy(one: Scene, name: str) -> None:
    """A second copy of the only message in a queue."""
    sqs, url = one.aws.session.client("sqs"), one.aws.physical(name)
    [message] = sqs.receive_message(
        QueueUrl=url, VisibilityTimeout=0, MessageAttributeNames=["All"]
    )["Messages"]
    sqs.send_message(
        QueueUrl=url,
        MessageBody=message["Body"],
        MessageAttributes=message["MessageAttributes"],
    )
