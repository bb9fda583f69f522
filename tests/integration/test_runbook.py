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

    with scene(job.ended_at, step, sweeps=sweeps) as one, pytest.MonkeyPatch.context() as patch:
        for function in one.aws.functions.values():
            patch.setattr(function, "invoke", named(function))
        yield World(one, AlarmStates(one.aws), faults)


def refused(code: str, operation: str) -> ClientError:
    """AWS's refusal of a call."""
    return ClientError({"Error": {"Code": code, "Message": f"{code} of the test"}}, operation)


def rises(one: World, name: str) -> None:
    """The alarm is raised."""
    assert one.alarms.becomes(name, raised=True), f"{name} is not raised"


def ends(one: World, name: str) -> None:
    """The alarm is over, by itself."""
    assert one.alarms.becomes(name, raised=False), f"{name} is not over"


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
]


@pytest.mark.parametrize("of", CALLS, ids=lambda of: of.alarm)
def test_a_call_that_fails_for_hours(of: Failing) -> None:
    """What waits is done once, as soon as it can be; nobody has to send it again."""
    job, function = a_failed_job(), of.call.split()[0]
    with world(job, sweeps=function == "sweep") as one:
        one.faults[of.call] = of.error
        one.aws.end_job(job)
        rises(one, of.alarm)
        row = one.ask(of.entry, function)[of.query][0]
        assert of.shows.items() <= row.items()
        if of.entry == "unexpected-errors":
            assert row["job"] == job.arn
            assert "a fault of the code" in row["exception"]
            assert row["function_request_id"]
        else:
            assert row["times"] >= (1 if function == "sweep" else 4)
        one.faults.clear()
        ends(one, of.alarm)
        assert one.scene.versions(job) == 1
        assert len(one.slack_posts()) == 1
        assert not one.scene.dead_letters()


def test_a_healthy_installation_is_quiet_in_its_first_hour() -> None:
    """Its first sweep has a day to look back on, and jobs end; no value is above its threshold."""
    job = a_failed_job()
    with world(job, sweeps=True) as one:
        for hours in (2, 8, 20):
            one.aws.sagemaker.add(renamed(job, f"before-{hours}", later=-timedelta(hours=hours)))
        one.aws.end_job(job)
        for _ in range(12):
            one.aws.advance(one.aws.clock.now() + timedelta(minutes=5))
            assert one.alarms.breaching() == set()
        assert one.scene.versions(job) == 1
        assert one.scene.count("JobsAudited", "audit") == 4


def test_function_errors() -> None:
    """A setting is missing after a deployment; the next deployment brings it back."""
    job = a_failed_job()
    with world(job) as one:
        variables = one.aws.functions["audit"].variables
        table = variables.pop("TABLE_NAME")
        one.aws.end_job(job)
        rises(one, "AuditErrors")
        crashed, *_ = one.ask("function-errors", "audit")
        assert {row["errorType"] for row in crashed} == {"BadSettings"}
        assert "TABLE_NAME" in crashed[0]["errorMessage"]
        variables["TABLE_NAME"] = table
        ends(one, "AuditErrors")
        assert one.scene.versions(job) == 1


def test_queue_late() -> None:
    """Somebody disabled the event source mapping, and forgot it."""
    job = a_failed_job()
    with world(job) as one:
        [mapping] = [source for source in one.aws.sources if source.function.name == "audit"]
        one.aws.sources.remove(mapping)
        one.aws.end_job(job)
        rises(one, "FinishedJobsLate")
        waiting, mappings = runbook.aws_commands(runbook.entries()["queue-late"])
        assert one.run(waiting)["Attributes"]["ApproximateNumberOfMessages"] == "1"
        assert len(one.run(mappings)) == 1
        one.aws.sources.append(mapping)
        ends(one, "FinishedJobsLate")
        assert one.scene.versions(job) == 1


def test_a_failing_channel() -> None:
    """Slack asks to wait for hours; the message comes when it is taken, and once."""
    job = a_failed_job()
    with world(job) as one:
        one.scene.slack.queue_answers(*[Answer(429, "rate_limited", {"Retry-After": "1800"})] * 12)
        one.aws.end_job(job)
        rises(one, "DeliverFailing")
        row = one.ask("failing", "deliver")[2][0]
        assert row["channel"] == "slack"
        ends(one, "DeliverFailing")
        assert len(one.slack_posts()) == 1
        assert not one.scene.dead_letters()


