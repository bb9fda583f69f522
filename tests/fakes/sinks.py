"""Everywhere that a job's texts end: what is stored, posted, printed and logged of one answer."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from audit.handler import audit_message
from sageaudit.adapters.channels.catalogue import CHANNELS, writers
from sageaudit.adapters.files import anonymous_recording, recording_file
from sageaudit.adapters.files.recording import Recording
from sageaudit.adapters.history.dynamo.items import audit_item, detail_item, finding_item, head_item
from sageaudit.adapters.lambda_runtime.records import SqsMessage
from sageaudit.adapters.lambda_runtime.report import Report
from sageaudit.cli.messages import echo_json
from sageaudit.domain.alert.rule import FIRST
from sageaudit.domain.audit.record import JobKey, RunQuery
from sageaudit.domain.job.describe import parse
from sageaudit.domain.policy.policy import Policy
from sageaudit.output.terminal.render import render
from sageaudit.output.text.envelope import Notice, to_body
from sageaudit.settings import AuditSettings
from tests.fakes.dependencies import SaidJobs, dependencies
from tests.fakes.jobs import ACCOUNT, REGION, training_answer
from tests.fakes.sweeps import MemoryNotes

NAME = "train-vision"
NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
_CREATED = datetime(2026, 5, 20, 9, 58, tzinfo=UTC)
_SETTINGS = AuditSettings("table", "https://queue", "https://dead", ACCOUNT, REGION, None)


class _NoQueue:
    def send(self, body: str, **_: Any) -> None:
        raise AssertionError(f"a finished job waits: {body}")


def failed(text: str, **changes: Any) -> dict[str, Any]:
    """The answer of a training job whose container wrote this text, wherever AWS repeats it."""
    plain = training_answer(
        TrainingJobName=NAME,
        TrainingJobStatus="Failed",
        SecondaryStatus="Failed",
        FailureReason=text,
        ExitMessage=text,
        DebugRuleEvaluationStatuses=[
            {
                "RuleConfigurationName": "r",
                "RuleEvaluationStatus": "Error",
                "StatusDetails": text,
            }
        ],
    )
    plain["SecondaryStatusTransitions"][-1] |= {"Status": "Failed", "StatusMessage": text}
    return plain | changes


def sinks(answer: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> dict[str, str]:
    """The text at each end, by its name; the audit runs as in the Lambda function."""
    tags = tags or {}
    deps = dependencies(SaidJobs({NAME: [answer]}, tags))
    found = {"log": _log(deps, tags)}
    key = JobKey(answer["TrainingJobArn"], _CREATED)
    history = deps.history
    document, head, detail = history.audit(key), history.head(key), history.detail(key)
    assert document is not None
    assert head is not None
    assert detail is not None
    rows = history.runs(RunQuery.of_rule("failed-spend", "2026-05"))
    items = [head_item(head, 1), audit_item(head, document), *map(finding_item, rows)]
    found["items"] = json.dumps(items, default=str, ensure_ascii=False)
    found["detail"] = json.dumps([detail.describe, detail.tags], ensure_ascii=False)
    assert detail_item(key, detail, NOW)["job"]
    again = parse(detail.describe, detail.tags)
    found["judged again"] = repr(again)
    channels = [channel.name for channel in CHANNELS]
    for channel, writer in writers(channels).items():
        payload = writer(document, Policy(), FIRST)
        found[f"posted to {channel}"] = json.dumps(payload, ensure_ascii=False)
        found[f"queued for {channel}"] = to_body(Notice(f"x|{channel}", channel, payload))
    out = io.StringIO()
    render(document, Console(file=out, width=400))
    found["terminal"] = out.getvalue()
    printed = io.StringIO()
    with redirect_stdout(printed):
        echo_json(document)
    found["JSON"] = printed.getvalue()
    found.update(_recordings(answer, tags))
    return found


def _recordings(answer: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, str]:
    """The files that `sageaudit record` writes of the job, for oneself and for others."""
    document = recording_file.document_of(Recording(answer, tags, (), ACCOUNT, REGION))
    shared = anonymous_recording.anonymized(document, b"salt", frozenset())
    return {
        "recording": recording_file.text_of(document),
        "anonymised recording": recording_file.text_of(shared),
    }


def _log(deps: Any, tags: Mapping[str, str]) -> str:
    """The lines that the function logs."""
    detail = {
        "TrainingJobName": NAME,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:training-job/{NAME}",
        "TrainingJobStatus": "Failed",
        "CreationTime": int(_CREATED.timestamp() * 1000),
        "Tags": dict(tags),
    }
    event = {
        "source": "aws.sagemaker",
        "detail-type": "SageMaker Training Job State Change",
        "account": ACCOUNT,
        "detail": detail,
    }
    message = SqsMessage({"messageId": "m", "body": json.dumps(event)})
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    logger = logging.getLogger("sinks")
    logger.addHandler(handler)
    try:
        report = Report({"POWERTOOLS_SERVICE_NAME": "sinks"})
        with redirect_stdout(lines):
            audit_message(message, deps, _SETTINGS, _NoQueue(), report, MemoryNotes(), now=NOW)
            report.flush()
    finally:
        logger.removeHandler(handler)
    return lines.getvalue()
