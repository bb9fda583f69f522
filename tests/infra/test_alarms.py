"""The alarms: what they watch, when they are raised, and that each has its entry in the runbook."""

import json
import re
from typing import Any

import pytest

from infra.alarm_list import RUNBOOK, AlarmSpec, alarm_specs
from infra.template import POLICY
from sageaudit.adapters.channels.services import SERVICES
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.lambda_runtime import batch
from tests.fakes.runbook import PAGE, alarm_names, entries, queries, sections
from tests.infra.reading import of_type, only_resource, text
from tools.bench.deployed import month_items
from tools.pages import alarms, running_cost


def every(*channels: str, has_budgets: bool = True) -> list[AlarmSpec]:
    """All alarms of a stack with these channels."""
    return list(
        alarm_specs(
            functions={name: name for name in alarms.FUNCTIONS},
            work_queues={"FinishedJobs": "finished", "Decisions": "decisions"},
            notices_queues={name: name for name in channels},
            dead_letters={name: name for name in alarms.DEAD_LETTERS},
            is_watch_on=True,
            has_budgets=has_budgets,
        )
    )


EVERY = every(*load_policy(POLICY).channels)
DEPLOYED = every(*load_policy(POLICY).channels, has_budgets=False)
"""The alarms of the local AWS, whose policy has no budget."""
LONGEST_EVALUATION_S = 86_400
"""CloudWatch's limit of period times periods, for periods below an hour; a week otherwise."""


