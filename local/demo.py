"""`make demo`: ends recorded jobs on the local AWS, and prints the results.

It reads the results where a user would: in the history's table, from a subscriber of the topic, and
in the posts to Slack. Some commands need weeks of jobs, so it also writes the history of the
example company, like `sageaudit demo`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from local import ACCOUNT, slack_view
from local.aws import LocalAws, local_aws
from local.recorded import RECORDINGS, RecordedJob, jobs_in_file, recorded_jobs
from local.slack import FakeSlack, slack_stand_in
from sageaudit import __version__
from sageaudit.adapters.files.policy_file import load_policy
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.prices import packaged
from sageaudit.cli.main import cli
from sageaudit.domain.audit.record import RuleFinding, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.audit.sums import Sums
from sageaudit.domain.money import format_usd
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.sweep import Period
from sageaudit.output.html.account import account_body, account_title
from sageaudit.output.html.page import page
from sageaudit.output.text.amounts import summary_amounts
from sageaudit.output.text.finding import saving_figure
from sageaudit.output.text.headline import account_headline
from sageaudit.output.text.untrusted import cut_middle, for_terminal
from sageaudit.workflows import report as report_contents

ROOT = Path(__file__).parents[1]
POLICY = Path(__file__).parent / "policy.toml"
REPORT = ROOT / "build" / "demo-report.html"
EXAMPLE = ROOT / "build" / "example-company.db"
COMPOSED = RECORDINGS / "composed-g4dn-12xlarge.json"
"""The file of a made-up run: no public recording has several GPUs and all metrics that the fix
needs."""
RULE = "gpu-underused"
_MIN_NAME_WIDTH = 18
_MAX_NAME_WIDTH = 48
_COLUMN_GAP = 2
_USD_COLUMN_WIDTHS = {"Cost": 13, "Avoidable": 10, "Lost": 6}
"""The widths of the dollar columns in characters, by title."""
_PROGRESS_LINES = 5
_TOP_COLUMN = "Top finding"
"""The title of the last column."""
_POSSIBLE = "An amount after a rule's name is a possible saving; it is not in the totals."
_ABOUT = 'About: the rate is estimated from that of EC2; "sageaudit audit" says how.'
_UNKNOWN = "Unknown: the job's metrics were missing or too few to judge what was avoidable."


def main() -> int:
    """Runs the demo. Returns 1 if a job was not audited."""
    jobs, policy = recorded_jobs(), load_policy(POLICY)
    with (
        slack_stand_in() as slack,
        local_aws(jobs[0].ended_at, policy=policy, transport=slack.transport) as aws,
    ):
        code = run_demo(jobs, policy, aws, slack)
    if not code:
        show_example()
    return code


def show_example() -> None:
    """Writes the example company's history, and prints commands to query it."""
    console = Console()
    console.print(Text("\nWeeks of jobs, which advice, savings and changes need", "bold"))
    print("The commands below are in .venv/bin.")
    cli.main(["demo", "--history", os.path.relpath(EXAMPLE)], standalone_mode=False)


def run_demo(jobs: Sequence[RecordedJob], policy: Policy, aws: LocalAws, slack: FakeSlack) -> int:
    """Ends the jobs on this local AWS and prints the results.

    Returns 1 if a job was not audited, otherwise 0.
    """
    with _progress(len(jobs)) as report_count:
        unaudited = _run(aws, jobs, report_count)
    console, history = Console(), aws.history()
    summaries = sorted(history.runs(RunQuery.for_account(ACCOUNT)), key=_waste_order)
    _show_result(console, summaries, policy)
    _show_jobs(console, history, summaries)
    _show_message(console, slack.posts, len(aws.mails), len(slack.accepted))
    _show_rule(console, reversed([*history.runs(RunQuery.for_rule(RULE))]))
    _show_report(console, history, summaries)
    for job in unaudited:
        _explain_missing_audit(job, history, aws)
    return 1 if unaudited else 0


@contextmanager
def _progress(job_count: int) -> Iterator[Callable[[int], None]]:
    """Yields a function that shows on stderr how many jobs ended.

    A terminal has one line that changes, a pipe has a line for each fifth of the jobs.
    """
    console = Console(stderr=True)

    def text(count: int) -> str:
        return f"{count} of {job_count} recorded jobs ended on the local AWS"

    def print_some(count: int) -> None:
        if count * _PROGRESS_LINES // job_count > (count - 1) * _PROGRESS_LINES // job_count:
            console.print(text(count), highlight=False)

    if console.is_terminal:
        with console.status(text(0)) as status:
            yield lambda count: status.update(text(count))
    else:
        yield print_some


def _run(
    aws: LocalAws, jobs: Sequence[RecordedJob], report_count: Callable[[int], None]
) -> list[RecordedJob]:
    """Ends the jobs in their order; returns the jobs without an audit."""
    for count, job in enumerate(jobs, 1):
        aws.advance(job.ended_at)
        aws.end_job(job)
        report_count(count)
    aws.advance()
    history = aws.history()
    audits = [(job, history.summary(job.key)) for job in jobs]
    return [job for job, summary in audits if summary is None or summary.unauditable is not None]


def _waste_order(summary: AuditSummary) -> tuple[Decimal, Decimal, str]:
    """Returns a sort key: the waste, then the cost, both descending."""
    waste = (summary.avoidable_usd or Decimal(0)) + (summary.lost_usd or Decimal(0))
    return -waste, -(summary.total_usd or Decimal(0)), summary.job


