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
"""Where stderr is no terminal, a line as often."""
_REASONS = 8
_NOT_JUDGED_TITLE = "Why jobs were not judged, or only in part (figures are of the first such job)"
_RESULT_LABELS = {
    ScanResult.AUDITED: "audited now",
    ScanResult.KNOWN: "final in the history: not asked for",
    ScanResult.RUNNING: "still running: left out",
    ScanResult.GONE: "deleted since they were listed",
    ScanResult.REFUSED: "not audited: AWS refused, or answered with another job",
    ScanResult.NOT_ASKED: "not audited: not asked for after the refusals before",
}
_ROLL_UPS = " and ".join(f"{kind.spec.label}s" for kind in JobKind if kind.spec.rollup)
_SHOWN_REASONS = 20
_COLUMNS = (
    FittedColumn("account", "Account", False, 0),
    FittedColumn("name", "Name", False, 8),
    *(FittedColumn(title.lower(), title, True, 0) for title in ("Audited", *COLUMN_TITLES[:3])),
    FittedColumn("status", "Status", False, 0),
)
_DROPPED = ("name", "lost", "avoidable")


def listing_line(regions: Sequence[str], period: Period) -> str:
    """Which jobs are listed, before AWS is asked."""
    where = regions[0] if len(regions) == 1 else count_text(len(regions), "region")
    return f"listing the jobs that ended {period.since} to {period.until} (UTC) in {where}"


def listed_line(lanes: Sequence[Lane], cost: ScanCost) -> str:
    """How many there are, and how many of them AWS is asked about."""
    jobs = plan_document(lanes, cost)["jobs"]
    parts = (
        (jobs["to_audit"], "to audit"),
        (jobs["known"], "final in the history"),
        (jobs["running"], "still running"),
    )
    listed = count_text(sum(count for count, _ in parts), "job")
    return ": ".join([listed, *filter(None, [", ".join(f"{n:,} {w}" for n, w in parts if n)])])


def cost_line(cost: ScanCost) -> str:
    """What the scan will cost, and how long it takes at least."""
    if not cost.jobs:
        return "this scan costs nothing: AWS is asked about no job"
    least_s = round(cost.min_seconds)
    least = (
        f", and takes {duration_text(Decimal(least_s))} at least, by AWS's rates" if least_s else ""
    )
    return (
        f"this scan costs {Figure(cost.usd, estimated=True)}{least}: it asks for"
        f" {cost.metrics:,} CloudWatch metrics at $0.01 per 1,000, if each job has one host;"
        " all other requests are free"
    )


def plan_document(lanes: Sequence[Lane], cost: ScanCost) -> dict[str, Any]:
    """What a scan would do, as JSON."""
    listed = Counter(
        (lane.account, lane.region, job.ref.kind.value) for lane in lanes for job in lane.jobs
    )
    running = sum(not job.is_finished for lane in lanes for job in lane.jobs)
    return {
        "listed": [
            {"account": account, "region": region, "kind": kind, "jobs": count}
            for (account, region, kind), count in sorted(listed.items())
        ],
        "jobs": {
            "to_audit": cost.jobs,
            "running": running,
            "known": listed.total() - cost.jobs - running,
        },
        "metrics": cost.metrics,
        "cost_usd": cost.usd,
        "least_s": round(cost.min_seconds),
    }


def plan_lines(lanes: Sequence[Lane], cost: ScanCost) -> Iterator[str]:
    """The same as lines."""
    planned = plan_document(lanes, cost)
    for row in planned["listed"]:
        yield f"{row['jobs']:>7,}  {row['kind']} jobs in {row['account']} {row['region']}"
    jobs = planned["jobs"]
    yield f"{jobs['to_audit']:>7,}  to audit"
    yield f"{jobs['known']:>7,}  {_RESULT_LABELS[ScanResult.KNOWN]}"
    yield f"{jobs['running']:>7,}  {_RESULT_LABELS[ScanResult.RUNNING]}"
    yield cost_line(cost)