def test_events_rejected() -> None:
    """An event in the name of another account: it is counted, and kept with its reason."""
    job = a_failed_job()
    with world(job) as one:
        arn = job.arn.replace("111122223333", "999999999999")
        forged = replace(job, describe={**job.describe, "TrainingJobArn": arn})
        one.aws.put_event(forged.event())
        rises(one, "FinishedJobsDeadLettersNotEmpty")
        [[row]] = one.ask("events-rejected", "audit")
        assert row["error"] == "wrong_account"
        assert row["function_request_id"]
        assert "wrong_account" in redrive(one, "finished", "--dry-run")
        assert "moved 0 letters, 1 stay" in redrive(one, "finished", "--yes")  # refused for good
        url = one.aws.physical_id("TriggerFinishedJobsDeadLetters")
        one.aws.session.client("sqs").purge_queue(QueueUrl=url)
        ends(one, "FinishedJobsDeadLettersNotEmpty")


@pytest.mark.parametrize(
    ("alarm", "queue"),
    [
        ("UndecidedAuditsNotEmpty", "NoticesDecisions"),
        ("NoticesDeadLettersNotEmpty", "NoticesQueueSlack"),
    ],
)
def test_dead_letters(alarm: str, queue: str) -> None:
    """A message that is none of ours."""
    with world(a_failed_job()) as one:
        url = one.aws.physical_id(queue)
        one.aws.session.client("sqs").send_message(QueueUrl=url, MessageBody="{}")
        rises(one, alarm)
        [letter] = one.scene.dead_letters()
        assert letter["MessageAttributes"]["reason"]["StringValue"].startswith("malformed")
        assert letter["MessageAttributes"]["why"]["StringValue"]
        ends(one, alarm)


def test_unauditable() -> None:
    """Three jobs that are gone when their events are read."""
    job = a_failed_job()
    with world(job) as one:
        for name in ("one", "two", "three"):
            one.aws.put_event(renamed(job, name).event())
        rises(one, "JobsUnauditable")
        reasons, jobs = one.ask("unauditable", "audit")
        assert [row["jobs"] for row in reasons] == [1, 1, 1]
        assert all("there is no training job" in row["reason"] for row in reasons)
        assert {row["job"].rpartition("/")[2] for row in jobs} == {"one", "two", "three"}
        ends(one, "JobsUnauditable")


def broken(_: object) -> NoReturn:
    """The check of a rule with a fault."""
    raise ZeroDivisionError


def test_rules_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule raises; the audit is stored with all others."""
    job = a_failed_job()
    with world(job) as one:
        rules = [
            replace(rule, check=broken) if rule.info.name == "failed-spend" else rule
            for rule in catalogue.load()
        ]
        monkeypatch.setattr(catalogue, "load", lambda: tuple(rules))
        one.aws.end_job(job)
        rises(one, "RulesFailed")
        [[row]] = one.ask("rules-failed", "audit")
        assert (row["job"], row["rule"]) == (job.arn, "failed-spend")
        assert one.scene.versions(job) == 1
        ends(one, "RulesFailed")


def test_channel_broken() -> None:
    """The webhook was revoked."""
    job = a_failed_job()
    with world(job) as one:
        one.scene.slack.queue_answers(Answer(404, "no_service"))
        one.aws.end_job(job)
        rises(one, "NoticesDeadLettersNotEmpty")
        counted, failed = one.ask("channel-broken", "deliver")
        assert {row["channel"] for row in counted} == {"slack"}
        assert failed[0]["notice"].endswith("|slack")
        assert len(one.aws.mails) == 1
        assert "channel_broken" in redrive(one, "notices", "--dry-run")
        redrive(one, "notices", "--yes")
        one.aws.advance()
        assert len(one.slack_posts()) == len(one.aws.mails) == 1
        ends(one, "NoticesDeadLettersNotEmpty")


def redrive(one: World, kind: str, *words: str) -> str:
    """What the entries have their reader type, and what it prints."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moto names again what it does not create
        patch.setattr(sqs, "LONG_POLL_S", 0)
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        result = CliRunner().invoke(
            main.cli, ["redrive", kind, *words, "--stack", "sageaudit", "--region", REGION]
        )
    assert result.exit_code == 0, result.output
    one.aws.clock.advance(1)  # in moto, what was put back is visible after that moment
    return result.output


