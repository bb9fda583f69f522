"""A backfill on the local AWS: the past is audited, and nobody hears of it."""

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from msgspec import Struct

from local import REGION
from local.recorded import RecordedJob
from local.sagemaker import RecordedSageMaker
from sageaudit.cli.commands import backfill as command
from sageaudit.cli.main import main
from sageaudit.structs import replace
from tests.integration.whole_flow import Scene, a_failed_job, renamed, scene

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


class Past(Struct, frozen=True):
    """A stack that was deployed 40 minutes ago, and jobs that dear messages would be about."""

    scene: Scene
    lists: RecordedSageMaker
    call: Callable[..., str]

    def job(self, name: str, ended_ago: timedelta) -> RecordedJob:
        """One that ended so long before the deployment."""
        job, start = a_failed_job(), self.scene.aws.clock.now()
        past_job = renamed(job, name, later=start - ended_ago - job.ended_at)
        self.lists.add(past_job)
        self.scene.aws.sagemaker.add(past_job)
        return past_job

    def versions(self, *jobs: RecordedJob) -> list[int]:
        """How many versions each audit has."""
        return [self.scene.versions(job) for job in jobs]


@pytest.fixture
def past(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Past]:
    """The command asks the same account with a session of its own."""
    with scene(
        datetime.now(UTC).replace(microsecond=0) - 40 * MINUTE, sweeps=True
    ) as current_scene:
        session: Any = boto3.Session(region_name=REGION)
        lists = RecordedSageMaker(session, current_scene.aws.clock.now)
        monkeypatch.setattr(command, "open_session", lambda *_: session)

        def call(*words: str | Path, code: int = 0) -> str:
            given = [] if words[0] == "scan" else ["backfill", "--stack", "sageaudit"]
            monkeypatch.setattr(sys, "argv", ["sageaudit", *given, *map(str, words)])
            capsys.readouterr()
            with pytest.raises(SystemExit) as stopped:
                main()
            said = capsys.readouterr().err
            assert int(str(stopped.value.code)) == code, said
            return said

        yield Past(current_scene, lists, call)


def test_the_past_is_audited_once_and_nobody_is_told(past: Past) -> None:
    """What the first sweep looked back at is not sent again; what it must find is left to it."""
    current_scene = past.scene
    old, older = past.job("old", 3 * DAY), past.job("older", 80 * DAY)
    swept = past.job("swept", 5 * HOUR)
    assert "has not swept yet" in past.call("--since", "90d", "--yes", code=2)
    current_scene.aws.advance(current_scene.aws.clock.now() + 20 * MINUTE)
    assert past.versions(swept, old, older) == [1, 0, 0]
    recent = past.job("recent", 5 * MINUTE)
    said = past.call("--since", "90d", "--yes", "--per-minute", "6000")
    assert "metrics with a period of an hour at best" in said.splitlines()[0]
    assert "4 jobs: 2 to send, 1 audited, 1 too recent" in said
    assert "costs <$0.01" in said
    assert "2 of 2 jobs sent" in said
    current_scene.aws.advance(current_scene.aws.clock.now() + 5 * MINUTE)
    assert past.versions(swept, old, older, recent) == [1, 1, 1, 0]
    assert "4 jobs: 3 audited, 1 too recent" in past.call("--since", "90d", "--yes")
    current_scene.aws.advance(current_scene.aws.clock.now() + MINUTE)
    assert past.versions(swept, old, older) == [1, 1, 1]
    assert (
        current_scene.slack.post_count,
        current_scene.aws.mails,
        current_scene.dead_letters(),
    ) == (0, [], [])
    today = replace(recent, describe={**past.job("today", -MINUTE).describe})
    current_scene.aws.end_job(today)
    current_scene.aws.advance(current_scene.aws.clock.now() + 10 * MINUTE)
    assert len(current_scene.slack.posts) == 1, "one like them is told"


def test_a_scans_file_is_written_and_nobody_is_told(past: Past, tmp_path: Path) -> None:
    """Its versions come by the stream to `notify`, as any other."""
    current_scene = past.scene
    jobs = [past.job("old", 3 * DAY), past.job("older", 80 * DAY)]
    for job in jobs:
        (tmp_path / f"{job.name}.json").write_text(json.dumps({"describe": dict(job.describe)}))
    file = tmp_path / "history.db"
    past.call("scan", "--recordings", tmp_path, "--history", file)
    current_scene.aws.advance(current_scene.aws.clock.now() + 20 * MINUTE)
    assert "2 jobs: 2 written to sageaudit-" in past.call("--from-history", file, "--yes")
    current_scene.aws.advance(current_scene.aws.clock.now() + 10 * MINUTE)
    assert past.versions(*jobs) == [1, 1]
    decided = current_scene.aws.functions["notify"].log.getvalue()
    assert decided.count("it ended before sageaudit was installed") == 2
    assert (current_scene.slack.post_count, current_scene.aws.mails) == (0, [])
    assert "2 jobs: 2 audited" in past.call("--from-history", file, "--yes")
