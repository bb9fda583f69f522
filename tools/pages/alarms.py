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
from tools.pages import DOCS, with_parts

PAGE = DOCS / "runbook.md"
FUNCTIONS = ("audit", "notify", "deliver", "sweep", "digest")
DEAD_LETTERS = (
    "FinishedJobsDeadLetters",
    "UndecidedAudits",
    "NoticesDeadLetters",
    "SweepDeadLetters",
    "DigestDeadLetters",
)
_UNITS = {"IteratorAge": " ms", "ApproximateAgeOfOldestMessage": " s"}


def listed(channels: Iterable[str] = SERVICES) -> list[AlarmSpec]:
    """The alarms of a stack with these channels, one of each service; all go by their names."""
    return list(
        alarm_specs(
            functions={name: name for name in FUNCTIONS},
            work_queues={name: name for name in QUEUE_MAX_AGE_S},
            notices_queues={name: name for name in channels},
            dead_letters={name: name for name in DEAD_LETTERS},
        )
    )


def page(text: str, alarms: Iterable[AlarmSpec]) -> str:
    """The runbook with a row for all alarms that have their condition and reason in common."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for watch in alarms:
        alike = (" ".join(_condition(watch)), watch.threshold_reason, watch.runbook_entry)
        rows.setdefault(alike, []).append(f"`{watch.name}`")
    table = ["| alarms | raised when | why this threshold | entry |", "|---|---|---|---|"]
    for (condition, reason, entry), names in rows.items():
        link = f"[{entry}](#{entry})"
        table.append(f"| {', '.join(names)} | {condition} | {reason} | {link} |")
    return with_parts(text, {"alarms": "\n".join(table)})


def _condition(watch: AlarmSpec) -> Iterator[str]:
    names = list(dict.fromkeys(f"`{source.metric}`" for source in watch.sources))
    if watch.alarm_if_no_data:
        yield f"{names[0]} has no more values"
    elif watch.expression in {None, SUM_STATISTIC, MAX_STATISTIC}:
        several = f", of {len(watch.sources)} together" if watch.expression else ""
        yield f"{watch.statistic} of {names[0]} above {watch.threshold:,.0f}{_unit(watch)}{several}"
    else:
        shown = watch.expression.format(*(source.metric for source in watch.sources))
        yield f"`{shown}` above {watch.threshold:,.0f}"
    times = (
        f"{watch.datapoints_to_alarm} of {watch.periods} times"
        if watch.datapoints_to_alarm < watch.periods
        else ""
    )
    if watch.datapoints_to_alarm == watch.periods > 1:
        times = f"{watch.periods} times in a row"
    yield f"in {_span(watch.period_s)}" + (f", {times}" if times else "")


def _unit(watch: AlarmSpec) -> str:
    """The unit that AWS gives a metric of time; counts have none."""
    return _UNITS.get(watch.sources[0].metric, "")


def _span(seconds: int) -> str:
    return f"{seconds // HOUR_S} h" if seconds % HOUR_S == 0 else f"{seconds // MINUTE_S} min"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), listed()), encoding="utf-8")
