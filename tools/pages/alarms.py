"""Writes the table of alarms in docs/runbook.md: `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from infra.alarm_list import (
    HOUR_S,
    MAX_STATISTIC,
    MINUTE_S,
    QUEUE_MAX_AGE_S,
    SUM_STATISTIC,
    AlarmSpec,
    alarm_specs,
)
from sageaudit.adapters.channels.services import SERVICES
from tools.pages import DOCS, replace_parts

PAGE = DOCS / "runbook.md"
FUNCTIONS = ("audit", "notify", "deliver", "sweep", "watch", "digest")
DEAD_LETTERS = (
    "FinishedJobsDeadLetters",
    "UndecidedAudits",
    "NoticesDeadLetters",
    "SweepDeadLetters",
    "WatchDeadLetters",
    "DigestDeadLetters",
)
_UNITS = {"IteratorAge": " ms", "ApproximateAgeOfOldestMessage": " s"}


def all_alarm_specs(
    channels: Iterable[str] = SERVICES, *, has_budgets: bool = True
) -> list[AlarmSpec]:
    """Returns the alarms of a stack with these channels, by default one of each service."""
    return list(
        alarm_specs(
            functions={name: name for name in FUNCTIONS},
            work_queues={name: name for name in QUEUE_MAX_AGE_S},
            notices_queues={name: name for name in channels},
            dead_letters={name: name for name in DEAD_LETTERS},
            is_watch_on=True,
            has_budgets=has_budgets,
        )
    )


def page(text: str, alarms: Iterable[AlarmSpec]) -> str:
    """Returns the runbook with one table row for all alarms with the same condition and reason."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for alarm in alarms:
        row_key = (" ".join(_condition(alarm)), alarm.threshold_reason, alarm.runbook_entry)
        rows.setdefault(row_key, []).append(f"`{alarm.name}`")
    table = ["| alarms | raised when | why this threshold | entry |", "|---|---|---|---|"]
    for (condition, reason, entry), names in rows.items():
        link = f"[{entry}](#{entry})"
        table.append(f"| {', '.join(names)} | {condition} | {reason} | {link} |")
    return replace_parts(text, {"alarms": "\n".join(table)})


def _condition(alarm: AlarmSpec) -> Iterator[str]:
    names = list(dict.fromkeys(f"`{source.metric}`" for source in alarm.sources))
    if alarm.alarm_if_no_data:
        yield f"{names[0]} has had no value for {_span(alarm.period_s)}"
        return
    elif alarm.expression in {None, SUM_STATISTIC, MAX_STATISTIC}:
        amount = f"{alarm.statistic} of {' and '.join(names)}{_sources_text(alarm)}"
        yield f"{amount} above {alarm.threshold:,.0f}{_unit(alarm)}"
    else:
        formula = alarm.expression.format(*(source.metric for source in alarm.sources))
        yield f"`{formula}` above {alarm.threshold:,.0f}"
    times = (
        f"{alarm.datapoints_to_alarm} of {alarm.periods} times"
        if alarm.datapoints_to_alarm < alarm.periods
        else ""
    )
    if alarm.datapoints_to_alarm == alarm.periods > 1:
        times = f"{alarm.periods} times in a row"
    yield f"in {_span(alarm.period_s)}" + (f", {times}" if times else "")


def _sources_text(alarm: AlarmSpec) -> str:
    """Returns " over the 3 functions" or " over the 3 queues"; empty for other sources."""
    if alarm.expression is None or len({source.metric for source in alarm.sources}) > 1:
        return ""
    noun = "queues" if "QueueName" in alarm.sources[0].dimensions else "functions"
    return f" over the {len(alarm.sources)} {noun}"


def _unit(alarm: AlarmSpec) -> str:
    """Returns the unit of the metric, such as " s"; empty for a count."""
    return _UNITS.get(alarm.sources[0].metric, "")


def _span(seconds: int) -> str:
    return f"{seconds // HOUR_S} h" if seconds % HOUR_S == 0 else f"{seconds // MINUTE_S} min"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), all_alarm_specs()), encoding="utf-8")
