"""Creates the dashboard and the saved queries, from the alarms and the runbook's queries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.alarm_list import AlarmSpec
from infra.alarms import alarm_metric
from infra.bundling import ROOT

MONEY_DASHBOARD = "money-and-messages"
"""The section of the runbook whose queries the dashboard shows."""
FRESHNESS_METRICS = {
    "ApproximateAgeOfOldestMessage": "How long messages wait, in seconds",
    "IteratorAge": "How long new audits wait for notify, in ms",
    "JobsMissing": "Jobs that ended and have no audit",
}
_TITLES = ("Dollars of new audits, by day", "Jobs, by how much could be judged", "Messages sent")
_QUERY = re.compile(r"^insights (\w+) '(.+)'$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query in a section of the runbook, for the log of `function`."""

    runbook_entry: str
    function: str
    text: str


def saved_queries() -> Iterator[SavedQuery]:
    """Yields the queries in docs/runbook.md, in the page's order."""
    page = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    for section in re.split(r"^##+ ", page, flags=re.MULTILINE)[1:]:
        entry = section.partition("\n")[0].lower().replace(" ", "-")
        for function, text in _QUERY.findall(section):
            if "REQUEST ID" not in text:
                yield SavedQuery(entry, function.lower(), text)


class Dashboard(Construct):
    """Saves the queries, and shows money, freshness and health if `is_shown`.

    `log_groups` has the handler's name as key.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        specs: Sequence[AlarmSpec],
        alarms: Sequence[cloudwatch.IAlarm],
        log_groups: Mapping[str, logs.ILogGroup],
        is_shown: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        queries = list(saved_queries())
        for number, query in enumerate(queries):
            logs.CfnQueryDefinition(
                self,
                f"Query{number}",
                name=f"{cdk.Aws.STACK_NAME}/{query.runbook_entry}/{number + 1}",
                query_string=query.text,
                log_group_names=[log_groups[query.function].log_group_name],
            )
        if is_shown:
            self._add_dashboard(queries, specs, alarms, log_groups)

    def _add_dashboard(
        self,
        queries: Sequence[SavedQuery],
        specs: Sequence[AlarmSpec],
        alarms: Sequence[cloudwatch.IAlarm],
        log_groups: Mapping[str, logs.ILogGroup],
    ) -> None:
        self._dashboard = cloudwatch.Dashboard(
            self, "Dashboard", default_interval=cdk.Duration.days(1)
        )
        self._row(
            [
                cloudwatch.LogQueryWidget(
                    title=title,
                    log_group_names=[log_groups[query.function].log_group_name],
                    query_string=query.text,
                    view=cloudwatch.LogQueryVisualizationType.TABLE,
                    width=8,
                    height=6,
                )
                for title, query in zip(
                    _TITLES, (q for q in queries if q.runbook_entry == MONEY_DASHBOARD), strict=True
                )
            ]
        )
        self._row(
            [
                cloudwatch.GraphWidget(
                    title=title,
                    left=[alarm_metric(spec) for spec in specs if spec.sources[0].metric == name],
                    width=8,
                    height=6,
                )
                for name, title in FRESHNESS_METRICS.items()
            ]
        )
        self._row(
            [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=[*alarms], width=24, height=5)]
        )

    def _row(self, widgets: Sequence[cloudwatch.IWidget]) -> None:
        self._dashboard.add_widgets(*widgets)