def _show_result(console: Console, summaries: Sequence[AuditSummary], policy: Policy) -> None:
    """Prints a sentence with the result, and a sentence with the part that is from real jobs."""
    jobs = [summary for summary in summaries if not summary.rollup]
    real_jobs = [summary for summary in jobs if summary.job != _composed_recording().name]
    unjudged_count = sum(summary.avoidable_usd is None for summary in jobs)
    console.print(f"{account_headline(_sums(jobs))}.", style="bold", highlight=False)
    console.print(
        f"{len(real_jobs)} of them are real, one is made up; without it, "
        f"{account_headline(_sums(real_jobs))}. For {unjudged_count} of the jobs it is not known "
        "what was avoidable: their metrics are missing or too few.\n",
        highlight=False,
    )
    console.print(
        "They ended on a local AWS; nothing was sent anywhere. Public recordings are of small "
        f"jobs, so local/policy.toml sends messages from {format_usd(policy.floor_usd)} on.",
        style="dim",
        highlight=False,
    )


def _sums(summaries: Iterable[AuditSummary]) -> Sums:
    return sum((summary.sums or Sums() for summary in summaries), Sums())


def _show_jobs(console: Console, history: DynamoHistory, summaries: Sequence[AuditSummary]) -> None:
    top_findings = [_top_finding(history, summary) for summary in summaries]
    used_width = (
        sum(_USD_COLUMN_WIDTHS.values())
        + (len(_USD_COLUMN_WIDTHS) + 1) * _COLUMN_GAP
        + max(map(len, (_TOP_COLUMN, *top_findings)))
    )
    name_width = min(max(console.width - used_width, _MIN_NAME_WIDTH), _MAX_NAME_WIDTH)
    table = Table(box=None, pad_edge=False, padding=(0, _COLUMN_GAP, 0, 0), header_style="dim")
    table.add_column("Job", width=name_width, no_wrap=True)
    for word, width in _USD_COLUMN_WIDTHS.items():
        table.add_column(word, justify="right", width=width, no_wrap=True)
    table.add_column(_TOP_COLUMN, overflow="ellipsis")
    for summary, top_finding in zip(summaries, top_findings, strict=True):
        name = Text(
            cut_middle(for_terminal(summary.job), name_width), "italic" if summary.rollup else ""
        )
        table.add_row(name, *map(str, summary_amounts(summary)[:3]), Text(top_finding))
    console.print(Text("\nAudited jobs, the most wasteful first", "bold"))
    console.print(table)
    possible_notes = [_POSSIBLE] if any("$" in top_finding for top_finding in top_findings) else []
    estimate_notes = [_ABOUT] if any(summary.estimated for summary in summaries) else []
    notes = [
        *possible_notes,
        *estimate_notes,
        _UNKNOWN,
        f"{_composed_recording().name} is made up.",
    ]
    console.print(Text("\n".join(notes), "dim"))


def _top_finding(history: DynamoHistory, summary: AuditSummary) -> str:
    document = history.audit(summary.key) if summary.costliest_rule else None
    if document is None or summary.costliest_rule is None:
        return "-"
    finding = next(row for row in document["findings"] if row["rule"] == summary.costliest_rule)
    is_possible = finding["bucket"] == "possible" and finding["saving_usd"]
    return (
        f"{summary.costliest_rule} {saving_figure(finding)}"
        if is_possible
        else summary.costliest_rule
    )


def _composed_recording() -> RecordedJob:
    [job] = jobs_in_file(COMPOSED)
    return job


def _show_message(
    console: Console, posts: Sequence[dict[str, object]], mail_count: int, post_count: int
) -> None:
    teams_text = f"{post_count - len(posts)} on Teams"
    console.print(
        f"\nMessages: {len(posts)} on Slack, {teams_text}, {mail_count} on SNS."
        " The newest on Slack, as on a phone:"
    )
    if posts:
        console.print(slack_view.render(posts[-1]))


def _show_rule(console: Console, rows: Iterable[RuleFinding]) -> None:
    table = Table.grid(padding=(0, _COLUMN_GAP, 0, 0))
    name_width = min(max(console.width // 3, _MIN_NAME_WIDTH), _MAX_NAME_WIDTH)
    for row in rows:
        name = cut_middle(for_terminal(row.summary.job), name_width)
        table.add_row(
            f"{row.ended_at:%Y-%m-%d}", Text(name), Text(for_terminal(row.finding.summary))
        )
    console.print(Text(f"\nA query of the history: what did {RULE} find?", "bold"))
    console.print(table)


def _show_report(
    console: Console, history: DynamoHistory, listed_summaries: Sequence[AuditSummary]
) -> None:
    """Writes the page of `sageaudit report`, and prints its path."""
    days = {head.ended_at.date() for head in listed_summaries}
    period = Period(min(days), max(days))
    source = report_contents.ReportSource(history, packaged.instance_types())
    summaries = report_contents.read_report_summaries(source, period, ACCOUNT)
    contents = report_contents.assemble_account_report(
        source, period, ACCOUNT, *summaries, datetime.now(UTC)
    )
    text = page(
        account_title(contents),
        account_body(contents),
        generated_at=datetime.now(UTC),
        version=__version__,
    )
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("".join(text), encoding="utf-8")
    console.print(Text("\nThe same results as a page, with charts and each job's fixes", "bold"))
    print(f"{REPORT.relative_to(ROOT)}: open it in a browser; it loads nothing and sends nothing")


def _explain_missing_audit(job: RecordedJob, history: DynamoHistory, aws: LocalAws) -> None:
    summary = history.summary(job.key)
    failures = aws.functions["audit"].failures
    reason = (summary and summary.unauditable) or (
        failures[-1] if failures else "see the dead-letter queue"
    )
    print(f"{job.name} was not audited: {for_terminal(str(reason))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
