"""Messages on the local AWS as people get them: the line about each job, and commands to paste."""

import re
import shlex
import sys
from datetime import timedelta

import pytest

from local import REGION
from local.demo import COMPOSED, POLICY
from local.recorded import jobs_in_file
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.cli import clock
from sageaudit.cli.main import main
from sageaudit.domain.advice.advice import DecisionAction
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import Routes
from sageaudit.structs import replace
from tests.integration.whole_flow import a_failed_job, recorded, renamed, scene, tuning_set

ELSEWHERE = "eu-north-1"
"""The default region of a reader who is not in the stack's."""


def to_mail(*, lines_to_slack: bool) -> Policy:
    """Alerts by mail alone, and perhaps a line about each job on Slack."""
    policy = replace(load_policy(POLICY), routes=Routes(("sns",)))
    slack = replace(policy.channels["slack"], job_lines=lines_to_slack)
    return replace(policy, channels={**policy.channels, "slack": slack})


def pasted(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code of a command as a shell takes it apart."""
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(str(stopped.value.code))


def test_each_command_of_a_message_works_where_it_is_pasted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a reader whose default region is another one: the answer is in the stack's table."""
    [job] = jobs_in_file(COMPOSED)
    policy = to_mail(lines_to_slack=False)
    with scene(job.ended_at, policy=policy) as current_scene:
        aws = current_scene.aws
        aws.end_job(job)
        aws.advance()
        monkeypatch.setenv("AWS_DEFAULT_REGION", ELSEWHERE)
        monkeypatch.setattr(clock, "utc_now", aws.clock.now)
        [mail] = current_scene.mails()
        commands = re.findall(r"sageaudit [a-z].*$", mail, re.MULTILINE)
        assert [shlex.split(current_scene)[1] for current_scene in commands] == ["rules", "advice"]
        assert [pasted(current_scene, monkeypatch) for current_scene in commands] == [0, 0]
        table = aws.physical_id("HistoryTable")
        written = f"written to the table {table} in {REGION}\n"
        assert capsys.readouterr().err.endswith(written)
        [decision] = DynamoHistory(aws.session.client("dynamodb"), table).decisions()
        assert (decision.action, decision.until) == (
            DecisionAction.SNOOZE,
            (aws.clock.now() + timedelta(days=30)).date(),
        )
        assert decision.recommendation_id in commands[-1]


def test_several_jobs_end_and_each_has_one_line() -> None:
    """A failed one, one that cannot be judged, one with an advice, and a tuning job."""
    failed, healthy = a_failed_job(), recorded("processing-051-completed")
    [composed] = jobs_in_file(COMPOSED)
    children, tuning = tuning_set("Completed")
    jobs = [
        renamed(job, name, later=failed.ended_at - job.ended_at)
        for job, name in ((failed, failed.name), (healthy, "features"), (composed, "classifier"))
    ]
    policy = to_mail(lines_to_slack=True)
    with scene(failed.ended_at, policy=policy) as current_scene:
        aws = current_scene.aws
        for job in (*jobs, *children, tuning):
            aws.advance(max(job.ended_at, aws.clock.now()))
            aws.end_job(job)
        aws.advance()
        lines = [line.strip("*") for line in current_scene.headlines()]
        about = {line.partition(" ")[0]: line for line in lines}
        assert sorted(about) == sorted(job.name for job in (*jobs, tuning))
        assert len(lines) == len(about)
        assert about["classifier"].endswith("avoidable: use 1 x ml.g4dn.2xlarge")
        assert f": {len(children)} trials, " in about[tuning.name]
        mail_count = len(current_scene.mails())
        for job in jobs:
            aws.put_event(job.event())
        aws.advance()
        assert (len(current_scene.headlines()), len(current_scene.mails())) == (
            len(lines),
            mail_count,
        )
