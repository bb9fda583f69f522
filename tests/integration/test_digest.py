"""The digest on the local AWS: once a week and channel, whatever starts it and whenever it ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest

from local.aws import LocalAws
from local.demo import POLICY
from local.functions import OnStep
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.domain.bill.finding import Severity
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Route, Routes
from sageaudit.structs import replace
from tests.integration.whole_flow import Scene, Steps, a_failed_job, scene

BUCKET = "local-reports"
LATER = timedelta(days=7)
TO_ALL = replace(load_policy(POLICY), routes=Routes(("sns", "slack")))
"""Without a route, there is one digest."""


@contextmanager
def a_week_later(policy: Policy = TO_ALL, on_step: OnStep = lambda _: None) -> Iterator[Scene]:
    """A job failed, and was told of; then a week went by."""
    job = a_failed_job()
    with scene(job.ended_at, on_step, policy=policy) as current_scene:
        current_scene.aws.end_job(job)
        current_scene.aws.advance()
        current_scene.aws.clock.advance_to(job.ended_at + LATER)
        yield current_scene


def start(aws: LocalAws) -> None:
    """Starts the digest, and delivers what it wrote."""
    aws.digest()
    aws.advance()


def digests(current_scene: Scene) -> tuple[list[str], list[str]]:
    """The first lines of the digests on Slack, and in mails."""
    posts = [line.strip("*") for line in current_scene.headlines() if "Week to" in line]
    return posts, [mail for mail in current_scene.mails("Subject") if "Week to" in mail]


def test_a_week_has_one_digest_however_often_it_is_started() -> None:
    """Two starts before anything is delivered, and one a day later; the next week has its own."""
    with a_week_later() as current_scene:
        current_scene.aws.digest()
        start(current_scene.aws)
        current_scene.aws.clock.advance(86_400)
        start(current_scene.aws)
        posts, mails = digests(current_scene)
        assert [len(posts), len(mails)] == [1, 1]
        assert posts == mails
        assert posts[0].startswith("Week to ")
        assert posts[0].endswith("lost")
        _the_report_is_behind_its_link(current_scene)
        current_scene.aws.clock.advance(6 * 86_400)
        start(current_scene.aws)
        posts, mails = digests(current_scene)
        assert [len(posts), len(mails)] == [2, 2]
        assert posts[1].endswith(": no job was audited")


def _the_report_is_behind_its_link(current_scene: Scene) -> None:
    """Private, encrypted, and of the days before the digest; no other start wrote another."""
    s3 = current_scene.aws.session.client("s3")
    [stored] = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    page = s3.get_object(Bucket=BUCKET, Key=stored["Key"])
    assert stored["Key"].startswith("sageaudit/20")
    assert page["ServerSideEncryption"] == "AES256"
    assert page["ContentType"] == "text/html; charset=utf-8"
    assert a_failed_job().name in page["Body"].read().decode()
    assert (
        f"/s3/object/{BUCKET}?region=us-east-1&prefix=sageaudit%2F20" in current_scene.mails()[-1]
    )
    assert current_scene.count("ReportNotWritten", "digest") == 0


@pytest.mark.parametrize("step", ["before TransactWriteItems", "after TransactWriteItems"])
def test_a_digest_that_was_killed_is_written_once(step: str) -> None:
    """Before its transaction nothing is there, after it everything is."""
    kill, active = Steps(kill_first=step), [False]

    def on_step(name: str) -> None:
        if active[0]:
            kill(name)

    with a_week_later(on_step=on_step) as current_scene:
        active[0] = True
        current_scene.aws.digest()
        active[0] = False
        assert kill.killed
        for _ in range(2):
            start(current_scene.aws)
        assert [len(found) for found in digests(current_scene)] == [1, 1]


def test_each_route_has_its_own_and_the_default_that_of_all_jobs() -> None:
    """A route by a tag that the history does not show has none, nor one that selects no jobs."""
    rows = (
        Route(owner="mara", channels=("slack",)),
        Route(tag=("team", "x"), channels=("slack", "sns")),
        Route(
            min_usd_per_month=Decimal(1),
            min_month_severity=Severity.LOW,
            rule="failed-spend",
            channels=("slack", "sns"),
        ),
    )
    with a_week_later(replace(TO_ALL, routes=Routes(("sns",), rows))) as current_scene:
        start(current_scene.aws)
        posts, mails = digests(current_scene)
        assert [post.partition(": ")[0] for post in posts] == [
            f"{mails[0].partition(': ')[0]} for owner mara"
        ]
        assert len(mails) == 1
        log = current_scene.aws.functions["digest"].log.getvalue()
        assert "tag team=x: no digest, as tags.show lacks its tag" in log
        assert "min_usd_per_month 1: no digest, as it selects no jobs" in log


def test_a_report_that_takes_long_leaves_the_digest_its_time() -> None:
    """90 seconds before the function ends, the report is given up, and the digest is written."""
    scenes: list[Scene] = []

    def on_step(name: str) -> None:
        if scenes and name == "before PutObject":
            scenes[0].aws.clock.advance(15 * 60 - 90)

    with a_week_later(on_step=on_step) as current_scene:
        scenes.append(current_scene)
        start(current_scene.aws)
        assert current_scene.count("ReportNotWritten", "digest") == 1
        assert [len(found) for found in digests(current_scene)] == [1, 1]
        assert (
            "no time was left to ask PutObject"
            in current_scene.aws.functions["digest"].log.getvalue()
        )


def test_a_digest_without_its_report_says_so_and_counts_it() -> None:
    """The bucket is gone: the digest is sent."""
    with a_week_later() as current_scene:
        current_scene.aws.session.client("s3").delete_bucket(Bucket=BUCKET)
        start(current_scene.aws)
        assert current_scene.count("ReportNotWritten", "digest") == 1
        assert "Report: it could not be written" in current_scene.mails()[-1]