def by_name(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The alarms of a template, by the names of the list."""
    alarms = of_type(template, "AWS::CloudWatch::Alarm")
    return {key.removeprefix("Alarms")[:-8]: alarm for key, alarm in alarms.items()}


def test_each_alarm_has_its_entry_and_each_entry_its_alarms() -> None:
    """So that whoever is told at night finds what to do; a channel is called like its service."""
    written = [(anchor, name) for anchor, body in entries().items() for name in alarm_names(body)]
    assert sorted(written) == sorted(
        (watch.runbook_entry, watch.name) for watch in every(*SERVICES)
    )


def test_the_template_has_the_alarms_of_the_list(template: dict[str, Any]) -> None:
    """For each function of the stack, each queue and each channel."""
    assert set(by_name(template)) == {watch.name for watch in DEPLOYED}


def test_about_30_alarms_however_many_channels(quiet_template: dict[str, Any]) -> None:
    """A channel adds none: ten metrics, the most that one may watch, are together in one alarm."""
    assert set(by_name(quiet_template)) == {watch.name for watch in every("sns", has_budgets=False)}
    assert len(EVERY) == len(every("sns")) == 30
    many = every(*(f"channel-{number}" for number in range(20)))
    assert len(many) == 31
    assert max(len(watch.sources) for watch in many) == 10


def test_one_cause_is_counted_by_one_alarm() -> None:
    """No two alarms watch a metric of one function or queue, but for a sum that leaves one out."""
    seen = [
        (source.metric, tuple(source.dimensions.items()))
        for spec in EVERY
        for source in spec.sources
    ]
    twice = {metric for metric in seen if seen.count(metric) > 1}
    assert twice == {("LostEventsFound", (("service", "sweep"),))}
    # A time-out is an error; a notice or an event that is given up is a dead letter.
    metrics = {source.metric for spec in EVERY for source in spec.sources}
    assert not metrics & {"Duration", "RejectedEvents", "NotifyFailed", "NotifyUnknown"}


def test_the_dashboard_shows_money_freshness_and_every_alarm(template: dict[str, Any]) -> None:
    """Its queries are the runbook's, which are all saved."""
    saved = {q["QueryString"] for q in of_type(template, "AWS::Logs::QueryDefinition").values()}
    expected_queries = {query for _, query in queries(PAGE) if "REQUEST ID" not in query}
    assert saved == expected_queries
    body = json.dumps(only_resource(template, "AWS::CloudWatch::Dashboard")["DashboardBody"])
    for _, query in queries(sections()["money-and-messages"]):
        assert query.partition("|")[2].strip() in body
    for word in ("ApproximateAgeOfOldestMessage", "IteratorAge", "JobsMissing"):
        assert word in body
    assert all(f"Alarms{watch.name}" in body for watch in DEPLOYED)


def test_an_entry_says_how_to_see_what_to_do_and_when_it_is_over() -> None:
    """With commands to paste."""
    for anchor, body in entries().items():
        assert re.search(r"^```\n.+?^```$", body, re.MULTILINE | re.DOTALL), anchor
        assert re.search(r"^Resolved when: ", body, re.MULTILINE), anchor


def test_an_alarm_says_in_one_sentence_what_it_means_and_where_its_entry_is(
    template: dict[str, Any],
) -> None:
    """AWS puts the description into the message."""
    for name, alarm in by_name(template).items():
        said = alarm["AlarmDescription"]
        [watch] = [watch for watch in EVERY if watch.name == name]
        assert re.fullmatch(
            rf"sageaudit: .+; {RUNBOOK}#{watch.runbook_entry} says what to do", said
        )
        assert len(said) < 300
    assert all(watch.description.count(". ") == 0 for watch in EVERY)


def test_every_alarm_goes_to_the_operators(template: dict[str, Any]) -> None:
    """And none to job owners."""
    for alarm in by_name(template).values():
        for actions in ("AlarmActions", "OKActions"):
            assert [text(topic) for topic in alarm[actions]] == ["${AlarmsTopic}"]


def test_only_cloudwatch_of_this_account_may_publish_alarms(template: dict[str, Any]) -> None:
    """Nobody can tell operators of what did not happen."""
    policy = only_resource(template, "AWS::SNS::TopicPolicy", "AlarmsTopicPolicy")
    allowed = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
    [statement] = allowed
    assert statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statement["Action"] == "sns:Publish"
    assert text(statement["Condition"]["StringEquals"]["aws:SourceAccount"]) == "${AWS::AccountId}"


def test_cloudwatch_can_evaluate_every_alarm() -> None:
    """It refuses periods that are no multiple of a minute, and evaluations of more than a day."""
    for watch in EVERY:
        assert watch.period_s % 60 == 0
        longest_s = LONGEST_EVALUATION_S if watch.period_s < 3600 else 7 * LONGEST_EVALUATION_S
        assert watch.period_s * watch.periods <= longest_s
        assert 1 <= watch.datapoints_to_alarm <= watch.periods
        assert watch.threshold_reason
    assert len({watch.name for watch in EVERY}) == len(EVERY)


def test_silence_is_raised_by_missing_values_and_nothing_else_is(template: dict[str, Any]) -> None:
    """A quiet day is no failure, except of the sweep, which always runs.

    A new alarm has no data. It is no change of its state, so that nobody is told in the first hour.
    """
    names = [watch.name for watch in EVERY if watch.alarm_if_no_data]
    assert names == ["SweepSilent", "WatchSilent"]
    for name, alarm in by_name(template).items():
        silent = name in names
        assert alarm["TreatMissingData"] == ("missing" if silent else "notBreaching")
        assert ("InsufficientDataActions" in alarm) == silent
        assert alarm["ComparisonOperator"] == (
            "LessThanThreshold" if silent else "GreaterThanThreshold"
        )


@pytest.mark.parametrize(
    ("name", "metric", "dimensions"),
    [
        ("AuditErrors", "Errors", {"FunctionName": "${AuditFunction}"}),
        ("StreamLate", "IteratorAge", {"FunctionName": "${NotifyFunction}"}),
        ("Defects", batch.DEFECTS, {"service": "deliver"}),
        ("DeliverFailing", "DeliveryFailed", {"service": "deliver"}),
        ("JobsMissing", "LostEventsFound", {"service": "sweep"}),
        ("AuditThrottled", "Throttles", {"FunctionName": "${AuditFunction}"}),
    ],
)
def test_what_an_alarm_watches(
    template: dict[str, Any], name: str, metric: str, dimensions: dict[str, str]
) -> None:
    """By the names under which AWS and the functions count; the rest is in the snapshot."""
    alarm = by_name(template)[name]
    stats = [
        metric["MetricStat"]["Metric"]
        for metric in alarm.get("Metrics", ())
        if "MetricStat" in metric
    ]
    watched = [
        (metric["MetricName"], {d["Name"]: text(d["Value"]) for d in metric["Dimensions"]})
        for metric in stats or [alarm]
    ]
    assert (metric, dimensions) in watched


def test_the_table_of_alarms_is_fresh() -> None:
    """`make docs` rewrites it."""
    text = alarms.PAGE.read_text(encoding="utf-8")
    fresh = text == alarms.page(text, alarms.all_alarm_specs())
    assert fresh, "docs/runbook.md is old: run make docs"


def test_the_table_of_costs_is_fresh() -> None:
    """`make docs` rewrites it."""
    text = running_cost.PAGE.read_text(encoding="utf-8")
    fresh = text == running_cost.page(text, month_items())
    assert fresh, "docs/before-you-deploy.md is old: run make docs"