def test_channel_unknown() -> None:
    """Slack fails twice after it took the post; it is well again, and the notice sent again."""
    job = a_failed_job()
    with world(job) as one:
        one.scene.slack.queue_answers(*[Answer(500, "server_error")] * 2)
        one.aws.end_job(job)
        rises(one, "NoticesDeadLettersNotEmpty")
        counted, given_up = one.ask("channel-unknown", "deliver")
        assert {row["channel"] for row in counted} == {"slack"}
        assert given_up[0]["notice"].endswith("|slack")
        assert "unknown_outcome" in redrive(one, "notices", "--dry-run")
        redrive(one, "notices", "--yes")
        one.aws.advance()
        assert [headline[:17] for headline in one.scene.headlines()] == ["(possible repeat)"]
        ends(one, "NoticesDeadLettersNotEmpty")


def test_jobs_missing() -> None:
    """Events are lost, and the audits that the sweep asks for are refused for hours."""
    job = a_failed_job()
    with world(job, sweeps=True) as one:
        one.faults["audit DescribeTrainingJob"] = refused("AccessDeniedException", "Describe")
        jobs = [
            renamed(job, f"job-{minute}", later=timedelta(minutes=minute))
            for minute in (20, 21, 22)
        ]
        for lost in jobs:
            one.aws.sagemaker.add(lost)
        rises(one, "JobsMissing")
        one.aws.advance(one.aws.clock.now() + timedelta(minutes=10))
        missing, failures = one.ask("jobs-missing", "sweep")[0], one.ask("jobs-missing", "audit")[1]
        assert {row["missing"] for row in missing} == {3}
        assert {row["job"] for row in failures} == {lost.arn for lost in jobs}
        one.faults.clear()
        ends(one, "JobsMissing")
        one.aws.advance(one.aws.clock.now() + timedelta(hours=2))
        assert all(one.scene.versions(lost) for lost in jobs)


def test_sweep_silent() -> None:
    """Somebody disabled the schedule."""
    job = a_failed_job()
    with world(job, sweeps=True) as one:
        ends(one, "SweepSilent")
        one.aws.schedule.on = False
        rises(one, "SweepSilent")
        one.aws.schedule.on = True
        ends(one, "SweepSilent")


def test_events_lost() -> None:
    """The rule was disabled: no event comes, and the sweep finds each job."""
    job = a_failed_job()
    with world(job, sweeps=True) as one:
        one.aws.advance(one.aws.clock.now() + timedelta(hours=1))
        jobs = [renamed(job, f"job-{hour}", later=timedelta(hours=hour)) for hour in (2, 3, 4)]
        for lost in jobs:
            one.aws.sagemaker.add(lost)
        rises(one, "EventsLost")
        found = one.ask("events-lost", "sweep")[0]
        assert sum(row["found"] for row in found) == 3
        ends(one, "EventsLost")
        assert [one.scene.versions(lost) for lost in jobs] == [1, 1, 1]


NOT_PROVOKED_HERE = {
    *("AuditThrottled", "StreamLate"),  # nothing runs beside, or for long, on the local AWS
    "StreamNotRead",  # moto's stream is read by the local AWS itself
    # The same alarms of another function or queue, followed above for one of them.
    *("NotifyErrors", "DeliverErrors", "DecisionsLate", "NoticesLate"),
    *("SweepDeadLettersNotEmpty", "DigestDeadLettersNotEmpty", "DigestReport"),
}


def test_each_alarm_is_followed_or_said_not_to_be() -> None:
    """A new alarm needs a test here, or a reason."""
    source = Path(__file__).read_text(encoding="utf-8").partition("NOT_PROVOKED_HERE")[0]
    raised = set(re.findall(r"\"(\w+)\"", source)) & set(ALARMS)
    assert raised | NOT_PROVOKED_HERE == set(ALARMS)
    assert not raised & NOT_PROVOKED_HERE
