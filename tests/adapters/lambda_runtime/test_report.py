"""Log lines and counts: which invocation and which job or notice they are about."""

import io
import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from sageaudit.adapters.lambda_runtime.report import REQUEST_ID, RecordReport
from tests.fakes.lambda_events import parse_counts

CONTEXT = SimpleNamespace(aws_request_id="request-1")


@pytest.fixture
def log() -> io.StringIO:
    """What the report of these tests writes."""
    stream = io.StringIO()
    RecordReport({"POWERTOOLS_SERVICE_NAME": "report-tests"})
    for handler in logging.getLogger("report-tests").handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)
    return stream


def a_report() -> RecordReport:
    """One whose lines `log` reads."""
    return RecordReport({"POWERTOOLS_SERVICE_NAME": "report-tests"})


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    """The lines as they were written."""
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_every_line_has_the_request_id_of_its_invocation(log: io.StringIO) -> None:
    """As AWS names the invocation in its own lines and to its support."""
    report = a_report()
    report.start_invocation(CONTEXT)
    report.info("one")
    report.start_invocation(SimpleNamespace(aws_request_id="request-2"))
    report.error("two")
    report.start_invocation(None)
    report.warning("three")
    assert [line.get(REQUEST_ID) for line in lines(log)] == ["request-1", "request-2", None]


def test_lines_after_one_says_what_they_are_about_say_it_too(log: io.StringIO) -> None:
    """A failure is found by the job's ARN, until the next record begins; it is escaped too."""
    report = a_report()
    report.start_invocation(CONTEXT)
    report.set_labels(job="arn:job\u2028forged")
    report.error("failed", message_id="m1")
    report.flush()
    report.info("next")
    first, following = lines(log)
    assert first["job"].startswith("arn:job")
    assert "\u2028" not in first["job"]
    assert first["message_id"] == "m1"
    assert "job" not in following


def test_a_count_leads_to_its_invocation(capsys: pytest.CaptureFixture[str]) -> None:
    """As a property of the line, which is no dimension of the metric."""
    report = a_report()
    report.start_invocation(CONTEXT)
    report.count("JobsAudited")
    report.flush()
    line = json.loads(capsys.readouterr().out)
    assert line[REQUEST_ID] == "request-1"
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["service"]]


def test_counts_are_one_line_a_channel_with_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    """Namespace and service on each; a flush without counts prints nothing, and repeats nothing."""
    report, other = RecordReport({"POWERTOOLS_SERVICE_NAME": "deliver"}), a_report()
    for channel in ("sns", "slack", "slack"):
        report.count("NoticesSent", channel=channel)
    report.count("RejectedEvents")
    other.flush()
    assert capsys.readouterr().out == ""
    report.flush()
    printed = capsys.readouterr().out
    assert parse_counts(printed) == {
        ("NoticesSent", "sns"): 1,
        ("NoticesSent", "slack"): 2,
        ("RejectedEvents", None): 1,
    }
    for line in map(json.loads, printed.splitlines()):
        directive = line["_aws"]["CloudWatchMetrics"][0]
        assert (directive["Namespace"], line["service"]) == ("sageaudit", "deliver")
        assert set(directive["Dimensions"][0]) <= {"service", "channel"}
    report.flush()
    assert capsys.readouterr().out == ""
