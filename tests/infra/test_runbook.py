"""The runbook's commands and queries name what there is."""

import json
import re
from typing import Any

import pytest

from tests.fakes import log_insights, runbook

QUERIES = sorted(set(runbook.queries(runbook.PAGE)))
LINES = "\n".join(
    json.dumps(line)
    for line in (
        {"level": "ERROR", "message": "record failed", "job": "a", "record": {"status": "timeout"}},
        {"level": "ERROR", "message": "record failed", "job": "b", "error": "Throttled"},
        {"level": "INFO", "message": "audited", "job": "c", "unauditable": None},
        {"_aws": {}, "NotifyFailed": [2.0], "channel": "slack"},
    )
)


@pytest.mark.parametrize(("function", "query"), QUERIES)
def test_a_query_can_be_read(function: str, query: str) -> None:
    """By the part of the language that is tested here."""
    assert function in {"audit", "notify", "deliver", "sweep", "watch", "digest"}
    assert log_insights.run_query(LINES, query) is not None


def test_every_resource_and_output_that_a_command_names_is_in_the_stack(
    template: dict[str, Any],
) -> None:
    """`physical` finds by the start of a logical id: exactly one must have it."""
    starts = set(re.findall(r"\$\(physical (\w+)\)", runbook.PAGE))
    starts |= {f"{function.capitalize()}Log" for function, _ in QUERIES}
    found = {start: [n for n in template["Resources"] if n.startswith(start)] for start in starts}
    assert [start for start, names in found.items() if len(names) != 1] == []
    outputs = set(re.findall(r"\$\(output (\w+)\)", runbook.PAGE))
    assert outputs <= set(template["Outputs"])


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        pytest.param(
            'filter message = "record failed" | fields job',
            [{"job": "a"}, {"job": "b"}],
            id="a filter and a field",
        ),
        pytest.param(
            'filter record.status = "timeout" | fields job',
            [{"job": "a"}],
            id="a field inside a field",
        ),
        pytest.param(
            'filter message = "record failed" and ispresent(error) | fields job',
            [{"job": "b"}],
            id="two conditions and a field that is there",
        ),
        pytest.param(
            'filter job = "a" or job = "c" | stats count(*) as n by level',
            [{"level": "ERROR", "n": 1}, {"level": "INFO", "n": 1}],
            id="a count by level",
        ),
        pytest.param(
            "filter ispresent(unauditable) | fields job", [], id="a field that no record has"
        ),
        pytest.param(
            "filter NotifyFailed > 1 | fields channel | limit 1",
            [{"channel": "slack"}],
            id="a limit",
        ),
    ],
)
def test_queries_are_answered_as_insights_answers_them(
    query: str, answers: list[dict[str, Any]]
) -> None:
    """What the tests of the entries rely on."""
    assert log_insights.run_query(LINES, query) == answers
