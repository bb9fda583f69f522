"""Counts as CloudWatch reads them from the log."""

from __future__ import annotations

import json

import pytest

from sageaudit.adapters.lambda_runtime.counts import Counts
from tests.fakes.delivering import counted

ENVIRON = {"POWERTOOLS_SERVICE_NAME": "deliver", "POWERTOOLS_METRICS_NAMESPACE": "sageaudit"}


def test_one_line_a_channel_with_the_sums(capsys: pytest.CaptureFixture[str]) -> None:
    """Namespace and service on each."""
    counts = Counts(ENVIRON)
    for channel in ("sns", "slack", "slack"):
        counts.add("NoticesSent", channel=channel)
    counts.add("RejectedEvents")
    counts.flush()
    printed = capsys.readouterr().out
    assert counted(printed) == {
        ("NoticesSent", "sns"): 1,
        ("NoticesSent", "slack"): 2,
        ("RejectedEvents", None): 1,
    }
    for line in map(json.loads, printed.splitlines()):
        directive = line["_aws"]["CloudWatchMetrics"][0]
        assert directive["Namespace"] == "sageaudit"
        assert line["service"] == "deliver"
        assert set(directive["Dimensions"][0]) <= {"service", "channel"}


def test_nothing_counted_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a second flush repeat the first."""
    counts = Counts(ENVIRON)
    counts.flush()
    assert capsys.readouterr().out == ""
    counts.add("NoticesQueued")
    counts.flush()
    assert capsys.readouterr().out
    counts.flush()
    assert capsys.readouterr().out == ""


def test_two_of_them_share_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The local AWS runs all functions in one process."""
    one, other = Counts(ENVIRON), Counts({**ENVIRON, "POWERTOOLS_SERVICE_NAME": "notify"})
    one.add("NoticesSent", channel="sns")
    other.flush()
    assert capsys.readouterr().out == ""
    one.flush()
    assert json.loads(capsys.readouterr().out)["service"] == "deliver"
