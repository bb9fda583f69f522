"""A scan on the terminal and as JSON: its plan, progress, jobs and accounts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from sageaudit.domain.job.job import duration_text
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import Period
from sageaudit.output.terminal.layout import (
    FittedColumn,
    fit_table,
    plain_table,
    print_heading,
    print_line,
)
from sageaudit.output.text.amounts import COLUMN_TITLES, sums_amounts
from sageaudit.output.text.money import Figure
from sageaudit.output.text.untrusted import for_terminal
from sageaudit.output.text.words import count_text
from sageaudit.workflows.scan.lanes import Lane, ScanResult
from sageaudit.workflows.scan.tally import AccountStatus, ScanCost, ScanTally, metrics_cost_usd

_PROGRESS_EVERY_S = 10.0
"""Seconds between two lines of progress if stderr is not a terminal."""
_MAX_REASONS = 8
_NOT_JUDGED_TITLE = "Why jobs were not judged, or only in part (figures are of the first such job)"
_RESULT_LABELS = {
    ScanResult.AUDITED: "audited now",
    ScanResult.KNOWN: "final in the history: not audited again",
    ScanResult.RUNNING: "still running: left out",
    ScanResult.GONE: "deleted since they were listed",
    ScanResult.REFUSED: "not audited: AWS refused, or answered with another job",
    ScanResult.NOT_ASKED: "not audited: not requested after earlier refusals",
}
_ROLL_UPS = " and ".join(f"{kind.spec.label}s" for kind in JobKind if kind.spec.rollup)
_MAX_ACCOUNT_REASONS = 20
_COLUMNS = (
    FittedColumn("account", "Account", False, 0),
    FittedColumn("name", "Name", False, 8),
    *(FittedColumn(title.lower(), title, True, 0) for title in ("Audited", *COLUMN_TITLES[:3])),
    FittedColumn("status", "Status", False, 0),
)
_DROPPED_FIRST = ("name", "lost", "avoidable")


def listing_line(regions: Sequence[str], period: Period) -> str:
    """Returns the line about which jobs are being listed."""
    place = regions[0] if len(regions) == 1 else count_text(len(regions), "region")
    return f"listing the jobs that ended from {period.since} to {period.until} (UTC) in {place}"


def listed_line(lanes: Sequence[Lane], cost: ScanCost) -> str:
    """Returns how many jobs are listed, and how many of them will be audited."""
    jobs = plan_document(lanes, cost)["jobs"]
    parts = (
        (jobs["to_audit"], "to audit"),
        (jobs["known"], "final in the history"),
        (jobs["running"], "still running"),
    )
    listed_jobs = count_text(sum(count for count, _ in parts), "job")
    return ": ".join(
        [
            listed_jobs,
            *filter(None, [", ".join(f"{count:,} {label}" for count, label in parts if count)]),
        ]
    )


def cost_line(cost: ScanCost) -> str:
    """Returns what the scan will cost, and its minimum duration."""
    if not cost.jobs:
        return "this scan costs nothing: no job needs an audit"
    min_s = round(cost.min_seconds)
    duration = (
        f", and takes {duration_text(Decimal(min_s))} at least, by AWS's rates" if min_s else ""
    )
    return (
        f"this scan costs {Figure(cost.usd, estimated=True)}{duration}: it asks for"
        f" {cost.metrics:,} CloudWatch metrics at $0.01 per 1,000, if each job has one host; all"
        " other requests are free"
    )


def plan_document(lanes: Sequence[Lane], cost: ScanCost) -> dict[str, Any]:
    """Returns what a scan would do, as JSON."""
    listed_jobs = Counter(
        (lane.account, lane.region, job.ref.kind.value) for lane in lanes for job in lane.jobs
    )
    running_count = sum(not job.is_finished for lane in lanes for job in lane.jobs)
    return {
        "listed": [
            {"account": account, "region": region, "kind": kind, "jobs": count}
            for (account, region, kind), count in sorted(listed_jobs.items())
        ],
        "jobs": {
            "to_audit": cost.jobs,
            "running": running_count,
            "known": listed_jobs.total() - cost.jobs - running_count,
        },
        "metrics": cost.metrics,
        "cost_usd": cost.usd,
        "least_s": round(cost.min_seconds),
    }


def plan_lines(lanes: Sequence[Lane], cost: ScanCost) -> Iterator[str]:
    """Yields what a scan would do, as lines."""
    plan = plan_document(lanes, cost)
    for row in plan["listed"]:
        yield f"{row['jobs']:>7,}  {row['kind']} jobs in {row['account']} {row['region']}"
    jobs = plan["jobs"]
    yield f"{jobs['to_audit']:>7,}  to audit"
    yield f"{jobs['known']:>7,}  {_RESULT_LABELS[ScanResult.KNOWN]}"
    yield f"{jobs['running']:>7,}  {_RESULT_LABELS[ScanResult.RUNNING]}"
    yield cost_line(cost)


@contextmanager
def show_progress(
    tally: ScanTally, jobs: int, print_line: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """Yields a function that draws the tally: a bar on a terminal, else a line now and then."""
    console = Console(stderr=True)
    if console.is_terminal and jobs:
        with _bar(console) as bar:
            task = bar.add_task("", total=jobs, amounts="")
            yield lambda: bar.update(task, completed=tally.job_count, amounts=_sums_so_far(tally))
        return
    printed_at = time.monotonic()

    def print_progress() -> None:
        nonlocal printed_at
        if time.monotonic() - printed_at >= _PROGRESS_EVERY_S:
            printed_at = time.monotonic()
            print_line(f"{tally.job_count:,} of {count_text(jobs, 'job')}; {_sums_so_far(tally)}")

    yield print_progress


def _bar(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} jobs"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[amounts]}"),
        console=console,
        transient=True,
    )


def _sums_so_far(tally: ScanTally) -> str:
    amounts = sums_amounts(tally.sums)
    return f"{amounts.waste} avoidable or lost of {amounts.spend}"


def show(tally: ScanTally, remaining: int, metrics: int, console: Console) -> None:
    """Prints the results of the jobs, and what was not judged and why.

    `remaining`: jobs that the scan did not reach. `metrics`: the number of requested metrics.
    """
    print_heading(
        console, f"Scan of {count_text(tally.job_count + remaining, 'job')}, {_ROLL_UPS} included"
    )
    for line in _lines(tally, remaining, metrics):
        console.print(line, highlight=False)
    _reasons("Not audited", tally.job_count_by_refusal, console)
    _reasons(_NOT_JUDGED_TITLE, tally.not_judged, console)


def _lines(tally: ScanTally, remaining: int, metrics: int) -> Iterator[str]:
    for result, label in _RESULT_LABELS.items():
        if count := tally.results[result]:
            yield f"{count:>7,}  {label}"
    if remaining:
        yield f"{remaining:>7,}  left: run the same command again"
    if metrics:
        cost = Figure(metrics_cost_usd(metrics), estimated=True)
        yield f"CloudWatch was asked for {metrics:,} metrics: {cost}."


def _reasons(title: str, reasons: Counter[str], console: Console) -> None:
    if not reasons:
        return
    print_heading(console, title)
    table = plain_table("Jobs", "Reason", right={"Jobs"})
    for reason, count in reasons.most_common(_MAX_REASONS):
        table.add_row(f"{count:,}", Text(for_terminal(reason)))
    console.print(table)
    if len(reasons) > _MAX_REASONS:
        print_line(console, f"and {count_text(len(reasons) - _MAX_REASONS, 'reason')} more", "dim")


def document(
    tally: ScanTally, lanes: Sequence[Lane], remaining: int, metrics: int
) -> dict[str, Any]:
    """Returns the results of a scan as JSON.

    `remaining`: jobs that the scan did not reach. `metrics`: the number of requested metrics.
    """
    return {
        "places": [
            {"account": lane.account, "region": lane.region, "jobs": len(lane.jobs)}
            for lane in lanes
        ],
        "jobs": _jobs(tally, remaining),
        "metrics_requested": metrics,
        "cost_usd": metrics_cost_usd(metrics),
        "refused": _counts(tally.job_count_by_refusal),
        "not_judged": _counts(tally.not_judged),
    }


def _jobs(tally: ScanTally, remaining: int) -> dict[str, int]:
    return {**{result.value: tally.results[result] for result in ScanResult}, "left": remaining}


def _counts(reasons: Counter[str]) -> list[dict[str, object]]:
    return [{"reason": reason, "jobs": count} for reason, count in reasons.most_common()]


def accounts_document(statuses: Sequence[AccountStatus]) -> list[dict[str, Any]]:
    """Returns one object per account; none if only one account was scanned."""
    return [
        {
            "account": status.account,
            "name": status.name,
            "status": status.word,
            "reasons": status.reasons,
            "jobs": _jobs(status.tally, status.unread_job_count),
            "total_usd": status.sums.known_total_usd,
            "spend_qualifier": status.sums.spend_qualifier,
            "avoidable_usd": status.sums.known_avoidable_usd,
            "lost_usd": status.sums.known_lost_usd,
            "possible_usd": status.sums.known_possible_usd,
        }
        for status in statuses
    ]


def show_accounts(statuses: Sequence[AccountStatus], console: Console) -> None:
    """Prints a row per account, the most dollars first, then the reasons."""
    if not statuses:
        return
    print_heading(console, count_text(len(statuses), "account"))
    ranked = sorted(statuses, key=lambda status: (-status.sums.total_usd, status.account))
    rows = [
        (
            status.account,
            for_terminal(status.name or "-"),
            *_account_figures(status),
            status.word.replace("_", " "),
        )
        for status in ranked
    ]
    console.print(fit_table(_COLUMNS, rows, _DROPPED_FIRST, console.width))
    reasons = [(status.account, reason) for status in statuses for reason in status.reasons]
    for account, reason in reasons[:_MAX_ACCOUNT_REASONS]:
        print_line(console, f"{account}: {reason}", "dim")
    if len(reasons) > _MAX_ACCOUNT_REASONS:
        print_line(
            console,
            f"and {len(reasons) - _MAX_ACCOUNT_REASONS} more reasons: see --output json",
            "dim",
        )


def _account_figures(status: AccountStatus) -> tuple[str, ...]:
    """Returns dashes if nothing is known about the account."""
    sums = status.sums
    if status.error is not None and not sums.jobs:
        return "-", "-", "-", "-"
    return f"{sums.jobs:,}", *map(str, sums_amounts(sums)[:3])
