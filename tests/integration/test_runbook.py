"""Each entry of the runbook, followed on the local AWS.

A failure is provoked, the alarm is raised by what CloudWatch would see, the entry's queries and
commands show what happened, its advice is done, and the alarm is over.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner
from msgspec import Struct

from local import REGION
from local.functions import LocalFunction
from local.recorded import RecordedJob
from local.slack import Answer
from local.stack import TEMPLATE
from sageaudit.adapters.aws import sqs
from sageaudit.cli import main
from sageaudit.rules import catalogue
from sageaudit.structs import replace
from tests.fakes import log_insights, runbook
from tests.integration.alarm_states import AlarmStates
from tests.integration.whole_flow import Scene, a_failed_job, renamed, scene

ALARMS = {
    key.removeprefix("Alarms")[:-8]: resource["Properties"]
    for key, resource in json.loads(TEMPLATE.read_text(encoding="utf-8"))["Resources"].items()
    if resource["Type"] == "AWS::CloudWatch::Alarm"
}


@dataclass(slots=True)
class World:
    """A scene in which calls of AWS can be made to fail, with the states of its alarms."""

    scene: Scene
    alarms: AlarmStates
    faults: dict[str, Exception]

    @property
    def aws(self) -> Any:
        """The local AWS."""
        return self.scene.aws

    def ask(self, entry: str, function: str) -> list[list[dict[str, Any]]]:
        """The answers to the queries of an entry, asked about one function's log."""
        log = self.aws.functions[function].log.getvalue()
        body = runbook.sections()[entry]
        return [log_insights.run_query(log, query) for _, query in runbook.queries(body)]

    def slack_posts(self) -> list[Any]:
        """What Slack was sent."""
        return self.scene.slack.posts

    def run(self, command: str) -> Any:
        """What a command of the runbook prints here."""
        for function, asks in (("physical", "StackResourceSummaries["), ("output", "Outputs[?")):
            for name in re.findall(rf"\$\({function} (\w+)\)", command):
                command = command.replace(f"$({function} {name})", self._found(asks, name))
        return runbook.run(self.aws.session, command)

    def _found(self, asks: str, name: str) -> str:
        """A name of the stack, as the functions of the runbook's preparation ask for it."""
        [command] = [line for line in runbook.aws_commands(runbook.PAGE) if asks in line]
        command = command.replace("$STACK", "sageaudit").replace("$1", name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # moto names again what it does not create
            found = runbook.run(self.aws.session, command)
        return str(found[0] if isinstance(found, list) else found)


@contextmanager
def world(job: RecordedJob, *, sweeps: bool = False) -> Iterator[World]:
    """One from the end of a job on. A fault is named by its function and operation."""
    faults: dict[str, Exception] = {}
    running: list[str] = []

    def step(name: str) -> None:
        fault = f"{running[-1]} {name.removeprefix('before ')}" if running else ""
        if fault in faults:
            raise faults[fault]

    def named(function: LocalFunction) -> Callable[[Any], Any]:
        invoke = function.invoke

        def invoked(event: Any) -> Any:
            running.append(function.name)
            try:
                return invoke(event)
            finally:
                running.pop()

        return invoked

    with (
        scene(job.ended_at, step, sweeps=sweeps) as current_scene,
        pytest.MonkeyPatch.context() as patch,
    ):
        for function in current_scene.aws.functions.values():
            patch.setattr(function, "invoke", named(function))
        yield World(current_scene, AlarmStates(current_scene.aws), faults)


def refused(code: str, operation: str) -> ClientError:
    """AWS's refusal of a call."""
    return ClientError({"Error": {"Code": code, "Message": f"{code} of the test"}}, operation)


def rises(current_world: World, name: str) -> None:
    """The alarm is raised."""
    assert current_world.alarms.becomes(name, raised=True), f"{name} is not raised"


def ends(current_world: World, name: str) -> None:
    """The alarm is over, by itself."""
    assert current_world.alarms.becomes(name, raised=False), f"{name} is not over"


class Failing(Struct, frozen=True):
    """A call that fails for hours: its alarm, and what a query of the entry then shows."""

    alarm: str
    entry: str
    call: str
    error: Exception
    query: int
    shows: Mapping[str, Any]


THROTTLED = "ProvisionedThroughputExceededException"
CALLS = [
    Failing(
        "Defects",
        "unexpected-errors",
        "audit DescribeTrainingJob",
        RuntimeError("a fault of the code"),
        0,
        {"exception_name": "RuntimeError"},
    ),
    Failing(
        "AuditFailing",
        "failing",
        "audit DescribeTrainingJob",
        refused("AccessDeniedException", "DescribeTrainingJob"),
        0,
        {"error": "AccessDenied"},
    ),
    Failing(
        "NotifyFailing",
        "failing",
        "notify TransactWriteItems",
        refused(THROTTLED, "TransactWriteItems"),
        1,
        {"error": "Throttled"},
    ),
    Failing(
        "DeliverFailing",
        "failing",
        "deliver PutItem",
        refused("InternalServerError", "PutItem"),
        2,
        {},
    ),
    Failing(
        "SweepFailing",
        "failing",
        "sweep ListTrainingJobs",
        refused("AccessDeniedException", "ListTrainingJobs"),
        3,
        {"error": "AccessDenied"},
    ),
    Failing(
        "ListsLate",
        "lists-late",
        "sweep ListTrainingJobs",
        refused("ThrottlingException", "ListTrainingJobs"),
        0,
        {"kind": "training"},
    ),
    Failing(
        "WatchFailing",
        "watch-failing",
        "watch Query",
        refused(THROTTLED, "Query"),
        0,
        {"message": "watch failed", "error": "Throttled"},
    ),
]


@pytest.mark.parametrize("of", CALLS, ids=lambda of: of.alarm)
def test_a_call_that_fails_for_hours(of: Failing) -> None:
    """What waits is done once, as soon as it can be; nobody has to send it again."""
    job, function = a_failed_job(), of.call.split()[0]
    with world(job, sweeps=function in {"sweep", "watch"}) as current_world:
        current_world.faults[of.call] = of.error
        current_world.aws.end_job(job)
        rises(current_world, of.alarm)
        row = current_world.ask(of.entry, function)[of.query][0]
        assert of.shows.items() <= row.items()
        if of.entry == "unexpected-errors":
            assert row["job"] == job.arn
            assert "a fault of the code" in row["exception"]
            assert row["function_request_id"]
        else:
            assert row["times"] >= (1 if function in {"sweep", "watch"} else 4)
        current_world.faults.clear()
        ends(current_world, of.alarm)
        assert current_world.scene.versions(job) == 1
        assert len(current_world.slack_posts()) == 1
        assert not current_world.scene.dead_letters()


def test_a_healthy_installation_is_quiet_in_its_first_hour() -> None:
    """Its first sweep has a day to look back on, and jobs end; no value is above its threshold."""
    job = a_failed_job()
    with world(job, sweeps=True) as current_world:
        for hours in (2, 8, 20):
            current_world.aws.sagemaker.add(
                renamed(job, f"before-{hours}", later=-timedelta(hours=hours))
            )
        current_world.aws.end_job(job)
        for _ in range(12):
            current_world.aws.advance(current_world.aws.clock.now() + timedelta(minutes=5))
            assert current_world.alarms.breaching() == set()
        assert current_world.scene.versions(job) == 1
        assert current_world.scene.count("JobsAudited", "audit") == 4


def test_function_errors() -> None:
    """A setting is missing after a deployment; the next deployment brings it back."""
    job = a_failed_job()
    with world(job) as current_world:
        variables = current_world.aws.functions["audit"].variables
        table = variables.pop("TABLE_NAME")
        current_world.aws.end_job(job)
        rises(current_world, "AuditErrors")
        crashed, *_ = current_world.ask("function-errors", "audit")
        assert {row["errorType"] for row in crashed} == {"BadSettings"}
        assert "TABLE_NAME" in crashed[0]["errorMessage"]
        variables["TABLE_NAME"] = table
        ends(current_world, "AuditErrors")
        assert current_world.scene.versions(job) == 1


def test_queue_late() -> None:
    """Somebody disabled the event source mapping, and forgot it."""
    job = a_failed_job()
    with world(job) as current_world:
        [mapping] = [
            source for source in current_world.aws.sources if source.function.name == "audit"
        ]
        current_world.aws.sources.remove(mapping)
        current_world.aws.end_job(job)
        rises(current_world, "FinishedJobsLate")
        waiting, mappings = runbook.aws_commands(runbook.entries()["queue-late"])
        assert current_world.run(waiting)["Attributes"]["ApproximateNumberOfMessages"] == "1"
        assert len(current_world.run(mappings)) == 1
        current_world.aws.sources.append(mapping)
        ends(current_world, "FinishedJobsLate")
        assert current_world.scene.versions(job) == 1


def test_a_failing_channel() -> None:
    """Slack asks to wait for hours; the message comes when it is taken, and once."""
    job = a_failed_job()
    with world(job) as current_world:
        current_world.scene.slack.queue_answers(
            *[Answer(429, "rate_limited", {"Retry-After": "1800"})] * 12
        )
        current_world.aws.end_job(job)
        rises(current_world, "DeliverFailing")
        row = current_world.ask("failing", "deliver")[2][0]
        assert row["channel"] == "slack"
        ends(current_world, "DeliverFailing")
        assert len(current_world.slack_posts()) == 1
        assert not current_world.scene.dead_letters()


def test_events_rejected() -> None:
    """An event in the name of another account: it is counted, and kept with its reason."""
    job = a_failed_job()
    with world(job) as current_world:
        arn = job.arn.replace("111122223333", "999999999999")
        forged = replace(job, describe={**job.describe, "TrainingJobArn": arn})
        current_world.aws.put_event(forged.event())
        rises(current_world, "FinishedJobsDeadLettersNotEmpty")
        [[row]] = current_world.ask("events-rejected", "audit")
        assert row["error"] == "wrong_account"
        assert row["function_request_id"]
        assert "wrong_account" in redrive(current_world, "finished", "--dry-run")
        assert "moved 0 letters, 1 stay" in redrive(
            current_world, "finished", "--yes"
        )  # refused for good
        url = current_world.aws.physical_id("TriggerFinishedJobsDeadLetters")
        current_world.aws.session.client("sqs").purge_queue(QueueUrl=url)
        ends(current_world, "FinishedJobsDeadLettersNotEmpty")


@pytest.mark.parametrize(
    ("alarm", "queue"),
    [
        ("UndecidedAuditsNotEmpty", "NoticesDecisions"),
        ("NoticesDeadLettersNotEmpty", "NoticesQueueSlack"),
    ],
)
def test_dead_letters(alarm: str, queue: str) -> None:
    """A message that is none of ours."""
    with world(a_failed_job()) as current_world:
        url = current_world.aws.physical_id(queue)
        current_world.aws.session.client("sqs").send_message(QueueUrl=url, MessageBody="{}")
        rises(current_world, alarm)
        [letter] = current_world.scene.dead_letters()
        assert letter["MessageAttributes"]["reason"]["StringValue"].startswith("malformed")
        assert letter["MessageAttributes"]["why"]["StringValue"]
        ends(current_world, alarm)


def test_unauditable() -> None:
    """Three jobs that are gone when their events are read."""
    job = a_failed_job()
    with world(job) as current_world:
        for name in ("one", "two", "three"):
            current_world.aws.put_event(renamed(job, name).event())
        rises(current_world, "JobsUnauditable")
        reasons, jobs = current_world.ask("unauditable", "audit")
        assert [row["jobs"] for row in reasons] == [1, 1, 1]
        assert all("there is no training job" in row["reason"] for row in reasons)
        assert {row["job"].rpartition("/")[2] for row in jobs} == {"one", "two", "three"}
        ends(current_world, "JobsUnauditable")


def broken(_: object) -> NoReturn:
    """The check of a rule with a fault."""
    raise ZeroDivisionError


def test_rules_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule raises; the audit is stored with all others."""
    job = a_failed_job()
    with world(job) as current_world:
        rules = [
            replace(rule, check=broken) if rule.info.name == "failed-spend" else rule
            for rule in catalogue.load()
        ]
        monkeypatch.setattr(catalogue, "load", lambda: tuple(rules))
        current_world.aws.end_job(job)
        rises(current_world, "RulesFailed")
        [[row]] = current_world.ask("rules-failed", "audit")
        assert (row["job"], row["rule"]) == (job.arn, "failed-spend")
        assert current_world.scene.versions(job) == 1
        ends(current_world, "RulesFailed")


def test_channel_broken() -> None:
    """The webhook was revoked."""
    job = a_failed_job()
    with world(job) as current_world:
        current_world.scene.slack.queue_answers(Answer(404, "no_service"))
        current_world.aws.end_job(job)
        rises(current_world, "NoticesDeadLettersNotEmpty")
        counted, failed = current_world.ask("channel-broken", "deliver")
        assert {row["channel"] for row in counted} == {"slack"}
        assert failed[0]["notice"].endswith("|slack")
        assert len(current_world.aws.mails) == 1
        assert "channel_broken" in redrive(current_world, "notices", "--dry-run")
        redrive(current_world, "notices", "--yes")
        current_world.aws.advance()
        assert len(current_world.slack_posts()) == len(current_world.aws.mails) == 1
        ends(current_world, "NoticesDeadLettersNotEmpty")


def redrive(current_world: World, kind: str, *words: str) -> str:
    """What the entries have their reader type, and what it prints."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moto names again what it does not create
        patch.setattr(sqs, "LONG_POLL_S", 0)
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        result = CliRunner().invoke(
            main.cli, ["redrive", kind, *words, "--stack", "sageaudit", "--region", REGION]
        )
    assert result.exit_code == 0, result.output
    current_world.aws.clock.advance(1)  # in moto, what was put back is visible after that moment
    return result.output


def test_channel_unknown() -> None:
    """Slack fails twice after it took the post; it is well again, and the notice sent again."""
    job = a_failed_job()
    with world(job) as current_world:
        current_world.scene.slack.queue_answers(*[Answer(500, "server_error")] * 2)
        current_world.aws.end_job(job)
        rises(current_world, "NoticesDeadLettersNotEmpty")
        counted, given_up = current_world.ask("channel-unknown", "deliver")
        assert {row["channel"] for row in counted} == {"slack"}
        assert given_up[0]["notice"].endswith("|slack")
        assert "unknown_outcome" in redrive(current_world, "notices", "--dry-run")
        redrive(current_world, "notices", "--yes")
        current_world.aws.advance()
        assert [headline[:17] for headline in current_world.scene.headlines()] == [
            "(possible repeat)"
        ]
        ends(current_world, "NoticesDeadLettersNotEmpty")


def test_jobs_missing() -> None:
    """Events are lost, and the audits that the sweep asks for are refused for hours."""
    job = a_failed_job()
    with world(job, sweeps=True) as current_world:
        current_world.faults["audit DescribeTrainingJob"] = refused(
            "AccessDeniedException", "Describe"
        )
        jobs = [
            renamed(job, f"job-{minute}", later=timedelta(minutes=minute))
            for minute in (20, 21, 22)
        ]
        for lost in jobs:
            current_world.aws.sagemaker.add(lost)
        rises(current_world, "JobsMissing")
        current_world.aws.advance(current_world.aws.clock.now() + timedelta(minutes=10))
        missing, failures = (
            current_world.ask("jobs-missing", "sweep")[0],
            current_world.ask("jobs-missing", "audit")[1],
        )
        assert {row["missing"] for row in missing} == {3}
        assert {row["job"] for row in failures} == {lost.arn for lost in jobs}
        current_world.faults.clear()
        ends(current_world, "JobsMissing")
        current_world.aws.advance(current_world.aws.clock.now() + timedelta(hours=2))
        assert all(current_world.scene.versions(lost) for lost in jobs)


def test_sweep_silent() -> None:
    """Somebody disabled the schedule."""
    job = a_failed_job()
    with world(job, sweeps=True) as current_world:
        ends(current_world, "SweepSilent")
        current_world.aws.schedule.is_enabled = False
        rises(current_world, "SweepSilent")
        current_world.aws.schedule.is_enabled = True
        ends(current_world, "SweepSilent")


def test_events_lost() -> None:
    """The rule was disabled: no event comes, and the sweep finds each job."""
    job = a_failed_job()
    with world(job, sweeps=True) as current_world:
        current_world.aws.advance(current_world.aws.clock.now() + timedelta(hours=1))
        jobs = [renamed(job, f"job-{hour}", later=timedelta(hours=hour)) for hour in (2, 3, 4)]
        for lost in jobs:
            current_world.aws.sagemaker.add(lost)
        rises(current_world, "EventsLost")
        found = current_world.ask("events-lost", "sweep")[0]
        assert sum(row["found"] for row in found) == 3
        ends(current_world, "EventsLost")
        assert [current_world.scene.versions(lost) for lost in jobs] == [1, 1, 1]


NOT_PROVOKED_HERE = {
    *("AuditThrottled", "StreamLate"),  # nothing runs beside, or for long, on the local AWS
    "StreamNotRead",  # moto's stream is read by the local AWS itself
    # The same alarms of another function or queue, followed above for one of them.
    *("NotifyErrors", "DeliverErrors", "DecisionsLate", "NoticesLate"),
    *("SweepDeadLettersNotEmpty", "WatchDeadLettersNotEmpty", "DigestDeadLettersNotEmpty"),
    *("WatchSilent", "DigestReport"),
}


def test_each_alarm_is_followed_or_said_not_to_be() -> None:
    """A new alarm needs a test here, or a reason."""
    source = Path(__file__).read_text(encoding="utf-8").partition("NOT_PROVOKED_HERE")[0]
    raised = set(re.findall(r"\"(\w+)\"", source)) & set(ALARMS)
    assert raised | NOT_PROVOKED_HERE == set(ALARMS)
    assert not raised & NOT_PROVOKED_HERE
