"""Collects everything that is stored, posted, printed and logged about one job."""

import io
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, redirect_stdout, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from botocore.loaders import Loader
from rich.console import Console

from audit import handler
from sageaudit.adapters.channels.services import SERVICES, channel_writers
from sageaudit.adapters.files import recording_file
from sageaudit.adapters.files.exact_json import read_gzip_json
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.history.dynamo.items import audit_item, detail_item, finding_item, head_item
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.adapters.lambda_runtime.report import RecordReport
from sageaudit.cli.messages import print_json
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import JobKey
from sageaudit.domain.job.describe import parse
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.members import AuditScope
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig
from sageaudit.domain.usage.measure import measure
from sageaudit.domain.usage.measurements import Measurements, Metric, MissingMetrics, RawSeries
from sageaudit.errors import MalformedData, SageauditError
from sageaudit.output.html.contents import JobReport
from sageaudit.output.html.job import job_body
from sageaudit.output.terminal.render import render
from sageaudit.output.text.card import Notice, to_json
from sageaudit.workflows.audit.arrivals import EventArrivals
from tests.fakes.audit_flow import NAME, FakeJobs, FakeMetrics, dependencies
from tests.fakes.audit_function import SETTINGS
from tests.fakes.jobs import ACCOUNT, REGION, TYPES
from tests.fakes.lambda_events import CREATED, job_event, sqs_record
from tests.fakes.memory_ledger import MemoryMemberRegistry, MemorySweepStore
from tests.fakes.messages import document_card
from tests.fakes.queues import FakeQueue

POLICY = Policy(family_tag="workload", cost_tag_names=("project",))
_NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


class _AnyMetrics(FakeMetrics):
    """Fakes Metrics with one hour of work on one host, and a curve of each algorithm metric."""

    def read(self, job: Job, now: datetime) -> Measurements:
        names = [(f"{job.name}/algo-1", metric.value) for metric in Metric]
        names += [(job.name, name) for name in job.metric_names]
        start = job.started_at or CREATED
        series = [RawSeries(host, name, start, 60, (50.0,) * 60) for host, name in names]
        return measure(
            job, series, TYPES, missing_reason=MissingMetrics("metric_missing", "there is none")
        )


def arn(kind: JobKind) -> str:
    """Returns the ARN of the job."""
    return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.spec.arn_word}/{NAME}"


def sinks(
    answer: Mapping[str, Any], tags: Mapping[str, str], kind: JobKind = JobKind.TRAINING
) -> dict[str, str]:
    """Returns the text of each sink by name; the audit runs as in the Lambda function."""
    texts: dict[str, str] = {}
    with TemporaryDirectory() as folder, SqliteHistory(Path(folder) / "history.db") as history:
        jobs = FakeJobs({NAME: [answer]}, tags)
        deps = dependencies(jobs, metrics=_AnyMetrics(), history=history, policy=POLICY)
        texts["log"] = _log(deps, tags, kind)
        key = JobKey(arn(kind), CREATED)
        document, head, detail = history.audit(key), history.summary(key), history.detail(key)
        if document is not None and head is not None:
            items = [head_item(head, 1), audit_item(head, document)]
            items += map(finding_item, history.runs(RunQuery.for_rule("failed-spend")))
            texts["items"] = _text_of(items)
            texts |= _views(document)
        if detail is not None:
            stored_parts = [detail.describe, detail.tags]
            texts["detail"] = json.dumps(stored_parts, default=str, ensure_ascii=False)
            assert detail_item(key, detail, _NOW)["description"]
            texts["judged again"] = repr(parse(detail.describe, detail.tags))
        texts["file"] = "".join(
            path.read_bytes().decode("utf-8", "replace")
            for path in Path(folder).glob("history.db*")
        )
        texts["file"] += _text_of(_rows(Path(folder) / "history.db"))
    return texts | _recordings(answer, tags)


def _rows(file: Path) -> list[tuple[Any, ...]]:
    """Returns all rows of all tables."""
    with closing(sqlite3.connect(file)) as opened:
        tables = opened.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        statements = [f"SELECT * FROM {name}" for (name,) in tables]  # noqa: S608
        return [row for query in statements for row in opened.execute(query)]


def _text_of(stored: object) -> str:
    """Returns stored data as JSON, with compressed parts unpacked."""

    def opened(value: object) -> object:
        if not isinstance(value, bytes):
            return str(value)
        is_zlib = value.startswith(b"x")
        return zlib.decompress(value).decode("latin-1") if is_zlib else read_gzip_json(value)

    return json.dumps(stored, default=opened, ensure_ascii=False)


