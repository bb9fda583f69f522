"""What happens to jobs that end, from the event on the bus to the message, on the local AWS."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from local import demo
from local.recorded import RecordedJob
from local.slack import Answer
from sageaudit.domain.job.kinds import JobKind
from tests.integration.whole_flow import a_failed_job, recorded, scene, tuning_set


def test_metrics_that_come_late_are_waited_for() -> None:
    """The event is sent again once; the audit that comes of it knows the GPU."""
    job = recorded("profiled-053-g4dn-xlarge")
    with scene(job.ended_at) as one:
        one.aws.ends(job, measured=False)
        one.aws.advance(job.ended_at + timedelta(minutes=10))
        assert one.aws.history().head(job.key) is None
        one.aws.measure(job)
        one.aws.advance()
        assert one.versions(job) == 1
        assert "gpu-underused" in {found["rule"] for found in one.audit(job)["findings"]}


def test_a_tuning_job_waits_for_its_children_and_tells_for_them() -> None:
    """Its event may come first; none of its children is told by itself."""
    children, tuning = tuning_set("Failed")
    with scene(tuning.ended_at) as one:
        one.aws.ends(tuning)
        one.aws.advance(tuning.ended_at + timedelta(minutes=10))
        assert one.aws.history().head(tuning.key) is None
        for child in children:
            one.aws.ends(child)
        one.aws.advance()
        assert [one.versions(job) for job in (*children, tuning)] == [1] * 6
        lost = [one.audit(child)["lost_usd"] or Decimal(0) for child in children]
        assert all(lost)
        assert one.audit(tuning)["lost_usd"] == sum(lost)
        [headline] = one.headlines()
        assert headline.endswith(tuning.name)
        assert len(one.aws.mails) == 1
        assert "5 of 5 training jobs" in json.dumps(one.slack.posts)


def test_a_bad_event_goes_to_the_dead_letters_and_its_batch_goes_on() -> None:
    """One is no event, one forged in another account's name; the job beside them is audited."""
    job = a_failed_job()
    stranger = replace(
        job,
        describe={
            **job.describe,
            "TrainingJobArn": job.arn.replace("111122223333", "999999999999"),
        },
    )
    with scene(job.ended_at) as one:
        queue = one.aws.physical("TriggerFinishedJobs")
        one.aws.session.client("sqs").send_message(QueueUrl=queue, MessageBody="{not json")
        one.aws.put_event(stranger.event())
        one.aws.ends(job)
        one.aws.advance()
        assert one.versions(job) == 1
        reasons = [
            letter["MessageAttributes"]["reason"]["StringValue"] for letter in one.dead_letters()
        ]
        assert sorted(reasons) == ["not_json", "wrong_account"]
        log = one.aws.functions["audit"].log.getvalue()
        assert log.count('"record rejected"') == 2
        assert log.count('"RejectedEvents":[1') == 2


def test_a_job_that_is_gone_is_recorded_with_its_reason() -> None:
    """It may only be too early: it is looked for twice, then nobody is told."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.aws.put_event(job.event())
        one.aws.advance()
        assert "there is no training job" in (one.head(job).unauditable or "")
        assert one.versions(job) == 1
        assert not one.slack.tried
        assert not one.dead_letters()


def test_a_replayed_event_is_taken() -> None:
    """AWS refuses `aws.*` sources from its customers: replays have a source of their own."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.aws.sagemaker.add(job)
        one.aws.put_event(job.event(source="sageaudit.replay"))
        one.aws.advance()
        assert one.versions(job) == 1


def test_a_slack_that_asks_to_wait_is_waited_for_and_holds_up_nothing() -> None:
    """The other channel is told meanwhile, the next job audited; then Slack has each once."""
    first, second = a_failed_job(), _another_failure()
    with scene(first.ended_at) as one:
        one.slack.will_answer(*[Answer(429, "rate_limited", {"Retry-After": "600"})] * 2)
        one.aws.ends(first)
        one.aws.ends(second)
        one.aws.advance(one.aws.clock.now() + timedelta(seconds=360))
        assert [one.versions(job) for job in (first, second)] == [1, 1]
        assert len(one.aws.mails) == 2
        assert not one.slack.posts
        one.aws.advance()
        assert sorted(one.headlines()) == sorted(set(one.headlines()))
        assert len(one.slack.posts) == 2
        assert not one.dead_letters()


@pytest.mark.parametrize("broken", [Answer(500, "server_error"), Answer(503, "busy")])
def test_a_slack_that_fails_once_gets_a_repeat_and_it_says_so(broken: Answer) -> None:
    """Nobody knows whether it had posted the first."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(broken)
        one.aws.ends(job)
        one.aws.advance()
        [headline] = one.headlines()
        assert headline.startswith("(possible repeat) ")
        assert one.slack.tried == 2
        assert not one.dead_letters()


def test_a_slack_that_hangs_may_get_a_repeat_and_it_says_so() -> None:
    """Nobody knows whether the first was posted."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(Answer(hangs=True))
        one.aws.ends(job)
        one.aws.advance()
        first, second = one.headlines()
        assert second == f"(possible repeat) {first}"
        assert len(one.aws.mails) == 1


def test_a_revoked_webhook_is_given_up_and_the_other_channel_told() -> None:
    """No retry mends it; it is counted and logged."""
    job = a_failed_job()
    with scene(job.ended_at) as one:
        one.slack.will_answer(*[Answer(404, "no_service")] * 3)
        one.aws.ends(job)
        one.aws.advance()
        assert not one.slack.posts
        assert len(one.aws.mails) == 1
        assert '"channel_broken"' in one.aws.functions["deliver"].log.getvalue()
        [dead] = one.aws.messages("NoticesNoticesDeadLetters")
        assert dead["MessageAttributes"]["reason"]["StringValue"] == "channel_broken"


def test_one_message_for_a_family_and_day() -> None:
    """The second failure of the day is recorded, and no more."""
    first = a_failed_job()
    again = _named(first, "c7n-job-2018-01-12-19-00-00")
    with scene(first.ended_at) as one:
        for job in (first, again):
            one.aws.ends(job)
            one.aws.advance()
        assert one.versions(again) == 1
        assert len(one.slack.posts) == 1


def test_the_demo_names_a_job_that_is_not_audited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its reason, and a code that fails the build."""
    job = a_failed_job()
    broken = replace(job, describe={**job.describe, "ResourceConfig": {"InstanceCount": -1}})
    monkeypatch.setattr(demo, "recorded_jobs", lambda: [broken])
    assert demo.main() == 1
    assert f"{job.name} was not audited: its Describe answer cannot be read" in (
        capsys.readouterr().err
    )


def _another_failure() -> RecordedJob:
    return _named(a_failed_job(), "another-family")


def _named(job: RecordedJob, name: str) -> RecordedJob:
    assert job.kind is JobKind.TRAINING
    arn = f"{job.arn.rpartition('/')[0]}/{name}"
    return replace(job, describe={**job.describe, "TrainingJobName": name, "TrainingJobArn": arn})
