"""What happens to jobs that end, from the event on the bus to the message, on the local AWS.

Each way of an event and of a notice through the stack is one scene; the in-process worlds of
tests/workflows have what else may become of them.
"""

import json
from datetime import timedelta
from decimal import Decimal

import pytest

from local import demo
from sageaudit.domain.policy.routes import Route, Routes
from sageaudit.output.text.teams import text_lines
from sageaudit.structs import replace
from tests.integration.whole_flow import Steps, a_failed_job, recorded, scene, tuning_set


def test_metrics_that_come_late_are_waited_for_also_by_one_that_is_killed() -> None:
    """The event is sent again; the one audit that comes of it knows the GPU.

    Killed after it was sent, the event is in the queue twice: as it first came, and again.
    """
    job, steps = recorded("profiled-053-g4dn-xlarge"), Steps(kill_first="after SendMessage")
    with scene(job.ended_at, steps) as current_scene:
        current_scene.aws.end_job(job, with_metrics=False)
        current_scene.aws.advance(job.ended_at + timedelta(minutes=10))
        assert current_scene.aws.history().summary(job.key) is None
        current_scene.aws.put_metrics(job)
        current_scene.aws.advance()
        assert steps.killed
        assert current_scene.versions(job) == 1
        assert "gpu-underused" in {found["rule"] for found in current_scene.audit(job)["findings"]}
        assert not current_scene.dead_letters()


def test_a_tuning_job_waits_for_its_children_and_tells_for_them() -> None:
    """Its event may come first; none of its children is told by itself."""
    children, tuning = tuning_set("Failed")
    with scene(tuning.ended_at) as current_scene:
        current_scene.aws.end_job(tuning)
        current_scene.aws.advance(tuning.ended_at + timedelta(minutes=10))
        assert current_scene.aws.history().summary(tuning.key) is None
        for child in children:
            current_scene.aws.end_job(child)
        current_scene.aws.advance()
        assert [current_scene.versions(job) for job in (*children, tuning)] == [1] * 6
        lost = [current_scene.audit(child)["lost_usd"] or Decimal(0) for child in children]
        assert all(lost)
        assert current_scene.audit(tuning)["lost_usd"] == sum(lost)
        [headline] = current_scene.headlines()
        assert headline.startswith(f"*{tuning.name} lost about $0.02 in a tuning job: ")
        assert len(current_scene.aws.mails) == 1
        assert "5 of 5 training jobs" in json.dumps(current_scene.slack.posts)


def test_messages_go_by_their_routes_to_two_slacks_and_a_teams() -> None:
    """Each channel has those of its routes once, the default what no route matches; counted."""
    failed, composed = a_failed_job(), recorded("composed-g4dn-12xlarge")
    routes = Routes(
        default=("sns", "slack"),
        rows=(
            Route(tag=("owner", "mara"), channels=("vision", "research")),
            Route(kind="training", min_usd_per_month=Decimal(5), channels=("research",)),
        ),
    )
    with scene(failed.ended_at, routes=routes) as current_scene:
        for job in (failed, composed):
            current_scene.aws.end_job(job)
            current_scene.aws.advance()
        [lost] = current_scene.slack.payloads_for_channel("slack")
        assert lost["text"].startswith("c7n-job lost about $0.15 in 1 run")
        [vision] = current_scene.slack.payloads_for_channel("vision")
        [research] = current_scene.slack.payloads_for_channel("research")
        assert vision["text"] == next(text_lines(research))
        assert vision["text"].startswith("tile-classifier wasted about $10 in 1 run")
        [mail] = current_scene.aws.mails
        assert "c7n-job" in mail["Body"]
        assert current_scene.count("MessagesUnrouted", "notify") == 1
        assert current_scene.count("NoticesSent", "deliver") == 4
        assert not current_scene.dead_letters()


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
