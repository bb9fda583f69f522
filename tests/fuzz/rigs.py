"""Mutates one input of a handler, and checks what the handler does with it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any, cast

import botocore.session
from botocore.parsers import create_parser

from local.recorded import RecordedJob, recorded_jobs
from local.workers import InlineWorkers
from notify.handler import assemble as notify_wired
from sageaudit.adapters.aws.cloudwatch import CloudWatchMetrics
from sageaudit.adapters.aws.sagemaker import SageMakerJobLists, SageMakerJobs
from sageaudit.adapters.aws.sqs import SqsQueue
from sageaudit.adapters.history.record_steps import to_stored_json
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import packaged
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.ports import Queue
from sageaudit.structs import replace
from sageaudit.workflows.sweep import run as sweeping
from sageaudit.workflows.sweep.lists import SweepDependencies
from tests.fakes.audit_function import AuditFunction
from tests.fakes.calls import Clock
from tests.fakes.deliver_function import RecordingChannel, deliverer, notice_body
from tests.fakes.documents import document, job
from tests.fakes.family import FamilyStory, run_document
from tests.fakes.jobs import ACCOUNT, REGION
from tests.fakes.lambda_events import (
    HOME_ONLY,
    RecordedReport,
    notice_record,
    sqs_record,
    stream_record,
)
from tests.fakes.memory_ledger import MemoryMemberRegistry, MemorySendLedger, MemorySweepStore
from tests.fakes.queues import FakeQueue
from tests.fuzz.mutate import NONSENSE, mutated, mutated_text
from tests.integration.whole_flow import delivered

HEALS_AFTER = 3
"""How many answers are mutated; then AWS answers normally, so that no input waits for days."""


@cache
def _report() -> RecordedReport:
    return RecordedReport()


def report() -> RecordedReport:
    """Returns the shared report, cleared: a new logger takes long to create."""
    recorded_report = _report()
    recorded_report.clear()
    return recorded_report


@cache
def jobs() -> tuple[RecordedJob, ...]:
    """Returns recorded jobs of every kind."""
    return tuple(recorded_jobs())


def as_parsed(operation: str, answer: Any, dice: Random) -> Any:
    """Returns the answer with mutated JSON as the SDK parses it; unchanged if the SDK fails."""
    service = "cloudwatch" if operation in {"GetMetricData", "ListMetrics"} else "sagemaker"
    shape = _model(service).operation_model(operation).output_shape
    wire = to_wire(answer, shape)
    mutated_wire = mutated(wire, dice)
    body = json.dumps(mutated_wire if isinstance(mutated_wire, dict) else {}).encode()
    response = {"status_code": 200, "headers": {}, "body": body}
    try:
        parsed = create_parser("json").parse(response, shape)
    except Exception:  # noqa: BLE001 - whatever the SDK raises, no code of this project runs
        return answer
    parsed.pop("ResponseMetadata", None)
    return parsed


def to_wire(value: Any, shape: Any) -> Any:
    """Converts an answer to its JSON: times become seconds."""
    if value is None:
        return None
    if shape.type_name == "structure":
        members = shape.members
        return {key: to_wire(item, members[key]) for key, item in value.items() if key in members}
    if shape.type_name == "list":
        return [to_wire(item, shape.member) for item in value]
    if shape.type_name == "timestamp":
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return moment.timestamp()
    return value


@cache
def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def _operation(method: str) -> str:
    """Returns DescribeTrainingJob for describe_training_job."""
    return "".join(word.capitalize() for word in method.split("_"))


@dataclass
class _SageMaker:
    """SageMaker and CloudWatch for one job; the first answers of one operation are mutated."""

    job: RecordedJob
    dice: Random
    spoils: str
    remaining: int = HEALS_AFTER

    def __getattr__(self, name: str) -> Any:
        def answer(**request: Any) -> Any:
            return self._maybe_mutated(name, self._answer(name, request))

        return answer

    def get_paginator(self, name: str) -> Any:
        return _Pages(self, name)

    def _maybe_mutated(self, name: str, answer: Any) -> Any:
        if not name.startswith(self.spoils) or not self.remaining:
            return answer
        self.remaining -= 1
        return as_parsed(_operation(name), answer, self.dice)

    def _answer(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if name.startswith("describe"):
            return dict(self.job.describe)
        if name == "list_tags":
            return {"Tags": [{"Key": "owner", "Value": "ana"}, {"Key": "team", "Value": "vision"}]}
        if name == "list_metrics":
            dimensions = [{"Name": "Host", "Value": f"{self.job.name}/algo-1"}]
            return {"Metrics": [{"MetricName": "CPUUtilization", "Dimensions": dimensions}]}
        return {
            "MetricDataResults": [_points(query, request) for query in request["MetricDataQueries"]]
        }


@dataclass
class _Pages:
    client: _SageMaker
    name: str

    def paginate(self, **request: Any) -> Iterator[Any]:
        """Yields one page."""
        yield getattr(self.client, self.name)(**request)


def _points(query: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    period = timedelta(seconds=query["MetricStat"]["Period"])
    times = [request["StartTime"] + period * n for n in range(20)]
    return {
        "Id": query["Id"],
        "Label": "x",
        "StatusCode": "Complete",
        "Timestamps": times,
        "Values": [float(n % 7) * 10 for n in range(len(times))],
    }


SPOILS = ("describe", "list_tags", "get_metric_data", "list_metrics", "event", "event", "message")
OUTCOMES = frozenset(
    {"JobsAudited", "DuplicateEvents", "RejectedEvents", "UnknownJobs", "DueAudited", "Abandoned"}
)


def fuzz_audit(dice: Random) -> list[str]:
    """Audits with a mutated event, message or AWS answer; returns what is wrong."""
    recorded_job, spoils = dice.choice(jobs()), dice.choice(SPOILS)
    aws = _SageMaker(recorded_job, dice, spoils)
    recorded_report = report()
    function = AuditFunction(
        report=recorded_report,
        jobs=SageMakerJobs(lambda *_: aws),
        metrics=CloudWatchMetrics(lambda *_: aws, packaged.instance_types()),
    )
    function.clock.now = recorded_job.ended_at
    body = delivered(recorded_job)
    sent = mutated_text(body, dice) if spoils == "event" else body
    attributes = {"waited-late_metrics": "x", "first-sent": "-5"} if spoils == "message" else {}
    function.send(sent, **{name: str(mutated(value, dice)) for name, value in attributes.items()})
    function.run()
    wrong = [f"defect: {defect}" for defect in recorded_report.defects]
    if function.queue.messages:
        wrong.append("the message still waits")
    if not OUTCOMES & recorded_report.names.keys():
        wrong.append(f"nothing came of it: {dict(recorded_report.names)}")
    letters = function.dead.attributes()
    if any(not letter.get("reason") or not letter.get("why") for letter in letters):
        wrong.append("a dead letter has no reason")
    if recorded_report.names["RejectedEvents"] + recorded_report.names["Abandoned"] != len(letters):
        wrong.append("a dead letter is lost")
    return wrong


@cache
def documents() -> tuple[Any, ...]:
    """Returns audits to notify about."""
    return (
        document(),
        run_document(severity="high", avoidable="40"),
        run_document(lost="12.5", severity="medium"),
        run_document(avoidable=None, lost=None, idle={"hours": "30"}),
    )


def fuzz_notify(dice: Random) -> list[str]:
    """Notifies of a mutated record, document or letter next to a valid one; returns errors."""
    queue, decisions, undecided = FakeQueue(), FakeQueue(), FakeQueue()
    recorded_report, story = report(), FamilyStory(Policy(floor_usd=1))  # type: ignore[arg-type]
    handle = notify_wired(
        story.dependencies(),
        queues=dict.fromkeys(("sns", "slack"), cast("Queue", queue)),
        decisions=cast("SqsQueue", decisions),
        undecided=cast("Queue", undecided),
        clock=Clock(),
        report=recorded_report,
    )
    whole, next_one = dice.choice(documents()), document(job=job(name="train-0001", family="f-1"))
    records = [
        stream_record(audit, number=number, pk=story.audit(audit, NOON).pk)
        for number, audit in enumerate((whole, next_one), start=1)
    ]
    keys = records[0]["dynamodb"]["Keys"]["pk"]["S"]
    way = dice.randrange(4)
    if way == 2:
        letter = {"pk": keys, "sk": dice.choice(("AUDIT#00001", "NOTICE#00001#sns"))}
        spoiled = sqs_record(mutated_text(json.dumps(letter), dice))
        answer = handle({"Records": [spoiled]}, None)
        waits = undecided.sent or answer["batchItemFailures"]
        decided = {"notified", "quiet", "queued"} & {
            message for message, _ in recorded_report.lines
        }
        wrong = [] if waits or decided else ["a decision is lost"]
    else:
        spoiled = records[0]
        if way == 3:
            body = notice_body("sns")
            spoiled = notice_record(f"ALERT#{keys}", "NOTICE#00001#sns", "sns", body)
        if way == 1:
            spoiled = stream_record(mutated_text(to_stored_json(whole, 1), dice), pk=keys)
        else:
            mutated_wire = mutated(spoiled, dice)
            spoiled = mutated_wire if isinstance(mutated_wire, dict) else {}
            if spoiled.get("eventSource") == "aws:sqs":
                return []
        answer = handle({"Records": [spoiled, records[1]]}, None)
        notified = any("train-0001" in body for _, body in story.ledger.notices.values())
        wrong = [] if notified else ["its neighbour is not notified"]
    # A failing writer counts as a defect, also for a corrupt document, and the record is set aside.
    if way == 2 or len(recorded_report.defects) > len(decisions.sent):
        wrong += [f"defect: {defect}" for defect in recorded_report.defects]
    if not _well_formed(answer):
        wrong.append(f"no answer to a batch: {answer}")
    if any(
        not attributes.get("reason") or not attributes.get("why")
        for _, attributes in undecided.sent
    ):
        wrong.append("an undecided audit has no reason")
    return wrong


def fuzz_deliver(dice: Random) -> list[str]:
    """Delivers a mutated notice next to a valid one; returns what is wrong."""
    slack, sns, dead, recorded_report = (
        RecordingChannel(),
        RecordingChannel(),
        FakeQueue(),
        report(),
    )
    handle = deliverer(
        MemorySendLedger(), {"slack": slack, "sns": sns}, dead_letters=dead, report=recorded_report
    )
    name = dice.choice(("slack", "sns"))
    spoiled = sqs_record(mutated_text(notice_body(name), dice))
    if not dice.randrange(5):
        received, sent = dice.choice(("1", "120", "9" * 20)), dice.choice(("0", "1", "9" * 20))
        spoiled["attributes"] = {"ApproximateReceiveCount": received, "SentTimestamp": sent}
        spoiled["messageAttributes"] = {"first-sent": {"stringValue": str(dice.choice(NONSENSE))}}
    healthy = sqs_record(notice_body("slack", version=2), message_id="m2")
    answer = handle({"Records": [spoiled, healthy]}, None)
    wrong = [f"defect: {defect}" for defect in recorded_report.defects]
    if not slack.posted:
        wrong.append("its neighbour is not posted")
    if not _well_formed(answer):
        wrong.append(f"no answer to a batch: {answer}")
    outcomes = (
        len(slack.posted) + len(sns.posted) + len(dead.sent) + len(answer["batchItemFailures"])
    )
    if outcomes + recorded_report.names["DuplicateNotices"] != 2:
        wrong.append("a notice is lost")
    if any(
        not attributes.get("reason") or not attributes.get("why") for _, attributes in dead.sent
    ):
        wrong.append("a dead letter has no reason")
    return wrong


NOON = datetime(2026, 5, 20, 13, 0, tzinfo=UTC)


def _listing(kind: JobKind, name: str) -> dict[str, Any]:
    prefix = kind.spec.prefix
    arn = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.spec.arn_word}/{name}"
    return {
        f"{prefix}JobName": name,
        f"{prefix}JobArn": arn,
        f"{prefix}JobStatus": "Completed",
        "CreationTime": NOON - timedelta(hours=3),
        f"{prefix}EndTime": NOON - timedelta(hours=2),
        "LastModifiedTime": NOON - timedelta(hours=2),
    }


@dataclass
class _Lists:
    """Lists of two jobs per kind; the rows of one list are mutated once."""

    dice: Random
    spoils: int
    calls: int = 0

    def __getattr__(self, name: str) -> Any:
        kind = next(kind for kind in JobKind if name == f"list_{kind.spec.sdk_noun}s")

        def answer(**_: Any) -> Any:
            self.calls += 1
            rows = [_listing(kind, f"{kind.value}-{n}") for n in range(2)]
            page = {kind.spec.list_key: rows}
            if self.calls != self.spoils:
                return page
            return as_parsed(kind.spec.list_call, page, self.dice)

        return answer


def fuzz_sweep(dice: Random) -> list[str]:
    """Sweeps over a mutated list, then again; returns the jobs that were not found."""
    client = _Lists(dice, dice.randint(1, len(JobKind)))
    queue = FakeQueue()
    lists = SageMakerJobLists(lambda _: cast("Any", client))
    deps = SweepDependencies(
        job_pages=cast("Any", lists),
        history=SqliteHistory(),
        sweep_store=MemorySweepStore(),
        queue=cast("Queue", queue),
        registry=MemoryMemberRegistry(),
        scope=HOME_ONLY,
        check_member=lambda *_: {},
        workers=InlineWorkers(),
        clock=lambda: NOON,
        is_out_of_time=lambda: False,
    )
    try:
        list(sweeping.sweep(deps))
        later = replace(deps, clock=lambda: NOON + timedelta(minutes=15))
        list(sweeping.sweep(later))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a defect
        return [f"defect: {type(error).__name__}: {error}"]
    sent = " ".join(body for body, _ in queue.sent)
    names = [f"{kind.spec.arn_word}/{kind.value}-{n}" for kind in JobKind for n in range(2)]
    return [f"{name} is not found" for name in names if name not in sent]


def _well_formed(answer: Any) -> bool:
    failures = answer.get("batchItemFailures") if isinstance(answer, dict) else None
    return isinstance(failures, list) and all(
        isinstance(failure.get("itemIdentifier"), str) for failure in failures
    )


HANDLERS = {
    "audit": fuzz_audit,
    "notify": fuzz_notify,
    "deliver": fuzz_deliver,
    "sweep": fuzz_sweep,
}