def _views(document: AuditDocument) -> Iterator[tuple[str, str]]:
    for channel, writer in channel_writers(
        {service: ChannelConfig(service) for service in SERVICES}
    ).items():
        with suppress(ValueError):  # an audit without findings has no message
            payload = writer(document_card(document), POLICY.mentions)
            yield f"posted to {channel}", json.dumps(payload, ensure_ascii=False)
            yield f"queued for {channel}", to_json(Notice(f"x|{channel}", channel, payload))
    screen, printed = io.StringIO(), io.StringIO()
    render(document, Console(file=screen, width=400))
    with redirect_stdout(printed):
        print_json(document)
    yield "terminal", screen.getvalue()
    yield "JSON", printed.getvalue()
    yield "HTML", str(job_body(JobReport(document, None)))


def _recordings(answer: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str]:
    """Returns the job's recordings as `sageaudit record` writes them, plain and anonymised."""
    recorded = Recording(answer, tags, (), ACCOUNT, REGION)
    try:
        document = recording_file.make_document(recorded, b"key", POLICY.tag_names)
    except MalformedData as error:
        return {"error": str(error)}
    shared = recording_file.anonymize(document, b"salt", (), ("ml.m5.large",))
    return {
        "recording": recording_file.to_text(document),
        "anonymised recording": recording_file.to_text(shared),
    }


def _log(deps: Any, tags: Mapping[str, str], kind: JobKind) -> str:
    """Returns the function's log lines and the texts of its errors."""
    detail: dict[str, Any] = {f"{kind.spec.prefix}JobStatus": "Failed", "Tags": dict(tags)}
    message = SqsMessage(sqs_record(job_event(NAME, kind=kind, **detail)))
    lines = io.StringIO()
    with redirect_stdout(lines):
        report = RecordReport({"POWERTOOLS_SERVICE_NAME": "sinks"})
        try:
            scope = AuditScope(SETTINGS.home, deps.policy.members)
            arrivals = EventArrivals(
                scope, MemoryMemberRegistry(), MemorySweepStore(), lambda: _NOW
            )
            handler.AuditFunction(deps, arrivals, FakeQueue(), report).process(message)
        except SageauditError as error:
            report.defect("failed", error)
            lines.write(str(error))
        report.flush()
    return lines.getvalue()


# An answer with every field that AWS's service model has -----------------------------------------

_MODEL = Loader().load_service_model("sagemaker", "service-2")["shapes"]
Leaf = tuple[str, ...]
"""Path of a field: its keys, with "*" for a list item or the value of a map."""


def answer_of(kind: JobKind, texts: Mapping[Leaf, Any], other: Any = None) -> dict[str, Any]:
    """Returns a Describe answer with all fields: texts by path, and `other` for all other types."""
    answer: dict[str, Any] = _filled(_response(kind), (), texts.get, other)
    start = CREATED + timedelta(minutes=2)
    prefix = kind.spec.prefix
    return answer | {
        f"{prefix}JobName": NAME,
        f"{prefix}JobArn": arn(kind),
        "CreationTime": CREATED,
        f"{prefix}StartTime": start,
        f"{prefix}EndTime": start + timedelta(hours=1),
        "LastModifiedTime": start + timedelta(hours=1),
        "TrainingJobStatusCounters": {},
    }


def _response(kind: JobKind) -> str:
    return f"Describe{kind.spec.prefix}JobResponse"


def text_fields(kind: JobKind) -> list[Leaf]:
    """Returns the paths of all text fields in the Describe answer of a kind."""
    paths: dict[Leaf, Any] = {}
    _filled(_response(kind), (), paths.setdefault, None)
    return list(paths)


def _filled(shape: str, path: Leaf, text: Callable[[Leaf, str], Any], other: Any) -> Any:
    model = _MODEL[shape]
    match model["type"]:
        case "structure":
            return {
                name: _filled(member["shape"], (*path, name), text, other)
                for name, member in model["members"].items()
            }
        case "list":
            return [_filled(model["member"]["shape"], (*path, "*"), text, other)]
        case "map":
            value = _filled(model["value"]["shape"], (*path, "*"), text, other)
            return {text((*path, "key"), "key"): value}
        case "string":
            return text(path, model.get("enum", ["a"])[0])
        case "timestamp":
            return CREATED if other is None else other
        case "boolean":
            return True if other is None else other
        case _:
            return 1 if other is None else other