@contextmanager
def show_progress(
    tally: ScanTally, jobs: int, say: Callable[[str], None]
) -> Iterator[Callable[[], None]]:
    """Yields a function that draws the tally: a bar on a terminal, else a line now and then."""
    console = Console(stderr=True)
    if console.is_terminal and jobs:
        with _bar(console) as bar:
            task = bar.add_task("", total=jobs, found="")
            yield lambda: bar.update(task, completed=tally.job_count, found=_sums_so_far(tally))
        return
    last = time.monotonic()

    def line() -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_EVERY_S:
            last = time.monotonic()
            say(f"{tally.job_count:,} of {count_text(jobs, 'job')}; {_sums_so_far(tally)}")

    yield line


def _bar(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=20),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} jobs"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[found]}"),
        console=console,
        transient=True,
    )


def _sums_so_far(tally: ScanTally) -> str:
    """What is known so far."""
    found = sums_amounts(tally.sums)
    return f"{found.waste} avoidable or lost of {found.spend}"


def show(tally: ScanTally, remaining: int, metrics: int, console: Console) -> None:
    """Prints what became of the jobs, and what was not judged and why."""
    print_heading(
        console, f"Scan of {count_text(tally.job_count + remaining, 'job')}, {_ROLL_UPS} included"
    )
    for words in _lines(tally, remaining, metrics):
        console.print(words, highlight=False)
    _reasons("Not audited", tally.refused, console)
    _reasons(_NOT_JUDGED_TITLE, tally.not_judged, console)


def _lines(tally: ScanTally, left: int, metrics: int) -> Iterator[str]:
    for result, words in _RESULT_LABELS.items():
        if count := tally.results[result]:
            yield f"{count:>7,}  {words}"
    if left:
        yield f"{left:>7,}  left for the next run of the same command"
    if metrics:
        cost = Figure(metrics_cost_usd(metrics), estimated=True)
        yield f"CloudWatch was asked for {metrics:,} metrics: {cost}."


def _reasons(title: str, reasons: Counter[str], console: Console) -> None:
    if not reasons:
        return
    print_heading(console, title)
    table = plain_table("Jobs", "Reason", right={"Jobs"})
    for reason, count in reasons.most_common(_REASONS):
        table.add_row(f"{count:,}", Text(for_terminal(reason)))
    console.print(table)
    if len(reasons) > _REASONS:
        print_line(console, f"and {count_text(len(reasons) - _REASONS, 'reason')} more", "dim")


def document(
    tally: ScanTally, lanes: Sequence[Lane], remaining: int, metrics: int
) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "places": [
            {"account": lane.account, "region": lane.region, "jobs": len(lane.jobs)}
            for lane in lanes
        ],
        "jobs": _jobs(tally, remaining),
        "metrics_requested": metrics,
        "cost_usd": metrics_cost_usd(metrics),
        "refused": _counts(tally.refused),
        "not_judged": _counts(tally.not_judged),
    }


def _jobs(tally: ScanTally, left: int) -> dict[str, int]:
    return {**{result.value: tally.results[result] for result in ScanResult}, "left": left}


def _counts(reasons: Counter[str]) -> list[dict[str, object]]:
    return [{"reason": reason, "jobs": count} for reason, count in reasons.most_common()]


def accounts_document(statuses: Sequence[AccountStatus]) -> list[dict[str, Any]]:
    """One object for each account; empty where one account was scanned by itself."""
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
    """Prints a row for each account, those with the most dollars first, then the reasons."""
    if not statuses:
        return
    print_heading(console, count_text(len(statuses), "account"))
    ranked = sorted(statuses, key=lambda one: (-one.sums.total_usd, one.account))
    rows = [
        (
            one.account,
            for_terminal(one.name or "-"),
            *_account_figures(one),
            one.word.replace("_", " "),
        )
        for one in ranked
    ]
    console.print(fit_table(_COLUMNS, rows, _DROPPED, console.width))
    reasons = [(status.account, reason) for status in statuses for reason in status.reasons]
    for account, reason in reasons[:_SHOWN_REASONS]:
        print_line(console, f"{account}: {reason}", "dim")
    if len(reasons) > _SHOWN_REASONS:
        print_line(
            console, f"and {len(reasons) - _SHOWN_REASONS} reasons more: see --output json", "dim"
        )


def _account_figures(status: AccountStatus) -> tuple[str, ...]:
    """Jobs and dollars; a dash where nothing is known of the account."""
    sums = status.sums
    if status.error is not None and not sums.jobs:
        return "-", "-", "-", "-"
    return f"{sums.jobs:,}", *map(str, sums_amounts(sums)[:3])
